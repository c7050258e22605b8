/* SPDX-License-Identifier: MIT */
/* Beside what test_text_format.c shows: how single values read, for parameter names of every kind. */
#include "cmocka_all.h"

#include <stdlib.h>

#include "report/text_syscall.h"
#include "sample.h"

/*
 * An architecture with two calls: one that has six parameters of the given names, and one without any. Of two threads, if
 * `others` has the arguments of a second one.
 */
static char *call_text(const char *params, int64_t nr, const uint64_t *args, const uint64_t *others)
{
	const struct syscall_info calls[] = {{.name = "call", .args = params}, {.name = "nothing", .args = ""}};
	const struct arch arch = {.syscalls = calls, .nsyscalls = 2};
	struct snap_thread threads[2] = {{.syscall = {.state = SYSCALL_IN, .nr = nr}}, {.syscall = {.state = SYSCALL_IN, .nr = nr}}};
	const struct snapshot snap = {.arch = &arch};
	const struct trace_thread shown[] = {{.snap = &snap, .thread = &threads[0]}, {.snap = &snap, .thread = &threads[1]}};
	char *text = NULL;
	size_t len;
	struct text t = {.out = open_memstream(&text, &len)};

	assert_non_null(t.out);
	memcpy(threads[0].syscall.args, args, sizeof(threads[0].syscall.args));
	if (others)
		memcpy(threads[1].syscall.args, others, sizeof(threads[1].syscall.args));
	text_syscall(&t, (const struct trace_thread *const[]){&shown[0], &shown[1]}, others ? 2 : 1, 0);
	fclose(t.out);
	return text;
}

static void expect(const char *params, const char *want, const uint64_t *args, const uint64_t *others)
{
	char *text = call_text(params, 0, args, others);

	assert_string_equal(text, want);
	free(text);
}

#define EXPECT(params, want, ...) expect(params, want, (const uint64_t[6]){__VA_ARGS__}, NULL)

static void test_numbers(void **state)
{
	EXPECT("fd,fd,fd,fd", "call(fd=0, fd=-1, fd=-1, fd=100000)", 0, UINT32_MAX, UINT64_MAX, 100000);
	EXPECT("upid,timeout,fildes", "call(upid=-5, timeout=-1, fildes=3)", (uint64_t)-5, UINT32_MAX, 3);
	EXPECT("timeout", "call(timeout=0x7ffc00001000)", UINT64_C(0x7ffc00001000)); /* some are pointers */
	EXPECT("fd", "call(fd=-100000)", (uint32_t)-100000);
}

static void test_sizes(void **state)
{
	EXPECT("count,len,size,vlen", "call(count=4194304, len=65536, size=0, vlen=4294967296)", 4194304, 65536, 0,
	       UINT64_C(1) << 32);
	EXPECT("count", "call(count=-1)", UINT64_MAX);
	EXPECT("addrlen", "call(addrlen=0x7ffc00001000)", UINT64_C(0x7ffc00001000)); /* some are pointers */
}

static void test_bits(void **state)
{
	EXPECT("flags,op,prot,mask,cmd,oflag", "call(flags=0x1, op=0x80, prot=0, mask=0x1ff, cmd=0x5401, oflag=-1)", 1,
	       0x80, 0, 0x1ff, 0x5401, UINT32_MAX);
	EXPECT("flags", "call(flags=0x8000000000000000)", UINT64_C(1) << 63);
}

/* Where the name does not tell, the value does: small ones are numbers, large ones addresses. */
static void test_guesses(void **state)
{
	EXPECT("a,b,c,d,e,f", "call(a=0, b=65535, c=65536, d=0x7f0000000000, e=-4096, f=-22)", 0, 65535, 65536,
	       UINT64_C(0x7f0000000000), (uint64_t)-4096, (uint32_t)-22);
	EXPECT("a,b", "call(a=0xffffffffffffefff, b=4294963199)", (uint64_t)-4097, (uint32_t)-4097);
}

static void test_pointers(void **state)
{
	EXPECT("buf,uaddr,filename,ufds", "call(buf=NULL, uaddr=0x401000, filename=0x7f0000000000, ufds=0x10)", 0, 0x401000,
	       UINT64_C(0x7f0000000000), 16);
	EXPECT("mode", "call(mode=0644)", 0644);
}

/* By names of the real calls. */

static struct snapshot *snap;

static unsigned room; /* columns */

static char *real_text(const char *name, const uint64_t *args, const struct stack *user, const struct stack *kernel)
{
	struct snap_thread thread = {.syscall = {.state = SYSCALL_IN}};
	const struct trace_thread shown = {.snap = snap, .thread = &thread, .user = user, .kernel = kernel};
	uint64_t stack[] = {1, 500000000, 1000, 0, 7, 2000000000};
	char *text = NULL;
	size_t len;
	struct text t = {.out = open_memstream(&text, &len)};

	while (!arch_syscall(&arch_x86_64, thread.syscall.nr) ||
	       strcmp(arch_syscall(&arch_x86_64, thread.syscall.nr)->name, name) != 0)
		thread.syscall.nr++;
	memcpy(thread.syscall.args, args, sizeof(thread.syscall.args));
	thread.stack = (struct mem_copy){.start = 0x7ffc00000000, .len = sizeof(stack), .region_end = 0x7ffc00001000,
					 .data = (uint8_t *)stack};
	text_syscall(&t, (const struct trace_thread *const[]){&shown}, 1, room);
	fclose(t.out);
	return text;
}

static void expect_real(const char *name, const char *want, const uint64_t *args)
{
	char *text = real_text(name, args, NULL, NULL);

	assert_string_equal(text, want);
	free(text);
}

#define REAL(name, want, ...) expect_real(name, want, (const uint64_t[6]){__VA_ARGS__})

static int make_snapshot(void **state)
{
	snap = sample_snapshot();
	snap->taken_at_ns = INT64_C(999) * 1000000000;
	snap->taken_at_monotonic_ns = 500000000;
	return 0;
}

static int drop_snapshot(void **state)
{
	snapshot_destroy(snap);
	return 0;
}

static void test_futexes(void **state)
{
	REAL("futex", "futex(uaddr=0x7f0000000000, op=FUTEX_WAIT_BITSET|PRIVATE|CLOCK_REALTIME, val=0, utime=none)",
	     UINT64_C(0x7f0000000000), 0x189, 0, 0, 0, 0xffffffff);
	REAL("futex", "futex(uaddr=0x10, op=FUTEX_WAIT|PRIVATE, val=2, utime=1.5 s)", 16, 128, 2, UINT64_C(0x7ffc00000000));
	REAL("futex", "futex(uaddr=0x10, op=FUTEX_WAIT_BITSET|CLOCK_REALTIME, val=2, utime=1.0 s from now)", 16, 0x109, 2,
	     UINT64_C(0x7ffc00000010), 0, 0xffffffff);
	REAL("futex", "futex(uaddr=0x10, op=FUTEX_WAIT_BITSET, val=2, utime=1.0 s from now, val3=7)", 16, 9, 2,
	     UINT64_C(0x7ffc00000000), 0, 7);
	REAL("futex", "futex(uaddr=0x10, op=FUTEX_LOCK_PI|PRIVATE, val=0, utime=none)", 16, 0x86, 0, 0);
	REAL("futex", "futex(uaddr=0x10, op=FUTEX_WAIT_REQUEUE_PI, val=0, utime=none, uaddr2=0x20, val3=0)", 16, 11, 0, 0, 32, 0);
	REAL("futex", "futex(uaddr=0x10, op=0x7f, val=0, utime=none, uaddr2=NULL, val3=0)", 16, 0x7f, 0, 0, 0, 0);
}

static void test_times(void **state)
{
	REAL("epoll_wait", "epoll_wait(epfd=5, events=0x7f0000000000, maxevents=1, timeout=none)", 5,
	     UINT64_C(0x7f0000000000), 1, 0xffffffff);
	REAL("epoll_wait", "epoll_wait(epfd=5, events=0x7f0000000000, maxevents=1, timeout=100 ms)", 5,
	     UINT64_C(0x7f0000000000), 1, 100);
	REAL("poll", "poll(ufds=0x7f0000000000, nfds=1, timeout_msecs=1 min 00 s)", UINT64_C(0x7f0000000000), 1, 60000);
	REAL("poll", "poll(ufds=NULL, nfds=0, timeout_msecs=0)", 0, 0, 0);
	REAL("ppoll", "ppoll(ufds=NULL, nfds=0, tsp=1.5 s, sigmask=NULL)", 0, 0, UINT64_C(0x7ffc00000000), 0, 772580660);
	REAL("ppoll", "ppoll(ufds=NULL, nfds=0, tsp=none, sigmask=0x10, sigsetsize=8)", 0, 0, 0, 16, 8);
	REAL("nanosleep", "nanosleep(rqtp=16 min 40 s, rmtp=NULL)", UINT64_C(0x7ffc00000010));
	REAL("nanosleep", "nanosleep(rqtp=0x7ffc00000020, rmtp=NULL)", UINT64_C(0x7ffc00000020)); /* no such time */
	REAL("nanosleep", "nanosleep(rqtp=0x7f0000000000, rmtp=NULL)", UINT64_C(0x7f0000000000)); /* was not copied */
	REAL("clock_nanosleep", "clock_nanosleep(which_clock=CLOCK_MONOTONIC, flags=TIMER_ABSTIME, rqtp=1.0 s from now, rmtp=NULL)",
	     1, 1, UINT64_C(0x7ffc00000000));
	snap->taken_at_monotonic_ns = INT64_C(2500000000);
	REAL("clock_nanosleep", "clock_nanosleep(which_clock=CLOCK_MONOTONIC, flags=TIMER_ABSTIME, rqtp=1.0 s ago, rmtp=NULL)", 1, 1,
	     UINT64_C(0x7ffc00000000));
	snap->taken_at_monotonic_ns = 0; /* an older file */
	REAL("clock_nanosleep", "clock_nanosleep(which_clock=CLOCK_MONOTONIC, flags=TIMER_ABSTIME, rqtp=0x7ffc00000000, rmtp=NULL)",
	     1, 1, UINT64_C(0x7ffc00000000));
	REAL("clock_nanosleep", "clock_nanosleep(which_clock=77, flags=0, rqtp=1.5 s, rmtp=NULL)", 77, 0, UINT64_C(0x7ffc00000000));
}

/* What they are is clear from the order. */
static void test_without_names(void **state)
{
	room = 40;
	REAL("futex", "futex(0x10, FUTEX_WAIT|PRIVATE, 2, none)", 16, 128, 2, 0);
	REAL("close", "close(fd=3)", 3);
	room = 0;
}

static void test_directories(void **state)
{
	REAL("openat", "openat(dfd=AT_FDCWD, filename=0x7f0000000000, flags=0, mode=0)", 0xffffff9c, UINT64_C(0x7f0000000000));
	REAL("openat", "openat(dfd=AT_FDCWD, filename=0x7f0000000000, flags=0x80000, mode=0600)", (uint64_t)-100,
	     UINT64_C(0x7f0000000000), 0x80000, 0600);
}

static void expect_restarted(const char *function, bool in_kernel, const uint64_t *args, const char *want)
{
	const struct stack stack = SAMPLE_STACK({.symbol = function});
	char *text = real_text("restart_syscall", args, in_kernel ? NULL : &stack, in_kernel ? &stack : NULL);

	assert_string_equal(text, want);
	free(text);
}

static void test_restarted(void **state)
{
	static const uint64_t sleeps[6] = {0, 0, 0x7ffc00000000, 0}, polls[6] = {0, 0, 100}, waits[6] = {16, 128, 2, 0};

	expect_restarted("hrtimer_nanosleep_restart", true, sleeps,
			 "clock_nanosleep(which_clock=CLOCK_REALTIME, flags=0, rqtp=1.5 s, rmtp=NULL), restarted");
	expect_restarted("clock_nanosleep@@GLIBC_2.17", false, sleeps,
			 "clock_nanosleep(which_clock=CLOCK_REALTIME, flags=0, rqtp=1.5 s, rmtp=NULL), restarted");
	expect_restarted("do_restart_poll", true, polls, "poll(ufds=NULL, nfds=0, timeout_msecs=100 ms), restarted");
	expect_restarted("futex_wait_restart", true, waits, "futex(uaddr=0x10, op=FUTEX_WAIT|PRIVATE, val=2, utime=none), restarted");
	expect_restarted("something", true, sleeps, "restart_syscall()");
}

/* The end of the name counts, and the whole of it. */
static void test_suffixes(void **state)
{
	EXPECT("epfd,f,d,op2", "call(epfd=70000, f=70000, d=70000, op2=70000)", 70000, 70000, 70000, 70000);
}

static void test_arguments_that_differ(void **state)
{
	static const uint64_t args[6] = {1, 2, 3, 4, 5, 6};

	expect("a,b,c", "call(a=…, b=2, c=…)", args, (const uint64_t[6]){7, 2, 8, 4, 5, 6});
	expect("a,b,c", "call(a=1, b=2, c=3)", args, (const uint64_t[6]){1, 2, 3, 7, 5, 6}); /* there is no fourth */
	expect("a,b,c,d,e,f", "call(a=…, b=…, c=…, d=…, e=…, f=…)", args, (const uint64_t[6]){7, 8, 9, 10, 11, 12});
}

/* Two threads that sleep for as long as their own stacks say. */
static void check_sleeps(const uint64_t times[4], const char *want)
{
	struct snap_thread threads[2];
	struct trace_thread shown[2];
	char *text = NULL;
	size_t len;
	struct text t = {.out = open_memstream(&text, &len)};

	for (size_t i = 0; i < 2; i++) {
		const uint64_t at = 0x7ffc00000000 + i * 0x1000;

		threads[i] = (struct snap_thread){.syscall = {SYSCALL_IN, 35, {at}}}; /* nanosleep */
		threads[i].stack = (struct mem_copy){
			.start = at, .len = 16, .region_end = at + 0x1000, .data = (uint8_t *)(times + i * 2)};
		shown[i] = (struct trace_thread){.snap = snap, .thread = &threads[i]};
	}
	text_syscall(&t, (const struct trace_thread *const[]){&shown[0], &shown[1]}, 2, 0);
	fclose(t.out);
	assert_string_equal(text, want);
	free(text);
}

static void test_equal_times(void **state)
{
	check_sleeps((const uint64_t[4]){1000, 0, 1000, 0}, "nanosleep(rqtp=16 min 40 s, rmtp=NULL)");
	check_sleeps((const uint64_t[4]){1000, 0, 2, 0}, "nanosleep(rqtp=…, rmtp=NULL)");
	check_sleeps((const uint64_t[4]){1000, 0, UINT64_MAX, 0}, "nanosleep(rqtp=…, rmtp=NULL)"); /* no such time */
}

/* Constants that have names, and pointers whose names do not tell. */
static void test_words(void **state)
{
	REAL("waitid", "waitid(which=P_PID, upid=7, infop=NULL, options=WEXITED|WNOWAIT, ru=NULL)", 1, 7, 0, 0x1000004);
	REAL("waitid", "waitid(which=9, upid=7, infop=NULL, options=0x10000, ru=NULL)", 9, 7, 0, 0x10000);
	REAL("wait4", "wait4(upid=-1, stat_addr=NULL, options=0, ru=NULL)", UINT32_MAX);
	REAL("flock", "flock(fd=3, cmd=LOCK_EX)", 3, 2);
	REAL("flock", "flock(fd=3, cmd=LOCK_SH|LOCK_NB)", 3, 5);
	REAL("fcntl", "fcntl(fd=3, cmd=F_OFD_SETLKW, arg=0x7ffc00000000)", 3, 38, UINT64_C(0x7ffc00000000));
	REAL("fcntl", "fcntl(fd=3, cmd=0x63, arg=0)", 3, 99);
	REAL("pselect6", "pselect6(n=0, inp=NULL, outp=NULL, exp=NULL, tsp=none, sig=NULL)", 0);
	REAL("recvfrom", "recvfrom(fd=3, ubuf=0x10, size=9, flags=0, addr=NULL, addr_len=NULL)", 3, 16, 9);
	REAL("accept", "accept(fd=3, upeer_sockaddr=NULL, upeer_addrlen=NULL)", 3);
}

static void expect_number(int64_t nr, const char *params, const char *want)
{
	char *text = call_text(params, nr, (const uint64_t[6]){1, 2, 3, 4, 5, 6}, NULL);

	assert_string_equal(text, want);
	free(text);
}

static void test_unknown_parameters(void **state)
{
	expect_number(0, NULL, "call(1, 2, 3, 4, 5, 6)");
	expect_number(1, "a", "nothing()");
	expect_number(2, "a", "syscall 2(1, 2, 3, 4, 5, 6)");
	expect_number(-1, "a", "syscall -1(1, 2, 3, 4, 5, 6)");
	expect_number(INT64_MIN, "a", "syscall -9223372036854775808(1, 2, 3, 4, 5, 6)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_guesses),
		cmocka_unit_test(test_suffixes),
		cmocka_unit_test(test_arguments_that_differ),
		cmocka_unit_test(test_unknown_parameters),
		cmocka_unit_test(test_pointers),
		cmocka_unit_test_setup_teardown(test_futexes, make_snapshot, drop_snapshot),
		cmocka_unit_test_setup_teardown(test_times, make_snapshot, drop_snapshot),
		cmocka_unit_test_setup_teardown(test_without_names, make_snapshot, drop_snapshot),
		cmocka_unit_test_setup_teardown(test_directories, make_snapshot, drop_snapshot),
		cmocka_unit_test_setup_teardown(test_equal_times, make_snapshot, drop_snapshot),
		cmocka_unit_test_setup_teardown(test_words, make_snapshot, drop_snapshot),
		cmocka_unit_test_setup_teardown(test_restarted, make_snapshot, drop_snapshot),
	};

	return cmocka_run_group_tests_name("text_syscall", tests, NULL, NULL);
}
