/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_UNWIND_WALK_H
#define STAKEOUT_UNWIND_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/budget.h"
#include "target/modules.h"
#include "model/mem.h"
#include "model/snapshot.h"
#include "model/stack.h"
#include "unwind/stepper.h"

/* One walk: the frame it is at, and what it may read. Shared by all kinds of steps. */
struct walk {
	const struct arch *arch;
	const struct maps *maps;
	struct modules *modules;
	struct mem *mem;
	const struct mem_copy *stack; /* to tell where the copy ended; NULL: there is none, or the walk has left that stack */
	struct raw_stack *out;
	struct budget *budget; /* of the process */
	const struct stepper *steppers;
	size_t nsteppers;

	unsigned nsignals;  /* signal frames so far, */
	unsigned nswitches; /* and changes of stacks in Go */
	uint64_t go_outer;  /* where the thread's own stack was left by the call from C outside of the last one; 0: there was none */
	bool is_by_ehabi;   /* where the thread runs is told by tables that are sure for calls alone */
	bool is_unsure;     /* a caller was searched for or guessed, and may be the wrong one */
	struct regs regs;
	bool sp_is_bound; /* sp is not known, only that it is not lower: found by an aarch64 frame record */
	bool reads_code; /* not data: what is missing of it is asked for by frames (FRAME_UNREAD) */
	bool exact; /* pc is where execution stood, not where a call returns to: innermost, or interrupted */
};

/* What a step finds. */
struct caller {
	struct regs regs;
	bool sp_is_bound;
	bool exact;
	uint32_t flags; /* enum frame_flag: how it was found */
};

/* Ends the walk at the current frame; returns false, so that a step can `return walk_end(...)`. */
bool walk_end(struct walk *w, enum stack_end end, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* True when the stack goes on at the address, but was not copied that far. */
bool walk_is_beyond_copy(const struct walk *w, uint64_t address);

/* walk_end() for a word that cannot be read, or a register that was not captured. */
bool walk_end_unreadable(struct walk *w, uint64_t address);
bool walk_end_missing(struct walk *w, uint64_t reg);

bool walk_read_word(struct walk *w, uint64_t address, uint64_t *out);

/* Code of the target: from its file, else from its memory. */
bool walk_read_code(struct walk *w, uint64_t address, void *buf, size_t len);

/* True when the pc follows a system call. */
bool walk_follows_syscall(struct walk *w);

/* True when the address is in an executable mapping. */
bool walk_is_code(const struct walk *w, uint64_t address);

/* True when a call instruction ends at the address; *target is where it goes, 0 when that is computed. */
bool walk_is_return_address(struct walk *w, uint64_t address, uint64_t *target);

/* False when there is no caller: the end and its reason are in w->out. */
bool step_frame(struct walk *w, struct caller *out);

/* The step for code about which nothing is known (guess.c): by frame pointer, then by searching the stack. */
bool step_by_guess(struct walk *w, struct caller *out);

#endif
