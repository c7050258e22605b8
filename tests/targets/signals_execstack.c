/* SPDX-License-Identifier: MIT */
/* build: -z execstack */
#include "signals.c"
