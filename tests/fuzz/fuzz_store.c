/* SPDX-License-Identifier: MIT */
#include <libdeflate.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char key[] = "0123456789abcdef";
enum { VERSION = 1 };

/* Two files that are taken for the same entry may differ in their payload only. */
static void check(const uint8_t *file, size_t size)
{
	static uint8_t taken[STORE_ENVELOPE];
	static size_t taken_size;

	if (!store_check(file, size, size, key, VERSION))
		return;
	if (size < STORE_ENVELOPE || store_check(file, size, size, "0123456789abcdee", VERSION) ||
	    store_check(file, size, size, key, VERSION + 1) || store_check(file, size, size + 1, key, VERSION))
		abort();
	if (taken_size == size && memcmp(file, taken, STORE_ENVELOPE) != 0)
		abort();
	memcpy(taken, file, STORE_ENVELOPE);
	taken_size = size;
}

/* Once as it is, and once with the checksum put right, or nothing behind it would ever be looked at. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t summed = STORE_ENVELOPE - sizeof(uint32_t);
	uint8_t *copy = malloc(size ? size : 1);
	uint32_t checksum;

	if (!copy)
		return 0;
	check(data, size);
	if (size)
		memcpy(copy, data, size);
	if (size >= STORE_ENVELOPE) {
		checksum = libdeflate_crc32(0, copy, summed);
		memcpy(copy + summed, &checksum, sizeof(checksum));
		check(copy, size);
	}
	free(copy);
	return 0;
}
