/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/foreground.h"

static bool may_go_first(void)
{
	struct foreground f = {0};
	bool began;

	foreground_begin(&f);
	began = f.begun;
	foreground_end(&f);
	return began;
}

static void test_goes_first_and_comes_back(void **state)
{
	const int before = sched_getscheduler(0);
	struct foreground f = {0};

	if (!may_go_first()) {
		print_message("skipped: no real-time priority here\n");
		skip();
	}
	foreground_begin(&f);
	assert_int_equal(sched_getscheduler(0), SCHED_FIFO | SCHED_RESET_ON_FORK);
	foreground_begin(&f); /* what it was before is not forgotten */
	foreground_end(&f);
	assert_int_equal(sched_getscheduler(0), before);
	foreground_end(&f);
	assert_int_equal(sched_getscheduler(0), before);
}

/* Who is real-time already keeps its own priority. */
static void test_leaves_others_as_they_are(void **state)
{
	const struct sched_param own = {.sched_priority = 3}, none = {0};
	const int before = sched_getscheduler(0);
	struct foreground f = {0};
	struct sched_param now;

	if (sched_setscheduler(0, SCHED_RR, &own) < 0) {
		print_message("skipped: no real-time priority here\n");
		skip();
	}
	foreground_begin(&f);
	sched_getparam(0, &now);
	foreground_end(&f);
	assert_int_equal(sched_getscheduler(0), SCHED_RR);
	sched_setscheduler(0, before, &none);
	assert_int_equal(now.sched_priority, 3);
	assert_false(f.begun);
}

/* In a child: it cannot be undone. 0: as it should be; 1: it is not; 2: cannot be tried here. */
static int as_ordinary_user(rlim_t allowed)
{
	const struct rlimit limit = {allowed, allowed};
	struct foreground f = {0};
	bool began;

	if (setrlimit(RLIMIT_RTPRIO, &limit) < 0 || setuid(65534) < 0)
		return 2;
	foreground_begin(&f);
	began = f.begun;
	foreground_end(&f);
	if (began != (allowed > 0))
		return allowed ? 2 : 1; /* the control group may have no real-time budget */
	return (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) != SCHED_OTHER;
}

static void check_ordinary_user(rlim_t allowed)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(as_ordinary_user(allowed));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_without_the_right_nothing_happens(void **state)
{
	check_ordinary_user(0);
}

static void test_by_a_limit_alone_it_comes_back(void **state)
{
	check_ordinary_user(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goes_first_and_comes_back),
		cmocka_unit_test(test_leaves_others_as_they_are),
		cmocka_unit_test(test_without_the_right_nothing_happens),
		cmocka_unit_test(test_by_a_limit_alone_it_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
