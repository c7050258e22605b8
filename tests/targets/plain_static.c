/* SPDX-License-Identifier: MIT */
/* build: -static */
#include "plain.c"
