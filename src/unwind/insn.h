/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_UNWIND_INSN_H
#define STAKEOUT_UNWIND_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include "elf/image.h"
#include "unwind/cfi.h"

/*
 * Reading machine code where there is no CFI (musl, hand-written assembly): what follows a call, and what a function
 * still does to the stack until it returns.
 */

enum {
	INSN_MIN_CALL = 2, /* bytes of the shortest and the longest call */
	INSN_MAX_CALL = 7,
	INSN_MAX_LEN = 15, /* of any instruction */
	INSN_JUMP_BYTES = 32, /* as many bytes as insn_follows_jump() needs, */
	INSN_EXIT_BYTES = 16, /* insn_is_exit(), */
	INSN_CONTEXT_BYTES = 12, /* and insn_is_context_end() */
};

/* True when the `len` bytes end in a call; `address` is the one after them. *target: where to, 0 when computed. */
bool insn_follows_call(const struct arch *arch, const uint8_t *before, size_t len, uint64_t address, uint64_t *target);

/* True when the bytes end in a jump that has been told to return to the address after them, as a call would be. */
bool insn_follows_jump(const struct arch *arch, const uint8_t before[static INSN_JUMP_BYTES], uint64_t address);

/* True when a call ends at the address, which the span has or ends at. */
bool insn_ends_call(const struct arch *arch, struct span code, uint64_t address);

/* True when the code, which is returned to, only ends the thread. */
bool insn_is_exit(const struct arch *arch, const uint8_t *code, size_t len);

/* True when the code is what the C library has a function return to that makecontext() was given. */
bool insn_is_context_end(const struct arch *arch, const uint8_t code[static INSN_CONTEXT_BYTES]);

/*
 * Follows the code from a file address to the function's return, and states what it undoes on the way as a row: where
 * the return address is, and the registers that it restores. False when no return is found: a function that never
 * returns, a computed jump; or when the budget (may be NULL) is used up.
 */
bool insn_read_row(const struct image *image, const struct arch *arch, struct budget *budget, uint64_t vaddr,
		   struct cfi_row *out);

/*
 * The same for code from elsewhere: at() gives what is known of it from an address on, which is as much as one instruction
 * needs, or all up to its end; it stays until the next call. data NULL: nothing. `is_returned_to`: a call has just ended there.
 */
struct insn_source {
	struct span (*at)(void *ctx, uint64_t address);
	void *ctx;
};

bool insn_read_source(const struct insn_source *source, const struct arch *arch, struct budget *budget, uint64_t address,
		      bool is_returned_to, struct cfi_row *out);

/* The same for bytes of code made at run time, as far as they go straight to a return: nothing else of it is known. */
bool insn_read_straight(const struct arch *arch, const uint8_t *code, size_t len, uint64_t address, struct cfi_row *out);

/* For the files of the architectures: */

/* The stack pointer, and where the caller's registers lie, as offsets from what sp or fp was at the start. */
struct insn_slot {
	bool known;
	bool from_fp;
	int64_t offset;
};

struct insn_state {
	struct insn_slot sp; /* always known */
	struct insn_slot fp; /* unless it is known, sp cannot be taken from it */
	int64_t high;        /* the highest that sp has been: what lies below was written on the way, not before */
	struct insn_slot saved[ARCH_MAX_DWARF_REGS];  /* where it was last loaded from */
	struct insn_slot stored[ARCH_MAX_DWARF_REGS]; /* where it was last stored to on the way */
	bool after_call;                              /* the last instruction was a call */
	uint64_t lost;                                /* mask of registers overwritten since, and not loaded again */
};

enum insn_flow {
	INSN_NEXT,
	INSN_JUMP,   /* to target */
	INSN_BRANCH, /* to target, or on */
	INSN_RETURN,
	INSN_STOP, /* nothing is known about what comes after */
};

struct insn {
	unsigned len;
	enum insn_flow flow;
	uint64_t target;
};

struct insn_ops {
	bool (*is_exit)(const uint8_t *code, size_t len);
	bool (*is_context_end)(const uint8_t code[static INSN_CONTEXT_BYTES]);
	bool (*follows_call)(const uint8_t *before, size_t len, uint64_t address, uint64_t *target);
	bool (*follows_jump)(const uint8_t before[static INSN_JUMP_BYTES], uint64_t address); /* NULL: never */

	/*
	 * Decodes one instruction and applies what it does to the state; false: not understood, or the start of another
	 * function, which the code has run into after a call that does not return.
	 */
	bool (*step)(const uint8_t *code, size_t len, uint64_t address, struct insn_state *state, struct insn *out);
};

extern const struct insn_ops insn_x86_64;
extern const struct insn_ops insn_aarch64;
extern const struct insn_ops insn_i386, insn_arm; /* insn_32bit.c: they know little */

/* Offsets come from untrusted immediates: they wrap. */
static inline int64_t insn_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* What straight code has done up to its first jump, call or return, or as far as it is known. */
struct insn_state insn_follow_straight(const struct arch *arch, const uint8_t *code, size_t len, uint64_t address);

static inline void insn_move_sp(struct insn_state *state, int64_t bytes)
{
	state->sp.offset = insn_add(state->sp.offset, bytes);
	if (state->high < state->sp.offset)
		state->high = state->sp.offset;
}

static inline struct insn_slot insn_slot_at(const struct insn_state *state, int64_t offset)
{
	struct insn_slot slot = state->sp;

	slot.offset = insn_add(slot.offset, offset);
	return slot;
}

/* `reg` is stored to the word at sp + offset. */
static inline void insn_store(struct insn_state *state, unsigned reg, int64_t offset)
{
	state->stored[reg] = insn_slot_at(state, offset);
}

/* `reg` is loaded from the word at sp + offset. If it was stored there on the way, it has that value anyway. */
static inline void insn_load(struct insn_state *state, unsigned reg, int64_t offset)
{
	struct insn_slot slot = insn_slot_at(state, offset);
	const struct insn_slot *stored = &state->stored[reg];

	state->lost &= ~(UINT64_C(1) << reg);
	if (slot.offset < state->high)
		return;
	if (stored->known && stored->from_fp == slot.from_fp && stored->offset == slot.offset)
		return;
	state->saved[reg] = slot;
}

/* sp = fp + offset; false when fp was set to what is not known. */
static inline bool insn_sp_from_fp(struct insn_state *state, int64_t offset)
{
	bool same_base = state->sp.from_fp == state->fp.from_fp;

	state->sp = state->fp;
	state->sp.offset = insn_add(state->sp.offset, offset);
	if (!same_base || state->high < state->sp.offset)
		state->high = state->sp.offset;
	return state->fp.known;
}

/* fp = sp + offset */
static inline void insn_fp_from_sp(struct insn_state *state, int64_t offset)
{
	state->fp = insn_slot_at(state, offset);
}

#endif
