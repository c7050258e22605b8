/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"
#include "fake_probe.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "offcpu/feed/found_sets.h"
#include "target/target.h"

enum { START = 0x10000, SIZE = 0x1000 };

struct fixture {
	struct offcpu_probe probe;
	pthread_mutex_t lock; /* held throughout */
	struct objects *objects;
	struct found_sets *sets;
	struct target *target;
	uint32_t object; /* of this program */
	struct object_table table;
};

static bool make_room(void *arg)
{
	return false;
}

static uint32_t take_own_code(struct fixture *f)
{
	for (size_t i = 0; i < f->target->snap->maps.len; i++) {
		const struct map_entry *e = &f->target->snap->maps.data[i];
		struct module *module;
		enum objects_fit fit;
		uint64_t vaddr;

		if ((uintptr_t)take_own_code < e->start || e->end <= (uintptr_t)take_own_code)
			continue;
		module = modules_find(f->target->modules, e->start, &vaddr);
		return objects_take(f->objects, f->target->modules, e, module, vaddr, &fit);
	}
	return OFFCPU_NO_OBJECT;
}

static int start(void **state)
{
	const struct objects_limits limits = {.files = 4, .rows = 1 << 20};
	static struct fixture f;

	f = (struct fixture){0};
	fake_probe_init(&f.probe);
	pthread_mutex_init(&f.lock, NULL);
	pthread_mutex_lock(&f.lock);
	f.objects = objects_create(&f.probe, &f.lock, &limits, make_room, NULL);
	f.sets = found_sets_create(&f.probe, f.objects);
	if (!f.sets || target_open_whole(getpid(), NULL, NULL, &f.target) < 0)
		return -1;
	f.object = take_own_code(&f);
	objects_flush(f.objects);
	f.table = objects_table(f.objects, f.object);
	*state = &f;
	return f.table.nrows ? 0 : -1;
}

static int finish(void **state)
{
	struct fixture *f = *state;

	found_sets_destroy(f->sets);
	objects_destroy(f->objects);
	target_close(f->target);
	fake_probe_deinit(&f->probe);
	return 0;
}

struct record {
	struct offcpu_found head;
	struct offcpu_mapping mappings[OFFCPU_FOUND_MAPPINGS];
};

static size_t make(const struct fixture *f, uint32_t number, uint32_t count, struct record *out)
{
	*out = (struct record){.head = {.kind = OFFCPU_FOUND, .set = OFFCPU_FOUND_SET | number, .count = count}};
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t at = START + 2 * SIZE * (uint64_t)i;

		out->mappings[i] = (struct offcpu_mapping){
			.start = at,
			.end = at + SIZE,
			.bias = at + f->table.base,
			.object = f->object,
			.nrows = f->table.nrows,
			.serial = f->table.serial,
		};
	}
	return sizeof(out->head) + count * sizeof(out->mappings[0]);
}

static bool add(struct fixture *f, uint32_t number, uint32_t count)
{
	struct record record;
	size_t len = make(f, number, count, &record);

	return found_sets_add(f->sets, &record, len);
}

static bool knows(struct fixture *f, uint32_t number, uint64_t address)
{
	struct mapping mapping;

	return found_sets_find(f->sets, OFFCPU_FOUND_SET | number, address, &mapping);
}

static void test_finds(void **state)
{
	struct fixture *f = *state;
	struct mapping mapping;

	assert_true(add(f, 5, 2));
	assert_true(found_sets_find(f->sets, OFFCPU_FOUND_SET | 5, START + 2 * SIZE + 3, &mapping));
	assert_true(mapping.start == START + 2 * SIZE && mapping.end == mapping.start + SIZE);
	assert_true(mapping.bias == mapping.start && mapping.object == f->object && !mapping.maker);
	assert_false(knows(f, 5, START - 1));
	assert_false(knows(f, 5, START + SIZE));
	assert_false(knows(f, 6, START));
	assert_non_null(objects_module(f->objects, f->object)); /* it can be named from now on */
}

/* Who has a set keeps its files; when it goes, so do they. */
static void test_keeps_objects(void **state)
{
	struct fixture *f = *state;

	assert_true(add(f, 1, 1));
	objects_give(f->objects, f->object);
	assert_int_equal(objects_flush(f->objects), 0);
	assert_true(objects_take_found(f->objects, f->object, f->table.serial));
	objects_give(f->objects, f->object);
	assert_true(found_sets_drop_oldest(f->sets));
	assert_false(found_sets_drop_oldest(f->sets));
	assert_false(objects_take_found(f->objects, f->object, f->table.serial));
	assert_false(knows(f, 1, START));
}

/* BPF may still use it: it is told that it is gone, but for what it has given to others. */
static void test_drops_what_is_used(void **state)
{
	enum { FIRST = 100, COUNT = 3 };
	struct fixture *f = *state;
	struct record record;
	size_t len = make(f, 1, COUNT, &record);

	record.head.first = FIRST;
	for (uint32_t i = 0; i <= COUNT; i++)
		f->probe.mappings[FIRST + i] = (struct offcpu_mapping){.start = 1, .set = record.head.set};
	f->probe.mappings[FIRST + 1].set++;
	assert_true(found_sets_add(f->sets, &record, len));
	assert_true(found_sets_drop_oldest(f->sets));
	assert_int_equal(f->probe.mappings[FIRST].set, 0);
	assert_int_equal(f->probe.mappings[FIRST].start, 0);
	assert_int_equal(f->probe.mappings[FIRST + 1].set, record.head.set + 1);
	assert_int_equal(f->probe.mappings[FIRST + 2].set, 0);
	assert_int_equal(f->probe.mappings[FIRST + 3].set, record.head.set);
}

/* A file that is gone, or whose number another has, is left out. */
static void test_gone(void **state)
{
	struct fixture *f = *state;
	struct record record;
	size_t len = make(f, 1, 3, &record);

	record.mappings[0].serial++;
	record.mappings[1].object = 4;
	assert_true(found_sets_add(f->sets, &record, len));
	assert_false(knows(f, 1, START));
	assert_false(knows(f, 1, START + 2 * SIZE));
	assert_true(knows(f, 1, START + 4 * SIZE));
}

/* The oldest go when there are too many, long after BPF has given their room away. */
static void test_many(void **state)
{
	struct fixture *f = *state;
	const uint32_t kept = 2 * OFFCPU_FOUND_SLOTS / OFFCPU_FOUND_MAPPINGS;

	for (uint32_t i = 0; i < 2 * kept; i++) {
		assert_true(add(f, i, OFFCPU_FOUND_MAPPINGS));
		assert_true(knows(f, i, START));
	}
	assert_false(knows(f, kept - 1, START));
	assert_true(knows(f, kept, START));
	for (uint32_t i = 0; i < 1 << 17; i++) /* empty ones take no mappings */
		assert_true(add(f, 2 * kept + i, i % 2));
	assert_true(knows(f, 2 * kept + (1 << 17) - 1, START));
	for (int i = 0; i < 1 << 15; i++)
		found_sets_drop_oldest(f->sets);
	assert_false(found_sets_drop_oldest(f->sets));
	assert_true(objects_take_found(f->objects, f->object, f->table.serial));
}

/* The same number twice: the second counts, and nothing is lost. */
static void test_same_number(void **state)
{
	struct fixture *f = *state;

	assert_true(add(f, 1, 2));
	assert_true(add(f, 1, 1));
	assert_false(knows(f, 1, START + 2 * SIZE));
	assert_true(found_sets_drop_oldest(f->sets));
	assert_false(found_sets_drop_oldest(f->sets));
}

static void test_bad_records(void **state)
{
	struct fixture *f = *state;
	struct record record;
	size_t len = make(f, 1, 2, &record);

	assert_false(found_sets_add(f->sets, &record, 0));
	assert_false(found_sets_add(f->sets, &record, sizeof(record.head) - 1));
	assert_false(found_sets_add(f->sets, &record, len - 1));
	record.head.count = OFFCPU_FOUND_MAPPINGS + 1;
	assert_false(found_sets_add(f->sets, &record, sizeof(record) + sizeof(record.mappings[0])));
	make(f, 1, 2, &record);
	record.head.set = 1; /* the loader's */
	assert_false(found_sets_add(f->sets, &record, len));
	assert_false(found_sets_drop_oldest(f->sets));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_finds, start, finish),
		cmocka_unit_test_setup_teardown(test_keeps_objects, start, finish),
		cmocka_unit_test_setup_teardown(test_drops_what_is_used, start, finish),
		cmocka_unit_test_setup_teardown(test_gone, start, finish),
		cmocka_unit_test_setup_teardown(test_many, start, finish),
		cmocka_unit_test_setup_teardown(test_same_number, start, finish),
		cmocka_unit_test_setup_teardown(test_bad_records, start, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
