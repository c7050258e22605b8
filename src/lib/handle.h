/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_LIB_HANDLE_H
#define STAKEOUT_LIB_HANDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/notes.h"
#include "symbol/native_names.h"

/* What programs hold, and what all that is made with it needs: it is gone when the last of these is. */
struct stakeout {
	atomic_uint users;
	uint64_t patience_ns;
	struct err err; /* of the last call */
	struct store *cache;
	struct native_names_options names;
	struct notes notes; /* why there is no cache, or no server */
};

struct stakeout *handle_use(struct stakeout *stakeout);
void handle_leave(struct stakeout *stakeout);

/*
 * Around a call that may wait for others. Its patience begins anew, and an interrupt is over once all calls that it was for
 * have ended: what the process shares is kept here.
 */
void handle_begin(struct stakeout *stakeout);
void handle_end(void);

/* What is known besides: of the handle, and of what did not answer. True if something did not. */
bool handle_tell(const struct stakeout *stakeout, struct notes *out);

#endif
