/* SPDX-License-Identifier: MIT */
/* The library that dlopen loads: calls back into the program. */
/* build: -shared -fPIC */
#include "frame.h"

int plugin_enter(int (*callback)(int), int n);

FRAME static int plugin_inner(int (*callback)(int), int n)
{
	return callback(n + 1) + n;
}

int plugin_enter(int (*callback)(int), int n)
{
	return plugin_inner(callback, n + 1) + n;
}
