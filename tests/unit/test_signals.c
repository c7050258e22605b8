/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/signals.h"

static volatile sig_atomic_t theirs, ours;

static void on_theirs(int sig)
{
	theirs++;
}

static void on_ours(int sig, siginfo_t *info, void *context);

static struct signal_loan loan = SIGNAL_LOAN(SIGUSR1, on_ours);

static void on_ours(int sig, siginfo_t *info, void *context)
{
	ours++;
	signal_loan_pass_on(&loan, info, context);
}

static void (*current(void))(int)
{
	struct sigaction now;

	assert_int_equal(sigaction(SIGUSR1, NULL, &now), 0);
	return now.sa_handler;
}

/* The last one done puts back what was there. */
static void test_put_back(void **state)
{
	signal(SIGUSR1, on_theirs);
	theirs = ours = 0;
	assert_int_equal(signal_loan_take(&loan), 0);
	assert_int_equal(signal_loan_take(&loan), 0);
	signal_loan_return(&loan);
	raise(SIGUSR1);
	assert_int_equal(ours, 1);
	assert_int_equal(theirs, 1);
	signal_loan_return(&loan);
	assert_ptr_equal(current(), on_theirs);
	raise(SIGUSR1);
	assert_int_equal(ours, 1);
	assert_int_equal(theirs, 2);
}

/* Who has set a handler meanwhile keeps it, but while somebody needs ours. */
static void test_others_meanwhile(void **state)
{
	signal(SIGUSR1, SIG_IGN);
	theirs = ours = 0;
	assert_int_equal(signal_loan_take(&loan), 0);
	signal(SIGUSR1, on_theirs);
	assert_int_equal(signal_loan_take(&loan), 0);
	raise(SIGUSR1);
	assert_int_equal(ours, 1);
	assert_int_equal(theirs, 1);
	signal_loan_return(&loan);
	signal(SIGUSR1, SIG_IGN);
	signal_loan_return(&loan);
	assert_ptr_equal(current(), SIG_IGN);
}

/* A signal whose action was the default one still ends the program; one that was ignored does not. */
static void test_passed_on(void **state)
{
	void (*before[])(int) = {SIG_DFL, SIG_IGN};

	for (int i = 0; i < 2; i++) {
		int status;
		pid_t child = fork();

		if (child == 0) {
			signal(SIGUSR1, before[i]);
			signal_loan_take(&loan);
			raise(SIGUSR1);
			_exit(7);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		if (i == 0)
			assert_int_equal(WTERMSIG(status), SIGUSR1);
		else
			assert_int_equal(WEXITSTATUS(status), 7);
	}
}

static void *take_and_return(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		if (signal_loan_take(&loan) < 0)
			return "cannot take it";
		signal_loan_return(&loan);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[8];
	void *wrong;

	signal(SIGUSR1, on_theirs);
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_return, NULL), 0);
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	assert_ptr_equal(current(), on_theirs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put_back),
		cmocka_unit_test(test_others_meanwhile),
		cmocka_unit_test(test_passed_on),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
