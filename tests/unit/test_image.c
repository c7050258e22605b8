/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/arch.h"
#include "elf/image.h"
#include "elf/symtab.h"
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

/* pread() in place of libc's: called when the header has been read, and nothing else. */
static void (*when_opened)(int fd);

ssize_t pread(int fd, void *buf, size_t len, off_t offset)
{
	ssize_t (*next)(int, void *, size_t, off_t) = (ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");
	ssize_t got = next(fd, buf, len, offset);

	if (when_opened)
		when_opened(fd);
	return got;
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

static bool has_segment(const Elf64_Ehdr *ehdr, uint32_t type)
{
	const Elf64_Phdr *phdrs = (const Elf64_Phdr *)((const uint8_t *)ehdr + ehdr->e_phoff);

	for (unsigned i = 0; i < ehdr->e_phnum; i++)
		if (phdrs[i].p_type == type)
			return true;
	return false;
}

/* One that exists only in memory: our own vDSO, which not every kernel gives unwind tables. */
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
	assert_ptr_equal(hdr.data, has_segment(vdso, PT_GNU_EH_FRAME) ? (const uint8_t *)vdso + hdr.vaddr : NULL);
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

static void cut_to_a_page(int fd)
{
	assert_int_equal(ftruncate(fd, 0x1000), 0);
}

static void write_a_byte(int fd)
{
	assert_int_equal(pwrite(fd, "C", 1, TEXT_OFFSET), 1);
	/* The clock of files has steps: what was written before this test may have the same time. */
	assert_int_equal(futimens(fd, (struct timespec[]){{.tv_sec = 1}, {.tv_sec = 1}}), 0);
}

static void test_changed_while_opened(void **state)
{
	void (*const changes[])(int fd) = {cut_to_a_page, write_a_byte};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct image *image;

		when_opened = changes[i];
		image = open_made();
		when_opened = NULL;
		assert_true(image_has_changed(image));
		assert_int_equal(image_nsegments(image), NPHDR);
		assert_int_equal(image_bytes_at(image, TEXT_VADDR).data[0], i ? 'C' : 0);
		image_destroy(image);
	}
}

/* What was opened whole and has been cut since reads as zeroes; what was read when it was opened stays. */
static void test_cut_while_mapped(void **state)
{
	uint8_t file[FILE_LEN];
	struct image *image;
	struct span code;
	int fd;

	make_file(file);
	fd = file_with(file, sizeof(file));
	assert_int_equal(image_open_fd(dup(fd), NULL, &image), 0);
	assert_false(image_has_changed(image));
	code = image_bytes_at(image, TEXT_VADDR);
	assert_memory_equal(code.data, "code", 4);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_memory_equal(code.data, "\0\0\0\0", 4);
	assert_true(image_has_changed(image));
	assert_int_equal(image_nsegments(image), NPHDR);
	assert_int_equal(image_segment_of(image, PT_GNU_EH_FRAME)->p_vaddr, 0x400000 + HDR_AT);
	assert_null(image_segment_of(image, PT_DYNAMIC));
	assert_null(image_segment(image, NPHDR));
	assert_string_equal(image_build_id(image), "abcdef");
	assert_int_equal(image_raw(image).len, FILE_LEN);
	image_destroy(image);
	close(fd);
}

static void test_sections_by_number(void **state)
{
	struct elfmake e;
	struct image *image;

	elfmake_init(&e, EM_X86_64);
	elfmake_section(&e, ".one", (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_addr = 0x10, .sh_link = 2}, "one", 3);
	elfmake_section(&e, ".two", (Elf64_Shdr){.sh_type = SHT_NOBITS}, "two", 3);
	elfmake_section(&e, ".three", (Elf64_Shdr){.sh_type = SHT_PROGBITS}, "three", 5);
	e.shdrs[3].sh_size = UINT64_MAX;
	image = elfmake_image(&e);
	assert_int_equal(image_nsections(image), 5);
	assert_null(image_shdr(image, 0));
	assert_int_equal(image_shdr(image, 1)->sh_link, 2);
	assert_null(image_shdr(image, 5));
	assert_null(image_shdr(image, SIZE_MAX));
	assert_memory_equal(image_shdr_bytes(image, 1).data, "one", 3);
	assert_int_equal(image_shdr_bytes(image, 1).vaddr, 0x10);
	for (size_t i = 0; i < 6; i++)
		assert_true(i == 1 || i == 4 || !image_shdr_bytes(image, i).data);
	assert_ptr_equal(image_find_shdr(image, ".three"), image_shdr(image, 3));
	assert_null(image_find_shdr(image, ".four"));
	assert_null(image_section(image, ".three").data);
	image_destroy(image);
	elfmake_deinit(&e);
}

/* A compressed section that says something else at each look. */
static void test_compression_that_changes(void **state)
{
	static const uint8_t packed[] = {0x78, 0xda, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57,
					 0xc8, 0x40, 0x90, 0x00, 0x3a, 0x2e, 0x06, 0x7d};
	static const uint64_t sizes[] = {0, 1, 1 << 20, UINT64_MAX};
	struct elfmake e;
	struct image *image;
	uint64_t size_at;
	int fd;

	image_destroy(make_compressed(&e, ELFCOMPRESS_ZLIB, 17, packed, sizeof(packed)));
	fd = file_with(e.data, e.len);
	assert_int_equal(image_open_fd(dup(fd), NULL, &image), 0);
	size_at = image_find_shdr(image, ".debug_info")->sh_offset + offsetof(Elf64_Chdr, ch_size);
	assert_int_equal(image_section(image, ".debug_info").len, 17);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct span span;

		assert_int_equal(pwrite(fd, &sizes[i], 8, (off_t)size_at), 8);
		span = image_section(image, ".debug_info");
		assert_int_equal(span.len, 17);
		assert_memory_equal(span.data, "hello hello hello", 17);
	}
	image_destroy(image);
	close(fd);
	elfmake_deinit(&e);
}

/* This very program, whose copy another thread changes and cuts short without pause. */
struct victim {
	int fd;
	uint8_t *data;
	size_t len;
	atomic_bool done;
};

static void *spoil(void *arg)
{
	struct victim *v = arg;
	unsigned seed = 1;

	while (!atomic_load(&v->done)) {
		size_t at = (size_t)rand_r(&seed) * 64 % v->len, len = v->len - at < 4096 ? v->len - at : 4096;
		uint8_t junk[4096];

		if (rand_r(&seed) % 4 == 0) {
			if (ftruncate(v->fd, (off_t)at) != 0)
				break;
			len = v->len - at;
		} else {
			memset(junk, rand_r(&seed) % 2 ? 'A' : rand_r(&seed), sizeof(junk));
			if (pwrite(v->fd, junk, len, (off_t)at) < 0)
				break;
		}
		if (pwrite(v->fd, v->data + at, len, (off_t)at) < 0)
			break;
	}
	return NULL;
}

static size_t sum_of(struct span span)
{
	size_t sum = 0;

	for (size_t i = 0; i < span.len; i += 64)
		sum += span.data[i];
	return sum;
}

static void test_spoiled_all_the_time(void **state)
{
	static const char *const sections[] = {".text", ".eh_frame", ".debug_str", ".debug_info", ".dynstr"};
	struct image *image = open_self();
	struct victim v = {.len = image_raw(image).len, .data = malloc(image_raw(image).len)};
	unsigned opened = 0, changed = 0;
	volatile size_t sum = 0;
	pthread_t thread;

	memcpy(v.data, image_raw(image).data, v.len);
	image_destroy(image);
	v.fd = file_with(v.data, v.len);
	assert_int_equal(pthread_create(&thread, NULL, spoil, &v), 0);
	for (unsigned i = 0; i < 200; i++) {
		struct symtab *tab = NULL;

		if (image_open_fd(dup(v.fd), NULL, &image) != 0)
			continue;
		for (size_t s = 0; s < sizeof(sections) / sizeof(sections[0]); s++)
			sum += image_is_unpackable(image) ? sum_of(image_section(image, sections[s])) : 0;
		assert_int_equal(symtab_create(image, NULL, NULL, &tab), 0);
		for (size_t n = 0; n < symtab_len(tab); n++)
			sum += strnlen(symtab_at(tab, n).name, symtab_at(tab, n).name_len);
		symtab_destroy(tab);
		opened++;
		changed += image_has_changed(image);
		image_destroy(image);
	}
	atomic_store(&v.done, true);
	pthread_join(thread, NULL);
	print_message("opened %u times, and changed in %u\n", opened, changed);
	close(v.fd);
	free(v.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header),   cmocka_unit_test(test_offset_to_vaddr),
		cmocka_unit_test(test_bytes_at), cmocka_unit_test(test_damaged_files),
		cmocka_unit_test(test_refused),  cmocka_unit_test(test_sections),
		cmocka_unit_test(test_vdso),     cmocka_unit_test(test_compressed_section),
		cmocka_unit_test(test_damaged_compression), cmocka_unit_test(test_code_bounds),
		cmocka_unit_test(test_changed_while_opened), cmocka_unit_test(test_cut_while_mapped),
		cmocka_unit_test(test_sections_by_number),
		cmocka_unit_test(test_compression_that_changes), cmocka_unit_test(test_spoiled_all_the_time),
	};

	return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
