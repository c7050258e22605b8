/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/top.h"

#include <string.h>

/* All but its bytes. */
static void fill(struct top_code *c, const struct blob *blob, uint64_t pc)
{
	c->code_begin = blob->code_begin;
	c->code_end = blob->code_end;
	c->pc = pc;
	c->frame_size = blob->frame_size;
	c->frame_complete = blob->frame_complete;
}

bool top_window(const struct blob *blob, uint64_t pc, uint64_t *start, uint64_t *len)
{
	struct top_code c;
	bool ok;

	fill(&c, blob, pc);
	ok = top_choose_window(&c);
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
	struct top_code c;
	struct top_scan s;

	if (len > sizeof(c.bytes))
		return TOP_UNKNOWN;
	fill(&c, blob, pc);
	c.start = start;
	c.end = start + len;
	memcpy(c.bytes, code, len);
	if (arch->id != ARCH_AARCH64 && arch->id != ARCH_X86_64)
		return TOP_UNKNOWN;
	if (!top_is_prologue(&c))
		return arch->id == ARCH_AARCH64 ? top_epilogue_aarch64(&c) : top_epilogue_x86_64(&c);
	s = scan(&c, arch->id == ARCH_AARCH64 ? top_scan_aarch64 : top_scan_x86_64);
	return arch->id == ARCH_AARCH64 ? top_prologue_aarch64(&c, &s) : top_prologue_x86_64(&c, &s);
}
