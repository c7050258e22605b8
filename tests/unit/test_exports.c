/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "target/exports.h"

/* Made of a table with one bucket; parts of it are then changed. */
enum { BASE = 0x10000, SIZE = 4096, DYNAMIC = 0x400, TABLE = 0x800, FILTER = TABLE + 16, BUCKETS = FILTER + 8, CHAIN = BUCKETS + 4 };

struct object {
	struct mem mem;
	uint8_t bytes[SIZE];
};

static ssize_t read_object(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	const struct object *object = (const struct object *)mem;
	uint64_t at = address - BASE;

	if (at >= SIZE)
		return -EFAULT;
	len = len < SIZE - at ? len : SIZE - at;
	memcpy(buf, object->bytes + at, len);
	return (ssize_t)len;
}

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

static void put32(struct object *o, uint64_t at, uint32_t value)
{
	memcpy(o->bytes + at, &value, sizeof(value));
}

static struct object make(void)
{
	struct object o = {.mem = {.read = read_object}};
	Elf64_Ehdr file = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64}, .e_phoff = sizeof(file), .e_phnum = 2,
			   .e_phentsize = sizeof(Elf64_Phdr)};
	Elf64_Phdr segments[] = {{.p_type = PT_LOAD}, {.p_type = PT_DYNAMIC, .p_vaddr = DYNAMIC}};
	Elf64_Dyn dynamic[] = {{.d_tag = DT_STRSZ}, {.d_tag = DT_GNU_HASH, .d_un.d_ptr = TABLE}, {.d_tag = DT_NULL}};
	const uint32_t table[] = {1, 5, 1, 6};

	memcpy(o.bytes, &file, sizeof(file));
	memcpy(o.bytes + sizeof(file), segments, sizeof(segments));
	memcpy(o.bytes + DYNAMIC, dynamic, sizeof(dynamic));
	memcpy(o.bytes + TABLE, table, sizeof(table));
	memset(o.bytes + FILTER, 0xff, 8);
	put32(&o, BUCKETS, 6);
	put32(&o, CHAIN + 4, hash_of("other") & ~1u);
	put32(&o, CHAIN + 8, hash_of("_PyRuntime") | 1);
	return o;
}

static bool may_have(struct object o, const char *name)
{
	return exports_may_have(&o.mem, BASE, name);
}

static void test_found(void **state)
{
	struct object o = make();
	Elf64_Dyn relocated = {.d_tag = DT_GNU_HASH, .d_un.d_ptr = BASE + TABLE};

	assert_true(may_have(o, "_PyRuntime"));
	assert_true(may_have(o, "other"));
	assert_false(may_have(o, "something"));
	memcpy(o.bytes + DYNAMIC + sizeof(relocated), &relocated, sizeof(relocated));
	assert_true(may_have(o, "_PyRuntime"));
}

static void test_ruled_out(void **state)
{
	struct object o = make();

	memset(o.bytes + FILTER, 0, 8);
	assert_false(may_have(o, "_PyRuntime"));
	o = make();
	put32(&o, BUCKETS, 0); /* no symbol has such a hash */
	assert_false(may_have(o, "_PyRuntime"));
	o = make();
	put32(&o, CHAIN + 4, hash_of("other") | 1); /* it is the last */
	assert_false(may_have(o, "_PyRuntime"));
}

/* What a process has there may be anything. */
static void test_damaged(void **state)
{
	for (size_t at = 0; at < CHAIN + 16; at++) {
		struct object o = make();

		o.bytes[at] ^= 0xff;
		may_have(o, "_PyRuntime");
	}
	assert_false(exports_may_have(&(struct object){.mem = {.read = read_object}}.mem, BASE, "_PyRuntime"));
	assert_false(may_have(make(), ""));
}

static ssize_t read_own(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	memcpy(buf, (const void *)(uintptr_t)address, len);
	return (ssize_t)len;
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *slash = strrchr(info->dlpi_name, '/');
	struct mem mem = {.read = read_own};

	if (!slash || strncmp(slash, "/libcmocka", 10) != 0)
		return 0;
	assert_true(exports_may_have(&mem, info->dlpi_addr, "_assert_true"));
	assert_false(exports_may_have(&mem, info->dlpi_addr, "_PyRuntime"));
	*(bool *)arg = true;
	return 1;
}

static void test_real_library(void **state)
{
	bool found = false;

	dl_iterate_phdr(look_at_object, &found);
	assert_true(found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_ruled_out),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_real_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
