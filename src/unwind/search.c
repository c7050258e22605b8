/* SPDX-License-Identifier: MIT */
#include "unwind/search.h"

#include <errno.h>
#include <stdlib.h>

enum {
	HDR_VERSION = 1,
	/* the only base with which a table can be searched: the header's own address */
	PE_DATAREL = 0x30,
	PE_BASE_MASK = 0xf0,
	PE_FORMAT_MASK = 0x07,
	PE_SIGNED = 0x08,
	WORD = 8, /* no linker writes pointers whose size depends on the processor here */
};

struct hdr {
	uint64_t eh_frame;
	uint64_t count;
	uint8_t table_encoding; /* PE_OMIT: there is no table */
	struct cursor rest;
};

static bool read_hdr(struct span span, struct hdr *out)
{
	struct cursor c = cursor_init(span.data, span.len);
	uint8_t version = cursor_u8(&c);
	uint8_t frame_encoding = cursor_u8(&c);
	uint8_t count_encoding = cursor_u8(&c);

	out->table_encoding = cursor_u8(&c);
	if (version != HDR_VERSION || !record_read_pointer(&c, WORD, frame_encoding, span.vaddr, span.vaddr, &out->eh_frame))
		return false;
	if (count_encoding == PE_OMIT || !record_read_pointer(&c, WORD, count_encoding, span.vaddr, span.vaddr, &out->count))
		out->table_encoding = PE_OMIT;
	out->rest = c;
	return true;
}

static unsigned format_width(uint8_t encoding)
{
	switch (encoding & PE_FORMAT_MASK) {
	case 2:
		return 2;
	case 3:
		return 4;
	case 4:
		return 8;
	default:
		return 0;
	}
}

static struct fde_table read_table(struct span span)
{
	struct fde_table table = {.base = span.vaddr};
	struct hdr hdr;

	if (!read_hdr(span, &hdr) || hdr.table_encoding == PE_OMIT || (hdr.table_encoding & PE_BASE_MASK) != PE_DATAREL)
		return table;
	table.width = format_width(hdr.table_encoding);
	table.is_signed = hdr.table_encoding & PE_SIGNED;
	table.data = hdr.rest.p;
	if (table.width)
		table.len = cursor_left(&hdr.rest) / (2 * table.width);
	if (table.len > hdr.count)
		table.len = hdr.count;
	return table;
}

bool cfi_eh_frame_address(struct span span, uint64_t *address)
{
	struct hdr hdr;

	if (!read_hdr(span, &hdr))
		return false;
	*address = hdr.eh_frame;
	return true;
}

void cfi_section_init(struct cfi_section *section, enum cfi_kind kind, const struct arch *arch, struct span bytes,
		      struct span hdr)
{
	*section = (struct cfi_section){.kind = kind, .arch = arch, .bytes = bytes};
	if (kind == CFI_EH_FRAME && bytes.data && hdr.data)
		section->table = read_table(hdr);
}

void cfi_section_deinit(struct cfi_section *section)
{
	vec_deinit(&section->index);
}

static uint64_t table_field(const struct fde_table *table, size_t i, unsigned field)
{
	struct cursor c = cursor_init(table->data + (2 * i + field) * table->width, table->width);

	return table->base +
	       (table->is_signed ? (uint64_t)cursor_sint(&c, table->width) : cursor_uint(&c, table->width));
}

static bool fde_at(const struct cfi_section *section, uint64_t offset, struct fde *out)
{
	return record_next(section, &offset, out) == 1;
}

static int compare_entries(const void *a, const void *b)
{
	const struct fde_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

static int build_index(struct cfi_section *section)
{
	uint64_t offset = 0;
	struct fde fde;

	for (;;) {
		uint64_t record = offset;
		int found = record_next(section, &offset, &fde);

		if (found < 0)
			break;
		if (found == 0)
			continue;
		if (!vec_push(&section->index, (struct fde_entry){.start = fde.start, .offset = record})) {
			vec_deinit(&section->index);
			return -ENOMEM;
		}
	}
	if (section->index.len)
		qsort(section->index.data, section->index.len, sizeof(*section->index.data), compare_entries);
	section->indexed = true;
	return 0;
}

ssize_t search_count(struct cfi_section *section)
{
	if (section->table.len)
		return (ssize_t)section->table.len;
	if (!section->indexed && build_index(section) != 0)
		return -ENOMEM;
	return (ssize_t)section->index.len;
}

static uint64_t start_of(const struct cfi_section *section, size_t i)
{
	return section->table.len ? table_field(&section->table, i, 0) : section->index.data[i].start;
}

bool search_nth(const struct cfi_section *section, size_t i, struct fde *out)
{
	if (section->table.len)
		return fde_at(section, table_field(&section->table, i, 1) - section->bytes.vaddr, out);
	return fde_at(section, section->index.data[i].offset, out);
}

int search_fde(struct cfi_section *section, uint64_t address, struct fde *out)
{
	ssize_t count = search_count(section);
	size_t lo = 0, hi;

	if (count < 0)
		return (int)count;
	hi = (size_t)count;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (address < start_of(section, mid))
			hi = mid;
		else
			lo = mid + 1;
	}
	/* The table is not trusted: the record itself has to cover the address. */
	if (lo == 0 || !search_nth(section, lo - 1, out) || address < out->start || address >= out->end)
		return -ENOENT;
	return 0;
}
