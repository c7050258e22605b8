/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "hotspot_fake.h"
#include "runtime/hotspot/hotspot.h"

/* Waits over time: what BPF is told, and the names of what it tells. */

enum {
	COMPILE_ID = 96, /* offset in a blob */
	GROWN = FAKE_HEAP_END + 0x100000,
	METHOD_A = FAKE_DATA + 0x1000,
	METHOD_B = FAKE_DATA + 0x1400,
	PCS = 0x180, /* from the start of the blob */
	SCOPES = 0x1c0,
	METADATA = 0x1e0,
	OFFSET = 0x20, /* of the call in the code */
};

/* The process: what is read of it is what it has at that time. */
struct live {
	struct target target;
	struct fake fake;
	void *state;
	uint64_t blob;
	bool is_gone;
};

static ssize_t read_fake(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	struct memory *vm = (struct memory *)mem;
	struct live *l = (struct live *)((char *)vm - offsetof(struct live, target.memory));

	if (l->is_gone || address < FAKE_BASE || address - FAKE_BASE > FAKE_SIZE || len > FAKE_SIZE - (address - FAKE_BASE))
		return -1;
	memcpy(buf, l->fake.bytes + (address - FAKE_BASE), len);
	return (ssize_t)len;
}

/* A method of a class "C"; all that tells of it follows it. */
static void put_method(struct fake *f, uint64_t method, const char *name)
{
	uint64_t constant = method + 0x40, pool = method + 0x80, klass = method + 0x100, at = method + 0x180;

	fake_put(f, method + 8, constant, 8);
	fake_put(f, constant, pool, 8);
	fake_put(f, constant + 10, 4, 2); /* bytes of code */
	fake_put(f, constant + 12, 1, 2); /* its name in the pool */
	fake_put(f, pool, klass, 8);
	fake_put(f, pool + 8, 3, 4);
	fake_put(f, pool + FAKE_POOL + 8, at + 0x40, 8);
	fake_put(f, klass, at, 8);
	fake_symbol(f, at, "C");
	fake_symbol(f, at + 0x40, name);
}

/* What is compiled to the blob from now on. */
static void compile(struct live *l, uint32_t id, uint64_t method)
{
	fake_put(&l->fake, l->blob + COMPILE_ID, id, 4);
	fake_put(&l->fake, l->blob + METADATA, method, 8);
	fake_put(&l->fake, l->blob + FAKE_NM_METHOD, method, 8);
}

static void put_blob(struct live *l)
{
	struct fake *f = &l->fake;
	uint64_t start = fake_blob(f, 1, 5, "nmethod", 6);

	l->blob = start;
	fake_put(f, start + FAKE_NM_LEVEL, 4, 1);
	fake_put(f, start + FAKE_NM_PCS, PCS, 4);
	fake_put(f, start + FAKE_NM_DEPENDENCIES, PCS + 3 * FAKE_PC_DESC, 4);
	fake_put(f, start + FAKE_NM_METADATA, METADATA, 4);
	fake_put(f, start + FAKE_NM_SCOPES, start + SCOPES, 8);
	fake_put(f, start + FAKE_BLOB_CODE_END, start + PCS, 8);
	fake_put(f, start + PCS, UINT32_MAX, 4);
	fake_put(f, start + PCS + FAKE_PC_DESC, OFFSET, 4);
	fake_put(f, start + PCS + FAKE_PC_DESC + 4, 1, 4);
	fake_put(f, start + PCS + 2 * FAKE_PC_DESC, INT32_MAX, 4);
	fake_put(f, start + SCOPES + 2, 1, 1); /* of nobody, the first method, its entry */
}

static int set_up(void **state)
{
	struct live *l = calloc(1, sizeof(*l));
	struct snap_runtime runtime = {.name = "openjdk", .facts = l->fake.layout.facts, .nfacts = HS_FACT_COUNT};
	uint64_t *facts = l->fake.layout.facts;

	fake_init(&l->fake);
	fake_field(&l->fake, HS_NM_COMPILE_ID, COMPILE_ID, 4, true);
	facts[HS_HEAP_LIMITS] = GROWN;
	facts[HS_HEAP_LIMITS + 1] = FAKE_SEGMAP_END + 0x2000;
	facts[HS_INTERPRETER] = FAKE_HEAP + 0x4000;
	facts[HS_INTERPRETER_SIZE] = 0x1000;
	put_blob(l);
	put_method(&l->fake, METHOD_A, "first");
	put_method(&l->fake, METHOD_B, "second");
	l->target.process.dir_fd = l->target.process.mm_fd = -1;
	l->target.memory.mem.read = read_fake;
	l->target.snap = snapshot_create(1, &arch_aarch64);
	assert_non_null(snapshot_add_runtime(l->target.snap, &runtime));
	assert_true(hotspot_runtime.detect(&l->target, &l->state));
	*state = l;
	return 0;
}

static int tear_down(void **state)
{
	struct live *l = *state;

	hotspot_runtime.destroy(l->state);
	snapshot_destroy(l->target.snap);
	fake_deinit(&l->fake);
	free(l);
	return 0;
}

static void test_described(void **state)
{
	struct live *l = *state;
	struct offcpu_runtime told = {0};

	assert_true(hotspot_runtime.describe(l->state, &told));
	assert_int_equal(told.hotspot.nheaps, 1);
	assert_int_equal(told.hotspot.low, FAKE_HEAP);
	assert_int_equal(told.hotspot.high, GROWN);
	assert_int_equal(told.hotspot.heaps[0].high, GROWN);
	assert_int_equal(told.hotspot.heaps[0].map, FAKE_SEGMAP);
	assert_int_equal(told.hotspot.interpreter_end - told.hotspot.interpreter, 0x1000);
	assert_int_equal(told.hotspot.call_return, FAKE_CALL_RETURN);
	assert_int_equal(told.hotspot.bytecode, -72);
	assert_int_equal(told.hotspot.head, COMPILE_ID + 4);
	assert_int_equal(told.hotspot.frame_size.offset, FAKE_BLOB_FRAME_SIZE);
	assert_true(told.hotspot.frame_size.is_signed);
	assert_int_equal(told.hotspot.code_offset.size, 0);
}

/* A release of which it is not known where the interpreter is, or whose blobs are larger than anything that BPF reads. */
static void test_not_described(void **state)
{
	struct live *l = *state;
	struct offcpu_runtime told = {0};
	struct snap_runtime *saved = snapshot_find_runtime(l->target.snap, "openjdk");
	uint64_t *facts = (uint64_t *)saved->facts;
	void *other;

	facts[HS_NM_COMPILE_ID] = layout_pack_field(OFFCPU_HOTSPOT_HEAD, 4, true);
	assert_true(hotspot_runtime.detect(&l->target, &other));
	assert_false(hotspot_runtime.describe(other, &told));
	hotspot_runtime.destroy(other);
	facts[HS_NM_COMPILE_ID] = layout_pack_field(COMPILE_ID, 4, true);
	facts[HS_INTERPRETER] = HS_ABSENT;
	assert_true(hotspot_runtime.detect(&l->target, &other));
	assert_false(hotspot_runtime.describe(other, &told));
	hotspot_runtime.destroy(other);
	assert_int_equal(told.hotspot.high, 0);
}

/* A stack with one frame, of the blob when it had that number; the name that it gets. */
static void name(struct live *l, uint32_t version, bool learns, char out[64])
{
	struct raw_frame pc = {.pc = l->blob + FAKE_CODE + OFFSET, .flags = FRAME_RETURN_ADDRESS};
	struct raw_stack raw = {0};
	struct stack stack = {0};

	assert_true(vec_push(&raw, pc));
	assert_true(vec_push(&raw.runtime, (struct runtime_frame){.code = l->blob,
								  .place = l->blob + FAKE_CODE + OFFSET,
								  .version = version,
								  .runtime = FRAME_KIND_JAVA}));
	assert_true(vec_push(&stack, (struct frame){.kind = FRAME_KIND_NATIVE}));
	if (learns)
		hotspot_runtime.learn(l->state, &raw);
	assert_true(hotspot_runtime.merge(l->state, &raw, false, &stack));
	assert_int_equal(stack.len, 1);
	snprintf(out, 64, "%s", stack.data[0].kind == FRAME_KIND_JAVA ? stack.data[0].symbol : "");
	vec_deinit(&stack);
	raw_stack_deinit(&raw);
}

/* The blob of a method is given to another one: a stack has the name that was true for it, or none. */
static void test_compiled_anew(void **state)
{
	struct live *l = *state;
	struct offcpu_runtime told = {0};
	char found[64];

	assert_true(hotspot_runtime.describe(l->state, &told));
	compile(l, 7, METHOD_A);
	name(l, 7, true, found);
	assert_string_equal(found, "C.first");
	compile(l, 8, METHOD_B);
	name(l, 6, true, found); /* nobody looked while it was there */
	assert_string_equal(found, "");
	name(l, 8, true, found);
	assert_string_equal(found, "C.second");
	name(l, 7, true, found);
	assert_string_equal(found, "C.first");
}

/* What was learnt is known when the process is gone, and nothing else. */
static void test_gone(void **state)
{
	struct live *l = *state;
	struct offcpu_runtime told = {0};
	char found[64];

	assert_true(hotspot_runtime.describe(l->state, &told));
	compile(l, 7, METHOD_A);
	name(l, 7, true, found);
	l->is_gone = true;
	name(l, 7, true, found);
	assert_string_equal(found, "C.first");
	name(l, 8, true, found);
	assert_string_equal(found, "");
}

static void test_likely(void **state)
{
	struct map_entry entries[] = {{.path = "/usr/bin/java"}, {.path = ""}, {.path = "/opt/jdk/lib/server/libjvm.so"}};
	struct maps maps = {.data = entries, .len = 3};

	assert_true(hotspot_runtime.is_likely(&maps, NULL));
	entries[2].path = "/tmp/libjvm.so.old";
	assert_false(hotspot_runtime.is_likely(&maps, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_described, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_not_described, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_compiled_anew, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_gone, set_up, tear_down),
		cmocka_unit_test(test_likely),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
