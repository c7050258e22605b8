/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <string.h>

#include "symbol/source_go.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Where the code of the seeds is. */
enum { TEXT = 0x400000, TEXT_SIZE = 0x180, STEP = 0x10 };

/* The input is a loaded ELF image. All strings of all calls must be there. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct calls calls = {0};
	struct image *image = NULL;
	struct go_source *source = NULL;
	volatile size_t total = 0;

	if (image_open_memory(data, size, NULL, &image) < 0)
		return 0;
	if (go_source_create(image, NULL, &source) == 0)
		for (uint64_t at = 0; at < TEXT_SIZE; at += STEP) {
			if (!go_source_find(source, TEXT + at, &calls))
				continue;
			for (size_t i = 0; i < calls.len; i++) {
				total += calls.data[i].name ? strlen(calls.data[i].name) : 0;
				total += calls.data[i].file ? strlen(calls.data[i].file) : 0;
			}
		}
	go_source_destroy(source);
	image_destroy(image);
	vec_deinit(&calls);
	return 0;
}
