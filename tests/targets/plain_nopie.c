/* SPDX-License-Identifier: MIT */
/* build: -no-pie -fno-pie */
#include "plain.c"
