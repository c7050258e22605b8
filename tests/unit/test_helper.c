/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/helper.h"
#include "target/patience.h"

#define TASK(function, ...) (struct helper_task){.run = function, .keep = {-1, -1, -1, -1}, __VA_ARGS__}

static const uint64_t long_ns = UINT64_C(60) * 1000000000, short_ns = 50 * 1000000;

static void say_hello(void *arg, uint8_t *window, struct helper_reply *reply)
{
	memcpy(window, arg, 6);
	reply->len = 6;
	reply->st.st_size = 42;
}

static void test_answer(void **state)
{
	struct helper_task task = TASK(say_hello, .arg = "hello", .window = 4096);
	struct helper_reply reply;
	uint8_t *bytes = NULL;

	patience_set(long_ns);
	assert_int_equal(helper_run(&task, &reply, &bytes), 0);
	assert_int_equal(reply.len, 6);
	assert_int_equal(reply.st.st_size, 42);
	assert_int_equal(reply.fd, -1);
	assert_string_equal((char *)bytes, "hello");
	free(bytes);
}

static void refuse(void *arg, uint8_t *window, struct helper_reply *reply)
{
	reply->rc = -ENOENT;
}

static void test_failure(void **state)
{
	struct helper_task task = TASK(refuse);
	struct helper_reply reply;

	patience_set(long_ns);
	assert_int_equal(helper_run(&task, &reply, NULL), -ENOENT);
}

static void hand_over(void *arg, uint8_t *window, struct helper_reply *reply)
{
	reply->fd = memfd_create("given", MFD_CLOEXEC);
	reply->rc = write(reply->fd, "given", 5) == 5 ? 0 : -errno;
}

static void test_descriptor(void **state)
{
	struct helper_task task = TASK(hand_over);
	struct helper_reply reply;
	char text[6] = "";

	patience_set(long_ns);
	assert_int_equal(helper_run(&task, &reply, NULL), 0);
	assert_int_equal(pread(reply.fd, text, 5, 0), 5);
	assert_string_equal(text, "given");
	assert_true(fcntl(reply.fd, F_GETFD) & FD_CLOEXEC);
	close(reply.fd);
}

/* What it is not given it must not keep alive. */
static void look_at_descriptors(void *arg, uint8_t *window, struct helper_reply *reply)
{
	const int *fds = arg;

	reply->rc = fcntl(fds[0], F_GETFD) >= 0 && fcntl(fds[1], F_GETFD) < 0 && fcntl(STDOUT_FILENO, F_GETFD) < 0 ? 0 : -EBADF;
}

static void test_other_descriptors_are_closed(void **state)
{
	int fds[2];
	struct helper_task task = TASK(look_at_descriptors, .arg = fds);
	struct helper_reply reply;

	assert_int_equal(pipe(fds), 0);
	task.keep[0] = fds[0];
	patience_set(long_ns);
	assert_int_equal(helper_run(&task, &reply, NULL), 0);
	close(fds[0]);
	close(fds[1]);
}

static void wait_for_ever(void *arg, uint8_t *window, struct helper_reply *reply)
{
	*(volatile pid_t *)window = getpid();
	for (;;)
		pause();
}

/* The pid of a helper that is given up is not ours to wait for; that it ends shows by its number being free. */
static void test_no_answer(void **state)
{
	struct helper_task task = TASK(wait_for_ever, .window = 4096);
	struct helper_reply reply;
	uint8_t *bytes = NULL;

	patience_set(short_ns);
	assert_int_equal(helper_run(&task, &reply, &bytes), -ETIMEDOUT);
	assert_null(bytes);
	assert_int_equal(patience_left(), 0);
	assert_int_equal(helper_run(&task, &reply, &bytes), -ETIMEDOUT); /* at once: nothing is left to wait */
	while (waitpid(-1, NULL, __WALL) > 0) /* it was killed: else this would wait for ever */
		continue;
	assert_int_equal(errno, ECHILD);
}

static void die(void *arg, uint8_t *window, struct helper_reply *reply)
{
	_exit(1);
}

static void test_dead_helper(void **state)
{
	struct helper_task task = TASK(die);
	struct helper_reply reply;

	patience_set(long_ns);
	assert_int_equal(helper_run(&task, &reply, NULL), -EIO);
}

static void interrupt(int sig)
{
	patience_interrupt();
}

/* Last, since nothing is waited for afterwards. */
static void test_interrupt(void **state)
{
	struct helper_task task = TASK(wait_for_ever, .window = 4096);
	struct helper_reply reply;
	uint8_t *bytes = NULL;

	signal(SIGALRM, interrupt);
	patience_set(long_ns);
	ualarm(50000, 0);
	assert_int_equal(helper_run(&task, &reply, &bytes), -ETIMEDOUT);
	assert_true(patience_is_interrupted());
	assert_int_equal(patience_left(), 0);
	while (waitpid(-1, NULL, __WALL) > 0)
		continue;
}

static void test_all_are_reaped(void **state)
{
	struct helper_task task = TASK(refuse);
	struct helper_reply reply;

	patience_resume();
	patience_set(long_ns);
	for (int i = 0; i < 10; i++)
		assert_int_equal(helper_run(&task, &reply, NULL), -ENOENT);
	helper_reap_all();
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_failure),
		cmocka_unit_test(test_descriptor),
		cmocka_unit_test(test_other_descriptors_are_closed),
		cmocka_unit_test(test_no_answer),
		cmocka_unit_test(test_dead_helper),
		cmocka_unit_test(test_interrupt),
		cmocka_unit_test(test_all_are_reaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
