/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_DWARFMAKE_H
#define STAKEOUT_TESTS_DWARFMAKE_H

#include "cmocka_all.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "elf/image.h"

/* A section with DWARF in the making, for what no compiler would write. */
struct dwarfmake {
	uint8_t data[4096];
	size_t len;
	bool big_endian;
};

static inline void dw_bytes(struct dwarfmake *m, const void *data, size_t len)
{
	assert_true(m->len + len <= sizeof(m->data));
	memcpy(m->data + m->len, data, len);
	m->len += len;
}

static inline void dw_uint_at(struct dwarfmake *m, size_t at, unsigned size, uint64_t value)
{
	for (unsigned i = 0; i < size; i++)
		m->data[at + i] = (uint8_t)(value >> 8 * (m->big_endian ? size - 1 - i : i));
}

/* A number of `size` bytes. */
static inline void dw_uint(struct dwarfmake *m, unsigned size, uint64_t value)
{
	assert_true(m->len + size <= sizeof(m->data));
	dw_uint_at(m, m->len, size, value);
	m->len += size;
}

static inline void dw_u8(struct dwarfmake *m, uint8_t value)
{
	dw_uint(m, 1, value);
}

static inline void dw_uleb(struct dwarfmake *m, uint64_t value)
{
	do {
		dw_u8(m, (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0)));
		value >>= 7;
	} while (value);
}

static inline void dw_sleb(struct dwarfmake *m, int64_t value)
{
	bool more = true;

	while (more) {
		uint8_t byte = value & 0x7f;

		value >>= 7;
		more = !((value == 0 && !(byte & 0x40)) || (value == -1 && (byte & 0x40)));
		dw_u8(m, byte | (more ? 0x80 : 0));
	}
}

static inline void dw_str(struct dwarfmake *m, const char *s)
{
	dw_bytes(m, s, strlen(s) + 1);
}

/* The length that starts a unit or a table, to be filled in by dw_end(); offsets are of 4 bytes, or of 8. */
static inline size_t dw_begin(struct dwarfmake *m, unsigned offset_size)
{
	if (offset_size == 8)
		dw_uint(m, 4, UINT32_MAX);
	dw_uint(m, offset_size, 0);
	return m->len;
}

static inline void dw_end(struct dwarfmake *m, size_t begin, unsigned offset_size)
{
	dw_uint_at(m, begin - offset_size, offset_size, m->len - begin);
}

static inline struct span dw_span(const struct dwarfmake *m)
{
	return (struct span){.data = m->data, .len = m->len};
}

/* One abbreviation: pairs of attribute and form, ended by 0. Those of implicit constants have the value as third. */
static inline void dw_abbrev(struct dwarfmake *m, uint64_t code, uint64_t tag, bool children, const int *attrs)
{
	dw_uleb(m, code);
	dw_uleb(m, tag);
	dw_u8(m, children ? DW_CHILDREN_yes : DW_CHILDREN_no);
	while (*attrs) {
		dw_uleb(m, (uint64_t)attrs[0]);
		dw_uleb(m, (uint64_t)attrs[1]);
		if (attrs[1] == DW_FORM_implicit_const) {
			dw_sleb(m, attrs[2]);
			attrs++;
		}
		attrs += 2;
	}
	dw_uleb(m, 0);
	dw_uleb(m, 0);
}

#endif
