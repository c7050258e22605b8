/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PAGES_H
#define STAKEOUT_RUNTIME_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "model/snapshot.h"
#include "target/ask.h"

/*
 * Memory of a runtime that belongs to no thread: its code, the tables about it, and names. A reader is written as if all
 * of it were there. What it lacks is noted, asked for when the reader has given up, and the reader starts again: it gets as
 * far as the next pointer. What was once read is never read again, so all readers see the same bytes; they stay in the
 * snapshot, in pieces of PAGES_SIZE, and a saved one gives the same answers.
 */
enum { PAGES_SIZE = 512 };

struct pages {
	struct u64map known; /* number of the piece → its bytes, or 0: wanted, or 1: in vain */
	VEC(uint64_t) wanted; /* numbers of pieces */
	uint64_t left;        /* how many more may be wanted */
	uint64_t effort;      /* how many more bytes readers may look at: a process could have them read the same for ever */
	bool lacks;           /* a reader wanted what may still come; reset it before a call to learn whether it was that one */
	bool no_memory;       /* of ours: what is known is not to be relied on */
	struct mem *live;     /* what readers lack is read at once, from here; NULL: it is asked for */
	VEC(uint8_t *) read;  /* the pieces that came from there */
};

/* At most `bytes` are ever read. */
void pages_init(struct pages *pages, uint64_t bytes);
void pages_deinit(struct pages *pages);

/*
 * For waits over time, where there is no snapshot: from now on readers read the process that this is the memory of, so that
 * nothing is ever lacking. What was known counts no more: call it anew whenever the process may have changed something.
 */
void pages_read_live(struct pages *pages, struct mem *live, uint64_t bytes);

/* False when some of it is not known: it is wanted from now on, unless it cannot be read. */
bool pages_read(struct pages *pages, uint64_t address, void *buf, size_t len);
bool pages_read_word(struct pages *pages, uint64_t address, uint64_t *out);

/* Notes that it will be read. */
void pages_foresee(struct pages *pages, uint64_t address, uint64_t len);

/* For struct asker: takes over what was wanted, and wants what readers lack. False when memory is exhausted. */
bool pages_take(struct pages *pages, const struct ask *answers);
bool pages_want(struct pages *pages, struct ask *wants);

/*
 * What a saved snapshot holds for a thread, or with 0 for no thread in particular. Nothing is lacking then: whatever is not there could
 * not be read. False when memory is exhausted.
 */
bool pages_load(struct pages *pages, const struct snapshot *snap, pid_t tid);

#endif
