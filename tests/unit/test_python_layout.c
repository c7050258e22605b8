/* SPDX-License-Identifier: MIT */
/* Where things are, in a made-up process of 3.13 and of 3.9: what is found, and what is refused. */
#include "pymem.h"

#include "runtime/python/gil.h"
#include "runtime/python/threads.h"

enum {
	RUNTIME = PYMEM_BASE,
	INTERP = PYMEM_BASE + 0x10000,
	TSTATE = PYMEM_BASE + 0x20000, /* and another one 0x1000 behind */
	PTHREAD = PYMEM_BASE + 0x30000,
	TYPE = PYMEM_BASE + 0x8000,
	MEMBERS = PYMEM_BASE + 0x9000,
	VERSION = PYMEM_BASE + 0xa000,
	GIL = PYMEM_BASE + 0xb000,
};

static struct pymem memory = {.mem = {.read = pymem_read}};
static struct python_threads threads;
static struct err err;
static pid_t numbers[] = {4711, 4712};
static const struct tid_list tids = {.data = numbers, .len = 2};

static void put_member(unsigned i, const char *name, uint64_t offset)
{
	pymem_put64(&memory, MEMBERS + i * 40, MEMBERS + 0x800 + i * 32);
	pymem_put(&memory, MEMBERS + 0x800 + i * 32, name, strlen(name) + 1);
	pymem_put64(&memory, MEMBERS + i * 40 + 16, offset);
}

static const struct python_symbols symbols = {
	.runtime = RUNTIME,   .code_type = TYPE,         .version = VERSION, .eval = 0x400000,
	.eval_end = 0x410000, .coro_type = TYPE + 0x400, .gen_type = TYPE + 0x800, .async_gen_type = TYPE + 0xc00};

static int reset(void **state)
{
	struct python_layout l = pymem_layout();
	static const struct {
		unsigned index;
		enum python_word word;
	} words[] = {{5, PY_RUNTIME_INTERPRETERS}, {8, PY_INTERP_NEXT},     {9, PY_INTERP_THREADS}, {11, PY_INTERP_MODULES},
		     {14, PY_INTERP_GIL},          {21, PY_TSTATE_NEXT},    {22, PY_TSTATE_INTERP}, {23, PY_TSTATE_FRAME},
		     {24, PY_TSTATE_THREAD},       {25, PY_TSTATE_NATIVE},  {29, PY_FRAME_PREVIOUS}, {30, PY_FRAME_CODE},
		     {31, PY_FRAME_INSTR},         {32, PY_FRAME_LOCALS},   {33, PY_FRAME_OWNER},   {35, PY_CODE_FILENAME},
		     {36, PY_CODE_NAME},           {37, PY_CODE_QUALNAME},  {38, PY_CODE_LINES},    {39, PY_CODE_FIRSTLINE},
		     {41, PY_CODE_VARIABLES},      {43, PY_CODE_BYTES}};

	memset(memory.bytes, 0, sizeof(memory.bytes));
	memory.reads = 0;
	err = (struct err){0};
	pymem_put(&memory, RUNTIME, "xdebugpy", 8);
	pymem_put64(&memory, RUNTIME + 8, 0x030d05f0);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		pymem_put64(&memory, RUNTIME + words[i].index * 8, l.at[words[i].word]);
	pymem_put64(&memory, VERSION, 0x030d05f0);
	pymem_put64(&memory, TYPE + 240, MEMBERS);
	pymem_put64(&memory, TYPE + 32, 208);
	put_member(0, "co_argcount", 52);
	put_member(1, "co_filename", 112);
	put_member(2, "co_name", 120);
	put_member(3, "co_qualname", 128);
	put_member(4, "co_firstlineno", 68);
	put_member(5, "co_linetable", 136);
	pymem_put64(&memory, RUNTIME + 632, INTERP);
	pymem_put64(&memory, INTERP + 7344, TSTATE);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t tstate = TSTATE + i * 0x1000;

		pymem_put64(&memory, tstate + 8, i ? 0 : tstate + 0x1000);
		pymem_put64(&memory, tstate + 16, INTERP);
		pymem_put64(&memory, tstate + 152, PTHREAD + i * 0x1000);
		pymem_put64(&memory, tstate + 160, 4712 - i);
	}
	return 0;
}

static int finish(void **state)
{
	vec_deinit(&threads);
	return 0;
}

static void test_offsets_of_the_target(void **state)
{
	struct python_layout l, expected = pymem_layout();

	assert_int_equal(python_layout_read(&symbols, &memory.mem, &err, &l), 0);
	assert_memory_equal(&l, &expected, sizeof(l));
	assert_true(python_layout_is_sane(&l));
}

/* What the module with the tasks says of these counts only as a whole, and never against the rest. */
static void test_offsets_of_tasks(void **state)
{
	struct python_symbols more = symbols;
	struct python_layout l;

	more.tstate_tasks = 880;
	more.interp_tasks = 10896;
	more.task_node = 152;
	assert_int_equal(python_layout_read(&more, &memory.mem, &err, &l), 0);
	assert_int_equal(l.at[PY_TSTATE_TASKS], 880);
	assert_int_equal(l.at[PY_INTERP_TASKS], 10896);
	assert_int_equal(l.at[PY_TASK_NODE], 152);
	more.interp_tasks = UINT64_MAX;
	assert_int_equal(python_layout_read(&more, &memory.mem, &err, &l), 0);
	assert_int_equal(l.at[PY_TASK_NODE], 0);
}

static void refuse(const char *why)
{
	struct python_layout l;

	assert_true(python_layout_read(&symbols, &memory.mem, &err, &l) < 0);
	if (!strstr(err.msg, why))
		fail_msg("%s: not %s", err.msg, why);
	reset(NULL);
}

static void test_refused(void **state)
{
	pymem_put64(&memory, VERSION, 0x030700f0);
	refuse("3.7 is not supported");
	pymem_put64(&memory, VERSION, 0x031f00f0);
	refuse("3.31 is not supported");
	pymem_put64(&memory, VERSION, 0x02070000);
	refuse("version is not known");
	pymem_put64(&memory, RUNTIME, 0);
	refuse("table of offsets");
	pymem_put64(&memory, RUNTIME + 8, 0x030e00f0);
	refuse("table of offsets");
	pymem_put64(&memory, RUNTIME + 16, 1);
	refuse("free-threaded");
	pymem_put64(&memory, RUNTIME + 35 * 8, 104);
	refuse("two sources");
	pymem_put64(&memory, TYPE + 32, 216);
	refuse("instructions");
	pymem_put64(&memory, TYPE + 240, 0);
	refuse("PyCode_Type");
	pymem_put64(&memory, RUNTIME + 23 * 8, UINT64_C(1) << 40);
	refuse("beyond its structure");
	pymem_put64(&memory, RUNTIME + 31 * 8, 4096);
	refuse("beyond its structure");
}

static void test_threads(void **state)
{
	struct python_layout l = pymem_layout();

	assert_int_equal(python_threads_list(&l, &memory.mem, &tids, &err, &threads), 0);
	assert_int_equal(threads.len, 2);
	assert_int_equal(threads.data[0].tid, 4712);
	assert_int_equal(threads.data[0].tstate, TSTATE);
	assert_int_equal(threads.data[1].tid, 4711);
	assert_int_equal(threads.data[1].interp, INTERP);
}

/* Of another process, of no interpreter, a ring, and one that leads away. */
static void test_threads_that_do_not_fit(void **state)
{
	struct python_layout l = pymem_layout();

	pymem_put64(&memory, TSTATE + 160, 17);
	assert_int_equal(python_threads_list(&l, &memory.mem, &tids, &err, &threads), 0);
	assert_int_equal(threads.len, 1);
	pymem_put64(&memory, TSTATE + 0x1000 + 160, 18);
	assert_true(python_threads_list(&l, &memory.mem, &tids, &err, &threads) < 0);
	assert_non_null(strstr(err.msg, "layout check failed"));
	reset(state);
	pymem_put64(&memory, TSTATE + 16, INTERP + 8);
	assert_true(python_threads_list(&l, &memory.mem, &tids, &err, &threads) < 0);
	reset(state);
	pymem_put64(&memory, RUNTIME + 632, 0);
	assert_true(python_threads_list(&l, &memory.mem, &tids, &err, &threads) < 0);
	reset(state);
	pymem_put64(&memory, TSTATE + 8, TSTATE);
	pymem_put64(&memory, INTERP + 7264, INTERP);
	memory.reads = 0;
	assert_int_equal(python_threads_list(&l, &memory.mem, &tids, &err, &threads), 0);
	assert_true(memory.reads < 5 * PYTHON_MAX_THREADS + 4 * PYTHON_MAX_INTERPRETERS);
}

/* Up to 3.10 the tid is somewhere in what pthread_self() points to. */
static void test_tids_of_the_c_library(void **state)
{
	struct python_layout l = pymem_layout();
	uint32_t tid = 4712, other = 4711;

	l.at[PY_TSTATE_NATIVE] = 0;
	assert_true(python_threads_list(&l, &memory.mem, &tids, &err, &threads) < 0);
	pymem_put(&memory, PTHREAD + 0x60, &tid, 4); /* the same in both: no thread's own */
	pymem_put(&memory, PTHREAD + 0x1060, &tid, 4);
	pymem_put(&memory, PTHREAD + 0x2d0, &tid, 4);
	pymem_put(&memory, PTHREAD + 0x12d0, &other, 4);
	assert_int_equal(python_threads_list(&l, &memory.mem, &tids, &err, &threads), 0);
	assert_int_equal(l.at[PY_PTHREAD_TID], 0x2d0);
	assert_int_equal(threads.data[0].tid, 4712);
	assert_int_equal(threads.data[1].tid, 4711);
	/* Known once, it stays. */
	assert_int_equal(python_threads_list(&l, &memory.mem, &tids, &err, &threads), 0);
	assert_int_equal(threads.len, 2);
}

static void test_gil(void **state)
{
	struct snap_thread thread = {.syscall = {.state = SYSCALL_IN, .args = {GIL + 40}}};
	struct python_layout l = pymem_layout();
	struct python_gil gil;

	assert_false(python_gil_read(&l, &memory.mem, INTERP, &gil));
	pymem_put64(&memory, INTERP + 16, GIL);
	pymem_put64(&memory, GIL + 8, TSTATE);
	assert_true(python_gil_read(&l, &memory.mem, INTERP, &gil));
	assert_int_equal(gil.holder, 0); /* the last one, which has let go */
	pymem_put64(&memory, GIL + 16, 1);
	assert_true(python_gil_read(&l, &memory.mem, INTERP, &gil));
	assert_int_equal(gil.holder, TSTATE);
	assert_int_equal(python_gil_find_wait(&gil, arch_host(), &thread), GIL_AWAITED);
	thread.syscall.args[0] = GIL - 8;
	assert_int_equal(python_gil_find_wait(&gil, arch_host(), &thread), GIL_NOT_AWAITED);
	thread.syscall.args[0] = GIL + 400;
	assert_int_equal(python_gil_find_wait(&gil, arch_host(), &thread), GIL_NOT_AWAITED);
	thread = (struct snap_thread){.state = 'T'};
	assert_int_equal(python_gil_find_wait(&gil, arch_host(), &thread), GIL_WAIT_UNKNOWN);
	l.at[PY_RUNTIME_GIL] = 0xb000;
	pymem_put64(&memory, INTERP + 16, 0);
	assert_true(python_gil_read(&l, &memory.mem, INTERP, &gil));
	assert_int_equal(gil.address, GIL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_offsets_of_the_target, reset),
		cmocka_unit_test_setup(test_offsets_of_tasks, reset),
		cmocka_unit_test_setup(test_refused, reset),
		cmocka_unit_test_setup_teardown(test_threads, reset, finish),
		cmocka_unit_test_setup_teardown(test_threads_that_do_not_fit, reset, finish),
		cmocka_unit_test_setup_teardown(test_tids_of_the_c_library, reset, finish),
		cmocka_unit_test_setup(test_gil, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
