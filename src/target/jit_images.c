/* SPDX-License-Identifier: MIT */
#include "target/jit_images.h"

#include <elf.h>
#include <errno.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/intervals.h"
#include "base/map.h"
#include "elf/exported.h"
#include "elf/relocate.h"
#include "elf/symrecords.h"
#include "target/ask.h"

enum {
	DESCRIPTOR_SIZE = 24, /* u32 version, u32 action, pointers to an entry and to the first */
	DESCRIPTOR_VERSION = 1,
	ENTRY_SIZE = 32, /* pointers to the next and the previous, the object's address and size */
	MAX_OBJECTS = 64 << 10,
	MAX_OBJECT = 64 << 20,
	MAX_TOTAL = 256 << 20, /* of all objects together */
	MAX_RANGES = 1 << 20,
};

static const char descriptor_name[] = "__jit_debug_descriptor";

/* Finding the descriptor */

/* Only what has the right size has its name looked at: that leaves most of a large table's names unread. */
static bool may_be_descriptor(const Elf64_Sym *sym)
{
	unsigned type = ELF64_ST_TYPE(sym->st_info);

	return (type == STT_OBJECT || type == STT_NOTYPE) && (sym->st_size == DESCRIPTOR_SIZE || sym->st_size == 0) &&
	       sym->st_shndx != SHN_UNDEF;
}

static bool is_descriptor(const struct symrecords *table, const Elf64_Sym *sym)
{
	return sym->st_shndx != SHN_UNDEF && sym->st_value && symrecords_is_named(table, sym, descriptor_name);
}

static bool find_in_table(struct symrecords table, uint64_t *vaddr)
{
	Elf64_Sym sym;

	while (symrecords_next(&table, &sym)) {
		if (!may_be_descriptor(&sym) || !is_descriptor(&table, &sym))
			continue;
		*vaddr = sym.st_value;
		return true;
	}
	return false;
}

/* What is exported; then the table of all symbols, which is often stripped. */
bool jit_images_find_descriptor(struct image *image, uint64_t *vaddr)
{
	uint64_t budget = symrecords_budget(image);
	const Elf64_Shdr *shdr;
	Elf64_Sym sym;

	if (!image_is_64bit(image) || image_is_big_endian(image))
		return false;
	if (exported_find(image, descriptor_name, &sym)) {
		*vaddr = sym.st_value;
		return true;
	}
	for (size_t i = 1; (shdr = image_shdr(image, i)); i++)
		if (shdr->sh_type == SHT_SYMTAB && find_in_table(symrecords_init(image, i, &budget), vaddr))
			return true;
	return false;
}

/* Copying the list */

/* Where a walk along the list is. */
struct list {
	uint64_t descriptor;
	struct u64map seen;  /* entries, since a list may be a ring */
	uint64_t magic_of;   /* 0, or the object whose first bytes were wanted in the last round, */
	uint64_t magic_size; /* and its size */
	bool entry_wanted;   /* in the last round */
	bool object_wanted;
	bool broken; /* it cannot be followed to its end */
	bool absent; /* there is none: another version, or a symbol that only looks like it */
	size_t lost; /* objects */
};

static bool is_whole(const struct ask_range *range)
{
	return range->got == range->len;
}

static bool want_entry(struct list *list, uint64_t address, struct ask *wants)
{
	bool created;

	if (!address)
		return true;
	if (list->seen.len >= MAX_OBJECTS || !u64map_put(&list->seen, address, &created) || !created) {
		list->broken = true;
		return true;
	}
	list->entry_wanted = true;
	return ask_want(wants, address, ENTRY_SIZE, ASK_PASSING);
}

static bool read_descriptor(struct list *list, const struct ask_range *answer, struct ask *wants)
{
	struct cursor c = cursor_init(answer->data, answer->got);

	list->absent = !is_whole(answer) || cursor_u32(&c) != DESCRIPTOR_VERSION;
	if (list->absent)
		return true;
	cursor_skip(&c, 4 + 8); /* what a debugger that runs the program is told */
	return want_entry(list, cursor_u64(&c), wants);
}

/* The next entry, and the first bytes of this one's object. */
static bool read_entry(struct list *list, const struct snapshot *snap, const struct ask_range *answer, struct ask *wants)
{
	struct cursor c = cursor_init(answer->data, answer->got);
	uint64_t next = cursor_u64(&c), address, size;

	cursor_skip(&c, 8); /* the previous */
	address = cursor_u64(&c);
	size = cursor_u64(&c);
	if (c.bad) {
		list->broken = true;
		return true;
	}
	if (!want_entry(list, next, wants))
		return false;
	if (!address || size < sizeof(Elf64_Ehdr) || size > MAX_OBJECT || snap->asked_bytes > MAX_TOTAL ||
	    size > MAX_TOTAL - snap->asked_bytes || size > UINT64_MAX - address) {
		list->lost++;
		return true;
	}
	list->magic_of = address;
	list->magic_size = size;
	return ask_want(wants, address, SELFMAG, ASK_PASSING);
}

/* What was wanted comes in the order: an entry, the first bytes of the object before it, the object before that. */
static bool ask_list(void *state, const struct snapshot *snap, const struct snap_thread *thread,
		     const struct ask *answers, struct ask *wants)
{
	struct list *list = state, last = *list;
	const struct ask_range *answer = answers->data;
	bool ok = true;

	list->entry_wanted = list->object_wanted = false;
	list->magic_of = 0;
	if (!answers->len)
		return ask_want(wants, list->descriptor, DESCRIPTOR_SIZE, ASK_PASSING);
	if (!last.entry_wanted && !last.magic_of && !last.object_wanted)
		return read_descriptor(list, answer, wants);
	if (last.entry_wanted)
		ok = read_entry(list, snap, answer++, wants);
	if (last.magic_of) {
		if (is_whole(answer) && memcmp(answer->data, ELFMAG, SELFMAG) == 0) {
			list->object_wanted = true;
			ok = ok && ask_want(wants, last.magic_of, last.magic_size, ASK_JIT_IMAGE);
		} else {
			list->lost++;
		}
		answer++;
	}
	if (last.object_wanted)
		list->lost += !is_whole(answer);
	return ok;
}

int jit_images_copy(struct target *target, struct snapshot *snap, uint64_t descriptor, struct err *err)
{
	static const struct asker asker = {.max_rounds = MAX_OBJECTS + 4, .ask = ask_list};
	struct list list = {.descriptor = descriptor};
	int ret = ask_process(target, snap, &asker, &list, err);

	u64map_deinit(&list.seen);
	if (ret < 0 || list.absent)
		return ret;
	if (list.broken)
		notes_add(&snap->notes, "the list of code that a JIT compiler announced to debuggers cannot be followed to "
					"its end: some of that code may have no names; another snapshot may show it");
	if (list.lost)
		notes_add(&snap->notes,
			  "%zu of the objects that a JIT compiler announced to debuggers could not be read: "
			  "they are too large, no ELF objects, or were just being changed",
			  list.lost);
	return 0;
}

/* The objects as modules */

struct jit_image {
	struct mem_copy copy;  /* as the compiler made it */
	uint8_t *data;         /* the relocated copy that the module's image is in */
	struct module *module; /* NULL until it is needed, or when it cannot be opened */
	bool opened;
};

struct jit_images {
	struct notes *notes;
	int root_fd;
	struct jit_image *images;
	size_t len;
	struct pieces pieces; /* of code; the id is the position in `images` */
};

struct adding {
	struct intervals intervals;
	uint32_t id; /* of the object */
};

/*
 * A new object becomes the first of its list: the lower the number, the higher it ranks. The address after a section
 * belongs to it when nothing else is there: a call that does not return may be its last instruction.
 */
static bool add_range(void *ctx, uint64_t start, uint64_t end)
{
	struct adding *adding = ctx;

	return adding->intervals.len < MAX_RANGES &&
	       intervals_add(&adding->intervals, start, end, adding->id, UINT32_MAX - adding->id) &&
	       intervals_add(&adding->intervals, end, end + 1, adding->id, 0);
}

struct jit_images *jit_images_create(const struct snapshot *snap, int root_fd, struct notes *notes)
{
	struct jit_images *images = calloc(1, sizeof(*images));
	size_t len = snap->jit_images.len;
	struct adding adding = {0};
	bool done;

	if (!images)
		return NULL;
	images->notes = notes;
	images->root_fd = root_fd;
	images->len = len;
	images->images = calloc(len ? len : 1, sizeof(*images->images));
	for (size_t i = 0; images->images && i < len; i++) {
		const struct mem_copy *copy = &snap->jit_images.data[i];

		images->images[i].copy = *copy;
		adding.id = (uint32_t)i;
		relocate_visit_code(copy->data, copy->len, add_range, &adding);
	}
	done = images->images && intervals_flatten(&adding.intervals, &images->pieces);
	vec_deinit(&adding.intervals);
	if (!done) {
		jit_images_destroy(images);
		return NULL;
	}
	return images;
}

void jit_images_destroy(struct jit_images *images)
{
	if (!images)
		return;
	for (size_t i = 0; images->images && i < images->len; i++) {
		module_destroy(images->images[i].module);
		free(images->images[i].data);
	}
	free(images->images);
	vec_deinit(&images->pieces);
	free(images);
}

static int open_image(struct jit_image *image, struct err *err)
{
	struct image *opened = NULL;
	int ret;

	image->data = malloc(image->copy.len);
	if (!image->data)
		return -ENOMEM;
	memcpy(image->data, image->copy.data, image->copy.len);
	ret = relocate_object(image->data, image->copy.len, err);
	if (ret == 0)
		ret = image_open_memory(image->data, image->copy.len, err, &opened);
	return ret < 0 ? ret : module_create(opened, "[jit]", err, &image->module);
}

struct module *jit_images_find(struct jit_images *images, uint64_t address)
{
	uint32_t id = pieces_find(&images->pieces, address);
	struct jit_image *image = id != PIECE_NONE ? &images->images[id] : NULL;
	struct err err = {0};

	if (!image)
		return NULL;
	if (!image->opened && open_image(image, &err) < 0)
		notes_add(images->notes, "an object that a JIT compiler announced to debuggers is not used: %s", err.msg);
	image->opened = true;
	if (image->module) {
		image->module->jit = true;
		image->module->root_fd = images->root_fd;
	}
	return image->module;
}
