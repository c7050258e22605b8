/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/top.h"

#include <string.h>

enum {
	WORD = 8,
	BEFORE = 16, /* bytes of code that are looked at before the pc, */
	BEHIND = 64, /* and behind it */
	MAX_POLL = 8, /* instructions between the end of a frame and the return: is a safepoint wanted? */
};

struct window {
	const struct blob *blob;
	const uint8_t *code;
	uint64_t start;
	uint64_t end;
	uint64_t pc;
};

static bool is_prologue(const struct blob *blob, uint64_t pc)
{
	return pc - blob->code_begin < blob->frame_complete;
}

bool top_window(const struct blob *blob, uint64_t pc, uint64_t *start, uint64_t *len)
{
	uint64_t end = blob->code_end - pc < BEHIND ? blob->code_end : pc + BEHIND;

	*start = is_prologue(blob, pc) || pc - blob->code_begin < BEFORE ? blob->code_begin : pc - BEFORE;
	*len = end - *start;
	return *len <= TOP_MAX_WINDOW;
}

/* aarch64: instructions of four bytes; the prologue is followed from the start of the code. */

static uint32_t insn_at(const struct window *w, uint64_t address)
{
	const uint8_t *p = w->code + (address - w->start);

	if (address < w->start || address > w->end || w->end - address < 4)
		return 0;
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* add or sub sp, sp, #imm: how many bytes; 0: it is not that. */
static uint64_t immediate_of(uint32_t insn, uint32_t opcode)
{
	uint64_t imm = insn >> 10 & 0xfff;

	return (insn & 0xff8003ff) == opcode ? imm << (insn >> 22 & 1 ? 12 : 0) : 0;
}

static uint64_t sub_sp(uint32_t insn)
{
	return immediate_of(insn, 0xd10003ff);
}

static uint64_t add_sp(uint32_t insn)
{
	return immediate_of(insn, 0x910003ff);
}

static bool is_sub_sp_register(uint32_t insn)
{
	return (insn & 0xffe0ffff) == 0xcb2063ff; /* sub sp, sp, xN */
}

static bool is_add_sp_register(uint32_t insn)
{
	return (insn & 0xffe0ffff) == 0x8b2063ff; /* add sp, sp, xN */
}

static bool is_store_record(uint32_t insn)
{
	return (insn & 0xffc07fff) == 0xa9007bfd; /* stp x29, x30, [sp, #N] */
}

static bool is_push_record(uint32_t insn)
{
	return insn == 0xa9bf7bfd; /* stp x29, x30, [sp, #-16]! */
}

static bool is_pop_record(uint32_t insn)
{
	return insn == 0xa8c17bfd; /* ldp x29, x30, [sp], #16 */
}

static enum top_state prologue_aarch64(const struct window *w)
{
	uint64_t size = (uint64_t)w->blob->frame_size * WORD, depth = 0;
	bool saved = false;

	for (uint64_t at = w->blob->code_begin; at < w->pc; at += 4) {
		uint32_t insn = insn_at(w, at);

		if (is_push_record(insn)) {
			depth += 2 * WORD;
			saved = true;
		}
		saved |= is_store_record(insn);
		depth += sub_sp(insn);
		if (is_sub_sp_register(insn))
			depth = size;
	}
	if (!depth)
		return TOP_NONE;
	if (depth == size)
		return saved ? TOP_WHOLE : TOP_UNSAVED;
	return depth == 2 * WORD && saved ? TOP_RECORD : TOP_UNKNOWN;
}

/* What may come between the end of the frame and the return: all in code that leaves sp and the link register alone. */
static bool is_poll_aarch64(uint32_t insn)
{
	return (insn & 0xffc003ff) == 0xf9400388 /* ldr x8, [x28, #N] */ ||
	       (insn & 0xffe0ffff) == 0xeb2063ff /* cmp sp, xN */ || (insn & 0xff00001f) == 0x54000008 /* b.hi */ ||
	       (insn & 0xfffffc1f) == 0xb940001f /* ldr wzr, [xN] */ || (insn & 0xffc0001f) == 0xb940001f /* ldr wzr, [xN, #N] */ ||
	       (insn & 0x9f00001f) == 0x90000008 /* adrp x8 */ || insn == 0xd503201f /* nop */;
}

static enum top_state epilogue_aarch64(const struct window *w)
{
	uint64_t size = (uint64_t)w->blob->frame_size * WORD;
	uint32_t before = insn_at(w, w->pc - 4);

	if (is_pop_record(insn_at(w, w->pc)))
		return TOP_RECORD;
	if (is_pop_record(before) || (add_sp(before) == size && size))
		return TOP_NONE;
	if (is_add_sp_register(before))
		return TOP_UNKNOWN;
	for (unsigned i = 0; i < MAX_POLL; i++) {
		uint32_t insn = insn_at(w, w->pc + 4 * i);

		if (insn == 0xd65f03c0) /* ret */
			return TOP_NONE;
		if (!is_poll_aarch64(insn))
			break;
	}
	return TOP_WHOLE;
}

/* x86_64: instructions are found by their bytes, and only those that a prologue or an epilogue has. */

static bool has_bytes(const struct window *w, uint64_t at, const char *bytes, size_t n)
{
	return at >= w->start && at <= w->end && w->end - at >= n && memcmp(w->code + (at - w->start), bytes, n) == 0;
}

#define HAS(w, at, bytes) has_bytes(w, at, bytes, sizeof(bytes) - 1)

/* The length of sub or add rsp, imm; 0: it is not that. */
static unsigned sub_rsp(const struct window *w, uint64_t at)
{
	return HAS(w, at, "\x48\x83\xec") ? 4 : HAS(w, at, "\x48\x81\xec") ? 7 : 0;
}

static unsigned store_rbp(const struct window *w, uint64_t at)
{
	return HAS(w, at, "\x48\x89\x6c\x24") ? 5 : HAS(w, at, "\x48\x89\xac\x24") ? 8 : 0;
}

static bool follows_sub_rsp(const struct window *w, uint64_t at)
{
	return (at - w->start >= 4 && sub_rsp(w, at - 4) == 4) || (at - w->start >= 7 && sub_rsp(w, at - 7) == 7);
}

/* The length of mov rbp, rsp in either encoding; 0: it is not that. */
static unsigned move_rsp(const struct window *w, uint64_t at)
{
	return HAS(w, at, "\x48\x8b\xec") || HAS(w, at, "\x48\x89\xe5") ? 3 : 0;
}

/* sub rsp, also behind mov rbp, rsp: where frame pointers are kept, and in stubs. */
static bool makes_frame(const struct window *w, uint64_t at)
{
	return sub_rsp(w, at + move_rsp(w, at));
}

/* push rbp is just before the pc, or there is only mov rbp, rsp between. */
static bool follows_push(const struct window *w)
{
	return (w->pc > w->start && HAS(w, w->pc - 1, "\x55")) ||
	       (w->pc - w->start > 3 && move_rsp(w, w->pc - 3) && HAS(w, w->pc - 4, "\x55"));
}

/* A frame is whole only behind what makes it. Any other prologue is not known. */
static enum top_state prologue_x86_64(const struct window *w)
{
	uint64_t complete = w->blob->code_begin + w->blob->frame_complete;

	if (follows_push(w) && makes_frame(w, w->pc))
		return TOP_RECORD;
	if (store_rbp(w, w->pc) && follows_sub_rsp(w, w->pc))
		return TOP_UNSAVED;
	for (uint64_t at = w->pc; at < complete; at++)
		if ((HAS(w, at, "\x55") && makes_frame(w, at + 1)) || (sub_rsp(w, at) && store_rbp(w, at + sub_rsp(w, at))))
			return TOP_NONE;
	for (uint64_t at = w->blob->code_begin; at < w->pc; at++)
		if (sub_rsp(w, at) && at + sub_rsp(w, at) <= w->pc)
			return TOP_WHOLE;
	return TOP_UNKNOWN;
}

/* The length of an instruction of the poll before a return; 0: it is none. */
static unsigned poll_x86_64(const struct window *w, uint64_t at)
{
	return HAS(w, at, "\x49\x3b\x67")   ? 4 /* cmp rsp, [r15 + d8] */
	       : HAS(w, at, "\x49\x3b\xa7") ? 7
	       : HAS(w, at, "\x0f\x87")     ? 6 /* ja */
	       : HAS(w, at, "\x77")         ? 2
	       : HAS(w, at, "\x4d\x8b\x57") ? 4 /* mov r10, [r15 + d8] */
	       : HAS(w, at, "\x4d\x8b\x97") ? 7
	       : HAS(w, at, "\x41\x85\x02") ? 3 /* test [r10], eax */
	       : HAS(w, at, "\x85\x05")     ? 6 /* test eax, [rip + d32] */
	       : HAS(w, at, "\xc5\xf8\x77") ? 3 /* vzeroupper */
					    : 0;
}

static enum top_state epilogue_x86_64(const struct window *w)
{
	uint64_t at = w->pc;
	bool pops = HAS(w, at, "\x5d");

	at += pops;
	for (unsigned i = 0; i < MAX_POLL; i++) {
		unsigned len = poll_x86_64(w, at);

		if (HAS(w, at, "\xc3"))
			return pops ? TOP_RECORD : TOP_NONE;
		if (!len)
			break;
		at += len;
	}
	return TOP_WHOLE;
}

enum top_state top_find(const struct arch *arch, const struct blob *blob, uint64_t pc, const uint8_t *code, uint64_t start,
			uint64_t len)
{
	const struct window w = {.blob = blob, .code = code, .start = start, .end = start + len, .pc = pc};

	if (arch->id == ARCH_AARCH64)
		return is_prologue(blob, pc) ? prologue_aarch64(&w) : epilogue_aarch64(&w);
	if (arch->id == ARCH_X86_64)
		return is_prologue(blob, pc) ? prologue_x86_64(&w) : epilogue_x86_64(&w);
	return TOP_UNKNOWN;
}
