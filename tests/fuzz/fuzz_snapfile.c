/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/snapfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read must also be writable: the writer trusts the model. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *in = size ? fmemopen((void *)data, size, "r") : NULL;
	struct snapshot *snap = NULL;
	struct err err;
	char *copy = NULL;
	size_t len;
	FILE *out;

	if (!in)
		return 0;
	if (snapfile_read(in, &err, &snap) == 0) {
		out = open_memstream(&copy, &len);
		if (!out || snapfile_write(snap, out, &err) != 0)
			abort();
		fclose(out);
		free(copy);
	}
	snapshot_destroy(snap);
	fclose(in);
	return 0;
}
