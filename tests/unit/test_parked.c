/* SPDX-License-Identifier: MIT */
#include "lock_memory.h"

#include "cmocka_all.h"

#include "target/pointers.h"
#include "wait/parked.h"

/* A process with a page of stack and one of data, and two threads, of which the first waits for a word on its stack. */
enum { MAIN = 4711, WORKER = 4712, PAGE = 0x1000, KIND = 0x20 };

#define STACK  UINT64_C(0x7f0000000000) /* lower ones are those of a 32-bit process */
#define DATA   UINT64_C(0x7f0010000000)
#define WORD   (STACK + 0x40)
#define OTHERS (DATA + 0x100) /* a mutex of the worker's, */
#define OWN    (DATA + 0x200) /* and one of the main thread's */

struct fixture {
	struct snapshot *snap;
	struct wait_threads threads;
	struct trace_thread thread;
	struct futex_wait wait;
	struct map_entry maps[2];
	uint8_t stack[PAGE], data[PAGE];
	struct u64map again;
};

static void init(struct fixture *f)
{
	struct snap_thread main = {.tid = MAIN, .state = 'S', .status = THREAD_CAPTURED, .syscall = {.state = SYSCALL_IN}};

	*f = (struct fixture){.snap = snapshot_create(MAIN, arch_host())};
	f->maps[0] = (struct map_entry){.start = STACK, .end = STACK + PAGE, .perms = MAP_PERM_READ | MAP_PERM_WRITE, .path = ""};
	f->maps[1] = (struct map_entry){.start = DATA, .end = DATA + PAGE, .perms = MAP_PERM_READ | MAP_PERM_WRITE, .path = "/srv/server", .inode = 7};
	f->snap->maps.data = f->maps;
	f->snap->maps.len = 2;
	main.stack = (struct mem_copy){.start = STACK, .len = PAGE, .region_end = STACK + PAGE, .data = f->stack};
	main.syscall.nr = lock_memory_futex(f->snap->arch);
	main.syscall.args[0] = WORD;
	main.syscall.args[1] = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME;
	assert_true(vec_push(&f->snap->threads, main));
	assert_true(vec_push(&f->snap->threads, (struct snap_thread){.tid = WORKER, .state = 'S', .syscall = main.syscall}));
	f->snap->threads.data[1].syscall.args[1] = FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG; /* for what the main thread has */
	assert_true(wait_threads_init(&f->threads, f->snap));
	f->thread = (struct trace_thread){.snap = f->snap, .thread = &f->snap->threads.data[0]};
	f->wait = (struct futex_wait){.threads = &f->threads, .thread = &f->thread, .address = WORD};
}

static void deinit(struct fixture *f)
{
	u64map_deinit(&f->again);
	wait_threads_deinit(&f->threads);
	f->snap->threads.data[0].stack = (struct mem_copy){0};
	f->snap->maps = (struct maps){0};
	for (size_t i = 0; i < f->snap->copies.len; i++)
		f->snap->copies.data[i].copy.data = NULL;
	snapshot_destroy(f->snap);
}

static void put_mutex(struct fixture *f, uint64_t address, uint32_t owner, uint32_t kind)
{
	const uint32_t words[] = {owner | FUTEX_WAITERS, 1, owner, 1, kind};

	memcpy(f->data + (address - DATA), words, sizeof(words));
}

static void put_word(struct fixture *f, uint64_t address, uint64_t word)
{
	memcpy(f->stack + (address - STACK), &word, sizeof(word));
}

/* Asks for what may be a mutex, and gives what is there. The number of these. */
static size_t ask(struct fixture *f)
{
	struct ask wants = {0}, answers = {0};
	size_t n;

	assert_true(parked_asker.ask(NULL, f->snap, NULL, &answers, &wants));
	n = wants.len;
	for (size_t i = 0; i < n; i++) {
		const struct ask_range *range = &wants.data[i];
		bool created;
		struct snap_copy copy = {.copy = {.start = range->address, .len = range->len, .region_end = range->address + range->len}};

		assert_true(range->keep == ASK_BYTES && range->len == WAIT_BYTES);
		if (range->address < DATA || range->address + range->len > DATA + PAGE)
			continue;
		copy.copy.data = f->data + (range->address - DATA);
		*u64map_put(&f->again, range->address, &created) = f->snap->copies.len;
		assert_true(vec_push(&f->snap->copies, copy));
	}
	ask_deinit(&wants);
	return n;
}

/* The address of the mutex that it waits for; 0: none. */
static uint64_t find(struct fixture *f, struct lock *lock)
{
	*lock = (struct lock){0};
	for (size_t i = 0; i < f->snap->copies.len; i++)
		f->snap->copies.data[i].copy.data = NULL;
	f->snap->copies.len = 0;
	u64map_deinit(&f->again);
	ask(f);
	f->wait.address = WORD;
	return parked_find(&f->wait, &f->again, lock) ? lock->address : 0;
}

static void test_mutex_of_another(void **state)
{
	struct fixture f;
	struct lock lock;

	init(&f);
	put_mutex(&f, OTHERS, WORKER, KIND);
	put_mutex(&f, OWN, MAIN, KIND);
	assert_int_equal(find(&f, &lock), 0); /* nothing points there */
	put_word(&f, STACK + 8, OWN);
	put_word(&f, STACK + 16, OTHERS + 16); /* where its kind is */
	assert_int_equal(find(&f, &lock), OTHERS);
	assert_true(lock.kind == WAIT_MUTEX && lock.holder == HOLDER_THREAD && lock.owner->tid == WORKER && lock.evident && lock.mutex.inherits);
	assert_true(f.wait.again);
	put_word(&f, STACK + 16, 0);
	f.snap->threads.data[0].regs.v[3] = OTHERS;
	f.snap->threads.data[0].regs.valid = 1 << 3;
	assert_int_equal(find(&f, &lock), OTHERS);
	put_mutex(&f, OTHERS, 99, KIND); /* no thread of the process */
	assert_int_equal(find(&f, &lock), OTHERS);
	assert_true(lock.holder == HOLDER_ENDED && !lock.evident);
	f.snap->partial = true; /* or none that was wanted */
	assert_int_equal(find(&f, &lock), OTHERS);
	assert_true(lock.holder == HOLDER_NOT_RECORDED && !lock.evident);
	deinit(&f);
}

static void test_mutex_of_its_own(void **state)
{
	struct fixture f;
	struct lock lock;

	init(&f);
	put_mutex(&f, OWN, MAIN, KIND);
	put_word(&f, STACK + 8, OWN);
	assert_int_equal(find(&f, &lock), OWN);
	assert_int_equal(lock.owner->tid, MAIN);
	put_mutex(&f, OWN + 0x40, MAIN, KIND);
	put_word(&f, STACK + 16, OWN + 0x40); /* it may be either */
	assert_int_equal(find(&f, &lock), 0);
	deinit(&f);
}

/* The kernel has no reason to refuse what somebody has who waits for no such mutex; and what is free now may have been refused. */
static void test_no_reason(void **state)
{
	struct fixture f;
	struct lock lock;

	init(&f);
	put_mutex(&f, OTHERS, WORKER, KIND);
	put_mutex(&f, OWN, MAIN, KIND);
	put_word(&f, STACK + 8, OWN);
	put_word(&f, STACK + 16, OTHERS);
	assert_int_equal(find(&f, &lock), OTHERS);
	f.snap->threads.data[1].state = 'R';
	assert_int_equal(find(&f, &lock), OWN);
	f.snap->threads.data[1].state = 'S';
	f.snap->threads.data[1].syscall.args[1] = FUTEX_WAIT;
	f.snap->threads.data[1].syscall.args[2] = 2;
	assert_int_equal(find(&f, &lock), OWN);
	put_mutex(&f, OTHERS, 0, KIND);
	assert_int_equal(find(&f, &lock), 0);
	deinit(&f);
}

/* Not one of several, and nothing that is no such mutex. */
static void test_others(void **state)
{
	struct fixture f;
	struct lock lock;

	init(&f);
	put_mutex(&f, OTHERS, WORKER, KIND);
	put_word(&f, STACK + 8, OTHERS);
	put_mutex(&f, OTHERS + 0x40, WORKER, KIND);
	put_word(&f, STACK + 16, OTHERS + 0x40);
	assert_int_equal(find(&f, &lock), 0);
	put_mutex(&f, OTHERS + 0x40, WORKER, 0); /* it inherits nothing */
	assert_int_equal(find(&f, &lock), OTHERS);
	put_mutex(&f, OTHERS, WORKER, KIND | 0x1000); /* there is no such kind */
	assert_int_equal(find(&f, &lock), 0);
	deinit(&f);
}

/* A mapping may begin with it. */
static void test_first_of_a_mapping(void **state)
{
	struct fixture f;
	struct lock lock;

	init(&f);
	put_mutex(&f, DATA, WORKER, KIND);
	put_word(&f, STACK + 8, DATA);
	assert_int_equal(find(&f, &lock), DATA);
	deinit(&f);
}

/* What threads are asked about: those that wait for a zero on their stack without a limit, but not for a semaphore there. */
static void test_who_is_asked(void **state)
{
	struct fixture f;
	struct snap_thread *t;

	init(&f);
	t = &f.snap->threads.data[0];
	put_word(&f, STACK + 8, OTHERS);
	assert_true(parked_is(f.snap, t));
	assert_int_equal(ask(&f), 1);
	put_word(&f, WORD, UINT64_C(1) << 32); /* one that waits */
	assert_false(parked_is(f.snap, t));
	assert_int_equal(ask(&f), 0);
	put_word(&f, WORD, 1);
	assert_false(parked_is(f.snap, t));
	put_word(&f, WORD, 0);
	t->syscall.args[3] = STACK;
	assert_false(parked_is(f.snap, t));
	t->syscall.args[3] = 0;
	t->syscall.args[2] = 2;
	assert_false(parked_is(f.snap, t));
	t->syscall.args[2] = 0;
	t->syscall.args[0] = DATA;
	assert_false(parked_is(f.snap, t));
	t->syscall.args[0] = STACK + 0x800;
	assert_false(parked_is(f.snap, t));
	t->syscall.args[0] = WORD;
	t->state = 'R';
	assert_false(parked_is(f.snap, t));
	deinit(&f);
}

/* Each once, registers first, and no more than there is room for. */
static void test_pointers(void **state)
{
	static const struct pointed what = {.alignment = 8, .bytes = 16, .scanned = 32};
	uint64_t found[3];
	struct fixture f;
	struct snap_thread *t;

	init(&f);
	t = &f.snap->threads.data[0];
	put_word(&f, STACK, DATA);
	put_word(&f, STACK + 8, DATA + 4);
	put_word(&f, STACK + 16, DATA);
	put_word(&f, STACK + 24, DATA + PAGE - 8);
	put_word(&f, STACK + 32, DATA + 8); /* too far away */
	t->regs.v[2] = STACK + 8;
	t->regs.valid = 1 << 2;
	assert_int_equal(pointers_of(f.snap, t, &what, found, 3), 2);
	assert_true(found[0] == STACK + 8 && found[1] == DATA);
	assert_int_equal(pointers_of(f.snap, t, &what, found, 1), 1);
	f.maps[1].perms = MAP_PERM_READ;
	assert_int_equal(pointers_of(f.snap, t, &what, found, 3), 1);
	deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mutex_of_another), cmocka_unit_test(test_mutex_of_its_own), cmocka_unit_test(test_others),
		cmocka_unit_test(test_no_reason),	 cmocka_unit_test(test_first_of_a_mapping),
		cmocka_unit_test(test_who_is_asked),	 cmocka_unit_test(test_pointers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
