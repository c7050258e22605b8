/* SPDX-License-Identifier: MIT */
/* No unwind information of any kind: only the frame pointer leads on. */
/* build: -g0 -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-omit-frame-pointer */
#include "plain.c"
