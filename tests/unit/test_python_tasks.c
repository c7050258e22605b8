/* SPDX-License-Identifier: MIT */
/* Coroutines and tasks in made-up memory. */
#include "pymem.h"

#include <stdio.h>

#include "runtime/python/coroutine.h"
#include "runtime/python/task_stacks.h"
#include "runtime/python/tasks.h"

/* Types are 1 KiB apart, from where the layout has its own. */
enum {
	CODE_TYPE = PYMEM_BASE + 0x8000,
	CORO_TYPE = PYMEM_BASE + 0x8400,
	GEN_TYPE = PYMEM_BASE + 0x8800,
	ASYNC_GEN_TYPE = PYMEM_BASE + 0x8c00,
	STR_TYPE = PYMEM_BASE + 0x9000,
	INT_TYPE = PYMEM_BASE + 0x9400,
	SET_TYPE = PYMEM_BASE + 0x9800,
	HELPER_TYPE = PYMEM_BASE + 0x9c00,
	FUTURE_TYPE = PYMEM_BASE + 0xa000,
	TASK_TYPE = PYMEM_BASE + 0xa400,
	ITERATOR_TYPE = PYMEM_BASE + 0xa800,
	CODE = PYMEM_BASE + 0x10000, /* code objects, 4 KiB each, */
	COROUTINES = PYMEM_BASE + 0x20000, /* coroutines, 1 KiB each, */
	TASKS = PYMEM_BASE + 0x40000, /* tasks, 256 bytes each, */
	OBJECTS = PYMEM_BASE + 0x80000, /* and others */
	TASK_SIZE = 168,
	TASK_CORO = 128,
	TASK_NODE = 152,
	INSTR = 40, /* of each frame, in its code */
};

enum { YIELDED = -2, AWAITS = -1, RUNNING = 0, ENDED = 4, CREATED = -3 }; /* states of 3.13 */

static struct pymem memory = {.mem = {.read = pymem_read}};
static struct python_layout layout;
static struct python_codes codes;
static struct arena *arena;

/* Those of the program are iterators, too. */
static void put_type(uint64_t at, const char *name, uint64_t basic_size, bool of_program)
{
	pymem_put64(&memory, at + 224, of_program || strstr(name, "asend"));
	pymem_put64(&memory, at + 24, at + 512);
	pymem_put64(&memory, at + 32, basic_size);
	pymem_put64(&memory, at + 168, of_program ? 1 << 9 : 0);
	pymem_put(&memory, at + 512, name, strlen(name) + 1);
}

static void put_object(uint64_t at, uint64_t type)
{
	pymem_put64(&memory, at, 1);
	pymem_put64(&memory, at + 8, type);
}

static void put_str(uint64_t at, const char *text)
{
	put_object(at, STR_TYPE);
	pymem_put_str(&memory, at, text);
}

static void put_int(uint64_t at, uint32_t value)
{
	put_object(at, INT_TYPE);
	pymem_put64(&memory, at + 16, 1 << 3);
	pymem_put64(&memory, at + 24, value);
}

static uint64_t code_at(unsigned i)
{
	return CODE + i * 0x1000;
}

static void put_code(unsigned i, const char *name)
{
	uint64_t at = code_at(i);

	put_object(at, CODE_TYPE);
	pymem_put64(&memory, at + 16, 100);
	pymem_put64(&memory, at + layout.at[PY_CODE_QUALNAME], at + 0x800);
	put_str(at + 0x800, name);
}

static uint64_t coroutine_at(unsigned i)
{
	return COROUTINES + i * 0x400;
}

/* One that has two variables and then, on its stack, what it awaits. */
static void put_coroutine(unsigned i, uint64_t type, int8_t state, unsigned code, uint64_t awaits)
{
	uint64_t at = coroutine_at(i), frame = at + layout.at[PY_GEN_FRAME];

	put_object(at, type);
	pymem_put8(&memory, at + layout.at[PY_GEN_STATE], (uint8_t)state);
	pymem_put64(&memory, frame + layout.at[PY_FRAME_CODE], code_at(code));
	pymem_put64(&memory, frame + layout.at[PY_FRAME_INSTR], code_at(code) + layout.at[PY_CODE_BYTES] + INSTR);
	pymem_put64(&memory, frame + layout.at[PY_FRAME_STACK], 3);
	pymem_put64(&memory, frame + layout.at[PY_FRAME_LOCALS] + 16, awaits);
}

static uint64_t task_at(unsigned i)
{
	return TASKS + i * 256;
}

static void put_task(unsigned i, uint64_t coroutine, uint64_t waiter, uint64_t name)
{
	uint64_t at = task_at(i);

	put_object(at, TASK_TYPE);
	pymem_put64(&memory, at + TASK_CORO - 8, waiter);
	pymem_put64(&memory, at + TASK_CORO, coroutine);
	pymem_put64(&memory, at + TASK_CORO + 8, name);
}

static int reset(void **state)
{
	memset(memory.bytes, 0, sizeof(memory.bytes));
	memory.reads = 0;
	arena = arena_create();
	layout = pymem_layout();
	codes = (struct python_codes){.layout = &layout, .mem = &memory.mem, .arena = arena};
	put_type(CODE_TYPE, "code", 208, false);
	put_type(CORO_TYPE, "coroutine", 100, false);
	put_type(GEN_TYPE, "generator", 100, false);
	put_type(ASYNC_GEN_TYPE, "async_generator", 100, false);
	put_type(STR_TYPE, "str", 64, false);
	put_type(INT_TYPE, "int", 24, false);
	put_type(SET_TYPE, "set", 200, false);
	put_type(HELPER_TYPE, "async_generator_asend", 40, false);
	put_type(FUTURE_TYPE, "_asyncio.Future", 112, true);
	put_type(TASK_TYPE, "_asyncio.Task", TASK_SIZE, true);
	put_type(ITERATOR_TYPE, "FutureIter", 24, true);
	put_code(0, "main");
	put_code(1, "fetch");
	put_code(2, "read");
	return !arena;
}

static int finish(void **state)
{
	python_codes_deinit(&codes);
	arena_destroy(arena);
	return 0;
}

static const struct trace_task *tell(const struct python_task_list *list, struct trace_tasks *out)
{
	out->len = 0;
	assert_true(python_task_stacks(&codes, list, false, out));
	return out->len ? &out->data[0] : NULL;
}

static const struct trace_task *tell_one(uint64_t object, struct trace_tasks *out)
{
	struct python_task_entry entry = {.object = object, .tid = 7};
	struct python_task_list list = {.data = &entry, .len = 1};

	return tell(&list, out);
}

/* main awaits fetch, which steps through an asynchronous generator that awaits a future. */
static void put_chain(void)
{
	put_coroutine(0, CORO_TYPE, AWAITS, 0, coroutine_at(1));
	put_coroutine(1, CORO_TYPE, AWAITS, 1, OBJECTS);
	put_object(OBJECTS, HELPER_TYPE);
	pymem_put64(&memory, OBJECTS + 16, coroutine_at(2));
	put_coroutine(2, ASYNC_GEN_TYPE, AWAITS, 2, OBJECTS + 0x100);
	put_object(OBJECTS + 0x100, ITERATOR_TYPE);
	put_object(OBJECTS + 0x200, FUTURE_TYPE);
	put_str(OBJECTS + 0x300, "loader");
	put_task(0, coroutine_at(0), OBJECTS + 0x200, OBJECTS + 0x300);
}

static void test_chain(void **state)
{
	struct trace_tasks out = {0};
	const struct trace_task *task;

	put_chain();
	task = tell_one(task_at(0), &out);
	assert_non_null(task);
	assert_string_equal(task->name, "loader");
	assert_string_equal(task->awaits, "Future");
	assert_null(task->through);
	assert_null(task->awaits_task);
	assert_null(task->problem);
	assert_int_equal(task->tid, 7);
	assert_int_equal(task->state, TASK_SUSPENDED);
	assert_int_equal(task->stack->len, 3);
	assert_string_equal(task->stack->data[0].symbol, "read");
	assert_string_equal(task->stack->data[1].symbol, "fetch");
	assert_string_equal(task->stack->data[2].symbol, "main");
	vec_deinit(&out);
}

/* Equal stacks are one; a task that another one awaits is named, also where its name is only a number. */
static void test_several(void **state)
{
	struct python_task_entry entries[] = {{.object = task_at(0)}, {.object = task_at(1)}, {.object = task_at(2)}};
	struct python_task_list list = {.data = entries, .len = 3};
	struct trace_tasks out = {0};

	put_chain();
	put_int(OBJECTS + 0x400, 12);
	put_coroutine(3, CORO_TYPE, AWAITS, 0, OBJECTS + 0x100);
	put_coroutine(4, CORO_TYPE, AWAITS, 0, OBJECTS + 0x100);
	put_task(1, coroutine_at(3), task_at(2), OBJECTS + 0x300);
	put_task(2, coroutine_at(4), OBJECTS + 0x200, OBJECTS + 0x400);
	tell(&list, &out);
	assert_int_equal(out.len, 3);
	assert_string_equal(out.data[1].awaits, "Task");
	assert_string_equal(out.data[1].awaits_task, "Task-12");
	assert_string_equal(out.data[2].name, "Task-12");
	assert_ptr_equal(out.data[1].stack, out.data[2].stack);
	assert_ptr_not_equal(out.data[0].stack, out.data[2].stack);
	vec_deinit(&out);
}

static void test_states(void **state)
{
	static const struct {
		int8_t state;
		enum task_state told;
	} states[] = {{CREATED, TASK_CREATED}, {AWAITS, TASK_SUSPENDED}, {RUNNING, TASK_RUNNING}};
	struct trace_tasks out = {0};

	put_chain();
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		put_coroutine(0, CORO_TYPE, states[i].state, 0, OBJECTS + 0x100);
		assert_int_equal(tell_one(task_at(0), &out)->state, states[i].told);
		assert_int_equal(out.data[0].stack->len, 1);
		assert_int_equal(out.data[0].awaits != NULL, states[i].told == TASK_SUSPENDED);
	}
	put_coroutine(0, CORO_TYPE, ENDED, 0, 0);
	assert_null(tell_one(task_at(0), &out));
	/* Only a generator is suspended without a wait. */
	put_coroutine(0, GEN_TYPE, YIELDED, 0, OBJECTS + 0x100);
	assert_int_equal(tell_one(task_at(0), &out)->state, TASK_SUSPENDED);
	put_coroutine(0, CORO_TYPE, YIELDED, 0, OBJECTS + 0x100);
	assert_non_null(tell_one(task_at(0), &out)->problem);
	put_coroutine(0, CORO_TYPE, AWAITS, 0, OBJECTS + 0x300); /* a str */
	assert_non_null(tell_one(task_at(0), &out)->problem);
	assert_int_equal(out.data[0].stack->len, 0);
	vec_deinit(&out);
}

/* What is awaited and is no coroutine is named, if it is not the future's own iterator. */
static void test_through(void **state)
{
	struct trace_tasks out = {0};

	put_chain();
	put_coroutine(0, CORO_TYPE, AWAITS, 0, OBJECTS + 0x200);
	assert_string_equal(tell_one(task_at(0), &out)->through, "Future");
	put_task(0, coroutine_at(0), 0, OBJECTS + 0x300);
	assert_null(tell_one(task_at(0), &out)->awaits);
	vec_deinit(&out);
}

/* One that awaits itself, a helper that leads to itself, an instruction of other code, what is no code at all. */
static void test_hostile_coroutines(void **state)
{
	struct trace_tasks out = {0};
	const struct trace_task *task;

	put_chain();
	put_coroutine(2, CORO_TYPE, AWAITS, 2, coroutine_at(0));
	task = tell_one(task_at(0), &out);
	assert_int_equal(task->stack->len, PYTHON_MAX_AWAITS + 1);
	assert_int_equal(task->stack->data[0].kind, FRAME_KIND_MARKER);
	assert_null(task->through);
	pymem_put64(&memory, OBJECTS + 16, OBJECTS);
	assert_string_equal(tell_one(task_at(0), &out)->through, "async_generator_asend");
	put_coroutine(1, CORO_TYPE, AWAITS, 1, coroutine_at(2));
	pymem_put64(&memory, coroutine_at(2) + layout.at[PY_GEN_FRAME] + layout.at[PY_FRAME_INSTR], code_at(1));
	task = tell_one(task_at(0), &out);
	assert_int_equal(task->stack->len, 2);
	assert_non_null(task->problem);
	pymem_put64(&memory, coroutine_at(0) + layout.at[PY_GEN_FRAME] + layout.at[PY_FRAME_CODE], OBJECTS);
	assert_non_null(tell_one(task_at(0), &out)->problem);
	assert_null(tell_one(8, &out));
	assert_null(tell_one(task_at(0) + 1, &out));
	assert_null(tell_one(UINT64_MAX - 7, &out));
	vec_deinit(&out);
}

/* How many values there are decides where the last one is: none, and more than there can be. */
static void test_hostile_stacks(void **state)
{
	static const uint32_t counts[] = {0, 1 << 20, UINT32_MAX};
	uint64_t at = coroutine_at(0) + layout.at[PY_GEN_FRAME] + layout.at[PY_FRAME_STACK];
	struct python_coroutine coroutine;

	put_chain();
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		pymem_put64(&memory, at, counts[i]);
		assert_false(python_coroutine_read(&codes, coroutine_at(0), &coroutine));
	}
}

/* A pointer behind the last value since 3.14, tagged; above it there is an empty one in 3.15, whose states begin with 0. */
static void test_later_versions(void **state)
{
	uint64_t frame = coroutine_at(0) + layout.at[PY_GEN_FRAME], values = frame + layout.at[PY_FRAME_LOCALS];
	struct python_coroutine coroutine;

	put_chain();
	layout.at[PY_VERSION] = 0x030e00f0;
	pymem_put64(&memory, values + 16, coroutine_at(1) | 1);
	pymem_put64(&memory, frame + layout.at[PY_FRAME_STACK], values + 24);
	assert_true(python_coroutine_read(&codes, coroutine_at(0), &coroutine));
	assert_int_equal(coroutine.awaits, coroutine_at(1));
	layout.at[PY_VERSION] = 0x030f00f0;
	pymem_put64(&memory, values + 24, 1);
	pymem_put64(&memory, frame + layout.at[PY_FRAME_STACK], values + 32);
	for (int8_t number = 0; number < 6; number++) {
		static const enum python_coroutine_state states[] = {
			PYTHON_COROUTINE_CREATED,   PYTHON_COROUTINE_SUSPENDED, PYTHON_COROUTINE_SUSPENDED,
			PYTHON_COROUTINE_SUSPENDED, PYTHON_COROUTINE_RUNNING,   PYTHON_COROUTINE_ENDED};

		pymem_put8(&memory, coroutine_at(0) + layout.at[PY_GEN_STATE], (uint8_t)number);
		put_object(coroutine_at(0), number == 1 || number == 3 ? GEN_TYPE : CORO_TYPE);
		assert_true(python_coroutine_read(&codes, coroutine_at(0), &coroutine));
		assert_int_equal(coroutine.state, states[number]);
		assert_int_equal(coroutine.awaits, number == 2 ? coroutine_at(1) : 0);
	}
}

/* Up to 3.12 the instruction at which it goes on tells whether it awaits: its argument, or up to 3.10 what it is. */
static void test_earlier_versions(void **state)
{
	uint64_t next = code_at(0) + layout.at[PY_CODE_BYTES] + INSTR + 2;
	struct python_coroutine coroutine;

	put_chain();
	layout.at[PY_VERSION] = 0x030c00f0;
	put_object(coroutine_at(0), GEN_TYPE);
	for (uint8_t arg = 0; arg < 4; arg++) {
		pymem_put8(&memory, next + 1, arg);
		assert_true(python_coroutine_read(&codes, coroutine_at(0), &coroutine));
		assert_int_equal(coroutine.awaits, arg < 2 ? 0 : coroutine_at(1));
	}
	pymem_put8(&memory, coroutine_at(0) + layout.at[PY_GEN_STATE], (uint8_t)-2);
	assert_true(python_coroutine_read(&codes, coroutine_at(0), &coroutine));
	assert_int_equal(coroutine.state, PYTHON_COROUTINE_CREATED);
}

/* Frames are objects up to 3.10: 3.9 has a pointer behind the last value, none in a frame that runs; 3.10 a number, and a state. */
static void test_frame_objects(void **state)
{
	enum { FRAME = OBJECTS + 0x1000, BYTES = OBJECTS + 0x2000, VALUES = FRAME + 0x200 };
	struct python_coroutine coroutine;
	uint32_t lasti = 10;

	layout.at[PY_VERSION] = 0x030900f0;
	layout.at[PY_FRAMES] = PY_FRAMES_OBJECTS;
	layout.at[PY_GEN_FRAME] = 16;
	layout.at[PY_GEN_STATE] = 0;
	layout.at[PY_FRAME_STACK] = 72;
	layout.at[PY_FRAME_CODE] = 32;
	layout.at[PY_FRAME_INSTR] = 104;
	layout.at[PY_CODE_BYTES] = 48;
	put_code(0, "main");
	pymem_put64(&memory, code_at(0) + 48, BYTES);
	pymem_put64(&memory, BYTES + 16, 200);
	put_object(coroutine_at(0), CORO_TYPE);
	put_object(coroutine_at(1), CORO_TYPE);
	assert_true(python_coroutine_read(&codes, coroutine_at(0), &coroutine));
	assert_int_equal(coroutine.state, PYTHON_COROUTINE_ENDED);
	pymem_put64(&memory, coroutine_at(0) + 16, FRAME);
	pymem_put64(&memory, FRAME + 32, code_at(0));
	pymem_put(&memory, FRAME + 104, &lasti, sizeof(lasti));
	assert_true(python_coroutine_read(&codes, coroutine_at(0), &coroutine));
	assert_int_equal(coroutine.state, PYTHON_COROUTINE_RUNNING);
	pymem_put64(&memory, FRAME + 72, VALUES + 16);
	pymem_put64(&memory, VALUES + 8, coroutine_at(1));
	assert_false(python_coroutine_read(&codes, coroutine_at(0), &coroutine));
	put_object(coroutine_at(0), GEN_TYPE);
	assert_true(python_coroutine_read(&codes, coroutine_at(0), &coroutine));
	assert_int_equal(coroutine.state, PYTHON_COROUTINE_SUSPENDED);
	assert_int_equal(coroutine.awaits, 0);
	pymem_put8(&memory, BYTES + 32 + lasti + 2, 72);
	assert_true(python_coroutine_read(&codes, coroutine_at(0), &coroutine));
	assert_int_equal(coroutine.awaits, coroutine_at(1));

	layout.at[PY_VERSION] = 0x030a00f0;
	layout.at[PY_GEN_STATE] = 108;
	layout.at[PY_FRAME_STACK] = 80;
	layout.at[PY_FRAME_INSTR] = 96;
	lasti = 20;
	pymem_put64(&memory, FRAME + 64, VALUES);
	pymem_put64(&memory, FRAME + 80, 2);
	pymem_put(&memory, FRAME + 96, &lasti, sizeof(lasti));
	pymem_put8(&memory, FRAME + 108, (uint8_t)-1);
	pymem_put8(&memory, BYTES + 32 + lasti * 2 + 2, 72);
	assert_true(python_coroutine_read(&codes, coroutine_at(0), &coroutine));
	assert_int_equal(coroutine.awaits, coroutine_at(1));
	pymem_put8(&memory, FRAME + 108, 0);
	assert_true(python_coroutine_read(&codes, coroutine_at(0), &coroutine));
	assert_int_equal(coroutine.state, PYTHON_COROUTINE_RUNNING);
}

/* Lists of tasks: */

enum { INTERP = PYMEM_BASE + 0x2000, TSTATE = PYMEM_BASE + 0x1000, TSTATE_TASKS = 0x100, INTERP_TASKS = 0x200 };

static struct python_thread thread = {.tid = 11, .own = 11, .tstate = TSTATE, .interp = INTERP, .thread = 0x7777};
static const struct python_threads threads = {.data = &thread, .len = 1};

static void link_tasks(uint64_t head, unsigned first, unsigned n)
{
	uint64_t last = head;

	for (unsigned i = first; i < first + n; i++) {
		pymem_put64(&memory, last, task_at(i) + TASK_NODE);
		last = task_at(i) + TASK_NODE;
	}
	pymem_put64(&memory, last, head);
}

static void want_lists(void)
{
	layout.at[PY_TASK_NODE] = TASK_NODE;
	layout.at[PY_TSTATE_TASKS] = TSTATE_TASKS;
	layout.at[PY_INTERP_TASKS] = INTERP_TASKS;
}

/* Of the thread, and of threads that have ended; tasks that have ended do not count, and none counts twice. */
static void test_lists(void **state)
{
	struct python_task_list list = {0};

	want_lists();
	put_chain();
	put_coroutine(3, CORO_TYPE, ENDED, 0, 0);
	for (unsigned i = 1; i < 5; i++)
		put_task(i, coroutine_at(i == 2 ? 3 : 0), OBJECTS + 0x200, OBJECTS + 0x300);
	link_tasks(TSTATE + TSTATE_TASKS, 0, 4);
	link_tasks(INTERP + INTERP_TASKS, 4, 1);
	assert_true(python_tasks_list(&layout, &memory.mem, &threads, &list));
	assert_int_equal(list.len, 4);
	assert_false(list.cut);
	assert_int_equal(list.data[0].object, task_at(0));
	assert_int_equal(list.data[0].tid, 11); /* its loop does not say: the one that created it */
	assert_int_equal(list.data[2].object, task_at(3));
	assert_int_equal(list.data[3].object, task_at(4));
	assert_int_equal(list.data[3].tid, 0);
	layout.at[PY_CORO_TYPE] = 0; /* nothing to tell a coroutine by */
	assert_true(python_tasks_list(&layout, &memory.mem, &threads, &list));
	assert_int_equal(list.len, 0);
	vec_deinit(&list);
}

/* A ring that does not come back to its head, and one that leads out of all memory. */
static void test_hostile_lists(void **state)
{
	struct python_task_list list = {0};

	want_lists();
	put_chain();
	put_task(1, coroutine_at(0), OBJECTS + 0x200, OBJECTS + 0x300);
	link_tasks(TSTATE + TSTATE_TASKS, 0, 2);
	pymem_put64(&memory, task_at(1) + TASK_NODE, task_at(0) + TASK_NODE);
	pymem_put64(&memory, INTERP + INTERP_TASKS, 0x10);
	assert_true(python_tasks_list(&layout, &memory.mem, &threads, &list));
	assert_int_equal(list.len, 2);
	assert_true(memory.reads < PYTHON_MAX_TASKS * 40);
	vec_deinit(&list);
}

/* A coroutine may be where no other version has it, as in a class of the program that adds to what a task has. */
static void test_parts(void **state)
{
	struct python_task_parts parts;
	uint64_t hint = 0;

	put_chain();
	assert_true(python_task_parts(&layout, &memory.mem, task_at(0), &hint, &parts));
	assert_int_equal(hint, TASK_CORO);
	assert_int_equal(parts.coroutine, coroutine_at(0));
	assert_int_equal(parts.waiter, OBJECTS + 0x200);
	assert_int_equal(parts.name, OBJECTS + 0x300);
	hint = 64;
	assert_true(python_task_parts(&layout, &memory.mem, task_at(0), &hint, &parts));
	assert_int_equal(hint, TASK_CORO);
	/* What acts like a coroutine counts where others have theirs, if it waits and has a name. */
	put_task(0, OBJECTS + 0x100, OBJECTS + 0x200, OBJECTS + 0x300);
	assert_true(python_task_parts(&layout, &memory.mem, task_at(0), &hint, &parts));
	put_task(0, OBJECTS + 0x100, 0, OBJECTS + 0x300);
	assert_false(python_task_parts(&layout, &memory.mem, task_at(0), &hint, &parts));
	put_task(0, OBJECTS + 0x100, OBJECTS + 0x200, OBJECTS + 0x100);
	assert_false(python_task_parts(&layout, &memory.mem, task_at(0), &hint, &parts));
	hint = UINT64_MAX - 8;
	assert_false(python_task_parts(&layout, &memory.mem, task_at(0), &hint, &parts));
	put_type(TASK_TYPE, "_asyncio.Task", UINT64_MAX, true);
	hint = 0;
	assert_false(python_task_parts(&layout, &memory.mem, task_at(0), &hint, &parts));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_chain, reset, finish),
		cmocka_unit_test_setup_teardown(test_several, reset, finish),
		cmocka_unit_test_setup_teardown(test_states, reset, finish),
		cmocka_unit_test_setup_teardown(test_through, reset, finish),
		cmocka_unit_test_setup_teardown(test_hostile_coroutines, reset, finish),
		cmocka_unit_test_setup_teardown(test_hostile_stacks, reset, finish),
		cmocka_unit_test_setup_teardown(test_later_versions, reset, finish),
		cmocka_unit_test_setup_teardown(test_earlier_versions, reset, finish),
		cmocka_unit_test_setup_teardown(test_frame_objects, reset, finish),
		cmocka_unit_test_setup_teardown(test_lists, reset, finish),
		cmocka_unit_test_setup_teardown(test_hostile_lists, reset, finish),
		cmocka_unit_test_setup_teardown(test_parts, reset, finish),
	};

	return cmocka_run_group_tests_name("python_tasks", tests, NULL, NULL);
}
