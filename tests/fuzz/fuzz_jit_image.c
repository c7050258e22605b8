/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target/jit_images.h"
#include "elf/symtab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_into(struct module *module, uint64_t address)
{
	static const char *const sections[] = {".eh_frame", ".debug_frame", ".debug_info", ".debug_line"};
	struct symtab *tab = NULL;
	struct symbol symbol;
	uint8_t sum = 0;

	if (symtab_create(module->image, NULL, NULL, &tab) == 0 && symtab_find(tab, address, &symbol) &&
	    (address < symbol.start || address >= symbol.end))
		abort();
	symtab_destroy(tab);
	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		struct span span = image_section(module->image, sections[i]);

		for (size_t j = 0; j < span.len; j++)
			sum ^= span.data[j];
	}
	__asm__ volatile("" : : "r"(sum)); /* or the compiler would drop the reads */
}

/* The bytes are an object that a JIT compiler announced. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t somewhere[] = {0x1000, 0x10000, 0x7f57289a0000, 0x7f57289a0080, UINT64_MAX};
	struct snapshot *snap = snapshot_create(1, arch_host());
	struct notes notes = {0};
	struct jit_images *images;

	if (!snap || !vec_push(&snap->jit_images, (struct mem_copy){.len = size, .data = (uint8_t *)data}))
		abort();
	images = jit_images_create(snap, -1, &notes);
	for (size_t i = 0; images && i < sizeof(somewhere) / sizeof(*somewhere); i++) {
		struct module *module = jit_images_find(images, somewhere[i]);

		if (module)
			look_into(module, somewhere[i]);
	}
	jit_images_destroy(images);
	snapshot_destroy(snap);
	notes_deinit(&notes);
	return 0;
}
