/* SPDX-License-Identifier: MIT */
/* A made-up loaded image without section headers; test_symtab.c has the same of real libraries. */
#include "cmocka_all.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "elf/dynsym.h"
#include "elf/symrecords.h"

enum {
	DYNAMIC_AT = 0x200,
	SYMTAB_AT = 0x400,
	STRTAB_AT = 0x600,
	HASH_AT = 0x800,
	GNU_HASH_AT = 0xa00,
	IMAGE_LEN = 0x1000,
	NSYMS = 4,
	MAX_DYNAMIC = 16,
};

static const char strings[] = "\0first\0second\0third";
static const uint32_t string_at[NSYMS] = {0, 1, 7, 14};

struct fixture {
	uint8_t image[IMAGE_LEN] __attribute__((aligned(8)));
	Elf64_Dyn dynamic[MAX_DYNAMIC];
	size_t ndynamic;
};

static void put_headers(struct fixture *f, uint32_t dynamic_type)
{
	Elf64_Ehdr ehdr = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(ehdr),
		.e_ehsize = sizeof(ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
	};
	Elf64_Phdr phdrs[] = {
		{.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = IMAGE_LEN, .p_memsz = IMAGE_LEN},
		{.p_type = dynamic_type,
		 .p_flags = PF_R,
		 .p_offset = DYNAMIC_AT,
		 .p_vaddr = DYNAMIC_AT,
		 .p_filesz = sizeof(f->dynamic),
		 .p_memsz = sizeof(f->dynamic)},
	};

	memcpy(f->image, &ehdr, sizeof(ehdr));
	memcpy(f->image + sizeof(ehdr), phdrs, sizeof(phdrs));
}

static void add_dynamic(struct fixture *f, int64_t tag, uint64_t value)
{
	assert_true(f->ndynamic < MAX_DYNAMIC);
	f->dynamic[f->ndynamic++] = (Elf64_Dyn){.d_tag = tag, .d_un.d_val = value};
}

/* Symbols, strings and all but a hash table. */
static void init(struct fixture *f)
{
	*f = (struct fixture){0};
	put_headers(f, PT_DYNAMIC);
	add_dynamic(f, DT_SONAME, 1);
	add_dynamic(f, DT_SYMTAB, SYMTAB_AT);
	add_dynamic(f, DT_STRTAB, STRTAB_AT);
	add_dynamic(f, DT_STRSZ, sizeof(strings));
	for (unsigned i = 0; i < NSYMS; i++) {
		Elf64_Sym sym = {.st_name = string_at[i],
				 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				 .st_other = STV_PROTECTED,
				 .st_shndx = (uint16_t)i,
				 .st_value = 0x1000 * i,
				 .st_size = 16 * i};

		memcpy(f->image + SYMTAB_AT + i * sizeof(sym), &sym, sizeof(sym));
	}
	memcpy(f->image + STRTAB_AT, strings, sizeof(strings));
}

static void put_words(struct fixture *f, uint64_t at, const uint32_t *words, size_t n)
{
	assert_true(at + 4 * n <= IMAGE_LEN);
	memcpy(f->image + at, words, 4 * n);
}

#define PUT_WORDS(f, at, ...)                                                                                          \
	put_words(f, at, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void add_hash(struct fixture *f)
{
	PUT_WORDS(f, HASH_AT, 1, NSYMS);
	add_dynamic(f, DT_HASH, HASH_AT);
}

/* Two buckets, symbols from 1 on, one bloom word; the last bucket's chain has two symbols. */
static void add_gnu_hash(struct fixture *f)
{
	PUT_WORDS(f, GNU_HASH_AT, 2, 1, 1, 6, 0xffffffff, 0xffffffff, 1, 2, 0x11, 0x20, 0x31);
	add_dynamic(f, DT_GNU_HASH, GNU_HASH_AT);
}

struct visits {
	size_t n, named, stop_at;
	Elf64_Sym last;
	char names[64];
};

static bool note(void *ctx, const Elf64_Sym *sym, const char *name, size_t len)
{
	struct visits *v = ctx;

	v->last = *sym;
	v->named += name[0] != '\0';
	if (strlen(v->names) + strlen(name) + 2 < sizeof(v->names))
		strcat(strcat(v->names, name), ",");
	return ++v->n != v->stop_at;
}

static struct visits read_image(struct fixture *f, size_t stop_at, bool *result)
{
	struct visits v = {.stop_at = stop_at};
	struct image *image;

	memcpy(f->image + DYNAMIC_AT, f->dynamic, sizeof(f->dynamic));
	assert_int_equal(image_open_memory(f->image, IMAGE_LEN, NULL, &image), 0);
	*result = dynsym_read(image, note, &v);
	image_destroy(image);
	return v;
}

static struct visits read_all(struct fixture *f)
{
	bool result;
	struct visits v = read_image(f, 0, &result);

	assert_true(result);
	return v;
}

static void test_count_by_hash(void **state)
{
	struct fixture f;
	struct visits v;

	init(&f);
	add_hash(&f);
	v = read_all(&f);
	assert_int_equal(v.n, NSYMS);
	assert_string_equal(v.names, ",first,second,third,");
	assert_int_equal(v.last.st_value, 0x3000);
	assert_int_equal(v.last.st_size, 48);
	assert_int_equal(v.last.st_shndx, 3);
	assert_int_equal(v.last.st_info, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC));
	assert_int_equal(v.last.st_other, STV_PROTECTED);
}

static void test_count_by_gnu_hash(void **state)
{
	struct fixture f;

	init(&f);
	add_gnu_hash(&f);
	assert_string_equal(read_all(&f).names, ",first,second,third,");
	/* An old table that says nothing leaves the count to the other. */
	init(&f);
	add_gnu_hash(&f);
	PUT_WORDS(&f, HASH_AT, 1, 0);
	add_dynamic(&f, DT_HASH, HASH_AT);
	assert_int_equal(read_all(&f).n, NSYMS);
	/* No symbol is exported: buckets are empty. */
	init(&f);
	add_gnu_hash(&f);
	PUT_WORDS(&f, GNU_HASH_AT, 2, 1, 1, 6, 0, 0, 0, 0);
	assert_int_equal(read_all(&f).n, 0);
}

static void test_not_there(void **state)
{
	struct fixture f;

	init(&f); /* no hash table: nothing tells the number */
	assert_int_equal(read_all(&f).n, 0);
	init(&f);
	add_hash(&f);
	put_headers(&f, PT_NOTE);
	assert_int_equal(read_all(&f).n, 0);
	for (size_t missing = 1; missing <= 3; missing++) { /* symbols, strings, the strings' size */
		init(&f);
		add_hash(&f);
		f.dynamic[missing].d_tag = DT_DEBUG;
		assert_int_equal(read_all(&f).n, 0);
	}
	init(&f);
	add_dynamic(&f, DT_NULL, 0); /* what comes after the end does not count */
	add_hash(&f);
	assert_int_equal(read_all(&f).n, 0);
	init(&f);
	add_hash(&f);
	f.image[EI_CLASS] = ELFCLASS32;
	f.image[0x2c] = 0; /* where a 32-bit header counts its program headers */
	assert_int_equal(read_all(&f).n, 0);
}

static void test_names_out_of_bounds(void **state)
{
	struct fixture f;
	uint32_t far = sizeof(strings), last = sizeof(strings) - 1;
	struct visits v;

	init(&f);
	add_hash(&f);
	memcpy(f.image + SYMTAB_AT + sizeof(Elf64_Sym), &far, 4);
	memcpy(f.image + SYMTAB_AT + 2 * sizeof(Elf64_Sym), &last, 4);
	v = read_all(&f);
	assert_string_equal(v.names, ",,third,"); /* the one is lost, the other is empty */
	init(&f);
	add_hash(&f);
	f.dynamic[3].d_un.d_val = 16; /* the last name has no end */
	assert_string_equal(read_all(&f).names, ",first,second,");
	f.dynamic[3].d_un.d_val = UINT64_MAX; /* a table longer than the file is none */
	assert_int_equal(read_all(&f).n, 0);
}

/* Numbers that nothing stands behind: what is there is read, and no more. */
static void test_hostile_counts(void **state)
{
	struct fixture f;

	init(&f);
	PUT_WORDS(&f, HASH_AT, 1, UINT32_MAX);
	add_dynamic(&f, DT_HASH, HASH_AT);
	assert_in_range(read_all(&f).n, NSYMS, (IMAGE_LEN - SYMTAB_AT) / sizeof(Elf64_Sym));

	init(&f);
	add_gnu_hash(&f);
	PUT_WORDS(&f, GNU_HASH_AT, UINT32_MAX, 1, 1, 6); /* buckets */
	assert_int_equal(read_all(&f).n, 0);
	PUT_WORDS(&f, GNU_HASH_AT, 2, 1, UINT32_MAX, 6); /* bloom words */
	assert_int_equal(read_all(&f).n, 0);
	PUT_WORDS(&f, GNU_HASH_AT, 2, UINT32_MAX, 1, 6); /* the first symbol */
	assert_int_equal(read_all(&f).n, 0);
	PUT_WORDS(&f, GNU_HASH_AT, 2, 1, 1, 6, 0, 0, UINT32_MAX, 2); /* a bucket */
	assert_int_equal(read_all(&f).n, 0);
	PUT_WORDS(&f, GNU_HASH_AT, 2, 1, 1, 6, 0, 0, 1, 2, 0x10, 0x10, 0x10); /* a chain without end */
	assert_int_equal(read_all(&f).n, 0);
}

static void test_hostile_addresses(void **state)
{
	static const uint64_t addresses[] = {IMAGE_LEN, IMAGE_LEN - 1, UINT64_MAX, UINT64_C(1) << 63};

	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		for (size_t entry = 1; entry < 6; entry++) {
			struct fixture f;

			init(&f);
			add_hash(&f);
			add_gnu_hash(&f);
			f.dynamic[entry].d_un.d_val = addresses[i];
			assert_true(read_all(&f).named <= 3);
		}
	}
}

/* The same of other word sizes and byte orders. */
struct foreign {
	uint8_t image[IMAGE_LEN] __attribute__((aligned(8)));
	unsigned word; /* bytes of an address */
	bool big_endian;
	size_t at;
};

static void put(struct foreign *f, unsigned size, uint64_t value)
{
	for (unsigned i = 0; i < size; i++)
		f->image[f->at + (f->big_endian ? size - 1 - i : i)] = (uint8_t)(value >> 8 * i);
	f->at += size;
}

static void put_all(struct foreign *f, unsigned size, const uint64_t *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put(f, size, values[i]);
}

#define PUT(f, size, ...)                                                                                              \
	put_all(f, size, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void put_foreign_headers(struct foreign *f, uint16_t machine)
{
	bool wide = f->word == 8;

	memcpy(f->image, ELFMAG, SELFMAG);
	f->image[EI_CLASS] = wide ? ELFCLASS64 : ELFCLASS32;
	f->image[EI_DATA] = f->big_endian ? ELFDATA2MSB : ELFDATA2LSB;
	f->image[EI_VERSION] = EV_CURRENT;
	f->at = EI_NIDENT;
	PUT(f, 2, ET_DYN, machine);
	PUT(f, 4, EV_CURRENT);
	PUT(f, f->word, 0, wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr), 0);
	PUT(f, 4, 0);
	PUT(f, 2, wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr), wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr), 2, 0,
	    0, 0);
	for (int i = 0; i < 2; i++) {
		uint64_t at = i ? DYNAMIC_AT : 0, len = i ? 0x100 : IMAGE_LEN;

		PUT(f, 4, i ? PT_DYNAMIC : PT_LOAD);
		if (wide)
			PUT(f, 4, PF_R);
		PUT(f, f->word, at, at, at, len, len);
		if (!wide)
			PUT(f, 4, PF_R);
		PUT(f, f->word, 1);
	}
}

static void check_foreign(unsigned word, bool big_endian, uint16_t machine, unsigned hash_word)
{
	struct foreign f = {.word = word, .big_endian = big_endian};
	struct visits v = {0};
	struct image *image;

	put_foreign_headers(&f, machine);
	f.at = DYNAMIC_AT;
	PUT(&f, word, DT_SYMTAB, SYMTAB_AT, DT_STRTAB, STRTAB_AT, DT_STRSZ, sizeof(strings));
	if (hash_word)
		PUT(&f, word, DT_HASH, HASH_AT);
	else
		PUT(&f, word, DT_GNU_HASH, GNU_HASH_AT);
	f.at = SYMTAB_AT;
	for (unsigned i = 0; i < NSYMS; i++) {
		PUT(&f, 4, string_at[i]);
		if (word == 4)
			PUT(&f, 4, 0x1000 * i, 16 * i);
		PUT(&f, 1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_PROTECTED);
		PUT(&f, 2, i);
		if (word == 8)
			PUT(&f, 8, 0x1000 * i, 16 * i);
	}
	memcpy(f.image + STRTAB_AT, strings, sizeof(strings));
	f.at = HASH_AT;
	PUT(&f, hash_word, 1, NSYMS);
	f.at = GNU_HASH_AT;
	PUT(&f, 4, 2, 1, 1, 6);
	PUT(&f, word, UINT64_MAX);
	PUT(&f, 4, 1, 2, 0x11, 0x20, 0x31);
	assert_int_equal(image_open_memory(f.image, IMAGE_LEN, NULL, &image), 0);
	assert_true(dynsym_read(image, note, &v));
	assert_string_equal(v.names, ",first,second,third,");
	assert_int_equal(v.last.st_value, 0x3000);
	assert_int_equal(v.last.st_size, 48);
	assert_int_equal(v.last.st_shndx, 3);
	image_destroy(image);
}

static void test_foreign(void **state)
{
	for (unsigned hash_word = 0; hash_word <= 4; hash_word += 4) { /* 0: the other table */
		check_foreign(4, false, EM_386, hash_word);
		check_foreign(4, true, EM_PPC, hash_word);
		check_foreign(4, true, EM_S390, hash_word);
		check_foreign(8, true, EM_PPC64, hash_word);
	}
	check_foreign(8, true, EM_S390, 8);
}

/* All names are the same long one: only so much is looked at. */
static void test_work_is_bounded(void **state)
{
	enum { NAMES_LEN = 64 << 10, COUNT = 4000, LEN = IMAGE_LEN + NAMES_LEN + COUNT * sizeof(Elf64_Sym) };
	const Elf64_Sym sym = {.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1, .st_value = 1};
	uint8_t *data = aligned_alloc(8, LEN);
	Elf64_Phdr load = {.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = LEN, .p_memsz = LEN};
	struct visits v = {0};
	struct image *image;
	struct fixture f;

	init(&f);
	PUT_WORDS(&f, HASH_AT, 1, COUNT);
	add_dynamic(&f, DT_HASH, HASH_AT);
	f.dynamic[1].d_un.d_val = IMAGE_LEN + NAMES_LEN;
	f.dynamic[2].d_un.d_val = IMAGE_LEN;
	f.dynamic[3].d_un.d_val = NAMES_LEN;
	memcpy(f.image + sizeof(Elf64_Ehdr), &load, sizeof(load));
	memcpy(f.image + DYNAMIC_AT, f.dynamic, sizeof(f.dynamic));
	memcpy(data, f.image, IMAGE_LEN);
	memset(data + IMAGE_LEN, 'A', NAMES_LEN);
	for (size_t i = 0; i < COUNT; i++)
		memcpy(data + IMAGE_LEN + NAMES_LEN + i * sizeof(sym), &sym, sizeof(sym));
	assert_int_equal(image_open_memory(data, LEN, NULL, &image), 0);
	assert_true(dynsym_read(image, note, &v));
	assert_int_equal(v.n, 0); /* it has no end */
	data[IMAGE_LEN + SYMRECORDS_MAX_NAME] = '\0';
	assert_true(dynsym_read(image, note, &v));
	assert_int_equal(v.n, 0);
	data[IMAGE_LEN + SYMRECORDS_MAX_NAME - 1] = '\0';
	assert_true(dynsym_read(image, note, &v));
	assert_in_range(v.n, 1, COUNT / 10);
	image_destroy(image);
	free(data);
}

static void test_visitor_stops(void **state)
{
	struct fixture f;
	bool result;

	init(&f);
	add_hash(&f);
	assert_int_equal(read_image(&f, 2, &result).n, 2);
	assert_false(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_count_by_hash),  cmocka_unit_test(test_count_by_gnu_hash),
		cmocka_unit_test(test_not_there),      cmocka_unit_test(test_names_out_of_bounds),
		cmocka_unit_test(test_hostile_counts), cmocka_unit_test(test_hostile_addresses),
		cmocka_unit_test(test_foreign),        cmocka_unit_test(test_work_is_bounded),
		cmocka_unit_test(test_visitor_stops),
	};

	return cmocka_run_group_tests_name("dynsym", tests, NULL, NULL);
}
