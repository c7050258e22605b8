/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_FILEMAP_H
#define STAKEOUT_BASE_FILEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * The bytes of a file that others may change, or cut short, while we read them: a package that is upgraded, or a
 * hostile target. Reading them never ends in a crash:
 *
 * - behind the last byte there are zeroes that belong to no file, so that a string whose end was taken away ends there;
 * - what is cut off reads as zeroes from then on, and filemap_has_changed() says so.
 *
 * Any byte may be different the next time it is read. So code that checks a value must use the very value that it
 * checked, and code that measures a string must not rely on its being as long a second time: copy first, then look.
 */
struct filemap {
	const uint8_t *data; /* `len` bytes, and at least one 0 behind them; at a multiple of FILEMAP_ALIGN */
	size_t len;
	size_t reserved; /* bytes of address space; 0: the bytes are a copy */
	uint32_t slot;   /* its slot in the list of all mappings */
	bool short_copy; /* the file ended before it was copied whole */
};

enum {
	FILEMAP_MAX = 4096, /* mappings at a time: further files are read into memory */
	FILEMAP_ALIGN = 64,
};

/* Maps the first `len` bytes (at least one) of an open file. The descriptor may be closed afterwards. */
int filemap_open(int fd, uint64_t len, struct err *err, struct filemap *out);
void filemap_close(struct filemap *map); /* one that was never opened is fine too */

/* Some of the bytes were gone when they were looked at. Any thread may ask. */
bool filemap_has_changed(const struct filemap *map);

#endif
