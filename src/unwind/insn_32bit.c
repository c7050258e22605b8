/* SPDX-License-Identifier: MIT */
/* Code of 32-bit programs is not read: their stacks are walked by tables, and what calls look like is enough for the rest. */
#include <string.h>

#include "unwind/insn.h"

static bool is_no_context_end(const uint8_t code[static INSN_CONTEXT_BYTES])
{
	return false;
}

static bool step_nowhere(const uint8_t *code, size_t len, uint64_t address, struct insn_state *state, struct insn *out)
{
	return false;
}

/* As on 64 bits, where the instruction after the call counts for where it goes; addresses wrap at 4 GiB. */
static bool i386_follows_call(const uint8_t *before, size_t len, uint64_t address, uint64_t *target)
{
	if (!insn_x86_64.follows_call(before, len, address, target))
		return false;
	*target = (uint32_t)*target;
	return true;
}

/* mov $1, %eax; int $0x80 */
static bool i386_is_exit(const uint8_t *code, size_t len)
{
	static const uint8_t exit_call[] = {0xb8, 0x01, 0x00, 0x00, 0x00, 0xcd, 0x80};
	size_t skip = len >= 2 && code[0] == 0x89 && code[1] == 0xc3 ? 2 : 0; /* mov %eax, %ebx */

	for (size_t i = 0; i < sizeof(exit_call); i++)
		if (skip + i >= len || code[skip + i] != exit_call[i])
			return false;
	return true;
}

/* bl or blx, in Thumb and not. */
static bool arm_follows_call(const uint8_t *before, size_t len, uint64_t address, uint64_t *target)
{
	uint32_t half = len >= 2 ? (uint32_t)(before[len - 2] | before[len - 1] << 8) : 0;
	uint32_t first = len >= 4 ? (uint32_t)(before[len - 4] | before[len - 3] << 8) : 0;
	uint32_t word = first | half << 16;

	*target = 0;
	return (half & 0xff87) == 0x4780 ||                              /* blx reg */
	       ((first & 0xf800) == 0xf000 && (half & 0xc000) == 0xc000) || /* bl, blx */
	       (word & 0x0f000000) == 0x0b000000 || (word & 0xfe000000) == 0xfa000000 || (word & 0x0ffffff0) == 0x012fff30;
}

/* mov r7, #1; svc 0, in Thumb and not; the number may come from memory. */
static bool arm_is_exit(const uint8_t *code, size_t len)
{
	static const uint8_t wide[] = {0x4f, 0xf0, 0x01, 0x07, 0x00, 0xdf};

	return (len >= sizeof(wide) && memcmp(code, wide, sizeof(wide)) == 0) ||
	       (len >= 4 && code[0] == 0x01 && code[1] == 0x27 && code[2] == 0x00 && code[3] == 0xdf) ||
	       (len >= 8 && code[0] == 0x01 && code[1] == 0x70 && code[2] == 0xa0 && code[3] == 0xe3 && code[7] == 0xef) ||
	       (len >= 8 && code[1] == 0x70 && code[2] == 0x9f && code[3] == 0xe5 && code[7] == 0xef);
}

const struct insn_ops insn_i386 = {
	.is_exit = i386_is_exit, .is_context_end = is_no_context_end, .follows_call = i386_follows_call, .step = step_nowhere};
const struct insn_ops insn_arm = {
	.is_exit = arm_is_exit, .is_context_end = is_no_context_end, .follows_call = arm_follows_call, .step = step_nowhere};
