/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "hotspot_fake.h"
#include "runtime/hotspot/method.h"

static struct fake fake;

enum {
	METHOD = FAKE_DATA + 0x100,
	CONST_METHOD = FAKE_DATA + 0x200,
	POOL = FAKE_DATA + 0x400,
	KLASS = FAKE_DATA + 0x500,
	CLASS_NAME = FAKE_DATA + 0x600,
	METHOD_NAME = FAKE_DATA + 0x700,
	FILE_NAME = FAKE_DATA + 0x800,
	CODE_SIZE = 20,
};

/* As the virtual machine writes them. */
static size_t write_unsigned5(uint8_t *out, uint32_t value, bool excludes_zero)
{
	uint32_t low = excludes_zero ? 191 : 192, plus = excludes_zero;
	size_t n = 0;

	while (value >= low && n < 4) {
		value -= low;
		out[n++] = (uint8_t)(plus + low + value % 64);
		value /= 64;
	}
	out[n++] = (uint8_t)(plus + value);
	return n;
}

static void test_unsigned5_both_ways(void **state)
{
	static const uint32_t values[] = {0, 1, 63, 64, 190, 191, 192, 193, 255, 256, 12479, 12480, 0xffff, 0x10000, 0x7fffffff, UINT32_MAX};

	for (int excludes = 0; excludes < 2; excludes++)
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			uint8_t bytes[5];
			size_t n = write_unsigned5(bytes, values[i], excludes);
			struct cursor c = cursor_init(bytes, n), cut = cursor_init(bytes, n - 1);

			assert_int_equal(unsigned5_read(&c, excludes), values[i]);
			assert_false(c.bad);
			assert_int_equal(cursor_left(&c), 0);
			unsigned5_read(&cut, excludes);
			assert_true(cut.bad);
		}
}

static void test_unsigned5_signed(void **state)
{
	static const int32_t values[] = {0, -1, 1, -64, 1000, -1000, INT32_MAX, INT32_MIN};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		uint32_t coded = (uint32_t)values[i] << 1 ^ (uint32_t)(values[i] >> 31);
		uint8_t bytes[5];
		struct cursor c = cursor_init(bytes, write_unsigned5(bytes, coded, false));

		assert_int_equal(unsigned5_read_signed(&c, false), values[i]);
	}
}

static void test_unsigned5_without_zero(void **state)
{
	static const uint8_t zero[] = {0};
	struct cursor c = cursor_init(zero, 1);

	assert_int_equal(unsigned5_read(&c, false), 0);
	assert_false(c.bad);
	c = cursor_init(zero, 1);
	unsigned5_read(&c, true);
	assert_true(c.bad);
}

static uint32_t find(const uint8_t *bytes, size_t n, uint32_t bci)
{
	struct cursor c = cursor_init(bytes, n);

	return line_table_find(&c, false, bci);
}

/* Pairs of deltas in a byte each, and one that does not fit and goes back. */
static void test_line_table(void **state)
{
	/* (0, 5), (3, 7), then bci + 10, line - 4: (13, 3) */
	static const uint8_t table[] = {0 << 3 | 5, 3 << 3 | 2, 0xff, 20, 7, 0};

	assert_int_equal(find(table, sizeof(table), 0), 5);
	assert_int_equal(find(table, sizeof(table), 2), 5);
	assert_int_equal(find(table, sizeof(table), 3), 7);
	assert_int_equal(find(table, sizeof(table), 12), 7);
	assert_int_equal(find(table, sizeof(table), 13), 3);
	assert_int_equal(find(table, sizeof(table), 65535), 3);
}

static void test_hostile_line_tables(void **state)
{
	static const uint8_t endless[64] = {[0 ... 63] = 0x0f}, cut[] = {0xff, 250};
	struct cursor c;

	assert_int_equal(find(endless, sizeof(endless), 65535), 64 * 7);
	c = cursor_init(endless, sizeof(endless));
	line_table_find(&c, false, 65535);
	assert_true(c.bad); /* no end was seen */
	assert_int_equal(find(cut, sizeof(cut), 1), 0);
	assert_int_equal(find(cut, 0, 1), 0);
}

static int set_up(void **state)
{
	static const uint8_t lines[] = {0 << 3 | 7, 4 << 3 | 2, 0};

	fake_init(&fake);
	fake_put(&fake, METHOD + 8, CONST_METHOD, 8);
	fake_put(&fake, CONST_METHOD, POOL, 8);
	fake_put(&fake, CONST_METHOD + 8, 1, 2); /* it has lines */
	fake_put(&fake, CONST_METHOD + 10, CODE_SIZE, 2);
	fake_put(&fake, CONST_METHOD + 12, 3, 2);
	memcpy(fake.bytes + (CONST_METHOD + FAKE_CONST_METHOD + CODE_SIZE - FAKE_BASE), lines, sizeof(lines));
	fake_put(&fake, POOL, KLASS, 8);
	fake_put(&fake, POOL + 8, 10, 4);
	fake_put(&fake, POOL + 12, 4, 2);
	fake_put(&fake, POOL + FAKE_POOL + 8 * 3, METHOD_NAME, 8);
	fake_put(&fake, POOL + FAKE_POOL + 8 * 4, FILE_NAME | 1, 8); /* a tag bit */
	fake_put(&fake, KLASS, CLASS_NAME, 8);
	fake_symbol(&fake, CLASS_NAME, "java/lang/Thread");
	fake_symbol(&fake, METHOD_NAME, "run");
	fake_symbol(&fake, FILE_NAME, "Thread.java");
	return 0;
}

static int tear_down(void **state)
{
	fake_deinit(&fake);
	return 0;
}

struct reader {
	struct arena *arena;
	struct methods methods;
};

static struct reader make(void)
{
	struct reader r = {.arena = arena_create()};

	fake_load(&fake);
	methods_init(&r.methods, &fake.layout, &fake.pages, r.arena);
	return r;
}

static void end(struct reader *r)
{
	methods_deinit(&r->methods);
	arena_destroy(r->arena);
}

static void test_method(void **state)
{
	struct reader r = make();
	const struct method *method = methods_find(&r.methods, METHOD);
	uint32_t line;

	assert_non_null(method);
	assert_string_equal(method->name, "java.lang.Thread.run");
	assert_string_equal(method->file, "Thread.java");
	assert_int_equal(method->bytecode, CONST_METHOD + FAKE_CONST_METHOD);
	assert_int_equal(method->code_size, CODE_SIZE);
	assert_false(method->is_native);
	assert_ptr_equal(methods_find(&r.methods, METHOD), method);
	assert_true(methods_find_line(&r.methods, method, 3, &line));
	assert_int_equal(line, 7);
	assert_true(methods_find_line(&r.methods, method, 4, &line));
	assert_int_equal(line, 9);
	assert_true(methods_find_line(&r.methods, method, -1, &line)); /* at its entry */
	assert_int_equal(line, 7);
	assert_true(methods_find_line(&r.methods, method, CODE_SIZE, &line)); /* no bytecode of it */
	assert_int_equal(line, 0);
	end(&r);
}

static void test_lambda(void **state)
{
	struct reader r;

	fake_symbol(&fake, CLASS_NAME, "a/B$$Lambda$1+0x0000000800c03200");
	fake_put(&fake, POOL + 12, 0, 2);
	r = make();
	assert_string_equal(methods_find(&r.methods, METHOD)->name, "a.B$$Lambda$1/0x0000000800c03200.run");
	assert_null(methods_find(&r.methods, METHOD)->file);
	end(&r);
}

/* Releases keep the length of a symbol beside its reference count. */
static void test_length_and_refcount(void **state)
{
	struct reader r;

	fake.layout.facts[HS_SYMBOL_LENGTH] = HS_ABSENT;
	fake_field(&fake, HS_SYMBOL_LENGTH_AND_REFCOUNT, 0, 4, false);
	fake_field(&fake, HS_SYMBOL_BODY, 4, 8, false);
	fake_put(&fake, CLASS_NAME, 1 << 16 | 0xffff, 4);
	fake_put(&fake, CLASS_NAME + 4, 'A', 1);
	fake_put(&fake, METHOD_NAME, 2 << 16 | 1, 4);
	fake_put(&fake, METHOD_NAME + 4, 'b' | 'c' << 8, 2);
	fake_put(&fake, POOL + 12, 0, 2);
	r = make();
	assert_string_equal(methods_find(&r.methods, METHOD)->name, "A.bc");
	end(&r);
}

static void test_hostile_methods(void **state)
{
	static const struct {
		uint64_t at, value;
		unsigned size;
	} bad[] = {
		{METHOD + 8, 0, 8},
		{METHOD + 8, CONST_METHOD + 1, 8},
		{METHOD + 8, UINT64_MAX - 7, 8},
		{CONST_METHOD, 0, 8},
		{CONST_METHOD, UINT64_MAX - 7, 8},
		{CONST_METHOD + 12, 10, 2}, /* beyond the pool */
		{CONST_METHOD + 12, 0, 2},
		{POOL, 0, 8},
		{POOL + 12, 10, 2},
		{POOL + FAKE_POOL + 8 * 3, 0, 8},
		{KLASS, 0, 8},
		{KLASS, UINT64_MAX, 8},
		{CLASS_NAME, 0, 2},
		{METHOD_NAME + 3, 0, 1}, /* a NUL in a name */
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct reader r;

		set_up(NULL);
		fake_put(&fake, bad[i].at, bad[i].value, bad[i].size);
		r = make();
		assert_null(methods_find(&r.methods, METHOD));
		end(&r);
		tear_down(NULL);
	}
	set_up(NULL);
}

static void test_not_a_method(void **state)
{
	struct reader r = make();

	assert_null(methods_find(&r.methods, 0));
	assert_null(methods_find(&r.methods, METHOD + 1));
	assert_null(methods_find(&r.methods, 0x10));
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unsigned5_both_ways),
		cmocka_unit_test(test_unsigned5_signed),
		cmocka_unit_test(test_unsigned5_without_zero),
		cmocka_unit_test(test_line_table),
		cmocka_unit_test(test_hostile_line_tables),
		cmocka_unit_test_setup_teardown(test_method, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lambda, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_length_and_refcount, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hostile_methods, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_not_a_method, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
