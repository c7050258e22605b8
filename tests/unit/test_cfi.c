/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/cfi.h"
#include "unwind/record.h"
#include "cmocka_all.h"

enum {
	VADDR = 0x10000, /* of the section */
	CODE = 0x400000,
	CODE_LEN = 0x100,
	RA = 16,
};

/* Bytes of a section under construction. */
struct bytes {
	uint8_t data[4096];
	size_t len;
};

static void put(struct bytes *b, const void *data, size_t len)
{
	assert_true(b->len + len <= sizeof(b->data));
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

static void put_uint(struct bytes *b, uint64_t value, size_t size)
{
	put(b, &value, size);
}

#define PUT(b, ...) put(b, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* Begins a record; end_record() fills the length in. */
static size_t begin_record(struct bytes *b)
{
	size_t at = b->len;

	put_uint(b, 0, 4);
	return at;
}

static void end_record(struct bytes *b, size_t at)
{
	uint32_t len = (uint32_t)(b->len - at - 4);

	memcpy(b->data + at, &len, 4);
}

/* .eh_frame, version 1, augmentation "zR", pc-relative sdata4, code align 1, data align -8, CFA = rsp + 8, RA at -8 */
static size_t put_cie(struct bytes *b)
{
	size_t at = begin_record(b);

	put_uint(b, 0, 4);
	PUT(b, 1, 'z', 'R', 0, 1, 0x78, RA, 1, 0x1b);
	PUT(b, 0x0c, 7, 8, 0x80 | RA, 1);
	end_record(b, at);
	return at;
}

static void put_fde_for(struct bytes *b, size_t cie, uint64_t start, uint32_t len, const uint8_t *program, size_t size)
{
	size_t at = begin_record(b);

	put_uint(b, b->len - cie, 4);
	put_uint(b, start - (VADDR + b->len), 4);
	put_uint(b, len, 4);
	PUT(b, 0);
	put(b, program, size);
	end_record(b, at);
}

#define PUT_FDE(b, cie, ...)                                                                                           \
	put_fde_for(b, cie, CODE, CODE_LEN, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static struct cfi_section section_of(const struct bytes *b, enum cfi_kind kind, const struct arch *arch)
{
	struct span span = {.data = b->data, .len = b->len, .vaddr = VADDR};
	struct cfi_section section;

	cfi_section_init(&section, kind, arch, span, (struct span){0});
	return section;
}

static int find_in(const struct bytes *b, const struct arch *arch, uint64_t address, struct cfi_row *row)
{
	struct cfi_section section = section_of(b, CFI_EH_FRAME, arch);
	int ret = cfi_find_row(&section, NULL, address, row);

	cfi_section_deinit(&section);
	return ret;
}

static void find(const struct bytes *b, uint64_t offset, struct cfi_row *row)
{
	assert_int_equal(find_in(b, &arch_x86_64, CODE + offset, row), 0);
}

/* The row that a program leaves at the end of the function; its expressions stay valid until the next call. */
static struct cfi_row row_after(const uint8_t *program, size_t size)
{
	static struct bytes b;
	struct cfi_row row;

	b.len = 0;
	put_fde_for(&b, put_cie(&b), CODE, CODE_LEN, program, size);
	find(&b, CODE_LEN - 1, &row);
	return row;
}

#define ROW_AFTER(...) row_after((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static int program_result(const uint8_t *program, size_t size)
{
	struct bytes b = {0};
	struct cfi_row row;

	put_fde_for(&b, put_cie(&b), CODE, CODE_LEN, program, size);
	return find_in(&b, &arch_x86_64, CODE + CODE_LEN - 1, &row);
}

#define assert_damaged(...)                                                                                            \
	assert_int_equal(program_result((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})),       \
			 -EINVAL)

static void assert_cfa(const struct cfi_row *row, uint32_t reg, int64_t offset)
{
	assert_int_equal(row->cfa.kind, CFI_REGISTER_OFFSET);
	assert_int_equal(row->cfa.reg, reg);
	assert_int_equal(row->cfa.offset, offset);
}

static void assert_rule(const struct cfi_row *row, unsigned reg, enum cfi_rule_kind kind, int64_t offset)
{
	assert_int_equal(row->regs[reg].kind, kind);
	if (kind == CFI_AT_CFA_OFFSET || kind == CFI_CFA_OFFSET)
		assert_int_equal(row->regs[reg].offset, offset);
}

static void test_rows_and_ranges(void **state)
{
	struct bytes b = {0};
	struct cfi_row row;

	PUT_FDE(&b, put_cie(&b), 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6);
	find(&b, 0, &row);
	assert_int_equal(row.start, CODE);
	assert_int_equal(row.end, CODE + 1);
	assert_int_equal(row.ra_reg, RA);
	assert_cfa(&row, 7, 8);
	assert_rule(&row, RA, CFI_AT_CFA_OFFSET, -8);
	assert_rule(&row, 6, CFI_UNSPECIFIED, 0);
	find(&b, 1, &row);
	assert_int_equal(row.start, CODE + 1);
	assert_int_equal(row.end, CODE + 4);
	assert_cfa(&row, 7, 16);
	assert_rule(&row, 6, CFI_AT_CFA_OFFSET, -16);
	find(&b, CODE_LEN - 1, &row);
	assert_int_equal(row.start, CODE + 4);
	assert_int_equal(row.end, CODE + CODE_LEN);
	assert_cfa(&row, 6, 16);
	assert_int_equal(find_in(&b, &arch_x86_64, CODE - 1, &row), -ENOENT);
	assert_int_equal(find_in(&b, &arch_x86_64, CODE + CODE_LEN, &row), -ENOENT);
}

static void test_cfa_rules(void **state)
{
	struct cfi_row row;

	row = ROW_AFTER(0x0c, 6, 0x80, 0x01);
	assert_cfa(&row, 6, 128);
	row = ROW_AFTER(0x12, 6, 0x7e); /* def_cfa_sf: -2 * -8 */
	assert_cfa(&row, 6, 16);
	row = ROW_AFTER(0x13, 0x7d); /* def_cfa_offset_sf */
	assert_cfa(&row, 7, 24);
	row = ROW_AFTER(0x0f, 2, 0x77, 8); /* def_cfa_expression */
	assert_int_equal(row.cfa.kind, CFI_EXPRESSION);
	assert_int_equal(row.cfa.expr_len, 2);
	assert_memory_equal(row.cfa.expr, ((const uint8_t[]){0x77, 8}), 2);
	row = ROW_AFTER(0x0c, 0xe8, 0x07, 8); /* a register that is not known stays unknown */
	assert_int_equal(row.cfa.reg, ARCH_MAX_DWARF_REGS);
	assert_damaged(0x0f, 1, 0x77, 0x0d, 6); /* an expression has no register to replace */
	assert_damaged(0x0f, 1, 0x77, 0x0e, 6);
}

static void test_register_rules(void **state)
{
	struct cfi_row row;

	row = ROW_AFTER(0x05, 3, 2); /* offset_extended */
	assert_rule(&row, 3, CFI_AT_CFA_OFFSET, -16);
	row = ROW_AFTER(0x11, 3, 0x7f); /* offset_extended_sf */
	assert_rule(&row, 3, CFI_AT_CFA_OFFSET, 8);
	row = ROW_AFTER(0x2f, 3, 2); /* GNU_negative_offset_extended */
	assert_rule(&row, 3, CFI_AT_CFA_OFFSET, 16);
	row = ROW_AFTER(0x14, 3, 1); /* val_offset */
	assert_rule(&row, 3, CFI_CFA_OFFSET, -8);
	row = ROW_AFTER(0x15, 3, 0x7f); /* val_offset_sf */
	assert_rule(&row, 3, CFI_CFA_OFFSET, 8);
	row = ROW_AFTER(0x07, RA); /* undefined */
	assert_rule(&row, RA, CFI_UNDEFINED, 0);
	row = ROW_AFTER(0x08, 3); /* same_value */
	assert_rule(&row, 3, CFI_SAME_VALUE, 0);
	row = ROW_AFTER(0x09, 3, 12); /* register */
	assert_rule(&row, 3, CFI_REGISTER_OFFSET, 0);
	assert_int_equal(row.regs[3].reg, 12);
	assert_int_equal(row.regs[3].offset, 0);
	row = ROW_AFTER(0x10, 3, 1, 0x12); /* expression */
	assert_rule(&row, 3, CFI_AT_EXPRESSION, 0);
	assert_int_equal(row.regs[3].expr_len, 1);
	row = ROW_AFTER(0x16, 3, 1, 0x12); /* val_expression */
	assert_rule(&row, 3, CFI_EXPRESSION, 0);
	row = ROW_AFTER(0x05, 0xe8, 0x07, 2, 0x08, 3); /* register 1000 is skipped, not stumbled over */
	assert_rule(&row, 3, CFI_SAME_VALUE, 0);
	row = ROW_AFTER(0x2e, 0x80, 0x01, 0x08, 3); /* GNU_args_size */
	assert_rule(&row, 3, CFI_SAME_VALUE, 0);
}

static void test_restore_and_remember(void **state)
{
	struct cfi_row row;

	row = ROW_AFTER(0x07, RA, 0xc0 | RA); /* restore: what the CIE said */
	assert_rule(&row, RA, CFI_AT_CFA_OFFSET, -8);
	row = ROW_AFTER(0x83, 2, 0x06, 3); /* restore_extended: the CIE said nothing */
	assert_rule(&row, 3, CFI_UNSPECIFIED, 0);
	row = ROW_AFTER(0x0e, 32, 0x83, 2, 0x0a, 0x0e, 8, 0xc3, 0x0b);
	assert_cfa(&row, 7, 32);
	assert_rule(&row, 3, CFI_AT_CFA_OFFSET, -16);
	row = ROW_AFTER(0x0e, 16, 0x0a, 0x0e, 24, 0x0a, 0x0e, 32, 0x0b, 0x0b);
	assert_cfa(&row, 7, 16);
	assert_damaged(0x0b);
	assert_damaged(0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a,
		       0x0a);
}

static void test_locations(void **state)
{
	struct bytes b = {0};
	struct cfi_row row;
	size_t cie = put_cie(&b);
	size_t at = begin_record(&b);
	int32_t relative;

	put_uint(&b, b.len - cie, 4);
	put_uint(&b, CODE - (VADDR + b.len), 4);
	put_uint(&b, 0x1000000, 4);
	PUT(&b, 0);
	PUT(&b, 0x02, 0x10, 0x0e, 16, 0x03, 0x00, 0x01, 0x0e, 24, 0x04, 0x00, 0x00, 0x01, 0x00, 0x0e, 32, 0x01);
	relative = (int32_t)(CODE + 0x20000 - (VADDR + b.len));
	put(&b, &relative, 4); /* set_loc */
	PUT(&b, 0x0e, 40);
	end_record(&b, at);
	find(&b, 0x0f, &row);
	assert_cfa(&row, 7, 8);
	find(&b, 0x10, &row);
	assert_cfa(&row, 7, 16);
	find(&b, 0x110, &row);
	assert_cfa(&row, 7, 24);
	find(&b, 0x10110, &row);
	assert_cfa(&row, 7, 32);
	find(&b, 0x1ffff, &row);
	assert_cfa(&row, 7, 32);
	find(&b, 0x20000, &row);
	assert_cfa(&row, 7, 40);
	assert_int_equal(row.end, CODE + 0x1000000);
}

static void test_location_past_the_end(void **state)
{
	struct bytes b = {0};
	struct cfi_row row;

	PUT_FDE(&b, put_cie(&b), 0x03, 0x00, 0x40, 0x0e, 16);
	find(&b, CODE_LEN - 1, &row);
	assert_int_equal(row.end, CODE + CODE_LEN);
	assert_cfa(&row, 7, 8);
}

static void test_damage_after_the_address_does_not_matter(void **state)
{
	struct bytes b = {0};
	struct cfi_row row;

	PUT_FDE(&b, put_cie(&b), 0x0e, 16, 0x44, 0x3f);
	find(&b, 3, &row);
	assert_cfa(&row, 7, 16);
	assert_int_equal(find_in(&b, &arch_x86_64, CODE + 4, &row), -EINVAL);
}

static void test_damaged_programs(void **state)
{
	assert_damaged(0x3f);                         /* no such instruction */
	assert_damaged(0x0c);                         /* operands missing */
	assert_damaged(0x0e, 0x80);                   /* cut in a number */
	assert_damaged(0x0f, 0xff, 0xff, 0xff, 0x7f); /* an expression longer than the section */
	assert_damaged(0x2d);                         /* not an aarch64 section */
	assert_damaged(0x41, 0x01, 0, 0, 0, 0);       /* set_loc backwards */
}

static void test_aarch64_signed_return_address(void **state)
{
	struct bytes b = {0};
	struct cfi_row row;

	PUT_FDE(&b, put_cie(&b), 0x2d, 0x44, 0x2d, 0x0e, 16);
	assert_int_equal(find_in(&b, &arch_aarch64, CODE + 4, &row), 0);
	assert_cfa(&row, 7, 16);
}

static size_t put_cie_with(struct bytes *b, const uint8_t *body, size_t len)
{
	size_t at = begin_record(b);

	put_uint(b, 0, 4);
	put(b, body, len);
	end_record(b, at);
	return at;
}

/* Finds the row of an FDE that follows the given CIE, whose FDEs have augmentation data and pc-relative addresses. */
static int find_with_cie(const uint8_t *body, size_t len, struct cfi_row *row)
{
	struct bytes b = {0};

	put_fde_for(&b, put_cie_with(&b, body, len), CODE, CODE_LEN, (const uint8_t[]){0x0e, 16}, 2);
	return find_in(&b, &arch_x86_64, CODE, row);
}

#define FIND_WITH_CIE(row, ...)                                                                                        \
	find_with_cie((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), row)

static void test_cie_versions_and_augmentations(void **state)
{
	struct cfi_row row;

	assert_int_equal(FIND_WITH_CIE(&row, 3, 'z', 'R', 0, 1, 0x78, RA, 1, 0x1b, 0x0c, 7, 8), 0);
	assert_cfa(&row, 7, 16);
	assert_int_equal(FIND_WITH_CIE(&row, 4, 'z', 'R', 0, 8, 0, 1, 0x78, RA, 1, 0x1b, 0x0c, 7, 8), 0);
	assert_false(row.signal_frame);
	assert_int_equal(FIND_WITH_CIE(&row, 1, 'z', 'R', 'S', 0, 1, 0x78, RA, 1, 0x1b, 0x0c, 7, 8), 0);
	assert_true(row.signal_frame);
	/* personality (indirect, pc-relative, 4 bytes), language data, pointer encoding, B key, tagging */
	assert_int_equal(FIND_WITH_CIE(&row, 1, 'z', 'P', 'L', 'R', 'B', 'G', 0, 1, 0x78, RA, 7, 0x9b, 1, 2, 3, 4, 0x1b,
				       0x1b, 0x0c, 7, 8),
			 0);
	assert_cfa(&row, 7, 16);
	/* an unknown letter after R */
	assert_int_equal(FIND_WITH_CIE(&row, 1, 'z', 'R', '?', 0, 1, 0x78, RA, 3, 0x1b, 1, 2, 0x0c, 7, 8), 0);
	assert_cfa(&row, 7, 16);
	/* an unknown version; a segment; 4-byte addresses; an augmentation without a length; registers out of range */
	assert_int_equal(FIND_WITH_CIE(&row, 2, 'z', 'R', 0, 1, 0x78, RA, 1, 0x1b), -ENOENT);
	assert_int_equal(FIND_WITH_CIE(&row, 4, 'z', 'R', 0, 8, 2, 1, 0x78, RA, 1, 0x1b), -ENOENT);
	assert_int_equal(FIND_WITH_CIE(&row, 4, 'z', 'R', 0, 4, 0, 1, 0x78, RA, 1, 0x1b), -ENOENT);
	assert_int_equal(FIND_WITH_CIE(&row, 1, 'R', 0, 1, 0x78, RA, 1, 0x1b), -ENOENT);
	assert_int_equal(FIND_WITH_CIE(&row, 1, 'z', 'R', 0, 1, 0x78, 200, 1, 0x1b), -ENOENT);
	/* an indirect address of code; one relative to a section that is not known; no such format */
	assert_int_equal(FIND_WITH_CIE(&row, 1, 'z', 'R', 0, 1, 0x78, RA, 1, 0x9b), -ENOENT);
	assert_int_equal(FIND_WITH_CIE(&row, 1, 'z', 'R', 0, 1, 0x78, RA, 1, 0x2b), -ENOENT);
	assert_int_equal(FIND_WITH_CIE(&row, 1, 'z', 'R', 0, 1, 0x78, RA, 1, 0x1f), -ENOENT);
	/* the name has no end; augmentation data longer than the record */
	assert_int_equal(FIND_WITH_CIE(&row, 1, 'z', 'R'), -ENOENT);
	assert_int_equal(FIND_WITH_CIE(&row, 1, 'z', 'R', 0, 1, 0x78, RA, 100, 0x1b), -ENOENT);
	/* a location in a CIE */
	assert_int_equal(FIND_WITH_CIE(&row, 1, 'z', 'R', 0, 1, 0x78, RA, 1, 0x1b, 0x41), -EINVAL);
}

/* DW_EH_PE_aligned: the personality is a full pointer at the next aligned address. */
static void test_aligned_personality(void **state)
{
	struct bytes b = {0};
	struct cfi_row row;
	size_t cie = begin_record(&b), length;

	put_uint(&b, 0, 4);
	PUT(&b, 1, 'z', 'P', 'R', 0, 1, 0x78, RA);
	length = b.len;
	PUT(&b, 0, 0x50);
	while ((VADDR + b.len) % 8)
		PUT(&b, 0xee);
	put_uint(&b, 0x1234567890, 8);
	PUT(&b, 0x1b);
	b.data[length] = (uint8_t)(b.len - length - 1);
	PUT(&b, 0x0c, 7, 8);
	end_record(&b, cie);
	PUT_FDE(&b, cie, 0x0e, 24);
	find(&b, 0, &row);
	assert_cfa(&row, 7, 24);
}

static void test_eh_augmentation_and_absolute_addresses(void **state)
{
	struct bytes b = {0};
	struct cfi_row row;
	size_t cie = begin_record(&b), fde;

	put_uint(&b, 0, 4);
	PUT(&b, 1, 'e', 'h', 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 0x78, RA, 0x0c, 7, 8);
	end_record(&b, cie);
	fde = begin_record(&b);
	put_uint(&b, b.len - cie, 4);
	put_uint(&b, CODE, 8);
	put_uint(&b, CODE_LEN, 8);
	PUT(&b, 0x0e, 16);
	end_record(&b, fde);
	find(&b, 0, &row);
	assert_cfa(&row, 7, 16);
}

static void put_debug_frame(struct bytes *b, bool is_64bit)
{
	static const uint8_t cie[] = {4, 0, 8, 0, 1, 0x78, RA, 0x0c, 7, 8};
	unsigned word = is_64bit ? 8 : 4;

	if (is_64bit)
		put_uint(b, 0xffffffff, 4);
	put_uint(b, word + sizeof(cie), word);
	put_uint(b, UINT64_MAX, word);
	put(b, cie, sizeof(cie));
	if (is_64bit)
		put_uint(b, 0xffffffff, 4);
	put_uint(b, word + 16 + 2, word);
	put_uint(b, 0, word); /* the CIE's offset */
	put_uint(b, CODE, 8);
	put_uint(b, CODE_LEN, 8);
	PUT(b, 0x0e, 16);
}

static void test_debug_frame(void **state)
{
	for (int is_64bit = 0; is_64bit < 2; is_64bit++) {
		struct bytes b = {0};
		struct cfi_section section;
		struct cfi_row row;

		put_debug_frame(&b, is_64bit);
		section = section_of(&b, CFI_DEBUG_FRAME, &arch_x86_64);
		assert_int_equal(cfi_find_row(&section, NULL, CODE + 5, &row), 0);
		assert_cfa(&row, 7, 16);
		assert_int_equal(section.index.len, 1);
		cfi_section_deinit(&section);
	}
}

/* Instructions are paid for, those of the CIE too, at each search. */
static void test_budget(void **state)
{
	struct budget budget = {.left = UINT32_MAX};
	struct cfi_section section;
	struct bytes b = {0};
	struct cfi_row row;
	uint64_t cost;

	put_debug_frame(&b, false);
	section = section_of(&b, CFI_DEBUG_FRAME, &arch_x86_64);
	assert_int_equal(cfi_find_row(&section, &budget, CODE + 5, &row), 0);
	cost = UINT32_MAX - budget.left;
	assert_in_range(cost, 1, 20);
	budget.left = cost;
	assert_int_equal(cfi_find_row(&section, &budget, CODE + 5, &row), 0);
	assert_false(budget.refused);
	budget.left = cost - 1;
	assert_int_equal(cfi_find_row(&section, &budget, CODE + 5, &row), -EINVAL);
	assert_true(budget.refused);
	cfi_section_deinit(&section);
}

static void test_eh_frame_with_64bit_length(void **state)
{
	struct bytes b = {0};
	struct cfi_row row;
	size_t cie = put_cie(&b);

	put_uint(&b, 0xffffffff, 4);
	put_uint(&b, 4 + 8 + 1 + 2, 8);
	put_uint(&b, b.len - cie, 4);
	put_uint(&b, CODE - (VADDR + b.len), 4);
	put_uint(&b, CODE_LEN, 4);
	PUT(&b, 0, 0x0e, 16);
	find(&b, 0, &row);
	assert_cfa(&row, 7, 16);
}

static int count_rows(const struct cfi_row *row, void *arg)
{
	size_t *n = arg;

	assert_true(row->start < row->end);
	return ++*n == 1000;
}

static void test_for_each_row(void **state)
{
	struct bytes b = {0};
	size_t cie = put_cie(&b), rows = 0;
	struct cfi_section section;

	put_fde_for(&b, cie, CODE + 0x1000, 16, (const uint8_t[]){0x44, 0x0e, 16, 0x44, 0x0e, 8}, 6);
	put_fde_for(&b, cie, CODE, 16, (const uint8_t[]){0x44, 0x3f}, 2); /* damaged after its first row */
	put_fde_for(&b, cie, CODE + 0x2000, 0, (const uint8_t[]){0}, 1);  /* covers nothing */
	put_fde_for(&b, cie, 0, 16, (const uint8_t[]){0}, 1);             /* dropped by the linker */
	put_uint(&b, 0, 4);
	put_fde_for(&b, cie, CODE + 0x3000, 16, (const uint8_t[]){0}, 1); /* after the terminator */
	section = section_of(&b, CFI_EH_FRAME, &arch_x86_64);
	assert_int_equal(cfi_for_each_row(&section, count_rows, &rows), 0);
	assert_int_equal(rows, 3 + 1);
	assert_int_equal(section.index.len, 2);
	assert_int_equal(section.index.data[0].start, CODE);
	rows = 999;
	assert_int_equal(cfi_for_each_row(&section, count_rows, &rows), 1);
	cfi_section_deinit(&section);
}

enum { HDR_VADDR = 0x8000 };

/* .eh_frame_hdr with a table of sdata4 relative to itself */
static struct span make_hdr(struct bytes *h, const uint64_t (*pairs)[2], uint32_t n, uint8_t table_encoding)
{
	PUT(h, 1, 0x1b, 0x03, table_encoding);
	put_uint(h, VADDR - (HDR_VADDR + h->len), 4);
	put_uint(h, n, 4);
	for (uint32_t i = 0; i < n; i++) {
		put_uint(h, pairs[i][0] - HDR_VADDR, 4);
		put_uint(h, pairs[i][1] - HDR_VADDR, 4);
	}
	return (struct span){.data = h->data, .len = h->len, .vaddr = HDR_VADDR};
}

static void test_search_table(void **state)
{
	struct bytes b = {0}, h = {0}, omitted = {0};
	size_t cie = put_cie(&b), first = b.len, second;
	struct cfi_section section;
	struct cfi_row row;
	struct span span, bytes;
	uint64_t address;

	put_fde_for(&b, cie, CODE, 16, (const uint8_t[]){0x0e, 16}, 2);
	second = b.len;
	put_fde_for(&b, cie, CODE + 0x100, 16, (const uint8_t[]){0x0e, 32}, 2);
	bytes = (struct span){.data = b.data, .len = b.len, .vaddr = VADDR};
	span = make_hdr(&h, (const uint64_t[][2]){{CODE, VADDR + first}, {CODE + 0x100, VADDR + second}}, 2, 0x3b);
	assert_true(cfi_eh_frame_address(span, &address));
	assert_int_equal(address, VADDR);

	cfi_section_init(&section, CFI_EH_FRAME, &arch_x86_64, bytes, span);
	assert_int_equal(section.table.len, 2);
	assert_int_equal(cfi_find_row(&section, NULL, CODE + 15, &row), 0);
	assert_cfa(&row, 7, 16);
	assert_int_equal(cfi_find_row(&section, NULL, CODE + 0x100, &row), 0);
	assert_cfa(&row, 7, 32);
	assert_int_equal(cfi_find_row(&section, NULL, CODE + 16, &row), -ENOENT);
	assert_int_equal(cfi_find_row(&section, NULL, CODE - 1, &row), -ENOENT);
	assert_false(section.indexed);

	/* Without a table that can be searched the section is read. */
	span = make_hdr(&omitted, NULL, 0, 0xff);
	cfi_section_init(&section, CFI_EH_FRAME, &arch_x86_64, bytes, span);
	assert_int_equal(cfi_find_row(&section, NULL, CODE + 0x100, &row), 0);
	assert_true(section.indexed);
	cfi_section_deinit(&section);
}

static void test_hostile_table(void **state)
{
	struct bytes b = {0}, h = {0};
	struct cfi_section section;
	struct cfi_row row;
	struct span span;

	PUT_FDE(&b, put_cie(&b), 0x0e, 16);
	/* a count far beyond the bytes, FDEs outside of the section and at a CIE */
	span = make_hdr(&h, (const uint64_t[][2]){{CODE, 0x7fff0000}, {CODE + 8, VADDR}, {CODE + 16, VADDR + b.len}}, 3,
			0x3b);
	memset(h.data + 8, 0xff, 4);
	cfi_section_init(&section, CFI_EH_FRAME, &arch_x86_64,
			 (struct span){.data = b.data, .len = b.len, .vaddr = VADDR}, span);
	assert_int_equal(section.table.len, 3);
	for (uint64_t address = CODE; address < CODE + 32; address += 8)
		assert_int_equal(cfi_find_row(&section, NULL, address, &row), -ENOENT);
	/* cut at every length */
	for (size_t len = 0; len < h.len; len++) {
		span.len = len;
		cfi_section_init(&section, CFI_EH_FRAME, &arch_x86_64,
				 (struct span){.data = b.data, .len = b.len, .vaddr = VADDR}, span);
		cfi_find_row(&section, NULL, CODE, &row);
		cfi_section_deinit(&section);
	}
}

static void test_absurd_lengths(void **state)
{
	static const uint64_t lengths[] = {1, 3, 0x7fffffff, 0xfffffff0};
	struct cfi_row row;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct bytes b = {0};

		put_uint(&b, lengths[i], 4);
		put_uint(&b, 0, 8);
		assert_int_equal(find_in(&b, &arch_x86_64, CODE, &row), -ENOENT);
	}
	for (uint64_t len = UINT64_MAX; len; len >>= 9) {
		struct bytes b = {0};

		put_uint(&b, 0xffffffff, 4);
		put_uint(&b, len, 8);
		put_uint(&b, 0, 8);
		assert_int_equal(find_in(&b, &arch_x86_64, CODE, &row), -ENOENT);
	}
}

/* Every cut and every flipped bit of a good section: any answer will do, but no crash and no endless loop. */
static void test_any_damage_is_survived(void **state)
{
	struct bytes good = {0};
	size_t cie = put_cie(&good);

	PUT_FDE(&good, cie, 0x41, 0x0e, 16, 0x86, 2, 0x0a, 0x43, 0x0d, 6, 0x10, 3, 2, 0x12, 0x06, 0x0b, 0x01, 0, 0, 0,
		0);
	put_fde_for(&good, cie, CODE + 0x1000, 16, (const uint8_t[]){0x44, 0x0e, 16, 0x44, 0x0e, 8}, 6);
	for (size_t bit = 0; bit < 8 * good.len; bit++) {
		struct bytes b = good;
		struct cfi_section section;
		size_t rows = 0;

		b.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		section = section_of(&b, CFI_EH_FRAME, &arch_x86_64);
		cfi_for_each_row(&section, count_rows, &rows);
		cfi_section_deinit(&section);
		b = good;
		b.len = bit / 8;
		section = section_of(&b, bit % 2 ? CFI_EH_FRAME : CFI_DEBUG_FRAME, &arch_aarch64);
		cfi_for_each_row(&section, count_rows, &rows);
		cfi_section_deinit(&section);
	}
}

/* An FDE that names itself, or something in the middle of a record, as its CIE. */
static void test_cie_loops(void **state)
{
	for (size_t distance = 0; distance < 40; distance++) {
		struct bytes b = {0};
		struct cfi_row row;
		size_t at;

		put_cie(&b);
		at = begin_record(&b);
		put_uint(&b, distance, 4);
		put_uint(&b, CODE - (VADDR + b.len), 4);
		put_uint(&b, CODE_LEN, 4);
		PUT(&b, 0, 0x0e, 16);
		end_record(&b, at);
		find_in(&b, &arch_x86_64, CODE, &row);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_and_ranges),
		cmocka_unit_test(test_cfa_rules),
		cmocka_unit_test(test_register_rules),
		cmocka_unit_test(test_restore_and_remember),
		cmocka_unit_test(test_locations),
		cmocka_unit_test(test_location_past_the_end),
		cmocka_unit_test(test_damage_after_the_address_does_not_matter),
		cmocka_unit_test(test_damaged_programs),
		cmocka_unit_test(test_aarch64_signed_return_address),
		cmocka_unit_test(test_cie_versions_and_augmentations),
		cmocka_unit_test(test_aligned_personality),
		cmocka_unit_test(test_eh_augmentation_and_absolute_addresses),
		cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_eh_frame_with_64bit_length),
		cmocka_unit_test(test_for_each_row),
		cmocka_unit_test(test_search_table),
		cmocka_unit_test(test_hostile_table),
		cmocka_unit_test(test_absurd_lengths),
		cmocka_unit_test(test_any_damage_is_survived),
		cmocka_unit_test(test_cie_loops),
	};

	return cmocka_run_group_tests_name("cfi", tests, NULL, NULL);
}
