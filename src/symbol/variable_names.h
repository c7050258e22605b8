/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_VARIABLE_NAMES_H
#define STAKEOUT_SYMBOL_VARIABLE_NAMES_H

#include <stdbool.h>

#include "model/trace.h"
#include "target/modules.h"

/* Names the variables that threads wait for, as far as their files do. */
void variable_names_find(struct modules *modules, bool demangles, struct trace *trace);

#endif
