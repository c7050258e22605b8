/* SPDX-License-Identifier: MIT */
/* build-with: arm-linux-gnueabihf-gcc */
/* build: -g0 -funwind-tables -static */
#include "plain.c"
