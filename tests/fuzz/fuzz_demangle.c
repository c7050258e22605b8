/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_DEMANGLED = 64 << 10 };

/* Symbol names of a target: C++, Rust, D or anything. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = malloc(size + 1);
	char *text;

	if (!name)
		return 0;
	memcpy(name, data, size);
	name[size] = '\0';
	text = demangle(name);
	if (text && strlen(text) > MAX_DEMANGLED)
		abort();
	free(text);
	free(name);
	return 0;
}
