/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "unwind/expr.h"
#include "cmocka_all.h"

/* Eight bytes at 0x1000. */
static ssize_t read_word(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	static const uint8_t word[8] = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};

	if (address < 0x1000 || address >= 0x1008)
		return -EFAULT;
	if (len > 0x1008 - address)
		len = 0x1008 - address;
	memcpy(buf, word + (address - 0x1000), len);
	return (ssize_t)len;
}

static enum expr_end eval_from(const uint8_t *code, size_t len, const uint64_t *initial, uint64_t *out)
{
	struct regs regs = {0};
	struct mem mem = {.read = read_word};
	struct expr_env env = {.word = 8, .regs = &regs, .mem = &mem, .bias = 0x100000};

	regs_put(&regs, 7, 0x1000);
	regs_put(&regs, 33, 5);
	return expr_eval(code, len, &env, initial, out);
}

#define BYTES(...) ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})

#define assert_value(expected, ...)                                                                                    \
	do {                                                                                                           \
		uint64_t value_ = 0xbad;                                                                               \
		assert_int_equal(eval_from(BYTES(__VA_ARGS__), NULL, &value_), EXPR_OK);                               \
		assert_int_equal(value_, (uint64_t)(expected));                                                        \
	} while (0)

#define assert_end(end, what, ...)                                                                                     \
	do {                                                                                                           \
		uint64_t value_ = 0;                                                                                   \
		assert_int_equal(eval_from(BYTES(__VA_ARGS__), NULL, &value_), end);                                   \
		assert_int_equal(value_, (uint64_t)(what));                                                            \
	} while (0)

#define assert_invalid(...) assert_end(EXPR_INVALID, 0, __VA_ARGS__)

static void test_constants(void **state)
{
	assert_value(31, 0x4f);
	assert_value(0xff, 0x08, 0xff);
	assert_value(-1, 0x09, 0xff);
	assert_value(0xffff, 0x0a, 0xff, 0xff);
	assert_value(-2, 0x0b, 0xfe, 0xff);
	assert_value(0xffffffff, 0x0c, 0xff, 0xff, 0xff, 0xff);
	assert_value(-1, 0x0d, 0xff, 0xff, 0xff, 0xff);
	assert_value(0x8070605040302010, 0x0e, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x80);
	assert_value(300, 0x10, 0xac, 0x02);
	assert_value(-2, 0x11, 0x7e);
	assert_value(0x100010, 0x03, 0x10, 0, 0, 0, 0, 0, 0, 0); /* addr: moved by the bias */
}

static void test_registers_and_memory(void **state)
{
	assert_value(0xff8, 0x77, 0x78);                 /* breg7 -8 */
	assert_value(7, 0x92, 33, 2);                    /* bregx 33 + 2 */
	assert_value(0x1122334455667788, 0x77, 0, 0x06); /* deref */
	assert_value(0x7788, 0x77, 0, 0x94, 2);          /* deref_size 2 */
	assert_end(EXPR_MISSING_REGISTER, 3, 0x73, 0);
	assert_end(EXPR_MISSING_REGISTER, 1000, 0x92, 0xe8, 0x07, 0);
	assert_end(EXPR_UNREADABLE, 0x1001, 0x77, 1, 0x06);
	assert_invalid(0x77, 0, 0x94, 0);
	assert_invalid(0x77, 0, 0x94, 9);
}

static void test_stack_operations(void **state)
{
	assert_value(2, 0x31, 0x32, 0x12);             /* dup */
	assert_value(1, 0x31, 0x32, 0x13);             /* drop */
	assert_value(1, 0x31, 0x32, 0x14);             /* over */
	assert_value(1, 0x31, 0x32, 0x33, 0x15, 2);    /* pick 2 */
	assert_value(1, 0x31, 0x32, 0x16);             /* swap */
	assert_value(2, 0x31, 0x32, 0x33, 0x17);       /* rot: 3 1 2 */
	assert_value(1, 0x31, 0x32, 0x33, 0x17, 0x13); /* below it */
	assert_value(3, 0x31, 0x32, 0x33, 0x17, 0x13, 0x13);
	assert_invalid(0x31, 0x16);
	assert_invalid(0x31, 0x32, 0x17);
	assert_invalid(0x31, 0x15, 1);
	assert_invalid(0x13);
	assert_invalid(0x31, 0x13); /* nothing is left */
}

static void test_arithmetic(void **state)
{
	assert_value(5, 0x09, 0xfb, 0x19);            /* abs */
	assert_value(4, 0x36, 0x3c, 0x1a);            /* 6 & 12 */
	assert_value(-3, 0x09, 0xfa, 0x32, 0x1b);     /* -6 / 2 */
	assert_value(-6, 0x36, 0x09, 0xff, 0x1b);     /* 6 / -1 */
	assert_value(1, 0x34, 0x33, 0x1c);            /* 4 - 3 */
	assert_value(1, 0x37, 0x33, 0x1d);            /* 7 % 3 */
	assert_value(21, 0x37, 0x33, 0x1e);           /* 7 * 3 */
	assert_value(-7, 0x37, 0x1f);                 /* neg */
	assert_value(~UINT64_C(7), 0x37, 0x20);       /* not */
	assert_value(14, 0x36, 0x3c, 0x21);           /* 6 | 12 */
	assert_value(18, 0x36, 0x3c, 0x22);           /* 6 + 12 */
	assert_value(134, 0x36, 0x23, 0x80, 0x01);    /* plus_uconst 128 */
	assert_value(24, 0x33, 0x33, 0x24);           /* 3 << 3 */
	assert_value(0, 0x31, 0x08, 64, 0x24);        /* 1 << 64 */
	assert_value(1, 0x38, 0x33, 0x25);            /* 8 >> 3 */
	assert_value(-1, 0x09, 0xf8, 0x08, 99, 0x26); /* -8 >> 99, signed */
	assert_value(10, 0x36, 0x3c, 0x27);           /* 6 ^ 12 */
	assert_invalid(0x31, 0x30, 0x1b);
	assert_invalid(0x31, 0x30, 0x1d);
	assert_value(INT64_MIN, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b);
}

static void test_comparison_and_branches(void **state)
{
	assert_value(1, 0x31, 0x31, 0x29);
	assert_value(0, 0x09, 0xff, 0x31, 0x2a); /* -1 >= 1 */
	assert_value(0, 0x09, 0xff, 0x31, 0x2b);
	assert_value(1, 0x09, 0xff, 0x31, 0x2c);
	assert_value(1, 0x09, 0xff, 0x31, 0x2d);
	assert_value(1, 0x09, 0xff, 0x31, 0x2e);
	assert_value(5, 0x35, 0x2f, 1, 0, 0x36);       /* skip over lit6 */
	assert_value(5, 0x35, 0x31, 0x28, 1, 0, 0x36); /* taken */
	assert_value(6, 0x35, 0x30, 0x28, 1, 0, 0x36); /* not taken */
	assert_invalid(0x31, 0x2f, 0xff, 0x7f);        /* beyond the end */
	assert_invalid(0x31, 0x2f, 0x00, 0x80);        /* before the start */
}

static void test_bounds(void **state)
{
	uint8_t many[65];
	uint64_t value;

	assert_invalid(0x31, 0x2f, 0xfd, 0xff); /* jumps to itself for ever */
	memset(many, 0x31, sizeof(many));
	assert_int_equal(eval_from(many, 64, NULL, &value), EXPR_OK);
	assert_int_equal(eval_from(many, 65, NULL, &value), EXPR_INVALID);
	assert_int_equal(eval_from(many, 0, NULL, &value), EXPR_INVALID);
}

static void test_initial_value(void **state)
{
	uint64_t cfa = 0x2000, value;

	assert_int_equal(eval_from(BYTES(0x23, 8), &cfa, &value), EXPR_OK);
	assert_int_equal(value, 0x2008);
}

static void test_what_cfi_may_not_use(void **state)
{
	assert_invalid(0x50);             /* reg0 */
	assert_invalid(0x91, 0);          /* fbreg */
	assert_invalid(0x97);             /* push_object_address */
	assert_invalid(0x9c);             /* call_frame_cfa */
	assert_invalid(0x31, 0x31, 0x9f); /* stack_value */
	assert_invalid(0x31, 0x31, 0xff);
	assert_invalid(0x0e, 1, 2); /* cut short */
	assert_invalid(0x10, 0x80);
}

/* What the linker writes for the lazy PLT: rsp + 8 + ((rip & 15) >= 11) * 8 */
static void test_plt_expression(void **state)
{
	struct regs regs = {0};
	struct mem mem = {.read = read_word};
	struct expr_env env = {.word = 8, .regs = &regs, .mem = &mem};
	const uint8_t code[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
	uint64_t value;

	regs_put(&regs, 7, 0x7000);
	regs_put(&regs, 16, 0x401026);
	assert_int_equal(expr_eval(code, sizeof(code), &env, NULL, &value), EXPR_OK);
	assert_int_equal(value, 0x7008);
	regs_put(&regs, 16, 0x40102b);
	assert_int_equal(expr_eval(code, sizeof(code), &env, NULL, &value), EXPR_OK);
	assert_int_equal(value, 0x7010);
}

static void test_budget(void **state)
{
	static const uint8_t endless[] = {0x30, 0x23, 1, 0x2f, 0xfb, 0xff}, read[] = {0x77, 0, 0x06};
	struct regs regs = {0};
	struct mem mem = {.read = read_word};
	struct budget budget = {.left = 1000};
	struct expr_env env = {.word = 8, .regs = &regs, .mem = &mem, .budget = &budget};
	uint64_t value;

	regs_put(&regs, 7, 0x1000);
	assert_int_equal(expr_eval(endless, sizeof(endless), &env, NULL, &value), EXPR_INVALID);
	assert_true(budget.refused);
	assert_int_equal(budget.left, 0);
	budget = (struct budget){.left = 100};
	assert_int_equal(expr_eval(read, sizeof(read), &env, NULL, &value), EXPR_OK);
	assert_in_range(budget.left, 50, 97); /* reading memory costs more than to compute */
	assert_false(budget.refused);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_registers_and_memory),
		cmocka_unit_test(test_stack_operations),
		cmocka_unit_test(test_arithmetic),
		cmocka_unit_test(test_comparison_and_branches),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_initial_value),
		cmocka_unit_test(test_what_cfi_may_not_use),
		cmocka_unit_test(test_plt_expression),
	};

	return cmocka_run_group_tests_name("expr", tests, NULL, NULL);
}
