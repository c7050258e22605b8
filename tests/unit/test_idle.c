/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "offcpu/idle.h"

enum { DURATION = 1000, MOST_FRAMES = 8 };

/* Stacks are written as their functions' names, innermost first. */
struct named {
	struct stack stack;
	struct frame frames[MOST_FRAMES];
};

struct test_wait {
	const char *kernel[MOST_FRAMES];
	const char *user[MOST_FRAMES];
	uint64_t ns; /* 0: all of the time */
	uint64_t runnable_ns;
	char state; /* 0: S */
	pid_t tid;  /* 0: the first */
};

struct fixture {
	struct offcpu_profile profile;
	struct named stacks[16];
	size_t nstacks;
};

static const struct stack *name(struct fixture *f, const char *const names[])
{
	struct named *named = &f->stacks[f->nstacks++];

	assert_true(f->nstacks <= sizeof(f->stacks) / sizeof(f->stacks[0]));
	*named = (struct named){.stack = {.data = named->frames}};
	for (; named->stack.len < MOST_FRAMES && names[named->stack.len]; named->stack.len++) {
		const char *symbol = names[named->stack.len];

		named->frames[named->stack.len] = (struct frame){
			.symbol = symbol,
			.kind = strncmp(symbol, "java.", 5) == 0 ? FRAME_KIND_JAVA : FRAME_KIND_NATIVE,
		};
	}
	return named->stack.len ? &named->stack : NULL;
}

static void add(struct fixture *f, const struct test_wait *wait)
{
	struct offcpu_row row = {
		.pid = 1,
		.tid = wait->tid ? wait->tid : 1,
		.state = wait->state ? wait->state : 'S',
		.kernel = name(f, wait->kernel),
		.user = name(f, wait->user),
	};
	struct offcpu_thread thread = {.pid = 1, .tid = row.tid};
	size_t i = 0;

	offcpu_sum_add(&row.sum, wait->ns ? wait->ns : DURATION, wait->runnable_ns);
	assert_true(offcpu_profile_add_row(&f->profile, row));
	while (i < f->profile.threads.len && f->profile.threads.data[i].tid != row.tid)
		i++;
	if (i == f->profile.threads.len)
		assert_true(offcpu_profile_add_thread(&f->profile, &thread));
	offcpu_sum_merge(&f->profile.threads.data[i].sum, &row.sum);
}

static void deinit(struct fixture *f)
{
	offcpu_profile_deinit(&f->profile);
}

/* Whether all of these waits are idle; either all or none are. */
static bool are_idle(const struct test_wait *waits, size_t n)
{
	struct fixture f = {.profile.duration_ns = DURATION};
	uint64_t ns = 0, of_threads = 0;
	size_t idle = 0;

	for (size_t i = 0; i < n; i++)
		add(&f, &waits[i]);
	assert_true(offcpu_mark_idle(&f.profile));
	for (size_t i = 0; i < n; i++) {
		idle += f.profile.rows.data[i].idle;
		ns += f.profile.rows.data[i].idle ? f.profile.rows.data[i].sum.total_ns : 0;
	}
	for (size_t i = 0; i < f.profile.threads.len; i++)
		of_threads += f.profile.threads.data[i].idle_ns;
	assert_int_equal(of_threads, ns);
	assert_true(idle == 0 || idle == n);
	deinit(&f);
	return idle;
}

static bool is_idle(struct test_wait wait)
{
	return are_idle(&wait, 1);
}

/* What the kernel waits for, whatever the program calls it. */
static void test_kernel(void **state)
{
	static const char *const work[] = {
		"ep_poll",           "poll_schedule_timeout.constprop.0",
		"pipe_read",         "__x64_sys_epoll_pwait2",
		"__arm64_sys_ppoll", "do_mq_timedreceive",
		"inet_csk_accept",   "__do_sys_pause",
		"n_tty_read",        "io_cqring_wait",
		"__sys_accept4",     "eventfd_read",
		"timerfd_read_iter", "__x64_sys_rt_sigtimedwait",
	};
	static const char *const other[] = {
		"pipe_write",
		"do_nanosleep",
		"__x64_sys_clock_nanosleep",
		"sk_wait_data",
		"do_wait",
		"request_wait_answer",
		"unix_stream_read_generic",
		"locks_lock_inode_wait",
		"vfs_read",
		"futex_lock_pi",
		"ep_pollx",
		"__x64_sys_polling",
	};

	for (size_t i = 0; i < sizeof(work) / sizeof(work[0]); i++)
		if (!is_idle((struct test_wait){.kernel = {work[i]}, .user = {"f"}}))
			fail_msg("%s is not idle", work[i]);
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		if (is_idle((struct test_wait){.kernel = {other[i]}, .user = {"f", "main"}}))
			fail_msg("%s is idle", other[i]);
	assert_true(is_idle((struct test_wait){.kernel = {"schedule_timeout", "ep_poll"}}));
	assert_false(is_idle((struct test_wait){.kernel = {NULL}, .user = {NULL}}));
}

/* Only sleeps, and not those of a process, whose threads nobody has counted. */
static void test_state(void **state)
{
	struct test_wait wait = {.kernel = {"ep_poll"}};
	struct fixture f = {.profile.duration_ns = DURATION};

	assert_true(is_idle(wait));
	wait.state = 'D';
	assert_false(is_idle(wait));
	wait.state = 'R';
	assert_false(is_idle(wait));

	wait.state = 'S';
	add(&f, &wait);
	f.profile.rows.data[0].tid = 0;
	assert_true(offcpu_mark_idle(&f.profile));
	assert_false(f.profile.rows.data[0].idle);
	deinit(&f);
}

#define FUTEX                                                                                                          \
	{                                                                                                              \
		"futex_do_wait", "futex_wait", "do_futex"                                                              \
	}

static void test_conditions(void **state)
{
	assert_true(is_idle((struct test_wait){.kernel = FUTEX,
					  .user = {"__futex_abstimed_wait_common64", "__pthread_cond_wait_common",
						   "pthread_cond_wait@@GLIBC_2.3.2", "take_job", "pool"}}));
	assert_true(is_idle((struct test_wait){.kernel = FUTEX, .user = {"___pthread_cond_timedwait64", "pool"}}));
	assert_true(is_idle((struct test_wait){.kernel = FUTEX,
					  .user = {"syscall", "<std::thread::thread::Thread>::park_timeout", "recv"}}));
	assert_true(is_idle(
		(struct test_wait){.kernel = FUTEX,
			      .user = {"syscall", "std::sys::sync::condvar::futex::Condvar::wait_optional_timeout"}}));
	assert_true(is_idle(
		(struct test_wait){.kernel = FUTEX, .user = {"runtime.futex", "runtime.notesleep", "runtime.mPark"}}));
	assert_true(is_idle((struct test_wait){
		.kernel = FUTEX,
		.user = {"pthread_cond_wait", "std::condition_variable::wait(std::unique_lock<std::mutex>&)",
			 "asio::event::wait<asio::mutex::scoped_lock>(asio::mutex::scoped_lock&)", "blocking_pop",
			 "clock_tick", "BlockingQueue::take"}}));
}

/* A futex that nobody calls a condition variable may be a lock, and so may a semaphore. */
static void test_futex(void **state)
{
	assert_false(
		is_idle((struct test_wait){.kernel = FUTEX, .user = {"__lll_lock_wait", "pthread_mutex_lock", "work"}}));
	assert_false(is_idle((struct test_wait){.kernel = FUTEX, .user = {"syscall", "spin", "work"}}));
	assert_false(is_idle((struct test_wait){.kernel = FUTEX, .user = {NULL}}));
	assert_false(is_idle((struct test_wait){.kernel = FUTEX, .user = {"__new_sem_wait_slow64", "work"}}));
	assert_false(is_idle((struct test_wait){.kernel = FUTEX, .user = {"pthread_cond_broadcast", "work"}}));
	assert_false(is_idle((struct test_wait){.kernel = FUTEX, .user = {"wait_seconds", "epoll_wait"}}));
	assert_false(is_idle((struct test_wait){.kernel = FUTEX, .user = {"__pthread_clockjoin_ex", "main"}}));
	assert_false(is_idle((struct test_wait){.user = {"pthread_barrier_wait", "main"}}));
}

/* Java's own threads wait for semaphores that are only theirs. */
static void test_java(void **state)
{
	assert_true(is_idle((struct test_wait){
		.kernel = FUTEX, .user = {"__new_sem_wait_slow64", "PosixSemaphore::wait()", "GangWorker::loop()"}}));
	assert_true(is_idle((struct test_wait){
		.kernel = FUTEX, .user = {"__new_sem_wait_slow64", "PosixSemaphore::wait()", "os::signal_wait()"}}));
	assert_true(is_idle((struct test_wait){.kernel = FUTEX,
					  .user = {"pthread_cond_wait", "os::PlatformMonitor::wait(long)", "Monitor::wait(long)",
						   "JVM_WaitForReferencePendingList"}}));
}

#define PARK         "pthread_cond_wait", "Parker::park", "java.util.concurrent.locks.LockSupport.park"
#define SYNCHRONIZER "java.util.concurrent.locks.AbstractQueuedSynchronizer"

/* Its packages have to do with locks, its pools have not. */
static void test_java_library(void **state)
{
	struct test_wait semaphores[] = {
		{.kernel = FUTEX, .user = {PARK, "java.util.concurrent.Semaphore.acquire"}},
		{.kernel = FUTEX, .user = {PARK, "java.util.concurrent.Semaphore.acquire"}, .tid = 2},
	};

	assert_true(is_idle((struct test_wait){.kernel = FUTEX,
					  .user = {PARK, SYNCHRONIZER "$ConditionObject.await",
						   "java.util.concurrent.LinkedBlockingQueue.take"}}));
	assert_false(is_idle((struct test_wait){
		.kernel = FUTEX,
		.user = {PARK, SYNCHRONIZER ".acquire", "java.util.concurrent.locks.ReentrantLock.lock"}}));
	assert_false(
		is_idle((struct test_wait){.kernel = FUTEX, .user = {PARK, "java.util.concurrent.CountDownLatch.await"}}));
	assert_false(is_idle((struct test_wait){.kernel = FUTEX, .user = {"pthread_cond_wait", "java.lang.Thread.sleep"}}));
	assert_false(is_idle((struct test_wait){
		.kernel = FUTEX, .user = {PARK, SYNCHRONIZER "$ConditionObject.await", "lock_of_the_program"}}));
	assert_true(are_idle(semaphores, 2));
	assert_false(is_idle(semaphores[0]));
}

/* Threads that wait for a semaphore in one place take work from there; one thread, or in two places, may want a lock. */
static void test_semaphores(void **state)
{
	struct test_wait waits[] = {
		{.kernel = FUTEX, .user = {"__new_sem_wait_slow64", "take_work", "worker"}},
		{.kernel = FUTEX, .user = {"__new_sem_wait_slow64", "take_work", "worker"}, .tid = 2},
	};

	assert_true(are_idle(waits, 2));
	assert_false(is_idle(waits[0]));
	waits[1].user[1] = "enter";
	assert_false(are_idle(waits, 2));
	waits[1].user[1] = "take_work";
	waits[1].ns = DURATION / 2; /* it mostly works */
	assert_false(are_idle(waits, 2));
}

/* Whatever call it sleeps with. */
static void test_sleeps(void **state)
{
	assert_false(is_idle((struct test_wait){.kernel = {"do_select"}, .user = {"select", "pysleep", "time_sleep", "main"}}));
	assert_false(is_idle((struct test_wait){.kernel = {"poll_schedule_timeout"}, .user = {"select", "time_sleep", "main"}}));
	assert_false(is_idle((struct test_wait){.kernel = FUTEX, .user = {"pthread_cond_timedwait", "JavaThread::sleep(long)", "JVM_Sleep"}}));
}

/* The queue of a thread pool; but not the interpreter's own lock below it, nor any other lock. */
static void test_python_queue(void **state)
{
	assert_true(is_idle(
		(struct test_wait){.kernel = FUTEX,
			      .user = {"__new_sem_wait_slow64", "PyThread_acquire_lock_timed",
				       "_queue_SimpleQueue_get_impl", "_queue_SimpleQueue_get", "thread_run"}}));
	assert_false(is_idle((struct test_wait){.kernel = FUTEX,
					   .user = {"pthread_cond_timedwait", "take_gil", "PyEval_RestoreThread",
						    "_queue_SimpleQueue_get_impl", "_queue_SimpleQueue_get"}}));
	assert_false(is_idle((struct test_wait){.kernel = FUTEX,
					   .user = {"__new_sem_wait_slow64", "PyThread_acquire_lock_timed",
						    "lock_PyThread_acquire_lock", "_queue_SimpleQueue_get"}}));
	assert_false(is_idle(
		(struct test_wait){.kernel = FUTEX, .user = {"__new_sem_wait_slow64", "PyThread_acquire_lock_timed"}}));
}

/* However it is waited for, a lock is no work. */
static void test_locks(void **state)
{
	static const char *const locks[] = {
		"pthread_mutex_cond_lock",
		"WaitOnLock",
		"take_gil",
		"PyEval_RestoreThread",
		"ObjectMonitor::enter(JavaThread*)",
		"<std::sys::sync::rwlock::futex::RwLock>::read_contended",
		"parking_lot::raw_mutex::RawMutex::lock_slow",
		"runtime.lock2",
		"lock_wait",
	};

	for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++) {
		if (is_idle((struct test_wait){.kernel = FUTEX, .user = {"pthread_cond_wait", locks[i], "main"}}))
			fail_msg("%s is idle", locks[i]);
		if (is_idle((struct test_wait){.kernel = {"ep_poll"}, .user = {"epoll_wait", "WaitLatch", locks[i]}}))
			fail_msg("%s is idle", locks[i]);
	}
}

static void test_without_kernel_stacks(void **state)
{
	assert_true(is_idle((struct test_wait){.user = {"__GI___poll", "main"}}));
	assert_true(is_idle((struct test_wait){.user = {"__libc_accept@GLIBC_2.2.5", "main"}}));
	assert_false(is_idle((struct test_wait){.user = {"__clock_nanosleep_time64", "main"}}));
	assert_true(is_idle((struct test_wait){.user = {"__syscall_cancel_arch", "__internal_syscall_cancel",
						   "__syscall_cancel", "epoll_wait", "main"}}));
	assert_true(is_idle((struct test_wait){.user = {"__futex_abstimed_wait_common", "pthread_cond_wait", "main"}}));
	assert_false(is_idle((struct test_wait){.user = {"read", "main"}}));
	assert_false(is_idle((struct test_wait){.user = {"write", "poll", "main"}}));
	assert_false(is_idle((struct test_wait){.user = {"pollute", "main"}}));
	assert_false(is_idle((struct test_wait){.user = {"pthread_mutex_lock", "main"}}));
}

static void test_time(void **state)
{
	assert_true(is_idle((struct test_wait){.kernel = {"ep_poll"}, .ns = 800}));
	assert_false(is_idle((struct test_wait){.kernel = {"ep_poll"}, .ns = 799}));
	/* Three threads that are idle a third of the time are not idle. */
	assert_false(are_idle((const struct test_wait[]){{.kernel = {"ep_poll"}, .ns = 333},
						    {.kernel = {"ep_poll"}, .ns = 333, .tid = 2},
						    {.kernel = {"ep_poll"}, .ns = 333, .tid = 3}},
			      3));
}

/* A thread that was woken and has no CPU is not idle, however little it does. */
static void test_starving(void **state)
{
	assert_false(is_idle((struct test_wait){.kernel = {"ep_poll"}, .runnable_ns = DURATION}));
	assert_false(is_idle((struct test_wait){.kernel = {"ep_poll"}, .runnable_ns = 201}));
	assert_true(is_idle((struct test_wait){.kernel = {"ep_poll"}, .runnable_ns = 200}));
	/* It sleeps for long enough, but not in one place. */
	assert_false(are_idle((const struct test_wait[]){{.kernel = {"ep_poll"}, .ns = 900, .runnable_ns = 200},
						    {.kernel = {"sk_wait_data"}, .ns = 100}},
			      2));
	assert_false(is_idle((struct test_wait){.kernel = {"ep_poll"}, .ns = 900, .runnable_ns = 901})); /* nonsense */
}

/* Two lines of one function are one place, also when one of them has a timeout; two functions are not. */
static void test_places(void **state)
{
	struct test_wait waits[] = {
		{.kernel = FUTEX, .user = {"pthread_cond_wait", "take", "pool"}, .ns = 500},
		{.kernel = FUTEX, .user = {"__futex", "pthread_cond_timedwait", "take", "pool"}, .ns = 400},
	};

	assert_true(are_idle(waits, 2));
	waits[1].user[2] = "give";
	assert_false(are_idle(waits, 2));
	waits[1].user[2] = "take";
	waits[1].user[3] = "other";
	assert_false(are_idle(waits, 2));
	waits[1].user[3] = "pool";
	waits[1].tid = 2;
	assert_false(are_idle(waits, 2));
}

/* What else the thread does stays. */
static void test_other_waits(void **state)
{
	struct fixture f = {.profile.duration_ns = DURATION};

	add(&f, &(struct test_wait){.kernel = {"ep_poll"}, .user = {"epoll_wait", "loop"}, .ns = 850});
	add(&f, &(struct test_wait){.kernel = FUTEX, .user = {"pthread_mutex_lock", "loop"}, .ns = 100});
	add(&f, &(struct test_wait){.kernel = {"ep_poll"}, .user = {"epoll_wait", "elsewhere"}, .ns = 50});
	assert_true(offcpu_mark_idle(&f.profile));
	assert_true(f.profile.rows.data[0].idle);
	assert_false(f.profile.rows.data[1].idle);
	assert_false(f.profile.rows.data[2].idle);
	assert_int_equal(f.profile.threads.data[0].idle_ns, 850);
	deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel),       cmocka_unit_test(test_state),
		cmocka_unit_test(test_conditions),   cmocka_unit_test(test_futex),
		cmocka_unit_test(test_locks),        cmocka_unit_test(test_without_kernel_stacks),
		cmocka_unit_test(test_time),         cmocka_unit_test(test_places),
		cmocka_unit_test(test_other_waits),  cmocka_unit_test(test_python_queue),
		cmocka_unit_test(test_starving),     cmocka_unit_test(test_java),
		cmocka_unit_test(test_semaphores),   cmocka_unit_test(test_sleeps),
		cmocka_unit_test(test_java_library),
	};

	return cmocka_run_group_tests_name("offcpu_idle", tests, NULL, NULL);
}
