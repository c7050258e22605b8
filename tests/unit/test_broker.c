/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "privilege/broker.h"
#include "target/file_errands.h"
#include "target/rootfile.h"

/* What the parser leaves for the test. */
struct result {
	int rc;
	int broker_there;
	char text[64];
};

static struct result *result; /* shared */
static const char *wanted;    /* path */
static int wanted_root;

static int set_up(void **state)
{
	result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return result == MAP_FAILED ? -1 : 0;
}

/* Answers with the text in capitals, by a descriptor. */
static void serve_echo(void *ctx, const struct errand *errand, struct errand_reply *reply)
{
	int fds[2];

	if (errand->number[0] != 7 || pipe2(fds, O_CLOEXEC) < 0)
		return;
	assert_int_equal(write(fds[1], errand->data, errand->len), errand->len);
	close(fds[1]);
	reply->rc = 0;
	reply->fd = fds[0];
	errand_answer(reply, "echo");
}

static void ask_for_echo(void *arg)
{
	struct errand_reply reply;
	struct errand errand;

	result->broker_there = broker_is_there();
	errand_init(&errand, ERRAND_CACHE, 7, 0, "hello");
	result->rc = broker_ask(&errand, &reply);
	if (reply.fd >= 0 && read(reply.fd, result->text, sizeof(result->text) - 1) == 5)
		strcat(result->text, reply.data);
}

static void test_errand(void **state)
{
	struct parser_job job = {.work = ask_for_echo, .services[ERRAND_CACHE] = {.serve = serve_echo}};

	*result = (struct result){0};
	assert_int_equal(parser_run(&job, NULL), 0);
	assert_false(broker_is_there());
	assert_true(result->broker_there);
	assert_int_equal(result->rc, 0);
	assert_string_equal(result->text, "helloecho");
}

static void test_nobody_serves_it(void **state)
{
	struct parser_job job = {.work = ask_for_echo};

	*result = (struct result){0};
	assert_int_equal(parser_run(&job, NULL), 0);
	assert_int_equal(result->rc, -EPERM);
}

static void crash(void *arg)
{
	raise(SIGKILL);
}

static void test_death(void **state)
{
	struct parser_job job = {.work = crash};
	struct err err = {0};

	assert_int_equal(parser_run(&job, &err), -EOWNERDEAD);
	assert_non_null(strstr(err.msg, "signal 9"));
}

/* What it had open is not open for the parser, but files to parse are; numbers stay taken. */
static int left_open[4];

static void look_at_descriptors(void *arg)
{
	char byte;

	for (int i = 0; i < 4; i++)
		result->rc |= (pread(left_open[i], &byte, 1, 0) == 1) << i;
	for (int i = 0; i < 4; i++)
		result->broker_there |= (fcntl(left_open[i], F_GETFD) >= 0) << i;
}

static void test_descriptors(void **state)
{
	struct parser_job job = {.work = look_at_descriptors};

	*result = (struct result){0};
	left_open[0] = open("/proc/self/exe", O_RDONLY);  /* a file to parse */
	left_open[1] = open("/proc/self/maps", O_RDONLY); /* of a process */
	left_open[2] = open("/", O_RDONLY | O_DIRECTORY);
	left_open[3] = open("/proc/self/exe", O_RDONLY | O_PATH);
	assert_int_equal(parser_run(&job, NULL), 0);
	assert_int_equal(result->rc, 1 << 0);
	assert_int_equal(result->broker_there, 15);
	for (int i = 0; i < 4; i++)
		close(left_open[i]);
}

/* Files */

static void ask_for_file(void *arg)
{
	struct stat st;
	int fd = rootfile_open(wanted_root, wanted, &st);
	char magic[4] = "";

	result->rc = fd < 0 ? fd : 0;
	if (fd >= 0 && read(fd, magic, 4) == 4 && st.st_size > 0)
		memcpy(result->text, magic, 4);
}

static int rc_of(const char *path, int root_fd)
{
	const struct file_scope scope = {0};
	struct parser_job job = {.work = ask_for_file};

	*result = (struct result){0};
	wanted = path;
	wanted_root = root_fd;
	file_errands_add(&job, &scope);
	assert_int_equal(parser_run(&job, NULL), 0);
	return result->rc;
}

static void test_elf_file(void **state)
{
	char self[256];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(len > 0);
	self[len] = '\0';
	assert_int_equal(rc_of(self, -1), 0);
	assert_memory_equal(result->text, "\177ELF", 4);
	assert_int_equal(rc_of("/etc/os-release", -1), 0);
	assert_int_equal(rc_of("/nonexistent", -1), -ENOENT);
}

/* What a parser has no business with, though root can read it. */
static void test_other_files(void **state)
{
	int dir = open("/proc/self", O_PATH | O_DIRECTORY);

	assert_int_equal(rc_of("/etc/passwd", -1), -ENOEXEC);
	assert_true(rc_of("/proc/kcore", -1) < 0);
	assert_true(rc_of("/proc/self/environ", -1) < 0);
	assert_true(rc_of("/proc/self/mem", -1) < 0);
	assert_int_equal(rc_of("exe", dir), -EPERM); /* no root of a process that it was made for */
	close(dir);
}

static void ask_for_path(void *arg)
{
	char *path = rootfile_real_path("/proc/self/exe");
	struct stat st;

	snprintf(result->text, sizeof(result->text), "%.60s", path ? path : "");
	result->rc = rootfile_stat(-1, "/etc/passwd", &st) == 0 && S_ISREG(st.st_mode);
}

static void test_paths(void **state)
{
	const struct file_scope scope = {0};
	struct parser_job job = {.work = ask_for_path};

	*result = (struct result){0};
	file_errands_add(&job, &scope);
	assert_int_equal(parser_run(&job, NULL), 0);
	assert_int_equal(result->rc, 1);
	assert_int_equal(result->text[0], '/');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errand),
		cmocka_unit_test(test_nobody_serves_it),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_elf_file),
		cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_paths),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
