/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/top.h"

static struct top_code code_of(const struct blob *blob, uint64_t pc)
{
	return (struct top_code){
		.code_begin = blob->code_begin,
		.code_end = blob->code_end,
		.pc = pc,
		.frame_size = blob->frame_size,
		.frame_complete = blob->frame_complete,
	};
}

bool top_window(const struct blob *blob, uint64_t pc, uint64_t *start, uint64_t *len)
{
	struct top_code c = code_of(blob, pc);
	bool ok = top_choose_window(&c);

	*start = c.start;
	*len = c.end - c.start;
	return ok;
}

static struct top_scan scan(const struct top_code *c, bool (*look)(const struct top_code *c, __u32 i, struct top_scan *s))
{
	struct top_scan s = {0};

	for (__u32 i = 0; i < TOP_MAX_WINDOW && look(c, i, &s); i++)
		;
	return s;
}

enum top_state top_find(const struct arch *arch, const struct blob *blob, uint64_t pc, const uint8_t *code, uint64_t start,
			uint64_t len)
{
	struct top_code c = code_of(blob, pc);
	struct top_scan s;

	c.start = start;
	c.end = start + len;
	c.bytes = code;
	if (arch->id != ARCH_AARCH64 && arch->id != ARCH_X86_64)
		return TOP_UNKNOWN;
	if (!top_is_prologue(&c))
		return arch->id == ARCH_AARCH64 ? top_epilogue_aarch64(&c) : top_epilogue_x86_64(&c);
	s = scan(&c, arch->id == ARCH_AARCH64 ? top_scan_aarch64 : top_scan_x86_64);
	return arch->id == ARCH_AARCH64 ? top_prologue_aarch64(&c, &s) : top_prologue_x86_64(&c, &s);
}
