/* SPDX-License-Identifier: MIT */
#include "report/report.h"

static int report_one(const struct trace *trace, const struct report_options *options, FILE *out)
{
	return report_text(&trace, 1, &(const struct deadlocks){0}, options, out);
}

#define REPORT report_one
#include "report/shorten.h"
#include "report_fixture.h"

static const struct report_options grouped = {.kernel = true, .group = true};
static const struct report_options single = {.kernel = true};

static const char whole[] =
	"stakeout: server (pid 4711): 8 threads, 1 stopped (longest pause 23 µs), 2 CPUs taken for 61 µs, "
	"2 threads read again, "
	"not consistent (1 thread moved); set-up 500 µs, capture 1.9 ms, unwind 400 µs, save 100 µs, symbols 3.1 ms, total 6.0 ms\n"
	"note: BPF is not permitted: registers come from /proc\n"
	"\n"
	"tid 4715 hasher  R running  held 23 µs\n"
	"  #0                      mix  at server/hash.h:12  [inlined]\n"
	"  #1  0x0000555500004000  hash_all+0x40  in server  at server/hash.c:80\n"
	"  #2  0x00007f0000003000  <signal handler called>\n"
	"  #3  0x0000555500005000  ??  in server+0x5000\n"
	"  #4  0x0000000012345678  ??  [by stack scan]\n"
	"\n"
	"tid 4716 disk  D uninterruptible\n"
	"  k   xfs_buf_lock+0x3a [xfs]\n"
	"  k   0xffffffff81234567\n"
	"  -- no user stack: it did not stop within 1000 ms\n"
	"\n"
	"tid 4711 server  S sleeping  off-CPU 34.0 ms  CPU time 1.5 s\n"
	"  in epoll_wait(epfd=5, events=0x7ffc00001000, maxevents=10128, timeout=100 ms)\n"
	"  k   ep_poll+0x2d1\n"
	"  k   do_epoll_wait+0x8c\n"
	"  #0  0x00007f0000001056  __epoll_wait+0x56  in libc.so.6  at linux/epoll_wait.c:30\n"
	"  #1  0x0000555500001234  aeMain+0x34  in server\n"
	"\n"
	"tid 4717 evil\\x1b[31m\"\\\xef\xbf\xbd  S sleeping  ran during the capture: may be torn\n"
	"  in syscall 9999(1, 2, 3, 4, 5, 6)\n"
	"  #0  0x00007f0000002000  __futex_abstimed_wait_common+0xc4  in libc.so.6\n"
	"  -- stack ends here: no_unwind_info at 0x7f0000009999 (libc.so.6 has no CFI for this address)\n"
	"\n"
	"3 threads  S sleeping  off-CPU 12.3 s to 14.3 s\n"
	"  tid 4712 4713 worker, 4714 flusher\n"
	"  in futex(uaddr=…, op=FUTEX_WAIT_BITSET|PRIVATE|CLOCK_REALTIME, val=0, utime=none)\n"
	"  k   futex_wait_queue+0x60\n"
	"  k   futex_wait+0x15e\n"
	"  #0  0x00007f0000002000  __futex_abstimed_wait_common+0xc4  in libc.so.6\n"
	"\n"
	"tid 4718 gone  Z zombie  traced by pid 99\n"
	"  -- no user stack: it has ended and waits to be reaped\n"
	"\n"
	"module /usr/bin/server: no debug information\n";

static void test_whole(void **state)
{
	struct fixture *f = *state;
	const char *text = report(f, &f->trace, &grouped);

	assert_string_equal(text, whole);
}

static void test_summary(void **state)
{
	struct fixture *f = *state;

	f->snap->capture = (struct capture_info){.consistent = true};
	f->snap->threads.len = 1;
	f->snap->replayed = true;
	expect(state, grouped, "stakeout: server (pid 4711, replayed): 1 thread, none stopped, consistent; capture ");
}

/* What runtimes know, or why they are not shown: in the first line, and of threads, whose names are the program's. */
static void test_runtime(void **state)
{
	const struct snap_runtime python = {.name = "python", .version = "3.11.2"}, java = {.name = "java", .problem = "too old"};
	struct fixture *f = *state;
	struct trace_thread *t = &f->trace.threads.data[0];

	assert_non_null(snapshot_add_runtime(f->snap, &python));
	assert_non_null(snapshot_add_runtime(f->snap, &java));
	t->runtime = (struct thread_runtime){.runtime = "python", .name = "MainThread", .holds_gil = true, .problem = "it ran"};
	expect(state, grouped, "stakeout: server (pid 4711, python 3.11.2, java, no frames: too old): 8 threads");
	expect(state, grouped, "\ntid 4711 MainThread  S sleeping  holds the GIL  off-CPU");
	expect(state, grouped, "  -- no frames of python: it ran\n");
	t->runtime = (struct thread_runtime){.runtime = "java", .state = "PARKED", .has_daemon = true, .is_daemon = true};
	expect(state, grouped, "\ntid 4711 server  S sleeping  PARKED  daemon  off-CPU");
}

/* Where it runs: numbers of both sides, the container, or else the name of the control group. */
static void test_container(void **state)
{
	struct fixture *f = *state;

	f->snap->inner_pid = 7;
	f->snap->threads.data[0].inner_tid = 7;
	f->snap->container = (struct container){
		.cgroup = "/docker/0123", .engine = "docker",
		.id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", .pod = "1b\x1b"};
	expect(state, grouped, "stakeout: server (pid 4711, 7 in its namespace, container 0123456789ab (docker), pod 1b\\x1b): 8 threads");
	expect(state, grouped, "\ntid 4711 (7 in its namespace) server  S sleeping");
	f->snap->container = (struct container){.cgroup = "/lxc/web", .engine = "lxc", .id = "web"};
	expect(state, grouped, "(pid 4711, 7 in its namespace, container web (lxc)): 8 threads");
	f->snap->inner_pid = 0;
	f->snap->container = (struct container){.cgroup = "/system.slice/nginx.service"};
	expect(state, grouped, "(pid 4711, cgroup nginx.service): 8 threads");
}

static void test_ready_but_not_running(void **state)
{
	struct fixture *f = *state;

	f->snap->threads.data[4].capture = CAPTURE_ASLEEP;
	f->snap->threads.data[4].off_cpu_ns = 3000000;
	f->snap->threads.data[4].syscall = (struct snap_syscall){SYSCALL_IN, 39, {0}};
	expect(state, grouped, "last ran 3.0 ms ago\n  during getpid()\n"); /* it is not blocked there */
	expect(state, grouped, "\ntid 4715 hasher  R ready, no CPU  last ran 3.0 ms ago\n");
}

static const char table[] =
	"\n"
	"threads  state                off-CPU        CPU  thread                   in\n"
	"      1  R running                                4715 hasher              mix\n"
	"      1  D uninterruptible                        4716 disk                xfs_buf_lock\n"
	"      1  S sleeping           34.0 ms      1.5 s  4711 server              aeMain (epoll_wait)\n"
	"      1  S sleeping                               4717 evil\\x1b[31m\"\\\xef\xbf\xbd     __futex_abstimed_wait_common\n"
	"      3  S sleeping            14.3 s             worker …                 __futex_abstimed_wait_common (futex)\n"
	"      1  Z zombie                                 4718 gone                -\n";

/* First a table, when there is more than fits the screen. */
static void test_table(void **state)
{
	struct report_options options = grouped;

	expect_not(state, options, "threads  state ");
	options.height = 20;
	expect(state, options, table);
	expect(state, options, "\ntid 4715 hasher  R running  held 23 µs\n");
	options.height = 200;
	expect_not(state, options, "threads  state ");
	options.brief = true;
	expect(state, options, table);
	expect_not(state, options, "\ntid 4715");
	expect_not(state, options, "module ");
	options.width = 110; /* long names are shortened */
	expect(state, options, "  worker …                 __futex_a…timed_wait_common (futex)\n");
	options.width = 80;
	expect(state, options, "not consistent (1 thread moved)\n  set-up 500 µs, capture 1.9 ms, ");
	expect(state, options, "\nthreads  state    off-CPU        CPU  thread              in\n"
			       "      1  R                            4715 hasher         mix\n");
	expect(state, options, "      3  S         14.3 s             worker …            __futex…ed_wait_common\n");
}

/* What was done before is told apart: the rest adds up to the total. */
static void test_replayed(void **state)
{
	struct fixture *f = *state;

	f->snap->replayed = true;
	f->trace.timings = (struct trace_timings){.setup_ns = 94000,
						  .capture_ns = 778000,
						  .unwind_ns = 742000,
						  .symbolize_ns = 941000,
						  .total_ns = 1777000};
	expect(state, grouped,
	       "; capture 778 µs when it was recorded; now set-up 94 µs, unwind 742 µs, symbols 941 µs, total 1.8 "
	       "ms\n");
}

static void test_selected(void **state)
{
	struct fixture *f = *state;

	while (f->trace.threads.len > 1)
		raw_stack_deinit(&f->trace.threads.data[--f->trace.threads.len].raw);
	expect(state, grouped, "stakeout: server (pid 4711): 8 threads (1 shown), 1 stopped");
}

/* What a thread waits for, and who has it. */
static void test_waits(void **state)
{
	struct fixture *f = *state;
	struct wait *wait = &f->trace.threads.data[0].wait;

	f->snap->threads.data[0].syscall = (struct snap_syscall){SYSCALL_IN, 202, {0x7f0000000000, 0x109, 4714, 0, 0, 0xffffffff}};
	*wait = (struct wait){.kind = WAIT_JOIN, .holder = HOLDER_THREAD, .owner = 4714, .owner_pid = 4711};
	expect(state, grouped, "  in futex(uaddr=0x7f0000000000, op=FUTEX_WAIT_BITSET|CLOCK_REALTIME, val=4714, utime=none)\n"
			       "  waits for the end of a thread: tid 4714 flusher\n");
	for (size_t i = 0; i < f->trace.threads.len; i++)
		if (f->trace.threads.data[i].thread->tid == 4714)
			f->trace.threads.data[i].runtime.name = "MainThread"; /* as the report calls it */
	expect(state, grouped, "  waits for the end of a thread: tid 4714 MainThread\n");
	*wait = (struct wait){.kind = WAIT_MUTEX, .address = 0x7f0000000010, .holder = HOLDER_THREAD, .owner = 4714, .owner_pid = 4711};
	expect(state, grouped, "  waits for mutex 0x7f0000000010, held by tid 4714 MainThread\n");
	wait->path = "/usr/bin/server";
	wait->offset = 0x4010;
	wait->holder = HOLDER_ENDED;
	expect(state, grouped, "  waits for mutex 0x7f0000000010 (server+0x4010), held by tid 4714, which is no thread of the process any more\n");
	wait->holder = HOLDER_NONE;
	expect(state, grouped, "  waits for mutex 0x7f0000000010 (server+0x4010), which nobody holds just now\n");
	*wait = (struct wait){.kind = WAIT_WRITE_LOCK, .word = 0x7f0000000018, .holder = HOLDER_READERS};
	expect(state, grouped, "  waits for the right to write under lock 0x7f0000000018, held by readers, which it does not record\n");
	*wait = (struct wait){.kind = WAIT_SEMAPHORE, .word = 0x7f0000000018};
	expect(state, grouped, "  waits for semaphore 0x7f0000000018\n");
}

/* Threads of several processes with the same stacks are shown as one, and what is to be said of all is said once. */
static void test_several_processes(void **state)
{
	struct fixture *f = *state;
	struct snapshot *other = sample_snapshot();
	struct trace trace;
	const struct trace *both[] = {&f->trace, &trace};
	static const struct module_info libc = {.path = "/usr/lib/libc.so.6", .build_id = "ab12"};
	const struct stack moved = SAMPLE_STACK({.address = 0x7e0000002000, .symbol = "__futex_abstimed_wait_common", .offset = 0xc4,
						 .has_offset = true, .module = &libc, .module_offset = 0x2000});
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	other->pid = 5711;
	for (size_t i = 0; i < other->threads.len; i++)
		other->threads.data[i].tid += 1000;
	sample_trace(&trace, other);
	for (size_t i = 1; i < 4; i++) /* at another address */
		trace.threads.data[i].user = &moved;
	assert_int_equal(report_text(both, 2, &(const struct deadlocks){0}, &grouped, out), 0);
	fclose(out);
	assert_non_null(strstr(text, "stakeout: server (pid 4711): 8 threads"));
	assert_non_null(strstr(text, "\nstakeout: server (pid 5711): 8 threads"));
	assert_non_null(strstr(text, "\n6 threads  S sleeping  off-CPU 12.3 s to 14.3 s\n"
				     "  tid 4711:4712 4711:4713 worker, 4711:4714 flusher, 5711:5712 5711:5713 worker, 5711:5714 flusher\n"));
	assert_non_null(strstr(text, "\n2 threads  S sleeping  off-CPU 34.0 ms  CPU time 1.5 s\n  tid 4711 5711 server\n"));
	assert_null(strstr(strstr(text, "\nnote: ") + 1, "\nnote: "));
	assert_null(strstr(strstr(text, "\nmodule ") + 1, "\nmodule "));
	free(text);
	trace_deinit(&trace);
	snapshot_destroy(other);
}

static void test_no_group(void **state)
{
	expect(state, single, "\ntid 4712 worker  S sleeping  off-CPU 12.3 s\n  in futex(uaddr=0x7f0000100000, ");
	expect(state, single, "\ntid 4714 flusher  S sleeping  off-CPU 14.3 s\n  in futex(uaddr=0x7f0000100002, ");
	expect_not(state, single, "3 threads");
}

/* On a terminal nothing is longer than its lines, whatever its kind. */
static void test_lines_fit(void **state)
{
	struct fixture *f = *state;
	const struct report_options options = {
		.group = true, .registers = true, .kernel = true, .width = 80, .no_addresses = true};
	const char *text;

	f->snap->threads.data[0].syscall =
		(struct snap_syscall){SYSCALL_IN, 202, {0x7f0000000000, 0x109, 4714, 0, 0, 0xffffffff}};
	f->snap->threads.data[0].regs.valid = (1u << f->snap->arch->nuser_regs) - 1;
	text = report(f, &f->trace, &options);
	while (*text) {
		const size_t len = strcspn(text, "\n");
		char line[1000];

		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		if (text_columns(line) > 80)
			fail_msg("%s", line);
		text += len + (text[len] == '\n');
	}
}

static void test_registers(void **state)
{
	const struct report_options options = {.group = true, .registers = true};

	expect(state, options, "\n       rip 0x00007f0000001056       rsp 0x00007ffc00000000\n");
	expect_not(state, options, "3 threads");
}

static void test_stack_pointers(void **state)
{
	const struct report_options options = {.group = true, .show_sp = true};

	expect(state, options, "  #1  0x0000555500001234  sp 0x00007ffc00000010  aeMain+0x34");
	expect(state, options, "  #0                                             mix  at");
}

static void test_kernel_stacks(void **state)
{
	struct fixture *f = *state;

	f->snap->capture.kernel_stack_error = "reading them needs CAP_SYS_ADMIN";
	f->trace.kernel_symbols_error = "kallsyms is hidden";
	expect(state, grouped, "note: no kernel stacks: reading them needs CAP_SYS_ADMIN\n");
	expect(state, grouped, "note: no names in kernel stacks: kallsyms is hidden\n");
	expect_not(state, (struct report_options){.group = true}, "kernel");
	expect_not(state, (struct report_options){.group = true}, "ep_poll");
}

static void test_verbose(void **state)
{
	const struct report_options options = {.group = true, .verbose = true};

	expect(state, options, "  in /usr/lib/libc.so.6  at ../sysdeps/unix/sysv/linux/epoll_wait.c:30\n");
}

/* Who takes part in the first thread's stack, in place of what was there. */
static void put_modules(struct fixture *f, struct stack *stack, const struct module_info *modules, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_true(vec_push(stack, (struct frame){.symbol = "f", .module = &modules[i]}));
	for (size_t i = 0; i < f->trace.threads.len; i++)
		f->trace.threads.data[i].user = i ? NULL : stack;
}

/* Help is said once for all that it is for; and what a replayed file calls a build-id is foreign text. */
static void test_lacking(void **state)
{
	static const char help[] = "install its debug package";
	static const struct module_info modules[] = {
		{.path = "/lib/a\033[2J.so", .problem = "no debug info: \033[31m", .build_id = "ab12", .help = help},
		{.path = "/lib/whole.so", .build_id = "cd34"},
		{.path = "/lib/b.so", .problem = "no symbols", .build_id = "\033]0;mine\007", .help = help},
		{.path = "/lib/c.so", .problem = "it has gone"},
	};
	struct stack stack = {0};

	put_modules(*state, &stack, modules, 4);
	expect(state, grouped,
	       "\n\nmodule /lib/a\\x1b[2J.so: no debug info: \\x1b[31m (build-id ab12)\n"
	       "module /lib/b.so: no symbols (build-id \\x1b]0;mine\\x07)\n"
	       "  install its debug package\n"
	       "module /lib/c.so: it has gone\n");
	expect_not(state, grouped, "\033");
	expect_not(state, grouped, "whole.so:");
	vec_deinit(&stack);
}

static void test_color(void **state)
{
	const struct report_options options = {.group = true, .kernel = true, .color = true};

	expect_not(state, grouped, "\033");
	expect(state, options, "\033[33mep_poll\033[0m+0x2d1");
	expect(state, options, "\033[32mR running\033[0m");
	expect(state, options, "\033[31m  -- stack ends here");
	expect(state, options, "evil\\x1b[31m");
}

/* Tids of large pools: ranges where they follow each other, and lines that stay readable. */
static void test_large_groups(void **state)
{
	struct fixture *f = *state;
	struct snap_thread *threads = calloc(200, sizeof(*threads));
	struct trace trace = {.snap = f->snap};
	const char *text;

	for (int i = 0; i < 200; i++) {
		threads[i] = sample_thread(5000 + (i < 100 ? i : 3 * i), "pool", 'S');
		assert_true(
			vec_push(&trace.threads, (struct trace_thread){.snap = f->snap, .thread = &threads[i], .user = &sample_futex}));
	}
	text = report(f, &trace, &grouped);
	assert_non_null(strstr(text, "\n200 threads  S sleeping\n  tid 5000-5099 5300 5303 5306 "));
	assert_non_null(strstr(text, " 5597 pool\n"));
	for (const char *line = strstr(text, "\n  tid"); *line; line += 1 + strcspn(line + 1, "\n"))
		assert_true(strcspn(line + 1, "\n") <= 100);
	trace_deinit(&trace);
	free(threads);
}

static void test_stream_error(void **state)
{
	struct fixture *f = *state;
	FILE *full = fopen("/dev/full", "w");
	struct full_once once;

	assert_non_null(full);
	assert_int_equal(report_one(&f->trace, &grouped, full), -ENOSPC);
	fclose(full);
	full = full_once_open(&once);
	assert_int_equal(report_one(&f->trace, &grouped, full), -ENOSPC);
	assert_true(once.writes > 2);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_summary, setup, teardown),
		cmocka_unit_test_setup_teardown(test_runtime, setup, teardown),
		cmocka_unit_test_setup_teardown(test_container, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ready_but_not_running, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_several_processes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_table, setup, teardown),
		cmocka_unit_test_setup_teardown(test_selected, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_group, setup, teardown),
		cmocka_unit_test_setup_teardown(test_registers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lines_fit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replayed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stack_pointers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kernel_stacks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_verbose, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lacking, setup, teardown),
		cmocka_unit_test_setup_teardown(test_color, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_groups, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stream_error, setup, teardown),
	};

	return cmocka_run_group_tests_name("report_text", tests, NULL, NULL);
}
