/* SPDX-License-Identifier: MIT */
/*
 * mapped LIBRARY: has a library mapped, and a thread blocked in a callback from it if it is libcrypto. Nothing of the
 * library is executed once it is ready: the file may then be damaged.
 */
/* build: -ldl */
#include "target.h"

#include <dlfcn.h>

typedef const void *bsearch_fn(const void *key, const void *base, int num, int size,
			       int (*cmp)(const void *, const void *));

static bsearch_fn *library_bsearch;

FRAME static int callback(const void *a, const void *b)
{
	target_block();
	return a != b;
}

FRAME static void worker(void)
{
	static const int numbers[4];

	if (library_bsearch)
		library_bsearch(numbers, numbers, 4, sizeof(numbers[0]), callback);
	else
		target_block();
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

	target_init();
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	library_bsearch = (bsearch_fn *)dlsym(library, "OBJ_bsearch_");
	target_start("worker", worker);
	target_ready();
	target_serve(NULL);
}
