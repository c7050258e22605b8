/* SPDX-License-Identifier: MIT */
/*
 * A library for dlopen whose first call of a function of its own is still to be bound: the program is called back while
 * that is done, from the function that chooses between several.
 */
/* build: -shared -fPIC -Wl,-z,lazy */
#include "frame.h"

int plugin_enter(int (*callback)(int), int n);
int plugin_chosen(int n) __attribute__((ifunc("plugin_choose")));

static int (*call_back)(int);

static int chosen(int n)
{
	return n;
}

__attribute__((used)) static int (*plugin_choose(void))(int)
{
	call_back(0);
	return chosen;
}

FRAME static int plugin_inner(int n)
{
	return plugin_chosen(n + 1) + n;
}

int plugin_enter(int (*callback)(int), int n)
{
	call_back = callback;
	return plugin_inner(n + 1) + n;
}
