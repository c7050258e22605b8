/* SPDX-License-Identifier: MIT */
/* Single records and pointers; test_cfi.c has what is made of them. */
#include "cfimake.h"

#include <errno.h>

#include "unwind/record.h"

enum { VADDR = 0x10000, CODE = 0x400000, BASE = 0x9000, RA = 16, PCREL_SDATA4 = 0x1b };

static bool read_pointer(const uint8_t *bytes, size_t len, size_t skip, uint8_t encoding, uint64_t *out, bool *bad)
{
	struct cursor c = cursor_init(bytes, len);
	bool found;

	cursor_skip(&c, skip);
	found = record_read_pointer(&c, 8, encoding, VADDR, BASE, out);
	*bad = c.bad;
	return found;
}

/* Reads a value of `used` bytes in every encoding of that format; the rest must be left, and fewer must not do. */
static void expect_pointer(uint8_t format, uint64_t value, size_t used)
{
	static const uint8_t bytes[] = {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x01};
	static const struct {
		uint8_t base;
		uint64_t address;
	} bases[] = {{0x00, 0}, {0x10, VADDR}, {0x30, BASE}};
	uint64_t out;
	bool bad;

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		uint8_t encoding = bases[i].base | format;

		assert_true(read_pointer(bytes, sizeof(bytes), 0, encoding, &out, &bad));
		assert_int_equal(out, bases[i].address + value);
		assert_true(read_pointer(bytes, used, 0, encoding, &out, &bad));
		for (size_t len = 0; len < used; len++) {
			assert_false(read_pointer(bytes, len, 0, encoding, &out, &bad));
			assert_true(bad);
		}
	}
}

static void test_formats(void **state)
{
	expect_pointer(0x00, UINT64_C(0x7ffffffffffffffe), 8);
	expect_pointer(0x01, UINT64_C(0x00fffffffffffffe), 8); /* uleb128 */
	expect_pointer(0x02, 0xfffe, 2);
	expect_pointer(0x03, 0xfffffffe, 4);
	expect_pointer(0x04, UINT64_C(0x7ffffffffffffffe), 8);
	expect_pointer(0x08, UINT64_C(0x7ffffffffffffffe), 8);
	expect_pointer(0x09, (uint64_t)-2, 8); /* sleb128 */
	expect_pointer(0x0a, (uint64_t)-2, 2);
	expect_pointer(0x0b, (uint64_t)-2, 4);
	expect_pointer(0x0c, UINT64_C(0x7ffffffffffffffe), 8);
}

/* Relative to where the pointer itself is, not to where the bytes start. */
static void test_relative_to_its_place(void **state)
{
	static const uint8_t bytes[] = {0, 0, 0, 0, 0, 0x10, 0, 0, 0};
	uint64_t out;
	bool bad;

	assert_true(read_pointer(bytes, sizeof(bytes), 5, PCREL_SDATA4, &out, &bad));
	assert_int_equal(out, VADDR + 5 + 0x10);
	assert_true(read_pointer(bytes, sizeof(bytes), 5, 0x3b, &out, &bad));
	assert_int_equal(out, BASE + 0x10);
}

static void test_encodings_that_cannot_be_resolved(void **state)
{
	static const uint8_t bytes[16] = {1};
	uint64_t out = 42;

	for (unsigned encoding = 0; encoding < 256; encoding++) {
		unsigned format = encoding & 0x0f, base = encoding & 0x70;
		bool known = (format <= 4 || (format >= 8 && format <= 0xc)) &&
			     (base == 0 || base == 0x10 || base == 0x20 || base == 0x30);
		bool bad;

		assert_int_equal(read_pointer(bytes, sizeof(bytes), 0, (uint8_t)encoding, &out, &bad),
				 known && !(encoding & 0x80));
		assert_int_equal(bad, !known || encoding & 0x80);
	}
}

static struct cfi_section section_of(const struct cfimake *m, enum cfi_kind kind)
{
	struct cfi_section section;

	cfi_section_init(&section, kind, &arch_x86_64, cfimake_span(m), (struct span){0});
	return section;
}

/* The result for the record at the offset, which must lead to `next` unless the section has ended. */
static int next(const struct cfimake *m, enum cfi_kind kind, uint64_t offset, uint64_t want_next, struct fde *fde)
{
	struct cfi_section section = section_of(m, kind);
	uint64_t at = offset;
	int rc = record_next(&section, &at, fde);

	assert_int_equal(at, rc < 0 ? offset : want_next);
	return rc;
}

static void test_records_one_by_one(void **state)
{
	struct cfimake m = {.vaddr = VADDR};
	size_t cie = cfimake_cie(&m, RA, PCREL_SDATA4), fde_at = m.len, end;
	struct fde fde;

	CFIMAKE_FDE(&m, cie, CODE, 0x20, 0x41, 0x0e, 16);
	end = m.len;
	assert_int_equal(next(&m, CFI_EH_FRAME, cie, fde_at, &fde), 0);
	assert_int_equal(next(&m, CFI_EH_FRAME, fde_at, end, &fde), 1);
	assert_int_equal(fde.start, CODE);
	assert_int_equal(fde.end, CODE + 0x20);
	assert_int_equal(fde.cie.code_align, 1);
	assert_int_equal(fde.cie.data_align, -8);
	assert_int_equal(fde.cie.ra_reg, RA);
	assert_int_equal(fde.cie.pointer_encoding, PCREL_SDATA4);
	assert_true(fde.cie.has_augmentation_data);
	assert_false(fde.cie.signal_frame);
	assert_int_equal(cursor_left(&fde.cie.program), 0);
	assert_int_equal(cursor_left(&fde.program), 3);
	assert_int_equal(cursor_u8(&fde.program), 0x41);
	assert_int_equal(next(&m, CFI_EH_FRAME, end, 0, &fde), -ENOENT);
	assert_int_equal(next(&m, CFI_EH_FRAME, end + 1, 0, &fde), -ENOENT);
	assert_int_equal(next(&m, CFI_EH_FRAME, UINT64_MAX, 0, &fde), -ENOENT);
	cfimake_uint(&m, 0, 4);
	assert_int_equal(next(&m, CFI_EH_FRAME, end, 0, &fde), -ENOENT);
}

/* The FDE's own augmentation data (the exception tables) is no part of its program. */
static void test_augmentation_data_of_the_fde(void **state)
{
	struct cfimake m = {.vaddr = VADDR};
	size_t cie = cfimake_cie(&m, RA, PCREL_SDATA4), at = cfimake_begin(&m), length_at;
	struct fde fde;

	cfimake_uint(&m, m.len - cie, 4);
	cfimake_uint(&m, CODE - (VADDR + m.len), 4);
	cfimake_uint(&m, 16, 4);
	length_at = m.len;
	CFIMAKE(&m, 4, 1, 2, 3, 4, 0x0e, 16);
	cfimake_end(&m, at);
	assert_int_equal(next(&m, CFI_EH_FRAME, at, m.len, &fde), 1);
	assert_int_equal(cursor_left(&fde.program), 2);
	m.data[length_at] = 6;
	assert_int_equal(next(&m, CFI_EH_FRAME, at, m.len, &fde), 1);
	assert_int_equal(cursor_left(&fde.program), 0);
	m.data[length_at] = 7; /* more than the record has */
	assert_int_equal(next(&m, CFI_EH_FRAME, at, m.len, &fde), 0);
}

/* An FDE with 8-byte absolute addresses, given as numbers. */
static int absolute_fde(uint64_t start, uint64_t range, struct fde *fde)
{
	struct cfimake m = {.vaddr = VADDR};
	size_t cie = cfimake_cie(&m, RA, 0x00), at = cfimake_begin(&m);

	cfimake_uint(&m, m.len - cie, 4);
	cfimake_uint(&m, start, 8);
	cfimake_uint(&m, range, 8);
	CFIMAKE(&m, 0);
	cfimake_end(&m, at);
	return next(&m, CFI_EH_FRAME, at, m.len, fde);
}

static void test_ranges_of_code(void **state)
{
	struct fde fde;

	assert_int_equal(absolute_fde(CODE, 1, &fde), 1);
	assert_int_equal(fde.end, CODE + 1);
	assert_int_equal(absolute_fde(CODE, INT64_MAX - CODE, &fde), 1);
	assert_int_equal(fde.end, INT64_MAX);
	assert_int_equal(absolute_fde(CODE, UINT64_MAX - CODE, &fde), 0); /* a negative length */
	assert_int_equal(absolute_fde(0, 16, &fde), 0);
	assert_int_equal(absolute_fde(CODE, 0, &fde), 0);
	assert_int_equal(absolute_fde(CODE, UINT64_MAX - CODE + 1, &fde), 0); /* around the end of all addresses */
	assert_int_equal(absolute_fde(CODE, UINT64_MAX, &fde), 0);
}

/* The range has the pointer's format, but is relative to nothing; one that leads backwards is none. */
static void test_signed_range(void **state)
{
	struct cfimake m = {.vaddr = VADDR};
	size_t cie = cfimake_cie(&m, RA, PCREL_SDATA4), at = m.len;
	struct fde fde;

	CFIMAKE_FDE(&m, cie, CODE, (uint32_t)-16, 0);
	assert_int_equal(next(&m, CFI_EH_FRAME, at, m.len, &fde), 0);
}

/* A CIE that is none: behind the end, before the start, an FDE, in the middle of a record. */
static void test_wrong_cies(void **state)
{
	struct cfimake good = {.vaddr = VADDR};
	size_t cie = cfimake_cie(&good, RA, PCREL_SDATA4), at = good.len, second;
	struct fde fde;

	CFIMAKE_FDE(&good, cie, CODE, 16, 0);
	second = good.len;
	CFIMAKE_FDE(&good, cie, CODE + 16, 16, 0);
	assert_int_equal(next(&good, CFI_EH_FRAME, second, good.len, &fde), 1);
	for (uint32_t distance = 1; distance < 200; distance++) {
		struct cfimake m = good;

		if (second + 4 - distance == cie)
			continue;
		memcpy(m.data + second + 4, &distance, 4);
		assert_int_equal(next(&m, CFI_EH_FRAME, second, m.len, &fde), 0);
	}
	for (uint32_t distance = UINT32_MAX; distance > UINT32_MAX - 64; distance--) {
		struct cfimake m = good;

		memcpy(m.data + at + 4, &distance, 4);
		assert_int_equal(next(&m, CFI_EH_FRAME, at, second, &fde), 0);
	}
}

/* No compiler writes more than a few letters; a megabyte of them would be read again for every FDE. */
static void test_long_augmentation(void **state)
{
	for (size_t letters = 2; letters < 64; letters++) {
		struct cfimake m = {.vaddr = VADDR};
		size_t cie = cfimake_begin(&m), at;
		struct fde fde;

		cfimake_uint(&m, 0, 4);
		CFIMAKE(&m, 1, 'z', 'R');
		for (size_t i = 2; i < letters; i++)
			CFIMAKE(&m, 'B');
		CFIMAKE(&m, 0, 1, 0x78, RA, 1, PCREL_SDATA4);
		cfimake_end(&m, cie);
		at = m.len;
		CFIMAKE_FDE(&m, cie, CODE, 16, 0);
		if (letters < 8)
			assert_int_equal(next(&m, CFI_EH_FRAME, at, m.len, &fde), 1);
		else if (letters > 32)
			assert_int_equal(next(&m, CFI_EH_FRAME, at, m.len, &fde), 0);
	}
}

/* .debug_frame: CIEs are marked by all ones and named by their offset. */
static void test_debug_frame(void **state)
{
	for (unsigned word = 4; word <= 8; word += 4) {
		static const uint8_t cie[] = {3, 0, 4, 0x7c, 0x8f, 0x00, 0x0c, 7, 8};
		struct cfimake m = {.vaddr = 0};
		struct fde fde;
		size_t at;

		if (word == 8)
			cfimake_uint(&m, UINT32_MAX, 4);
		cfimake_uint(&m, word + sizeof(cie), word);
		cfimake_uint(&m, UINT64_MAX, word);
		cfimake_put(&m, cie, sizeof(cie));
		at = m.len;
		if (word == 8)
			cfimake_uint(&m, UINT32_MAX, 4);
		cfimake_uint(&m, word + 16 + 1, word);
		cfimake_uint(&m, 0, word);
		cfimake_uint(&m, CODE, 8);
		cfimake_uint(&m, 32, 8);
		CFIMAKE(&m, 0x41);
		assert_int_equal(next(&m, CFI_DEBUG_FRAME, 0, at, &fde), 0);
		assert_int_equal(next(&m, CFI_DEBUG_FRAME, at, m.len, &fde), 1);
		assert_int_equal(fde.start, CODE);
		assert_int_equal(fde.end, CODE + 32);
		assert_int_equal(fde.cie.code_align, 4);
		assert_int_equal(fde.cie.data_align, -4);
		assert_int_equal(fde.cie.ra_reg, 15); /* a uleb128 since version 3, here a long one */
		assert_false(fde.cie.has_augmentation_data);
		assert_int_equal(cursor_left(&fde.cie.program), 3);
		assert_int_equal(cursor_left(&fde.program), 1);
		/* The same bytes mean something else in the other section. */
		assert_int_not_equal(next(&m, CFI_EH_FRAME, at, m.len, &fde), 1);
	}
}

/* Cut anywhere, a record is there or it is not; never half of it. */
static void test_truncated(void **state)
{
	struct cfimake good = {.vaddr = VADDR};
	size_t cie = cfimake_cie(&good, RA, PCREL_SDATA4), at = good.len;
	struct fde fde;

	CFIMAKE_FDE(&good, cie, CODE, 16, 0x0e, 16);
	for (size_t len = 0; len < good.len; len++) {
		struct cfimake m = {.vaddr = VADDR, .len = len};

		memcpy(m.data, good.data, len);
		assert_int_equal(next(&m, CFI_EH_FRAME, at, 0, &fde), -ENOENT);
		assert_int_equal(next(&m, CFI_EH_FRAME, cie, at, &fde), len < at ? -ENOENT : 0);
	}
	/* A length that ends the record early cuts it, too. */
	for (uint32_t len = 1; len < 4 + 8 + 1; len++) {
		struct cfimake m = good;

		memcpy(m.data + at, &len, 4);
		assert_int_equal(next(&m, CFI_EH_FRAME, at, at + 4 + len, &fde), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_relative_to_its_place),
		cmocka_unit_test(test_encodings_that_cannot_be_resolved),
		cmocka_unit_test(test_records_one_by_one),
		cmocka_unit_test(test_augmentation_data_of_the_fde),
		cmocka_unit_test(test_ranges_of_code),
		cmocka_unit_test(test_signed_range),
		cmocka_unit_test(test_wrong_cies),
		cmocka_unit_test(test_long_augmentation),
		cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_truncated),
	};

	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
