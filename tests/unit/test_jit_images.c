/* SPDX-License-Identifier: MIT */
#include "elfmake.h"
#include "scratch.h"

#include <errno.h>
#include <elf.h>
#include <sys/mman.h>

#include "elf/symtab.h"
#include "target/jit_images.h"
#include "target/target.h"

/* The target is this process, and one piece of its memory is the test's: what follows that cannot be read. */
enum {
	GUARD = 0x10000,
	BASE = 0x10000000,
	DESCRIPTOR = BASE,
	ENTRIES = BASE + 0x100,
	OBJECTS = BASE + 0x1000,
	SIZE = 0x20000,
};

struct world {
	uint8_t *bytes;
	struct target *target;
	struct snapshot *snap;
	struct notes notes; /* of those who use the objects */
};

static void poke(struct world *w, uint64_t address, const void *data, size_t len)
{
	assert_true(address >= BASE && address - BASE + len <= SIZE);
	memcpy(w->bytes + (address - BASE), data, len);
}

static void poke_descriptor(struct world *w, uint32_t version, uint64_t first)
{
	const uint32_t head[] = {version, 0};
	const uint64_t rest[] = {0, first};

	poke(w, DESCRIPTOR, head, sizeof(head));
	poke(w, DESCRIPTOR + 8, rest, sizeof(rest));
}

static uint64_t entry_at(unsigned i)
{
	return ENTRIES + i * 32;
}

static void poke_entry(struct world *w, unsigned i, uint64_t next, uint64_t object, uint64_t size)
{
	const uint64_t raw[] = {next, 0xdead, object, size};

	poke(w, entry_at(i), raw, sizeof(raw));
}

static struct world *world_create(void)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->bytes = mmap((void *)(uintptr_t)BASE, SIZE + GUARD, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert_int_equal((uintptr_t)w->bytes, BASE);
	assert_int_equal(mprotect(w->bytes + SIZE, GUARD, PROT_NONE), 0);
	assert_int_equal(target_open(getpid(), NULL, &w->target), 0);
	w->snap = snapshot_create(getpid(), arch_host());
	return w;
}

static void world_destroy(struct world *w)
{
	target_close(w->target);
	snapshot_destroy(w->snap);
	notes_deinit(&w->notes);
	munmap(w->bytes, SIZE + GUARD);
	free(w);
}

static void copy_list(struct world *w, uint64_t descriptor)
{
	assert_int_equal(jit_images_copy(w->target, w->snap, descriptor, NULL), 0);
}

/* An object whose code is at [start, start + size), with one function; its size is returned. */
static size_t poke_object(struct world *w, uint64_t at, uint64_t start, uint64_t size, const char *name)
{
	Elf64_Sym symbols[2] = {
		{0}, {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1, .st_size = size}};
	char strtab[64] = "";
	struct elfmake e;
	Elf64_Ehdr ehdr;
	size_t len;

	snprintf(strtab + 1, sizeof(strtab) - 1, "%s", name);
	elfmake_init(&e, EM_X86_64);
	elfmake_section(&e, ".text",
			(Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = start},
			NULL, 0);
	e.shdrs[1].sh_size = size;
	elfmake_section(&e, ".symtab",
			(Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_entsize = sizeof(Elf64_Sym), .sh_link = 3}, symbols,
			sizeof(symbols));
	elfmake_section(&e, ".strtab", (Elf64_Shdr){.sh_type = SHT_STRTAB}, strtab, sizeof(strtab));
	image_destroy(elfmake_image(&e));
	memcpy(&ehdr, e.data, sizeof(ehdr));
	ehdr.e_type = ET_REL;
	memcpy(e.data, &ehdr, sizeof(ehdr));
	poke(w, at, e.data, e.len);
	len = e.len;
	elfmake_deinit(&e);
	return len;
}

static void expect_name(struct jit_images *images, uint64_t address, const char *name)
{
	struct module *module = jit_images_find(images, address);
	struct symtab *tab;
	struct symbol symbol;

	assert_non_null(module);
	assert_true(module->jit);
	assert_non_null(module->image);
	assert_string_equal(module->info.path, "[jit]");
	assert_int_equal(symtab_create(module->image, NULL, NULL, &tab), 0);
	assert_true(symtab_find(tab, address, &symbol));
	assert_int_equal(symbol.name_len, strlen(name));
	assert_memory_equal(symbol.name, name, symbol.name_len);
	symtab_destroy(tab);
}

static void test_list(void **state)
{
	struct world *w = world_create();
	struct jit_images *images;
	size_t len;

	poke_descriptor(w, 1, entry_at(0));
	len = poke_object(w, OBJECTS, 0x70001000, 0x100, "newest");
	poke_entry(w, 0, entry_at(1), OBJECTS, len);
	len = poke_object(w, OBJECTS + 0x2000, 0x70002000, 0x100, "middle");
	poke_entry(w, 1, entry_at(2), OBJECTS + 0x2000, len);
	len = poke_object(w, OBJECTS + 0x4000, 0x70001080, 0x100, "stale");
	poke_entry(w, 2, 0, OBJECTS + 0x4000, len);
	copy_list(w, DESCRIPTOR);
	assert_int_equal(w->snap->jit_images.len, 3);
	assert_int_equal(w->snap->notes.len, 0);

	memset(w->bytes, 0, SIZE); /* the copies are all that is needed */
	images = jit_images_create(w->snap, -1, &w->notes);
	assert_non_null(images);
	assert_null(jit_images_find(images, 0x70000fff));
	expect_name(images, 0x70001000, "newest");
	expect_name(images, 0x700010ff, "newest"); /* also where an older one would be */
	expect_name(images, 0x70001100, "stale");
	expect_name(images, 0x700020ff, "middle");
	assert_ptr_equal(jit_images_find(images, 0x70002000), jit_images_find(images, 0x70002001));
	/* A call that does not return may be the last instruction: what it would return to is behind the code. */
	assert_ptr_equal(jit_images_find(images, 0x70002100), jit_images_find(images, 0x70002000));
	assert_null(jit_images_find(images, 0x70002101));
	jit_images_destroy(images);
	world_destroy(w);
}

static void test_nothing(void **state)
{
	struct world *w = world_create();
	struct jit_images *images;

	poke_descriptor(w, 1, 0);
	copy_list(w, DESCRIPTOR);
	poke_descriptor(w, 2, entry_at(0)); /* another version */
	poke_entry(w, 0, 0, OBJECTS, poke_object(w, OBJECTS, 0x70001000, 0x100, "f"));
	copy_list(w, DESCRIPTOR);
	copy_list(w, 16); /* unreadable */
	assert_int_equal(w->snap->jit_images.len, 0);
	assert_int_equal(w->snap->notes.len, 0);
	images = jit_images_create(w->snap, -1, &w->notes);
	assert_null(jit_images_find(images, 0x70001000));
	jit_images_destroy(images);
	jit_images_destroy(NULL);
	world_destroy(w);
}

static void test_broken_list(void **state)
{
	const uint64_t next[] = {entry_at(0), entry_at(1), 16, BASE + SIZE - 16, UINT64_MAX};

	for (size_t i = 0; i < sizeof(next) / sizeof(next[0]); i++) {
		struct world *w = world_create();
		size_t len = poke_object(w, OBJECTS, 0x70001000, 0x100, "f");

		poke_descriptor(w, 1, entry_at(0));
		poke_entry(w, 0, entry_at(1), OBJECTS, len);
		poke_entry(w, 1, next[i], OBJECTS, len);
		copy_list(w, DESCRIPTOR);
		assert_int_equal(w->snap->jit_images.len, 2);
		assert_int_equal(w->snap->notes.len, 1);
		assert_true(w->snap->asked_bytes < 10 * len); /* it is not followed round and round */
		world_destroy(w);
	}
}

/* One bad object costs only itself. */
static void test_bad_objects(void **state)
{
	static const struct {
		uint64_t address, size;
	} bad[] = {
		{OBJECTS + 0x8000, 0x1000},   /* no ELF */
		{OBJECTS, 0},                 /* empty */
		{OBJECTS, 63},                /* no whole header */
		{OBJECTS, UINT64_MAX},        /* absurd */
		{OBJECTS, UINT64_C(1) << 30}, /* too large */
		{UINT64_MAX - 100, 4096},     /* beyond the end */
		{16, 4096},                   /* unreadable */
		{0, 4096},                    /* nowhere */
		{OBJECTS, SIZE},              /* not whole */
	};
	struct world *w = world_create();
	size_t len = poke_object(w, OBJECTS, 0x70001000, 0x100, "good");
	unsigned n = sizeof(bad) / sizeof(bad[0]);

	poke_descriptor(w, 1, entry_at(0));
	for (unsigned i = 0; i < n; i++)
		poke_entry(w, i, entry_at(i + 1), bad[i].address, bad[i].size);
	poke_entry(w, n, 0, OBJECTS, len);
	copy_list(w, DESCRIPTOR);
	assert_int_equal(w->snap->jit_images.len, 1);
	assert_int_equal(w->snap->jit_images.data[0].len, len);
	assert_int_equal(w->snap->notes.len, 1);
	assert_non_null(strstr(w->snap->notes.data[0], "9 of the objects"));
	world_destroy(w);
}

/* The last of a list: there is no entry to read beside its object. */
static void test_last_is_bad(void **state)
{
	static const uint64_t nowhere[] = {0, 16};

	for (size_t i = 0; i < 2; i++) {
		struct world *w = world_create();
		size_t len = poke_object(w, OBJECTS, 0x70001000, 0x100, "good");

		poke_descriptor(w, 1, entry_at(0));
		poke_entry(w, 0, entry_at(1), OBJECTS, len);
		poke_entry(w, 1, 0, nowhere[i], 4096);
		copy_list(w, DESCRIPTOR);
		assert_int_equal(w->snap->jit_images.len, 1);
		assert_int_equal(w->snap->notes.len, 1);
		assert_non_null(strstr(w->snap->notes.data[0], "1 of the objects"));
		world_destroy(w);
	}
}

/* Objects together may not take more memory than is sensible, however long the list is. */
static void test_too_many(void **state)
{
	enum { COUNT = 100 };
	struct world *w = world_create();
	size_t len = poke_object(w, OBJECTS, 0x70001000, 0x100, "f");

	for (unsigned i = 0; i < COUNT; i++)
		poke_entry(w, i, i + 1 < COUNT ? entry_at(i + 1) : 0, OBJECTS, len);
	poke_descriptor(w, 1, entry_at(0));
	w->snap->asked_bytes = (256 << 20) - 4 * len; /* taken by others */
	copy_list(w, DESCRIPTOR);
	/* Entries take a little, and the object that is being read is not yet counted when the next one is wanted. */
	assert_in_range(w->snap->jit_images.len, 3, 5);
	assert_in_range(w->snap->asked_bytes, (256 << 20) - len, (256 << 20) + 2 * len + COUNT * 64);
	assert_int_equal(w->snap->notes.len, 1);
	world_destroy(w);
}

static void test_damaged_object(void **state)
{
	struct world *w = world_create();
	size_t len = poke_object(w, OBJECTS, 0x70001000, 0x100, "f");
	struct jit_images *images;

	poke_descriptor(w, 1, entry_at(0));
	poke_entry(w, 0, 0, OBJECTS, len);
	copy_list(w, DESCRIPTOR);
	assert_int_equal(w->snap->jit_images.len, 1);
	for (size_t i = 0; i < len; i++) {
		uint8_t *byte = &w->snap->jit_images.data[0].data[i], before = *byte;
		struct module *module;

		*byte ^= 0xff;
		images = jit_images_create(w->snap, -1, &w->notes);
		module = jit_images_find(images, 0x70001000);
		assert_true(!module || module->image);
		jit_images_destroy(images);
		*byte = before;
	}
	world_destroy(w);
}

/* Where the descriptor is found, and where not. */

static struct scratch scratch;

static const char source[] = "struct d { unsigned version, action; void *relevant, *first; };\n"
			     "#ifdef HIDDEN\n"
			     "__attribute__((visibility(\"hidden\")))\n"
			     "#endif\n"
			     "#ifdef USER\n"
			     "extern struct d __jit_debug_descriptor;\n"
			     "#else\n"
			     "struct d __jit_debug_descriptor = {1, 0, 0, 0};\n"
			     "#endif\n"
			     "void *use(void) { return __jit_debug_descriptor.first; }\n";

static int setup(void **state)
{
	scratch_init(&scratch);
	scratch_text(&scratch, "l.c", source);
	return 0;
}

static int teardown(void **state)
{
	scratch_deinit(&scratch);
	return 0;
}

static bool finds(const char *flags, const char *then, uint64_t *vaddr)
{
	struct image *image;
	bool found;

	scratch_run(&scratch, "cc -shared -fPIC -O1 %s -o lib.so l.c && %s", flags, then);
	image = scratch_image(&scratch, "lib.so");
	found = jit_images_find_descriptor(image, vaddr);
	image_destroy(image);
	return found;
}

static void test_descriptor(void **state)
{
	char command[128];
	uint64_t vaddr;

	scratch_needs("nm");
	scratch_needs("strip");
	assert_true(finds("-Wl,--hash-style=gnu", "strip lib.so", &vaddr));
	snprintf(command, sizeof(command), "nm -D lib.so | grep -qi '^0*%llx . __jit_debug_descriptor'",
		 (unsigned long long)vaddr);
	scratch_run(&scratch, "%s", command);
	assert_true(finds("-Wl,--hash-style=sysv", "strip lib.so", &vaddr));
	scratch_run(&scratch, "%s", command);
	assert_true(finds("-DHIDDEN", ":", &vaddr));
	snprintf(command, sizeof(command), "nm lib.so | grep -qi '^0*%llx . __jit_debug_descriptor'",
		 (unsigned long long)vaddr);
	scratch_run(&scratch, "%s", command);
	assert_false(finds("-DHIDDEN", "strip lib.so", &vaddr));
	assert_false(finds("-DUSER", ":", &vaddr));
	assert_false(finds("-D__jit_debug_descriptor=something_else", ":", &vaddr));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),        cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_broken_list), cmocka_unit_test(test_bad_objects),
		cmocka_unit_test(test_too_many),    cmocka_unit_test(test_damaged_object),
		cmocka_unit_test(test_descriptor),  cmocka_unit_test(test_last_is_bad),
	};

	return cmocka_run_group_tests_name("jit_images", tests, setup, teardown);
}
