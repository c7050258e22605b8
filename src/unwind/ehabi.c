/* SPDX-License-Identifier: MIT */
#include "unwind/ehabi.h"

#include <errno.h>

#include "base/cursor.h"

enum {
	EXIDX_SEGMENT = 0x70000001, /* PT_ARM_EXIDX */
	ENTRY = 8,
	CANTUNWIND = 1,
	SP = 13,
	LR = 14,
	PC = 15,
	WORD = 4,
	MAX_BYTES = 3 + 255 * 4, /* of instructions */
};

#define IS_COMPACT UINT32_C(0x80000000)

/* A word with its address; false: it is not in the file. */
static bool word_at(const struct image *image, uint64_t address, uint32_t *out)
{
	struct span bytes = image_bytes_at(image, address);
	struct cursor c = cursor_init(bytes.data, bytes.data ? bytes.len : 0);

	*out = cursor_u32(&c);
	return !c.bad;
}

/* The lower 31 bits are a distance from their own address. */
static uint64_t follow(uint64_t address, uint32_t word)
{
	return (uint32_t)(address + (uint32_t)((int32_t)(word << 1) >> 1));
}

/* The entry of the function that has the address: those of all functions, by rising start. */
static bool find_entry(const struct image *image, uint64_t address, uint64_t *entry, uint64_t *start, uint64_t *end)
{
	const Elf64_Phdr *table = image_segment_of(image, EXIDX_SEGMENT);
	uint64_t lo = 0, hi = table ? table->p_filesz / ENTRY : 0, count = hi;
	uint32_t word;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2, at = table->p_vaddr + mid * ENTRY;

		if (!word_at(image, at, &word))
			return false;
		if (address < follow(at, word))
			hi = mid;
		else
			lo = mid + 1;
	}
	if (!lo)
		return false;
	*entry = table->p_vaddr + (lo - 1) * ENTRY;
	*end = UINT32_MAX;
	if (!word_at(image, *entry, &word))
		return false;
	*start = follow(*entry, word);
	if (lo < count && word_at(image, *entry + ENTRY, &word))
		*end = follow(*entry + ENTRY, word);
	return true;
}

struct instructions {
	uint8_t bytes[MAX_BYTES];
	unsigned len, at;
};

/* The bytes of a word that come last, the most significant first. */
static void add_bytes(struct instructions *in, uint32_t word, unsigned count)
{
	while (count-- > 0 && in->len < MAX_BYTES)
		in->bytes[in->len++] = (uint8_t)(word >> (8 * count));
}

static bool add_words(const struct image *image, uint64_t address, unsigned count, struct instructions *in)
{
	uint32_t word;

	for (unsigned i = 0; i < count; i++, address += WORD) {
		if (!word_at(image, address, &word))
			return false;
		add_bytes(in, word, WORD);
	}
	return true;
}

/* In the entry itself, or where it leads: in the form of one of three common routines, or after the address of another. */
static bool read_instructions(const struct image *image, uint64_t entry, struct instructions *in)
{
	uint64_t at;
	uint32_t word;

	if (!word_at(image, entry + WORD, &word) || word == CANTUNWIND)
		return false;
	at = entry + WORD;
	if (!(word & IS_COMPACT)) {
		at = follow(at, word);
		if (!word_at(image, at, &word))
			return false;
		if (!(word & IS_COMPACT)) { /* such as that of C++ */
			at += WORD;
			if (!word_at(image, at, &word))
				return false;
			add_bytes(in, word, 3);
			return add_words(image, at + WORD, word >> 24, in);
		}
	}
	switch (word >> 24 & 0x0f) {
	case 0:
		add_bytes(in, word, 3);
		return true;
	case 1:
	case 2:
		add_bytes(in, word, 2);
		return add_words(image, at + WORD, word >> 16 & 0xff, in);
	default:
		return false;
	}
}

/* Where the virtual stack pointer is, as an offset from a register, and at which offsets registers were saved. */
struct frame {
	unsigned base;
	int64_t vsp;
	int64_t saved[PC + 1];
	uint16_t popped; /* mask */
};

static bool pop(struct frame *f, unsigned mask)
{
	for (unsigned reg = 0; reg <= PC; reg++)
		if (mask >> reg & 1) {
			f->saved[reg] = f->vsp;
			f->vsp += WORD;
		}
	f->popped |= (uint16_t)mask;
	return mask != 0;
}

static bool start_from(struct frame *f, unsigned reg)
{
	if (reg == SP || reg == PC || f->popped)
		return false;
	f->base = reg;
	f->vsp = 0;
	return true;
}

static uint8_t next(struct instructions *in)
{
	return in->at < in->len ? in->bytes[in->at++] : 0xb0; /* as if there were a "finish" */
}

static bool run_long_addition(struct frame *f, struct instructions *in)
{
	struct cursor c = cursor_init(in->bytes + in->at, in->len - in->at);
	uint64_t value = cursor_uleb(&c);

	if (c.bad || value > UINT32_MAX)
		return false;
	in->at += (unsigned)cursor_offset(&c);
	f->vsp += 0x204 + (int64_t)(value << 2);
	return true;
}

/* Those of floating point are passed over: calls keep them, but no walk needs them. */
static bool skip_doubles(struct frame *f, unsigned count, unsigned more)
{
	f->vsp += count * 8 + more;
	return true;
}

/* Instructions that begin with 1011 or 11. */
static bool run_other(struct frame *f, uint8_t op, struct instructions *in)
{
	if (op == 0xb1) {
		uint8_t mask = next(in);

		return !(mask & 0xf0) && pop(f, mask);
	}
	if (op == 0xb2)
		return run_long_addition(f, in);
	if (op == 0xb4) { /* a signature of the return address */
		f->vsp += WORD;
		return true;
	}
	if (op == 0xb3)
		return skip_doubles(f, (next(in) & 0x0f) + 1, WORD);
	if ((op & 0xf8) == 0xb8)
		return skip_doubles(f, (op & 7) + 1, WORD);
	if (op == 0xc8 || op == 0xc9)
		return skip_doubles(f, (next(in) & 0x0f) + 1, 0);
	return (op & 0xf8) == 0xd0 && skip_doubles(f, (op & 7) + 1, 0);
}

static bool run(struct frame *f, uint8_t op, struct instructions *in)
{
	switch (op >> 4) {
	case 0x0:
	case 0x1:
	case 0x2:
	case 0x3:
		f->vsp += ((op & 0x3f) << 2) + 4;
		return true;
	case 0x4:
	case 0x5:
	case 0x6:
	case 0x7:
		f->vsp -= ((op & 0x3f) << 2) + 4;
		return true;
	case 0x8:
		return pop(f, ((unsigned)(op & 0x0f) << 8 | next(in)) << 4); /* none: it refuses */
	case 0x9:
		return start_from(f, op & 0x0f);
	case 0xa:
		return pop(f, ((2U << (op & 7)) - 1) << 4 | (op & 8 ? 1U << LR : 0));
	default:
		return run_other(f, op, in);
	}
}

static void make_row(const struct frame *f, struct cfi_row *out)
{
	out->ra_reg = f->popped >> PC & 1 ? PC : LR;
	out->cfa = (struct cfi_rule){.kind = CFI_REGISTER_OFFSET, .reg = f->base, .offset = f->vsp};
	for (unsigned reg = 0; reg <= PC; reg++)
		if (f->popped >> reg & 1)
			out->regs[reg] = (struct cfi_rule){.kind = CFI_AT_CFA_OFFSET, .offset = f->saved[reg] - f->vsp};
}

int ehabi_find_row(const struct image *image, uint64_t address, struct cfi_row *out)
{
	struct instructions in = {.len = 0};
	struct frame f = {.base = SP};
	uint64_t entry;
	uint8_t op;

	*out = (struct cfi_row){0};
	if (!find_entry(image, address, &entry, &out->start, &out->end))
		return -ENOENT;
	if (!read_instructions(image, entry, &in))
		return -EINVAL;
	for (op = next(&in); op != 0xb0; op = next(&in))
		if (!run(&f, op, &in))
			return -EINVAL;
	make_row(&f, out);
	return 0;
}
