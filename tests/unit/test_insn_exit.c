/* SPDX-License-Identifier: MIT */
/* insn_is_exit() and insn_is_context_end(); test_insn.c has the rest of insn.c. */
#include "cmocka_all.h"

#include <string.h>

#include "unwind/insn.h"

#define BYTES(...) ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})
#define WORDS(...) ((const uint8_t *)(const uint32_t[]){__VA_ARGS__}), sizeof((const uint32_t[]){__VA_ARGS__})

static void test_x86_64(void **state)
{
	/* musl: mov %eax, %edi; xor %eax, %eax; mov $60, %al; syscall; hlt */
	assert_true(insn_is_exit(&arch_x86_64, BYTES(0x89, 0xc7, 0x31, 0xc0, 0xb0, 60, 0x0f, 0x05, 0xf4)));
	/* glibc: mov %eax, %edi; mov $60, %eax; syscall */
	assert_true(insn_is_exit(&arch_x86_64, BYTES(0x89, 0xc7, 0xb8, 60, 0, 0, 0, 0x0f, 0x05)));
	assert_true(insn_is_exit(&arch_x86_64, BYTES(0xb8, 60, 0, 0, 0, 0x0f, 0x05)));
	/* another call; none; one before the number is set; a number that only starts alike */
	assert_false(insn_is_exit(&arch_x86_64, BYTES(0xb8, 15, 0, 0, 0, 0x0f, 0x05)));
	assert_false(insn_is_exit(&arch_x86_64, BYTES(0xb8, 60, 0, 0, 0, 0xf4, 0xf4)));
	assert_false(insn_is_exit(&arch_x86_64, BYTES(0x0f, 0x05, 0xb8, 60, 0, 0, 0)));
	assert_false(insn_is_exit(&arch_x86_64, BYTES(0xb8, 60, 1, 0, 0, 0x0f, 0x05)));
	assert_false(insn_is_exit(&arch_x86_64, BYTES(0xb8, 231, 0, 0, 0, 0x0f, 0x05)));
}

static void test_aarch64(void **state)
{
	/* musl: mov x8, #93; svc #0; glibc: the 32-bit form */
	assert_true(insn_is_exit(&arch_aarch64, WORDS(0xd2800ba8, 0xd4000001)));
	assert_true(insn_is_exit(&arch_aarch64, WORDS(0x52800ba8, 0xd4000001)));
	assert_true(insn_is_exit(&arch_aarch64, WORDS(0x2a0003f3, 0xd2800ba8, 0xd503201f, 0xd4000001)));
	/* another register or number; no call; a call before */
	assert_false(insn_is_exit(&arch_aarch64, WORDS(0xd2800ba9, 0xd4000001)));
	assert_false(insn_is_exit(&arch_aarch64, WORDS(0xd2800bc8, 0xd4000001)));
	assert_false(insn_is_exit(&arch_aarch64, WORDS(0xd2800ba8, 0xd65f03c0)));
	assert_false(insn_is_exit(&arch_aarch64, WORDS(0xd4000001, 0xd2800ba8, 0xd4000001)));
}

/* Cut anywhere before the end of the call. */
static void test_truncated(void **state)
{
	static const uint8_t x86[] = {0x31, 0xc0, 0xb0, 60, 0x0f, 0x05};
	static const uint32_t aarch64[] = {0xd2800ba8, 0xd4000001};

	for (size_t len = 0; len < sizeof(x86); len++)
		assert_false(insn_is_exit(&arch_x86_64, x86, len));
	for (size_t len = 0; len < sizeof(aarch64); len++)
		assert_false(insn_is_exit(&arch_aarch64, (const uint8_t *)aarch64, len));
	assert_true(insn_is_exit(&arch_x86_64, x86, sizeof(x86)));
}

static void test_context_end_x86_64(void **state)
{
	static const uint8_t plain[INSN_CONTEXT_BYTES] = {0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff};
	static const uint8_t shadow[INSN_CONTEXT_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xdc, 0x64, 0xf7, 0x04, 0x25, 0x48};
	static const uint8_t from_rbp[INSN_CONTEXT_BYTES] = {0x48, 0x89, 0xec, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff};
	static const uint8_t returns[INSN_CONTEXT_BYTES] = {0x48, 0x89, 0xdc, 0x5b, 0xc3};

	assert_true(insn_is_context_end(&arch_x86_64, plain));
	assert_true(insn_is_context_end(&arch_x86_64, shadow));
	assert_false(insn_is_context_end(&arch_x86_64, from_rbp));
	assert_false(insn_is_context_end(&arch_x86_64, returns));
}

static void test_context_end_aarch64(void **state)
{
	assert_true(insn_is_context_end(&arch_aarch64, (const uint8_t *)(uint32_t[]){0xd503201f, 0xaa1303e0, 0xb5fff9c0}));
	assert_true(insn_is_context_end(&arch_aarch64, (const uint8_t *)(uint32_t[]){0xd503245f, 0xaa1303e0, 0xb5fff9c0}));
	assert_true(insn_is_context_end(&arch_aarch64, (const uint8_t *)(uint32_t[]){0xaa1303e0, 0xb5fff9c0, 0x17fff579}));
	assert_false(insn_is_context_end(&arch_aarch64, (const uint8_t *)(uint32_t[]){0xd503201f, 0xaa1403e0, 0xb5fff9c0}));
	assert_false(insn_is_context_end(&arch_aarch64, (const uint8_t *)(uint32_t[]){0xd503201f, 0xaa1303e0, 0xb4fff9c0}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_context_end_x86_64),
		cmocka_unit_test(test_context_end_aarch64),
		cmocka_unit_test(test_x86_64),
		cmocka_unit_test(test_aarch64),
		cmocka_unit_test(test_truncated),
	};

	return cmocka_run_group_tests_name("insn_exit", tests, NULL, NULL);
}
