/* SPDX-License-Identifier: MIT */
#include "elf/minidebug.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"

/* A few kilobytes of xz can ask for any amount of memory; real tables stay far below these. */
enum {
	MAX_UNPACKED = 64 << 20,
	MAX_DECODER_MEMORY = 64 << 20,
	CHUNK = 256 << 10,
};

static void cleanup_lzma(lzma_stream *stream)
{
	lzma_end(stream);
}

int minidebug_unpack(struct image *image, struct err *err, uint8_t **data, size_t *len)
{
	_cleanup_(cleanup_lzma) lzma_stream stream = LZMA_STREAM_INIT;
	struct span packed = image_section(image, ".gnu_debugdata");
	_cleanup_free_ uint8_t *copy = NULL, *buf = NULL;
	size_t cap = 0;
	lzma_ret ret = LZMA_OK;

	if (!packed.data)
		return err_set(err, ENOENT, "there is no .gnu_debugdata");
	copy = malloc(packed.len); /* a copy, as the decompressor may read a byte twice */
	if (!copy)
		return err_set(err, ENOMEM, "out of memory");
	memcpy(copy, packed.data, packed.len);
	if (lzma_stream_decoder(&stream, MAX_DECODER_MEMORY, 0) != LZMA_OK)
		return err_set(err, ENOMEM, "out of memory");
	stream.next_in = copy;
	stream.avail_in = packed.len;
	while (ret == LZMA_OK) {
		size_t used = stream.total_out;

		if (used >= MAX_UNPACKED)
			return err_set(err, EFBIG, ".gnu_debugdata is too large");
		if (!vec_grow((void **)&buf, &cap, used + CHUNK, 1))
			return err_set(err, ENOMEM, "out of memory");
		stream.next_out = buf + used;
		stream.avail_out = cap < MAX_UNPACKED ? cap - used : MAX_UNPACKED - used;
		ret = lzma_code(&stream, LZMA_FINISH);
	}
	if (ret != LZMA_STREAM_END)
		return err_set(err, EINVAL, ".gnu_debugdata is damaged (xz error %d)", (int)ret);
	*len = stream.total_out;
	*data = steal_ptr(buf);
	return 0;
}
