/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/source_go.h"
#include "unwind/go_rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Where the code of the seeds is. */
enum { TEXT = 0x400000, TEXT_SIZE = 0x180, STEP = 0x10 };

static int check_row(const struct go_row *row, void *arg)
{
	if (row->row.end <= row->row.start || row->row.ra_reg >= ARCH_MAX_DWARF_REGS)
		abort();
	return 0;
}

/* The frames of all functions. */
static void look_at_rows(struct image *image)
{
	const struct arch *archs[] = {&arch_x86_64, &arch_aarch64};
	struct go_tables tables;
	struct go_row row;

	if (go_tables_init(&tables, image, NULL, NULL) != 0)
		return;
	for (unsigned i = 0; i < 2; i++) {
		go_rows_for_each(&tables, archs[i], check_row, NULL);
		for (uint64_t at = 0; at < TEXT_SIZE; at += STEP)
			if (go_rows_find(&tables, archs[i], NULL, TEXT + at, at & STEP, &row))
				check_row(&row, NULL);
	}
	go_tables_deinit(&tables);
}

/* The input is a loaded ELF image. All strings of all calls must be there. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct calls calls = {0};
	struct image *image = NULL;
	struct go_source *source = NULL;
	volatile size_t total = 0;

	if (image_open_memory(data, size, NULL, &image) < 0)
		return 0;
	if (go_source_create(image, NULL, &source) == 0)
		for (uint64_t at = 0; at < TEXT_SIZE; at += STEP) {
			if (!go_source_find(source, TEXT + at, &calls))
				continue;
			for (size_t i = 0; i < calls.len; i++) {
				total += calls.data[i].name ? strlen(calls.data[i].name) : 0;
				total += calls.data[i].file ? strlen(calls.data[i].file) : 0;
			}
		}
	go_source_destroy(source);
	look_at_rows(image);
	image_destroy(image);
	vec_deinit(&calls);
	return 0;
}
