/* SPDX-License-Identifier: MIT */
/*
 * jit_gdb rel|abs: announces two functions made at run time through the GDB JIT interface, as objects that are yet to
 * be relocated (as LLVM does) or as ones with absolute addresses. They have no frame pointer, so that their unwind
 * tables are needed.
 */
#include "jit_code.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>

struct jit_code_entry {
	struct jit_code_entry *next_entry;
	struct jit_code_entry *prev_entry;
	const char *symfile_addr;
	uint64_t symfile_size;
};

struct jit_descriptor {
	uint32_t version;
	uint32_t action_flag;
	struct jit_code_entry *relevant_entry;
	struct jit_code_entry *first_entry;
};

__attribute__((used)) struct jit_descriptor __jit_debug_descriptor = {1, 0, NULL, NULL};

/* Where a debugger that runs the program has its breakpoint. */
__attribute__((noinline, used)) void __jit_debug_register_code(void)
{
	__asm__ volatile("" ::: "memory");
}

enum { TEXT = 1, EH_FRAME, RELA, SYMTAB, STRTAB, SHSTRTAB, NSECTIONS };

struct object {
	Elf64_Ehdr ehdr;
	Elf64_Shdr shdrs[NSECTIONS];
	Elf64_Sym syms[3]; /* none, the section, the function */
	Elf64_Rela rela;
	uint8_t eh_frame[64];
	char strtab[64];
	char shstrtab[64];
};

/* A CIE and an FDE of 20 and 36 bytes with their lengths; the FDE's start is a 32-bit offset from where it stands. */
enum { FDE = 24, FDE_START = FDE + 8, FDE_END = 64 };

#ifdef __x86_64__
enum { MACHINE = EM_X86_64, RELOCATION = R_X86_64_PC32 };
static const uint8_t cie[] = {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x80 | 16, 1};
static const uint8_t row[] = {0, 0x41, 0x0e, 16, 0x80 | 6, 2, 0x46, 0x0e, 48};
#else
enum { MACHINE = EM_AARCH64, RELOCATION = R_AARCH64_PREL32 };
static const uint8_t cie[] = {1, 'z', 'R', 0, 4, 0x78, 30, 1, 0x1b, 0x0c, 31, 0};
static const uint8_t row[] = {0, 0x41, 0x0e, 48, 0x42, 0x80 | 30, 5, 0x80 | 29, 4};
#endif

static void put_u32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

static void make_eh_frame(struct object *o, uint32_t code_len)
{
	put_u32(o->eh_frame, FDE - 4);
	memcpy(o->eh_frame + 8, cie, sizeof(cie));
	put_u32(o->eh_frame + FDE, FDE_END - FDE - 4);
	put_u32(o->eh_frame + FDE + 4, FDE + 4);
	put_u32(o->eh_frame + FDE + 12, code_len);
	memcpy(o->eh_frame + FDE + 16, row, sizeof(row));
}

static uint32_t add_name(char *table, const char *name)
{
	size_t at = 1;

	while (table[at])
		at += strlen(table + at) + 1;
	strcpy(table + at, name);
	return (uint32_t)at;
}

static void add_section(struct object *o, unsigned i, const char *name, uint32_t type, const void *data, size_t len)
{
	o->shdrs[i] = (Elf64_Shdr){
		.sh_name = add_name(o->shstrtab, name),
		.sh_type = type,
		.sh_offset = data ? (uint64_t)((const char *)data - (const char *)o) : 0,
		.sh_size = len,
		.sh_addralign = 1,
	};
}

static struct object *make_object(const char *name, const uint8_t *code, size_t len, bool relocatable)
{
	struct object *o = calloc(1, sizeof(*o));
	uint64_t start = (uintptr_t)code,
		 eh_frame = start + 2048; /* nothing is there: it is where it would be loaded */

	if (!o)
		target_die("calloc");
	memcpy(o->ehdr.e_ident, ELFMAG "\2\1\1", 7);
	o->ehdr.e_type = relocatable ? ET_REL : ET_DYN;
	o->ehdr.e_machine = MACHINE;
	o->ehdr.e_version = EV_CURRENT;
	o->ehdr.e_ehsize = sizeof(o->ehdr);
	o->ehdr.e_shentsize = sizeof(Elf64_Shdr);
	o->ehdr.e_shoff = offsetof(struct object, shdrs);
	o->ehdr.e_shnum = NSECTIONS;
	o->ehdr.e_shstrndx = SHSTRTAB;

	make_eh_frame(o, (uint32_t)len);
	o->syms[1].st_info = ELF64_ST_INFO(STB_LOCAL, STT_SECTION);
	o->syms[1].st_shndx = TEXT;
	o->syms[2].st_name = add_name(o->strtab, name);
	o->syms[2].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
	o->syms[2].st_shndx = TEXT;
	o->syms[2].st_size = len;
	o->rela = (Elf64_Rela){.r_offset = FDE_START, .r_info = ELF64_R_INFO(1, RELOCATION)};
	if (!relocatable) {
		o->syms[1].st_value = o->syms[2].st_value = start;
		put_u32(o->eh_frame + FDE_START, (uint32_t)(start - (eh_frame + FDE_START)));
	}

	add_section(o, TEXT, ".text", SHT_NOBITS, NULL, len);
	o->shdrs[TEXT].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	o->shdrs[TEXT].sh_addr = start;
	add_section(o, EH_FRAME, ".eh_frame", SHT_PROGBITS, o->eh_frame, sizeof(o->eh_frame));
	o->shdrs[EH_FRAME].sh_flags = SHF_ALLOC;
	o->shdrs[EH_FRAME].sh_addr = eh_frame;
	add_section(o, RELA, ".rela.eh_frame", SHT_RELA, &o->rela, relocatable ? sizeof(o->rela) : 0);
	o->shdrs[RELA].sh_entsize = sizeof(o->rela);
	o->shdrs[RELA].sh_link = SYMTAB;
	o->shdrs[RELA].sh_info = EH_FRAME;
	add_section(o, SYMTAB, ".symtab", SHT_SYMTAB, o->syms, sizeof(o->syms));
	o->shdrs[SYMTAB].sh_entsize = sizeof(o->syms[0]);
	o->shdrs[SYMTAB].sh_link = STRTAB;
	o->shdrs[SYMTAB].sh_info = 2;
	add_section(o, STRTAB, ".strtab", SHT_STRTAB, o->strtab, sizeof(o->strtab));
	add_section(o, SHSTRTAB, ".shstrtab", SHT_STRTAB, o->shstrtab, sizeof(o->shstrtab));
	return o;
}

static jit_function announce(const char *name, bool relocatable)
{
	uint8_t *code = jit_place(jit_frameless, sizeof(jit_frameless));
	struct jit_code_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		target_die("calloc");
	entry->symfile_addr = (const char *)make_object(name, code, sizeof(jit_frameless), relocatable);
	entry->symfile_size = sizeof(struct object);
	entry->next_entry = __jit_debug_descriptor.first_entry;
	if (entry->next_entry)
		entry->next_entry->prev_entry = entry;
	__jit_debug_descriptor.first_entry = __jit_debug_descriptor.relevant_entry = entry;
	__jit_debug_descriptor.action_flag = 1;
	__jit_debug_register_code();
	return (jit_function)(uintptr_t)code;
}

static jit_function made_inner, made_outer;

FRAME static void between(void)
{
	made_inner(target_block);
}

FRAME static void worker(void)
{
	made_outer(between);
}

int main(int argc, char **argv)
{
	bool relocatable = argc > 1 && strcmp(argv[1], "rel") == 0;

	target_init();
	made_inner = announce("jit_inner", relocatable);
	made_outer = announce("jit_outer", relocatable);
	target_start("worker", worker);
	target_ready();
	target_serve(NULL);
}
