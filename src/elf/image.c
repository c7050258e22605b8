/* SPDX-License-Identifier: MIT */
#include "elf/image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/filemap.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/vec.h"
#include "elf/headers.h"
#include "elf/unpack.h"

enum {
	MIN_PAGE = 4096,
	MAX_PAGE = 65536,
	MAX_BUILD_ID = 64,
	NOTE_ALIGN = 4,
	MAX_LOADS = 64, /* searched for each address; no linker makes more than a few */
};

/* A compressed section's bytes. */
struct unpacked_section {
	size_t section;
	struct packing packing;
	uint8_t *data; /* packing.size bytes; NULL when it is damaged */
};

struct image {
	struct filemap file; /* unused for an image in memory */
	bool loaded;         /* `raw` is laid out by address, not by file offset */
	bool changed;        /* the file changed while it was opened */
	struct headers headers;
	const uint8_t *raw; /* the whole file, or the loaded image */
	size_t raw_len;
	VEC(Elf64_Phdr) loads; /* PT_LOAD only */
	VEC(struct unpacked_section) unpacked;
	uint64_t unpacked_size; /* of all of them together */
	char build_id[2 * MAX_BUILD_ID + 1];
	char *path; /* may be NULL */
	uint64_t identity;
	bool foreign;
};

DEFINE_CLEANUP(image, struct image *, image_destroy)

void image_destroy(struct image *image)
{
	if (!image)
		return;
	headers_deinit(&image->headers);
	vec_deinit(&image->loads);
	for (size_t i = 0; i < image->unpacked.len; i++)
		free(image->unpacked.data[i].data);
	vec_deinit(&image->unpacked);
	filemap_close(&image->file);
	free(image->path);
	free(image);
}

static void format_build_id(struct image *image, const uint8_t *id, size_t len)
{
	for (size_t i = 0; i < len; i++)
		snprintf(image->build_id + 2 * i, 3, "%02x", id[i]);
}

static bool build_id_from_notes(struct image *image, struct span notes)
{
	struct cursor c = cursor_init(notes.data, notes.len);

	c.big_endian = image_is_big_endian(image);
	while (cursor_left(&c)) {
		uint32_t namesz = cursor_u32(&c);
		uint32_t descsz = cursor_u32(&c);
		uint32_t type = cursor_u32(&c);
		struct cursor name = cursor_take(&c, namesz);
		struct cursor desc;

		cursor_skip(&c, -(uint64_t)namesz % NOTE_ALIGN);
		desc = cursor_take(&c, descsz);
		if (c.bad)
			return false;
		if (type == NT_GNU_BUILD_ID && namesz == sizeof(ELF_NOTE_GNU) &&
		    memcmp(name.p, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0 && descsz > 0 && descsz <= MAX_BUILD_ID) {
			format_build_id(image, desc.p, descsz);
			return true;
		}
		/* The last note's padding may be missing. */
		cursor_skip(&c, cursor_left(&c) ? -(uint64_t)descsz % NOTE_ALIGN : 0);
	}
	return false;
}

/* The part of [offset, offset + len) that exists. */
static struct span raw_span(const struct image *image, uint64_t offset, uint64_t len, uint64_t vaddr)
{
	struct span span = {.vaddr = vaddr};

	if (offset >= image->raw_len || len == 0)
		return span;
	span.data = image->raw + offset;
	span.len = len < image->raw_len - offset ? len : image->raw_len - offset;
	return span;
}

/*
 * Sections first: the program headers of a separate debug file still describe the file that it was split from.
 * Segments also, since section headers may have been stripped.
 */
static void read_build_id(struct image *image)
{
	struct span notes = image_section(image, ".note.gnu.build-id");

	if (build_id_from_notes(image, notes))
		return;
	for (size_t i = 0; i < image->headers.nphdrs; i++) {
		const Elf64_Phdr *phdr = &image->headers.phdrs[i];

		if (phdr->p_type != PT_NOTE)
			continue;
		notes = image->loaded ? image_bytes_at(image, phdr->p_vaddr)
				      : raw_span(image, phdr->p_offset, phdr->p_filesz, phdr->p_vaddr);
		if (notes.len > phdr->p_filesz)
			notes.len = phdr->p_filesz;
		if (build_id_from_notes(image, notes))
			return;
	}
}

static int read_tables(struct image *image, struct err *err)
{
	if (!headers_read_tables(&image->headers, image->raw, image->raw_len))
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < image->headers.nphdrs && image->loads.len < MAX_LOADS; i++)
		if (image->headers.phdrs[i].p_type == PT_LOAD && !vec_push(&image->loads, image->headers.phdrs[i]))
			return err_set(err, ENOMEM, "out of memory");
	read_build_id(image);
	return 0;
}

uint64_t image_identity_of(const struct stat *st)
{
	const int64_t parts[] = {
		(int64_t)st->st_dev, st->st_size,        (int64_t)st->st_ino, st->st_mtim.tv_sec,
		st->st_mtim.tv_nsec, st->st_ctim.tv_sec, st->st_ctim.tv_nsec,
	};
	uint64_t identity = hash_bytes(HASH_SEED, parts, sizeof(parts));

	return identity ? identity : 1;
}

/* Reads the header by itself, before anything is mapped: most files are not ELF files. */
static bool read_header(struct image *image, int fd)
{
	uint8_t first[HEADERS_FIRST];
	ssize_t got = pread(fd, first, sizeof(first), 0);

	return got > 0 && headers_init(&image->headers, first, (size_t)got);
}

int image_open_fd(int fd, struct err *err, struct image **out)
{
	_cleanup_close_ __attribute__((unused)) int owned = fd; /* closed soon: a process may have more files than we may open */
	_cleanup_(cleanup_image) struct image *image = NULL;
	struct stat st;
	int ret;

	if (fstat(fd, &st) != 0)
		return err_set(err, errno, "cannot stat the file: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, ENOEXEC, "not a regular file");
	image = calloc(1, sizeof(*image));
	if (!image)
		return err_set(err, ENOMEM, "out of memory");
	image->identity = image_identity_of(&st);
	if (!read_header(image, fd))
		return err_set(err, ENOEXEC, "not an ELF file");
	ret = filemap_open(fd, (uint64_t)st.st_size, err, &image->file);
	if (ret < 0)
		return ret;
	image->raw = image->file.data;
	image->raw_len = image->file.len;
	ret = read_tables(image, err);
	if (ret < 0)
		return ret;
	image->changed = fstat(fd, &st) < 0 || image_identity_of(&st) != image->identity;
	*out = steal_ptr(image);
	return 0;
}

int image_open_memory(const void *data, size_t len, struct err *err, struct image **out)
{
	_cleanup_(cleanup_image) struct image *image = calloc(1, sizeof(*image));
	int ret;

	if (!image)
		return err_set(err, ENOMEM, "out of memory");
	if (!headers_init(&image->headers, data, len))
		return err_set(err, ENOEXEC, "not an ELF image");
	image->loaded = true;
	image->raw = data;
	image->raw_len = len;
	ret = read_tables(image, err);
	if (ret == 0)
		*out = steal_ptr(image);
	return ret;
}

void image_set_identity(struct image *image, const struct stat *st)
{
	image->identity = image_identity_of(st);
}

uint64_t image_identity(const struct image *image)
{
	return image->identity;
}

bool image_is_foreign(const struct image *image)
{
	return image->foreign;
}

void image_set_foreign(struct image *image)
{
	image->foreign = true;
}

const char *image_path(const struct image *image)
{
	return image->path;
}

void image_set_path(struct image *image, const char *path)
{
	free(image->path);
	image->path = strdup(path);
}

bool image_has_changed(const struct image *image)
{
	return image->changed || filemap_has_changed(&image->file);
}

uint16_t image_type(const struct image *image)
{
	return image->headers.ehdr.e_type;
}

uint16_t image_machine(const struct image *image)
{
	return image->headers.ehdr.e_machine;
}

uint64_t image_entry(const struct image *image)
{
	return image->headers.ehdr.e_entry;
}

bool image_is_64bit(const struct image *image)
{
	return image->headers.wide;
}

bool image_is_big_endian(const struct image *image)
{
	return image->headers.big_endian;
}

struct span image_raw(const struct image *image)
{
	return (struct span){.data = image->raw, .len = image->raw_len};
}

size_t image_nsegments(const struct image *image)
{
	return image->headers.nphdrs;
}

const Elf64_Phdr *image_segment(const struct image *image, size_t index)
{
	return index < image->headers.nphdrs ? &image->headers.phdrs[index] : NULL;
}

const Elf64_Phdr *image_segment_of(const struct image *image, uint32_t type)
{
	for (size_t i = 0; i < image->headers.nphdrs; i++)
		if (image->headers.phdrs[i].p_type == type)
			return &image->headers.phdrs[i];
	return NULL;
}

size_t image_nsections(const struct image *image)
{
	return image->headers.nshdrs;
}

const Elf64_Shdr *image_shdr(const struct image *image, size_t index)
{
	return index && index < image->headers.nshdrs ? &image->headers.shdrs[index] : NULL;
}

struct span image_shdr_bytes(const struct image *image, size_t index)
{
	const Elf64_Shdr *shdr = image_shdr(image, index);

	if (!shdr || shdr->sh_type == SHT_NOBITS || shdr->sh_offset > image->raw_len ||
	    shdr->sh_size > image->raw_len - shdr->sh_offset)
		return (struct span){0};
	return raw_span(image, shdr->sh_offset, shdr->sh_size, shdr->sh_addr);
}

const char *image_build_id(const struct image *image)
{
	return image->build_id[0] ? image->build_id : NULL;
}

/* True when the segment's file bytes, widened to pages when `pages` is set, hold the offset. */
static bool segment_holds_offset(const Elf64_Phdr *phdr, uint64_t offset, bool pages)
{
	uint64_t page = phdr->p_align < MIN_PAGE ? MIN_PAGE : phdr->p_align > MAX_PAGE ? MAX_PAGE : phdr->p_align;
	uint64_t before = pages ? phdr->p_offset % page : 0;
	uint64_t after = pages ? -(phdr->p_offset + phdr->p_filesz) % page : 0;

	return phdr->p_filesz && offset >= phdr->p_offset - before &&
	       offset - (phdr->p_offset - before) < before + phdr->p_filesz + after;
}

/*
 * Neighbouring segments may share a page of the file, so an offset rounded down to a page can belong to either.
 * Mappings are looked up for code, so code wins.
 */
bool image_offset_to_vaddr(const struct image *image, uint64_t offset, uint64_t *vaddr)
{
	static const struct {
		bool code, pages;
	} passes[] = {{true, false}, {true, true}, {false, false}, {false, true}};

	for (size_t pass = 0; pass < sizeof(passes) / sizeof(*passes); pass++) {
		for (size_t i = 0; i < image->loads.len; i++) {
			const Elf64_Phdr *phdr = &image->loads.data[i];

			if (passes[pass].code && !(phdr->p_flags & PF_X))
				continue;
			if (!segment_holds_offset(phdr, offset, passes[pass].pages))
				continue;
			*vaddr = phdr->p_vaddr + (offset - phdr->p_offset);
			return true;
		}
	}
	return false;
}

/* The number of the first section of that name; 0 when there is none. */
static size_t find_section(const struct image *image, const char *name)
{
	for (size_t i = 1; i < image->headers.nshdrs; i++) {
		const char *found = headers_name(&image->headers, &image->headers.shdrs[i]);

		if (found && strcmp(found, name) == 0)
			return i;
	}
	return 0;
}

const Elf64_Shdr *image_find_shdr(const struct image *image, const char *name)
{
	return image_shdr(image, find_section(image, name));
}

/* The old GNU way to compress .debug_x was to name it .zdebug_x. */
static size_t find_gnu_compressed(const struct image *image, const char *name)
{
	char zname[64];

	if (strncmp(name, ".debug_", 7) != 0)
		return 0;
	snprintf(zname, sizeof(zname), ".z%s", name + 1);
	return find_section(image, zname);
}

static bool is_gnu_compressed(const struct image *image, size_t section, struct span bytes)
{
	const char *name = headers_name(&image->headers, &image->headers.shdrs[section]);

	return bytes.len >= 12 && memcmp(bytes.data, "ZLIB", 4) == 0 && name && strncmp(name, ".zdebug_", 8) == 0;
}

/* False when the section is damaged. */
static bool read_packing(const struct image *image, size_t section, struct packing *out)
{
	struct span bytes = image_shdr_bytes(image, section);
	unsigned word = image_is_64bit(image) ? 8 : 4;
	struct cursor c;

	*out = (struct packing){0};
	if (!bytes.data)
		return false;
	c = cursor_init(bytes.data, bytes.len);
	if (image->headers.shdrs[section].sh_flags & SHF_COMPRESSED) {
		c.big_endian = image_is_big_endian(image);
		out->type = cursor_u32(&c);
		if (image_is_64bit(image))
			cursor_u32(&c); /* reserved */
		out->size = cursor_uint(&c, word);
		cursor_uint(&c, word); /* alignment */
	} else if (is_gnu_compressed(image, section, bytes)) {
		out->type = ELFCOMPRESS_ZLIB;
		cursor_u32(&c);
		c.big_endian = true;
		out->size = cursor_u64(&c);
	}
	out->data = c.p;
	out->len = cursor_left(&c);
	return !c.bad;
}

bool image_is_unpackable(const struct image *image)
{
	uint64_t total = 0;

	for (size_t i = 1; i < image->headers.nshdrs; i++) {
		struct packing packing;

		if (!read_packing(image, i, &packing) || !packing.type)
			continue;
		if (packing.size > UNPACK_MAX)
			return false;
		total += packing.size;
	}
	return total <= UNPACK_MAX;
}

/* The number of the section; 0 when it has no usable bytes. */
static size_t find_data(const struct image *image, const char *name, struct packing *packing)
{
	size_t section = find_section(image, name);

	if (!section)
		section = find_gnu_compressed(image, name);
	return section && read_packing(image, section, packing) ? section : 0;
}

static struct unpacked_section *find_unpacked(const struct image *image, size_t section)
{
	for (size_t i = 0; i < image->unpacked.len; i++)
		if (image->unpacked.data[i].section == section)
			return &image->unpacked.data[i];
	return NULL;
}

static void unpack_one(void *ctx, size_t i)
{
	struct unpacked_section *unpacked = (struct unpacked_section *)ctx + i;

	if (unpacked->data && !unpack(&unpacked->packing, unpacked->data)) {
		free(unpacked->data);
		unpacked->data = NULL;
	}
}

void image_unpack(struct image *image, const char *const *names, size_t n)
{
	size_t first = image->unpacked.len;

	for (size_t i = 0; i < n; i++) {
		struct unpacked_section unpacked = {0};

		unpacked.section = find_data(image, names[i], &unpacked.packing);
		if (!unpacked.section || !unpacked.packing.type || find_unpacked(image, unpacked.section))
			continue;
		if (!vec_push(&image->unpacked, unpacked))
			break;
		/* The sizes may have changed since they were checked. */
		if (!unpack_is_sane(&unpacked.packing) || unpacked.packing.size > UNPACK_MAX - image->unpacked_size)
			continue;
		image->unpacked_size += unpacked.packing.size;
		image->unpacked.data[image->unpacked.len - 1].data = unpack_alloc(unpacked.packing.size);
	}
	if (image->unpacked.len > first)
		parallel_for(image->unpacked.len - first, unpack_one, &image->unpacked.data[first]);
}

bool image_has_section(const struct image *image, const char *name)
{
	struct packing packing;

	return find_data(image, name, &packing);
}

struct span image_section(struct image *image, const char *name)
{
	struct packing packing;
	size_t section = find_data(image, name, &packing);
	const struct unpacked_section *unpacked;

	if (!section)
		return (struct span){0};
	if (packing.type)
		image_unpack(image, &name, 1);
	unpacked = find_unpacked(image, section);
	if (unpacked) /* whatever the section says now */
		packing = (struct packing){.data = unpacked->data, .len = unpacked->packing.size};
	else if (packing.type)
		packing = (struct packing){0};
	if (!packing.data)
		return (struct span){0};
	return (struct span){.data = packing.data, .len = packing.len, .vaddr = image_shdr(image, section)->sh_addr};
}

const char *image_section_name_at(struct image *image, uint64_t vaddr)
{
	for (size_t i = 1; i < image->headers.nshdrs; i++) {
		const Elf64_Shdr *shdr = &image->headers.shdrs[i];

		if ((shdr->sh_flags & SHF_EXECINSTR) && vaddr >= shdr->sh_addr && vaddr - shdr->sh_addr < shdr->sh_size)
			return headers_name(&image->headers, shdr);
	}
	return NULL;
}

struct span image_bytes_at(const struct image *image, uint64_t vaddr)
{
	uint64_t base = image->loads.len ? image->loads.data[0].p_vaddr - image->loads.data[0].p_offset : 0;

	for (size_t i = 0; i < image->loads.len; i++) {
		const Elf64_Phdr *phdr = &image->loads.data[i];
		uint64_t skip = vaddr - phdr->p_vaddr;

		if (vaddr < phdr->p_vaddr || skip >= phdr->p_filesz)
			continue;
		if (image->loaded)
			return raw_span(image, vaddr - base, phdr->p_filesz - skip, vaddr);
		if (phdr->p_offset > image->raw_len)
			break;
		return raw_span(image, phdr->p_offset + skip, phdr->p_filesz - skip, vaddr);
	}
	return (struct span){.vaddr = vaddr};
}

static void widen(uint64_t *start, uint64_t *end, uint64_t from, uint64_t size)
{
	if (!size || from + size < from)
		return;
	*start = *end && *start < from ? *start : from;
	*end = *end > from + size ? *end : from + size;
}

void image_code_bounds(const struct image *image, uint64_t *start, uint64_t *end)
{
	*start = *end = 0;
	for (size_t i = 0; i < image->loads.len; i++)
		if (image->loads.data[i].p_flags & PF_X)
			widen(start, end, image->loads.data[i].p_vaddr, image->loads.data[i].p_memsz);
	if (*end)
		return;
	for (size_t i = 1; i < image->headers.nshdrs; i++)
		if (image->headers.shdrs[i].sh_flags & SHF_EXECINSTR)
			widen(start, end, image->headers.shdrs[i].sh_addr, image->headers.shdrs[i].sh_size);
}

struct span image_eh_frame_hdr(const struct image *image)
{
	const Elf64_Phdr *phdr = image_segment_of(image, PT_GNU_EH_FRAME);
	struct span span;

	if (!phdr)
		return (struct span){0};
	span = image_bytes_at(image, phdr->p_vaddr);
	if (span.len > phdr->p_filesz)
		span.len = phdr->p_filesz;
	return span;
}
