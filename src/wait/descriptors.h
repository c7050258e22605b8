/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_DESCRIPTORS_H
#define STAKEOUT_WAIT_DESCRIPTORS_H

#include "base/map.h"
#include "model/trace.h"

/* snap->waits by thread. False when memory is exhausted. */
bool descriptor_waits_index(const struct snapshot *snap, struct u64map *out);

/* What a thread waits for on descriptors or files; false: on none. */
bool wait_on_descriptors(const struct trace_thread *t, const struct u64map *index, struct wait *out);

#endif
