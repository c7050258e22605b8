/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_REPORT_JSON_FRAME_H
#define STAKEOUT_REPORT_JSON_FRAME_H

#include "model/stack.h"
#include "report/json_writer.h"
#include "report/lacking.h"

/* Stacks in JSON, the same in all documents: $defs/frame and $defs/lacking_module of snapshot.schema.json. */

/* An array of frames, empty when `stack` is NULL. `raw` has the stack pointers to write; NULL: do not write any. */
void json_stack(struct json *j, const char *key, const struct stack *stack, const struct raw_stack *raw);

/* The array "lacking". */
void json_lacking(struct json *j, const struct lacking *lacking);

#endif
