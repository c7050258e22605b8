/* SPDX-License-Identifier: MIT */
#define REPORT report_offcpu_text
#include "offcpu_sample.h"

static const struct offcpu_report_options plain;
static const struct offcpu_report_options hiding = {.hide_idle = true};

static const char whole[] =
	"stakeout offcpu: 10.0 s from 2023-11-14 22:13:20, 4 threads of 2 processes, waits of at least 1 ms; method sched_exit\n"
	"off-CPU 10.0 s: 127 waits, 1 not over, average 78.7 ms, longest 300 ms\n"
	"  blocked 9.6 s (96.1 %), uninterruptible 300 ms (3.0 %),\n"
	"  waiting for a CPU 92.0 ms (0.9 %);\n"
	"  of all, idle 9.0 s (90.1 %): comes last, --hide-idle leaves it out\n"
	"  not idle, by cause: lock 598 ms (6.0 %), disk 300 ms (3.0 %), no CPU 92.0 ms (0.9 %)\n"
	"lost: 12 waits, 1 requests\n"
	"incomplete user stacks: 5 of 127 waits (9.0 % of the time): EFAULT: stack page not resident (4), "
	"no unwind tables yet (1)\n"
	"missing kernel stacks: 30 of 127 waits (0.9 % of the time): not permitted (30)\n"
	"note: no \\x1b[31mkernel stacks: run as root\n"
	"\n"
	"   total   share  waits  average  longest  blocked  uninterr.  for CPU     idle  thread\n"
	"  690 ms   6.9 %     34  20.3 ms   300 ms   86.7 %              13.3 %           "
	"tid 4712 worker (pid 4711)\n"
	"  300 ms   3.0 %      1   300 ms   300 ms             100.0 %                    "
	"tid 4713 disk (pid 4711)\n"
	"  900 ns   0.0 %      2   450 ns   600 ns  100.0 %                               "
	"tid 99 evil\\x1b[31m\"\\\xef\xbf\xbd;\\x0a\n"
	"   9.0 s  90.1 %     90   100 ms   100 ms  100.0 %                      100.0 %  tid 4711 server\n"
	"\n"
	"600 ms  6.0 %  tid 4712 worker (pid 4711)  S sleeping, lock\n"
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
	"    #3  0x0000555500005000  ??  in server+0x5000\n"
	"    #4  0x0000000012345678  ??  [by stack scan]\n"
	"\n"
	"300 ms  3.0 %  tid 4713 disk (pid 4711)  D uninterruptible, disk\n"
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
	"  #3  0x0000555500005000  ??  in server+0x5000\n"
	"  #4  0x0000000012345678  ??  [by stack scan]\n"
	"\n"
	"900 ns  0.0 %  pid 99 evil\\x1b[31m\"\\\xef\xbf\xbd;\\x0a  S sleeping\n"
	"  2 waits, average 450 ns, longest 600 ns\n"
	"  -- no stack: none was taken\n"
	"\n"
	"9.0 s  90.1 %  tid 4711 server  S sleeping, events  [idle]\n"
	"  90 waits, 1 not over, average 100 ms, p50 99.5 ms, longest 100 ms\n"
	"  k   ep_poll+0x2d1\n"
	"  k   do_epoll_wait+0x8c\n"
	"  #0  0x00007f0000001056  __epoll_wait+0x56  in libc.so.6  at linux/epoll_wait.c:30\n"
	"  #1  0x0000555500001234  aeMain+0x34  in server\n"
	"\n"
	"module /usr/bin/server: no debug information\n";

static void test_whole(void **state)
{
	assert_string_equal(report(*state, plain), whole);
}

static void test_nothing(void **state)
{
	clear(*state);
	assert_string_equal(report(*state, plain), "stakeout offcpu: 0 from 1970-01-01 00:00:00, waits of at least 1 ms; method switch\n"
						   "no waits of at least 1 ms: see --min\n");
}

/* Without BPF there is no state R, and so no option that would show more, unless one was given. */
static void test_nothing_of_an_estimate(void **state)
{
	struct fixture *f = *state;

	clear(f);
	f->profile.estimate = true;
	f->profile.filter.runnable = false;
	expect(state, plain, "no waits of at least 1 ms in state S or D: see --min\n");
	f->profile.filter.sleeping = false;
	expect(state, plain, "no waits of at least 1 ms in state D: see --min, --state\n");
}

/* Which waits there could have been, in the first line and where there are none. */
static void test_filter(void **state)
{
	static const struct {
		struct offcpu_filter filter;
		const char *first, *nothing;
	} cases[] = {
		{{0, UINT64_MAX, true, true, true}, "", "no waits\n"},
		{{1, UINT64_MAX, true, true, true},
		 ", waits of at least 1 ns",
		 "no waits of at least 1 ns: see --min\n"},
		{{0, 1250000, true, true, true},
		 ", waits of at most 1.25 ms",
		 "no waits of at most 1.25 ms: see --max\n"},
		{{15000, UINT64_C(90000000000), false, true, false},
		 ", waits of 15 µs to 90 s in state D",
		 "no waits of 15 µs to 90 s in state D: see --min, --max, --state\n"},
		{{0, UINT64_MAX, true, false, true},
		 ", waits in state S or R",
		 "no waits in state S or R: see --state\n"},
		{{1000000001, UINT64_MAX, true, true, true},
		 ", waits of at least 1.000000001 s",
		 "no waits of at least 1.000000001 s: see --min\n"},
	};
	struct fixture *f = *state;
	char want[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		f->profile.filter = cases[i].filter;
		snprintf(want, sizeof(want), " 2 processes%s; method", cases[i].first);
		expect(state, plain, want);
	}
	clear(f);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		f->profile.filter = cases[i].filter;
		snprintf(want, sizeof(want), "stakeout offcpu: 0 from 1970-01-01 00:00:00%s; method switch\n%s", cases[i].first,
			 cases[i].nothing);
		assert_string_equal(report(f, plain), want);
	}
}

static void test_many_reasons(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < 5; i++)
		f->profile.rows.data[i].user_error = (const char *[]){"a", "b", "\033c", "d", "e at 0x10"}[i];
	expect(state, plain,
	       "\nincomplete user stacks: 127 of 127 waits (100.0 % of the time): a (90), d (30), b (4), and 2 other "
	       "reasons\n");
	f->profile.rows.data[4].user_error = "a";
	expect(state, plain, "a (92), d (30), b (4), and 1 other reason\n");
	for (size_t i = 0; i < 5; i++)
		f->profile.rows.data[i].user_error = f->profile.rows.data[i].kernel_error = NULL;
	expect_not(state, plain, "incomplete");
	expect_not(state, plain, "missing");
}

static void test_estimate(void **state)
{
	struct fixture *f = *state;

	f->profile.estimate = true;
	f->profile.method = "proc";
	f->profile.threads.len = 1;
	expect(state, plain,
	       "stakeout offcpu: 10.0 s from 2023-11-14 22:13:20, 1 thread of pid 4711, waits of at least 1 ms; method proc, an estimate\n");
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
	expect(state, plain,
	       "stakeout offcpu: 10.0 s from 2023-11-14 22:13:20, 2 threads of pid 4711, waits of at least 1 ms; method sched_exit\n");
	expect(state, plain, "\n   total   share  waits  average  longest  blocked  for CPU     idle  thread\n");
	expect(state, plain, "  tid 4712 worker\n");
	expect(state, plain, "\n600 ms  6.0 %  tid 4712 worker  S sleeping, lock\n");
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
	       "  3 min 20 s  2002.0 %  12345678    16 µs  3 min 20 s    0.3 %    0.0 %           tid 4712 worker\n"
	       "       9.0 s    90.1 %        90   100 ms      100 ms  100.0 %           100.0 %  tid 4711 server\n");
}

static void test_unfinished(void **state)
{
	struct fixture *f = *state;

	f->profile.rows.data[2].sum.unfinished = 1;
	f->profile.rows.data[3].sum.unfinished = 30;
	expect(state, plain, "D uninterruptible, disk\n  1 wait, not over\n");
	expect(state, plain, "R waiting for a CPU\n  30 waits, 30 not over, average");
}

/* The head still counts all; the thread that only idles and its stack are told of in one line each. */
static void test_idle_is_hidden(void **state)
{
	expect(state, hiding, "\noff-CPU 10.0 s: 127 waits");
	expect(state, hiding, ";\n  of all, idle 9.0 s (90.1 %): hidden\n");
	expect_not(state, hiding, "epoll");
	expect_not(state, hiding, "100.0 %  tid 4711 server\n");
	expect(state, hiding, "\n  1 idle thread hidden, 90.1 % of the time (9.0 s)\n\n600 ms");
	expect(state, hiding, "\n\n  1 idle stack hidden, 90.1 % of the time (9.0 s)\n\nmodule");
	expect_not(state, plain, "hidden");
	expect_not(state, hiding, "--hide-idle");
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
	assert_true(strstr(text, "tid 4711 server\n") > strstr(text, "tid 4712 worker (pid 4711)\n"));
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

	for (row.pid = 5000; f->profile.rows.len < 53; row.pid++)
		assert_true(vec_push(&f->profile.rows, row));
	while (f->profile.threads.len < 24)
		assert_true(vec_push(&f->profile.threads, thread));
	text = report(f, plain);
	assert_non_null(strstr(text, "\n  4 more threads, 96.1 % of the time (9.6 s): -v shows all\n\n600 ms"));
	assert_non_null(strstr(text, "\n\n  3 more stacks, 91.0 % of the time (9.1 s): -v shows all\n\nmodule"));
	assert_int_equal(count(text, "\n  k   xfs_buf_lock"), 50 - 1);
	expect_not(state, (struct offcpu_report_options){.verbose = true}, " more ");
	expect(state, (struct offcpu_report_options){.verbose = true}, "  in /usr/lib/libc.so.6  at ../sysdeps/");
	text = report(f, (struct offcpu_report_options){.top = 1});
	assert_non_null(strstr(text, "\n  23 more threads, "));
	assert_non_null(strstr(text, "\n  52 more stacks, "));
	assert_int_equal(count(text, "xfs_buf_lock"), 0);
	expect_not(state, (struct offcpu_report_options){.top = 53}, " more ");
}

/* One stack with several wakers is shown once. */
static void test_on_cpu(void **state)
{
	struct fixture *f = *state;

	f->profile.threads.data[1].elapsed_ns = 10000 * SAMPLE_MS;
	f->profile.threads.data[1].on_cpu_ns = 8000 * SAMPLE_MS;
	expect(state, plain, "   total  on CPU   share  waits");
	expect(state, plain, "\n  690 ms   8.0 s   6.9 %     34");
}

/* The frames by which the kernel wakes whomever are only shown if all is. */
static void test_frames_of_wake_ups(void **state)
{
	const struct offcpu_report_options verbose = {.verbose = true};
	struct fixture *f = *state;
	struct frame frames[] = {
		{.symbol = "try_to_wake_up", .kind = FRAME_KIND_KERNEL},
		{.symbol = "__wake_up_common.isra.0", .kind = FRAME_KIND_KERNEL},
		{.symbol = "anon_pipe_write", .kind = FRAME_KIND_KERNEL},
		{.symbol = "try_to_wake_up", .kind = FRAME_KIND_KERNEL},
	};
	const struct stack stack = {.data = frames, .len = 4}, only = {.data = frames, .len = 2};

	f->profile.rows.data[1].waker.kernel = &stack;
	expect(state, plain, "woken by tid 4711 server\n    k   anon_pipe_write\n    k   try_to_wake_up\n");
	expect(state, verbose, "woken by tid 4711 server\n    k   try_to_wake_up\n    k   __wake_up_common.isra.0\n");
	f->profile.rows.data[1].waker.kernel = &only;
	expect(state, plain, "woken by tid 4711 server\n    k   __wake_up_common.isra.0\n");
}

static void test_wakers(void **state)
{
	struct fixture *f = *state;
	struct offcpu_row row = f->profile.rows.data[1];
	const char *text;

	row.sum = sample_sum(2, 30 * SAMPLE_MS, 20 * SAMPLE_MS, 10 * SAMPLE_MS, 0);
	row.waker.user_error = "it \033 ends";
	for (row.waker.tid = 4720; row.waker.tid < 4724; row.waker.tid++)
		assert_true(vec_push(&f->profile.rows, row));
	row.waker = (struct offcpu_waker){.interrupt = true, .name = "interrupt", .kernel_error = "lost"};
	assert_true(vec_push(&f->profile.rows, row));
	row.has_waker = false;
	row.waker = (struct offcpu_waker){0};
	assert_true(vec_push(&f->profile.rows, row));
	text = report(f, plain);
	assert_non_null(strstr(text, "\n780 ms  7.8 %  tid 4712 worker (pid 4711)  S sleeping, lock\n"
				     "  16 waits, average 48.8 ms, longest 300 ms, 2.0 ms of it waiting for a CPU\n"));
	assert_non_null(strstr(text, "\n  woken by tid 4711 server (4 waits, 600 ms)\n    k   futex_wait_queue"));
	assert_non_null(strstr(text, "\n  woken by tid 4720 server (pid 4711) (2 waits, 30.0 ms)\n"));
	assert_int_equal(count(text, "\n    -- user stack ends here: it \\x1b ends\n"), 2);
	assert_non_null(strstr(text, "\nincomplete user stacks of wakers: 8 of 127 waits (1.2 % of the time): "
				     "it \\x1b ends (8)\n"
				     "missing kernel stacks of wakers: 2 of 127 waits (0.3 % of the time): lost (2)\n"));
	assert_non_null(strstr(text, "\n  woken by 4 more (8 waits, 120 ms)\n\n300 ms"));
	assert_int_equal(count(text, "\n  woken by"), 4);
	assert_int_equal(count(text, "__futex_abstimed"), 1);
	text = report(f, (struct offcpu_report_options){.verbose = true});
	assert_non_null(strstr(text, "\n  woken by tid 4723 server (pid 4711) (2 waits, 30.0 ms)\n"));
	assert_non_null(strstr(text, "\n  woken by an interrupt (2 waits, 30.0 ms)\n"
				     "    -- no kernel stack: lost\n"
				     "  waker not known (2 waits, 30.0 ms)\n\n300 ms"));
	f->profile.rows.data[f->profile.rows.len - 1].sum.unfinished = 2;
	expect(state, (struct offcpu_report_options){.verbose = true},
	       "\n  not woken yet (2 waits, 30.0 ms)\n\n300 ms");
}

/* So many more threads that have waited in the place of the third row, for so long. */
static void add_threads(struct fixture *f, pid_t first, size_t n, uint64_t ns, bool idle)
{
	for (size_t i = 0; i < n; i++) {
		struct offcpu_row row = f->profile.rows.data[2];
		struct offcpu_thread thread = f->profile.threads.data[2];

		row.tid = thread.tid = first + (pid_t)i;
		row.thread_name = thread.name = "pool";
		row.sum = thread.sum = sample_sum(1, ns, ns, ns, 0);
		row.idle = idle;
		thread.uninterruptible_ns = ns;
		thread.idle_ns = idle ? ns : 0;
		assert_true(vec_push(&f->profile.rows, row));
		assert_true(vec_push(&f->profile.threads, thread));
	}
}

/* A pool is one stack and one line, after what is not idle. */
static void test_pool(void **state)
{
	struct fixture *f = *state;
	const char *text;

	add_threads(f, 5000, 100, 10000 * SAMPLE_MS, true);
	text = report(f, plain);
	assert_non_null(strstr(
		text, "\n  16 min 40 s  10010.0 %    100   10.0 s   10.0 s             100.0 %           100.0 %  "
		      "100 threads: tid 5000-5099 pool (pid 4711)\n"
		      "        9.0 s     90.1 %"));
	assert_non_null(strstr(text, "\n16 min 40 s  10010.0 %  100 threads of pid 4711  D uninterruptible, disk  [idle]\n"
				     "  tid 5000-5099 pool\n"
				     "  100 waits, average 10.0 s, longest 10.0 s\n"
				     "  k   xfs_buf_lock"));
	assert_int_equal(count(text, "xfs_buf_lock"), 2); /* that of the disk thread, who is not idle there */
	assert_true(strstr(text, "tid 4713 disk (pid 4711)\n") < strstr(text, "100 threads:"));
	assert_true(strstr(text, "tid 4713 disk (pid 4711)  D") < strstr(text, "100 threads of"));
	expect(state, hiding, "\n  101 idle threads hidden, ");
	expect(state, hiding, "\n  2 idle stacks hidden, ");
	expect_not(state, hiding, "pool");
	text = report(f, (struct offcpu_report_options){.verbose = true});
	assert_int_equal(count(text, "tid 5"), 101);
	assert_null(strstr(text, "100 threads:"));
}

/* Threads that share a stack are told of one by one in the table if they do not share all, or differ in their times. */
static void test_shared_stack(void **state)
{
	struct fixture *f = *state;
	const char *text;

	add_threads(f, 5000, 1, 290 * SAMPLE_MS, false);
	add_threads(f, 5010, 1, 280 * SAMPLE_MS, false);
	text = report(f, plain);
	assert_non_null(strstr(text, "  3 threads: tid 4713 disk, 5000, 5010 pool (pid 4711)\n"));
	assert_non_null(strstr(text, "\n870 ms  8.7 %  3 threads of pid 4711  D uninterruptible, disk\n"
				     "  tid 4713 disk, 5000, 5010 pool\n  3 waits,"));
	f->profile.threads.len--; /* a row without its thread */
	expect(state, plain, "\n  590 ms   5.9 %      2   295 ms   300 ms             100.0 %");
	f->profile.threads.len++;
	f->profile.rows.data[3].tid = 5010; /* as is preempted too */
	text = report(f, plain);
	assert_null(strstr(text, "threads: "));
	assert_non_null(strstr(text, "  tid 5010 pool (pid 4711)\n"));
	add_threads(f, 6000, 5, 10 * SAMPLE_MS, false);
	text = report(f, plain);
	assert_null(strstr(text, "threads: "));
	assert_non_null(strstr(text, "\n  tid 4713 disk 300 ms, 5000 pool 290 ms, 5010 280 ms, 6000 10.0 ms, "
				     "6001 10.0 ms, and 3 more 30.0 ms\n"));
	expect(state, (struct offcpu_report_options){.verbose = true},
	       "6001 10.0 ms,\n      6002 10.0 ms, 6003");
}

static void add_process(struct fixture *f, pid_t pid, const char *name, const char *command_line)
{
	const struct offcpu_identity process = {.pid = pid, .name = name, .command_line = command_line};

	assert_true(vec_push(&f->profile.processes, process));
}

/* What is the same of two processes does not tell them apart. */
static void test_command_lines(void **state)
{
	struct fixture *f = *state;

	add_process(f, 99, "server", "server --port \033[31m1");
	add_process(f, 4711, "server", "server --port \033[31m1");
	expect(state, plain, "  tid 4711 server\n");
	f->profile.processes.data[1].command_line = "server --port 2";
	expect(state, plain, "  tid 4711 server (server --port 2)\n");
	expect(state, plain, "  tid 4712 worker (pid 4711: server --port 2)\n");
	expect(state, plain, "%  tid 4711 server (server --port 2)  S sleeping");
	expect(state, plain, "(server --port \\x1b[31m1)\n");
	f->profile.processes.data[1].command_line = "server --port 2 --quick";
	expect(state, (struct offcpu_report_options){.width = 60}, "  tid 4711 server (server --port 2…)\n");
	expect(state, (struct offcpu_report_options){.width = 60}, "  tid 4712 worker (pid 4711)\n"); /* no room at all */
	f->profile.processes.data[1].name = "another";
	expect(state, plain, "  tid 4711 server\n");
}

/* Rows of a program, whose processes are told with their times unless these are alike. */
static void test_programs(void **state)
{
	struct fixture *f = *state;
	struct offcpu_row *row = &f->profile.rows.data[2];
	struct offcpu_member members[] = {{.pid = 7, .nthreads = 2, .total_ns = 200 * SAMPLE_MS},
					  {.pid = 8, .nthreads = 1, .total_ns = 100 * SAMPLE_MS}};

	f->profile.by_process = true;
	for (size_t i = 0; i < 2; i++)
		assert_true(vec_push(&f->profile.members, members[i]));
	row->pid = row->tid = 0;
	row->program = 1;
	row->nmembers = 2;
	expect(state, plain, "\n300 ms  3.0 %  2 processes of disk, 3 threads  D uninterruptible, disk\n"
			     "  pid 7 200 ms, 8 100 ms\n  1 wait\n");
	f->profile.members.data[1].total_ns = 199 * SAMPLE_MS;
	expect(state, plain, "3 threads  D uninterruptible, disk\n  pid 7, 8\n");
	assert_true(vec_push(&f->profile.processes, (struct offcpu_identity){.pid = 7, .script = "app.py"}));
	expect(state, plain, "%  2 processes of disk app.py, 3 threads  D");
	row->nmembers = 1;
	row->pid = 7;
	expect(state, plain, "%  pid 7 disk, 2 threads  D");
}

/* In the table a line for each program: here two processes of one, and one of another. */
static void test_table_of_programs(void **state)
{
	struct fixture *f = *state;
	struct offcpu_member members[] = {{.pid = 4711, .nthreads = 1}, {.pid = 99, .nthreads = 1}};

	f->profile.by_process = true;
	for (size_t i = 0; i < 2; i++)
		assert_true(vec_push(&f->profile.members, members[i]));
	for (size_t i = 0; i < f->profile.rows.len; i++) {
		f->profile.rows.data[i].program = 1;
		f->profile.rows.data[i].nmembers = 2;
	}
	expect(state, plain, "  process\n  10.0 s  100.0 %    127 ");
	expect(state, plain, "%  2 processes of evil\\x1b[31m\"\\\xef\xbf\xbd;\\x0a, 4 threads\n");
	for (size_t i = 0; i < f->profile.rows.len; i++)
		f->profile.rows.data[i].nmembers = 1;
	expect(state, plain, "%  pid 4711 server, 3 threads\n");
	expect(state, plain, "%  pid 99 evil");
	expect(state, (struct offcpu_report_options){.top = 1}, "\n  1 more process, 0.0 % of the time");
}

static void test_quantiles(void **state)
{
	static struct offcpu_length waits[] = {{20000000, 60}, {150000000, 50}, {250000000, 9}, {300000000, 1}};
	static const struct offcpu_lengths lengths = {.data = waits, .len = 4};
	struct fixture *f = *state;
	struct offcpu_row *row = &f->profile.rows.data[1];

	row->sum.count = 120;
	row->lengths = offcpu_profile_add_lengths(&f->profile, &lengths);
	expect(state, plain, "  120 waits, average 5.0 ms, p50 20.0 ms, p99 250 ms, longest 300 ms, ");
	row->sum.max_ns = 250000000;
	expect(state, plain, "p50 20.0 ms, longest 250 ms, "); /* nothing is said twice */
	row->sum.count = 121;
	expect(state, plain, "  121 waits, average 5.0 ms, longest 250 ms, "); /* of one nobody knows */
}

/* A busy loop is preempted anywhere. */
static void test_places(void **state)
{
	const struct stack elsewhere = SAMPLE_STACK(
		{.address = 0x77, .symbol = "spin", .offset = 0x77, .has_offset = true, .module = &sample_exe});
	const struct stack here = SAMPLE_STACK(
		{.address = 0x11, .symbol = "spin", .offset = 0x11, .has_offset = true, .module = &sample_exe});
	struct fixture *f = *state;
	struct offcpu_row row = f->profile.rows.data[3];

	f->profile.rows.data[3].user = &here;
	row.user = &elsewhere;
	vec_push(&f->profile.rows, row);
	expect(state, plain, "\n180 ms  1.8 %  tid 4712 worker (pid 4711)  R waiting for a CPU\n"
			     "  60 waits, average 3.0 ms, longest 5.0 ms, at 2 places in these functions\n");
	expect_not(state, plain, "spin+0x77");
	expect(state, (struct offcpu_report_options){.verbose = true}, "spin+0x77");
	expect_not(state, (struct offcpu_report_options){.verbose = true}, "places in these functions");
}

/* As those do that were forked from one another. */
static void test_processes_that_share_a_stack(void **state)
{
	struct fixture *f = *state;
	struct offcpu_row row = f->profile.rows.data[1];
	struct offcpu_thread thread = f->profile.threads.data[1];

	thread.sum = row.sum;
	f->profile.rows.data[3].tid = 4713; /* so that the first has no other waits */
	for (row.pid = 5000; row.pid < 5002; row.pid++) {
		row.tid = thread.pid = thread.tid = row.pid;
		assert_true(vec_push(&f->profile.rows, row));
		assert_true(vec_push(&f->profile.threads, thread));
	}
	expect(state, plain, "  3 threads: tid 4712, 5000, 5001 worker\n");
	expect(state, plain,
	       "\n1.8 s  18.0 %  3 threads of 3 processes  S sleeping, lock\n"
	       "  tid 4712, 5000, 5001 worker\n  12 waits, ");
}

/* Each waker once, whomever of the threads it woke. */
static void test_shared_wakers(void **state)
{
	struct fixture *f = *state;

	f->profile.rows.data[2].has_waker = true;
	f->profile.rows.data[2].waker = (struct offcpu_waker){.interrupt = true, .name = "interrupt"};
	add_threads(f, 5000, 2, 10 * SAMPLE_MS, false);
	assert_int_equal(count(report(f, plain), "woken by an interrupt\n"), 1);
}

static void test_code_without_names(void **state)
{
	struct frame frames[] = {sample_futex.data[0], {.address = 0x12345678}};
	const struct stack user = {.data = frames, .len = 2};
	struct fixture *f = *state;

	expect_not(state, plain, "made at run time"); /* what a scan has found may be no code at all */
	f->profile.rows.data[0].user = &user;
	expect(state, plain, "no debug information\n\ncode made at run time has no names: some runtimes");
	expect_not(state, hiding, "made at run time");
	f->profile.threads.data[0].name = "node";
	expect(state, plain,
	       "\ncode made at run time has no names: node names it when started with --perf-basic-prof\n");
}

static void test_color(void **state)
{
	const struct offcpu_report_options options = {.color = true};

	expect_not(state, plain, "\033");
	expect(state, options, "\033[1m9.0 s\033[0m  90.1 %  tid 4711 \033[1mserver\033[0m  S sleeping, events  [idle]\n");
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
	expect(state, plain, "  ? unknown, disk\n  1 wait\n");
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
		cmocka_unit_test_setup_teardown(test_nothing_of_an_estimate, setup, teardown),
		cmocka_unit_test_setup_teardown(test_filter, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_reasons, setup, teardown),
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
		cmocka_unit_test_setup_teardown(test_frames_of_wake_ups, setup, teardown),
		cmocka_unit_test_setup_teardown(test_on_cpu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pool, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shared_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(test_processes_that_share_a_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shared_wakers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_command_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_programs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_table_of_programs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_quantiles, setup, teardown),
		cmocka_unit_test_setup_teardown(test_places, setup, teardown),
		cmocka_unit_test_setup_teardown(test_code_without_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_color, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_words, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stream_error, setup, teardown),
	};

	setenv("TZ", "UTC", 1); /* the report has local time */
	return cmocka_run_group_tests_name("report_offcpu_text", tests, NULL, NULL);
}
