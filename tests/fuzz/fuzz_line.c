/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf/line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct code_bounds code = {.start = 0x1000, .end = 0x100000};

/* Rows rise, none is outside of a sequence, and strings are whole. */
static void check(const struct line_table *table)
{
	size_t sum = 0;

	for (size_t i = 1; i < table->rows.len; i++)
		if (table->rows.data[i].start < table->rows.data[i - 1].start)
			abort();
	if (table->rows.len && table->rows.data[table->rows.len - 1].line)
		abort();
	for (size_t i = 0; i < table->files.len; i++) {
		const struct map_file *file = &table->files.data[i];

		sum += (file->name ? strlen(file->name) : 0) + (file->dir ? strlen(file->dir) : 0);
	}
	__asm__ volatile("" : : "r"(sum)); /* or the compiler would drop the reads */
}

/* The first byte: the byte order; the rest is .debug_line, and all sections with strings. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct line_table table = {0};
	struct dwarf_file file = {0};

	if (!size)
		return 0;
	file.big_endian = data[0] & 1;
	file.line = file.str = file.line_str = (struct span){.data = data + 1, .len = size - 1};
	if (line_table_read(&table, &file, 0, data[0] & 2 ? 4 : 8, "/comp", &code))
		check(&table);
	line_table_deinit(&table);
	return 0;
}
