/* SPDX-License-Identifier: MIT */
/* build: -static */
#include "locks.c"
