/* SPDX-License-Identifier: MIT */
#include "pymem.h"

#include "runtime/python/blocks.h"

/* A page of the process: a thread with two frames, of which the outer one is in a block of LOCK. */
enum {
	BASE = PYMEM_BASE,
	LOCK = BASE + 0x100,
	EXIT = BASE + 0x200, /* the method, */
	EXIT_TYPE = BASE + 0x300,
	EXIT_TYPE_NAME = BASE + 0x480,
	DEFINITION = BASE + 0x500,
	EXIT_NAME = BASE + 0x540,
	CODE = BASE + 0x600, /* and another one behind it */
	CODE_SIZE = 0x100,
	TABLE = BASE + 0x900, /* of handlers */
	VARIABLES = BASE + 0xa00,
	NAMES = BASE + 0xb00,
	TEXTS = BASE + 0xc00,
	TEXT_SIZE = 0x80,
	FRAMES = BASE + 0x1000,
	FRAME_SIZE = 0x400,

	AT_EXCEPTIONS = 40, /* in a code object */
	AT_VARIABLES = 96,
	AT_NAMES = 32,
	AT_BYTES = 0xc0,
	AT_LOCALS = 72, /* in a frame */
	NVARIABLES = 2,
};

struct fixture {
	struct pymem pymem;
	struct python_layout layout;
	struct python_blocks blocks;
	struct python_chain chain;
	struct u64map locks;
};

static void put_text(struct fixture *f, uint64_t address, const char *text)
{
	pymem_put(&f->pymem, address, text, strlen(text) + 1);
}

static uint64_t value_at(size_t frame, uint64_t i)
{
	return FRAMES + frame * FRAME_SIZE + AT_LOCALS + (NVARIABLES + i) * 8;
}

/* Four numbers each: from which instruction on, how many, the handler, and twice how many values are left. */
static void put_handlers(struct fixture *f, const uint8_t *table, size_t len)
{
	pymem_put64(&f->pymem, TABLE + 16, len);
	pymem_put(&f->pymem, TABLE + 32, table, len);
}

/* One of two in a tuple: a str of ASCII. */
static void put_name(struct fixture *f, uint64_t tuple, size_t i, const char *name)
{
	const uint64_t text = TEXTS + i * TEXT_SIZE;

	pymem_put64(&f->pymem, tuple + 24 + i % 2 * 8, text);
	pymem_put64(&f->pymem, text + 8, TEXTS - 0x20); /* a type that nobody looks at but by its address */
	pymem_put_str(&f->pymem, text, name);
}

static void put_exit(struct fixture *f, const char *type, uint64_t definition)
{
	pymem_put64(&f->pymem, EXIT + 8, EXIT_TYPE);
	pymem_put64(&f->pymem, EXIT + definition, DEFINITION);
	pymem_put64(&f->pymem, EXIT_TYPE + 24, EXIT_TYPE_NAME);
	memset(f->pymem.bytes + (EXIT_TYPE_NAME - BASE), 0, 64);
	put_text(f, EXIT_TYPE_NAME, type);
	pymem_put64(&f->pymem, DEFINITION, EXIT_NAME);
	put_text(f, EXIT_NAME, "__exit__");
}

static void begin(struct fixture *f)
{
	static const uint8_t block[] = {128 | 4, 10, 20, 3 << 1 | 1}; /* instructions 4 to 13 */
	bool created;

	*f = (struct fixture){.pymem.mem.read = pymem_read};
	f->layout.at[PY_VERSION] = 0x030c0000;
	f->layout.at[PY_FRAMES] = PY_FRAMES_SHIM;
	f->layout.at[PY_CODE_EXCEPTIONS] = AT_EXCEPTIONS;
	f->layout.at[PY_CODE_VARIABLES] = AT_VARIABLES;
	f->layout.at[PY_CODE_NAMES] = AT_NAMES;
	f->layout.at[PY_CODE_BYTES] = AT_BYTES;
	f->layout.at[PY_FRAME_LOCALS] = AT_LOCALS;
	f->layout.at[PY_STR_ASCII] = 40;
	f->layout.at[PY_STR_OTHER] = 56;
	assert_true(python_blocks_init(&f->blocks, &f->layout, &f->pymem.mem));
	assert_non_null(u64map_put(&f->locks, LOCK, &created));
	for (size_t i = 0; i < 2; i++) {
		const uint64_t code = CODE + i * CODE_SIZE;

		pymem_put64(&f->pymem, code + AT_EXCEPTIONS, i ? TABLE : TABLE + 0x80); /* the inner one has none */
		pymem_put64(&f->pymem, code + AT_VARIABLES, VARIABLES);
		pymem_put64(&f->pymem, code + AT_NAMES, i ? NAMES : NAMES + 0x80); /* nor does it name anything */
		f->chain.frames[i] = (struct python_frame){.address = FRAMES + i * FRAME_SIZE, .code = code, .instr = code + AT_BYTES + 2 * 5};
	}
	f->chain.len = 2;
	pymem_put64(&f->pymem, VARIABLES + 16, NVARIABLES);
	pymem_put64(&f->pymem, NAMES + 16, 2);
	put_name(f, NAMES, 0, "print");
	put_name(f, NAMES, 1, "acquire");
	put_name(f, VARIABLES, 2, "self");
	put_name(f, VARIABLES, 3, "i");
	put_handlers(f, block, sizeof(block));
	put_exit(f, "builtin_function_or_method", 16);
	pymem_put64(&f->pymem, EXIT + 24, LOCK);
	pymem_put64(&f->pymem, value_at(1, 1), EXIT);
}

static void end(struct fixture *f)
{
	python_blocks_deinit(&f->blocks);
	u64map_deinit(&f->locks);
}

/* Whether the lock is found, and nothing else. */
static bool is_found(struct fixture *f)
{
	const struct budget budget = f->blocks.budget;
	uint64_t found[PYTHON_MAX_BLOCK_LOCKS];
	size_t n;

	python_blocks_deinit(&f->blocks); /* it knows nothing any more */
	assert_true(python_blocks_init(&f->blocks, &f->layout, &f->pymem.mem));
	f->blocks.budget = budget;
	n = python_blocks_find(&f->blocks, &f->chain, &f->locks, found);
	assert_true(n <= 1 && (!n || found[0] == LOCK));
	return n;
}

static void test_block(void **state)
{
	struct fixture f;

	begin(&f);
	assert_true(is_found(&f));
	pymem_put64(&f.pymem, EXIT + 24, LOCK + 16); /* another one, which nobody waits for */
	assert_false(is_found(&f));
	pymem_put64(&f.pymem, EXIT + 24, LOCK);
	put_text(&f, EXIT_NAME, "__enter_");
	assert_false(is_found(&f));
	put_text(&f, EXIT_NAME, "__exit__");
	put_text(&f, EXIT_TYPE_NAME, "method");
	assert_false(is_found(&f));
	end(&f);
}

/* What is left there from a block that is over. */
static void test_over(void **state)
{
	static const uint8_t numbers[] = {3, 4, 13, 14};
	struct fixture f;

	begin(&f);
	for (size_t i = 0; i < sizeof(numbers); i++) {
		f.chain.frames[1].instr = CODE + CODE_SIZE + AT_BYTES + 2 * (uint64_t)numbers[i];
		assert_int_equal(is_found(&f), numbers[i] == 4 || numbers[i] == 13);
	}
	f.chain.frames[1].instr = CODE + CODE_SIZE + AT_BYTES - 2; /* before the first */
	assert_false(is_found(&f));
	end(&f);
}

/* Above the values that an exception would leave. */
static void test_depth(void **state)
{
	struct fixture f;

	begin(&f);
	pymem_put64(&f.pymem, value_at(1, 1), 0);
	pymem_put64(&f.pymem, value_at(1, 2), EXIT);
	assert_true(is_found(&f));
	pymem_put64(&f.pymem, value_at(1, 2), 0);
	pymem_put64(&f.pymem, value_at(1, 3), EXIT);
	assert_false(is_found(&f));
	end(&f);
}

/* Numbers of more than six bits, several handlers, and a table that ends too early. */
static void test_handlers(void **state)
{
	static const uint8_t long_table[] = {128 | 1, 1, 9, 0, 128 | 64 | 2, 1, 64 | 1, 0, 20, 2 << 1};
	struct fixture f;

	begin(&f);
	put_handlers(&f, long_table, sizeof(long_table));
	assert_false(is_found(&f));
	f.chain.frames[1].instr = CODE + CODE_SIZE + AT_BYTES + 2 * (2 * 64 + 1);
	assert_true(is_found(&f));
	put_handlers(&f, long_table, sizeof(long_table) - 1);
	assert_false(is_found(&f));
	put_handlers(&f, long_table, 0);
	assert_false(is_found(&f));
	pymem_put64(&f.pymem, CODE + CODE_SIZE + AT_EXCEPTIONS, 0x5000000); /* nothing is there */
	assert_false(is_found(&f));
	end(&f);
}

/* From the block inwards. */
static void test_release(void **state)
{
	struct fixture f;

	begin(&f);
	put_name(&f, NAMES, 1, "release");
	assert_false(is_found(&f));
	put_name(&f, NAMES, 1, "_release_save");
	assert_false(is_found(&f));
	put_name(&f, NAMES, 1, "acquire");
	assert_true(is_found(&f));
	put_name(&f, VARIABLES, 3, "and_release"); /* that it was called with */
	assert_false(is_found(&f));
	put_name(&f, VARIABLES, 3, "i");
	pymem_put64(&f.pymem, CODE + AT_NAMES, 0x5000000); /* of the inner one it is not known */
	assert_false(is_found(&f));
	pymem_put64(&f.pymem, CODE + AT_NAMES, NAMES);
	assert_true(is_found(&f));
	pymem_put64(&f.pymem, NAMES + 16, 100000);
	assert_false(is_found(&f));
	end(&f);
}

/* So many frames cannot be looked at; then nobody is named. */
static void test_work(void **state)
{
	struct fixture f;

	begin(&f);
	f.blocks.budget.left = 11; /* two frames, three values, six names */
	assert_true(is_found(&f));
	assert_false(f.blocks.budget.refused);
	assert_false(is_found(&f));
	assert_true(f.blocks.budget.refused);
	end(&f);
}

/* Since 3.14 the lock is beside the method, and both have tags. */
static void test_unbound(void **state)
{
	struct fixture f;

	begin(&f);
	f.layout.at[PY_VERSION] = 0x030e0000;
	pymem_put64(&f.pymem, NAMES + 16, 0); /* tuples are otherwise, too */
	for (size_t i = 0; i < 2; i++) /* further on */
		pymem_put64(&f.pymem, VARIABLES + 32 + i * 8, TEXTS + (2 + i) * TEXT_SIZE);
	assert_false(is_found(&f));
	put_exit(&f, "method_descriptor", 40);
	pymem_put64(&f.pymem, value_at(1, 1), EXIT | 1);
	assert_false(is_found(&f));
	pymem_put64(&f.pymem, value_at(1, 2), LOCK | 1);
	assert_true(is_found(&f));
	end(&f);
}

/* Up to 3.10 a frame knows its blocks and where its values are. */
static void test_blocks_of_a_frame(void **state)
{
	enum { INSTR = 96, LOCALS = 352, COUNT = INSTR + 8, FIRST = LOCALS - 240, FRAME = FRAMES + FRAME_SIZE };
	struct fixture f;

	begin(&f);
	f.layout.at[PY_VERSION] = 0x030a0000;
	f.layout.at[PY_FRAMES] = PY_FRAMES_OBJECTS;
	f.layout.at[PY_FRAME_INSTR] = INSTR;
	f.layout.at[PY_FRAME_LOCALS] = LOCALS;
	memset(f.pymem.bytes + (FRAMES - BASE), 0, 2 * FRAME_SIZE);
	pymem_put64(&f.pymem, FRAME + 64, FRAME + LOCALS + 8);
	pymem_put64(&f.pymem, FRAME + LOCALS + 8 + 16, EXIT);
	pymem_put64(&f.pymem, FRAME + COUNT, 2);
	pymem_put64(&f.pymem, FRAME + FIRST + 8, 3);
	pymem_put64(&f.pymem, FRAME + FIRST + 12 + 8, 3);
	assert_true(is_found(&f));
	pymem_put64(&f.pymem, FRAME + FIRST + 12 + 8, 2);
	assert_false(is_found(&f));
	pymem_put64(&f.pymem, FRAME + COUNT, 1);
	assert_true(is_found(&f));
	pymem_put64(&f.pymem, FRAME + COUNT, 0);
	assert_false(is_found(&f));
	pymem_put64(&f.pymem, FRAME + COUNT, 21);
	assert_false(is_found(&f));
	pymem_put64(&f.pymem, FRAME + COUNT, 1);
	pymem_put64(&f.pymem, FRAME + FIRST + 8, 1000000);
	assert_false(is_found(&f));
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_block),	 cmocka_unit_test(test_over),	 cmocka_unit_test(test_depth),
		cmocka_unit_test(test_handlers), cmocka_unit_test(test_release), cmocka_unit_test(test_unbound),
		cmocka_unit_test(test_blocks_of_a_frame), cmocka_unit_test(test_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
