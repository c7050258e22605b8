/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_ELF_UNPACK_H
#define STAKEOUT_ELF_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Compressed sections. */

/* How a section is packed. */
struct packing {
	uint32_t type; /* ELFCOMPRESS_*; 0: not at all */
	uint64_t size; /* unpacked size in bytes, as the section claims */
	const uint8_t *data;
	size_t len;
};

/* No real file has more than this in all its compressed sections together. */
#define UNPACK_MAX (UINT64_C(2) << 30)

/* False when it is of an unknown type, or claims to hold more than it can. */
bool unpack_is_sane(const struct packing *packing);

/* Memory for so many bytes, for free(); quick to fill. NULL when memory is exhausted. */
uint8_t *unpack_alloc(uint64_t size);

/* Fills packing->size bytes. False when the section is damaged. Any thread may do so. */
bool unpack(const struct packing *packing, uint8_t *to);

#endif
