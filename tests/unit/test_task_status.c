/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <errno.h>

#include "proc/task_status.h"

static struct task_status read_text(const char *text, size_t len, int want)
{
	struct task_status status = {0};
	struct scratch s;
	int fd;

	scratch_init(&s);
	scratch_write(&s, "status", text, len);
	fd = open(s.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(task_status_read(fd, "status", &status), want);
	close(fd);
	scratch_deinit(&s);
	return status;
}

static const char before[] = "Name:\ta\\nb\\\\c\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t12\nNgid:\t0\nPid:\t13\n"
			     "PPid:\t1\nTracerPid:\t99\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nFDSize:\t64\nGroups:\t";
static const char after[] = "\nNStgid:\t12\t1\nNSpid:\t13\t4\t2\nCapInh:\t0000000000000000\n"
			    "CapPrm:\t000001ffffffffff\nCapEff:\t0000000000000021\n"
			    "voluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";

static void check_all(const struct task_status *status)
{
	assert_string_equal(status->name, "a\nb\\c");
	assert_int_equal(status->state, 'S');
	assert_int_equal(status->tgid, 12);
	assert_int_equal(status->tracer, 99);
	assert_int_equal(status->uids[TASK_ID_REAL], 1);
	assert_int_equal(status->uids[TASK_ID_SAVED], 3);
	assert_int_equal(status->gids[TASK_ID_EFFECTIVE], 6);
	assert_int_equal(status->nspids, 3);
	assert_int_equal(status->ns_pid, 2);
	assert_int_equal(status->permitted, 0x1ffffffffff);
	assert_int_equal(status->effective, 0x21);
	assert_true(status->has_switches);
	assert_int_equal(status->nvcsw, 150);
	assert_int_equal(status->nivcsw, 545);
}

/* What comes behind the groups is found, wherever the pieces end in which the file is read. */
static void test_any_number_of_groups(void **state)
{
	static const size_t lengths[] = {0, 1, 3600, 4095, 4096, 4097, 8192, 600000};
	char *text = malloc(sizeof(before) + sizeof(after) + 610000);

	assert_non_null(text);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (size_t more = 0; more < 300; more += lengths[i] ? 7 : 300) {
			size_t groups = lengths[i] + more, len = strlen(before);
			struct task_status status;

			memcpy(text, before, len);
			memset(text + len, '7', groups);
			memcpy(text + len + groups, after, sizeof(after));
			status = read_text(text, len + groups + strlen(after), 0);
			check_all(&status);
		}
	free(text);
}

/* A name may look like another field: a newline in it is escaped. */
static void test_name_like_a_field(void **state)
{
	static const char text[] = "Name:\t\\nState:\\tZ\nState:\tR (running)\nTgid:\t5\n";
	struct task_status status = read_text(text, strlen(text), 0);

	assert_int_equal(status.state, 'R');
	assert_false(status.has_switches);
	assert_int_equal(status.nspids, 0);
}

static void test_nothing(void **state)
{
	read_text("", 0, -ESRCH);
	read_text("State", 5, -ESRCH);
}

static void test_self(void **state)
{
	struct task_status status;

	assert_int_equal(task_status_read(AT_FDCWD, "/proc/self/status", &status), 0);
	assert_int_equal(status.tgid, getpid());
	assert_int_equal(status.uids[TASK_ID_EFFECTIVE], geteuid());
	assert_int_equal(task_status_read(AT_FDCWD, "/proc/self/no-such-file", &status), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_number_of_groups),
		cmocka_unit_test(test_name_like_a_field),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_self),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
