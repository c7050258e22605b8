/* SPDX-License-Identifier: MIT */
#include "elfmake.h"

#include <errno.h>
#include <lzma.h>

#include "elf/minidebug.h"

struct packed {
	uint8_t *data;
	size_t len;
};

static struct packed pack(const void *data, size_t len, uint32_t preset)
{
	struct packed p = {.data = malloc(lzma_stream_buffer_bound(len))};

	assert_non_null(p.data);
	assert_int_equal(lzma_easy_buffer_encode(preset, LZMA_CHECK_CRC32, NULL, data, len, p.data, &p.len,
						 lzma_stream_buffer_bound(len)),
			 LZMA_OK);
	return p;
}

/* Unpacks a file whose .gnu_debugdata has these bytes. */
static int unpack(const void *data, size_t len, struct err *err, uint8_t **out, size_t *out_len)
{
	struct elfmake e;
	struct image *image;
	int rc;

	elfmake_init(&e, EM_X86_64);
	elfmake_section(&e, ".gnu_debugdata", (Elf64_Shdr){.sh_type = SHT_PROGBITS}, data, len);
	image = elfmake_image(&e);
	rc = minidebug_unpack(image, err, out, out_len);
	image_destroy(image);
	elfmake_deinit(&e);
	return rc;
}

static void expect_error(const void *data, size_t len, int code)
{
	struct err err = {0};
	uint8_t *out = NULL;
	size_t out_len = 0;

	assert_int_equal(unpack(data, len, &err, &out, &out_len), -code);
	assert_int_equal(err.code, code);
	assert_non_null(strstr(err.msg, ".gnu_debugdata"));
	assert_null(out);
	assert_int_equal(out_len, 0);
}

/* Sizes around the pieces in which the output grows. */
static void test_round_trip(void **state)
{
	static const size_t sizes[] = {0, 1, 1000, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 1 << 20};
	uint8_t *data = malloc(1 << 20), *out;
	uint64_t seed = 1;
	size_t len;

	for (size_t i = 0; i < 1 << 20; i++) {
		seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		data[i] = i % 64 < 60 ? 0 : (uint8_t)(seed >> 56);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct packed p = pack(data, sizes[i], 0);

		assert_int_equal(unpack(p.data, p.len, NULL, &out, &len), 0);
		assert_int_equal(len, sizes[i]);
		assert_memory_equal(out, data, len);
		free(out);
		free(p.data);
	}
	free(data);
}

static void test_not_there(void **state)
{
	struct elfmake e;
	struct image *image;
	uint8_t *out;
	size_t len;

	elfmake_init(&e, EM_X86_64);
	elfmake_section(&e, ".debug_info", (Elf64_Shdr){.sh_type = SHT_PROGBITS}, "x", 1);
	image = elfmake_image(&e);
	assert_int_equal(minidebug_unpack(image, NULL, &out, &len), -ENOENT);
	image_destroy(image);
	elfmake_deinit(&e);
}

static void test_damaged(void **state)
{
	static const char text[] = "not compressed at all, and of no use to a decoder";
	struct packed p = pack(text, sizeof(text), 6);

	expect_error(text, sizeof(text), EINVAL);
	for (size_t cut = 1; cut < p.len; cut++)
		expect_error(p.data, cut, EINVAL);
	for (size_t at = 0; at < p.len; at++) {
		p.data[at] ^= 0x10;
		expect_error(p.data, p.len, EINVAL);
		p.data[at] ^= 0x10;
	}
	free(p.data);
}

/* A few kilobytes that would fill the memory: the same block of zeros over and over. */
static struct packed make_bomb(size_t block_size, unsigned blocks)
{
	lzma_options_lzma options;
	lzma_filter filters[] = {{.id = LZMA_FILTER_LZMA2, .options = &options}, {.id = LZMA_VLI_UNKNOWN}};
	lzma_block block = {.check = LZMA_CHECK_NONE, .filters = filters};
	lzma_stream_flags flags = {.check = LZMA_CHECK_NONE};
	struct packed p = {.data = malloc(1 << 20), .len = LZMA_STREAM_HEADER_SIZE};
	uint8_t *zeros = calloc(1, block_size);
	lzma_index *index = lzma_index_init(NULL);
	size_t start = p.len, len;

	assert_true(p.data && zeros && index && !lzma_lzma_preset(&options, 0));
	assert_int_equal(lzma_stream_header_encode(&flags, p.data), LZMA_OK);
	assert_int_equal(lzma_block_buffer_encode(&block, NULL, zeros, block_size, p.data, &p.len, 1 << 20), LZMA_OK);
	len = p.len - start;
	assert_true(len * (blocks + 1) < 1 << 20);
	for (unsigned i = 0; i < blocks; i++, p.len = start + i * len) {
		memcpy(p.data + start + i * len, p.data + start, i ? len : 0);
		assert_int_equal(
			lzma_index_append(index, NULL, lzma_block_unpadded_size(&block), block.uncompressed_size),
			LZMA_OK);
	}
	flags.backward_size = lzma_index_size(index);
	assert_int_equal(lzma_index_buffer_encode(index, p.data, &p.len, 1 << 20), LZMA_OK);
	assert_int_equal(lzma_stream_footer_encode(&flags, p.data + p.len), LZMA_OK);
	p.len += LZMA_STREAM_HEADER_SIZE;
	lzma_index_end(index, NULL);
	free(zeros);
	return p;
}

static void test_bomb(void **state)
{
	struct packed p = make_bomb(1 << 20, 4);
	uint8_t *out;
	size_t len;

	assert_int_equal(unpack(p.data, p.len, NULL, &out, &len), 0); /* a small one is as good as any */
	assert_int_equal(len, 4 << 20);
	free(out);
	free(p.data);
	p = make_bomb(1 << 20, 129);
	assert_true(p.len < 64 << 10);
	expect_error(p.data, p.len, EFBIG);
	free(p.data);
}

/* A header that makes the decoder ask for 4 GiB before the first byte. */
static void test_hungry_decoder(void **state)
{
	struct packed p = pack("x", 1, 6);
	uint8_t *block = p.data + LZMA_STREAM_HEADER_SIZE;
	size_t block_len = ((size_t)block[0] + 1) * 4;
	uint8_t *filter =
		memchr(block + 2, 0x21, block_len - 2); /* LZMA2, the size of its properties, the dictionary */
	uint32_t crc;

	assert_non_null(filter);
	assert_int_equal(filter[1], 1);
	filter[2] = 40;
	crc = lzma_crc32(block, block_len - 4, 0);
	for (int i = 0; i < 4; i++)
		block[block_len - 4 + (size_t)i] = (uint8_t)(crc >> 8 * i);
	expect_error(p.data, p.len, EINVAL);
	free(p.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_not_there),
		cmocka_unit_test(test_damaged),        cmocka_unit_test(test_bomb),
		cmocka_unit_test(test_hungry_decoder),
	};

	return cmocka_run_group_tests_name("minidebug", tests, NULL, NULL);
}
