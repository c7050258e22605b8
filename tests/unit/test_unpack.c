/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <elf.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "elf/unpack.h"

enum { SIZE = 5 << 20, ZSTD = 2 };

static void fill(uint8_t *data, size_t len)
{
	uint32_t random = 1;

	for (size_t i = 0; i < len; i++) {
		random = random * 1664525 + 1013904223;
		data[i] = (uint8_t)(random >> 28);
	}
}

static void check(uint32_t type, const uint8_t *packed, size_t len, const uint8_t *want, size_t size)
{
	struct packing packing = {.type = type, .size = size, .data = packed, .len = len};
	uint8_t *out = unpack_alloc(size);

	assert_non_null(out);
	assert_true(unpack_is_sane(&packing));
	assert_true(unpack(&packing, out));
	assert_memory_equal(out, want, size);
	packing.len--; /* cut short */
	assert_false(unpack(&packing, out));
	packing.len++;
	packing.size--; /* more is in it than it says */
	assert_false(unpack(&packing, out));
	free(out);
}

static void test_round_trip(void **state)
{
	static const size_t sizes[] = {1, 1000, SIZE};
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
	size_t room = libdeflate_zlib_compress_bound(c, SIZE) + ZSTD_compressBound(SIZE);
	uint8_t *data = malloc(SIZE), *packed = malloc(room);

	fill(data, SIZE);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		check(ELFCOMPRESS_ZLIB, packed, libdeflate_zlib_compress(c, data, sizes[i], packed, room), data,
		      sizes[i]);
		check(ZSTD, packed, ZSTD_compress(packed, room, data, sizes[i], 3), data, sizes[i]);
	}
	libdeflate_free_compressor(c);
	free(data);
	free(packed);
}

static void test_insane(void **state)
{
	struct packing packing = {.type = ELFCOMPRESS_ZLIB, .size = 1000, .data = (const uint8_t *)"x", .len = 1};

	assert_true(unpack_is_sane(&packing));
	packing.size = 5000; /* no packer is that good */
	assert_false(unpack_is_sane(&packing));
	packing.size = 0;
	assert_false(unpack_is_sane(&packing));
	packing.len = SIZE_MAX;
	packing.size = UNPACK_MAX + 1;
	assert_false(unpack_is_sane(&packing));
	packing.size = 1;
	packing.type = 77;
	assert_false(unpack_is_sane(&packing));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_insane),
	};

	return cmocka_run_group_tests_name("unpack", tests, NULL, NULL);
}
