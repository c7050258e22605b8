/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/debug.h"

static void test_names(void **state)
{
	char buf[32];

	assert_string_equal(debug_errno_name(EPERM, buf), "EPERM");
	assert_string_equal(debug_errno_name(ETIMEDOUT, buf), "ETIMEDOUT");
	assert_string_equal(debug_errno_name(9999, buf), "errno 9999");
	assert_string_equal(debug_errno_name(-1, buf), "errno -1");
}

/* What was written to the standard error. */
static size_t say(int rc, const char *words, char *out, size_t room)
{
	int pipes[2], before = dup(STDERR_FILENO);
	ssize_t got;

	assert_int_equal(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
	dup2(pipes[1], STDERR_FILENO);
	debug_say(rc, "%s", words);
	dup2(before, STDERR_FILENO);
	got = read(pipes[0], out, room - 1);
	close(pipes[0]);
	close(pipes[1]);
	close(before);
	out[got > 0 ? got : 0] = '\0';
	return got > 0 ? (size_t)got : 0;
}

static void test_lines(void **state)
{
	char line[2048], words[3000];

	assert_int_equal(say(0, "not yet", line, sizeof(line)), 0);
	debug_begin();
	say(0, "it works", line, sizeof(line));
	assert_non_null(strstr(line, " ms] it works\n"));
	say(-EACCES, "opening x", line, sizeof(line));
	assert_non_null(strstr(line, " ms] opening x: EACCES\n"));
	say(0, "a\033[31mb\nc", line, sizeof(line));
	assert_non_null(strstr(line, " ms] a?[31mb?c\n"));
	memset(words, 'x', sizeof(words) - 1);
	words[sizeof(words) - 1] = '\0';
	assert_true(say(-EIO, words, line, sizeof(line)) < 1100);
	assert_int_equal(line[strlen(line) - 1], '\n');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
