/* SPDX-License-Identifier: MIT */
/* build-with: musl-gcc */
#include "plain.c"
