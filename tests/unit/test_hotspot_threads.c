/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdio.h>

#include "hotspot_fake.h"
#include "model/snapshot.h"
#include "runtime/hotspot/fields.h"
#include "runtime/hotspot/threads.h"
#include "runtime/hotspot/waits.h"

static struct fake fake;

enum {
	LIST_POINTER = FAKE_DATA + 0x10,
	LIST = FAKE_DATA + 0x20, /* length at 0, pointers behind 8 */
	ARRAY = FAKE_DATA + 0x80,
	JAVA_THREAD = FAKE_DATA + 0x100, /* next 0, object 8, stack's base 16 and size 24 */
	HANDLE = FAKE_DATA + 0x180,
	THREAD_CLASS = FAKE_DATA + 0x200, /* name 0, constants 8, fields 16, count 24 */
	STRING_CLASS = FAKE_DATA + 0x300,
	THREAD_POOL = FAKE_DATA + 0x400,
	STRING_POOL = FAKE_DATA + 0x500,
	THREAD_FIELDS = FAKE_DATA + 0x600,
	STRING_FIELDS = FAKE_DATA + 0x700,
	SYMBOLS = FAKE_DATA + 0x800,
	THREAD = FAKE_DATA + 0x2000, /* objects */
	STRING = FAKE_DATA + 0x2100,
	BYTES = FAKE_DATA + 0x2200,
	STACK_BASE = 0x70000000,
	STACK_SIZE = 0x10000,
};

static unsigned nsymbols;

static unsigned put_symbol(uint64_t pool, unsigned index, const char *text)
{
	uint64_t at = SYMBOLS + 0x40 * nsymbols++;

	fake_symbol(&fake, at, text);
	fake_put(&fake, pool + FAKE_POOL + 8 * index, at, 8);
	return index;
}

/* A class of fields, in the form of before 21. */
static void put_class(uint64_t class, uint64_t pool, uint64_t fields, const struct java_field *list, unsigned n)
{
	fake_put(&fake, class + 8, pool, 8);
	fake_put(&fake, class + 16, fields, 8);
	fake_put(&fake, class + 24, n, 2);
	fake_put(&fake, pool + 8, 40, 4);
	fake_put(&fake, fields, 6 * n, 4);
	for (unsigned i = 0; i < n; i++) {
		char type[2] = {list[i].type};
		uint64_t at = fields + 4 + 12 * i;

		fake_put(&fake, at, 0, 2);
		fake_put(&fake, at + 2, put_symbol(pool, 1 + 2 * i, list[i].name), 2);
		fake_put(&fake, at + 4, put_symbol(pool, 2 + 2 * i, type), 2);
		fake_put(&fake, at + 8, (uint64_t)list[i].offset << 2 | 1, 4);
	}
}

static int set_up(void **state)
{
	static const struct java_field thread[] = {{"eetop", 16, 'J'}, {"name", 24, 'L'}, {"threadStatus", 28, 'I'}, {"daemon", 32, 'Z'}};
	static const struct java_field string[] = {{"value", 16, '['}, {"coder", 20, 'B'}, {"hash", 12, 'I'}};
	uint64_t *facts = fake.layout.facts;

	fake_init(&fake);
	nsymbols = 0;
	fake_field(&fake, HS_KLASS_CONSTANTS, 8, 8, false);
	fake_field(&fake, HS_KLASS_FIELDS, 16, 8, false);
	fake_field(&fake, HS_KLASS_FIELD_COUNT, 24, 2, false);
	fake_field(&fake, HS_LIST_LENGTH, 0, 4, false);
	fake_field(&fake, HS_LIST_THREADS, 8, 8, false);
	fake_field(&fake, HS_THREAD_NEXT, 0, 8, false);
	fake_field(&fake, HS_THREAD_OBJECT, 8, 8, false);
	fake_field(&fake, HS_THREAD_STACK_BASE, 16, 8, false);
	fake_field(&fake, HS_THREAD_STACK_SIZE, 24, 8, false);
	facts[HS_AT_THREADS_LIST] = LIST_POINTER;
	facts[HS_THREAD_OBJECT_IS_HANDLE] = 1;
	facts[HS_CLASS_THREAD] = THREAD_CLASS;
	facts[HS_CLASS_STRING] = STRING_CLASS;
	facts[HS_NARROW_OOP_BASE] = facts[HS_NARROW_KLASS_BASE] = 0;
	facts[HS_NARROW_OOP_SHIFT] = 3;
	facts[HS_NARROW_KLASS_SHIFT] = 0;
	put_class(THREAD_CLASS, THREAD_POOL, THREAD_FIELDS, thread, 4);
	put_class(STRING_CLASS, STRING_POOL, STRING_FIELDS, string, 3);
	fake_put(&fake, LIST_POINTER, LIST, 8);
	fake_put(&fake, LIST, 1, 4);
	fake_put(&fake, LIST + 8, ARRAY, 8);
	fake_put(&fake, ARRAY, JAVA_THREAD, 8);
	fake_put(&fake, JAVA_THREAD + 8, HANDLE, 8);
	fake_put(&fake, JAVA_THREAD + 16, STACK_BASE, 8);
	fake_put(&fake, JAVA_THREAD + 24, STACK_SIZE, 8);
	fake_put(&fake, HANDLE, THREAD, 8);
	fake_put(&fake, THREAD + 16, JAVA_THREAD, 8);
	fake_put(&fake, THREAD + 24, STRING >> 3, 4);
	fake_put(&fake, THREAD + 28, 0x191, 4);
	fake_put(&fake, THREAD + 32, 1, 1);
	fake_put(&fake, STRING + 8, STRING_CLASS, 4);
	fake_put(&fake, STRING + 16, BYTES >> 3, 4);
	fake_put(&fake, BYTES + 12, 6, 4);
	memcpy(fake.bytes + (BYTES + 16 - FAKE_BASE), "worker", 6);
	return 0;
}

static int tear_down(void **state)
{
	fake_deinit(&fake);
	return 0;
}

/* What is found of the thread; its name is "" when there is none. */
static struct java_thread find(char *name, size_t size)
{
	struct arena *arena = arena_create();
	struct java_threads threads;
	const struct java_thread *found;
	struct java_thread copy = {0};

	fake_load(&fake);
	java_threads_init(&threads, &fake.layout, &fake.pages, arena);
	assert_true(java_threads_read(&threads));
	assert_null(java_threads_find(&threads, STACK_BASE));
	assert_null(java_threads_find(&threads, STACK_BASE - STACK_SIZE - 1));
	found = java_threads_find(&threads, STACK_BASE - 8);
	assert_int_equal(java_threads_lack_objects(&threads), found && !found->name);
	assert_ptr_equal(java_threads_find(&threads, STACK_BASE - STACK_SIZE), found);
	if (found)
		copy = *found;
	snprintf(name, size, "%s", copy.name ? copy.name : "");
	java_threads_deinit(&threads);
	arena_destroy(arena);
	return copy;
}

static void test_thread(void **state)
{
	char name[64];
	struct java_thread found = find(name, sizeof(name));

	assert_string_equal(name, "worker");
	assert_string_equal(found.state, "WAITING");
	assert_true(found.has_daemon && found.is_daemon);
}

/* UTF-16, with a character of two halves, and one half alone. */
static void test_wide_name(void **state)
{
	static const uint8_t wide[] = {0xe4, 0, 0x3d, 0xd8, 0x34, 0xde, 0x61, 0x77, 0x3d, 0xd8};
	char name[64];

	fake_put(&fake, STRING + 20, 1, 1);
	fake_put(&fake, BYTES + 12, sizeof(wide), 4);
	memcpy(fake.bytes + (BYTES + 16 - FAKE_BASE), wide, sizeof(wide));
	find(name, sizeof(name));
	assert_string_equal(name, "ä😴睡\xef\xbf\xbd");
}

/* Up to 11 the threads are a chain, and the reference is their own. */
static void test_chain(void **state)
{
	char name[64];

	fake.layout.facts[HS_AT_THREADS_LIST] = HS_ABSENT;
	fake.layout.facts[HS_AT_FIRST_THREAD] = LIST_POINTER;
	fake.layout.facts[HS_THREAD_OBJECT_IS_HANDLE] = 0;
	fake_put(&fake, LIST_POINTER, JAVA_THREAD, 8);
	fake_put(&fake, JAVA_THREAD + 8, THREAD, 8);
	find(name, sizeof(name));
	assert_string_equal(name, "worker");
	fake_put(&fake, JAVA_THREAD, JAVA_THREAD, 8); /* a ring */
	tear_down(NULL);
	pages_init(&fake.pages, 1 << 20);
	find(name, sizeof(name));
	assert_string_equal(name, "worker");
}

/* What was moved, or is no string, has no name; the thread is one all the same. */
static void test_moved(void **state)
{
	static const struct {
		uint64_t at, value;
		unsigned size;
	} moved[] = {
		{HANDLE, 0, 8},
		{HANDLE, UINT64_MAX - 7, 8},
		{THREAD + 16, 0, 8},
		{THREAD + 24, 0, 4},
		{THREAD + 24, UINT32_MAX, 4},
		{STRING + 8, THREAD_CLASS, 4},
		{STRING + 16, 0, 4},
		{BYTES + 12, 0, 4},
		{THREAD_FIELDS, UINT32_MAX, 4},
		{THREAD_CLASS + 8, 0, 8},
		{THREAD_POOL + 8, 1, 4},
	};

	for (size_t i = 0; i < sizeof(moved) / sizeof(moved[0]); i++) {
		char name[64];
		struct java_thread found;

		set_up(NULL);
		fake_put(&fake, moved[i].at, moved[i].value, moved[i].size);
		found = find(name, sizeof(name));
		assert_string_equal(name, "");
		assert_null(found.state);
		assert_false(found.has_daemon);
		assert_int_equal(found.high, STACK_BASE);
		tear_down(NULL);
	}
	set_up(NULL);
}

static void test_no_list(void **state)
{
	char name[64];

	fake_put(&fake, LIST, UINT32_MAX, 4); /* its end is not readable */
	find(name, sizeof(name));
	assert_string_equal(name, "worker");
	fake.layout.facts[HS_CLASS_STRING] = HS_ABSENT;
	assert_int_equal(find(name, sizeof(name)).high, 0);
}

/* From 21 on fields are a stream, in which some have more numbers than others. */
static void test_field_stream(void **state)
{
	/* two fields, none added; numbers are one higher. name, type, offset, flags, more flags */
	static const uint8_t stream[] = {12, 0, 0, 0, 3, 1, 2, 3, 25, 1, 2, 9, 4, 5, 33, 1, 1};
	struct java_field wanted[] = {{.name = "daemon"}, {.name = "name"}, {.name = "none"}};
	uint32_t first;

	fake_field(&fake, HS_KLASS_FIELD_STREAM, 32, 8, false);
	fake_put(&fake, THREAD_CLASS + 32, FAKE_DATA + 0x2400, 8);
	memcpy(fake.bytes + (FAKE_DATA + 0x2400 - FAKE_BASE), stream, sizeof(stream));
	fake_put(&fake, FAKE_DATA + 0x2400, sizeof(stream) - 4, 4);
	put_symbol(THREAD_POOL, 1, "name");
	put_symbol(THREAD_POOL, 2, "Ljava/lang/String;");
	put_symbol(THREAD_POOL, 3, "daemon");
	put_symbol(THREAD_POOL, 4, "Z");
	fake_load(&fake);
	assert_true(fields_find(&fake.layout, &fake.pages, THREAD_CLASS, wanted, 3, &first));
	assert_int_equal(wanted[0].offset, 32);
	assert_int_equal(wanted[0].type, 'Z');
	assert_int_equal(wanted[1].offset, 24);
	assert_int_equal(wanted[1].type, 'L');
	assert_int_equal(wanted[2].type, 0);
	assert_int_equal(first, 24);
	fake_put(&fake, FAKE_DATA + 0x2400, sizeof(stream) - 5, 4); /* cut short */
	assert_false(fields_find(&fake.layout, &fake.pages, THREAD_CLASS, wanted, 3, &first));
}

static void test_states(void **state)
{
	assert_string_equal(java_thread_state(0), "NEW");
	assert_string_equal(java_thread_state(0x5), "RUNNABLE");
	assert_string_equal(java_thread_state(0x401), "BLOCKED");
	assert_string_equal(java_thread_state(0x191), "WAITING");
	assert_string_equal(java_thread_state(0x1a1), "TIMED_WAITING");
	assert_string_equal(java_thread_state(0x2), "TERMINATED");
}

/* All by each of its names; and each as the snapshot has it, by its stack. */
static void test_many(void **state)
{
	enum { MANY = 50000, STACK = 0x1000 };
	struct snapshot *snap = snapshot_create(100, arch_host());
	struct java_threads threads = {0};
	const unsigned sp = snap->arch->user_sp;

	for (int i = 0; i < MANY; i++) {
		const uint64_t low = (uint64_t)(i + 1) * STACK;
		struct snap_thread thread = {.tid = 100 + i, .regs = {.valid = 1u << sp}};

		thread.regs.v[sp] = low + 64;
		assert_true(vec_push(&snap->threads, thread));
		assert_true(vec_push(&threads.list, (struct java_thread){.address = low + 1, .owner_id = low + 2, .locked = {low + 3, 7}, .nlocked = 2,
									 .low = low, .high = low + STACK}));
	}
	snap->threads.data[1].regs.valid = 0; /* not known of which it is */
	assert_true(java_threads_index(&threads));
	java_waits_number(&threads, snap);
	for (int i = 0; i < MANY; i++) {
		const struct java_thread *thread = &threads.list.data[i];

		assert_ptr_equal(java_threads_at(&threads, thread->address), thread);
		assert_ptr_equal(java_threads_with_owner_id(&threads, thread->owner_id), thread);
		assert_ptr_equal(java_threads_that_locked(&threads, thread->locked[0]), thread);
		assert_int_equal(thread->tid, i == 1 ? 0 : 100 + i);
	}
	assert_ptr_equal(java_threads_that_locked(&threads, 7), &threads.list.data[0]);
	assert_null(java_threads_at(&threads, 0));
	assert_null(java_threads_with_owner_id(&threads, 0));
	java_threads_deinit(&threads);
	snapshot_destroy(snap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_thread, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_wide_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_chain, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_moved, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_list, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_field_stream, set_up, tear_down),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
