/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"
#include "fake_probe.h"

#include <string.h>
#include <unistd.h>

#include "offcpu/feed/mapping_sets.h"
#include "target/target.h"

enum { MAX = 100 };

struct fixture {
	struct offcpu_probe probe;
	pthread_mutex_t lock; /* held throughout */
	struct objects *objects;
	struct mapping_sets *sets;
};

static bool make_room(void *arg)
{
	struct fixture *f = arg;

	return mapping_sets_drop_oldest(f->sets);
}

static int start(void **state)
{
	const struct objects_limits limits = {.files = 4, .rows = 1 << 20};
	static struct fixture f;

	fake_probe_init(&f.probe);
	pthread_mutex_init(&f.lock, NULL);
	pthread_mutex_lock(&f.lock);
	f.objects = objects_create(&f.probe, &f.lock, &limits, make_room, &f);
	f.sets = mapping_sets_create(&f.probe, f.objects, MAX, make_room, &f);
	*state = &f;
	return f.sets ? 0 : -1;
}

static int finish(void **state)
{
	struct fixture *f = *state;

	mapping_sets_destroy(f->sets);
	objects_destroy(f->objects);
	fake_probe_deinit(&f->probe);
	return 0;
}

/* `count` mappings of 16 bytes, 32 apart. */
static uint32_t take(struct fixture *f, uint64_t start_at, uint32_t count, bool is_new)
{
	struct mappings mappings = {0};
	bool created;
	uint32_t id;

	for (uint32_t i = 0; i < count; i++) {
		struct mapping m = {
			.start = start_at + 32 * i, .end = start_at + 32 * i + 16, .object = OFFCPU_NO_OBJECT};

		assert_true(vec_push(&mappings, m));
	}
	id = mapping_sets_take(f->sets, &mappings, &created);
	assert_null(mappings.data);
	assert_true(!id || created == is_new);
	return id;
}

static bool knows(struct fixture *f, uint32_t id, uint64_t address)
{
	struct mapping mapping;

	return mapping_sets_find(f->sets, id, address, &mapping);
}

static void test_finds(void **state)
{
	struct fixture *f = *state;
	uint32_t id = take(f, 1000, 5, true), none = take(f, 0, 0, true);
	struct offcpu_maps maps = mapping_sets_maps(f->sets, id);
	struct mapping mapping;

	assert_int_equal(maps.set, id);
	assert_int_equal(maps.count, 5);
	for (uint32_t i = 0; i < 5; i++) {
		assert_true(mapping_sets_find(f->sets, id, 1000 + 32 * i + 15, &mapping));
		assert_int_equal(mapping.start, 1000 + 32 * i);
		assert_int_equal(f->probe.mappings[maps.first + i].start, mapping.start);
		assert_int_equal(f->probe.mappings[maps.first + i].end, mapping.end);
		assert_int_equal(f->probe.mappings[maps.first + i].object, OFFCPU_NO_OBJECT);
		assert_int_equal(f->probe.mappings[maps.first + i].set, id);
		assert_false(knows(f, id, 1000 + 32 * i + 16));
	}
	assert_false(knows(f, id, 999));
	assert_false(knows(f, none, 1000));
	assert_false(knows(f, 0, 1000));
	assert_false(knows(f, id + 1, 1000));
	assert_false(knows(f, id + (1 << 16), 1000));
	assert_int_equal(mapping_sets_maps(f->sets, none).count, 0);
}

/* Processes that have the same have it once. */
static void test_shared(void **state)
{
	struct fixture *f = *state;
	uint32_t id = take(f, 1000, 60, true), other = take(f, 1001, 40, true);

	assert_int_not_equal(id, other);
	for (int i = 0; i < 50; i++)
		assert_int_equal(take(f, 1000, 60, false), id);
	for (int i = 0; i < 50; i++)
		mapping_sets_give(f->sets, id);
	assert_false(mapping_sets_drop_oldest(f->sets)); /* somebody has it still */
	mapping_sets_give(f->sets, id);
	assert_true(knows(f, id, 1000)); /* and then it is known until its room is needed */
	assert_int_equal(take(f, 1000, 60, false), id);
	assert_false(mapping_sets_drop_oldest(f->sets));
}

/* The oldest of those that nobody has make room, and whoever walks with them finds that they are gone. */
static void test_room(void **state)
{
	struct fixture *f = *state;
	uint32_t a = take(f, 1000, 30, true), b = take(f, 2000, 30, true), c = take(f, 3000, 30, true), d;
	struct offcpu_maps old = mapping_sets_maps(f->sets, b);

	assert_int_equal(take(f, 4000, 30, true), 0);
	mapping_sets_give(f->sets, b);
	mapping_sets_give(f->sets, a);
	d = take(f, 4000, 20, true);
	assert_int_not_equal(d, 0);
	assert_false(knows(f, b, 2000));
	assert_true(knows(f, a, 1000));
	assert_true(knows(f, c, 3000));
	for (uint32_t i = 0; i < old.count; i++)
		assert_int_not_equal(f->probe.mappings[old.first + i].set, b);
	assert_int_not_equal(d, b);
	assert_int_not_equal(take(f, 5000, 30, true), 0);
	assert_false(knows(f, a, 1000));
	assert_int_equal(take(f, 6000, 31, true), 0);
}

/* A set has its objects as long as it is there, and no longer. */
static void test_objects(void **state)
{
	struct fixture *f = *state;
	struct target *target;
	struct mappings mappings = {0};
	enum objects_fit fit;
	struct module *module;
	uint32_t object, id;
	uint64_t vaddr;
	bool created;

	assert_int_equal(target_open_whole(getpid(), NULL, NULL, &target), 0);
	module = modules_find(target->modules, (uintptr_t)test_objects, &vaddr);
	object = objects_take(f->objects, target->modules, maps_find(&target->snap->maps, (uintptr_t)test_objects), module,
			      vaddr, &fit);
	assert_int_not_equal(object, OFFCPU_NO_OBJECT);
	target_close(target);
	assert_true(vec_push(&mappings, (struct mapping){.start = 16, .end = 32, .bias = 5, .object = object}));
	objects_take_again(f->objects, object);
	assert_true(vec_push(&mappings, (struct mapping){.start = 32, .end = 48, .bias = 7, .object = object}));
	assert_int_equal(objects_flush(f->objects), 0);
	id = mapping_sets_take(f->sets, &mappings, &created);
	assert_int_not_equal(id, 0);
	assert_int_equal(f->probe.mappings[0].object, object);
	assert_int_equal(f->probe.mappings[0].nrows, f->probe.rows[object]);
	assert_int_equal(f->probe.mappings[0].bias, 5 + objects_table(f->objects, object).base);
	assert_true(f->probe.rows[object] > 1);
	mapping_sets_give(f->sets, id);
	assert_null(objects_module(f->objects, object)); /* none of its addresses is to be named */
	assert_true(knows(f, id, 20));
	assert_non_null(objects_module(f->objects, object));
	assert_true(mapping_sets_drop_oldest(f->sets));
	assert_int_equal(objects_flush(f->objects), 0);
	assert_int_equal(f->probe.rows[object], 1);
	assert_non_null(objects_module(f->objects, object));
}

/* Numbers of sets that come and go do not repeat soon. */
static void test_numbers(void **state)
{
	struct fixture *f = *state;
	uint32_t first = take(f, 1000, 1, true), id;

	mapping_sets_give(f->sets, first);
	assert_true(mapping_sets_drop_oldest(f->sets));
	for (uint32_t i = 1; i < 60000; i++) {
		id = take(f, 1000 + i, 1, true);
		assert_int_not_equal(id, 0);
		assert_int_not_equal(id, first);
		mapping_sets_give(f->sets, id);
	}
	assert_false(knows(f, first, 1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_finds, start, finish),
		cmocka_unit_test_setup_teardown(test_shared, start, finish),
		cmocka_unit_test_setup_teardown(test_room, start, finish),
		cmocka_unit_test_setup_teardown(test_objects, start, finish),
		cmocka_unit_test_setup_teardown(test_numbers, start, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
