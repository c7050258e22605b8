/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/top.h"

#include <string.h>

/* All but its bytes. */
static void fill(struct top_code *c, const struct blob *blob, uint64_t pc, uint64_t link)
{
	c->code_begin = blob->code_begin;
	c->code_end = blob->code_end;
	c->pc = pc;
	c->link = link;
	c->keeps_fp = blob->kind == BLOB_NATIVE;
	c->is_stub = blob->kind == BLOB_STUB;
	c->frame_size = blob->frame_size;
	c->frame_complete = blob->frame_complete;
}

bool top_window(const struct blob *blob, uint64_t pc, uint64_t *start, uint64_t *len)
{
	struct top_code c;
	bool ok;

	fill(&c, blob, pc, 0);
	ok = top_choose_window(&c);
	*start = c.start;
	*len = c.end - c.start;
	return ok;
}

typedef bool (*look_fn)(const struct top_code *c, __u32 i, struct top_scan *s);

static void scan(const struct top_code *c, look_fn look, struct top_scan *s)
{
	for (__u32 i = 0; i < TOP_MAX_WINDOW && look(c, i, s); i++)
		;
}

static enum top_state find_aarch64(struct top_code *c, struct top_scan *s)
{
	if (c->is_stub && !top_know_stub_aarch64(c))
		return TOP_UNKNOWN;
	if (top_is_prologue(c)) {
		scan(c, top_scan_aarch64, s);
		return top_prologue_aarch64(c, s);
	}
	scan(c, top_look_back_aarch64, s);
	scan(c, top_follow_aarch64, s);
	return top_epilogue_aarch64(c, s);
}

static enum top_state find_x86_64(struct top_code *c, struct top_scan *s)
{
	if (c->is_stub && !top_know_stub_x86_64(c))
		return TOP_UNKNOWN;
	if (!top_is_prologue(c))
		return top_epilogue_x86_64(c);
	scan(c, top_scan_x86_64, s);
	return top_prologue_x86_64(c, s);
}

enum top_state top_find(const struct arch *arch, const struct blob *blob, const struct top_at *at, const uint8_t *code, uint64_t start,
			uint64_t len, uint64_t *below)
{
	struct top_code c;
	struct top_scan s = {0};
	enum top_state state;

	*below = 0;
	if (len > sizeof(c.bytes) || (arch->id != ARCH_AARCH64 && arch->id != ARCH_X86_64))
		return TOP_UNKNOWN;
	fill(&c, blob, at->pc, at->link);
	c.start = start;
	c.end = start + len;
	memcpy(c.bytes, code, len);
	state = arch->id == ARCH_AARCH64 ? find_aarch64(&c, &s) : find_x86_64(&c, &s);
	*below = s.below;
	return state;
}
