/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_ASK_H
#define STAKEOUT_TARGET_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "model/snapshot.h"
#include "target/memory.h"

/*
 * How a stage gets more of the target's memory than stacks: it is asked while the process is looked at. Given what is
 * known of a thread, or of the process as a whole, and what its last question brought, it names the ranges that it wants.
 * All that are wanted are read at once, and it is asked again, in a bounded number of rounds, since pointers lead to
 * pointers. The bytes belong to the snapshot; what was read for a thread counts only if that has not run meanwhile
 * (capture/capture.h), as its stack does.
 */

enum ask_keep {
	ASK_PASSING,   /* only for the next question */
	ASK_BYTES,     /* for whoever reads the thread's memory, or all of them, later: snap->copies */
	ASK_IMAGE,     /* an ELF image that exists in memory only: snap->images */
	ASK_JIT_IMAGE, /* an ELF object that a JIT compiler announced to debuggers: snap->jit_images */
};

struct ask_range {
	uint64_t address;
	uint64_t len;
	enum ask_keep keep;
	uint64_t got;  /* the answer: how many bytes could be read, */
	uint8_t *data; /* and these */
};

struct ask {
	VEC_FIELDS(struct ask_range);
};

/* To add one: a function like this, and whoever captures has it asked. */
struct asker {
	unsigned max_rounds; /* it gets at most so many answers, each of all that it wanted */
	/*
	 * `thread` is NULL for the process as a whole. `answers` is what was wanted in the round before: empty in the
	 * first. Adds to `wants`; nothing: it is done. False when memory is exhausted.
	 */
	bool (*ask)(void *state, const struct snapshot *snap, const struct snap_thread *thread,
		    const struct ask *answers, struct ask *wants);
	/* What was read for the thread does not count, and is gone: it has run meanwhile. May be NULL. */
	void (*forget)(void *state, const struct snapshot *snap, const struct snap_thread *thread);
};

bool ask_want(struct ask *wants, uint64_t address, uint64_t len, enum ask_keep keep);
void ask_deinit(struct ask *ask);

struct target;

/* Asks for the process as a whole, and keeps what is to be kept. */
int ask_process(struct target *target, struct snapshot *snap, const struct asker *asker, void *state, struct err *err);

/* Reads what several want, at once; what cannot be read has fewer bytes than were wanted. False: memory is exhausted. */
bool ask_read(struct memory *memory, struct snapshot *snap, struct ask *const *asks, size_t n);

/* Puts the whole answers that are to be kept where they belong; `tid` is 0 for the process as a whole. */
bool ask_keep(struct snapshot *snap, pid_t tid, const struct ask *answers);

/* The vDSO: code that no file has. */
extern const struct asker ask_vdso;

#endif
