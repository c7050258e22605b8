/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/descriptors.h"

static void expect_link(const char *link, enum descriptor_kind kind, uint64_t inode)
{
	struct descriptor d = {0};

	descriptor_parse_link(link, &d);
	assert_int_equal(d.kind, kind);
	assert_int_equal(d.inode, inode);
}

static void test_links(void **state)
{
	expect_link("pipe:[4711]", DESCRIPTOR_PIPE, 4711);
	expect_link("socket:[18446744073709551615]", DESCRIPTOR_SOCKET, UINT64_MAX);
	expect_link("pipe:[", DESCRIPTOR_PIPE, 0);
	expect_link("anon_inode:[eventpoll]", DESCRIPTOR_EPOLL, 0);
	expect_link("anon_inode:inotify", DESCRIPTOR_INOTIFY, 0);
	expect_link("anon_inode:[pidfd]", DESCRIPTOR_PIDFD, 0);
	expect_link("anon_inode:bpf-map", DESCRIPTOR_OTHER, 0);
	expect_link("anon_inode:", DESCRIPTOR_OTHER, 0);
	expect_link("/dev/pts/3", DESCRIPTOR_TERMINAL, 0);
	expect_link("/dev/fuse", DESCRIPTOR_FUSE, 0);
	expect_link("/pipe:[4711]", DESCRIPTOR_FILE, 0);
	expect_link("/memfd:x (deleted)", DESCRIPTOR_FILE, 0);
	expect_link("net:[4026531840]", DESCRIPTOR_OTHER, 0);
	expect_link("", DESCRIPTOR_OTHER, 0);
}

static void test_names(void **state)
{
	struct arena *arena = arena_create();

	assert_string_equal(descriptor_name(DESCRIPTOR_SOCKET, UINT64_MAX, arena), "socket:[18446744073709551615]");
	assert_string_equal(descriptor_name(DESCRIPTOR_PIPE, 4711, arena), "pipe:[4711]");
	assert_string_equal(descriptor_name(DESCRIPTOR_PIPE, 0, arena), "pipe:[0]");
	arena_destroy(arena);
}

static struct descriptor parse_info(const char *text, uint64_t *mount)
{
	struct descriptor d = {.offset = -1, .left_ns = -1};

	descriptor_parse_info(text, &d, mount);
	return d;
}

static void test_infos(void **state)
{
	uint64_t mount;
	struct descriptor d = parse_info("pos:\t4096\nflags:\t0100002\nmnt_id:\t29\nino:\t77\n", &mount);

	assert_true(d.offset == 4096 && d.flags == 0100002 && mount == 29 && d.inode == 77);
	d = parse_info("pos:\t0\neventfd-count:               1f\neventfd-id: 3\n", &mount);
	assert_true(d.count == 0x1f && mount == 0);
	d = parse_info("it_value: (3, 500000000)\nit_interval: (9, 0)\n", &mount);
	assert_true(d.left_ns == INT64_C(3500000000));
	d = parse_info("Pid:\t812\nNSpid:\t812\t7\n", &mount);
	assert_int_equal(d.pid, 812);
}

/* Times that cannot be, lines without an end, and names that only begin like those that are known. */
static void test_damaged_infos(void **state)
{
	static const char *const none[] = {
		"", "\n\n", ":", "pos", "it_value:", "it_value: (", "it_value: (0, 0)", "it_value: (1, 1000000000)",
		"it_value: (18446744073709551615, 1)", "it_value: (9223372036, 1)", "it_value: (x, y)", "posx:\t1", "Pidx:\t1", "\npo\ns:\t7",
	};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		uint64_t mount;
		struct descriptor d = parse_info(none[i], &mount);

		assert_true(d.left_ns == -1 && d.offset == -1 && d.pid == 0 && mount == 0);
	}
}

static void test_watched(void **state)
{
	static const char line[] = "tfd:        7 events: 80000019 data: ffffffffffffffff  pos:-1 ino:2a sdev:8\n";
	struct watched_descriptor w = {0};
	char cut[sizeof(line)];

	assert_true(descriptor_parse_watched(line, &w));
	assert_true(w.fd == 7 && w.events == 0x80000019 && w.inode == 0x2a && w.device == 8);
	for (size_t len = 0; len < sizeof(line) - 3; len++) { /* to where the last number begins */
		memcpy(cut, line, len);
		cut[len] = '\0';
		assert_false(descriptor_parse_watched(cut, &w));
	}
	assert_false(descriptor_parse_watched("tfd: 99999999999 events: 1 data: 1 pos:0 ino:1 sdev:1", &w));
	assert_false(descriptor_parse_watched("tfd: -1 events: 1 data: 1 pos:0 ino:1 sdev:1", &w));
	assert_false(descriptor_parse_watched("pos:\t0\n", &w));
}

static void test_kinds_have_names(void **state)
{
	for (enum descriptor_kind kind = 0; kind < DESCRIPTOR_KIND_COUNT; kind++)
		assert_non_null(descriptor_kind_name(kind));
	for (enum wait_kind kind = WAIT_NOTHING + 1; kind < WAIT_KIND_COUNT; kind++)
		assert_int_equal(wait_kind_named(wait_kind_name(kind)), kind);
	assert_int_equal(wait_kind_named("nothing like that"), WAIT_NOTHING);
}

static struct descriptors own_descriptors(void)
{
	return (struct descriptors){
		.links = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.infos = open("/proc/self/fdinfo", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	};
}

static uint64_t inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

/* The number of a socket may be that of something else by the time that its protocol is asked for. */
static void test_protocol(void **state)
{
	struct descriptors dirs = own_descriptors();
	char protocol[32] = "";
	uint64_t inode;
	int ends[2], pipes[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(pipe(pipes), 0);
	inode = inode_of(ends[0]);
	assert_true(descriptors_protocol(&dirs, ends[0], inode, protocol, sizeof(protocol)));
	assert_true(strncmp(protocol, "UNIX", 4) == 0); /* "UNIX-STREAM" since 5.15 */
	assert_true(descriptors_is_socket(&dirs, ends[0]));
	assert_false(descriptors_is_socket(&dirs, pipes[0]));
	assert_int_equal(dup2(ends[1], ends[0]), ends[0]); /* another socket, */
	assert_false(descriptors_protocol(&dirs, ends[0], inode, protocol, sizeof(protocol)));
	assert_int_equal(dup2(pipes[0], ends[0]), ends[0]); /* something else, */
	assert_false(descriptors_protocol(&dirs, ends[0], inode, protocol, sizeof(protocol)));
	close(ends[0]); /* or nothing */
	assert_false(descriptors_is_socket(&dirs, ends[0]));
	assert_false(descriptors_protocol(&dirs, ends[0], inode, protocol, sizeof(protocol)));
	close(ends[1]);
	close(pipes[0]);
	close(pipes[1]);
	descriptors_close(&dirs);
}

static bool is_local(uint64_t mount)
{
	return true;
}

/* A driver may take its time to tell how its device is: nobody asks. */
static void test_devices(void **state)
{
	struct descriptors dirs = own_descriptors();
	struct arena *arena = arena_create();
	FILE *file = tmpfile();
	const int null = open("/dev/null", O_RDWR);
	struct descriptor d;

	dirs.is_local = is_local;
	assert_true(file && null >= 0);
	assert_int_equal(lseek(fileno(file), 10, SEEK_SET), 10);
	assert_int_equal(descriptors_read(&dirs, fileno(file), arena, &d), 0);
	assert_true(d.offset == 10 && d.flags);
	assert_int_equal(descriptors_read(&dirs, null, arena, &d), 0);
	assert_string_equal(d.name, "/dev/null");
	assert_true(d.offset == -1 && !d.flags);
	close(null);
	fclose(file);
	arena_destroy(arena);
	descriptors_close(&dirs);
}

/* A thread that has its own: where it went, its process did not. */
static void *go_elsewhere(void *arg)
{
	struct process self;
	char where[256];

	assert_int_equal(unshare(CLONE_FS), 0);
	assert_int_equal(chdir("/proc"), 0);
	assert_int_equal(process_open(getpid(), NULL, &self), 0);
	assert_int_equal(process_working_directory(&self, gettid(), where, sizeof(where)), 5);
	assert_string_equal(where, "/proc");
	assert_true(process_working_directory(&self, getpid(), where, sizeof(where)) > 0);
	assert_string_not_equal(where, "/proc");
	assert_true(process_working_directory(&self, 1, where, sizeof(where)) < 0);
	process_close(&self);
	return arg;
}

static void test_working_directory(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, go_elsewhere, NULL), 0);
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links),	cmocka_unit_test(test_names),	cmocka_unit_test(test_infos),		 cmocka_unit_test(test_damaged_infos),
		cmocka_unit_test(test_watched), cmocka_unit_test(test_kinds_have_names), cmocka_unit_test(test_protocol), cmocka_unit_test(test_devices),
		cmocka_unit_test(test_working_directory),
	};

	return cmocka_run_group_tests_name("descriptors", tests, NULL, NULL);
}
