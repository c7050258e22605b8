/* SPDX-License-Identifier: MIT */
/* build-with: arm-linux-gnueabihf-gcc */
/* build: -static */
#include "signals.c"
