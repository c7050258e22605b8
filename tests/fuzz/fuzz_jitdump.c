/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memfile.h"
#include "symbol/source_jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A function that is found must cover the address; a line needs a file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t somewhere[] = {0, 0x1000, 0x1040, 0x2000, 0x7f0000001000, UINT64_MAX};
	struct jitdump_source *source = NULL;
	struct calls calls = {0};
	struct err err;

	if (jitdump_source_create(memfile_create(data, size), &err, &source) != 0)
		return 0;
	for (size_t i = 0; i < sizeof(somewhere) / sizeof(*somewhere); i++) {
		if (!jitdump_source_ops.find(source, somewhere[i], &calls))
			continue;
		if (calls.len != 1 || calls.data[0].start > somewhere[i] ||
		    strlen(calls.data[0].linkage) != calls.data[0].linkage_len ||
		    (calls.data[0].line && !calls.data[0].file))
			abort();
	}
	vec_deinit(&calls);
	jitdump_source_ops.destroy(source);
	return 0;
}
