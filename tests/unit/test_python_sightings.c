/* SPDX-License-Identifier: MIT */
#include "pymem.h"

#include <stdlib.h>

#include "runtime/python/code.h"
#include "runtime/python/saved.h"

static struct pymem memory = {.mem = {.read = pymem_read}};
static struct python_sightings *sightings;
static struct python_chain chain;

static int set_up(void **state)
{
	memset(memory.bytes, 0, sizeof(memory.bytes));
	sightings = python_sightings_create();
	return sightings ? 0 : -1;
}

static int tear_down(void **state)
{
	free(sightings);
	return 0;
}

static void add(uint64_t code, uint32_t version)
{
	python_sightings_add(sightings, &(struct python_sighting){.code = code, .version = version});
}

/* The version that a frame with this code object is told. */
static uint32_t told(uint64_t code)
{
	chain = (struct python_chain){.len = 1, .frames = {{.code = code}}};
	assert_true(python_sightings_tell(sightings, &chain));
	return chain.frames[0].version;
}

/* What was seen first counts: later it may be another one. */
static void test_first_counts(void **state)
{
	assert_int_equal(told(0x1000), 0);
	add(0x1000, 7);
	add(0x1000, 8);
	add(0x2000, 9);
	assert_int_equal(told(0x1000), 7);
	assert_int_equal(told(0x2000), 9);
	assert_int_equal(told(0x3000), 0);
	assert_int_equal(sightings->len, 2);
	add(0x4000, 0);
	chain = (struct python_chain){.len = 2, .frames = {{.code = 0x1000}, {.code = 0x4000}}};
	assert_false(python_sightings_tell(sightings, &chain)); /* that was no code object */
}

static void test_full(void **state)
{
	for (uint32_t i = 0; i < PYTHON_MAX_SIGHTINGS + 10; i++)
		add(0x1000 + (uint64_t)i * 16, i + 1);
	assert_int_equal(sightings->len, PYTHON_MAX_SIGHTINGS);
	for (uint32_t i = 0; i < PYTHON_MAX_SIGHTINGS; i++)
		assert_int_equal(told(0x1000 + (uint64_t)i * 16), i + 1);
	assert_int_equal(told(0x1000 + (uint64_t)PYTHON_MAX_SIGHTINGS * 16), 0);
}

enum { CODES = PYMEM_BASE + 0x10000, CODE_SIZE = 0x200, NFRAMES = 8 };

static void put_code(const struct python_layout *l, unsigned i, uint64_t number)
{
	uint64_t at = CODES + i * CODE_SIZE;

	pymem_put64(&memory, at, 1);
	pymem_put64(&memory, at + 8, l->at[PY_CODE_TYPE]);
	pymem_put64(&memory, at + l->at[PY_CODE_LINES], number);
}

static uint32_t version_of(const struct python_layout *l, unsigned i)
{
	return python_code_version(l, &memory.mem, CODES + i * CODE_SIZE);
}

/* Of what was foreseen, the innermost may be others when the thread is held; what was noted while it was held stays. */
static void test_foreseen(void **state)
{
	struct python_layout l = pymem_layout();
	uint32_t before[NFRAMES];

	chain = (struct python_chain){.len = NFRAMES};
	for (unsigned i = 0; i < NFRAMES; i++) {
		put_code(&l, i, i);
		before[i] = version_of(&l, i);
		chain.frames[i].code = CODES + i * CODE_SIZE;
	}
	python_sightings_foresee(sightings, &l, &memory.mem, &chain);
	put_code(&l, 0, 100);
	put_code(&l, NFRAMES - 1, 100);
	python_sightings_note(sightings, &l, &memory.mem, &chain);
	put_code(&l, 1, 100);
	python_sightings_note(sightings, &l, &memory.mem, &chain);
	assert_true(python_sightings_tell(sightings, &chain));
	assert_int_equal(chain.frames[0].version, version_of(&l, 0));
	assert_int_not_equal(chain.frames[0].version, before[0]);
	for (unsigned i = 1; i < NFRAMES; i++)
		assert_int_equal(chain.frames[i].version, before[i]);
}

/* What is kept is what is loaded; a list that is shorter than it says is refused. */
static void test_saved(void **state)
{
	struct python_layout layout = pymem_layout(), loaded = {0};
	struct snapshot *snap = snapshot_create(1, arch_host());
	struct snap_runtime runtime = {0};
	struct python_threads threads = {0}, threads2 = {0};
	struct python_activations activations = {0}, activations2 = {0};
	struct python_task_list tasks = {0}, tasks2 = {0};
	struct python_sightings *sightings2 = python_sightings_create();
	const struct python_saved from = {&layout, &threads, sightings, &activations, &tasks};
	const struct python_saved to = {&loaded, &threads2, sightings2, &activations2, &tasks2};

	assert_true(snap && sightings2);
	assert_true(vec_push(&threads, (struct python_thread){.tid = 5, .native = 2, .tstate = 0x100, .is_daemon = true}));
	python_sightings_add(sightings, &(struct python_sighting){.code = 0x1000, .version = 7, .gone = true});
	assert_true(vec_push(&activations, (struct python_activation){.anchor = 0x7000, .pc = 0x400100}));
	assert_true(vec_push(&tasks, (struct python_task_entry){.object = 0x2000, .tid = 5, .has_changed = true}));
	assert_true(python_saved_keep(&from, snap, &runtime));
	assert_true(python_saved_load(&runtime, &to));
	assert_memory_equal(loaded.at, layout.at, sizeof(layout.at));
	assert_true(threads2.len == 1 && threads2.data[0].tid == 5 && threads2.data[0].native == 2 && threads2.data[0].is_daemon);
	assert_true(sightings2->len == 1 && sightings2->data[0].version == 7 && sightings2->data[0].gone);
	assert_true(activations2.len == 1 && activations2.data[0].anchor == 0x7000 && activations2.data[0].pc == 0x400100);
	assert_true(tasks2.len == 1 && tasks2.data[0].object == 0x2000 && tasks2.data[0].has_changed);
	for (uint32_t words = 0; words < runtime.nfacts - 3; words++) /* without tasks it is whole */
		assert_false(python_saved_load(&(struct snap_runtime){.facts = runtime.facts, .nfacts = words}, &to));
	runtime.facts[PY_SIGHTINGS] = UINT64_MAX;
	assert_false(python_saved_load(&runtime, &to));
	vec_deinit(&threads);
	vec_deinit(&threads2);
	vec_deinit(&activations);
	vec_deinit(&activations2);
	vec_deinit(&tasks);
	vec_deinit(&tasks2);
	free(sightings2);
	snapshot_destroy(snap);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_first_counts), TEST(test_full), TEST(test_foreseen), TEST(test_saved)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
