/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "unwind/cfi.h"
#include "unwind/search.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	HDR_VADDR = 0x1000,
	FRAME_VADDR = 0x2000,
	MAX_ROWS = 100000, /* a record of a few bytes may stand for as many as its code has bytes */
};

static int see_row(const struct cfi_row *row, void *arg)
{
	size_t *rows = arg;

	if (row->ra_reg >= ARCH_MAX_DWARF_REGS || row->start >= row->end)
		abort();
	return ++*rows < MAX_ROWS ? 0 : 1;
}

static void look_up(struct cfi_section *section, uint64_t address)
{
	struct cfi_row row;

	if (cfi_find_row(section, NULL, address, &row) == 0 && (address < row.start || address >= row.end))
		abort();
}

static void search(struct cfi_section *section)
{
	ssize_t count = search_count(section);
	size_t rows = 0;
	struct fde fde;

	for (ssize_t i = 0; i < count && i < 64; i++) {
		if (!search_nth(section, (size_t)i, &fde))
			continue;
		look_up(section, fde.start);
		look_up(section, fde.start + (fde.end - fde.start) / 2);
		look_up(section, fde.end - 1);
	}
	look_up(section, 0x400000);
	cfi_for_each_row(section, see_row, &rows);
}

/* First a byte that chooses the kind and two with the length of .eh_frame_hdr, then that header, then the section. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_init(data, size);
	uint8_t choice = cursor_u8(&c);
	uint16_t hdr_len = cursor_u16(&c);
	struct cursor hdr = cursor_take(&c, hdr_len);
	struct cfi_section section;

	if (c.bad)
		return 0;
	cfi_section_init(&section, choice & 1 ? CFI_DEBUG_FRAME : CFI_EH_FRAME,
			 choice & 2 ? &arch_aarch64 : &arch_x86_64,
			 (struct span){.data = c.p, .len = cursor_left(&c), .vaddr = FRAME_VADDR},
			 (struct span){.data = hdr_len ? hdr.p : NULL, .len = hdr_len, .vaddr = HDR_VADDR});
	search(&section);
	cfi_section_deinit(&section);
	return 0;
}
