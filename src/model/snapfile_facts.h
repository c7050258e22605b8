/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_SNAPFILE_FACTS_H
#define STAKEOUT_MODEL_SNAPFILE_FACTS_H

#include "model/snapfile_parts.h"

/* The section behind that of a thread, which tells what else is known about its wait (model/thread_facts.h). */
void put_facts(struct bytes *b, const struct snap_thread *thread);
int get_facts(struct cursor *c, struct snapshot *snap, struct err *err);

#endif
