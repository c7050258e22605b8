/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <linux/futex.h>
#include <string.h>

#include "wait/locks.h"

enum { MAIN = 4711, WORKER = 4712, LOCK = 0x5000, DESCRIPTOR = 0x7f000000 };

#if defined(__x86_64__)
enum { NUMBER = 720 };
#else
enum { NUMBER = 208 };
#endif

struct fixture {
	struct snapshot *snap;
	struct wait_threads threads;
	struct stack stack;
	struct frame frame;
	struct trace_thread thread;
	struct futex_wait wait;
};

static void init(struct fixture *f, const char *function)
{
	*f = (struct fixture){.snap = snapshot_create(MAIN, arch_host()), .frame = {.symbol = function}};
	assert_non_null(f->snap);
	assert_true(vec_push(&f->snap->threads, (struct snap_thread){.tid = MAIN}));
	assert_true(vec_push(&f->snap->threads, (struct snap_thread){.tid = WORKER, .tid_address = DESCRIPTOR + NUMBER}));
	assert_true(wait_threads_init(&f->threads, f->snap));
	f->stack.data = &f->frame;
	f->stack.len = function ? 1 : 0;
	f->thread = (struct trace_thread){.snap = f->snap, .thread = &f->snap->threads.data[0], .user = &f->stack};
	f->wait = (struct futex_wait){.threads = &f->threads, .thread = &f->thread, .address = LOCK, .op = FUTEX_WAIT | FUTEX_PRIVATE_FLAG, .value = 2, .nwords = 16};
}

static void deinit(struct fixture *f)
{
	wait_threads_deinit(&f->threads);
	snapshot_destroy(f->snap);
}

static struct lock found(struct fixture *f)
{
	f->wait.names = lock_names_of(f->thread.user);
	return lock_of_futex(&f->wait);
}

static void set_mutex(struct fixture *f, uint32_t owner, uint32_t users, uint32_t kind)
{
	const uint32_t words[] = {2, 1, owner, users, kind};

	memcpy(f->wait.words, words, sizeof(words));
}

/* A name is not needed where the memory can be nothing else, and what cannot be a lock is none. */
static void test_mutex_by_its_memory(void **state)
{
	struct fixture f;

	init(&f, NULL);
	set_mutex(&f, WORKER, 1, 0);
	assert_int_equal(found(&f).kind, WAIT_MUTEX);
	assert_int_equal(found(&f).number, WORKER);
	assert_int_equal(found(&f).address, LOCK);
	assert_false(found(&f).evident); /* a few numbers look like that by chance */
	set_mutex(&f, WORKER, 0, 0); /* nobody uses it */
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	set_mutex(&f, WORKER, 1, 0x400); /* there is no such kind */
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	set_mutex(&f, 17, 1, 0); /* no thread of the process */
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	set_mutex(&f, WORKER, 1, 0);
	f.wait.value = 1;
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	f.wait.value = 2;
	f.wait.nwords = 4; /* the rest could not be read */
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	deinit(&f);
}

static void test_mutex_by_its_function(void **state)
{
	struct fixture f;

	init(&f, "___pthread_mutex_lock");
	set_mutex(&f, 17, 1, 0);
	assert_int_equal(found(&f).holder, HOLDER_ENDED);
	assert_int_equal(found(&f).number, 17);
	set_mutex(&f, 0, 1, 0);
	assert_int_equal(found(&f).holder, HOLDER_NONE);
	set_mutex(&f, 17, 1, 0x80);
	assert_int_equal(found(&f).holder, HOLDER_THREAD); /* of another process */
	assert_true(found(&f).shared);
	deinit(&f);
}

static void test_mutex_that_tells_the_kernel(void **state)
{
	struct fixture f;

	init(&f, "pthread_mutex_lock");
	set_mutex(&f, WORKER, 1, 0x90); /* robust */
	f.wait.op = FUTEX_WAIT;
	f.wait.value = MAIN | FUTEX_WAITERS; /* who had it when the call was made */
	f.wait.words[0] = WORKER | FUTEX_WAITERS; /* who has it now */
	assert_int_equal(found(&f).number, WORKER);
	assert_false(found(&f).shared);
	f.wait.op = FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG;
	f.wait.value = 0;
	assert_int_equal(found(&f).kind, WAIT_MUTEX);
	assert_int_equal(found(&f).number, WORKER);
	assert_true(found(&f).evident);
	f.wait.words[0] = MAIN | FUTEX_WAITERS; /* it gets it just now */
	assert_false(found(&f).evident);
	f.wait.nwords = 0;
	assert_int_equal(found(&f).holder, HOLDER_NOT_RECORDED);
	deinit(&f);
}

/* A robust one of another process, by a function without a name. */
static void test_robust_mutex_by_its_memory(void **state)
{
	static const struct module_info library = {.path = "/lib/libc.so.6"}, program = {.path = "program"};
	struct fixture f;

	init(&f, NULL);
	f.stack.len = 1;
	f.frame.module = &library;
	set_mutex(&f, 17, 1, 0x90);
	f.wait.op = FUTEX_WAIT;
	f.wait.value = f.wait.words[0] = 17 | FUTEX_WAITERS;
	assert_int_equal(found(&f).kind, WAIT_MUTEX);
	assert_int_equal(found(&f).holder, HOLDER_THREAD);
	assert_int_equal(found(&f).number, 17);
	assert_true(found(&f).shared);
	f.frame.module = &program; /* whose futexes may mean anything */
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	f.frame.module = &library;
	f.wait.op |= FUTEX_PRIVATE_FLAG;
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	f.wait.op = FUTEX_WAIT;
	f.wait.words[2] = 18;
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	f.wait.words[2] = 17;
	f.wait.words[0] = 18 | FUTEX_WAITERS; /* since the call was made */
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	deinit(&f);
}

static void test_rwlock(void **state)
{
	/* readers, writers, phase, futex of writers, two unused, writer, shared */
	const uint32_t lock[] = {0, 0, 3, 1, 0, 0, WORKER, 0};
	struct fixture f;

	init(&f, "__pthread_rwlock_rdlock_full64");
	memcpy(f.wait.words, lock + 2, sizeof(lock) - 8); /* the futex is the phase */
	f.wait.value = 3;
	assert_int_equal(found(&f).kind, WAIT_READ_LOCK);
	assert_int_equal(found(&f).number, WORKER);
	assert_int_equal(found(&f).address, LOCK - 8);
	f.frame.symbol = "__pthread_rwlock_wrlock";
	memset(f.wait.words, 0, sizeof(f.wait.words));
	memcpy(f.wait.words, lock + 3, sizeof(lock) - 12);
	assert_int_equal(found(&f).kind, WAIT_WRITE_LOCK);
	assert_int_equal(found(&f).number, WORKER);
	assert_int_equal(found(&f).address, LOCK - 12);
	memset(f.wait.words, 0, sizeof(f.wait.words));
	f.wait.words[0] = 3;
	f.wait.words[4] = 1; /* shared, and held by readers: nobody's number */
	assert_int_equal(found(&f).holder, HOLDER_READERS);
	assert_true(found(&f).shared);
	f.wait.value = 5; /* of another C library */
	assert_int_equal(found(&f).holder, HOLDER_NOT_RECORDED);
	deinit(&f);
}

/* Where writers go first, a reader waits for the count of the others to change. */
static void test_reader_behind_a_writer(void **state)
{
	struct fixture f;

	init(&f, "__pthread_rwlock_rdlock");
	f.wait.value = f.wait.words[0] = 2 << 3 | 6; /* two readers, a writer that waits, and who waits behind it */
	assert_int_equal(found(&f).kind, WAIT_READ_LOCK);
	assert_int_equal(found(&f).holder, HOLDER_READERS);
	assert_int_equal(found(&f).address, LOCK);
	f.wait.words[0] = 1 << 3 | 6; /* since the call was made */
	assert_int_equal(found(&f).holder, HOLDER_READERS);
	f.wait.words[0] = 6;
	assert_int_equal(found(&f).holder, HOLDER_NONE);
	f.wait.words[0] = 1 << 3 | 7; /* the writer's turn: these wait, too */
	assert_int_equal(found(&f).holder, HOLDER_NONE);
	f.wait.words[6] = WORKER;
	assert_int_equal(found(&f).number, WORKER);
	f.wait.value = 1 << 3 | 7; /* nobody waits so */
	assert_int_equal(found(&f).holder, HOLDER_NOT_RECORDED);
	deinit(&f);
}

/* Of a program without libraries: it is known by its bit for those who wait. */
static void test_rwlock_of_static_musl(void **state)
{
	struct fixture f;

	init(&f, "__pthread_rwlock_timedrdlock");
	f.wait.value = f.wait.words[0] = 0xffffffff; /* a writer has it */
	assert_int_equal(found(&f).kind, WAIT_READ_LOCK);
	assert_int_equal(found(&f).holder, HOLDER_NOT_RECORDED);
	assert_int_equal(found(&f).address, LOCK);
	f.frame.symbol = "__pthread_rwlock_timedwrlock";
	assert_int_equal(found(&f).holder, HOLDER_NOT_RECORDED);
	f.wait.value = f.wait.words[0] = 0x80000002; /* two readers */
	assert_int_equal(found(&f).kind, WAIT_WRITE_LOCK);
	assert_int_equal(found(&f).holder, HOLDER_READERS);
	assert_int_equal(found(&f).address, LOCK);
	deinit(&f);
}

static void test_stream(void **state)
{
	const uint64_t owner = DESCRIPTOR;
	struct fixture f;

	init(&f, NULL);
	f.wait.words[0] = 2;
	memcpy(&f.wait.words[2], &owner, sizeof(owner));
	f.wait.words[4] = UINT32_MAX;
	assert_int_equal(found(&f).kind, WAIT_STREAM);
	assert_int_equal(found(&f).number, WORKER);
	f.wait.words[2] -= 0x1000; /* not where a thread has its descriptor */
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	deinit(&f);
}

static void test_stream_of_other_libraries(void **state)
{
	/* What the kernel clears, as the debug files of the C library have `struct pthread`: tid; and from 2.43 on joinstate. */
	static const struct {
		enum arch_id arch;
		uint64_t cleared; /* from the beginning of the descriptor on */
	} places[] = {
		{ARCH_X86_64, 720},   /* 2.31, 2.35, 2.36, 2.39, 2.41 */
		{ARCH_X86_64, 1576},  /* 2.43 */
		{ARCH_AARCH64, 208},  /* 2.31, 2.36, 2.41 */
		{ARCH_AARCH64, 1064}, /* 2.43 */
	};
	const uint64_t owner = DESCRIPTOR;
	struct fixture f;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		init(&f, NULL);
		f.snap->arch = arch_by_id(places[i].arch);
		f.snap->threads.data[1].tid_address = DESCRIPTOR + places[i].cleared;
		wait_threads_deinit(&f.threads);
		assert_true(wait_threads_init(&f.threads, f.snap));
		f.wait.words[0] = 2;
		memcpy(&f.wait.words[2], &owner, sizeof(owner));
		f.wait.words[4] = UINT32_MAX;
		assert_int_equal(found(&f).kind, WAIT_STREAM);
		assert_int_equal(found(&f).number, WORKER);
		deinit(&f);
	}
}

static void test_join(void **state)
{
	struct fixture f;

	init(&f, "__pthread_clockjoin_ex");
	f.wait.op = FUTEX_WAIT_BITSET;
	f.wait.address = DESCRIPTOR + NUMBER;
	f.wait.value = f.wait.words[0] = WORKER;
	assert_int_equal(found(&f).kind, WAIT_JOIN);
	assert_int_equal(found(&f).number, WORKER);
	f.wait.value = f.wait.words[0] = 2; /* what the kernel clears need not be a number */
	assert_int_equal(found(&f).kind, WAIT_JOIN);
	assert_int_equal(found(&f).number, WORKER);
	assert_true(found(&f).evident);
	f.snap->threads.data[0].tid_address = f.wait.address; /* the same for all, as with musl: a lock */
	wait_threads_deinit(&f.threads);
	assert_true(wait_threads_init(&f.threads, f.snap));
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	f.snap->threads.data[0].tid_address = 0;
	wait_threads_deinit(&f.threads);
	assert_true(wait_threads_init(&f.threads, f.snap));
	f.wait.value = f.wait.words[0] = WORKER;
	f.wait.words[0] = 0; /* it has ended */
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	f.wait.words[0] = WORKER;
	f.wait.address = LOCK; /* not where that one has its number */
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	f.snap->threads.data[1].tid_address = 0; /* which is not known through /proc */
	assert_int_equal(found(&f).kind, WAIT_JOIN);
	f.wait.op |= FUTEX_PRIVATE_FLAG;
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	f.wait.op = FUTEX_WAIT_BITSET;
	f.frame.symbol = "wait_for_latch"; /* whose value is a number by chance */
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	f.frame.symbol = "pthread_join";
	f.wait.value = f.wait.words[0] = MAIN; /* itself */
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	deinit(&f);
}

/* Memory has the numbers of the process's own namespace; there they are small. */
static void test_other_numbers(void **state)
{
	struct fixture f;

	init(&f, "pthread_mutex_lock");
	wait_threads_deinit(&f.threads);
	f.snap->inner_pid = 1;
	f.snap->threads.data[0].inner_tid = 1; /* of the other one it could not be read */
	assert_true(wait_threads_init(&f.threads, f.snap));
	set_mutex(&f, 1, 1, 0);
	assert_ptr_equal(found(&f).owner, &f.snap->threads.data[0]);
	set_mutex(&f, WORKER, 1, 0);
	assert_null(found(&f).owner);
	deinit(&f);
}

/* What lies in another module does not say what is waited for in this one. */
static void test_own_functions(void **state)
{
	static const struct module_info library = {.path = "/lib/libc.so.6"}, program = {.path = "program"};
	struct frame frames[] = {{.symbol = "syscall", .module = &library}, {.symbol = "pthread_mutex_lock", .module = &program}};
	struct fixture f;

	init(&f, NULL);
	f.stack.data = frames;
	f.stack.len = 2;
	set_mutex(&f, 17, 1, 0);
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	set_mutex(&f, WORKER, 1, 0); /* by its structure it could be one */
	assert_int_equal(found(&f).kind, WAIT_FUTEX);
	frames[0].symbol = "__lll_lock_wait"; /* of the C library */
	assert_true(found(&f).evident);
	frames[0].module = &program;
	frames[1].symbol = "work";
	assert_int_equal(found(&f).kind, WAIT_MUTEX);
	assert_false(found(&f).evident);
	deinit(&f);
}

static enum wait_kind kind_in(const struct module_info *module, const char *const *names, size_t n)
{
	struct frame frames[8] = {0};
	enum wait_kind kind;
	struct fixture f;

	init(&f, NULL);
	for (size_t i = 0; i < n; i++)
		frames[i] = (struct frame){.symbol = names[i], .module = module};
	f.stack.data = frames;
	f.stack.len = (uint32_t)n;
	f.wait.value = 1;
	kind = found(&f).kind;
	deinit(&f);
	return kind;
}

/* In a static program the functions of the library and those of the program are in one module. */
static void test_one_module(void **state)
{
	static const struct module_info program = {.path = "/bin/program"}, library = {.path = "/lib/libc.so.6"};
	static const struct {
		const char *names[5];
		enum wait_kind kind;
	} cases[] = {
		{{"wait_by_itself", "initialize", "__pthread_once_slow", "work"}, WAIT_FUTEX},
		{{"__lll_lock_wait_private", "malloc", "initialize", "___pthread_once"}, WAIT_FUTEX},
		{{"__futex_abstimed_wait_common", "initialize", "___pthread_once"}, WAIT_FUTEX},
		{{"futex_wait", "__pthread_once_slow", "work"}, WAIT_ONCE},
		{{"__syscall_cancel_arch", "__internal_syscall_cancel", "__futex_abstimed_wait_common64", "__pthread_barrier_wait", "work"}, WAIT_BARRIER},
		{{"do_futex_wait.constprop.0", "__new_sem_wait_slow64.constprop.0", "work"}, WAIT_SEMAPHORE},
		{{"__futex_abstimed_wait64", NULL, "___pthread_cond_wait", "work"}, WAIT_CONDITION},
		{{"__lll_lock_wait", "__pthread_mutex_cond_lock", "___pthread_cond_wait", "work"}, WAIT_MUTEX},
		{{"__futex_abstimed_wait64", "__pthread_mutex_clocklock_common", "work"}, WAIT_MUTEX},
		{{"__cp_end", "__syscall_cp_c", "__timedwait_cp", "sem_timedwait", "work"}, WAIT_SEMAPHORE},
		{{"__wait", "__pthread_once_full", "work"}, WAIT_ONCE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(kind_in(&program, cases[i].names, 5), cases[i].kind);
	assert_int_equal(kind_in(&library, (const char *[]){"some_inner_function", "sem_wait"}, 2), WAIT_SEMAPHORE);
	assert_int_equal(kind_in(&program, (const char *[]){"some_inner_function", "sem_wait"}, 2), WAIT_FUTEX);
}

static void test_names(void **state)
{
	static const struct {
		const char *function;
		enum wait_kind kind;
	} cases[] = {
		{"pthread_cond_wait", WAIT_CONDITION},	   {"___pthread_cond_timedwait64", WAIT_CONDITION},
		{"__GI___pthread_cond_wait", WAIT_CONDITION}, {"sem_clockwait", WAIT_SEMAPHORE},
		{"__new_sem_wait_slow64", WAIT_SEMAPHORE}, {"pthread_barrier_wait", WAIT_BARRIER},
		{"__pthread_once_slow", WAIT_ONCE},	   {"my_pthread_cond_wait", WAIT_FUTEX},
		{"mtx_lock_all", WAIT_FUTEX},		   {"pthread_cond_wait_for", WAIT_FUTEX},
		{"syscall", WAIT_FUTEX},
	};
	struct fixture f;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		init(&f, cases[i].function);
		f.wait.value = 0;
		assert_int_equal(found(&f).kind, cases[i].kind);
		assert_int_equal(found(&f).holder, HOLDER_NOT_RECORDED);
		assert_int_equal(found(&f).word, LOCK);
		deinit(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mutex_by_its_memory),
		cmocka_unit_test(test_mutex_by_its_function),
		cmocka_unit_test(test_mutex_that_tells_the_kernel),
		cmocka_unit_test(test_robust_mutex_by_its_memory),
		cmocka_unit_test(test_rwlock),
		cmocka_unit_test(test_reader_behind_a_writer),
		cmocka_unit_test(test_rwlock_of_static_musl),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_stream_of_other_libraries),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_other_numbers),
		cmocka_unit_test(test_own_functions),
		cmocka_unit_test(test_one_module),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
