/* SPDX-License-Identifier: MIT */
#define REPORT report_offcpu_text
#include "offcpu_sample.h"

static const struct offcpu_report_options plain;
static const struct offcpu_report_options hiding = {.hide_idle = true};

static const char whole[] =
	"stakeout offcpu: 10.0 s, 4 threads of 2 processes; method sched_exit\n"
	"off-CPU 10.0 s: 127 waits, 1 not over, average 78.7 ms, longest 300 ms\n"
	"  blocked 9.6 s (96.1 %), uninterruptible 300 ms (3.0 %),\n"
	"  waiting for a CPU 92.0 ms (0.9 %); of all, idle 9.0 s (90.1 %)\n"
	"lost: 12 waits, 1 requests\n"
	"note: no \\x1b[31mkernel stacks: run as root\n"
	"\n"
	"   total   share  waits  average  longest  blocked  uninterr.  for CPU     idle  thread\n"
	"   9.0 s  90.1 %     90   100 ms   100 ms  100.0 %                      100.0 %  tid 4711 server\n"
	"  690 ms   6.9 %     34  20.3 ms   300 ms   86.7 %              13.3 %           "
	"tid 4712 worker (pid 4711)\n"
	"  300 ms   3.0 %      1   300 ms   300 ms             100.0 %                    "
	"tid 4713 disk (pid 4711)\n"
	"  900 ns   0.0 %      2   450 ns   600 ns  100.0 %                               "
	"tid 99 evil\\x1b[31m\"\\\xef\xbf\xbd;\\x0a\n"
	"\n"
	"9.0 s  90.1 %  tid 4711 server  S sleeping  [idle]\n"
	"  90 waits, 1 not over, average 100 ms, longest 100 ms\n"
	"  k   ep_poll+0x2d1\n"
	"  k   do_epoll_wait+0x8c\n"
	"  k   __x64_sys_epoll_wait+0x6f\n"
	"  #0  0x00007f0000001056  __epoll_wait+0x56  in libc.so.6  at linux/epoll_wait.c:30\n"
	"  #1  0x0000555500001234  aeMain+0x34  in server\n"
	"\n"
	"600 ms  6.0 %  tid 4712 worker (pid 4711)  S sleeping\n"
	"  4 waits, average 150 ms, longest 300 ms, 2.0 ms of it waiting for a CPU\n"
	"  k   futex_wait_queue+0x60\n"
	"  k   futex_wait+0x15e\n"
	"  #0  0x00007f0000002000  __futex_abstimed_wait_common+0xc4  in libc.so.6\n"
	"  -- user stack ends here: EFAULT: stack page not resident\n"
	"  woken by tid 4711 server\n"
	"    k   futex_wait_queue+0x60\n"
	"    k   futex_wait+0x15e\n"
	"    #0                      mix  at server/hash.h:12  [inlined]\n"
	"    #1  0x0000555500004000  hash_all+0x40  in server  at server/hash.c:80\n"
	"    #2  0x00007f0000003000  <signal handler called>\n"
	"    #3  0x0000555500005000  server+0x5000  [by frame pointer]\n"
	"    #4  0x0000000012345678  ??  [by stack scan]\n"
	"\n"
	"300 ms  3.0 %  tid 4713 disk (pid 4711)  D uninterruptible\n"
	"  1 wait\n"
	"  k   xfs_buf_lock+0x3a [xfs]\n"
	"  k   0xffffffff81234567\n"
	"  -- no user stack: no unwind tables yet\n"
	"\n"
	"90.0 ms  0.9 %  tid 4712 worker (pid 4711)  R waiting for a CPU\n"
	"  30 waits, average 3.0 ms, longest 5.0 ms\n"
	"  -- no kernel stack: not permitted\n"
	"  #0                      mix  at server/hash.h:12  [inlined]\n"
	"  #1  0x0000555500004000  hash_all+0x40  in server  at server/hash.c:80\n"
	"  #2  0x00007f0000003000  <signal handler called>\n"
	"  #3  0x0000555500005000  server+0x5000  [by frame pointer]\n"
	"  #4  0x0000000012345678  ??  [by stack scan]\n"
	"\n"
	"900 ns  0.0 %  pid 99 evil\\x1b[31m\"\\\xef\xbf\xbd;\\x0a  S sleeping\n"
	"  2 waits, average 450 ns, longest 600 ns\n"
	"  -- no stack: none was taken\n"
	"\n"
	"module /usr/bin/server: no debug information\n";

static void test_whole(void **state)
{
	assert_string_equal(report(*state, plain), whole);
}

static void test_nothing(void **state)
{
	clear(*state);
	assert_string_equal(report(*state, plain), "stakeout offcpu: 0; method switch\n"
						   "no waits, or none as long as is recorded: see --min\n");
}

static void test_estimate(void **state)
{
	struct fixture *f = *state;

	f->profile.estimate = true;
	f->profile.method = "proc";
	f->profile.threads.len = 1;
	expect(state, plain, "stakeout offcpu: 10.0 s, 1 thread of pid 4711; method proc, an estimate\n");
}

static void test_no_losses(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < f->profile.losses.len; i++)
		f->profile.losses.data[i].count = 0;
	expect_not(state, plain, "lost");
}

/* What is the same for all is said once, and a column in which there is nothing is not there. */
static void test_one_process(void **state)
{
	struct fixture *f = *state;

	f->profile.threads.len = 2;
	expect(state, plain, "stakeout offcpu: 10.0 s, 2 threads of pid 4711; method sched_exit\n");
	expect(state, plain, "\n   total   share  waits  average  longest  blocked  for CPU     idle  thread\n");
	expect(state, plain, "  tid 4712 worker\n");
	expect(state, plain, "\n600 ms  6.0 %  tid 4712 worker  S sleeping\n");
	f->profile.rows.data[1].waker.pid = 5000;
	expect(state, plain, "  woken by tid 4711 server (pid 5000)\n");
}

/* Numbers that are longer than usual stay below each other. */
static void test_wide_columns(void **state)
{
	struct fixture *f = *state;
	struct offcpu_thread *thread = &f->profile.threads.data[1];

	f->profile.threads.len = 2;
	thread->sum.total_ns = thread->sum.max_ns = UINT64_C(200) * 1000 * SAMPLE_MS;
	thread->sum.count = 12345678;
	expect(state, plain,
	       "\n"
	       "       total     share     waits  average     longest  blocked  for CPU     idle  thread\n"
	       "       9.0 s    90.1 %        90   100 ms      100 ms  100.0 %           100.0 %  tid 4711 server\n"
	       "  3 min 20 s  2002.0 %  12345678    16 µs  3 min 20 s    0.3 %    0.0 %           tid 4712 worker\n");
}

static void test_unfinished(void **state)
{
	struct fixture *f = *state;

	f->profile.rows.data[2].sum.unfinished = 1;
	f->profile.rows.data[3].sum.unfinished = 30;
	expect(state, plain, "D uninterruptible\n  1 wait, not over\n");
	expect(state, plain, "R waiting for a CPU\n  30 waits, 30 not over, average");
}

/* The head still counts all; the thread that only idles and its stack are told of in one line each. */
static void test_idle_is_hidden(void **state)
{
	expect(state, hiding, "\noff-CPU 10.0 s: 127 waits");
	expect(state, hiding, "; of all, idle 9.0 s (90.1 %)\n");
	expect_not(state, hiding, "epoll");
	expect_not(state, hiding, "100.0 %  tid 4711 server\n");
	expect(state, hiding, "\n  1 idle thread hidden, 90.1 % of the time (9.0 s)\n\n600 ms");
	expect(state, hiding, "\n\n  1 idle stack hidden, 90.1 % of the time (9.0 s)\n\nmodule");
	expect_not(state, plain, "hidden");
}

static void test_all_is_idle(void **state)
{
	struct fixture *f = *state;

	f->profile.threads.len = 1;
	f->profile.rows.len = 1;
	expect(state, hiding,
	       "run as root\n"
	       "\n"
	       "  1 idle thread hidden, 90.1 % of the time (9.0 s)\n"
	       "\n"
	       "  1 idle stack hidden, 90.1 % of the time (9.0 s)\n");
	expect_not(state, hiding, "total ");
}

/* A thread that does more than idle is in the table, at the place that the rest of its time gives it. */
static void test_partly_idle(void **state)
{
	struct fixture *f = *state;
	const char *server, *worker, *disk, *text;

	f->profile.threads.data[0].idle_ns -= 310 * SAMPLE_MS;
	text = report(f, hiding);
	server = strstr(text, " 96.6 %  tid 4711 server\n");
	worker = strstr(text, "  tid 4712 worker (pid 4711)\n");
	disk = strstr(text, "  tid 4713 disk (pid 4711)\n");
	assert_true(worker && server && disk && worker < server && server < disk);
	assert_null(strstr(text, "idle thread"));
	text = report(f, plain);
	assert_true(strstr(text, "tid 4711 server\n") < strstr(text, "tid 4712 worker (pid 4711)\n"));
}

static void test_no_idle(void **state)
{
	struct fixture *f = *state;

	f->profile.rows.data[0].idle = false;
	f->profile.threads.data[0].idle_ns = 0;
	expect_not(state, plain, "idle");
	expect(state, hiding, "epoll");
	expect_not(state, hiding, "hidden");
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

/* More than anyone reads is not shown, but told of. */
static void test_many(void **state)
{
	struct fixture *f = *state;
	struct offcpu_row row = f->profile.rows.data[2];
	const struct offcpu_thread thread = f->profile.threads.data[2];
	const char *text;

	for (row.tid = 5000; f->profile.rows.len < 53; row.tid++)
		assert_true(vec_push(&f->profile.rows, row));
	while (f->profile.threads.len < 24)
		assert_true(vec_push(&f->profile.threads, thread));
	text = report(f, plain);
	assert_non_null(strstr(text, "\n  4 more threads, 12.0 % of the time (1.2 s): -v shows all\n\n9.0 s"));
	assert_non_null(strstr(text, "\n\n  3 more stacks, 3.9 % of the time (390 ms): -v shows all\n\nmodule"));
	assert_int_equal(count(text, "\n  k   xfs_buf_lock"), 50 - 2);
	expect_not(state, (struct offcpu_report_options){.verbose = true}, " more ");
	expect(state, (struct offcpu_report_options){.verbose = true}, "  in /usr/lib/libc.so.6  at ../sysdeps/");
	text = report(f, (struct offcpu_report_options){.top = 1});
	assert_non_null(strstr(text, "\n  23 more threads, "));
	assert_non_null(strstr(text, "\n  52 more stacks, "));
	assert_int_equal(count(text, "xfs_buf_lock"), 0);
	expect_not(state, (struct offcpu_report_options){.top = 53}, " more ");
}

/* One stack with several wakers is shown once. */
static void test_wakers(void **state)
{
	struct fixture *f = *state;
	struct offcpu_row row = f->profile.rows.data[1];
	const char *text;

	row.sum = sample_sum(2, 30 * SAMPLE_MS, 20 * SAMPLE_MS, 10 * SAMPLE_MS, 0);
	row.waker.user_error = "it \033 ends";
	for (row.waker.tid = 4720; row.waker.tid < 4724; row.waker.tid++)
		assert_true(vec_push(&f->profile.rows, row));
	row.waker = (struct offcpu_waker){.name = "interrupt", .kernel_error = "lost"};
	assert_true(vec_push(&f->profile.rows, row));
	row.has_waker = false;
	row.waker = (struct offcpu_waker){0};
	assert_true(vec_push(&f->profile.rows, row));
	text = report(f, plain);
	assert_non_null(strstr(text, "\n780 ms  7.8 %  tid 4712 worker (pid 4711)  S sleeping\n"
				     "  16 waits, average 48.8 ms, longest 300 ms, 2.0 ms of it waiting for a CPU\n"));
	assert_non_null(strstr(text, "\n  woken by tid 4711 server (4 waits, 600 ms)\n    k   futex_wait_queue"));
	assert_non_null(strstr(text, "\n  woken by tid 4720 server (pid 4711) (2 waits, 30.0 ms)\n"));
	assert_int_equal(count(text, "\n    -- user stack ends here: it \\x1b ends\n"), 2);
	assert_non_null(strstr(text, "\n  woken by 4 more (8 waits, 120 ms)\n\n300 ms"));
	assert_int_equal(count(text, "\n  woken by"), 4);
	assert_int_equal(count(text, "__futex_abstimed"), 1);
	text = report(f, (struct offcpu_report_options){.verbose = true});
	assert_non_null(strstr(text, "\n  woken by tid 4723 server (pid 4711) (2 waits, 30.0 ms)\n"));
	assert_non_null(strstr(text, "\n  woken by an interrupt (2 waits, 30.0 ms)\n"
				     "    -- no kernel stack: lost\n"
				     "  waker not known (2 waits, 30.0 ms)\n\n300 ms"));
	f->profile.rows.data[f->profile.rows.len - 1].sum.unfinished = 2;
	expect(state, (struct offcpu_report_options){.verbose = true}, "\n  not woken yet (2 waits, 30.0 ms)\n\n300 ms");
}

static void test_color(void **state)
{
	const struct offcpu_report_options options = {.color = true};

	expect_not(state, plain, "\033");
	expect(state, options, "\033[1m9.0 s\033[0m  90.1 %  tid 4711 \033[1mserver\033[0m  S sleeping  [idle]\n");
	expect(state, options, "\033[31mlost: 12 waits, 1 requests\033[0m\n");
	expect(state, options, "\033[31mD uninterruptible\033[0m");
	expect(state, options, "\033[32mR waiting for a CPU\033[0m");
	expect(state, options, "\033[33mep_poll\033[0m+0x2d1");
	expect(state, options, "\033[31m  -- user stack ends here: EFAULT: stack page not resident\033[0m\n");
	expect(state, options, "evil\\x1b[31m");
}

static void test_hostile_words(void **state)
{
	struct fixture *f = *state;

	f->profile.rows.data[0].user_error = "\033]0;mine\007";
	f->profile.rows.data[1].waker.name = "\033[2J";
	f->profile.rows.data[2].state = '\033';
	f->profile.rows.data[3].thread_name = NULL;
	expect(state, plain, "user stack ends here: \\x1b]0;mine\\x07\n");
	expect(state, plain, "woken by tid 4711 \\x1b[2J\n");
	expect(state, plain, "  ? unknown\n  1 wait\n");
	expect(state, plain, "  tid 4712 ? (pid 4711)  R");
	expect_not(state, plain, "\033");
}

static void test_stream_error(void **state)
{
	expect_stream_error(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_estimate, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_losses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wide_columns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unfinished, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_is_hidden, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_is_idle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_partly_idle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_idle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wakers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_color, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_words, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stream_error, setup, teardown),
	};

	return cmocka_run_group_tests_name("report_offcpu_text", tests, NULL, NULL);
}
