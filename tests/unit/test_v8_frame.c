/* SPDX-License-Identifier: MIT */
#include "v8make.h"

#include "runtime/v8/frame.h"

enum { FILE_CODE = 0x400000, MADE_CODE = 0x900000, LIBRARY = 0xa00000, STACK = 0x7000, WORDS = 64 };

/* A stack of WORDS words, and code. */
struct stack_mem {
	struct mem mem;
	uint64_t words[WORDS];
	bool has_no_code;
	uint32_t insn; /* that all of it consists of */
};

static ssize_t read_stack(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	const struct stack_mem *s = (const struct stack_mem *)mem;

	for (size_t i = 0; !s->has_no_code && address >= MADE_CODE - 64 && address < MADE_CODE + 64 && i < len; i += 4)
		memcpy((uint8_t *)buf + i, &s->insn, 4);
	if (!s->has_no_code && address >= MADE_CODE - 64 && address < MADE_CODE + 64)
		return (ssize_t)len;
	if (address < STACK || address - STACK > sizeof(s->words) - len)
		return -1;
	memcpy(buf, (const uint8_t *)s->words + (address - STACK), len);
	return (ssize_t)len;
}

static struct map_entry entries[] = {
	{.start = FILE_CODE, .end = FILE_CODE + 0x1000, .perms = MAP_PERM_EXEC, .inode = 7, .path = "/usr/bin/node"},
	{.start = FILE_CODE + 0x10000, .end = FILE_CODE + 0x11000, .perms = MAP_PERM_EXEC, .inode = 7, .path = "/usr/bin/node"},
	{.start = MADE_CODE, .end = MADE_CODE + 0x1000, .perms = MAP_PERM_EXEC, .path = ""},
	{.start = MADE_CODE + 0x1000, .end = MADE_CODE + 0x2000, .perms = MAP_PERM_READ, .path = ""},
	{.start = LIBRARY, .end = LIBRARY + 0x1000, .perms = MAP_PERM_EXEC, .inode = 8, .path = "/lib/libc.so"},
};
static const struct maps maps = {.data = entries, .len = 5};
static const struct v8_process process = {.layout = &v8made.layout, .arch = &arch_aarch64, .maps = &maps};

/* Finds the frame of one pc, whose frame pointer is in the middle of the stack. */
static bool find(struct stack_mem *s, uint64_t pc, uint32_t flags, uint32_t caller_flags, struct v8_place *out)
{
	struct raw_frame frames[] = {
		{.pc = pc, .sp = STACK, .flags = flags},
		{.pc = LIBRARY, .sp = STACK + 32 * 8 + 16, .flags = FRAME_RETURN_ADDRESS | caller_flags},
	};
	const struct raw_stack raw = {.data = frames, .len = 2};
	struct v8_places places = {0};
	bool found;

	s->mem.read = read_stack;
	assert_true(v8_places_find(&process, &s->mem, &raw, &places));
	found = places.len == 1;
	if (found)
		*out = places.data[0];
	vec_deinit(&places);
	return found;
}

static bool find_called(struct stack_mem *s, uint64_t pc, struct v8_place *out)
{
	return find(s, pc, FRAME_RETURN_ADDRESS, FRAME_BY_FRAME_POINTER, out);
}

static void test_places(void **state)
{
	struct stack_mem s = {.words = {[31] = 0x1001, [30] = 0x2001, [28] = 0x3001, [27] = 0x500000000}};
	struct v8_place place;

	assert_true(find_called(&s, FILE_CODE + 16, &place));
	assert_int_equal(place.kind, V8_NO_KIND);
	assert_int_equal(place.function, 0x2001);
	assert_int_equal(place.bytecode, 0x3001);
	assert_int_equal(place.offset, 0x500000000);
	assert_true(place.is_builtin && !place.is_exact);
	assert_true(find_called(&s, FILE_CODE + 0x10000 + 16, &place)); /* the same file once more */
	assert_true(place.is_builtin);
	assert_true(find(&s, MADE_CODE, 0, FRAME_BY_FRAME_POINTER, &place));
	assert_true(place.is_exact && !place.is_builtin);
	assert_int_equal(place.kind, V8_NO_KIND);
	assert_int_equal(place.function, 0x2001);
	assert_int_equal(place.bytecode, 0); /* whatever is there, it is none */
}

/* A function that has just begun, or returns: what is where its frame would be is somebody else's. */
static void test_edges(void **state)
{
	struct stack_mem s = {.words = {[31] = 0x1001, [30] = 0x2001}};
	struct v8_place place;

	assert_true(find(&s, MADE_CODE, 0, FRAME_BY_CODE, &place));
	assert_int_equal(place.kind, V8_AT_EDGE);
	assert_false(v8_place_is_function(&place));
	assert_false(find(&s, FILE_CODE + 16, 0, FRAME_BY_CODE, &place)); /* a builtin has a name of its own */
	s.insn = 0x910003fd; /* mov x29, sp */
	assert_true(find(&s, MADE_CODE, 0, FRAME_BY_FRAME_POINTER, &place));
	assert_int_equal(place.kind, V8_AT_EDGE);
	assert_true(find_called(&s, MADE_CODE + 16, &place));
	assert_int_equal(place.kind, V8_NO_KIND);
	s.insn = 0;
	s.has_no_code = true;
	assert_true(find(&s, MADE_CODE, 0, FRAME_BY_FRAME_POINTER, &place));
	assert_int_equal(place.kind, V8_AT_EDGE);
}

/* What was not passed by frame pointer has unwind information, and other files' code is not V8's. */
static void test_others(void **state)
{
	struct stack_mem s = {.words = {[31] = 0x1001, [30] = 0x2001}};
	struct v8_place place;

	assert_false(find(&s, FILE_CODE + 16, FRAME_RETURN_ADDRESS, 0, &place));
	assert_false(find_called(&s, LIBRARY + 16, &place));
	assert_false(find_called(&s, MADE_CODE + 0x1000 + 16, &place)); /* no code */
	assert_false(find_called(&s, 0x10, &place));
	s.words[30] = 0x2000; /* no object */
	assert_false(find_called(&s, FILE_CODE + 16, &place));
}

static void test_marks(void **state)
{
	struct stack_mem s = {.words = {[31] = 17 << 1, [30] = 0x2001, [35] = 0x5001}};
	struct v8_place place;

	assert_true(find_called(&s, FILE_CODE + 16, &place));
	assert_int_equal(place.kind, 17);
	assert_false(v8_place_is_function(&place));
	s.words[31] = 25 << 1; /* a builtin written in C++ */
	assert_true(find_called(&s, FILE_CODE + 16, &place));
	assert_int_equal(place.function, 0x5001);
	v8made.layout.facts[V8_FRAME_JS_CONTINUATION] = 30;
	s.words[31] = 30 << 1; /* one that goes on where optimised code was left */
	assert_true(find_called(&s, FILE_CODE + 16, &place));
	assert_int_equal(place.kind, 30);
	assert_int_equal(place.function, 0x2001);
}

/* Where V8 is entered, the caller's frame begins farther above: what was called has the frame pointer. */
static void test_entry(void **state)
{
	struct stack_mem s = {.mem.read = read_stack, .words = {[10] = STACK + 20 * 8, [19] = 1 << 1, [29] = 0x1001}};
	struct raw_frame frames[] = {
		{.pc = FILE_CODE + 16, .sp = STACK + 12 * 8, .flags = FRAME_RETURN_ADDRESS | FRAME_BY_FRAME_POINTER},
		{.pc = LIBRARY, .sp = STACK + 32 * 8, .flags = FRAME_RETURN_ADDRESS | FRAME_BY_FRAME_POINTER},
	};
	const struct raw_stack raw = {.data = frames, .len = 2};
	struct v8_places places = {0};

	assert_true(v8_places_find(&process, &s.mem, &raw, &places));
	assert_int_equal(places.len, 1);
	assert_int_equal(places.data[0].kind, 1);
	s.words[10] = STACK + 40 * 8; /* it cannot be there */
	s.words[29] = 17 << 1;
	assert_true(v8_places_find(&process, &s.mem, &raw, &places));
	assert_int_equal(places.len, 2);
	assert_int_equal(places.data[1].kind, 17);
	vec_deinit(&places);
}

/* The innermost frame has no caller, and a sp may be anything. */
static void test_ends(void **state)
{
	struct raw_frame frames[] = {
		{.pc = FILE_CODE, .sp = 0},
		{.pc = FILE_CODE, .sp = 8, .flags = FRAME_BY_FRAME_POINTER},
		{.pc = FILE_CODE, .sp = UINT64_MAX, .flags = FRAME_BY_FRAME_POINTER},
	};
	struct stack_mem s = {.mem = {.read = read_stack}};
	struct raw_stack raw = {.data = frames, .len = 3};
	struct v8_places places = {0};

	assert_true(v8_places_find(&process, &s.mem, &raw, &places));
	raw.len = 0;
	assert_true(v8_places_find(&process, &s.mem, &raw, &places));
	assert_int_equal(places.len, 0);
	vec_deinit(&places);
}

/* A function that begins on line 2 and is at its third. */
static struct v8_place make_function(uint64_t *bytecode)
{
	static const uint8_t table[] = {0x08, 0x4c}; /* bytecode 3: position 18 */
	uint64_t bytes = v8make_bytes(&v8made, table, sizeof(table));
	uint64_t script = v8make_script(&v8made, v8make_string(&v8made, "/a.js"), v8make_string(&v8made, "// 1\nfunction f(\n) {\n g();\n}"));
	const uint64_t slots[] = {v8make_small(77), v8make_small(1), v8make_small(0), v8make_string(&v8made, "f"), v8make_small(-1),
				  v8make_small(15), v8make_small(28), v8make_object(&v8made, V8MAKE_TYPE_SCOPE, 8)};
	struct v8_place place = {.kind = V8_NO_KIND, .is_builtin = true};

	*bytecode = v8make_object(&v8made, V8MAKE_TYPE_BYTECODE, 64);
	v8make_put(&v8made, *bytecode, 8, v8make_small(10));
	v8make_put(&v8made, *bytecode, 32, bytes);
	place.function = v8make_function(&v8made, v8make_scope(&v8made, slots, 8), script);
	place.bytecode = *bytecode;
	place.offset = v8make_small(53 + 5);
	return place;
}

/* A frame that has one function. */
static bool read_frame(const struct v8_place *place, struct js_frame *out)
{
	struct v8_calls calls;

	if (!v8_place_calls(&v8made.heap, place, &calls))
		return false;
	assert_int_equal(calls.len, 1);
	return js_frame_read(&v8made.heap, place, &calls.data[0], out);
}

static void test_function(void **state)
{
	uint64_t bytecode, shared, other;
	struct v8_place place = make_function(&bytecode);
	struct js_frame frame;

	memcpy(&shared, v8made.bytes + (place.function - 1 - V8MAKE_BASE) + 24, sizeof(shared));
	v8make_put(&v8made, shared, 8, bytecode);
	other = v8make_object(&v8made, V8MAKE_TYPE_BYTECODE, 64);
	v8make_put(&v8made, other, 8, v8make_small(10));
	v8make_put(&v8made, other, 32, v8make_bytes(&v8made, "\x08\x4c", 2));
	v8make_finish(&v8made);
	assert_true(read_frame(&place, &frame));
	assert_string_equal(frame.name, "f");
	assert_string_equal(frame.file, "/a.js");
	assert_string_equal(frame.tier, "interpreted");
	assert_int_equal(frame.line, 3);
	assert_int_equal(frame.line_kind, LINE_CURRENT);
	place.is_exact = true;
	assert_true(read_frame(&place, &frame));
	assert_int_equal(frame.line_kind, LINE_APPROXIMATE);
	place.bytecode = other; /* of another function */
	assert_true(read_frame(&place, &frame));
	assert_int_equal(frame.line_kind, LINE_DEFINITION);
	place.is_builtin = false;
	place.bytecode = 0;
	assert_true(read_frame(&place, &frame));
	assert_string_equal(frame.tier, "compiled");
	assert_int_equal(frame.line, 2);
	assert_int_equal(frame.line_kind, LINE_DEFINITION);
	place.function = bytecode;
	assert_false(read_frame(&place, &frame));
}

static void test_builtins(void **state)
{
	uint64_t undefined = v8make_object(&v8made, V8MAKE_TYPE_ODDBALL, 16);
	uint64_t script = v8make_script(&v8made, undefined, undefined);
	struct v8_place map = {.kind = V8_NO_KIND, .is_builtin = true, .function = v8make_function(&v8made, v8make_string(&v8made, "map"), undefined)};
	struct v8_place hidden = {.kind = V8_NO_KIND, .is_builtin = true, .function = v8make_function(&v8made, v8make_small(0), undefined)};
	struct v8_place eval = {.kind = V8_NO_KIND, .is_builtin = true, .function = v8make_function(&v8made, v8make_small(0), script)};
	struct v8_place exit = {.kind = 25, .is_builtin = true, .function = eval.function};
	struct js_frame frame;

	v8make_finish(&v8made);
	assert_true(read_frame(&map, &frame));
	assert_string_equal(frame.name, "map");
	assert_string_equal(frame.file, "");
	assert_string_equal(frame.tier, "builtin");
	assert_false(frame.is_stub);
	assert_true(read_frame(&hidden, &frame));
	assert_true(frame.is_stub);
	assert_true(read_frame(&eval, &frame));
	assert_string_equal(frame.name, "eval");
	assert_string_equal(frame.file, "<anonymous>");
	assert_int_equal(frame.line, 0);
	assert_false(read_frame(&exit, &frame)); /* such code is of no script */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, v8make_set_up, v8make_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_places), TEST(test_edges), TEST(test_others),	TEST(test_marks),
		TEST(test_entry),
		TEST(test_ends),   TEST(test_function), TEST(test_builtins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
