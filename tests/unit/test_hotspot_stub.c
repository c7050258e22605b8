/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"
#include "hotspot_fake.h"

#include "runtime/hotspot/stub.h"

static struct fake fake;

static uint16_t row(enum offcpu_stub_kind kind, unsigned words)
{
	return (uint16_t)(kind | words << OFFCPU_STUB_SHIFT);
}

/* A routine with this code; what BPF is told of it, from its first instruction on. */
static void tell(const struct arch *arch, const uint8_t *code, size_t len, uint16_t *out)
{
	struct code_cache cache;
	struct offcpu_stub_rows rows;
	const struct blob *blob;
	uint64_t start, first, block;

	fake_init(&fake);
	start = fake_blob(&fake, 8, 4, "StubRoutines (2)", 0);
	first = start + FAKE_CODE;
	memcpy(fake.bytes + (first - FAKE_BASE), code, len);
	fake_load(&fake);
	code_cache_init(&cache, &fake.layout, &fake.pages);
	blob = code_cache_find(&cache, first);
	assert_non_null(blob);
	assert_true(stub_is_routine(blob));
	for (size_t i = 0; i < len; i++) {
		block = (first + i) / OFFCPU_STUB_BLOCK * OFFCPU_STUB_BLOCK;
		stub_fill_rows(&cache, arch, blob, block, &rows);
		out[i] = rows.rows[first + i - block];
		for (uint64_t k = 0; k < OFFCPU_STUB_BLOCK; k++) /* nothing is told of what is not code of the routine's blob */
			assert_true(!rows.rows[k] || (block + k >= blob->code_begin && block + k < blob->code_end));
	}
	code_cache_deinit(&cache);
	fake_deinit(&fake);
}

/* Without a frame, with one, and on the way to it and from it. */
static void test_aarch64(void **state)
{
	static const uint32_t code[] = {
		0xd503201f, /* nop */
		0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
		0x910003fd, /* mov x29, sp */
		0xd10103ff, /* sub sp, sp, #64 */
		0xd503201f, /* nop */
		0x910003bf, /* mov sp, x29 */
		0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
		0xd65f03c0, /* ret */
	};
	uint16_t told[sizeof(code)];

	tell(&arch_aarch64, (const uint8_t *)code, sizeof(code), told);
	assert_int_equal(told[0], row(OFFCPU_STUB_LINK, 0));
	assert_int_equal(told[4], row(OFFCPU_STUB_LINK, 0));
	assert_int_equal(told[8], row(OFFCPU_STUB_FROM_SP, 2));
	for (unsigned i = 3; i < 6; i++)
		assert_int_equal(told[4 * i], row(OFFCPU_STUB_FROM_FP, 2));
	assert_int_equal(told[24], row(OFFCPU_STUB_FROM_SP, 2));
	assert_int_equal(told[28], row(OFFCPU_STUB_LINK, 0));
}

static void test_x86_64(void **state)
{
	static const uint8_t code[] = {
		0x90,             /* nop */
		0x55,             /* push %rbp */
		0x48, 0x89, 0xe5, /* mov %rsp,%rbp */
		0x53,             /* push %rbx */
		0x5b,             /* pop %rbx */
		0xc9,             /* leave */
		0xc3,             /* ret */
	};
	uint16_t told[sizeof(code)];

	tell(&arch_x86_64, code, sizeof(code), told);
	assert_int_equal(told[0], row(OFFCPU_STUB_LINK, 0));
	assert_int_equal(told[1], row(OFFCPU_STUB_LINK, 0));
	assert_int_equal(told[2], row(OFFCPU_STUB_FROM_SP, 2));
	assert_int_equal(told[5], row(OFFCPU_STUB_FROM_FP, 2));
	assert_int_equal(told[7], row(OFFCPU_STUB_FROM_FP, 2));
	assert_int_equal(told[8], row(OFFCPU_STUB_LINK, 0));
}

/* What never returns, and what has its registers elsewhere. */
static void test_unknown(void **state)
{
	static const uint32_t code[] = {
		0x14000000, /* b . */
		0xa9bc7bfd, /* stp x29, x30, [sp, #-64]! */
		0xd503201f, /* nop */
		0xa8c47bfd, /* ldp x29, x30, [sp], #64 */
		0xd65f03c0, /* ret */
	};
	uint16_t told[sizeof(code)];

	tell(&arch_aarch64, (const uint8_t *)code, sizeof(code), told);
	assert_int_equal(told[0], OFFCPU_STUB_UNKNOWN);
	assert_int_equal(told[8], OFFCPU_STUB_UNKNOWN);
	assert_int_equal(told[16], row(OFFCPU_STUB_LINK, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aarch64),
		cmocka_unit_test(test_x86_64),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
