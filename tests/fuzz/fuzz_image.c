/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "elf/dynsym.h"
#include "elf/image.h"
#include "elf/minidebug.h"
#include "elf/plt.h"
#include "elf/symtab.h"
#include "memfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_TOUCHED = 64 }; /* sections: more only cost time */

/* Bytes that were handed out must be there: each is read, where AddressSanitizer watches. */
static void touch(struct span span)
{
	uint8_t sum = 0;

	for (size_t i = 0; i < span.len; i++)
		sum ^= span.data[i];
	__asm__ volatile("" : : "r"(sum)); /* or the compiler would drop the reads */
}

static bool visit_dynsym(void *ctx, const Elf64_Sym *sym, const char *name, size_t len)
{
	if (strlen(name) != len)
		abort();
	*(size_t *)ctx += len;
	return true;
}

static bool visit_plt(void *ctx, uint64_t start, uint64_t end, const char *name)
{
	*(size_t *)ctx += strlen(name);
	return true;
}

static void look_up_symbols(struct image *image, struct image *debug)
{
	static const uint64_t somewhere[] = {0, 0x1000, 0x1040, 0x1129, 0x401000, UINT64_MAX};
	struct symtab *tab = NULL;
	struct symbol symbol;
	char *name;
	struct err err;

	if (symtab_create(image, debug, &err, &tab) != 0)
		return;
	for (size_t i = 0; i < sizeof(somewhere) / sizeof(*somewhere); i++) {
		if (!symtab_find(tab, somewhere[i], &symbol))
			continue;
		if (somewhere[i] < symbol.start || somewhere[i] >= symbol.end)
			abort();
		name = strndup(symbol.name, symbol.name_len);
		free(name);
	}
	symtab_destroy(tab);
}

static void read_all(struct image *image)
{
	static const char *const sections[] = {".text", ".eh_frame", ".debug_info", ".debug_line", ".gnu_debuglink"};
	struct err err;
	uint8_t *unpacked = NULL;
	size_t len, names = 0;
	uint64_t vaddr;

	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		if (image_is_unpackable(image))
			touch(image_section(image, sections[i]));
	}
	for (size_t i = 0; i < image_nsections(image) && i < MAX_TOUCHED; i++)
		touch(image_shdr_bytes(image, i));
	touch(image_eh_frame_hdr(image));
	if (image_offset_to_vaddr(image, 0x1000, &vaddr)) {
		touch(image_bytes_at(image, vaddr));
		image_section_name_at(image, vaddr);
	}
	dynsym_read(image, visit_dynsym, &names);
	plt_read(image, visit_plt, &names);
	look_up_symbols(image, NULL);
	if (minidebug_unpack(image, &err, &unpacked, &len) == 0)
		touch((struct span){.data = unpacked, .len = len});
	free(unpacked);
}

/* The same bytes as a file, as its own debug file, as an image that is laid out in memory, and as a file that is cut. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image *file = NULL, *loaded = NULL;
	struct err err;

	int fd = memfile_create(data, size);

	if (image_open_fd(dup(fd), &err, &file) == 0)
		read_all(file);
	if (image_open_memory(data, size, &err, &loaded) == 0)
		read_all(loaded);
	if (file && loaded)
		look_up_symbols(file, loaded);
	if (file && ftruncate(fd, (off_t)(size / 2)) == 0)
		read_all(file);
	close(fd);
	image_destroy(file);
	image_destroy(loaded);
	return 0;
}
