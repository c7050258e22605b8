/* SPDX-License-Identifier: MIT */
/* Unwind information in .debug_frame only. */
/* build: -fno-asynchronous-unwind-tables -fno-unwind-tables -fomit-frame-pointer */
#include "plain.c"
