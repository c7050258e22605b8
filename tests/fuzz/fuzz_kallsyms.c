/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kallsyms.h"
#include "memfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse_as_line(const uint8_t *data, size_t size)
{
	char *line = strndup((const char *)data, size);
	struct kernel_text text;

	if (!line)
		abort();
	if (kernel_text_parse(line, &text) &&
	    (text.name < line || text.name + text.name_len > line + strlen(line) || text.name_len == 0))
		abort();
	free(line);
}

/* As the whole file, and as one line of a thread's kernel stack. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t somewhere[] = {0, 1, 0xffffffff81000010, 0xffffffffc0001000, UINT64_MAX};
	int fd = memfile_create(data, size);
	struct kallsyms *ks = NULL;
	struct kernel_symbol symbol;
	struct err err;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (kallsyms_load(path, &err, &ks) == 0) {
		for (size_t i = 0; i < sizeof(somewhere) / sizeof(*somewhere); i++) {
			if (kallsyms_find(ks, somewhere[i], &symbol) &&
			    (symbol.start > somewhere[i] || strlen(symbol.name) > size ||
			     (symbol.module && strlen(symbol.module) > size)))
				abort();
		}
	}
	kallsyms_destroy(ks);
	close(fd);
	parse_as_line(data, size);
	return 0;
}
