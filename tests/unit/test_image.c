/* SPDX-License-Identifier: MIT */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch/arch.h"
#include "elf/image.h"
#include "elfmake.h"

enum {
	NOTE_AT = 0x200,
	HDR_AT = 0x240,
	TEXT_OFFSET = 0x1a30, /* as lld lays files out: segments share pages of the file */
	TEXT_LEN = 0x600,
	DATA_OFFSET = TEXT_OFFSET + TEXT_LEN,
	DATA_LEN = 0x100,
	FILE_LEN = DATA_OFFSET + DATA_LEN,
	TEXT_VADDR = 0x402a30,
	DATA_VADDR = 0x404030,
	NPHDR = 5,
};

static const uint8_t note[] = {4, 0, 0, 0, 3, 0, 0, 0, NT_GNU_BUILD_ID, 0, 0, 0, 'G', 'N', 'U', 0, 0xab, 0xcd, 0xef};

/* A file without section headers: rodata at 0x400000, code, data. */
static void make_file(uint8_t *file)
{
	Elf64_Ehdr ehdr = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = EM_AARCH64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(ehdr),
		.e_ehsize = sizeof(ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = NPHDR,
	};
	Elf64_Phdr phdrs[NPHDR] = {
		{PT_LOAD, PF_R, 0, 0x400000, 0x400000, TEXT_OFFSET, TEXT_OFFSET, 0x1000},
		{PT_LOAD, PF_R | PF_X, TEXT_OFFSET, TEXT_VADDR, TEXT_VADDR, TEXT_LEN, TEXT_LEN, 0x1000},
		{PT_LOAD, PF_R | PF_W, DATA_OFFSET, DATA_VADDR, DATA_VADDR, DATA_LEN, 0x1000, 0x1000},
		{PT_NOTE, PF_R, NOTE_AT, 0x400000 + NOTE_AT, 0x400000 + NOTE_AT, sizeof(note), sizeof(note), 4},
		{PT_GNU_EH_FRAME, PF_R, HDR_AT, 0x400000 + HDR_AT, 0x400000 + HDR_AT, 12, 12, 4},
	};

	memset(file, 0, FILE_LEN);
	memcpy(file, &ehdr, sizeof(ehdr));
	memcpy(file + sizeof(ehdr), phdrs, sizeof(phdrs));
	memcpy(file + NOTE_AT, note, sizeof(note));
	memcpy(file + HDR_AT, "header", 6);
	memcpy(file + TEXT_OFFSET, "code", 4);
	memcpy(file + DATA_OFFSET, "data", 4);
}

static int file_with(const uint8_t *data, size_t len)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	return fd;
}

static struct image *open_made(void)
{
	uint8_t file[FILE_LEN];
	struct image *image;
	struct err err;

	make_file(file);
	if (image_open_fd(file_with(file, sizeof(file)), &err, &image) != 0)
		fail_msg("%s", err.msg);
	return image;
}

static struct image *open_self(void)
{
	struct image *image;
	struct err err;

	if (image_open_fd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &err, &image) != 0)
		fail_msg("%s", err.msg);
	return image;
}

static void test_header(void **state)
{
	struct image *image = open_made();

	assert_int_equal(image_machine(image), EM_AARCH64);
	assert_true(image_is_64bit(image));
	assert_false(image_is_big_endian(image));
	assert_string_equal(image_build_id(image), "abcdef");
	image_destroy(image);
	image_destroy(NULL);
}

static void assert_vaddr(const struct image *image, uint64_t offset, uint64_t expected)
{
	uint64_t vaddr;

	assert_true(image_offset_to_vaddr(image, offset, &vaddr));
	assert_int_equal(vaddr, expected);
}

static void test_offset_to_vaddr(void **state)
{
	struct image *image = open_made();
	uint64_t vaddr;

	assert_vaddr(image, 0, 0x400000);
	assert_vaddr(image, TEXT_OFFSET + 4, TEXT_VADDR + 4);
	/* the code's mapping starts at its page, which the file shares with the segment before */
	assert_vaddr(image, TEXT_OFFSET & ~0xfff, TEXT_VADDR & ~0xfff);
	assert_vaddr(image, DATA_OFFSET + 0x10, TEXT_VADDR + TEXT_LEN + 0x10); /* the code's last page covers it */
	assert_false(image_offset_to_vaddr(image, 0x10000000, &vaddr));
	assert_false(image_offset_to_vaddr(image, UINT64_MAX, &vaddr));
	image_destroy(image);
}

static void test_bytes_at(void **state)
{
	struct image *image = open_made();
	struct span span = image_bytes_at(image, TEXT_VADDR);

	assert_int_equal(span.len, TEXT_LEN);
	assert_int_equal(span.vaddr, TEXT_VADDR);
	assert_memory_equal(span.data, "code", 4);
	span = image_bytes_at(image, DATA_VADDR + 4);
	assert_int_equal(span.len, DATA_LEN - 4);
	assert_null(image_bytes_at(image, DATA_VADDR + DATA_LEN).data); /* only zeroes in memory, not in the file */
	assert_null(image_bytes_at(image, 0).data);
	span = image_eh_frame_hdr(image);
	assert_int_equal(span.len, 12);
	assert_int_equal(span.vaddr, 0x400000 + HDR_AT);
	assert_memory_equal(span.data, "header", 6);
	assert_null(image_section(image, ".text").data);
	assert_null(image_section_name_at(image, TEXT_VADDR));
	image_destroy(image);
}

/* Cut anywhere, or with any byte of its headers changed: opened or refused, never followed out of the file. */
static void test_damaged_files(void **state)
{
	uint8_t file[FILE_LEN];
	struct image *image;

	for (size_t len = 0; len < FILE_LEN; len += len < 0x400 ? 1 : 97) {
		make_file(file);
		if (image_open_fd(file_with(file, len), NULL, &image) != 0)
			continue;
		assert_true(image_bytes_at(image, TEXT_VADDR).len <= len);
		assert_true(image_eh_frame_hdr(image).len <= len);
		image_destroy(image);
	}
	for (size_t i = EI_CLASS; i < sizeof(Elf64_Ehdr) + NPHDR * sizeof(Elf64_Phdr); i++) {
		make_file(file);
		file[i] = 0xff;
		if (image_open_fd(file_with(file, sizeof(file)), NULL, &image) != 0)
			continue;
		assert_true(image_bytes_at(image, TEXT_VADDR).len <= FILE_LEN);
		assert_true(image_eh_frame_hdr(image).len <= FILE_LEN);
		image_section(image, ".eh_frame");
		image_destroy(image);
	}
}

static void test_refused(void **state)
{
	struct image *image = NULL;
	struct err err;

	assert_int_equal(image_open_fd(open("/dev/zero", O_RDONLY | O_CLOEXEC), &err, &image), -ENOEXEC);
	assert_string_equal(err.msg, "not a regular file");
	assert_int_equal(image_open_fd(file_with((const uint8_t *)"text", 4), &err, &image), -ENOEXEC);
	assert_int_equal(image_open_fd(-1, &err, &image), -EBADF);
	assert_int_equal(image_open_memory("text", 4, &err, &image), -ENOEXEC);
	assert_null(image);
}

static void test_sections(void **state)
{
	struct image *image = open_self();
	struct span text = image_section(image, ".text");

	assert_non_null(text.data);
	assert_memory_equal(image_bytes_at(image, text.vaddr).data, text.data, text.len);
	assert_string_equal(image_section_name_at(image, text.vaddr), ".text");
	assert_null(image_section_name_at(image, 0));
	assert_null(image_section(image, ".no-such-section").data);
	assert_null(image_section(image, ".bss").data);
	assert_non_null(image_eh_frame_hdr(image).data);
	image_destroy(image);
}

/* One that exists only in memory: our own vDSO. */
static void test_vdso(void **state)
{
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct image *image;
	struct span hdr;
	struct err err;

	if (!vdso) {
		print_message("skipped: this kernel gives no vDSO\n");
		skip();
	}
	if (image_open_memory(vdso, (size_t)sysconf(_SC_PAGESIZE), &err, &image) != 0)
		fail_msg("%s", err.msg);
	assert_int_equal(image_machine(image), arch_host()->elf_machine);
	assert_non_null(image_build_id(image));
	hdr = image_eh_frame_hdr(image);
	assert_ptr_equal(hdr.data, (const uint8_t *)vdso + hdr.vaddr);
	image_destroy(image);
}

/* Sections compressed by any convention that objcopy knows, made by objcopy from this very program. */
static void test_compressed_section(void **state)
{
	static const char *const kinds[] = {"zlib-gabi", "zlib-gnu", "zstd"};
	struct image *plain = open_self();
	struct span expected = image_section(plain, ".debug_abbrev");

	if (!expected.data || system("command -v objcopy >/dev/null") != 0) {
		image_destroy(plain);
		print_message("skipped: built without debug information, or no objcopy\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		char path[] = "/tmp/test_image.XXXXXX", command[200];
		int fd = mkstemp(path);
		struct image *image;
		struct span span;

		assert_true(fd >= 0);
		snprintf(command, sizeof(command), "objcopy --compress-debug-sections=%s /proc/%d/exe %s", kinds[i],
			 (int)getpid(), path);
		close(fd);
		if (i == 2 && system("objcopy --help | grep -q zstd") != 0) {
			print_message("left out: objcopy does not know zstd\n");
			unlink(path);
			break;
		}
		assert_int_equal(system(command), 0);
		assert_int_equal(image_open_fd(open(path, O_RDONLY | O_CLOEXEC), NULL, &image), 0);
		unlink(path);
		for (int again = 0; again < 2; again++) {
			span = image_section(image, ".debug_abbrev");
			assert_int_equal(span.len, expected.len);
			assert_memory_equal(span.data, expected.data, expected.len);
		}
		image_destroy(image);
	}
	image_destroy(plain);
}

/* The header of a compressed section, as 64-bit files have it, and what is to be in it. */
static struct image *make_compressed(struct elfmake *e, uint32_t type, uint64_t size, const void *data, size_t len)
{
	uint8_t section[128] = {0};
	const Elf64_Chdr header = {.ch_type = type, .ch_size = size, .ch_addralign = 1};

	memcpy(section, &header, sizeof(header));
	memcpy(section + sizeof(header), data, len);
	elfmake_init(e, EM_X86_64);
	elfmake_section(e, ".debug_info", (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_COMPRESSED}, section,
			sizeof(header) + len);
	return elfmake_image(e);
}

static void test_damaged_compression(void **state)
{
	/* "hello hello hello", packed by zlib. */
	static const uint8_t packed[] = {0x78, 0xda, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57,
					 0xc8, 0x40, 0x90, 0x00, 0x3a, 0x2e, 0x06, 0x7d};
	static const struct {
		uint32_t type;
		uint64_t size;
		size_t len;
		bool good, unpackable;
	} cases[] = {
		{ELFCOMPRESS_ZLIB, 17, sizeof(packed), true, true},
		{ELFCOMPRESS_ZLIB, 16, sizeof(packed), false, true},
		{ELFCOMPRESS_ZLIB, 18, sizeof(packed), false, true},
		{ELFCOMPRESS_ZLIB, 0, sizeof(packed), false, true},
		{ELFCOMPRESS_ZLIB, 17, sizeof(packed) - 1, false, true},
		{ELFCOMPRESS_ZLIB, 17, 0, false, true},
		{ELFCOMPRESS_ZLIB, UINT64_C(1) << 40, sizeof(packed), false, false},
		{ELFCOMPRESS_ZLIB, UINT64_MAX, sizeof(packed), false, false},
		{2 /* zstd */, 17, sizeof(packed), false, true},
		{77, 17, sizeof(packed), false, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct elfmake e;
		struct image *image = make_compressed(&e, cases[i].type, cases[i].size, packed, cases[i].len);
		struct span span = image_section(image, ".debug_info");

		assert_int_equal(span.data != NULL, cases[i].good);
		if (cases[i].good) {
			assert_int_equal(span.len, 17);
			assert_memory_equal(span.data, "hello hello hello", 17);
		}
		assert_int_equal(image_is_unpackable(image), cases[i].unpackable);
		image_destroy(image);
		elfmake_deinit(&e);
	}
}

/* Where code is: in the segments, else in the sections. */
static void test_code_bounds(void **state)
{
	const Elf64_Shdr code = {.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR};
	struct image *self = open_self();
	struct elfmake e;
	struct image *image;
	Elf64_Shdr shdr = code;
	uint64_t start, end;

	image_code_bounds(self, &start, &end);
	assert_true(start < end);
	assert_non_null(image_bytes_at(self, start).data);
	image_destroy(self);

	elfmake_init(&e, EM_X86_64);
	elfmake_section(&e, ".data", (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_addr = 0x10}, "x", 1);
	image = elfmake_image(&e);
	image_code_bounds(image, &start, &end);
	assert_int_equal(start, 0);
	assert_int_equal(end, 0);
	image_destroy(image);
	elfmake_deinit(&e);

	elfmake_init(&e, EM_X86_64);
	shdr.sh_addr = 0x3000;
	elfmake_section(&e, ".text", shdr, "0123", 4);
	shdr.sh_addr = 0x1000;
	elfmake_section(&e, ".init", shdr, "0123", 4);
	shdr.sh_addr = 0x5000;
	elfmake_section(&e, ".fini", shdr, "0123", 4);
	image = elfmake_image(&e);
	image_code_bounds(image, &start, &end);
	assert_int_equal(start, 0x1000);
	assert_int_equal(end, 0x5004);
	image_destroy(image);
	elfmake_deinit(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header),   cmocka_unit_test(test_offset_to_vaddr),
		cmocka_unit_test(test_bytes_at), cmocka_unit_test(test_damaged_files),
		cmocka_unit_test(test_refused),  cmocka_unit_test(test_sections),
		cmocka_unit_test(test_vdso),     cmocka_unit_test(test_compressed_section),
		cmocka_unit_test(test_damaged_compression), cmocka_unit_test(test_code_bounds),
	};

	return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
