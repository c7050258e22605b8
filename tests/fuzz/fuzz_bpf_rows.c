/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>

#include "memfile.h"
#include "unwind/bpf_rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the search in BPF relies on. */
static void check(const struct bpf_rows *rows)
{
	if (rows->len == 0 || rows->len > BPF_ROWS_MAX || rows->data[0].pc != 0 ||
	    rows->data[rows->len - 1].kind != UNWIND_NONE)
		abort();
	for (size_t i = 1; i < rows->len; i++) {
		if (rows->data[i].pc <= rows->data[i - 1].pc)
			abort();
	}
}

static void build(struct image *image)
{
	const struct arch *archs[] = {&arch_x86_64, &arch_aarch64};
	struct bpf_rows rows;

	for (unsigned i = 0; i < 2; i++) {
		if (bpf_rows_build(image, archs[i], NULL, &rows) != 0)
			continue;
		check(&rows);
		bpf_rows_deinit(&rows);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image *file = NULL, *loaded = NULL;

	if (image_open_fd(memfile_create(data, size), NULL, &file) == 0)
		build(file);
	if (image_open_memory(data, size, NULL, &loaded) == 0)
		build(loaded);
	image_destroy(file);
	image_destroy(loaded);
	return 0;
}
