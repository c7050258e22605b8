/* SPDX-License-Identifier: MIT */
#define REPORT report_offcpu_text
#include "offcpu_sample.h"

static const struct offcpu_report_options plain;
static const struct offcpu_report_options hiding = {.hide_idle = true};

static const char whole[] =
	"stakeout offcpu: 10.0 s, 4 threads; method sched_exit\n"
	"off-CPU 10.0 s: 127 waits, average 78.7 ms, longest 300 ms\n"
	"  blocked 9.6 s (96.1 %), uninterruptible 300 ms (3.0 %), waiting for a CPU 92.0 ms (0.9 %); idle 9.0 s (90.1 %)\n"
	"lost: 12 waits, 1 requests\n"
	"note: no \\x1b[31mkernel stacks: run as root\n"
	"\n"
	"     total    share     waits   average   longest  blocked  uninterr.  for CPU     idle  thread\n"
	"     9.0 s   90.1 %        90    100 ms    100 ms  100.0 %      0.0 %    0.0 %  100.0 %  tid 4711 server\n"
	"    690 ms    6.9 %        34   20.3 ms    300 ms   86.7 %      0.0 %   13.3 %           "
	"tid 4712 worker (pid 4711)\n"
	"    300 ms    3.0 %         1    300 ms    300 ms    0.0 %    100.0 %    0.0 %           "
	"tid 4713 disk (pid 4711)\n"
	"    900 ns    0.0 %         2    450 ns    600 ns  100.0 %      0.0 %    0.0 %           "
	"pid 99 evil\\x1b[31m\"\\\xef\xbf\xbd;\\x0a\n"
	"\n"
	"9.0 s  90.1 %  tid 4711 server  S sleeping  90 waits, average 100 ms, longest 100 ms  [idle]\n"
	"  k   ep_poll+0x2d1\n"
	"  k   do_epoll_wait+0x8c\n"
	"  k   __x64_sys_epoll_wait+0x6f\n"
	"  #0  0x00007f0000001056  __epoll_wait+0x56  in libc.so.6  at linux/epoll_wait.c:30\n"
	"  #1  0x0000555500001234  aeMain+0x34  in server\n"
	"\n"
	"600 ms  6.0 %  tid 4712 worker (pid 4711)  S sleeping  4 waits, average 150 ms, longest 300 ms, "
	"2.0 ms of it waiting for a CPU\n"
	"  k   futex_wait_queue+0x60\n"
	"  k   futex_wait+0x15e\n"
	"  #0  0x00007f0000002000  __futex_abstimed_wait_common+0xc4  in libc.so.6\n"
	"  -- user stack ends here: EFAULT: stack page not resident\n"
	"  woken by:  tid 4711 server\n"
	"    k   futex_wait_queue+0x60\n"
	"    k   futex_wait+0x15e\n"
	"    #0                      mix  at server/hash.h:12  [inlined]\n"
	"    #1  0x0000555500004000  hash_all+0x40  in server  at server/hash.c:80\n"
	"    #2  0x00007f0000003000  <signal handler called>\n"
	"    #3  0x0000555500005000  server+0x5000  [by frame pointer]\n"
	"    #4  0x0000000012345678  ??  [by stack scan]\n"
	"\n"
	"300 ms  3.0 %  tid 4713 disk (pid 4711)  D uninterruptible  1 wait, average 300 ms, longest 300 ms\n"
	"  k   xfs_buf_lock+0x3a [xfs]\n"
	"  k   0xffffffff81234567\n"
	"  -- no user stack: no unwind tables yet\n"
	"\n"
	"90.0 ms  0.9 %  tid 4712 worker (pid 4711)  R waiting for a CPU  30 waits, average 3.0 ms, longest 5.0 ms\n"
	"  -- no kernel stack: not permitted\n"
	"  #0                      mix  at server/hash.h:12  [inlined]\n"
	"  #1  0x0000555500004000  hash_all+0x40  in server  at server/hash.c:80\n"
	"  #2  0x00007f0000003000  <signal handler called>\n"
	"  #3  0x0000555500005000  server+0x5000  [by frame pointer]\n"
	"  #4  0x0000000012345678  ??  [by stack scan]\n"
	"\n"
	"900 ns  0.0 %  pid 99 evil\\x1b[31m\"\\\xef\xbf\xbd;\\x0a  S sleeping  2 waits, average 450 ns, longest 600 ns\n"
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
	assert_string_equal(report(*state, plain), "stakeout offcpu: 0, 0 threads; method switch\noff-CPU 0: 0 waits\n");
}

static void test_estimate(void **state)
{
	struct fixture *f = *state;

	f->profile.estimate = true;
	f->profile.method = "proc";
	f->profile.threads.len = 1;
	expect(state, plain, "stakeout offcpu: 10.0 s, 1 thread; method proc, an estimate\n");
}

static void test_no_losses(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < f->profile.losses.len; i++)
		f->profile.losses.data[i].count = 0;
	expect_not(state, plain, "lost");
}

/* The head still counts all; the thread that only idles and its stack are told of in one line each. */
static void test_idle_is_hidden(void **state)
{
	expect(state, hiding, "\noff-CPU 10.0 s: 127 waits");
	expect(state, hiding, "; idle 9.0 s (90.1 %)\n");
	expect_not(state, hiding, "epoll");
	expect_not(state, hiding, "100.0 %  tid 4711 server\n");
	expect(state, hiding, "\n  hidden idle threads: 1, with 9.0 s (90.1 %)\n\n600 ms");
	expect(state, hiding, "\n\n  hidden idle stacks: 1, with 9.0 s (90.1 %)\n\nmodule");
	expect_not(state, plain, "hidden");
}

/* A thread that does more than idle is in the table, at the place that the rest of its time gives it. */
static void test_partly_idle(void **state)
{
	struct fixture *f = *state;
	const char *server, *worker, *disk, *text;

	f->profile.rows.data[0].sum.total_ns -= 310 * SAMPLE_MS;
	text = report(f, hiding);
	server = strstr(text, " 96.6 %  tid 4711 server\n");
	worker = strstr(text, "  tid 4712 worker (pid 4711)\n");
	disk = strstr(text, "  tid 4713 disk (pid 4711)\n");
	assert_true(worker && server && disk && worker < server && server < disk);
	assert_null(strstr(text, "hidden idle threads"));
	text = report(f, plain);
	assert_true(strstr(text, "tid 4711 server\n") < strstr(text, "tid 4712 worker (pid 4711)\n"));
}

static void test_no_idle(void **state)
{
	struct fixture *f = *state;

	f->profile.rows.data[0].idle = false;
	assert_null(strstr(report(f, plain), "; idle"));
	expect_not(state, plain, "[idle]");
	expect(state, hiding, "epoll");
	expect_not(state, hiding, "hidden");
}

/* More than anyone reads is not shown, but told of. */
static void test_many(void **state)
{
	struct fixture *f = *state;
	const struct offcpu_row row = f->profile.rows.data[2];
	const struct offcpu_thread thread = f->profile.threads.data[2];
	const char *text;
	size_t n = 0;

	while (f->profile.rows.len < 103)
		assert_true(vec_push(&f->profile.rows, row));
	while (f->profile.threads.len < 54)
		assert_true(vec_push(&f->profile.threads, thread));
	text = report(f, plain);
	assert_non_null(strstr(text, "\n  further threads, shown with -v: 4, with 1.2 s (12.0 %)\n"));
	assert_non_null(strstr(text, "\n\n  further stacks, shown with -v: 3, with 900 ms (9.0 %)\n"));
	for (const char *p = text; (p = strstr(p, "longest ")); p++)
		n++;
	assert_int_equal(n, 2 + 100); /* the summary and the table's head */
	expect_not(state, (struct offcpu_report_options){.verbose = true}, "further");
	expect(state, (struct offcpu_report_options){.verbose = true}, "  in /usr/lib/libc.so.6  at ../sysdeps/");
}

static void test_color(void **state)
{
	const struct offcpu_report_options options = {.color = true};

	expect_not(state, plain, "\033");
	expect(state, options, "\033[1m9.0 s\033[0m  90.1 %  tid 4711 \033[1mserver\033[0m  S sleeping");
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
	expect(state, plain, "woken by:  tid 4711 \\x1b[2J\n");
	expect(state, plain, "  ? unknown  1 wait");
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
		cmocka_unit_test_setup_teardown(test_idle_is_hidden, setup, teardown),
		cmocka_unit_test_setup_teardown(test_partly_idle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_idle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_color, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_words, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stream_error, setup, teardown),
	};

	return cmocka_run_group_tests_name("report_offcpu_text", tests, NULL, NULL);
}
