/* SPDX-License-Identifier: MIT */
#include "elf/image.h"

#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/vec.h"
#include "elf/unpack.h"

enum {
	MIN_PAGE = 4096,
	MAX_PAGE = 65536,
	MAX_BUILD_ID = 64,
	MAX_SECTION_NAME = 256,
	NOTE_ALIGN = 4,
};

/* A compressed section's bytes. */
struct unpacked {
	const Elf_Scn *section;
	struct packing packing;
	uint8_t *data; /* packing.size bytes; NULL when it is damaged */
};

struct image {
	int fd;      /* -1 for an image in memory, and once the file is mapped */
	bool loaded; /* `raw` is laid out by address, not by file offset */
	Elf *elf;
	GElf_Ehdr ehdr;
	const uint8_t *raw; /* the whole file, or the loaded image */
	size_t raw_len;
	VEC(GElf_Phdr) loads; /* PT_LOAD only */
	VEC(struct unpacked) unpacked;
	GElf_Phdr eh_frame_hdr;
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
	elf_end(image->elf);
	vec_deinit(&image->loads);
	for (size_t i = 0; i < image->unpacked.len; i++)
		free(image->unpacked.data[i].data);
	vec_deinit(&image->unpacked);
	if (image->fd >= 0)
		close(image->fd);
	free(image->path);
	free(image);
}

static int read_segments(struct image *image, struct err *err)
{
	size_t n;

	if (elf_getphdrnum(image->elf, &n) != 0)
		return 0; /* a file without program headers still has sections */
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(image->elf, (int)i, &phdr))
			break;
		if (phdr.p_type == PT_GNU_EH_FRAME)
			image->eh_frame_hdr = phdr;
		if (phdr.p_type == PT_LOAD && !vec_push(&image->loads, phdr))
			return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
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
	size_t n;

	if (build_id_from_notes(image, notes) || elf_getphdrnum(image->elf, &n) != 0)
		return;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(image->elf, (int)i, &phdr))
			return;
		if (phdr.p_type != PT_NOTE)
			continue;
		notes = image->loaded ? image_bytes_at(image, phdr.p_vaddr)
				      : raw_span(image, phdr.p_offset, phdr.p_filesz, phdr.p_vaddr);
		if (notes.len > phdr.p_filesz)
			notes.len = phdr.p_filesz;
		if (build_id_from_notes(image, notes))
			return;
	}
}

static int read_headers(struct image *image, struct err *err)
{
	int ret;

	if (elf_kind(image->elf) != ELF_K_ELF || !gelf_getehdr(image->elf, &image->ehdr))
		return err_set(err, ENOEXEC, "not an ELF file");
	ret = read_segments(image, err);
	if (ret == 0)
		read_build_id(image);
	return ret;
}

static struct image *image_create(int fd)
{
	struct image *image = calloc(1, sizeof(*image));

	if (image)
		image->fd = fd;
	elf_version(EV_CURRENT);
	return image;
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

int image_open_fd(int fd, struct err *err, struct image **out)
{
	_cleanup_close_ int owned = fd;
	_cleanup_(cleanup_image) struct image *image = NULL;
	struct stat st;
	int ret;

	if (fstat(fd, &st) != 0)
		return err_set(err, errno, "cannot stat the file: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, ENOEXEC, "not a regular file");
	image = image_create(fd);
	if (!image)
		return err_set(err, ENOMEM, "out of memory");
	steal_fd(&owned);
	image->identity = image_identity_of(&st);
	image->elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	if (!image->elf)
		return err_set(err, ENOEXEC, "not an ELF file: %s", elf_errmsg(-1));
	image->raw = (const uint8_t *)elf_rawfile(image->elf, &image->raw_len);
	if (!image->raw)
		return err_set(err, ENOEXEC, "cannot read the file: %s", elf_errmsg(-1));
	if (elf_cntl(image->elf, ELF_C_FDDONE) == 0) /* it is mapped: a process may have more files than we may open */
		close(steal_fd(&image->fd));
	ret = read_headers(image, err);
	if (ret == 0)
		*out = steal_ptr(image);
	return ret;
}

int image_open_memory(const void *data, size_t len, struct err *err, struct image **out)
{
	_cleanup_(cleanup_image) struct image *image = image_create(-1);
	int ret;

	if (!image)
		return err_set(err, ENOMEM, "out of memory");
	/* libelf takes a pointer to char, but does not write through it unless told to update the file. */
	image->elf = elf_memory((char *)data, len);
	if (!image->elf)
		return err_set(err, ENOEXEC, "not an ELF image: %s", elf_errmsg(-1));
	image->loaded = true;
	image->raw = data;
	image->raw_len = len;
	ret = read_headers(image, err);
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

Elf *image_elf(const struct image *image)
{
	return image->elf;
}

uint16_t image_machine(const struct image *image)
{
	return image->ehdr.e_machine;
}

bool image_is_64bit(const struct image *image)
{
	return image->ehdr.e_ident[EI_CLASS] == ELFCLASS64;
}

bool image_is_big_endian(const struct image *image)
{
	return image->ehdr.e_ident[EI_DATA] == ELFDATA2MSB;
}

const char *image_build_id(const struct image *image)
{
	return image->build_id[0] ? image->build_id : NULL;
}

/* True when the segment's file bytes, widened to pages when `pages` is set, hold the offset. */
static bool segment_holds_offset(const GElf_Phdr *phdr, uint64_t offset, bool pages)
{
	uint64_t page = phdr->p_align < MIN_PAGE ? MIN_PAGE : phdr->p_align > MAX_PAGE ? MAX_PAGE : phdr->p_align;
	uint64_t before = pages ? phdr->p_offset % page : 0;
	uint64_t after = pages ? -(phdr->p_offset + phdr->p_filesz) % page : 0;

	return phdr->p_filesz && offset >= phdr->p_offset - before &&
	       offset - (phdr->p_offset - before) < before + phdr->p_filesz + after;
}

/*
 * Neighbouring segments may share a page of the file, so an offset rounded down to a page can belong to either.
 * Code is what mappings are looked up for: it wins.
 */
bool image_offset_to_vaddr(const struct image *image, uint64_t offset, uint64_t *vaddr)
{
	static const struct {
		bool code, pages;
	} passes[] = {{true, false}, {true, true}, {false, false}, {false, true}};

	for (size_t pass = 0; pass < sizeof(passes) / sizeof(*passes); pass++) {
		for (size_t i = 0; i < image->loads.len; i++) {
			const GElf_Phdr *phdr = &image->loads.data[i];

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

/* Not by elf_strptr(), which looks for the end of a name through the whole table, for each of as many sections. */
static const char *section_name(const struct image *image, const GElf_Shdr *shdr)
{
	size_t strndx, left;
	Elf_Data *table;

	if (elf_getshdrstrndx(image->elf, &strndx) != 0)
		return NULL;
	table = elf_rawdata(elf_getscn(image->elf, strndx), NULL);
	if (!table || !table->d_buf || shdr->sh_name >= table->d_size)
		return NULL;
	left = table->d_size - shdr->sh_name;
	if (!memchr((const char *)table->d_buf + shdr->sh_name, 0, left < MAX_SECTION_NAME ? left : MAX_SECTION_NAME))
		return NULL;
	return (const char *)table->d_buf + shdr->sh_name;
}

static Elf_Scn *find_section(const struct image *image, const char *name, GElf_Shdr *shdr)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(image->elf, scn))) {
		const char *found;

		if (!gelf_getshdr(scn, shdr))
			continue;
		found = section_name(image, shdr);
		if (found && strcmp(found, name) == 0)
			return scn;
	}
	return NULL;
}

/* The old GNU way to compress .debug_x was to name it .zdebug_x. */
static Elf_Scn *find_gnu_compressed(const struct image *image, const char *name, GElf_Shdr *shdr)
{
	char zname[64];

	if (strncmp(name, ".debug_", 7) != 0)
		return NULL;
	snprintf(zname, sizeof(zname), ".z%s", name + 1);
	return find_section(image, zname, shdr);
}

/* False when the section is damaged. */
static bool read_packing(const struct image *image, Elf_Scn *scn, const GElf_Shdr *shdr, struct packing *out)
{
	Elf_Data *data = elf_rawdata(scn, NULL);
	struct cursor c;

	*out = (struct packing){0};
	if (!data || !data->d_buf)
		return false;
	c = cursor_init(data->d_buf, data->d_size);
	if (shdr->sh_flags & SHF_COMPRESSED) {
		c.big_endian = image_is_big_endian(image);
		out->type = cursor_u32(&c);
		if (image_is_64bit(image))
			cursor_u32(&c); /* reserved */
		out->size = cursor_uint(&c, image_is_64bit(image) ? 8 : 4);
		cursor_uint(&c, image_is_64bit(image) ? 8 : 4); /* alignment */
	} else if (data->d_size >= 12 && memcmp(data->d_buf, "ZLIB", 4) == 0) {
		const char *name = section_name(image, shdr);

		if (name && strncmp(name, ".zdebug_", 8) == 0) {
			out->type = ELFCOMPRESS_ZLIB;
			cursor_u32(&c);
			c.big_endian = true;
			out->size = cursor_u64(&c);
		}
	}
	out->data = c.p;
	out->len = cursor_left(&c);
	return !c.bad;
}

bool image_is_unpackable(const struct image *image)
{
	Elf_Scn *scn = NULL;
	uint64_t total = 0;

	while ((scn = elf_nextscn(image->elf, scn))) {
		struct packing packing;
		GElf_Shdr shdr;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS ||
		    !read_packing(image, scn, &shdr, &packing) || !packing.type)
			continue;
		if (packing.size > UNPACK_MAX)
			return false;
		total += packing.size;
	}
	return total <= UNPACK_MAX;
}

static Elf_Scn *find_data(const struct image *image, const char *name, GElf_Shdr *shdr, struct packing *packing)
{
	Elf_Scn *scn = find_section(image, name, shdr);

	if (!scn)
		scn = find_gnu_compressed(image, name, shdr);
	return scn && shdr->sh_type != SHT_NOBITS && read_packing(image, scn, shdr, packing) ? scn : NULL;
}

static struct unpacked *find_unpacked(const struct image *image, const Elf_Scn *scn)
{
	for (size_t i = 0; i < image->unpacked.len; i++)
		if (image->unpacked.data[i].section == scn)
			return &image->unpacked.data[i];
	return NULL;
}

static void unpack_one(void *ctx, size_t i)
{
	struct unpacked *unpacked = (struct unpacked *)ctx + i;

	if (unpacked->data && !unpack(&unpacked->packing, unpacked->data)) {
		free(unpacked->data);
		unpacked->data = NULL;
	}
}

void image_unpack(struct image *image, const char *const *names, size_t n)
{
	size_t first = image->unpacked.len;

	for (size_t i = 0; i < n; i++) {
		struct unpacked unpacked = {0};
		GElf_Shdr shdr;

		unpacked.section = find_data(image, names[i], &shdr, &unpacked.packing);
		if (!unpacked.section || !unpacked.packing.type || find_unpacked(image, unpacked.section))
			continue;
		if (!vec_push(&image->unpacked, unpacked))
			break;
		if (unpack_is_sane(&unpacked.packing))
			image->unpacked.data[image->unpacked.len - 1].data = unpack_alloc(unpacked.packing.size);
	}
	if (image->unpacked.len > first)
		parallel_for(image->unpacked.len - first, unpack_one, &image->unpacked.data[first]);
}

bool image_has_section(const struct image *image, const char *name)
{
	struct packing packing;
	GElf_Shdr shdr;

	return find_data(image, name, &shdr, &packing);
}

struct span image_section(struct image *image, const char *name)
{
	struct span span = {0};
	struct packing packing;
	GElf_Shdr shdr;
	const Elf_Scn *scn = find_data(image, name, &shdr, &packing);

	if (!scn)
		return span;
	if (packing.type) {
		const struct unpacked *unpacked;

		image_unpack(image, &name, 1);
		unpacked = find_unpacked(image, scn);
		if (!unpacked || !unpacked->data)
			return span;
		span = (struct span){.data = unpacked->data, .len = packing.size};
	} else {
		span = (struct span){.data = packing.data, .len = packing.len};
	}
	span.vaddr = shdr.sh_addr;
	return span;
}

const char *image_section_name_at(struct image *image, uint64_t vaddr)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(image->elf, scn))) {
		GElf_Shdr shdr;

		if (gelf_getshdr(scn, &shdr) && (shdr.sh_flags & SHF_EXECINSTR) && vaddr >= shdr.sh_addr &&
		    vaddr - shdr.sh_addr < shdr.sh_size)
			return section_name(image, &shdr);
	}
	return NULL;
}

struct span image_bytes_at(const struct image *image, uint64_t vaddr)
{
	uint64_t base = image->loads.len ? image->loads.data[0].p_vaddr - image->loads.data[0].p_offset : 0;

	for (size_t i = 0; i < image->loads.len; i++) {
		const GElf_Phdr *phdr = &image->loads.data[i];
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
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	*start = *end = 0;
	for (size_t i = 0; i < image->loads.len; i++)
		if (image->loads.data[i].p_flags & PF_X)
			widen(start, end, image->loads.data[i].p_vaddr, image->loads.data[i].p_memsz);
	if (*end)
		return;
	while ((scn = elf_nextscn(image->elf, scn)))
		if (gelf_getshdr(scn, &shdr) && (shdr.sh_flags & SHF_EXECINSTR))
			widen(start, end, shdr.sh_addr, shdr.sh_size);
}

struct span image_eh_frame_hdr(const struct image *image)
{
	struct span span;

	if (image->eh_frame_hdr.p_type != PT_GNU_EH_FRAME)
		return (struct span){0};
	span = image_bytes_at(image, image->eh_frame_hdr.p_vaddr);
	if (span.len > image->eh_frame_hdr.p_filesz)
		span.len = image->eh_frame_hdr.p_filesz;
	return span;
}
