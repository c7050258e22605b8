/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memfile.h"
#include "symbol/source_perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A name that is found must cover the address. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t somewhere[] = {0, 0x1000, 0x1040, 0x2000, 0x7f0000001000, UINT64_MAX};
	struct perf_map_source *source = NULL;
	struct calls calls = {0};
	struct err err;

	if (perf_map_source_create(memfile_create(data, size), &err, &source) != 0)
		return 0;
	for (size_t i = 0; i < sizeof(somewhere) / sizeof(*somewhere); i++) {
		if (!perf_map_source_ops.find(source, somewhere[i], &calls))
			continue;
		if (calls.len != 1 || calls.data[0].start > somewhere[i] ||
		    strlen(calls.data[0].linkage) != calls.data[0].linkage_len)
			abort();
	}
	vec_deinit(&calls);
	perf_map_source_ops.destroy(source);
	return 0;
}
