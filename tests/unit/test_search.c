/* SPDX-License-Identifier: MIT */
/* Tables of every layout, good and bad; test_cfi.c has the usual one. */
#include "cfimake.h"

#include <errno.h>

#include "unwind/search.h"

enum {
	HDR_VADDR = 0x8000,
	VADDR = 0x8800,
	CODE = 0x9000, /* near enough for offsets of two bytes */
	STEP = 0x100,
	LEN = 0x40,
	NFDES = 5,
	RA = 16,
	OMIT = 0xff,
	DATAREL = 0x30,
	UDATA2 = 2,
	UDATA4 = 3,
	UDATA8 = 4,
	SIGNED = 8,
};

/* FDEs of LEN bytes, STEP apart, in the section in a wild order. */
static void make_section(struct cfimake *m, size_t *fdes)
{
	static const unsigned order[NFDES] = {3, 0, 4, 1, 2};
	size_t cie;

	*m = (struct cfimake){.vaddr = VADDR};
	cie = cfimake_cie(m, RA, 0x1b);
	for (unsigned i = 0; i < NFDES; i++)
		fdes[order[i]] = CFIMAKE_FDE(m, cie, CODE + order[i] * STEP, LEN, 0x0e, (uint8_t)(8 * order[i]));
}

static unsigned width_of(uint8_t encoding)
{
	return (encoding & 7) == UDATA2 ? 2 : (encoding & 7) == UDATA4 ? 4 : 8;
}

static void make_hdr_at(struct cfimake *h, uint64_t vaddr, const size_t *fdes, uint8_t encoding, uint32_t count)
{
	*h = (struct cfimake){.vaddr = vaddr};
	CFIMAKE(h, 1, 0x1b, UDATA4, encoding);
	cfimake_uint(h, VADDR - (vaddr + h->len), 4);
	cfimake_uint(h, count, 4);
	for (unsigned i = 0; i < NFDES; i++) {
		cfimake_uint(h, CODE + i * STEP - vaddr, width_of(encoding));
		cfimake_uint(h, VADDR + fdes[i] - vaddr, width_of(encoding));
	}
}

static void make_hdr(struct cfimake *h, const size_t *fdes, uint8_t encoding, uint32_t count)
{
	make_hdr_at(h, HDR_VADDR, fdes, encoding, count);
}

static struct cfi_section section_of(const struct cfimake *m, const struct cfimake *h)
{
	struct cfi_section section;

	cfi_section_init(&section, CFI_EH_FRAME, &arch_x86_64, cfimake_span(m), h ? cfimake_span(h) : (struct span){0});
	return section;
}

/* Every FDE is found by its addresses, and by its number; nothing in between is. */
static void expect_all(struct cfi_section *section)
{
	struct fde fde;

	assert_int_equal(search_count(section), NFDES);
	for (unsigned i = 0; i < NFDES; i++) {
		uint64_t start = CODE + i * STEP;

		assert_int_equal(search_fde(section, start, &fde), 0);
		assert_int_equal(fde.start, start);
		assert_int_equal(search_fde(section, start + LEN - 1, &fde), 0);
		assert_int_equal(fde.start, start);
		assert_int_equal(fde.end, start + LEN);
		assert_int_equal(search_fde(section, start - 1, &fde), -ENOENT);
		assert_int_equal(search_fde(section, start + LEN, &fde), -ENOENT);
		assert_true(search_nth(section, i, &fde));
		assert_int_equal(fde.start, start);
	}
	assert_int_equal(search_fde(section, 0, &fde), -ENOENT);
	assert_int_equal(search_fde(section, UINT64_MAX, &fde), -ENOENT);
}

static void test_tables_of_all_widths(void **state)
{
	static const uint8_t formats[] = {UDATA2, UDATA4, UDATA8, SIGNED | UDATA2, SIGNED | UDATA4, SIGNED | UDATA8};
	struct cfimake m, h;
	size_t fdes[NFDES];

	make_section(&m, fdes);
	for (size_t i = 0; i < sizeof(formats); i++) {
		struct cfi_section section;

		make_hdr(&h, fdes, DATAREL | formats[i], NFDES);
		section = section_of(&m, &h);
		assert_int_equal(section.table.len, NFDES);
		expect_all(&section);
		assert_false(section.indexed);
		cfi_section_deinit(&section);
	}
}

/* Distances whose highest bit is set: large ones, or backwards. */
static void test_signs(void **state)
{
	struct cfi_section section;
	struct cfimake m, h;
	size_t fdes[NFDES];

	make_section(&m, fdes);
	make_hdr_at(&h, 0, fdes, DATAREL | UDATA2, NFDES);
	section = section_of(&m, &h);
	expect_all(&section);
	make_hdr_at(&h, 0xa000, fdes, DATAREL | SIGNED | UDATA2, NFDES);
	section = section_of(&m, &h);
	expect_all(&section);
	make_hdr_at(&h, 0xa000, fdes, DATAREL | SIGNED | UDATA4, NFDES);
	section = section_of(&m, &h);
	expect_all(&section);
	assert_false(section.indexed);
}

static void test_index(void **state)
{
	struct cfi_section section;
	size_t fdes[NFDES];
	struct cfimake m;

	make_section(&m, fdes);
	section = section_of(&m, NULL);
	expect_all(&section);
	assert_true(section.indexed);
	assert_int_equal(search_count(&section), NFDES); /* not read a second time */
	cfi_section_deinit(&section);
}

/* Tables that cannot be searched: the section is read instead. */
static void test_unusable_tables(void **state)
{
	static const uint8_t encodings[] = {OMIT, 0x1b, 0x0b, 0xbb, DATAREL | 1, DATAREL | 0, DATAREL | 9, DATAREL | 7};
	struct cfimake m, h;
	size_t fdes[NFDES];

	make_section(&m, fdes);
	for (size_t i = 0; i < sizeof(encodings); i++) {
		struct cfi_section section;

		make_hdr(&h, fdes, encodings[i], NFDES);
		section = section_of(&m, &h);
		assert_int_equal(section.table.len, 0);
		expect_all(&section);
		cfi_section_deinit(&section);
	}
}

static void expect_index(const struct cfimake *m, const struct cfimake *h)
{
	struct cfi_section section = section_of(m, h);

	expect_all(&section);
	assert_true(section.indexed);
	cfi_section_deinit(&section);
}

static void test_unusable_headers(void **state)
{
	struct cfimake m, h, good;
	size_t fdes[NFDES];

	make_section(&m, fdes);
	make_hdr(&good, fdes, DATAREL | UDATA4, NFDES);
	h = good;
	h.data[0] = 2; /* version */
	expect_index(&m, &h);
	h = good;
	h.data[1] = OMIT; /* the address of .eh_frame */
	expect_index(&m, &h);
	h = good;
	h.data[2] = OMIT; /* the count */
	expect_index(&m, &h);
	make_hdr(&h, fdes, DATAREL | UDATA4, 0); /* an empty table */
	expect_index(&m, &h);
	for (h = good, h.len = 0; h.len < 12 + 8; h.len++) /* cut before the first pair ends */
		expect_index(&m, &h);
}

/* The count is not believed beyond the bytes, nor the bytes beyond the count. */
static void test_count_of_the_table(void **state)
{
	struct cfi_section section;
	struct cfimake m, h;
	size_t fdes[NFDES];
	struct fde fde;

	make_section(&m, fdes);
	make_hdr(&h, fdes, DATAREL | UDATA4, UINT32_MAX);
	section = section_of(&m, &h);
	expect_all(&section);
	make_hdr(&h, fdes, DATAREL | UDATA4, 2);
	section = section_of(&m, &h);
	assert_int_equal(search_count(&section), 2);
	assert_int_equal(search_fde(&section, CODE + STEP, &fde), 0);
	assert_int_equal(search_fde(&section, CODE + 2 * STEP, &fde), -ENOENT);
	make_hdr(&h, fdes, DATAREL | UDATA4, NFDES);
	h.len -= 1; /* the last pair is not whole */
	section = section_of(&m, &h);
	assert_int_equal(search_count(&section), NFDES - 1);
}

/* What the table says is checked with the record it leads to. */
static void test_lying_tables(void **state)
{
	struct cfi_section section;
	struct cfimake m, h;
	size_t fdes[NFDES], wrong[NFDES];
	struct fde fde;

	make_section(&m, fdes);
	for (unsigned i = 0; i < NFDES; i++)
		wrong[i] = fdes[NFDES - 1 - i]; /* each at another's place */
	make_hdr(&h, wrong, DATAREL | UDATA4, NFDES);
	section = section_of(&m, &h);
	for (unsigned i = 0; i < NFDES; i++)
		assert_int_equal(search_fde(&section, CODE + i * STEP, &fde), i == NFDES / 2 ? 0 : -ENOENT);

	for (unsigned i = 0; i < NFDES; i++)
		wrong[i] = fdes[i];
	wrong[0] = 0;              /* the CIE */
	wrong[1] = fdes[1] + 4;    /* in the middle of a record */
	wrong[2] = m.len;          /* behind the end */
	wrong[3] = (size_t)-VADDR; /* before the start */
	make_hdr(&h, wrong, DATAREL | UDATA4, NFDES);
	section = section_of(&m, &h);
	for (unsigned i = 0; i < NFDES; i++) {
		assert_int_equal(search_fde(&section, CODE + i * STEP, &fde), i == 4 ? 0 : -ENOENT);
		assert_int_equal(search_nth(&section, i, &fde), i == 4);
	}
}

/* In no order at all: whatever is found covers the address. */
static void test_unsorted_table(void **state)
{
	struct cfi_section section;
	struct cfimake m, h;
	size_t fdes[NFDES];
	uint64_t seed = 1;

	make_section(&m, fdes);
	for (int round = 0; round < 200; round++) {
		make_hdr(&h, fdes, DATAREL | UDATA4, NFDES);
		for (size_t i = 12; i < h.len; i++) {
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			if (seed >> 62 == 0)
				h.data[i] = (uint8_t)(seed >> 40);
		}
		section = section_of(&m, &h);
		for (uint64_t at = CODE; at < CODE + NFDES * STEP; at += 16) {
			struct fde fde;

			if (search_fde(&section, at, &fde) == 0)
				assert_true(at >= fde.start && at < fde.end);
		}
	}
}

static void test_empty_sections(void **state)
{
	static const struct cfimake nothing = {.vaddr = VADDR};
	struct cfi_section section = section_of(&nothing, NULL);
	struct fde fde;

	assert_int_equal(search_count(&section), 0);
	assert_int_equal(search_fde(&section, CODE, &fde), -ENOENT);
	cfi_section_deinit(&section);
	/* There is no section: then its table is of no use either. */
	cfi_section_init(&section, CFI_EH_FRAME, &arch_x86_64, (struct span){0}, cfimake_span(&nothing));
	assert_int_equal(section.table.len, 0);
	assert_int_equal(search_count(&section), 0);
	assert_int_equal(search_fde(&section, CODE, &fde), -ENOENT);
	cfi_section_deinit(&section);
}

static void test_debug_frame_has_no_table(void **state)
{
	struct cfi_section section;
	struct cfimake m, h;
	size_t fdes[NFDES];

	make_section(&m, fdes);
	make_hdr(&h, fdes, DATAREL | UDATA4, NFDES);
	cfi_section_init(&section, CFI_DEBUG_FRAME, &arch_x86_64, cfimake_span(&m), cfimake_span(&h));
	assert_int_equal(section.table.len, 0);
	cfi_section_deinit(&section);
}

static void test_address_of_the_section(void **state)
{
	static const struct {
		uint8_t encoding;
		uint64_t value, want;
	} cases[] = {
		{0x00, VADDR, VADDR},
		{0x1b, VADDR - (HDR_VADDR + 4), VADDR},
		{0x1b, (uint64_t)-0x100, HDR_VADDR + 4 - 0x100},
		{0x3b, VADDR - HDR_VADDR, VADDR},
		{0x03, 0xfffffff0, 0xfffffff0},
	};
	struct cfimake h;
	uint64_t address;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		h = (struct cfimake){.vaddr = HDR_VADDR};
		CFIMAKE(&h, 1, cases[i].encoding, OMIT, OMIT);
		cfimake_uint(&h, cases[i].value, cases[i].encoding ? 4 : 8);
		assert_true(cfi_eh_frame_address(cfimake_span(&h), &address));
		assert_int_equal(address, cases[i].want);
		while (h.len--)
			assert_false(cfi_eh_frame_address(cfimake_span(&h), &address));
	}
	assert_false(cfi_eh_frame_address((struct span){0}, &address));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables_of_all_widths),
		cmocka_unit_test(test_signs),
		cmocka_unit_test(test_index),
		cmocka_unit_test(test_unusable_tables),
		cmocka_unit_test(test_unusable_headers),
		cmocka_unit_test(test_count_of_the_table),
		cmocka_unit_test(test_lying_tables),
		cmocka_unit_test(test_unsorted_table),
		cmocka_unit_test(test_empty_sections),
		cmocka_unit_test(test_debug_frame_has_no_table),
		cmocka_unit_test(test_address_of_the_section),
	};

	return cmocka_run_group_tests_name("search", tests, NULL, NULL);
}
