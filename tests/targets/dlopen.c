/* SPDX-License-Identifier: MIT */
/* dlopen LIBRARY: a thread blocked in a callback from a library that was loaded at run time (plugin.c, plugin_lazy.c). */
/* build: -ldl */
#include "target.h"

#include <dlfcn.h>

static int (*plugin_enter)(int (*)(int), int);

FRAME static int callback(int n)
{
	target_block();
	return n;
}

FRAME static void worker(void)
{
	plugin_enter(callback, 1);
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_LAZY) : NULL;

	target_init();
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	plugin_enter = (int (*)(int (*)(int), int))dlsym(library, "plugin_enter");
	target_start("worker", worker);
	target_ready();
	target_serve(NULL);
}
