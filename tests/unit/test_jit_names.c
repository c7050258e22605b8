/* SPDX-License-Identifier: MIT */
#include "child.h"
#include "cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/process.h"
#include "symbol/jit_names.h"

enum { SOMEBODY = 54321 }; /* a user who owns nothing here */

struct fixture {
	pid_t pid;
	char map[64];  /* /tmp/perf-PID.map of the child */
	char dump[64]; /* /tmp/jit-PID.dump, which it has mapped if it is there */
	struct snapshot *snap;
	struct modules *modules;
	struct jit_names *names;
	struct calls calls;
};

static void write_file(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	close(fd);
}

static void write_map(const struct fixture *f, const char *text)
{
	write_file(f->map, text, strlen(text));
}

/* A header and the record of one function at [0x1000, 0x1100). */
static void write_dump(const struct fixture *f)
{
	static const char name[] = "dumped";
	const struct {
		uint32_t magic, version, size, machine, pad, pid;
		uint64_t time, flags;
		uint32_t id, record_size;
		uint64_t record_time;
		uint32_t record_pid, tid;
		uint64_t vma, address, code_size, index;
		char name[8];
	} dump = {
		.magic = 0x4a695444,
		.version = 1,
		.size = 40,
		.record_size = 16 + 40 + 8,
		.vma = 0x1000,
		.address = 0x1000,
		.code_size = 0x100,
		.name = "dumped",
	};

	assert_true(sizeof(name) <= sizeof(dump.name) && sizeof(dump) == 40 + 16 + 40 + 8);
	write_file(f->dump, &dump, sizeof(dump));
}

/* Maps the dump if the parent has made one once it is told to: standard input is its pipe. */
static int go[2], done[2];

static void body(void)
{
	char path[64], byte;
	int fd;

	if (read(go[0], &byte, 1) != 1)
		_exit(1);
	snprintf(path, sizeof(path), "/tmp/jit-%d.dump", (int)getpid());
	fd = open(path, O_RDONLY);
	if (fd >= 0 && mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		_exit(1);
	if (write(done[1], "", 1) != 1)
		_exit(1);
	child_sleeps();
}

static void prepare(struct fixture *f)
{
	*f = (struct fixture){0};
	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(done), 0);
	f->pid = child_start(body);
	snprintf(f->map, sizeof(f->map), "/tmp/perf-%d.map", (int)f->pid);
	snprintf(f->dump, sizeof(f->dump), "/tmp/jit-%d.dump", (int)f->pid);
	unlink(f->map); /* an earlier process may have left one */
	unlink(f->dump);
}

static void start(struct fixture *f, bool replayed)
{
	struct process process;
	char byte;

	assert_int_equal(write(go[1], "", 1), 1);
	assert_int_equal(read(done[0], &byte, 1), 1);
	f->snap = snapshot_create(f->pid, arch_host());
	assert_int_equal(process_open(f->pid, NULL, &process), 0);
	assert_int_equal(process_maps(&process, f->snap->arena, NULL, &f->snap->maps), 0);
	process_close(&process);
	f->snap->replayed = replayed;
	assert_int_equal(modules_create(f->snap, false, NULL, &f->modules), 0);
	f->names = jit_names_create(f->modules);
	assert_non_null(f->names);
}

static void finish(struct fixture *f)
{
	jit_names_destroy(f->names);
	modules_destroy(f->modules);
	snapshot_destroy(f->snap);
	vec_deinit(&f->calls);
	child_end(f->pid);
	unlink(f->map);
	unlink(f->dump);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(done[i]);
	}
}

static const char *name_at(struct fixture *f, uint64_t address)
{
	return jit_names_find(f->names, address, &f->calls) ? f->calls.data[0].linkage : NULL;
}

static void test_perf_map(void **state)
{
	struct fixture f;

	prepare(&f);
	write_map(&f, "1000 100 mapped\n");
	start(&f, false);
	assert_string_equal(name_at(&f, 0x1080), "mapped");
	assert_int_equal(f.calls.data[0].source, SYMBOL_PERF_MAP);
	assert_null(name_at(&f, 0x2000));
	assert_int_equal(f.calls.len, 0);
	assert_int_equal(f.snap->notes.len, 0);
	finish(&f);
}

static void test_jitdump_comes_first(void **state)
{
	struct fixture f;

	prepare(&f);
	write_map(&f, "1000 100 mapped\n2000 100 only here\n");
	write_dump(&f);
	start(&f, false);
	assert_string_equal(name_at(&f, 0x1080), "dumped");
	assert_int_equal(f.calls.data[0].source, SYMBOL_JITDUMP);
	assert_string_equal(name_at(&f, 0x2000), "only here");
	assert_int_equal(f.snap->notes.len, 0);
	finish(&f);
}

static void test_nothing(void **state)
{
	struct fixture f;

	prepare(&f);
	start(&f, false);
	assert_null(name_at(&f, 0x1000));
	assert_int_equal(f.snap->notes.len, 0); /* that is normal */
	finish(&f);
	jit_names_destroy(NULL);
}

/* The files of this machine are not those of a process that was recorded, maybe elsewhere. */
static void test_replayed(void **state)
{
	struct fixture f;

	prepare(&f);
	write_map(&f, "1000 100 mapped\n");
	write_dump(&f);
	start(&f, true);
	assert_null(name_at(&f, 0x1000));
	finish(&f);
}

static void expect_one_note(struct fixture *f, const char *text)
{
	assert_null(name_at(f, 0x1000));
	assert_null(name_at(f, 0x1001));
	assert_int_equal(f->snap->notes.len, 1);
	if (!strstr(f->snap->notes.data[0], text))
		fail_msg("'%s' is not in '%s'", text, f->snap->notes.data[0]);
}

static void test_somebody_elses_file(void **state)
{
	struct fixture f;

	if (getuid() != 0) {
		print_message("skipped: only root can give files away\n");
		skip();
	}
	prepare(&f);
	write_map(&f, "1000 100 forged\n");
	assert_int_equal(chown(f.map, SOMEBODY, SOMEBODY), 0);
	start(&f, false);
	expect_one_note(&f, "belongs to user 54321");
	finish(&f);

	prepare(&f);
	write_dump(&f);
	assert_int_equal(chown(f.dump, SOMEBODY, SOMEBODY), 0);
	start(&f, false);
	expect_one_note(&f, "belongs to user 54321");
	finish(&f);
}

static void become_somebody(void)
{
	if (setresgid(SOMEBODY, SOMEBODY, SOMEBODY) < 0 || setresuid(SOMEBODY, SOMEBODY, SOMEBODY) < 0)
		_exit(1);
	body();
}

/* What belongs to the owner of the process is as good as the process. */
static void test_the_owners_file(void **state)
{
	struct fixture f;

	if (getuid() != 0) {
		print_message("skipped: only root can give files away\n");
		skip();
	}
	prepare(&f);
	child_end(f.pid);
	f.pid = child_start(become_somebody);
	snprintf(f.map, sizeof(f.map), "/tmp/perf-%d.map", (int)f.pid);
	unlink(f.map);
	write_map(&f, "1000 100 mapped\n");
	assert_int_equal(chown(f.map, SOMEBODY, SOMEBODY), 0);
	start(&f, false);
	assert_string_equal(name_at(&f, 0x1080), "mapped");
	finish(&f);
}

/* Written before the process began: by another one that had its number. */
static void test_stale_map(void **state)
{
	const struct timespec times[] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct fixture f;

	prepare(&f);
	write_map(&f, "1000 100 stale\n");
	assert_int_equal(utimensat(AT_FDCWD, f.map, times, 0), 0);
	start(&f, false);
	expect_one_note(&f, "before the process began");
	finish(&f);
}

static void test_no_regular_file(void **state)
{
	struct fixture f;

	prepare(&f);
	assert_int_equal(mkfifo(f.map, 0644), 0);
	start(&f, false);
	expect_one_note(&f, "not a regular file");
	finish(&f);
}

static void test_damaged_dump(void **state)
{
	struct fixture f;

	prepare(&f);
	write_file(f.dump, "this is something else", 22);
	start(&f, false);
	expect_one_note(&f, "not a jitdump file");
	assert_non_null(strstr(f.snap->notes.data[0], f.dump));
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_perf_map),
		cmocka_unit_test(test_jitdump_comes_first),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_replayed),
		cmocka_unit_test(test_somebody_elses_file),
		cmocka_unit_test(test_the_owners_file),
		cmocka_unit_test(test_stale_map),
		cmocka_unit_test(test_no_regular_file),
		cmocka_unit_test(test_damaged_dump),
	};

	return cmocka_run_group_tests_name("jit_names", tests, NULL, NULL);
}
