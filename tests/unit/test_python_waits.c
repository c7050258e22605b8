/* SPDX-License-Identifier: MIT */
#include "pymem.h"

#include "lock_memory.h"
#include "runtime/python/gil.h"
#include "runtime/python/locks.h"
#include "runtime/python/waits.h"

/* Python 3.11. One thread waits for the end of a thread that it has created, or for the GIL. */
enum {
	BASE = PYMEM_BASE,
	OBJECT = BASE + 0x100,
	TYPE = BASE + 0x200,
	NAME = BASE + 0x300,
	SEMAPHORE = BASE + 0x400,
	REFERENCE = BASE + 0x500,
	CREATORS = BASE + 0x1000, /* thread states */
	NEW = BASE + 0x2000,
	GIL = BASE + 0x3000,
	STACK = BASE + 0x4000,
	NOWHERE = 0x5000000,
	CREATOR = 10, /* threads */
	CREATED = 11,
	REFERENCE_TO_LOCK = 24, /* in a lock */
	END = 40,		/* behind the number of a thread */
};

struct world {
	struct pymem pymem;
	struct python_layout layout;
	struct python_roster roster;
	struct snapshot *snap;
	struct thread_copies copies;
	struct u64map gils;
	struct python_gil gil;
	struct python_chain chain;
	bool gave_up;
};

static struct python_waits waits_of(struct world *w)
{
	return (struct python_waits){.layout = &w->layout, .roster = &w->roster, .mem = &w->pymem.mem, .copies = &w->copies, .gils = &w->gils,
				     .now = &w->pymem.mem, .chain = &w->chain, .gave_up = &w->gave_up};
}

/* What the thread state says whose it is. */
static void put_state(struct world *w, uint64_t tstate, pid_t tid)
{
	pymem_put64(&w->pymem, tstate + w->layout.at[PY_TSTATE_THREAD], 0xabc000 + (uint64_t)tid);
	pymem_put64(&w->pymem, tstate + w->layout.at[PY_TSTATE_NATIVE], (uint64_t)tid);
}

/* It was listed as this thread's. */
static void list(struct world *w, uint64_t tstate, pid_t tid)
{
	const struct python_thread thread = {.tid = tid, .own = tid, .native = tid, .tstate = tstate, .thread = 0xabc000 + (uint64_t)tid};

	assert_true(python_roster_add(&w->roster, &thread));
}

static void begin(struct world *w)
{
	struct snap_thread creator = {.tid = CREATOR, .state = 'S', .status = THREAD_CAPTURED, .syscall = {.state = SYSCALL_IN, .args = {SEMAPHORE}}};

	*w = (struct world){.pymem.mem.read = pymem_read, .layout = pymem_layout(), .snap = snapshot_create(1, arch_host())};
	w->layout.at[PY_VERSION] = 0x030b02f0;
	creator.syscall.nr = lock_memory_futex(w->snap->arch);
	creator.stack = (struct mem_copy){.start = STACK, .len = 0x1000, .region_end = STACK + 0x1000, .data = w->pymem.bytes + (STACK - BASE)};
	assert_true(vec_push(&w->snap->threads, creator));
	pymem_put64(&w->pymem, OBJECT + 8, TYPE);
	pymem_put64(&w->pymem, OBJECT + 16, SEMAPHORE);
	pymem_put64(&w->pymem, OBJECT + REFERENCE_TO_LOCK, REFERENCE);
	pymem_put64(&w->pymem, TYPE + 24, NAME);
	pymem_put64(&w->pymem, TYPE + 32, 40);
	pymem_put(&w->pymem, NAME, "_thread.lock", sizeof("_thread.lock"));
	pymem_put64(&w->pymem, NEW + w->layout.at[PY_TSTATE_THREAD] + END, REFERENCE);
	put_state(w, CREATORS, CREATOR);
	put_state(w, NEW, CREATED);
}

static void end(struct world *w)
{
	w->snap->threads.data[0].stack = (struct mem_copy){0};
	snapshot_destroy(w->snap);
	python_roster_deinit(&w->roster);
	thread_copies_deinit(&w->copies);
	u64map_deinit(&w->gils);
}

/* What the creator waits for, when the lock has been found. */
static struct runtime_wait told(struct world *w)
{
	const struct python_waits py = waits_of(w);
	struct ask_range range = {.address = OBJECT, .len = PYTHON_LOCK_BYTES, .got = PYTHON_LOCK_BYTES, .data = w->pymem.bytes + (OBJECT - BASE)};
	const struct ask answers = {.data = &range, .len = 1};
	struct runtime_wait out = {0};
	struct ask wants = {0};

	assert_true(python_waits_ask(&py, w->snap, &answers, &wants));
	assert_int_equal(wants.len, 0);
	python_waits_tell(&py, w->snap, &w->snap->threads.data[0], &out);
	return out;
}

static void test_join(void **state)
{
	struct runtime_wait found;
	static struct world w;

	begin(&w);
	list(&w, NEW, CREATED);
	list(&w, CREATORS, CREATOR);
	found = told(&w);
	assert_int_equal(found.kind, WAIT_PYTHON_JOIN);
	assert_int_equal(found.holder, HOLDER_THREAD);
	assert_int_equal(found.owner, CREATED);
	end(&w);
}

/* It was listed before the new thread had made it its own: nobody waits for itself. */
static void test_join_of_one_listed_too_early(void **state)
{
	struct runtime_wait found;
	static struct world w;

	begin(&w);
	list(&w, NEW, CREATOR);
	list(&w, CREATORS, CREATOR);
	found = told(&w);
	assert_int_equal(found.kind, WAIT_PYTHON_LOCK);
	assert_int_equal(found.holder, HOLDER_NOT_RECORDED);
	assert_int_equal(found.owner, 0);
	list(&w, NEW, CREATED); /* and again */
	assert_int_equal(told(&w).owner, CREATED);
	end(&w);
}

/* The same of who has the GIL. */
static void test_gil(void **state)
{
	static struct world w;
	bool created;

	begin(&w);
	list(&w, NEW, CREATOR);
	list(&w, CREATORS, CREATOR);
	w.gil = (struct python_gil){.address = GIL, .holder = NEW, .settled = true};
	*u64map_put(&w.gils, CREATORS, &created) = (uintptr_t)&w.gil;
	w.snap->threads.data[0].syscall.args[0] = GIL;
	assert_int_equal(told(&w).kind, WAIT_GIL);
	assert_int_equal(told(&w).owner, 0);
	assert_true(told(&w).doubtful);
	list(&w, NEW, CREATED);
	assert_int_equal(told(&w).owner, CREATED);
	w.gil.holder = NOWHERE; /* as in a snapshot that does not have it */
	list(&w, NOWHERE, CREATED);
	assert_int_equal(told(&w).owner, CREATED);
	end(&w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_join_of_one_listed_too_early),
		cmocka_unit_test(test_gil),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
