/* SPDX-License-Identifier: MIT */
/* What is printed for an address, in each format. */
#include "scratch.h"

#include "cmd/answer.h"

static const char source[] = "extern int far(int);\n"
			     "static inline __attribute__((always_inline)) int deep(int x)\n"
			     "{\n"
			     "	return far(x);\n"
			     "}\n"
			     "\n"
			     "__attribute__((noinline)) int _Z5outeri(int x)\n"
			     "{\n"
			     "	return deep(x) + 1;\n"
			     "}\n"
			     "int _Z3addIiET_S0_(int x) { return x; }\n" /* its first instruction may be of any part of it */
			     "asm(\".globl bare\\n.type bare, %function\\nbare: .skip 16\\n.size bare, 16\");\n"
			     /* A name such as only the tables of a file can have. */
			     "asm(\".globl \\\"evil\\033[31m\\\"\\n\"\n"
			     "    \".type \\\"evil\\033[31m\\\", %function\\n\"\n"
			     "    \"\\\"evil\\033[31m\\\": .skip 16\\n.size \\\"evil\\033[31m\\\", 16\");\n";

struct fixture {
	struct scratch scratch;
	struct module *module;
	uint64_t deep; /* an address in the call that was inlined */
	uint64_t bare; /* one that only the symbol table knows */
	uint64_t add;  /* the start of the template function */
};

static uint64_t address_of(const struct scratch *s, const char *name)
{
	size_t len;
	char *text;
	uint64_t address;

	scratch_run(s, "nm l.so | grep -w '%s$' > address", name);
	text = scratch_read(s, "address", &len);
	address = strtoull(text, NULL, 16);
	free(text);
	assert_true(address != 0);
	return address;
}

static void start(struct fixture *f)
{
	char path[128];

	*f = (struct fixture){0};
	scratch_init(&f->scratch);
	scratch_text(&f->scratch, "l.c", source);
	scratch_run(&f->scratch,
		    "cc -g -O1 -shared -fPIC -fno-asynchronous-unwind-tables -Wl,--build-id=0xabcd -o l.so l.c");
	snprintf(path, sizeof(path), "%s/l.so", f->scratch.dir);
	assert_int_equal(module_create(scratch_image(&f->scratch, "l.so"), path, NULL, &f->module), 0);
	f->bare = address_of(&f->scratch, "bare");
	f->add = address_of(&f->scratch, "_Z3addIiET_S0_");
	f->deep = address_of(&f->scratch, "_Z5outeri");
}

static void stop(struct fixture *f)
{
	module_destroy(f->module);
	scratch_deinit(&f->scratch);
}

static const struct symbol_options symbols;

/* The answer, with the path of the directory taken out, for free(). */
static char *answer(const struct fixture *f, struct answer_format format, const struct question *question)
{
	struct answers *answers;
	char *text = NULL, *dir;
	size_t len = 0, dir_len = strlen(f->scratch.dir) + 1;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	answers = answers_create(&format, &symbols, NULL, out);
	assert_non_null(answers);
	answers_write(answers, question, 1);
	answers_destroy(answers);
	fclose(out);
	while ((dir = strstr(text, f->scratch.dir)))
		memmove(dir, dir + dir_len, strlen(dir + dir_len) + 1);
	return text;
}

static void expect(const struct fixture *f, struct answer_format format, uint64_t vaddr, const char *want)
{
	const struct question question = {.is_address = true, .address = 0x1f, .module = f->module, .vaddr = vaddr};
	char *text = answer(f, format, &question);

	assert_string_equal(text, want);
	free(text);
}

/* The first address of the function at which the inlined call is. */
static void find_inlined(struct fixture *f)
{
	const struct answer_format format = {.functions = true};

	for (uint64_t at = f->deep; at < f->deep + 64; at++) {
		const struct question question = {.is_address = true, .module = f->module, .vaddr = at};
		char *text = answer(f, format, &question);
		bool found = strcmp(text, "deep\nl.c:4\n") == 0;

		free(text);
		f->deep = at;
		if (found)
			return;
	}
	fail_msg("the call was not inlined");
}

static void test_text(void **state)
{
	struct fixture f;

	start(&f);
	find_inlined(&f);
	expect(&f, (struct answer_format){0}, f.deep, "l.c:4\n");
	expect(&f, (struct answer_format){.inlines = true}, f.deep, "l.c:4\nl.c:9\n");
	expect(&f, (struct answer_format){.functions = true, .inlines = true}, f.deep,
	       "deep\nl.c:4\n_Z5outeri\nl.c:9\n");
	expect(&f, (struct answer_format){.functions = true, .inlines = true, .demangle = true, .pretty = true}, f.deep,
	       "deep at l.c:4\n (inlined by) outer(int) at l.c:9\n");
	expect(&f, (struct answer_format){.addresses = true, .digits = 8}, f.deep, "0x0000001f\nl.c:4\n");
	expect(&f, (struct answer_format){.addresses = true, .pretty = true, .digits = 16}, f.deep,
	       "0x000000000000001f: l.c:4\n");
	stop(&f);
}

static void test_directories(void **state)
{
	struct fixture f;
	char *whole, *base;
	struct question question = {.is_address = true};

	start(&f);
	question.module = f.module;
	question.vaddr = f.deep;
	strcpy(f.scratch.dir + strlen(f.scratch.dir), "x"); /* nothing is taken out */
	whole = answer(&f, (struct answer_format){0}, &question);
	base = answer(&f, (struct answer_format){.basenames = true}, &question);
	f.scratch.dir[strlen(f.scratch.dir) - 1] = '\0';
	assert_int_equal(whole[0], '/');
	assert_string_equal(base, strrchr(whole, '/') + 1);
	free(whole);
	free(base);
	stop(&f);
}

static void test_less_is_known(void **state)
{
	struct fixture f;

	start(&f);
	expect(&f, (struct answer_format){.functions = true}, f.bare, "bare\n??:?\n");
	expect(&f, (struct answer_format){.functions = true, .pretty = true}, f.bare + 15, "bare at ??:?\n");
	expect(&f, (struct answer_format){.functions = true}, 0, "??\n??:0\n");
	expect(&f, (struct answer_format){.functions = true, .pretty = true}, 0, "?? ??:0\n");
	expect(&f, (struct answer_format){.inlines = true}, 0, "??:0\n");
	stop(&f);
}

static void test_return_types(void **state)
{
	struct fixture f;

	start(&f);
	expect(&f, (struct answer_format){.functions = true, .demangle = true}, f.add, "int add<int>(int)\nl.c:11\n");
	expect(&f, (struct answer_format){.functions = true}, f.add, "_Z3addIiET_S0_\nl.c:11\n");
	stop(&f);
}

/* For a terminal, names are shown, not obeyed. */
static void test_escapes(void **state)
{
	struct fixture f;
	uint64_t evil;

	start(&f);
	evil = address_of(&f.scratch, "evil.*");
	for (int demangle = 0; demangle < 2; demangle++) {
		expect(&f, (struct answer_format){.functions = true, .demangle = demangle, .escape = true}, evil,
		       "evil\\x1b[31m\n??:?\n");
		expect(&f, (struct answer_format){.functions = true, .demangle = demangle}, evil,
		       "evil\033[31m\n??:?\n");
	}
	expect(&f, (struct answer_format){.functions = true, .escape = true}, f.add, "_Z3addIiET_S0_\nl.c:11\n");
	stop(&f);
}

static void test_json(void **state)
{
	static const char bare[] =
		"{\"schema\":\"stakeout.symbolize/1\",\"address\":\"0x1f\",\"module\":\"l.so\","
		"\"build_id\":\"abcd\",\"module_offset\":\"0x%llx\",\"frames\":[{\"symbol\":\"bare\","
		"\"symbol_source\":\"symtab\",\"offset\":3,\"inlined\":false,\"source\":null}],"
		"\"problem\":\"no line is known for this address\",\"help\":null}\n";
	const struct question no_address = {.text = "w\"rd", .len = 4};
	struct fixture f;
	char want[512], *text;

	start(&f);
	snprintf(want, sizeof(want), bare, (unsigned long long)f.bare + 3);
	expect(&f, (struct answer_format){.json = true}, f.bare + 3, want);
	text = answer(&f, (struct answer_format){.json = true}, &no_address);
	assert_string_equal(text,
			    "{\"schema\":\"stakeout.symbolize/1\",\"address\":null,\"module\":null,\"build_id\":null,"
			    "\"module_offset\":null,\"frames\":[],\"problem\":\"not an address: w\\\"rd\","
			    "\"help\":null}\n");
	free(text);
	stop(&f);
}

static void test_json_help(void **state)
{
	const struct question nowhere = {.is_address = true};
	struct question question = nowhere;
	struct fixture f;
	char *text;

	start(&f);
	question.module = f.module;
	question.vaddr = f.bare;
	f.module->info.problem = "no debug info: none is there";
	f.module->info.help = "install it";
	text = answer(&f, (struct answer_format){.json = true}, &question);
	assert_non_null(strstr(text, "\"problem\":\"no debug info: none is there\",\"help\":\"install it\"}\n"));
	free(text);
	/* It would not help where a line is known, nor where there is no file. */
	question.vaddr = f.add;
	text = answer(&f, (struct answer_format){.json = true}, &question);
	assert_non_null(strstr(text, "\"problem\":null,\"help\":null}\n"));
	free(text);
	text = answer(&f, (struct answer_format){.json = true}, &nowhere);
	assert_non_null(strstr(text, "\"problem\":\"no file is there\",\"help\":null}\n"));
	free(text);
	stop(&f);
}

static void test_json_inlined(void **state)
{
	struct fixture f;
	struct question question = {.is_address = true};
	char *text;

	start(&f);
	find_inlined(&f);
	question.module = f.module;
	question.vaddr = f.deep;
	text = answer(&f, (struct answer_format){.json = true, .demangle = true}, &question);
	assert_non_null(strstr(text,
			       "{\"symbol\":\"deep\",\"symbol_source\":\"dwarf\",\"offset\":null,\"inlined\":true,"
			       "\"source\":{\"file\":\"l.c\",\"line\":4,"));
	assert_non_null(strstr(text, "{\"symbol\":\"outer(int)\",\"symbol_source\":\"symtab\",\"offset\":"));
	assert_non_null(strstr(text, "\"inlined\":false,\"source\":{\"file\":\"l.c\",\"line\":9,"));
	assert_non_null(strstr(text, "\"problem\":null,\"help\":null}\n"));
	free(text);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),          cmocka_unit_test(test_directories),
		cmocka_unit_test(test_less_is_known), cmocka_unit_test(test_return_types),
		cmocka_unit_test(test_escapes),       cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_help),     cmocka_unit_test(test_json_inlined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
