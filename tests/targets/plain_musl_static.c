/* SPDX-License-Identifier: MIT */
/* build-with: musl-gcc */
/* build: -static */
#include "plain.c"
