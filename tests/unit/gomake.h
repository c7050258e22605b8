/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_GOMAKE_H
#define STAKEOUT_TESTS_GOMAKE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/*
 * A tiny Go program as the linkers of all releases would write its tables. main.outer has main.mid inlined, and that
 * main.inner; main.(*T[int]).leaf, or whatever it is called, has nothing inlined.
 */
struct gomake {
	unsigned release; /* 9, 12, 13, 16, 18, 20, 26: Go 1.x */
	unsigned ptr_size;
	bool big_endian;
	unsigned quantum;
	bool sections;        /* with section headers */
	bool pie;             /* pointers are in relocations only */
	bool no_module;       /* no runtime.moduledata */
	unsigned gofunc_word; /* of runtime.moduledata; 0: where the release has it */
	const char *first;    /* name, instead of an empty one; then a word before that of go:func.* leads to zeros */
	uint16_t machine;     /* 0: EM_X86_64 */
	const char *leaf;     /* instead of main.(*T[int]).leaf */
	uint8_t leaf_flags;
	int32_t leaf_frame; /* its frame, from 8 bytes behind its start on */
	bool code;          /* with a segment for the code, which is at GOMAKE_CODE: only for files */
	uint8_t data[0x1200];
	size_t at;
	unsigned nrelocs;
};

enum {
	GOMAKE_BASE = 0x10000, /* address of the file's first byte */
	GOMAKE_TEXT = 0x400000,
	GOMAKE_TABLE = 0x200,
	GOMAKE_TREE = 0x700,
	GOMAKE_GOFUNC = GOMAKE_TREE - 0x40, /* what offsets of trees start from */
	GOMAKE_MODULE = 0x780,
	GOMAKE_DYNAMIC = 0x980,
	GOMAKE_RELA = 0xa00,
	GOMAKE_SHDRS = 0xd00, /* zeros, if there are none */
	GOMAKE_CODE = 0x1000,
	GOMAKE_CODE_SIZE = 0x180,
	GOMAKE_CODE_BSS = 0x20000, /* with what is not in the file: as much as real programs have */
	GOMAKE_LEAF = 0x100,       /* where the second function starts */
	GOMAKE_FRAME = 0x38,       /* of the first one, between these offsets */
	GOMAKE_FRAME_START = 0x10,
	GOMAKE_FRAME_END = 0xe0,
};

static inline void gomake_set(struct gomake *g, size_t at, unsigned size, uint64_t value)
{
	for (unsigned i = 0; i < size; i++)
		g->data[at + (g->big_endian ? size - 1 - i : i)] = (uint8_t)(value >> 8 * i);
}

static inline void gomake_put(struct gomake *g, unsigned size, uint64_t value)
{
	gomake_set(g, g->at, size, value);
	g->at += size;
}

static inline void gomake_word(struct gomake *g, uint64_t value)
{
	gomake_put(g, g->ptr_size, value);
}

/* A pointer that a position-independent program has in a relocation. */
static inline void gomake_pointer(struct gomake *g, uint64_t value)
{
	size_t at = GOMAKE_RELA + 3 * g->nrelocs * g->ptr_size;

	if (!g->pie) {
		gomake_word(g, value);
		return;
	}
	gomake_set(g, at, g->ptr_size, GOMAKE_BASE + g->at);
	gomake_set(g, at + g->ptr_size, g->ptr_size, 8);
	gomake_set(g, at + 2 * g->ptr_size, g->ptr_size, value);
	g->nrelocs++;
	gomake_word(g, 0);
}

static inline uint32_t gomake_string(struct gomake *g, size_t base, const char *text)
{
	size_t at = g->at;

	memcpy(g->data + at, text, strlen(text) + 1);
	g->at += strlen(text) + 1;
	return (uint32_t)(at - base);
}

struct gomake_run {
	uint32_t end; /* offset in the function */
	int32_t value;
};

/* A table of values by address, which ends with the run that ends at 0. */
static inline uint32_t gomake_values(struct gomake *g, size_t base, const struct gomake_run *runs)
{
	uint32_t offset = (uint32_t)(g->at - base), pc = 0;
	int32_t value = -1;

	for (; runs->end; runs++) {
		int32_t delta = runs->value - value;
		uint32_t numbers[2] = {(uint32_t)delta << 1 ^ (uint32_t)(delta >> 31), (runs->end - pc) / g->quantum};

		for (int i = 0; i < 2; i++) {
			for (; numbers[i] >= 0x80; numbers[i] >>= 7)
				g->data[g->at++] = (uint8_t)(numbers[i] | 0x80);
			g->data[g->at++] = (uint8_t)numbers[i];
		}
		value = runs->value;
		pc = runs->end;
	}
	g->data[g->at++] = 0;
	return offset;
}

struct gomake_names {
	uint32_t outer, mid, inner, leaf;
};

static inline void gomake_names(struct gomake *g, size_t base, struct gomake_names *n)
{
	gomake_string(g, base, g->first ? g->first : "");
	n->outer = gomake_string(g, base, "main.outer");
	n->mid = gomake_string(g, base, "main.mid");
	n->inner = gomake_string(g, base, "main.inner");
	n->leaf = gomake_string(g, base, g->leaf ? g->leaf : "main.(*T[int]).leaf");
}

static inline void gomake_align(struct gomake *g)
{
	g->at = (g->at + 7) / 8 * 8;
}

struct gomake_func {
	uint32_t start, name, pcsp, pcfile, pcln, pctree;
	uint8_t flags;
	bool tree;
};

static inline void gomake_func(struct gomake *g, const struct gomake_func *f)
{
	bool old = g->release < 18, indices = g->release >= 13;
	unsigned tree = g->release >= 16 ? 3 : indices ? 4 : 2;
	unsigned npcdata = indices ? 3 : 2;

	if (old)
		gomake_pointer(g, GOMAKE_TEXT + f->start);
	else
		gomake_put(g, 4, f->start);
	gomake_put(g, 4, f->name);
	gomake_put(g, 4, 8);
	gomake_put(g, 4, 0);
	gomake_put(g, 4, f->pcsp);
	gomake_put(g, 4, f->pcfile);
	gomake_put(g, 4, f->pcln);
	gomake_put(g, 4, f->tree ? npcdata : 0);
	if (g->release >= 16)
		gomake_put(g, 4, 1); /* index of the unit's first file */
	if (g->release >= 20)
		gomake_put(g, 4, 10);
	if (g->release >= 12)
		gomake_put(g, 1, 7), gomake_put(g, 1, f->flags), gomake_put(g, 1, 0),
			gomake_put(g, 1, f->tree ? tree + 1 : 0);
	else
		gomake_put(g, 4, f->tree ? tree + 1 : 0);
	for (unsigned i = 0; f->tree && i < npcdata; i++)
		gomake_put(g, 4, i + 1 == npcdata ? f->pctree : 0);
	if (old && g->ptr_size == 8)
		gomake_align(g);
	for (unsigned i = 0; f->tree && i <= tree; i++) {
		if (!old)
			gomake_put(g, 4, i == tree ? GOMAKE_TREE - GOMAKE_GOFUNC : UINT32_MAX);
		else if (i == tree)
			gomake_pointer(g, GOMAKE_BASE + GOMAKE_TREE);
		else
			gomake_word(g, 0);
	}
	gomake_align(g);
}

static inline void gomake_tree(struct gomake *g, const struct gomake_names *n)
{
	int file = g->release < 16;
	const struct {
		int parent, line;
		uint32_t name, parent_pc;
	} calls[] = {{-1, 11, n->mid, 0x10}, {0, 31, n->inner, 0x30}};

	g->at = GOMAKE_TREE;
	for (int i = 0; i < 2; i++) {
		if (g->release >= 20) {
			gomake_put(g, 4, 0);
			gomake_put(g, 4, calls[i].name);
			gomake_put(g, 4, calls[i].parent_pc);
			gomake_put(g, 4, 30);
			continue;
		}
		if (g->release >= 12)
			gomake_put(g, 2, (uint16_t)calls[i].parent), gomake_put(g, 2, 0);
		else
			gomake_put(g, 4, (uint32_t)calls[i].parent);
		gomake_put(g, 4, (uint32_t)file);
		gomake_put(g, 4, (uint32_t)calls[i].line);
		gomake_put(g, 4, calls[i].name);
		if (g->release >= 12)
			gomake_put(g, 4, calls[i].parent_pc);
	}
}

static inline void gomake_module(struct gomake *g, const size_t *tables)
{
	unsigned gofunc = g->gofunc_word ? g->gofunc_word : g->release >= 20 ? 40 : 38;

	g->at = GOMAKE_MODULE;
	for (unsigned word = 0; word < 60; word++) {
		if (word == 0)
			gomake_pointer(g, GOMAKE_BASE + GOMAKE_TABLE);
		else if (word < 16 && word % 3 == 1)
			gomake_pointer(g, GOMAKE_BASE + tables[word / 3]);
		else if (word == 20 || word == 22)
			gomake_pointer(g, GOMAKE_TEXT);
		else if (word == 21 || word == 23)
			gomake_pointer(g, GOMAKE_TEXT + 0x180);
		else if (word == gofunc)
			gomake_pointer(g, GOMAKE_BASE + GOMAKE_GOFUNC);
		else if (g->first && word == gofunc - 2)
			gomake_pointer(g, GOMAKE_BASE + GOMAKE_SHDRS);
		else
			gomake_word(g, word < gofunc ? 0x11 : 0);
	}
}

static inline void gomake_headers(struct gomake *g)
{
	bool wide = g->ptr_size == 8;
	size_t phdrs = wide ? 64 : 52, shdrs = g->sections ? GOMAKE_SHDRS : 0, names;
	static const char *const sections[] = {"", ".gopclntab", ".shstrtab"};

	g->at = 0;
	memcpy(g->data, ELFMAG, SELFMAG);
	g->data[EI_CLASS] = wide ? ELFCLASS64 : ELFCLASS32;
	g->data[EI_DATA] = g->big_endian ? ELFDATA2MSB : ELFDATA2LSB;
	g->data[EI_VERSION] = EV_CURRENT;
	g->at = EI_NIDENT;
	gomake_put(g, 2, ET_DYN), gomake_put(g, 2, g->machine ? g->machine : EM_X86_64), gomake_put(g, 4, EV_CURRENT);
	gomake_word(g, 0), gomake_word(g, phdrs), gomake_word(g, shdrs), gomake_put(g, 4, 0);
	gomake_put(g, 2, phdrs), gomake_put(g, 2, wide ? 56 : 32), gomake_put(g, 2, g->code ? 3 : 2);
	gomake_put(g, 2, wide ? 64 : 40), gomake_put(g, 2, g->sections ? 3 : 0), gomake_put(g, 2, g->sections ? 2 : 0);
	for (int i = 0; i < 2; i++) {
		size_t offset = i ? GOMAKE_DYNAMIC : 0, size = i ? 0x80 : sizeof(g->data);

		gomake_put(g, 4, i ? PT_DYNAMIC : PT_LOAD);
		if (wide)
			gomake_put(g, 4, PF_R | PF_W);
		gomake_word(g, offset), gomake_word(g, GOMAKE_BASE + offset), gomake_word(g, 0);
		gomake_word(g, size), gomake_word(g, size);
		if (!wide)
			gomake_put(g, 4, PF_R | PF_W);
		gomake_word(g, 0x1000);
	}
	if (g->code) { /* of 64 bits */
		gomake_put(g, 4, PT_LOAD), gomake_put(g, 4, PF_R | PF_X);
		gomake_word(g, GOMAKE_CODE), gomake_word(g, GOMAKE_TEXT), gomake_word(g, 0);
		gomake_word(g, GOMAKE_CODE_SIZE), gomake_word(g, GOMAKE_CODE_BSS), gomake_word(g, 0x1000);
	}
	names = GOMAKE_SHDRS + 0x200;
	g->at = GOMAKE_SHDRS;
	for (uint32_t i = 0, name = 0; g->sections && i < 3; name += (uint32_t)strlen(sections[i++]) + 1) {
		size_t offset = i == 1 ? GOMAKE_TABLE : names;

		gomake_put(g, 4, name), gomake_put(g, 4, i == 0 ? SHT_NULL : i == 1 ? SHT_PROGBITS : SHT_STRTAB);
		gomake_word(g, SHF_ALLOC), gomake_word(g, GOMAKE_BASE + offset), gomake_word(g, offset);
		gomake_word(g, i == 1 ? GOMAKE_TREE - GOMAKE_TABLE - 0x100 : 64), gomake_put(g, 8, 0);
		gomake_word(g, 1), gomake_word(g, 0);
		strcpy((char *)g->data + names + name, sections[i]);
	}
	g->at = GOMAKE_DYNAMIC;
	gomake_word(g, DT_RELA), gomake_word(g, GOMAKE_BASE + GOMAKE_RELA);
	gomake_word(g, DT_RELASZ), gomake_word(g, 3 * g->nrelocs * g->ptr_size);
	gomake_word(g, DT_NULL), gomake_word(g, 0);
}

/* Fills g->data from the fields before it. */
static inline void gomake(struct gomake *g)
{
	static const uint32_t magics[] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};
	unsigned version = g->release >= 20 ? 3 : g->release >= 18 ? 2 : g->release >= 16 ? 1 : 0;
	unsigned field = g->release >= 18 ? 4 : g->ptr_size;
	int file = version == 0; /* number of the first file */
	const struct gomake_run lines[] = {{0x20, 11}, {0x40, 31}, {0x80, 52}, {0xf0, 14}, {0}};
	const struct gomake_run files[] = {{0x40, file}, {0x80, file + 1}, {0xf0, file}, {0}};
	const struct gomake_run trees[] = {{0x20, -1}, {0x40, 0}, {0x80, 1}, {0xf0, -1}, {0}};
	const struct gomake_run frames[] = {{GOMAKE_FRAME_START, 0}, {GOMAKE_FRAME_END, GOMAKE_FRAME}, {0xf0, 0}, {0}};
	const struct gomake_run leaf_frames[] = {
		{g->leaf_frame ? 8 : 0x80, 0}, {g->leaf_frame ? 0x80 : 0, g->leaf_frame}, {0}};
	const struct gomake_run leaf_lines[] = {{0x80, 70}, {0}};
	const struct gomake_run leaf_files[] = {{0x80, file}, {0}};
	size_t tables[5] = {0}; /* names, units, files, values, functions */
	struct gomake_names names;
	struct gomake_func outer = {.tree = true}, leaf = {.start = GOMAKE_LEAF, .flags = g->leaf_flags};
	uint32_t file_a, file_b;
	size_t functab, base;

	g->at = GOMAKE_TABLE + 0x90 + (version == 0 ? 0x80 : 0);
	for (int i = 0; i < 5; i++)
		tables[i] = version == 0 ? GOMAKE_TABLE : 0;
	tables[0] = version ? g->at : GOMAKE_TABLE;
	gomake_names(g, tables[0], &names);
	gomake_align(g);
	tables[2] = version ? g->at : GOMAKE_TABLE;
	file_a = gomake_string(g, tables[2], "/src/a.go");
	file_b = gomake_string(g, tables[2], "/src/b.go");
	gomake_align(g);
	tables[1] = g->at;
	gomake_put(g, 4, version ? UINT32_MAX : 3);
	gomake_put(g, 4, file_a);
	gomake_put(g, 4, file_b);
	gomake_align(g);
	base = tables[3] = version ? g->at : GOMAKE_TABLE;
	gomake_put(g, 1, 0);
	outer.pcln = gomake_values(g, base, lines);
	outer.pcfile = gomake_values(g, base, files);
	outer.pctree = gomake_values(g, base, trees);
	outer.pcsp = gomake_values(g, base, frames);
	leaf.pcsp = gomake_values(g, base, leaf_frames);
	leaf.pcln = gomake_values(g, base, leaf_lines);
	leaf.pcfile = gomake_values(g, base, leaf_files);
	gomake_align(g);
	outer.name = names.outer;
	leaf.name = names.leaf;

	functab = version ? g->at : GOMAKE_TABLE + 8 + g->ptr_size;
	tables[4] = version ? functab : GOMAKE_TABLE;
	if (version)
		g->at += 8 * g->ptr_size;
	for (uint32_t i = 0; i < 2; i++) {
		size_t record = g->at;

		gomake_func(g, i ? &leaf : &outer);
		base = g->at;
		g->at = functab + 2 * i * field;
		if (version >= 2)
			gomake_put(g, 4, i * 0x100);
		else
			gomake_pointer(g, GOMAKE_TEXT + i * 0x100);
		gomake_put(g, field, record - tables[4]);
		g->at = base;
	}
	g->at = functab + 4 * field;
	if (version >= 2)
		gomake_put(g, 4, 0x180);
	else
		gomake_pointer(g, GOMAKE_TEXT + 0x180);
	if (version == 0)
		gomake_put(g, 4, tables[1] - GOMAKE_TABLE);

	g->at = GOMAKE_TABLE;
	gomake_put(g, 4, magics[version]), gomake_put(g, 2, 0), gomake_put(g, 1, g->quantum),
		gomake_put(g, 1, g->ptr_size);
	gomake_word(g, 2);
	if (version) {
		gomake_word(g, 2);
		if (version >= 2 && g->release < 26)
			gomake_pointer(g, GOMAKE_TEXT);
		else if (version >= 2)
			gomake_word(g, 0);
		for (int i = 0; i < 5; i++)
			gomake_word(g, tables[i] - GOMAKE_TABLE);
	}
	gomake_tree(g, &names);
	if (version && !g->no_module)
		gomake_module(g, tables);
	gomake_headers(g);
}

#endif
