/* SPDX-License-Identifier: MIT */
/* build: -s */
#include "plain.c"
