/* SPDX-License-Identifier: MIT */
/* Images in this process's own memory; test_modules.c copies a real library's. */
#include "cmocka_all.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/memimage.h"

enum { PAGE = 65536, PAGES = 3, LEN = PAGES * PAGE, DYNAMIC_AT = 0x400, NDYNAMIC = 6 };

struct fixture {
	uint8_t *memory; /* PAGES of PAGE bytes, the last two of them filled with 0xd1 and 0xd2 */
	struct snapshot *snap;
	struct memory vm;
	struct err err;
	struct mem_copy copy;
};

static struct process self;

static Elf64_Ehdr *ehdr_of(struct fixture *f)
{
	return (Elf64_Ehdr *)f->memory;
}

static Elf64_Phdr *phdrs_of(struct fixture *f)
{
	return (Elf64_Phdr *)(f->memory + sizeof(Elf64_Ehdr));
}

static Elf64_Dyn *dynamic_of(uint8_t *image)
{
	return (Elf64_Dyn *)(image + DYNAMIC_AT);
}

static void fill(struct fixture *f, uint64_t vaddr)
{
	*ehdr_of(f) = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_shoff = 0x123456,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 3,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 30,
		.e_shstrndx = 29,
	};
	phdrs_of(f)[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = vaddr, .p_filesz = LEN, .p_memsz = LEN};
	phdrs_of(f)[1] = (Elf64_Phdr){.p_type = PT_LOAD, .p_offset = PAGE, .p_vaddr = vaddr + PAGE, .p_filesz = PAGE};
	phdrs_of(f)[2] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
				      .p_offset = DYNAMIC_AT,
				      .p_vaddr = vaddr + DYNAMIC_AT,
				      .p_filesz = NDYNAMIC * sizeof(Elf64_Dyn),
				      .p_memsz = NDYNAMIC * sizeof(Elf64_Dyn)};
}

static void put_dynamic(struct fixture *f, size_t i, int64_t tag, uint64_t value)
{
	dynamic_of(f->memory)[i] = (Elf64_Dyn){.d_tag = tag, .d_un.d_ptr = value};
}

static struct fixture start(void)
{
	struct fixture f = {.snap = snapshot_create(getpid(), arch_host())};

	f.memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(f.memory != MAP_FAILED);
	assert_int_equal(process_open(getpid(), NULL, &self), 0);
	memory_init(&f.vm, &self, false);
	for (unsigned i = 0; i < PAGES; i++) {
		uint64_t at = (uintptr_t)f.memory + i * PAGE;

		memset(f.memory + i * PAGE, i ? 0xd0 + (int)i : 0, PAGE);
		assert_true(vec_push(
			&f.snap->maps,
			(struct map_entry){.start = at, .end = at + PAGE, .perms = MAP_PERM_READ, .path = "lib"}));
	}
	fill(&f, 0);
	return f;
}

static void finish(struct fixture *f)
{
	munmap(f->memory, LEN);
	memory_deinit(&f->vm);
	process_close(&self);
	snapshot_destroy(f->snap);
}

static int copy(struct fixture *f)
{
	f->copy = (struct mem_copy){0};
	return memimage_copy(f->snap, &f->vm, 0, PAGES - 1, &f->err, &f->copy);
}

static void test_copy(void **state)
{
	struct fixture f = start();
	Elf64_Ehdr ehdr;

	assert_int_equal(copy(&f), 0);
	assert_int_equal(f.copy.start, (uintptr_t)f.memory);
	assert_int_equal(f.copy.len, LEN);
	assert_int_equal(f.copy.region_end, f.copy.start + LEN);
	assert_memory_equal(f.copy.data + PAGE, f.memory + PAGE, 2 * PAGE);
	/* The section headers are gone from the header, and nothing else is. */
	memcpy(&ehdr, f.copy.data, sizeof(ehdr));
	assert_int_equal(ehdr.e_shoff, 0);
	assert_int_equal(ehdr.e_shnum, 0);
	assert_int_equal(ehdr.e_shstrndx, SHN_UNDEF);
	ehdr.e_shoff = 0x123456;
	ehdr.e_shnum = 30;
	ehdr.e_shstrndx = 29;
	assert_memory_equal(&ehdr, f.memory, sizeof(ehdr));
	assert_memory_equal(f.copy.data + sizeof(ehdr), f.memory + sizeof(ehdr), PAGE - sizeof(ehdr));
	finish(&f);
}

static void test_some_of_the_mappings(void **state)
{
	struct fixture f = start();

	assert_int_equal(memimage_copy(f.snap, &f.vm, 0, 1, NULL, &f.copy), 0);
	assert_int_equal(f.copy.len, 2 * PAGE);
	/* Guard pages are left empty, whether they say so or not. */
	f.snap->maps.data[1].perms = 0;
	assert_int_equal(mprotect(f.memory + 2 * PAGE, PAGE, PROT_NONE), 0);
	munmap(f.memory + 2 * PAGE, PAGE);
	assert_int_equal(copy(&f), 0);
	for (size_t i = PAGE; i < LEN; i++)
		assert_int_equal(f.copy.data[i], 0);
	finish(&f);
}

static void expect_dynamic(struct fixture *f, size_t i, uint64_t value)
{
	assert_int_equal(dynamic_of(f->copy.data)[i].d_un.d_ptr, value);
}

/* What the dynamic linker made addresses of is an offset again. */
static void check_unrelocate(uint64_t vaddr)
{
	struct fixture f = start();
	uint64_t bias = (uintptr_t)f.memory - vaddr;

	fill(&f, vaddr);
	put_dynamic(&f, 0, DT_SYMTAB, bias + vaddr + 0x111);
	put_dynamic(&f, 1, DT_STRTAB, bias + vaddr + LEN - 1);
	put_dynamic(&f, 2, DT_HASH, bias + vaddr);
	put_dynamic(&f, 3, DT_GNU_HASH, vaddr + 0x222);     /* not relocated, as in the vDSO */
	put_dynamic(&f, 4, DT_STRSZ, bias + vaddr + 0x333); /* no pointer, whatever it looks like */
	put_dynamic(&f, 5, DT_STRTAB, bias + vaddr + LEN);  /* outside */
	assert_int_equal(copy(&f), 0);
	expect_dynamic(&f, 0, vaddr + 0x111);
	expect_dynamic(&f, 1, vaddr + LEN - 1);
	expect_dynamic(&f, 2, vaddr);
	expect_dynamic(&f, 3, vaddr + 0x222);
	expect_dynamic(&f, 4, bias + vaddr + 0x333);
	expect_dynamic(&f, 5, bias + vaddr + LEN);

	put_dynamic(&f, 1, DT_NULL, 0); /* the end */
	assert_int_equal(copy(&f), 0);
	expect_dynamic(&f, 0, vaddr + 0x111);
	expect_dynamic(&f, 2, bias + vaddr);
	finish(&f);
}

static void test_unrelocate(void **state)
{
	check_unrelocate(0);
	check_unrelocate(0x400000); /* a prelinked library, loaded elsewhere */
}

/* A program at its own address has nothing to undo. */
static void test_not_moved(void **state)
{
	struct fixture f = start();

	fill(&f, (uintptr_t)f.memory);
	put_dynamic(&f, 0, DT_SYMTAB, (uintptr_t)f.memory + 0x111);
	assert_int_equal(copy(&f), 0);
	expect_dynamic(&f, 0, (uintptr_t)f.memory + 0x111);
	finish(&f);
}

/* A dynamic section that is anywhere, or of any length: left alone, as far as it is outside. */
static void test_hostile_dynamic(void **state)
{
	static const uint64_t values[] = {LEN, LEN - 8, LEN - 16, UINT64_MAX, UINT64_MAX - 15, UINT64_C(1) << 63};
	struct fixture f = start();

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		fill(&f, 0);
		phdrs_of(&f)[2].p_vaddr = values[i];
		assert_int_equal(copy(&f), 0);
		assert_memory_equal(f.copy.data + PAGE, f.memory + PAGE, 2 * PAGE);
		fill(&f, 0);
		phdrs_of(&f)[2].p_memsz = values[i];
		put_dynamic(&f, 0, DT_SYMTAB, (uintptr_t)f.memory + 1);
		put_dynamic(&f, 1, DT_NULL, 0);
		assert_int_equal(copy(&f), 0);
		expect_dynamic(&f, 0, (uintptr_t)f.memory + 1);
	}
	finish(&f);
}

static void expect_no_image(struct fixture *f)
{
	assert_int_equal(copy(f), -ENOEXEC);
	assert_int_equal(f->err.code, ENOEXEC);
	assert_null(f->copy.data);
	fill(f, 0);
	assert_int_equal(copy(f), 0);
}

static void test_what_is_no_image(void **state)
{
	struct fixture f = start();

	f.memory[0] = 0;
	expect_no_image(&f);
	ehdr_of(&f)->e_ident[EI_CLASS] = ELFCLASS32;
	expect_no_image(&f);
	ehdr_of(&f)->e_ident[EI_DATA] = ELFDATA2MSB;
	expect_no_image(&f);
	ehdr_of(&f)->e_phentsize = sizeof(Elf32_Phdr);
	expect_no_image(&f);
	ehdr_of(&f)->e_phoff = LEN + 1;
	expect_no_image(&f);
	ehdr_of(&f)->e_phoff = UINT64_MAX;
	expect_no_image(&f);
	ehdr_of(&f)->e_phoff = LEN - sizeof(Elf64_Phdr); /* one would fit, not three */
	expect_no_image(&f);
	ehdr_of(&f)->e_phnum = UINT16_MAX;
	expect_no_image(&f);
	f.snap->maps.data[0].end = f.snap->maps.data[0].start + sizeof(Elf64_Ehdr) - 1;
	assert_int_equal(memimage_copy(f.snap, &f.vm, 0, 0, NULL, &f.copy), -ENOEXEC);
	finish(&f);
}

static void test_unreadable(void **state)
{
	struct fixture f = start();

	memory_deinit(&f.vm);
	f.vm.use_proc_mem = true;
	assert_int_equal(copy(&f), -EIO);
	assert_int_equal(f.err.code, EIO);
	finish(&f);
}

static void test_too_large(void **state)
{
	struct fixture f = start();

	f.snap->maps.data[PAGES - 1].end += 64 << 20;
	assert_int_equal(copy(&f), -EFBIG);
	assert_non_null(strstr(f.err.msg, "64 MiB"));
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_some_of_the_mappings),
		cmocka_unit_test(test_unrelocate),
		cmocka_unit_test(test_not_moved),
		cmocka_unit_test(test_hostile_dynamic),
		cmocka_unit_test(test_what_is_no_image),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_too_large),
	};

	return cmocka_run_group_tests_name("memimage", tests, NULL, NULL);
}
