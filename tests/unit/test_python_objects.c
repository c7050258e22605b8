/* SPDX-License-Identifier: MIT */
/* Strings, bytes, dictionaries, attributes and code objects in made-up memory. */
#include "pymem.h"

#include "runtime/python/code.h"
#include "runtime/python/dict.h"
#include "runtime/python/strings.h"
#include "runtime/python/values.h"

enum { AT = PYMEM_BASE + 0x1000 };

static struct pymem memory = {.mem = {.read = pymem_read}};
static struct arena *arena;

static int reset(void **state)
{
	memset(memory.bytes, 0, sizeof(memory.bytes));
	memory.reads = 0;
	arena = arena_create();
	return !arena;
}

static int finish(void **state)
{
	arena_destroy(arena);
	return 0;
}

enum { COMPACT = 1 << 5, ASCII = 1 << 6 };

static void put_string(uint64_t at, uint64_t length, uint32_t state, const void *text, size_t size)
{
	pymem_put64(&memory, at + 16, length);
	pymem_put64(&memory, at + 32, state);
	pymem_put(&memory, at + (state & ASCII ? 40 : 56), text, size);
}

static void put_ascii(uint64_t at, const char *text)
{
	put_string(at, strlen(text), 1 << 2 | COMPACT | ASCII, text, strlen(text));
}

static const char *read_string(uint64_t at)
{
	struct python_layout layout = pymem_layout();

	return python_string(&layout, &memory.mem, at, arena);
}

static void test_strings(void **state)
{
	static const uint16_t two[] = {0x436, 'x', 0x4e2d};
	static const uint32_t four[] = {0x1f600, '!'};

	put_ascii(AT, "Handler.get");
	assert_string_equal(read_string(AT), "Handler.get");
	put_string(AT, 3, 1 << 2 | COMPACT, "n\xe9\xff", 3);
	assert_string_equal(read_string(AT), "né\xc3\xbf");
	put_string(AT, 3, 2 << 2 | COMPACT, two, sizeof(two));
	assert_string_equal(read_string(AT), "жx中");
	put_string(AT, 2, 4 << 2 | COMPACT, four, sizeof(four));
	assert_string_equal(read_string(AT), "😀!");
	put_string(AT, 0, 1 << 2 | COMPACT | ASCII, "", 0);
	assert_string_equal(read_string(AT), "");
	put_string(AT, 3, 1 << 2 | COMPACT | ASCII, "a\0b", 3);
	assert_string_equal(read_string(AT), "a b");
}

static void test_hostile_strings(void **state)
{
	assert_null(read_string(8));
	assert_null(read_string(AT)); /* all zeros: no kind */
	put_string(AT, 3, 3 << 2 | COMPACT, "abc", 3);
	assert_null(read_string(AT));
	put_string(AT, 3, 1 << 2, "abc", 3); /* not compact */
	assert_null(read_string(AT));
	put_string(AT, UINT64_MAX, 1 << 2 | COMPACT | ASCII, "abc", 3);
	assert_null(read_string(AT));
	/* Of a huge one the beginning is read, if that is there. */
	put_string(AT, INT64_MAX, 4 << 2 | COMPACT, "a\0\0", 4);
	assert_int_equal(strlen(read_string(AT)), PYTHON_MAX_STRING);
	put_string(PYMEM_BASE + PYMEM_SIZE - 64, 100, 1 << 2 | COMPACT | ASCII, "abc", 3);
	assert_null(read_string(PYMEM_BASE + PYMEM_SIZE - 64));
}

static void test_bytes(void **state)
{
	const uint8_t *data;
	size_t len;

	pymem_put64(&memory, AT + 16, 3);
	pymem_put(&memory, AT + 32, "abc", 3);
	assert_true(python_bytes(&memory.mem, AT, arena, &data, &len));
	assert_int_equal(len, 3);
	assert_memory_equal(data, "abc", 3);
	pymem_put64(&memory, AT + 16, PYTHON_MAX_BYTES + 1);
	assert_false(python_bytes(&memory.mem, AT, arena, &data, &len));
	pymem_put64(&memory, AT + 16, UINT64_MAX);
	assert_false(python_bytes(&memory.mem, AT, arena, &data, &len));
	assert_false(python_bytes(&memory.mem, 8, arena, &data, &len));
}

enum { DICT = AT + 0x1000, KEYS = AT + 0x2000, VALUES = AT + 0x3000, STRINGS = AT + 0x4000, TYPE = AT + 0x8000 };

/* Keys "k0", "k1"… at STRINGS, 64 bytes apart; the values are 0x500, 0x510… */
static void put_dict(const struct python_layout *l, unsigned n, bool general, bool split)
{
	bool old = python_minor(l) < 11;
	unsigned stride = general || old ? 24 : 16;
	uint64_t entries = old ? KEYS + 40 + 8 : KEYS + 32 + 8;

	pymem_put64(&memory, DICT + 32, KEYS);
	pymem_put64(&memory, DICT + 40, split ? VALUES : 0);
	pymem_put64(&memory, KEYS + 8, old ? 8 : 3 | 3 << 8 | (general ? 0 : split ? 2 : 1) << 16);
	pymem_put64(&memory, KEYS + (old ? 32 : 24), n);
	for (unsigned i = 0; i < n; i++) {
		char key[8] = {'k', (char)('0' + i)};
		uint64_t at = entries + i * stride + (stride == 24 ? 8 : 0);
		uint64_t values = VALUES + (python_minor(l) >= 13 ? 8 : 0);

		put_string(STRINGS + i * 64, 2, 1 << 2 | COMPACT | ASCII, key, 2);
		pymem_put(&memory, STRINGS + i * 64 + l->at[PY_STR_ASCII], key, 2);
		pymem_put64(&memory, at, STRINGS + i * 64);
		pymem_put64(&memory, split ? values + i * 8 : at + 8, 0x500 + i * 16);
	}
}

static void test_dicts(void **state)
{
	for (unsigned minor = 8; minor < 16; minor++)
		for (int kind = 0; kind < 3; kind++) {
			struct python_layout l = pymem_layout();

			l.at[PY_VERSION] = UINT64_C(3) << 24 | minor << 16;
			l.at[PY_STR_ASCII] = minor < 12 ? 48 : 40;
			reset(state);
			put_dict(&l, 4, kind == 0, kind == 2);
			assert_int_equal(python_dict_get(&l, &memory.mem, DICT, "k0"), 0x500);
			assert_int_equal(python_dict_get(&l, &memory.mem, DICT, "k3"), 0x530);
			assert_int_equal(python_dict_get(&l, &memory.mem, DICT, "k4"), 0);
			assert_int_equal(python_dict_get(&l, &memory.mem, DICT, "k33"), 0);
			finish(state);
		}
	reset(state);
}

/* Too many entries, sizes that overflow, keys that are nowhere. */
static void test_hostile_dicts(void **state)
{
	struct python_layout l = pymem_layout();

	assert_int_equal(python_dict_get(&l, &memory.mem, 8, "k0"), 0);
	assert_int_equal(python_dict_get(&l, &memory.mem, DICT, "k0"), 0);
	put_dict(&l, 4, true, false);
	pymem_put64(&memory, KEYS + 24, PYTHON_MAX_ENTRIES + 1);
	assert_int_equal(python_dict_get(&l, &memory.mem, DICT, "k0"), 0);
	put_dict(&l, 4, true, false);
	pymem_put64(&memory, KEYS + 8, 3 | 0xff << 8);
	assert_int_equal(python_dict_get(&l, &memory.mem, DICT, "k0"), 0);
	l.at[PY_VERSION] = 0x03090000;
	pymem_put64(&memory, KEYS + 8, UINT64_MAX);
	assert_int_equal(python_dict_get(&l, &memory.mem, DICT, "k0"), 0);
	assert_true(memory.reads < 100);
}

/* An instance of a class of 3.13 has its values behind itself, and their names in the class. */
static void test_attributes(void **state)
{
	struct python_layout l = pymem_layout();
	uint64_t object = AT + 0x10000;

	put_dict(&l, 3, false, true);
	pymem_put64(&memory, object + 8, TYPE);
	pymem_put64(&memory, TYPE + 32, 16);
	pymem_put64(&memory, TYPE + 168, 1 << 2);
	pymem_put64(&memory, TYPE + 880, KEYS);
	pymem_put64(&memory, object + 16, UINT64_C(1) << 24);
	pymem_put64(&memory, object + 24 + 8, 0x700);
	assert_int_equal(python_attribute(&l, &memory.mem, object, "k1"), 0x700);
	assert_int_equal(python_attribute(&l, &memory.mem, object, "k0"), 0); /* it has none yet */
	/* When they do not count any more, it has a dictionary. */
	pymem_put64(&memory, object + 16, 0);
	pymem_put64(&memory, object - 24, DICT);
	assert_int_equal(python_attribute(&l, &memory.mem, object, "k2"), 0x520);
	assert_int_equal(python_attribute(&l, &memory.mem, 8, "k2"), 0);
}

/* Types by name; theirs is at 0x100 of the type. */
static void put_type(uint64_t type, const char *name, uint64_t flags)
{
	pymem_put64(&memory, type + 24, type + 0x100);
	pymem_put(&memory, type + 0x100, name, strlen(name) + 1);
	pymem_put64(&memory, type + 168, flags);
}

static void expect_text(uint64_t object, const char *value)
{
	struct python_layout l = pymem_layout();

	assert_string_equal(python_value(&l, &memory.mem, object, arena), value);
}

static void test_values(void **state)
{
	struct python_layout l = pymem_layout();
	uint64_t object = AT + 0x10000, list = TYPE, number = TYPE + 0x200, items = AT + 0x20000;

	put_type(list, "list", 0);
	put_type(number, "int", 0);
	pymem_put64(&memory, object + 8, number);
	pymem_put64(&memory, object + 16, 1 << 3 | 2);
	pymem_put64(&memory, object + 24, 12);
	expect_text(object, "-12");
	pymem_put64(&memory, object + 16, UINT64_MAX & ~UINT64_C(3));
	assert_non_null(strstr(python_value(&l, &memory.mem, object, arena), "bits"));
	/* A class of the program may be called so, too. */
	put_type(number, "int", 1 << 9);
	expect_text(object, "<int>");
	/* A list that contains itself, and says that it has more elements than there is memory. */
	pymem_put64(&memory, object + 8, list);
	pymem_put64(&memory, object + 16, INT64_MAX);
	pymem_put64(&memory, object + 24, items);
	for (unsigned i = 0; i < 8; i++)
		pymem_put64(&memory, items + i * 8, object);
	memory.reads = 0;
	assert_true(strlen(python_value(&l, &memory.mem, object, arena)) <= PYTHON_VALUE_WIDTH + strlen("…"));
	assert_true(memory.reads < 1000);
	expect_text(8, "<unreadable>");
	/* Slots: empty, and numbers by themselves since 3.14 */
	assert_null(python_slot_value(&l, &memory.mem, 0, arena));
	l.at[PY_VERSION] = 0x030e00f0;
	assert_null(python_slot_value(&l, &memory.mem, 1, arena));
	assert_string_equal(python_slot_value(&l, &memory.mem, (uint64_t)-5 << 2 | 3, arena), "-5");
	assert_string_equal(python_slot_value(&l, &memory.mem, 17 << 2 | 3, arena), "17");
}

static void test_ints(void **state)
{
	struct python_layout l = pymem_layout();
	uint64_t object = AT + 0x10000, value;

	put_type(TYPE, "int", 0);
	pymem_put64(&memory, object + 8, TYPE);
	pymem_put64(&memory, object + 16, 2 << 3);
	pymem_put64(&memory, object + 24, UINT64_C(3) << 32 | 5);
	assert_true(python_int(&l, &memory.mem, object, &value));
	assert_int_equal(value, UINT64_C(3) << 30 | 5);
	pymem_put64(&memory, object + 16, 2 << 3 | 2); /* negative */
	assert_false(python_int(&l, &memory.mem, object, &value));
	pymem_put64(&memory, object + 16, 4 << 3);
	pymem_put64(&memory, object + 32, UINT64_C(1) << 32 | 1); /* 90 bits */
	assert_false(python_int(&l, &memory.mem, object, &value));
	pymem_put64(&memory, object + 16, UINT64_MAX & ~UINT64_C(7));
	assert_false(python_int(&l, &memory.mem, object, &value));
	put_type(TYPE, "str", 0);
	pymem_put64(&memory, object + 16, 1 << 3);
	assert_false(python_int(&l, &memory.mem, object, &value));
	assert_false(python_int(&l, &memory.mem, 0, &value));
}

static bool add_member(void *ctx, uint64_t member)
{
	*(uint64_t *)ctx += member;
	return true;
}

/* Empty places and those of members that were taken out do not count. */
static void test_sets(void **state)
{
	uint64_t sum = 0;

	pymem_put64(&memory, DICT + 32, 7);
	pymem_put64(&memory, DICT + 40, VALUES);
	pymem_put64(&memory, VALUES + 16, 0x1000);
	pymem_put64(&memory, VALUES + 48, 0x4000);
	pymem_put64(&memory, VALUES + 56, UINT64_MAX);
	pymem_put64(&memory, VALUES + 112, 0x20);
	pymem_put64(&memory, VALUES + 128, 0x7);
	python_set_visit(&memory.mem, DICT, add_member, &sum);
	assert_int_equal(sum, 0x1020);
	pymem_put64(&memory, DICT + 40, 8);
	python_set_visit(&memory.mem, DICT, add_member, &sum);
	assert_int_equal(sum, 0x1020);
	memory.reads = 0;
	pymem_put64(&memory, DICT + 32, UINT64_MAX); /* of a huge one the beginning */
	pymem_put64(&memory, DICT + 40, PYMEM_BASE);
	python_set_visit(&memory.mem, DICT, add_member, &sum);
	assert_true(memory.reads <= PYTHON_MAX_ENTRIES * 8 + 2);
}

/* Its function is `name`, of 4 instructions. */
static void put_code(const struct python_layout *l, uint64_t at, uint64_t name, const char *text)
{
	put_ascii(name, text);
	pymem_put64(&memory, at, 1);
	pymem_put64(&memory, at + 8, l->at[PY_CODE_TYPE]);
	pymem_put64(&memory, at + 16, 4);
	pymem_put64(&memory, at + l->at[PY_CODE_NAME], name);
	pymem_put64(&memory, at + l->at[PY_CODE_QUALNAME], name);
}

/* Another one at the same address, by the time that its name was read: which of both the name is of, nobody knows. */
static void test_code_that_was_replaced(void **state)
{
	struct python_layout l = pymem_layout();
	struct python_codes codes = {.layout = &l, .mem = &memory.mem, .arena = arena};
	uint64_t stays = AT, goes = AT + 0x400;
	uint32_t of_stays, of_goes;

	put_code(&l, stays, STRINGS, "stays");
	put_code(&l, goes, STRINGS + 0x100, "goes");
	of_stays = python_code_version(&l, &memory.mem, stays);
	of_goes = python_code_version(&l, &memory.mem, goes);
	assert_string_equal(python_codes_find(&codes, stays, of_stays)->name, "stays");
	assert_string_equal(python_codes_find(&codes, goes, of_goes)->name, "goes");
	put_code(&l, goes, STRINGS + 0x200, "comes");
	assert_true(python_codes_confirm(&codes, &memory.mem, stays, of_stays));
	assert_false(python_codes_confirm(&codes, &memory.mem, goes, of_goes));
	assert_string_equal(python_codes_find(&codes, stays, of_stays)->name, "stays");
	assert_false(python_codes_find(&codes, goes, of_goes)->valid);
	assert_true(python_codes_find(&codes, goes, of_goes)->gone);
	assert_string_equal(python_codes_find(&codes, goes, python_code_version(&l, &memory.mem, goes))->name, "comes");
	/* Freed, but not used again. */
	pymem_put64(&memory, goes, 0xffff90001230);
	assert_int_equal(python_code_version(&l, &memory.mem, goes), 0);
	pymem_put64(&memory, goes, 0);
	assert_int_equal(python_code_version(&l, &memory.mem, goes), 0);
	/* What was confirmed once stays: it is of that time. */
	put_code(&l, stays, STRINGS + 0x200, "comes");
	python_codes_confirm(&codes, &memory.mem, stays, of_stays);
	assert_string_equal(python_codes_find(&codes, stays, of_stays)->name, "stays");
	python_codes_deinit(&codes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_strings, reset, finish),
		cmocka_unit_test_setup_teardown(test_hostile_strings, reset, finish),
		cmocka_unit_test_setup_teardown(test_bytes, reset, finish),
		cmocka_unit_test_setup_teardown(test_dicts, NULL, finish),
		cmocka_unit_test_setup_teardown(test_hostile_dicts, reset, finish),
		cmocka_unit_test_setup_teardown(test_attributes, reset, finish),
		cmocka_unit_test_setup_teardown(test_values, reset, finish),
		cmocka_unit_test_setup_teardown(test_ints, reset, finish),
		cmocka_unit_test_setup_teardown(test_sets, reset, finish),
		cmocka_unit_test_setup_teardown(test_code_that_was_replaced, reset, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
