/* SPDX-License-Identifier: MIT */
#include "v8make.h"

#include "runtime/v8/wait_frames.h"

enum { FUNCTION_PLACE = OFFCPU_V8_FUNCTION, EXIT = 25 };

static struct v8make m;
static struct v8_names named;
static struct v8_wait_frames told;

/* The memory of a process, of which something may change when it has been read so often. */
struct moving_mem {
	struct mem mem;
	int reads;
	int change_at; /* 0: never */
	uint64_t object, offset, word;
};

static ssize_t read_process(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	struct moving_mem *p = (struct moving_mem *)mem;

	if (++p->reads == p->change_at)
		v8make_put(&m, p->object, p->offset, p->word);
	if (address < V8MAKE_BASE || address - V8MAKE_BASE > V8MAKE_SIZE - len)
		return -1;
	memcpy(buf, m.bytes + (address - V8MAKE_BASE), len);
	return (ssize_t)len;
}

static int set_up(void **state)
{
	v8make_init(&m);
	assert_true(v8_names_init(&named));
	v8_wait_frames_init(&told, &m.layout, &named);
	return 0;
}

static int tear_down(void **state)
{
	v8_wait_frames_deinit(&told);
	v8_names_deinit(&named);
	v8make_deinit(&m);
	return 0;
}

static uint64_t word_of(uint64_t object, size_t offset)
{
	uint64_t word;

	memcpy(&word, m.bytes + (object - 1 - V8MAKE_BASE) + offset, sizeof(word));
	return word;
}

static uint64_t place_of(uint64_t kind, bool builtin, uint64_t offset, uint64_t shared)
{
	uint64_t proof = shared ? offcpu_v8_proof(word_of(shared, 16), word_of(shared, 32)) : 0;

	return proof << OFFCPU_V8_PROOF_BIT | kind << OFFCPU_V8_KIND_BIT | (uint64_t)builtin << OFFCPU_V8_BUILTIN_BIT | offset;
}

/* A function that begins on line 2, and the interpreter is at its third. */
static uint64_t make_shared(const char *name, uint64_t *bytecode)
{
	static const uint8_t table[] = {0x08, 0x4c}; /* bytecode 3: position 18 */
	uint64_t bytes = v8make_bytes(&m, table, sizeof(table));
	uint64_t script = v8make_script(&m, v8make_string(&m, "/a.js"), v8make_string(&m, "// 1\nfunction f(\n) {\n g();\n}"));
	const uint64_t slots[] = {v8make_small(77), v8make_small(1), v8make_small(0), v8make_string(&m, name), v8make_small(-1),
				  v8make_small(15), v8make_small(28), v8make_object(&m, V8MAKE_TYPE_SCOPE, 8)};

	*bytecode = v8make_object(&m, V8MAKE_TYPE_BYTECODE, 64);
	v8make_put(&m, *bytecode, 8, v8make_small(10));
	v8make_put(&m, *bytecode, 32, bytes);
	return word_of(v8make_function(&m, v8make_scope(&m, slots, 8), script), 24);
}

static const struct frame *name_at(struct moving_mem *p, uint64_t pc, struct runtime_frame *frame)
{
	struct raw_frame native = {.pc = pc, .flags = FRAME_RETURN_ADDRESS};
	const struct raw_stack raw = {.data = &native, .len = 1, .runtime = {.data = frame, .len = 1}};
	struct v8_named found;

	p->mem.read = read_process;
	frame->runtime = FRAME_KIND_JS;
	v8_wait_frames_learn(&told, &p->mem, &raw);
	v8_wait_frames_find(&told, &raw, frame, &found);
	return found.len ? &named.frames.data[found.data[0]] : NULL;
}

static const struct frame *name(struct moving_mem *p, struct runtime_frame *frame)
{
	return name_at(p, 0, frame);
}

static void test_names(void **state)
{
	uint64_t bytecode, shared = make_shared("f", &bytecode);
	struct runtime_frame interpreted = {
		.code = shared, .more = bytecode, .place = place_of(FUNCTION_PLACE, true, 53 + 5 + 1, shared)};
	struct runtime_frame compiled = {.code = shared, .place = place_of(FUNCTION_PLACE, false, 0, shared)};
	struct moving_mem p = {0};
	const struct frame *frame = name(&p, &interpreted);
	int reads = p.reads;

	assert_non_null(frame);
	assert_int_equal(frame->kind, FRAME_KIND_JS);
	assert_string_equal(frame->symbol, "f");
	assert_string_equal(frame->file, "/a.js");
	assert_string_equal(frame->tier, "interpreted");
	assert_int_equal(frame->line, 3);
	assert_int_equal(frame->line_kind, LINE_CURRENT);
	assert_ptr_equal(name(&p, &interpreted), frame);
	assert_int_equal(p.reads, reads); /* what has a name is not read again */
	frame = name(&p, &compiled);
	assert_non_null(frame);
	assert_string_equal(frame->tier, "compiled");
	assert_int_equal(frame->line, 2);
	assert_int_equal(frame->line_kind, LINE_DEFINITION);
}

/* A mark without a function says what kind of frame it is, of V8's own or of what it made. */
static void test_marks(void **state)
{
	uint64_t undefined = v8make_object(&m, V8MAKE_TYPE_ODDBALL, 16);
	uint64_t shared = word_of(v8make_function(&m, v8make_string(&m, "wait"), undefined), 24);
	struct runtime_frame entry = {.place = place_of(1, true, 0, 0)};
	struct runtime_frame edge = {.place = place_of(OFFCPU_V8_AT_EDGE, false, 0, 0)};
	struct runtime_frame exit = {.code = shared, .place = place_of(EXIT, true, 0, shared)};
	struct moving_mem p = {0};
	const struct frame *frame = name(&p, &entry);

	assert_int_equal(frame->kind, FRAME_KIND_STUB);
	assert_string_equal(frame->symbol, "EntryFrame");
	assert_string_equal(name(&p, &edge)->symbol, "<entry or return of a function>");
	frame = name(&p, &exit);
	assert_int_equal(frame->kind, FRAME_KIND_JS);
	assert_string_equal(frame->symbol, "wait");
	assert_string_equal(frame->tier, "builtin");
}

/* What BPF saw is not there any more, or goes while it is read: there is no name. */
static void test_moved(void **state)
{
	uint64_t bytecode, shared = make_shared("f", &bytecode), other = make_shared("g", &bytecode);
	struct runtime_frame frame = {.code = shared, .place = place_of(FUNCTION_PLACE, true, 0, shared)};
	struct runtime_frame nowhere = {.code = 0x10001, .place = frame.place}, none = {.code = 0x10002, .place = frame.place};
	struct moving_mem p = {.object = shared, .offset = 16, .word = word_of(other, 16)};
	int reads;

	assert_null(name(&p, &nowhere));
	assert_null(name(&p, &none));
	p.reads = 0;
	p.change_at = 1;
	assert_null(name(&p, &frame));
	frame.place = place_of(FUNCTION_PLACE, true, 0, shared); /* BPF saw the other one there */
	p.reads = p.change_at = 0;
	assert_string_equal(name(&p, &frame)->symbol, "g");

	/* At each instant of reading, until it is looked at for the last time. */
	reads = p.reads;
	assert_true(reads > 4);
	for (int at = 1; at < reads; at++) {
		v8_wait_frames_deinit(&told);
		v8_wait_frames_init(&told, &m.layout, &named);
		v8make_put(&m, shared, 16, word_of(other, 16));
		p = (struct moving_mem){.object = shared, .offset = 16, .word = v8make_small(0), .change_at = at};
		assert_null(name(&p, &frame));
	}
}

/* Baseline code, whose place has the number of a process above its address. What goes while it is read has no wrong line. */
static void test_code(void **state)
{
	static const uint8_t table[] = {0x08, 0x4c}, bytecodes[] = {12, 12, 12, 12, 12}, lengths[] = {16, 4, 4, 4, 4, 4};
	uint64_t none, shared = make_shared("f", &none), other = make_shared("g", &none);
	uint64_t bytecode = v8make_bytecode(&m, bytecodes, sizeof(bytecodes), v8make_bytes(&m, table, sizeof(table)));
	struct v8make_code code = v8make_code(&m, V8MAKE_BASELINE, 64, NULL, 0);
	uint64_t positions = v8make_bytes(&m, lengths, sizeof(lengths)), pc = UINT64_C(0x1001) << 48 | (code.start + 32);
	struct runtime_frame frame = {.code = shared, .place = place_of(FUNCTION_PLACE, false, 0, shared)};
	struct moving_mem p = {0};
	const struct frame *found;
	int reads, without = 0;

	v8make_put(&m, shared, 8, bytecode);
	v8make_put(&m, code.object, 16, bytecode);
	v8make_put(&m, code.object, 24, positions);
	found = name_at(&p, pc, &frame);
	assert_non_null(found);
	assert_int_equal(found->line, 3);
	assert_int_equal(found->line_kind, LINE_CURRENT);
	found = name_at(&p, pc - 16, &frame); /* another place in the same code */
	assert_non_null(found);
	assert_int_equal(found->line_kind, LINE_DEFINITION);
	reads = p.reads;
	for (int at = 1; at < reads; at++) {
		v8_wait_frames_deinit(&told);
		v8_wait_frames_init(&told, &m.layout, &named);
		v8make_put(&m, code.object, 16, bytecode);
		p = (struct moving_mem){.object = code.object, .offset = 16, .word = other, .change_at = at};
		found = name_at(&p, pc, &frame);
		without += !found;
		assert_true(!found || (found->line == 3 && found->line_kind == LINE_CURRENT) ||
			    (found->line == 2 && found->line_kind == LINE_DEFINITION));
	}
	assert_true(without > 0);
}

/* Builtins that V8 has mapped once more: what lies between the two is none of its file. */
static void test_describe_copies(void **state)
{
	struct map_entry entries[] = {
		{.start = 0x3ff000, .end = 0x400000, .offset = 0x2000, .perms = MAP_PERM_EXEC, .inode = 7, .path = "/usr/bin/node"},
		{.start = 0x400000, .end = 0x401000, .offset = 0, .perms = MAP_PERM_EXEC, .inode = 7, .path = "/usr/bin/node"},
		{.start = 0x402000, .end = 0x404000, .offset = 0x2000, .perms = MAP_PERM_EXEC, .inode = 7, .path = "/usr/bin/node"},
		{.start = 0x7f0000000000, .end = 0x7f0000001000, .offset = 0x3000, .perms = MAP_PERM_EXEC, .inode = 7, .path = "/usr/bin/node"},
	};
	const struct maps maps = {.data = entries, .len = 4};
	struct offcpu_v8 v8;

	assert_true(v8_wait_frames_describe(&m.layout, &maps, &v8));
	assert_int_equal(v8.code_start, 0x400000);
	assert_int_equal(v8.code_end, 0x404000);
	assert_true(v8.has_copies);
}

/* Optimised code that V8 has left since: nobody knows any more what was inlined. */
static void test_left_code(void **state)
{
	static const uint8_t safepoints[] = {1, 0, 0, 0, 1 | 1 << 4 | 1 << 7, 0, 0, 0, 32, 1, 0};
	uint64_t none, shared = make_shared("f", &none);
	struct v8make_code code = v8make_code(&m, V8MAKE_TURBOFAN, 64, safepoints, sizeof(safepoints));
	struct runtime_frame frame = {.code = shared, .place = place_of(FUNCTION_PLACE, false, 0, shared)};
	struct moving_mem p = {0};

	v8make_put(&m, code.object, 16, v8make_array(&m, V8MAKE_TYPE_ARRAY, NULL, 0));
	assert_null(name_at(&p, code.start + 32, &frame));
	assert_non_null(name_at(&p, code.start + 16, &frame)); /* where V8 never had anything to tell */
}

static void test_describe(void **state)
{
	struct map_entry entries[] = {
		{.start = 0x400000, .end = 0x401000, .perms = MAP_PERM_EXEC, .inode = 7, .path = "/usr/bin/node"},
		{.start = 0x401000, .end = 0x402000, .perms = MAP_PERM_READ, .inode = 7, .path = "/usr/bin/node"},
		{.start = 0x402000, .end = 0x403000, .offset = 0x2000, .perms = MAP_PERM_EXEC, .inode = 7, .path = "/usr/bin/node"},
		{.start = 0x403000, .end = 0x404000, .perms = MAP_PERM_EXEC, .inode = 8, .path = "/usr/lib/libc.so"},
	};
	const struct maps maps = {.data = entries, .len = 4}, none = {0};
	struct offcpu_v8 v8;

	assert_true(v8_wait_frames_describe(&m.layout, &maps, &v8));
	assert_int_equal(v8.code_start, 0x400000);
	assert_int_equal(v8.code_end, 0x403000);
	assert_int_equal(v8.frame_context, 7);
	assert_int_equal(v8.frame_function, 6);
	assert_int_equal(v8.frame_bytecode, 4);
	assert_int_equal(v8.frame_offset, 3);
	assert_int_equal(v8.function_shared, 3);
	assert_int_equal(v8.shared_name, 2);
	assert_int_equal(v8.shared_script, 4);
	assert_int_equal(v8.type_shared, V8MAKE_TYPE_SHARED);
	assert_false(v8.has_copies);
	assert_false(v8_wait_frames_describe(&m.layout, &none, &v8));
	m.layout.facts[V8_SHARED_SCRIPT] = 56; /* behind what is read */
	assert_false(v8_wait_frames_describe(&m.layout, &maps, &v8));
	m.layout.facts[V8_SHARED_SCRIPT] = 12;
	assert_false(v8_wait_frames_describe(&m.layout, &maps, &v8));
	m.layout.facts[V8_SHARED_SCRIPT] = 32;
	m.layout.facts[V8_FP_FUNCTION] = 16; /* above the frame pointer */
	assert_false(v8_wait_frames_describe(&m.layout, &maps, &v8));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_names), TEST(test_marks), TEST(test_moved), TEST(test_code), TEST(test_left_code), TEST(test_describe),
		TEST(test_describe_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
