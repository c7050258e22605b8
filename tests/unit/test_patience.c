/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "target/patience.h"

static const uint64_t ms = 1000000;

static void test_ready(void **state)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	patience_set(0);
	assert_int_equal(patience_wait(fds[0]), 0); /* what has come need not be waited for */
	close(fds[0]);
	close(fds[1]);
}

static void test_runs_out(void **state)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	patience_set(20 * ms);
	assert_int_equal(patience_wait(fds[0]), -ETIMEDOUT);
	assert_int_equal(patience_left(), 0);
	assert_int_equal(patience_wait(fds[0]), -ETIMEDOUT);
	close(fds[0]);
	close(fds[1]);
}

static void test_hurry(void **state)
{
	patience_set(3600 * 1000 * ms);
	patience_hurry();
	assert_int_equal(patience_left(), PATIENCE_DEFAULT_MS * ms);
	patience_set(5 * ms);
	patience_hurry();
	assert_int_equal(patience_left(), 5 * ms);
}

static void test_complaints(void **state)
{
	struct notes notes = {0};

	assert_false(patience_tell(&notes));
	patience_complain("%s did not answer", "a");
	patience_complain("%s did not answer", "b");
	patience_complain("%s did not answer", "a");
	assert_true(patience_tell(&notes));
	assert_int_equal(notes.len, 2);
	assert_string_equal(notes.data[0], "a did not answer");
	notes_deinit(&notes);
}

static void test_interrupt(void **state)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	patience_set(3600 * 1000 * ms);
	assert_false(patience_is_interrupted());
	patience_interrupt();
	assert_int_equal(patience_wait(fds[0]), -ETIMEDOUT);
	assert_true(patience_is_interrupted());
	patience_resume();
	assert_false(patience_is_interrupted());
	patience_set(ms);
	assert_int_equal(patience_wait(fds[0]), -ETIMEDOUT);
	assert_int_equal(write(fds[1], "x", 1), 1);
	patience_set(3600 * 1000 * ms);
	assert_int_equal(patience_wait(fds[0]), 0);
	close(fds[0]);
	close(fds[1]);
}

/* Which descriptor is the next, and so whether one was closed. */
static int next_fd(void)
{
	int fd = dup(STDIN_FILENO);

	close(fd);
	return fd;
}

static void test_reset(void **state)
{
	struct notes notes = {0};
	int before, fds[2];

	patience_reset();
	before = next_fd();
	assert_int_equal(pipe(fds), 0);
	patience_set(ms);
	assert_int_equal(patience_wait(fds[0]), -ETIMEDOUT);
	patience_complain("nobody answers");
	patience_interrupt();
	close(fds[0]);
	close(fds[1]);
	patience_reset();
	assert_int_equal(next_fd(), before);
	assert_false(patience_is_interrupted());
	assert_int_equal(patience_left(), PATIENCE_DEFAULT_MS * ms);
	assert_false(patience_tell(&notes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ready),      cmocka_unit_test(test_runs_out),  cmocka_unit_test(test_hurry),
		cmocka_unit_test(test_complaints), cmocka_unit_test(test_interrupt), cmocka_unit_test(test_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
