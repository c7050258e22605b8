/* SPDX-License-Identifier: MIT */
/* build: -static-pie -fPIE */
#include "plain.c"
