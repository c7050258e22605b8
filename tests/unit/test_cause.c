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
		{.kernel = {"anon_pipe_read"}, .user = {"read", "read_with_lock"}, .cause = OFFCPU_CAUSE_PIPE},
	};

	check(expected, sizeof(expected) / sizeof(expected[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel_functions),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_futexes),
	};

	return cmocka_run_group_tests_name("cause", tests, NULL, NULL);
}
