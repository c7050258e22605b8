/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/child.h"

static struct child start(char *name)
{
	char *command[] = {name, NULL};
	struct child child = CHILD_NONE;
	sigset_t none;

	sigemptyset(&none);
	assert_int_equal(child_start(&child, command, &none, NULL), 0);
	assert_true(child.pid > 0);
	return child;
}

static void end(struct child *child)
{
	child_terminate(child);
	child_wait(child);
	assert_true(child_has_ended(child));
	assert_int_equal(child->go, -1);
	assert_int_equal(child->failed, -1);
}

/* Waits for its end, and leaves it to be waited for: minus the signal that has ended it, if one has. */
static int exit_code(pid_t pid)
{
	siginfo_t info;

	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	return info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
}

static void test_released(void **state)
{
	struct child child = start("true");

	assert_int_equal(child_release(&child, "true", NULL), 0);
	assert_int_equal(exit_code(child.pid), 0);
	end(&child);
}

static void test_not_there(void **state)
{
	struct child child = start("/no/such/program");
	struct err err;

	assert_int_equal(child_release(&child, "/no/such/program", &err), -ENOENT);
	assert_string_equal(err.msg, "/no/such/program: No such file or directory");
	assert_int_equal(exit_code(child.pid), 127);
	end(&child);
}

/* By somebody who does not know what it is for. */
static void test_killed_before_it_is_released(void **state)
{
	struct child child = start("true");
	struct err err;

	kill(child.pid, SIGKILL);
	assert_int_equal(exit_code(child.pid), -SIGKILL);
	assert_int_equal(child_release(&child, "true", &err), -ECHILD);
	assert_string_equal(err.msg, "true ended before it was started");
	end(&child);
}

/* A recording that could not begin: the command is not executed. */
static void test_never_released(void **state)
{
	struct child child = start("true");
	int code;

	close(child.go);
	child.go = -1;
	code = exit_code(child.pid);
	end(&child);
	assert_int_equal(code, 126);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_released),
		cmocka_unit_test(test_not_there),
		cmocka_unit_test(test_killed_before_it_is_released),
		cmocka_unit_test(test_never_released),
	};

	return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
