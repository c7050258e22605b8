/* SPDX-License-Identifier: MIT */
/* waits_deep without unwind information of any kind: only the frame pointer leads on. */
/* build: -g0 -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-omit-frame-pointer -DKEEP_FRAME_POINTER */
#include "waits_deep.c"
