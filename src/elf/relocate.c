/* SPDX-License-Identifier: MIT */
#include "elf/relocate.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/* The bytes of an object, and what its header says about the sections. */
struct object {
	uint8_t *data;
	size_t len;
	Elf64_Ehdr ehdr;
	uint64_t budget; /* relocations and symbols that may still be read: overlapping sections could have too many */
};

/*
 * A number of sections that does not fit into the header would be in the first section header, where whoever opens the
 * object later looks: sections that we hide here by name would be visible there. No compiler makes so many.
 */
static bool is_readable(const Elf64_Ehdr *ehdr)
{
	return memcmp(ehdr->e_ident, ELFMAG, SELFMAG) == 0 && ehdr->e_ident[EI_CLASS] == ELFCLASS64 &&
	       ehdr->e_ident[EI_DATA] == ELFDATA2LSB &&
	       (ehdr->e_machine == EM_X86_64 || ehdr->e_machine == EM_AARCH64) &&
	       ehdr->e_shentsize == sizeof(Elf64_Shdr) && ehdr->e_shnum && ehdr->e_shstrndx < SHN_LORESERVE;
}

static bool object_init(struct object *o, uint8_t *data, size_t len)
{
	*o = (struct object){.data = data, .len = len, .budget = len / sizeof(Elf64_Sym)};
	if (len < sizeof(o->ehdr))
		return false;
	memcpy(&o->ehdr, data, sizeof(o->ehdr));
	return is_readable(&o->ehdr) && o->ehdr.e_shoff <= len &&
	       o->ehdr.e_shnum <= (len - o->ehdr.e_shoff) / sizeof(Elf64_Shdr);
}

static bool is_inside(const struct object *o, uint64_t offset, uint64_t len)
{
	return offset <= o->len && len <= o->len - offset;
}

static bool get_section(const struct object *o, unsigned i, Elf64_Shdr *out)
{
	if (i >= o->ehdr.e_shnum)
		return false;
	memcpy(out, o->data + o->ehdr.e_shoff + i * sizeof(*out), sizeof(*out));
	return true;
}

static void put_section(struct object *o, unsigned i, const Elf64_Shdr *shdr)
{
	memcpy(o->data + o->ehdr.e_shoff + i * sizeof(*shdr), shdr, sizeof(*shdr));
}

/* The name is compared, never returned: it need not end inside the object. */
static bool name_starts_with(const struct object *o, const Elf64_Shdr *shdr, const char *prefix)
{
	size_t len = strlen(prefix);
	Elf64_Shdr names;

	return get_section(o, o->ehdr.e_shstrndx, &names) && is_inside(o, names.sh_offset, names.sh_size) &&
	       shdr->sh_name <= names.sh_size && len <= names.sh_size - shdr->sh_name &&
	       memcmp(o->data + names.sh_offset + shdr->sh_name, prefix, len) == 0;
}

static bool is_loaded_code(const Elf64_Shdr *shdr)
{
	const uint64_t want = SHF_ALLOC | SHF_EXECINSTR;

	return (shdr->sh_flags & want) == want && shdr->sh_addr && shdr->sh_size &&
	       shdr->sh_size <= UINT64_MAX - shdr->sh_addr;
}

bool relocate_visit_code(const uint8_t *data, size_t len, relocate_visit visit, void *ctx)
{
	Elf64_Shdr shdr;
	struct object o;

	if (!object_init(&o, (uint8_t *)data, len))
		return true;
	for (unsigned i = 1; get_section(&o, i, &shdr); i++)
		if (is_loaded_code(&shdr) && !visit(ctx, shdr.sh_addr, shdr.sh_addr + shdr.sh_size))
			return false;
	return true;
}

/* Sections that are not loaded (debug info) are referred to by offset, even if the compiler keeps a copy somewhere. */
static uint64_t section_base(const struct object *o, unsigned i)
{
	Elf64_Shdr shdr;

	return get_section(o, i, &shdr) && (shdr.sh_flags & SHF_ALLOC) ? shdr.sh_addr : 0;
}

static bool get_symbol(const struct object *o, const Elf64_Shdr *table, uint64_t i, Elf64_Sym *out)
{
	if (!is_inside(o, table->sh_offset, table->sh_size) || i >= table->sh_size / sizeof(*out))
		return false;
	memcpy(out, o->data + table->sh_offset + i * sizeof(*out), sizeof(*out));
	return true;
}

enum relocation { REL_NONE, REL_ABS64, REL_ABS32, REL_ABS32_SIGNED, REL_PC32, REL_PC64 };

static enum relocation relocation_kind(uint16_t machine, uint32_t type)
{
	if (machine == EM_X86_64) {
		switch (type) {
		case R_X86_64_64:
			return REL_ABS64;
		case R_X86_64_32:
			return REL_ABS32;
		case R_X86_64_32S:
			return REL_ABS32_SIGNED;
		case R_X86_64_PC32:
			return REL_PC32;
		case R_X86_64_PC64:
			return REL_PC64;
		default:
			return REL_NONE;
		}
	}
	switch (type) {
	case R_AARCH64_ABS64:
		return REL_ABS64;
	case R_AARCH64_ABS32:
		return REL_ABS32;
	case R_AARCH64_PREL32:
		return REL_PC32;
	case R_AARCH64_PREL64:
		return REL_PC64;
	default:
		return REL_NONE;
	}
}

static bool fits(enum relocation kind, uint64_t value)
{
	int64_t as_signed = (int64_t)value;

	switch (kind) {
	case REL_ABS32:
		return value <= UINT32_MAX;
	case REL_ABS32_SIGNED:
	case REL_PC32:
		return as_signed >= INT32_MIN && as_signed <= INT32_MAX;
	default:
		return true;
	}
}

/* Applies one relocation of the section `target`, whose bytes are inside the object. */
static void relocate(struct object *o, const Elf64_Shdr *target, const Elf64_Shdr *symbols, const Elf64_Rela *rela)
{
	enum relocation kind = relocation_kind(o->ehdr.e_machine, ELF64_R_TYPE(rela->r_info));
	size_t width = kind == REL_ABS64 || kind == REL_PC64 ? 8 : 4;
	uint64_t value = (uint64_t)rela->r_addend;
	Elf64_Sym sym;

	if (kind == REL_NONE || rela->r_offset > target->sh_size || width > target->sh_size - rela->r_offset ||
	    !get_symbol(o, symbols, ELF64_R_SYM(rela->r_info), &sym))
		return;
	value += sym.st_value;
	if (sym.st_shndx != SHN_UNDEF && sym.st_shndx < SHN_LORESERVE)
		value += section_base(o, sym.st_shndx);
	if (kind == REL_PC32 || kind == REL_PC64)
		value -= target->sh_addr + rela->r_offset;
	if (!fits(kind, value))
		return;
	for (size_t i = 0; i < width; i++)
		o->data[target->sh_offset + rela->r_offset + i] = (uint8_t)(value >> (8 * i));
}

static bool needs_relocation(const struct object *o, const Elf64_Shdr *target)
{
	return target->sh_type != SHT_NOBITS && is_inside(o, target->sh_offset, target->sh_size) &&
	       (name_starts_with(o, target, ".debug_") || name_starts_with(o, target, ".eh_frame"));
}

static void relocate_section(struct object *o, const Elf64_Shdr *table)
{
	Elf64_Shdr target, symbols;
	Elf64_Rela rela;

	if (!get_section(o, table->sh_info, &target) || !get_section(o, table->sh_link, &symbols) ||
	    !needs_relocation(o, &target) || !is_inside(o, table->sh_offset, table->sh_size))
		return;
	for (uint64_t i = 0; i < table->sh_size / sizeof(rela) && o->budget; i++, o->budget--) {
		memcpy(&rela, o->data + table->sh_offset + i * sizeof(rela), sizeof(rela));
		relocate(o, &target, &symbols, &rela);
	}
}

/*
 * Unwind tables that the compiler did not load have no address, but refer to code relative to it. Any address that is
 * near enough will do.
 */
static void place_eh_frame(struct object *o)
{
	Elf64_Shdr shdr, code = {0};

	for (unsigned i = 1; !code.sh_addr && get_section(o, i, &shdr); i++)
		if (is_loaded_code(&shdr))
			code = shdr;
	for (unsigned i = 1; get_section(o, i, &shdr); i++) {
		if (shdr.sh_addr || !name_starts_with(o, &shdr, ".eh_frame"))
			continue;
		shdr.sh_addr = code.sh_addr;
		put_section(o, i, &shdr);
	}
}

static void place_symbols(struct object *o, const Elf64_Shdr *table)
{
	Elf64_Sym sym;

	for (uint64_t i = 0; o->budget && get_symbol(o, table, i, &sym); i++, o->budget--) {
		if (sym.st_shndx == SHN_UNDEF || sym.st_shndx >= SHN_LORESERVE)
			continue;
		sym.st_value += section_base(o, sym.st_shndx);
		memcpy(o->data + table->sh_offset + i * sizeof(sym), &sym, sizeof(sym));
	}
}

/* Code that was not loaded has no address: its symbols must not name other code. */
static void hide_unloaded(struct object *o)
{
	Elf64_Shdr shdr;

	for (unsigned i = 1; get_section(o, i, &shdr); i++) {
		if (!(shdr.sh_flags & SHF_EXECINSTR) || is_loaded_code(&shdr))
			continue;
		shdr.sh_flags &= ~(uint64_t)SHF_EXECINSTR;
		put_section(o, i, &shdr);
	}
}

/*
 * Hides sections that lead to other files: an object made in memory has none, and its build-id, which the target could
 * have copied from any file, must not stand for that file. Also compressed sections: they cannot be relocated here, and
 * no compiler compresses what stays in memory.
 */
static void hide_unusable(struct object *o)
{
	static const char *const names[] = {".note.gnu.build-id", ".gnu_debuglink", ".gnu_debugaltlink", ".zdebug_"};
	Elf64_Shdr shdr;

	for (unsigned i = 1; get_section(o, i, &shdr); i++) {
		if (shdr.sh_flags & SHF_COMPRESSED)
			shdr.sh_type = SHT_NOBITS;
		for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
			if (name_starts_with(o, &shdr, names[n]))
				shdr.sh_type = SHT_NOBITS;
		put_section(o, i, &shdr);
	}
}

int relocate_object(uint8_t *data, size_t len, struct err *err)
{
	Elf64_Shdr shdr;
	struct object o;

	if (!object_init(&o, data, len))
		return err_set(err, ENOEXEC, "not a 64-bit ELF object of a known processor");
	hide_unloaded(&o);
	if (o.ehdr.e_type == ET_REL) {
		place_eh_frame(&o);
		for (unsigned i = 1; get_section(&o, i, &shdr); i++)
			if (shdr.sh_type == SHT_RELA)
				relocate_section(&o, &shdr);
		for (unsigned i = 1; get_section(&o, i, &shdr); i++)
			if (shdr.sh_type == SHT_SYMTAB)
				place_symbols(&o, &shdr);
	}
	hide_unusable(&o); /* last, as relocations could have changed names too */
	o.ehdr.e_type = ET_DYN;
	o.ehdr.e_entry = 0;
	o.ehdr.e_phoff = 0;
	o.ehdr.e_phnum = 0;
	memcpy(data, &o.ehdr, sizeof(o.ehdr));
	return 0;
}
