/* SPDX-License-Identifier: MIT */
/* build-with: musl-gcc */
#define PTHREAD_MUTEX_ADAPTIVE_NP PTHREAD_MUTEX_NORMAL
#include "locks.c"
