/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <sys/socket.h>
#include <sys/syscall.h>

#include "capture/restart.h"

static bool silent(const struct process *p, int64_t nr, uint64_t arg0)
{
	struct snap_syscall call = {.state = SYSCALL_IN, .nr = nr, .args = {arg0}};

	return restart_is_silent(p, p->pid, arch_host(), &call);
}

static void test_known_calls(void **state)
{
	struct snap_syscall none = {.state = SYSCALL_NONE};
	struct process p;

	assert_int_equal(process_open(getpid(), NULL, &p), 0);
	assert_true(silent(&p, SYS_futex, 0));
	assert_true(silent(&p, SYS_ppoll, 0));
	assert_true(silent(&p, SYS_clock_nanosleep, 0));
	assert_false(silent(&p, SYS_epoll_pwait, 0));
	assert_false(silent(&p, SYS_semtimedop, 0));
	assert_false(silent(&p, SYS_rt_sigtimedwait, 0));
	assert_false(silent(&p, SYS_recvfrom, 0));
	assert_false(silent(&p, 9999, 0));
	assert_false(restart_is_silent(&p, p.pid, arch_host(), &none));
	process_close(&p);
}

static void test_reads_depend_on_the_file(void **state)
{
	int fds[2], sockets[2];
	struct process p;

	assert_int_equal(process_open(getpid(), NULL, &p), 0);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	assert_true(silent(&p, SYS_read, (uint64_t)fds[0]));
	assert_false(silent(&p, SYS_read, (uint64_t)sockets[0]));
	assert_false(silent(&p, SYS_read, 12345));
	close(fds[0]);
	close(fds[1]);
	close(sockets[0]);
	close(sockets[1]);
	process_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_calls),
		cmocka_unit_test(test_reads_depend_on_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
