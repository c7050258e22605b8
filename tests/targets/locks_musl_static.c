/* SPDX-License-Identifier: MIT */
/* build-with: musl-gcc */
/* build: -static */
#define PTHREAD_MUTEX_ADAPTIVE_NP PTHREAD_MUTEX_NORMAL
#include "locks.c"
