/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "offcpu/cause.h"

enum { MOST_FRAMES = 6 };

struct expected {
	const char *kernel[MOST_FRAMES]; /* innermost first */
	const char *user[MOST_FRAMES];
	enum offcpu_cause cause;
	char state; /* 0: S */
};

static struct stack name(struct frame frames[MOST_FRAMES], const char *const names[MOST_FRAMES])
{
	struct stack stack = {.data = frames};

	for (; stack.len < MOST_FRAMES && names[stack.len]; stack.len++)
		frames[stack.len] = (struct frame){.symbol = names[stack.len]};
	return stack;
}

static enum offcpu_cause cause_of(const struct expected *expected)
{
	struct frame kernel_frames[MOST_FRAMES], user_frames[MOST_FRAMES];
	const struct stack kernel = name(kernel_frames, expected->kernel), user = name(user_frames, expected->user);
	const struct offcpu_row row = {
		.state = expected->state ? expected->state : 'S',
		.kernel = kernel.len ? &kernel : NULL,
		.user = user.len ? &user : NULL,
	};

	return offcpu_cause_of(&row);
}

static void check(const struct expected *expected, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (cause_of(&expected[i]) != expected[i].cause)
			fail_msg("%s: %d", expected[i].kernel[0] ? expected[i].kernel[0] : "no kernel stack",
				 cause_of(&expected[i]));
}

static void test_kernel_functions(void **state)
{
	static const struct expected expected[] = {
		{.kernel = {"do_nanosleep", "hrtimer_nanosleep"}, .cause = OFFCPU_CAUSE_TIMER},
		{.kernel = {"do_wait", "kernel_wait4"}, .cause = OFFCPU_CAUSE_CHILD},
		{.kernel = {"do_wait_for_common", "wait_for_completion_state", "kernel_clone"},
		 .cause = OFFCPU_CAUSE_CHILD},
		{.kernel = {"anon_pipe_read", "vfs_read"}, .cause = OFFCPU_CAUSE_PIPE},
		{.kernel = {"wait_woken", "sk_wait_data", "tcp_recvmsg_locked"}, .cause = OFFCPU_CAUSE_NETWORK},
		{.kernel = {"__skb_wait_for_more_packets", "unix_dgram_recvmsg"}, .cause = OFFCPU_CAUSE_PIPE},
		{.kernel = {"ep_poll.constprop.0", "do_epoll_wait"}, .cause = OFFCPU_CAUSE_EVENTS},
		{.kernel = {"wait_woken", "n_tty_read"}, .cause = OFFCPU_CAUSE_TERMINAL},
		{.kernel = {"do_sigtimedwait.isra.0"}, .cause = OFFCPU_CAUSE_SIGNAL},
		{.kernel = {"io_schedule", "folio_wait_bit_common", "ext4_sync_file"},
		 .cause = OFFCPU_CAUSE_DISK,
		 .state = 'D'},
		{.kernel = {"locks_lock_inode_wait", "__do_sys_flock"}, .cause = OFFCPU_CAUSE_LOCK},
		{.kernel = {"something_new", "do_syscall_64"}, .cause = OFFCPU_CAUSE_OTHER},
		{.kernel = {"do_nanosleep"}, .cause = OFFCPU_CAUSE_CPU, .state = 'R'},
	};

	check(expected, sizeof(expected) / sizeof(expected[0]));
}

/* The inner function counts; a fault counts wherever it is. */
static void test_order(void **state)
{
	static const struct expected expected[] = {
		{.kernel = {"__mutex_lock.constprop.0", "anon_pipe_write", "vfs_write"},
		 .cause = OFFCPU_CAUSE_LOCK,
		 .state = 'D'},
		{.kernel = {"rwsem_down_read_slowpath", "ext4_file_read_iter"},
		 .cause = OFFCPU_CAUSE_LOCK,
		 .state = 'D'},
		{.kernel = {"io_schedule", "folio_wait_bit_common", "filemap_fault", "handle_mm_fault",
			    "asm_exc_page_fault"},
		 .cause = OFFCPU_CAUSE_FAULT,
		 .state = 'D'},
	};

	check(expected, sizeof(expected) / sizeof(expected[0]));
}

static void test_futexes(void **state)
{
	static const struct expected expected[] = {
		{.kernel = {"futex_do_wait", "__futex_wait", "futex_wait"}, .cause = OFFCPU_CAUSE_FUTEX},
		{.kernel = {"futex_wait"},
		 .user = {"__lll_lock_wait", "pthread_mutex_lock", "work"},
		 .cause = OFFCPU_CAUSE_LOCK},
		{.kernel = {"futex_wait"},
		 .user = {"__futex_abstimed_wait", "pthread_cond_wait", "work"},
		 .cause = OFFCPU_CAUSE_CONDITION},
		{.kernel = {"futex_wait"}, .user = {"pthread_cond_timedwait", "take_gil"}, .cause = OFFCPU_CAUSE_LOCK},
		{.kernel = {"futex_wait"}, .user = {"syscall", "work"}, .cause = OFFCPU_CAUSE_FUTEX},
		{.user = {"pthread_mutex_lock"}, .cause = OFFCPU_CAUSE_LOCK}, /* --user-only */
		{.user = {"read"}, .cause = OFFCPU_CAUSE_OTHER},
		{.kernel = {"futex_wait"},
		 .user = {"futex_wait", "pthread_barrier_wait"},
		 .cause = OFFCPU_CAUSE_CONDITION},
		{.kernel = {"futex_wait"},
		 .user = {"__futex_abstimed_wait_cancelable64", "__pthread_clockjoin_ex", "main"},
		 .cause = OFFCPU_CAUSE_CONDITION},
		{.kernel = {"futex_wait"},
		 .user = {"pthread_cond_timedwait", "JavaThread::sleep(long)", "JVM_Sleep"},
		 .cause = OFFCPU_CAUSE_TIMER},
		{.kernel = {"do_poll.constprop.0"}, .user = {"pause", "main"}, .cause = OFFCPU_CAUSE_SIGNAL},
		{.kernel = {"do_poll.constprop.0"}, .user = {"poll", "main"}, .cause = OFFCPU_CAUSE_EVENTS},
		{.kernel = {"anon_pipe_read"}, .user = {"read", "read_with_lock"}, .cause = OFFCPU_CAUSE_PIPE},
	};

	check(expected, sizeof(expected) / sizeof(expected[0]));
}

/* --user-only: the function of the C library tells. */
static void test_without_kernel_stacks(void **state)
{
	static const struct expected expected[] = {
		{.user = {"clock_nanosleep@@GLIBC_2.17", "usleep", "main"}, .cause = OFFCPU_CAUSE_TIMER},
		{.user = {"__syscall_cancel_arch", "__internal_syscall_cancel", "__syscall_cancel", "__GI___poll"},
		 .cause = OFFCPU_CAUSE_EVENTS},
		{.user = {"__wait4", "main"}, .cause = OFFCPU_CAUSE_CHILD},
		{.user = {"flock", "main"}, .cause = OFFCPU_CAUSE_LOCK},
		{.user = {"write", "poll", "main"}, .cause = OFFCPU_CAUSE_OTHER},
	};

	check(expected, sizeof(expected) / sizeof(expected[0]));
}

/* What the library of a language says counts more than how it waits. */
static void test_runtimes(void **state)
{
	static const struct {
		const char *name;
		enum offcpu_cause cause;
	} expected[] = {
		{"java.lang.Thread.sleep", OFFCPU_CAUSE_TIMER},
		{"java.lang.Object.wait", OFFCPU_CAUSE_CONDITION},
		{"java.util.concurrent.locks.ReentrantLock.lock", OFFCPU_CAUSE_LOCK},
		{"java.util.concurrent.Semaphore.acquire", OFFCPU_CAUSE_CONDITION},
		{"java.util.concurrent.CountDownLatch.await", OFFCPU_CAUSE_CONDITION},
	};
	struct frame frames[] = {
		{.symbol = "pthread_cond_wait"}, {.symbol = "os::PlatformMutex"}, {.kind = FRAME_KIND_JAVA}};
	const struct stack user = {.data = frames, .len = 3};
	const struct stack kernel = {.data = &(struct frame){.symbol = "futex_wait"}, .len = 1};
	const struct offcpu_row row = {.state = 'S', .kernel = &kernel, .user = &user};

	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		frames[2].symbol = expected[i].name;
		if (offcpu_cause_of(&row) != expected[i].cause)
			fail_msg("%s: %d", expected[i].name, offcpu_cause_of(&row));
	}
}

/* What a look tells is told by the same words; of descriptors and of threads that somebody holds back, the stack knows more. */
static void test_looks(void **state)
{
	static const enum wait_kind others[] = {WAIT_NOTHING, WAIT_READ,   WAIT_WRITE,  WAIT_ACCEPT, WAIT_CONNECT,	 WAIT_OPEN, WAIT_CONTROL,
						WAIT_STOPPED, WAIT_TRACED, WAIT_REAPER, WAIT_FROZEN, WAIT_THROTTLED, WAIT_CPU,	WAIT_SECCOMP};
	size_t n = 0;

	for (enum wait_kind kind = 0; kind < WAIT_KIND_COUNT; kind++)
		n += offcpu_cause_of_wait(kind) == OFFCPU_CAUSE_OTHER;
	assert_int_equal(n, sizeof(others) / sizeof(others[0]));
	for (size_t i = 0; i < n; i++)
		assert_int_equal(offcpu_cause_of_wait(others[i]), OFFCPU_CAUSE_OTHER);
	assert_int_equal(offcpu_cause_of_wait(WAIT_MUTEX), OFFCPU_CAUSE_LOCK);
	assert_int_equal(offcpu_cause_of_wait(WAIT_JOIN), OFFCPU_CAUSE_CONDITION);
	assert_int_equal(offcpu_cause_of_wait(WAIT_FUTEX), OFFCPU_CAUSE_FUTEX);
	assert_int_equal(offcpu_cause_of_wait(WAIT_NFS), OFFCPU_CAUSE_DISK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel_functions), cmocka_unit_test(test_order),
		cmocka_unit_test(test_futexes),          cmocka_unit_test(test_without_kernel_stacks),
		cmocka_unit_test(test_runtimes),         cmocka_unit_test(test_looks),
	};

	return cmocka_run_group_tests_name("cause", tests, NULL, NULL);
}
