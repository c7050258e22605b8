/* SPDX-License-Identifier: MIT */
#include "elf/unpack.h"

#include <elf.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

enum {
	MAX_RATIO = 1100, /* deflate cannot do better than 1032 to 1; zstd can, but not with debug info */
	HUGE_PAGE = 2 << 20,
};

bool unpack_is_sane(const struct packing *packing)
{
	return (packing->type == ELFCOMPRESS_ZLIB || packing->type == ELFCOMPRESS_ZSTD) && packing->size &&
	       packing->size <= UNPACK_MAX && packing->size / MAX_RATIO <= packing->len;
}

/* Getting each small page from the kernel would take a sixth of the time of filling it. */
uint8_t *unpack_alloc(uint64_t size)
{
	uint64_t rounded = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	uint8_t *data;

	if (size < HUGE_PAGE)
		return malloc(size);
	data = aligned_alloc(HUGE_PAGE, rounded);
	if (data)
		madvise(data, rounded, MADV_HUGEPAGE);
	return data;
}

/* From a copy: it reads headers and literals where they are, more than once, and the file may change meanwhile. */
static bool unpack_zstd(const struct packing *packing, uint8_t *to)
{
	uint8_t *copy = malloc(packing->len ? packing->len : 1);
	bool ok = copy;

	if (copy)
		memcpy(copy, packing->data, packing->len);
	ok = ok && ZSTD_decompress(to, packing->size, copy, packing->len) == packing->size;
	free(copy);
	return ok;
}

/*
 * libdeflate needs no copy, which would cost a twelfth of its time: it takes bits out of the file into a register, and
 * decides by what it has there. Bits that change before they are taken are as good as any.
 */
bool unpack(const struct packing *packing, uint8_t *to)
{
	struct libdeflate_decompressor *d;
	bool ok;

	if (packing->type == ELFCOMPRESS_ZSTD)
		return unpack_zstd(packing, to);
	d = libdeflate_alloc_decompressor();
	if (!d)
		return false;
	ok = libdeflate_zlib_decompress(d, packing->data, packing->len, to, packing->size, NULL) == LIBDEFLATE_SUCCESS;
	libdeflate_free_decompressor(d);
	return ok;
}
