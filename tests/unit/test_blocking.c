/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "capture/blocking.h"

/* A thread that is blocked in the call of this name; false: the architecture has none. */
static bool block_in(const struct arch *arch, const char *name, struct snap_thread *out)
{
	*out = (struct snap_thread){.state = 'S', .status = THREAD_CAPTURED, .syscall = {.state = SYSCALL_IN}};
	for (unsigned i = 0; i < arch->nsyscalls; i++)
		if (arch->syscalls[i].name && strcmp(arch->syscalls[i].name, name) == 0) {
			out->syscall.nr = i;
			return true;
		}
	return false;
}

/* The table is searched by halves: one of a wrong place would not be found. */
static void test_each_is_found(void **state)
{
	static const char *const names[] = {
		"_newselect", "accept", "accept4", "access", "chdir", "connect", "copy_file_range", "creat", "epoll_pwait", "epoll_pwait2", "epoll_wait",
		"faccessat", "faccessat2", "fallocate", "fchmodat", "fchownat", "fdatasync", "fgetxattr", "fstat", "fstat64", "fstatat64", "fstatfs", "fsync",
		"ftruncate", "getdents", "getdents64", "getxattr", "io_uring_enter", "ioctl", "lstat", "lstat64", "mkdir", "mkdirat", "mq_timedreceive",
		"mq_timedsend", "newfstatat", "open", "openat", "openat2", "poll", "ppoll", "ppoll_time64", "pread64", "preadv", "preadv2", "pselect6",
		"pselect6_time64", "pwrite64", "pwritev", "pwritev2", "read", "readlink", "readlinkat", "readv", "recv", "recvfrom", "recvmmsg", "recvmsg",
		"rename", "renameat", "renameat2", "rmdir", "select", "send", "sendfile", "sendfile64", "sendmmsg", "sendmsg", "sendto", "splice", "stat",
		"stat64", "statfs", "statx", "sync_file_range", "syncfs", "tee", "truncate", "unlink", "unlinkat", "utimensat", "vmsplice", "write", "writev",
	};
	static const struct arch *const all[] = {&arch_x86_64, &arch_aarch64, &arch_i386, &arch_arm};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		unsigned known = 0;

		for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
			struct snap_thread t;
			const struct blocking_call *call;

			if (!block_in(all[k], names[i], &t))
				continue;
			call = blocking_call_of(all[k], &t);
			assert_non_null(call);
			assert_string_equal(call->name, names[i]);
			known++;
		}
		assert_true(known > 0);
	}
}

static void test_who_is_not_blocked(void **state)
{
	struct snap_thread t;

	assert_true(block_in(&arch_x86_64, "read", &t));
	assert_non_null(blocking_call_of(&arch_x86_64, &t));
	t.state = 'R';
	assert_null(blocking_call_of(&arch_x86_64, &t));
	t.state = 'S';
	t.syscall.state = SYSCALL_NONE;
	assert_null(blocking_call_of(&arch_x86_64, &t));
	t.syscall.state = SYSCALL_IN;
	t.status = THREAD_ZOMBIE;
	assert_null(blocking_call_of(&arch_x86_64, &t));
	assert_true(block_in(&arch_x86_64, "futex", &t));
	assert_null(blocking_call_of(&arch_x86_64, &t));
	t.syscall.nr = -1;
	assert_null(blocking_call_of(&arch_x86_64, &t));
}

/* A poll() that goes on after it was interrupted is another call to the kernel. */
static void test_restarted(void **state)
{
	const char *stack[] = {"do_sys_poll+0x1/0x2", NULL, "do_restart_poll+0x4/0x9"};
	struct snap_thread t;

	assert_true(block_in(&arch_x86_64, "restart_syscall", &t));
	assert_null(blocking_call_of(&arch_x86_64, &t));
	t.kernel_text = stack;
	t.nkernel = 3;
	assert_non_null(blocking_call_of(&arch_x86_64, &t));
	assert_string_equal(blocking_call_of(&arch_x86_64, &t)->name, "poll");
	t.nkernel = 2;
	assert_null(blocking_call_of(&arch_x86_64, &t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_is_found),
		cmocka_unit_test(test_who_is_not_blocked),
		cmocka_unit_test(test_restarted),
	};

	return cmocka_run_group_tests_name("blocking", tests, NULL, NULL);
}
