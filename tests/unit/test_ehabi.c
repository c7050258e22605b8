/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "unwind/ehabi.h"

enum { EXIDX = 0x100, EXTAB = 0x200, CODE = 0x1000, SPACING = 0x100, SIZE = 0x400, MAX_ENTRIES = 16, SP = 13, LR = 14, PC = 15 };

/* A file of 32-bit ARM with exception tables: the N-th function is at CODE + N * SPACING. */
struct file {
	uint8_t bytes[SIZE];
	unsigned entries;
	unsigned extab; /* bytes used of it */
	struct image *image;
};

static void put(struct file *f, unsigned at, uint32_t word)
{
	memcpy(f->bytes + at, &word, sizeof(word));
}

static uint32_t distance(unsigned from, unsigned to)
{
	return (to - from) & 0x7fffffff;
}

static void add_entry(struct file *f, uint32_t word)
{
	unsigned at = EXIDX + 8 * f->entries;

	put(f, at, distance(at, CODE + SPACING * f->entries));
	put(f, at + 4, word);
	f->entries++;
}

/* With its instructions in the other table. */
static void add_far(struct file *f, const uint32_t *words, unsigned n)
{
	unsigned at = EXTAB + f->extab;

	for (unsigned i = 0; i < n; i++)
		put(f, at + 4 * i, words[i]);
	f->extab += 4 * n;
	add_entry(f, distance(EXIDX + 8 * f->entries + 4, at));
}

static void open_file(struct file *f)
{
	const Elf32_Ehdr ehdr = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_ARM,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(ehdr),
		.e_ehsize = sizeof(ehdr),
		.e_phentsize = sizeof(Elf32_Phdr),
		.e_phnum = 2,
	};
	const Elf32_Phdr phdrs[] = {
		{.p_type = PT_LOAD, .p_filesz = SIZE, .p_memsz = SIZE, .p_flags = PF_R | PF_X, .p_align = 4096},
		{.p_type = 0x70000001, .p_offset = EXIDX, .p_vaddr = EXIDX, .p_filesz = 8 * f->entries, .p_memsz = 8 * f->entries},
	};

	memcpy(f->bytes, &ehdr, sizeof(ehdr));
	memcpy(f->bytes + sizeof(ehdr), phdrs, sizeof(phdrs));
	assert_int_equal(image_open_memory(f->bytes, SIZE, NULL, &f->image), 0);
}

/* Of one function with such an entry: the row in the middle of it. */
static int row_of(uint32_t word, struct cfi_row *row)
{
	struct file f = {.entries = 0};
	int rc;

	add_entry(&f, word);
	add_entry(&f, 1);
	open_file(&f);
	rc = ehabi_find_row(f.image, CODE + 8, row);
	image_destroy(f.image);
	return rc;
}

static void expect_saved(const struct cfi_row *row, unsigned reg, int64_t offset)
{
	assert_int_equal(row->regs[reg].kind, CFI_AT_CFA_OFFSET);
	assert_int_equal(row->regs[reg].offset, offset);
}

static void expect_cfa(const struct cfi_row *row, unsigned reg, int64_t offset)
{
	assert_int_equal(row->cfa.kind, CFI_REGISTER_OFFSET);
	assert_int_equal(row->cfa.reg, reg);
	assert_int_equal(row->cfa.offset, offset);
}

/* 80 is the mark of the short form; the instructions follow. */
static void test_short_entries(void **state)
{
	struct cfi_row row;

	assert_int_equal(row_of(0x80a8b0b0, &row), 0); /* pop {r4, lr} */
	assert_true(row.start == CODE && row.end == CODE + SPACING);
	expect_cfa(&row, SP, 8);
	expect_saved(&row, 4, -8);
	expect_saved(&row, LR, -4);
	assert_int_equal(row.ra_reg, LR);
	assert_int_equal(row.regs[5].kind, CFI_UNSPECIFIED);

	assert_int_equal(row_of(0x8003aab0, &row), 0); /* add sp, #16; pop {r4, r5, r6, lr} */
	expect_cfa(&row, SP, 32);
	expect_saved(&row, 4, -16);
	expect_saved(&row, 6, -8);
	expect_saved(&row, LR, -4);

	assert_int_equal(row_of(0x809b8480, &row), 0); /* sp = r11; pop {r11, lr} */
	expect_cfa(&row, 11, 8);
	expect_saved(&row, 11, -8);
	expect_saved(&row, LR, -4);

	assert_int_equal(row_of(0x80978408, &row), 0); /* sp = r7; pop {r7, lr} */
	expect_cfa(&row, 7, 8);
	expect_saved(&row, 7, -8);

	assert_int_equal(row_of(0x80888000, &row), 0); /* pop {r11…}: pc itself */
	assert_int_equal(row.ra_reg, PC);

	assert_int_equal(row_of(0x80b0b0b0, &row), 0); /* a leaf: all is where it was */
	expect_cfa(&row, SP, 0);
	assert_int_equal(row.regs[LR].kind, CFI_UNSPECIFIED);
}

/* Floating point is passed over, in each of its forms; also large frames, and r0 to r3. */
static void test_other_instructions(void **state)
{
	struct cfi_row row;

	assert_int_equal(row_of(0x80d1b0b0, &row), 0); /* vpop {d8, d9} */
	expect_cfa(&row, SP, 16);
	assert_int_equal(row_of(0x80b8b0b0, &row), 0); /* d8 in the older form */
	expect_cfa(&row, SP, 12);
	assert_int_equal(row_of(0x80c982b0, &row), 0); /* d8 to d10 */
	expect_cfa(&row, SP, 24);
	assert_int_equal(row_of(0x80b20110, &row), 0); /* 0x204 + 4, and 0x10 + 1 words */
	expect_cfa(&row, SP, 0x208 + 0x44);
	assert_int_equal(row_of(0x80b103b0, &row), 0); /* pop {r0, r1} */
	expect_saved(&row, 1, -4);
	assert_int_equal(row_of(0x8041b0b0, &row), 0); /* sub sp, #8 */
	expect_cfa(&row, SP, -8);
}

static void test_refused(void **state)
{
	static const uint32_t entries[] = {
		1,          /* nothing is known */
		0x808000b0, /* pop nothing: refused */
		0x809db0b0, /* sp = sp */
		0x80a89bb0, /* sp = r11, when registers have been restored */
		0x80b100b0, 0x80b110b0, 0x80c0b0b0, 0x80f0b0b0, 0x80b7b0b0, /* reserved */
		0x83b0b0b0, /* no such form */
		0x00001000, /* leads out of the file */
		0x80b2ffff, /* a number without an end */
	};
	struct cfi_row row;

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (row_of(entries[i], &row) != -EINVAL)
			fail_msg("%08x was not refused", entries[i]);
}

static void test_far_entries(void **state)
{
	const uint32_t more[] = {0x8101a8b0, 0xb0b0b0b0}, other[] = {0x7fffff00, 0x01b20104, 0xaab0b0b0}, zero[] = {0x80a8b0b0};
	struct file f = {.entries = 0};
	struct cfi_row row;

	add_far(&f, more, 2);
	add_far(&f, other, 3); /* after the address of a routine of C++ */
	add_far(&f, zero, 1);
	add_entry(&f, 1);
	open_file(&f);
	assert_int_equal(ehabi_find_row(f.image, CODE, &row), 0);
	expect_cfa(&row, SP, 8);
	assert_int_equal(ehabi_find_row(f.image, CODE + SPACING + 1, &row), 0);
	expect_cfa(&row, SP, 0x208 + 4 * 5 + 16);
	expect_saved(&row, LR, -4);
	assert_int_equal(ehabi_find_row(f.image, CODE + 3 * SPACING - 1, &row), 0);
	expect_cfa(&row, SP, 8);
	assert_true(row.start == CODE + 2 * SPACING && row.end == CODE + 3 * SPACING);
	assert_int_equal(ehabi_find_row(f.image, CODE - 1, &row), -ENOENT);
	assert_int_equal(ehabi_find_row(f.image, CODE + 9 * SPACING, &row), -EINVAL); /* the last one ends them */
	image_destroy(f.image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_entries),
		cmocka_unit_test(test_other_instructions),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_far_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
