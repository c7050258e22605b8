/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "symbol/symbolizer.h"
#include "target/target.h"

static const struct symbolizer_options demangling = {.native.demangle = true, .kernel_addresses = true};

static inline __attribute__((always_inline)) uint64_t current_pc(void)
{
	uint64_t pc;

#if defined(__x86_64__)
	__asm__ volatile("1: lea 1b(%%rip), %0" : "=r"(pc));
#elif defined(__aarch64__)
	__asm__ volatile("adr %0, ." : "=r"(pc));
#endif
	return pc;
}

enum { INNER_LINE = __LINE__ + 4, OUTER_LINE = __LINE__ + 9, CONCRETE_LINE = __LINE__ + 14 };

static inline __attribute__((always_inline)) uint64_t inner_call(void)
{
	return current_pc(); /* INNER_LINE */
}

static inline __attribute__((always_inline)) uint64_t outer_call(void)
{
	return inner_call(); /* OUTER_LINE */
}

static __attribute__((noinline)) uint64_t concrete_function(void)
{
	return outer_call(); /* CONCRETE_LINE */
}

static __attribute__((noinline)) uint64_t return_address_here(void)
{
	return (uint64_t)(uintptr_t)__builtin_return_address(0);
}

static __attribute__((noinline)) uint64_t calls_it(void)
{
	uint64_t pc = return_address_here();

	__asm__ volatile(""); /* or the call would be a jump */
	return pc;
}

struct fixture {
	struct snapshot *snap; /* the test's own, or NULL */
	struct target *target;
	struct symbolizer *sym;
};

static void finish(struct fixture *f)
{
	symbolizer_destroy(f->sym);
	target_close(f->target);
	snapshot_destroy(f->snap);
}

static void start(struct fixture *f, const struct symbolizer_options *options)
{
	f->sym = symbolizer_create(f->target->modules, options);
	assert_non_null(f->sym);
}

static struct fixture of_this_process(void)
{
	struct fixture f = {0};

	assert_int_equal(target_open_whole(getpid(), NULL, NULL, &f.target), 0);
	start(&f, &demangling);
	return f;
}

static const struct stack *name_one(struct fixture *f, uint64_t pc, uint32_t flags)
{
	struct raw_stack raw = {0};
	const struct stack *stack;

	assert_true(vec_push(&raw, (struct raw_frame){.pc = pc, .flags = flags}));
	stack = symbolizer_name(f->sym, &raw);
	assert_non_null(stack);
	raw_stack_deinit(&raw);
	return stack;
}

static void expect_frame(const struct frame *frame, const char *symbol, uint32_t line, bool inlined)
{
	assert_non_null(frame->symbol);
	assert_string_equal(frame->symbol, symbol);
	assert_int_equal(frame->inlined, inlined);
	if (line) {
		assert_int_equal(frame->line, line);
		assert_non_null(strstr(frame->file, "test_symbolizer.c"));
	}
}

static void test_inlined_calls(void **state)
{
	struct fixture f = of_this_process();
	uint64_t pc = concrete_function();
	const struct stack *stack = name_one(&f, pc, 0);

	assert_int_equal(stack->len, 4);
	expect_frame(&stack->data[0], "current_pc", 0, true);
	expect_frame(&stack->data[1], "inner_call", INNER_LINE, true);
	expect_frame(&stack->data[2], "outer_call", OUTER_LINE, true);
	expect_frame(&stack->data[3], "concrete_function", CONCRETE_LINE, false);
	assert_false(stack->data[0].has_offset);
	assert_true(stack->data[3].has_offset);
	assert_int_equal(stack->data[3].offset, pc - (uintptr_t)concrete_function);
	for (size_t i = 0; i < stack->len; i++) {
		assert_int_equal(stack->data[i].address, pc);
		assert_int_equal(stack->data[i].raw, 0);
		assert_ptr_equal(stack->data[i].module, stack->data[0].module);
	}
	assert_non_null(strstr(stack->data[0].module->path, "test_symbolizer"));
	finish(&f);
}

static void test_return_address(void **state)
{
	struct fixture f = of_this_process();
	uint64_t pc = calls_it();
	const struct stack *stack = name_one(&f, pc, FRAME_RETURN_ADDRESS);

	assert_int_equal(stack->len, 1);
	expect_frame(&stack->data[0], "calls_it", 0, false);
	assert_int_equal(stack->data[0].address, pc);
	assert_int_equal(stack->data[0].offset, pc - (uintptr_t)calls_it); /* of pc, not of pc - 1 */
	/* The first byte of a function as a return address belongs to what is before it. */
	stack = name_one(&f, (uintptr_t)concrete_function, 0);
	assert_string_equal(stack->data[stack->len - 1].symbol, "concrete_function");
	stack = name_one(&f, (uintptr_t)concrete_function, FRAME_RETURN_ADDRESS);
	if (stack->data[0].symbol)
		assert_string_not_equal(stack->data[0].symbol, "concrete_function");
	/* A trampoline's return address is its first instruction. */
	stack = name_one(&f, (uintptr_t)concrete_function, FRAME_RETURN_ADDRESS | FRAME_SIGNAL);
	assert_string_equal(stack->data[stack->len - 1].symbol, "concrete_function");
	assert_int_equal(stack->data[0].kind, FRAME_KIND_SIGNAL);
	finish(&f);
}

static void test_sharing(void **state)
{
	struct fixture f = of_this_process();
	struct raw_stack raw = {0};
	const struct stack *first;

	for (int i = 0; i < 3; i++)
		assert_true(vec_push(&raw, (struct raw_frame){.pc = concrete_function(), .sp = (uint64_t)i}));
	first = symbolizer_name(f.sym, &raw);
	assert_int_equal(first->len, 12);
	assert_int_equal(first->data[11].raw, 2);
	raw.data[1].sp = 99; /* the stack pointer does not matter */
	assert_ptr_equal(symbolizer_name(f.sym, &raw), first);
	raw.data[1].flags = FRAME_BY_FRAME_POINTER;
	assert_ptr_not_equal(symbolizer_name(f.sym, &raw), first);
	raw.len = 2;
	assert_ptr_not_equal(symbolizer_name(f.sym, &raw), first);
	raw.len = 0;
	assert_int_equal(symbolizer_name(f.sym, &raw)->len, 0);
	raw_stack_deinit(&raw);
	finish(&f);
}

static bool count_merges(void *ctx, const struct raw_stack *raw, struct stack *stack)
{
	++*(unsigned *)ctx;
	if (raw->runtime.len && stack->len) /* as a runtime would: what it knows comes in the place of a frame */
		stack->data[0].offset = raw->runtime.data[0].code;
	return true;
}

/* Interpreted functions differ where the interpreter's frames are the same. */
static void test_frames_of_runtimes(void **state)
{
	unsigned merges = 0;
	const struct symbolizer_options options = {.merge = count_merges, .merge_ctx = &merges};
	const struct runtime_frame frame = {.code = 1, .place = 2, .raw = 0, .runtime = 0}, others[] = {
		{.code = 9, .place = 2, .raw = 0, .runtime = 0},
		{.code = 1, .place = 9, .raw = 0, .runtime = 0},
		{.code = 1, .place = 2, .raw = 1, .runtime = 0},
		{.code = 1, .place = 2, .raw = 0, .runtime = 1},
		{.code = 2, .place = 1, .raw = 0, .runtime = 0},
	};
	const struct stack *native, *first, *stack;
	struct raw_stack raw = {0};
	struct fixture f = {0};

	assert_int_equal(target_open_whole(getpid(), NULL, NULL, &f.target), 0);
	start(&f, &options);
	for (int i = 0; i < 2; i++)
		assert_true(vec_push(&raw, (struct raw_frame){.pc = concrete_function()}));
	native = symbolizer_name(f.sym, &raw);
	assert_int_equal(merges, 1);
	assert_true(vec_push(&raw.runtime, frame));
	first = symbolizer_name(f.sym, &raw);
	assert_ptr_not_equal(first, native);
	assert_int_equal(merges, 2);
	assert_int_equal(first->data[0].offset, 1); /* what merge() has made of it is what is shared */
	assert_ptr_equal(symbolizer_name(f.sym, &raw), first);
	assert_int_equal(merges, 2);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		raw.runtime.data[0] = others[i];
		stack = symbolizer_name(f.sym, &raw);
		assert_ptr_not_equal(stack, first);
		assert_ptr_not_equal(stack, native);
		assert_int_equal(merges, 3 + i);
	}
	raw.runtime.data[0] = frame;
	assert_true(vec_push(&raw.runtime, frame)); /* recursion */
	assert_ptr_not_equal(symbolizer_name(f.sym, &raw), first);
	raw.runtime.len = 0;
	assert_ptr_equal(symbolizer_name(f.sym, &raw), native);
	raw_stack_deinit(&raw);
	finish(&f);
}

static bool refuse(void *ctx, const struct raw_stack *raw, struct stack *stack)
{
	return false;
}

static void test_merge_that_fails(void **state)
{
	const struct symbolizer_options options = {.merge = refuse};
	struct raw_stack raw = {0};
	struct fixture f = {0};

	assert_int_equal(target_open_whole(getpid(), NULL, NULL, &f.target), 0);
	start(&f, &options);
	assert_true(vec_push(&raw, (struct raw_frame){.pc = concrete_function()}));
	assert_null(symbolizer_name(f.sym, &raw));
	raw_stack_deinit(&raw);
	finish(&f);
}

static void test_address_outside_of_all(void **state)
{
	struct fixture f = of_this_process();
	const struct stack *stack = name_one(&f, 0x10, FRAME_RETURN_ADDRESS);

	assert_int_equal(stack->len, 1);
	assert_int_equal(stack->data[0].address, 0x10);
	assert_null(stack->data[0].symbol);
	assert_null(stack->data[0].module);
	assert_int_equal(name_one(&f, 0, FRAME_RETURN_ADDRESS)->len, 1);
	assert_int_equal(name_one(&f, UINT64_MAX, 0)->len, 1);
	finish(&f);
}

static const char library_c[] = "static volatile int sink;\n"
				"static inline __attribute__((always_inline)) void leaf(int x)\n"
				"{\n"
				"	sink = x;\n"     /* 4 */
				"	sink = x + 1;\n" /* 5 */
				"}\n"
				"static inline __attribute__((always_inline)) void middle(int x)\n"
				"{\n"
				"	leaf(x * 3);\n" /* 9 */
				"}\n"
				"static __attribute__((noinline)) void hidden(int x)\n"
				"{\n"
				"	middle(x);\n" /* 13 */
				"}\n"
				"void shown(int x)\n"
				"{\n"
				"	hidden(x);\n"
				"	sink = 0;\n"
				"}\n";

static const char library_cc[] = "static volatile int sink;\n"
				 "namespace space {\n"
				 "template <typename T> struct box {\n"
				 "	__attribute__((always_inline)) void put(T x) { sink = x; }\n"
				 "	__attribute__((noinline)) void keep(T x) { put(x); }\n"
				 "};\n"
				 "template struct box<int>;\n"
				 "}\n"
				 "extern \"C\" void plain() { space::box<int>().keep(1); sink = 2; }\n";

enum { LOAD_AT = 0x10000000 };

/* One executable mapping of a file, as in a saved snapshot. */
static struct fixture of_file(const struct scratch *s, const char *name, const struct symbolizer_options *options)
{
	struct fixture f = {.snap = snapshot_create(1, arch_host())};
	struct map_entry e = {.start = LOAD_AT, .perms = MAP_PERM_READ | MAP_PERM_EXEC};
	struct stat st;
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	assert_int_equal(stat(path, &st), 0);
	e.end = LOAD_AT + (((uint64_t)st.st_size + 4095) & ~UINT64_C(4095));
	e.inode = st.st_ino;
	e.dev_major = major(st.st_dev);
	e.dev_minor = minor(st.st_dev);
	e.path = arena_intern(f.snap->arena, path);
	f.snap->replayed = true;
	assert_true(vec_push(&f.snap->maps, e));
	f.target = target_open_saved(f.snap);
	assert_non_null(f.target);
	assert_int_equal(target_open_files(f.target, NULL, NULL), 0);
	start(&f, options);
	return f;
}

/* Text of all frames of the library's code: what must not change when the names come from elsewhere. */
static char *name_all(struct fixture *f, uint64_t from, uint64_t to)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (uint64_t at = from; at < to; at++) {
		const struct stack *stack = name_one(f, LOAD_AT + at, 0);

		fprintf(out, "%#lx", (unsigned long)at);
		for (size_t i = 0; i < stack->len; i++) {
			const struct frame *frame = &stack->data[i];

			fprintf(out, " %s+%lu %s:%u:%u %d", frame->symbol ? frame->symbol : "?",
				(unsigned long)frame->offset, frame->file ? frame->file : "?", frame->line,
				frame->column, frame->inlined);
		}
		fputc('\n', out);
	}
	fclose(out);
	return text;
}

static char *name_text_section_as(const struct scratch *s, const char *name, const struct symbolizer_options *options)
{
	struct fixture f = of_file(s, name, options);
	struct image *image = scratch_image(s, name);
	struct span text = image_section(image, ".text");
	char *all = name_all(&f, text.vaddr, text.vaddr + text.len);

	image_destroy(image);
	finish(&f);
	return all;
}

static char *name_text_section(const struct scratch *s, const char *name)
{
	return name_text_section_as(s, name, &demangling);
}

static struct scratch make_library(const char *flags)
{
	struct scratch s;

	scratch_init(&s);
	scratch_text(&s, "l.c", library_c);
	scratch_run(&s, "cc -g -O2 -shared -fPIC %s -o l.so l.c", flags);
	return s;
}

static void expect_same(const struct scratch *s, const char *a, const char *b)
{
	char *of_a = name_text_section(s, a), *of_b = name_text_section(s, b);

	assert_string_equal(of_a, of_b);
	free(of_a);
	free(of_b);
}

static void check_library(const char *flags)
{
	struct scratch s = make_library(flags);
	char *all = name_text_section(&s, "l.so");
	char want[512];

	/* leaf() in middle() in hidden(): each with the line of its own call. */
	snprintf(want, sizeof(want), " leaf+0 %s/l.c:4:", s.dir);
	assert_non_null(strstr(all, want));
	snprintf(want, sizeof(want), " middle+0 %s/l.c:9:", s.dir);
	assert_non_null(strstr(all, want));
	assert_non_null(strstr(all, " hidden+0 "));
	snprintf(want, sizeof(want), " %s/l.c:13:", s.dir);
	assert_non_null(strstr(all, want));
	assert_non_null(strstr(all, " shown+0 "));
	free(all);
	scratch_deinit(&s);
}

static void test_dwarf_versions(void **state)
{
	check_library("-gdwarf-3");
	check_library("-gdwarf-4");
	check_library("-gdwarf-5");
	check_library("-gdwarf-4 -fdebug-types-section");
	check_library("-gdwarf-5 -gz");
	check_library("-ffunction-sections -Wl,--gc-sections");
}

static void test_separate_debug_file(void **state)
{
	struct scratch s = make_library("-Wl,--build-id=sha1");

	scratch_run(&s, "objcopy --only-keep-debug l.so l.debug && strip -o stripped.so l.so && "
			"objcopy --add-gnu-debuglink=l.debug stripped.so");
	expect_same(&s, "l.so", "stripped.so");
	scratch_deinit(&s);
}

static void test_without_aranges(void **state)
{
	struct scratch s = make_library("");

	scratch_run(&s, "objcopy --remove-section .debug_aranges l.so bare.so");
	expect_same(&s, "l.so", "bare.so");
	scratch_deinit(&s);
}

/* dwz moves what two files share into a third. Without that, libdw must not go looking for it. */
static void test_shared_debug_file(void **state)
{
	struct scratch s;
	struct image *image;
	struct fixture f;

	scratch_needs("dwz");
	s = make_library("");
	scratch_run(&s, "cp l.so a.so && cp l.so b.so && dwz -m common.debug -M %s/common.debug a.so b.so", s.dir);
	image = scratch_image(&s, "a.so");
	assert_non_null(image_section(image, ".gnu_debugaltlink").data);
	image_destroy(image);
	expect_same(&s, "l.so", "a.so");
	scratch_run(&s, "rm common.debug && mkfifo common.debug");
	f = of_file(&s, "a.so", &demangling);
	assert_non_null(strstr(name_one(&f, LOAD_AT + 0x1000, 0)->data[0].module->problem, "common.debug"));
	finish(&f);
	scratch_deinit(&s);
}

static void test_names_without_symbol_table(void **state)
{
	struct scratch s = make_library("");
	char *all;

	scratch_run(&s, "objcopy --strip-all --keep-section='.debug*' l.so dwarf.so");
	all = name_text_section(&s, "dwarf.so");
	assert_non_null(strstr(all, " hidden+0 "));
	assert_non_null(strstr(all, " shown+0 "));
	free(all);
	scratch_deinit(&s);
}

static void test_problems(void **state)
{
	struct scratch s = make_library("-Wl,--build-id=sha1");
	struct fixture f;
	const struct stack *stack;

	scratch_run(&s, "strip -o stripped.so l.so && strip --strip-debug -o symbols.so l.so");
	f = of_file(&s, "l.so", &demangling);
	assert_null(name_one(&f, LOAD_AT + 0x1000, 0)->data[0].module->problem);
	finish(&f);
	f = of_file(&s, "stripped.so", &demangling);
	stack = name_one(&f, LOAD_AT + 0x1000, 0);
	assert_non_null(strstr(stack->data[0].module->problem, "only exported names"));
	assert_non_null(stack->data[0].module->build_id);
	assert_non_null(stack->data[0].module->help);
	finish(&f);
	f = of_file(&s, "symbols.so", &demangling);
	stack = name_one(&f, LOAD_AT + 0x1000, 0);
	assert_non_null(strstr(stack->data[0].module->problem, "no debug info:"));
	finish(&f);
	scratch_deinit(&s);
}

static void test_cplusplus(void **state)
{
	static const struct symbolizer_options raw = {.native.demangle = false};
	struct scratch s;
	char *all;

	scratch_needs("c++");
	scratch_init(&s);
	scratch_text(&s, "l.cc", library_cc);
	scratch_run(&s, "c++ -g -O2 -shared -fPIC -o l.so l.cc");
	all = name_text_section(&s, "l.so");
	assert_non_null(strstr(all, " space::box<int>::put(int)+0 "));
	assert_non_null(strstr(all, " space::box<int>::keep(int)+0 "));
	assert_non_null(strstr(all, " plain+0 "));
	free(all);
	all = name_text_section_as(&s, "l.so", &raw);
	assert_non_null(strstr(all, " _ZN5space3boxIiE4keepEi+0 "));
	free(all);
	scratch_deinit(&s);
}

/* Bytes that are wrong anywhere in a file cost names, never the run. */
static void test_damaged_debug_info(void **state)
{
	struct scratch s = make_library("");
	size_t len;
	char *data = scratch_read(&s, "l.so", &len), *copy = malloc(len);
	unsigned seed = 1;

	for (int round = 0; round < 150; round++) {
		struct fixture f;

		memcpy(copy, data, len);
		for (int i = 0; i < 40; i++)
			copy[256 + (size_t)rand_r(&seed) % (len - 256)] = (char)rand_r(&seed);
		scratch_write(&s, "damaged.so", copy, len - (round % 3 ? 0 : (size_t)rand_r(&seed) % len));
		f = of_file(&s, "damaged.so", &demangling);
		free(name_all(&f, 0x1000, 0x1100));
		finish(&f);
	}
	free(copy);
	free(data);
	scratch_deinit(&s);
}

static void test_kernel_text(void **state)
{
	struct fixture f = of_this_process();
	const char *text[] = {"futex_wait+0x15e/0x2a0", "xfs_read+0x10/0x20 [xfs]", "0xffffffff81234567"};
	struct snap_thread thread = {.kernel_text = text, .nkernel = 3};
	const struct stack *stack = symbolizer_name_kernel(f.sym, &thread);

	assert_int_equal(stack->len, 3);
	assert_string_equal(stack->data[0].symbol, "futex_wait");
	assert_int_equal(stack->data[0].offset, 0x15e);
	assert_int_equal(stack->data[0].kind, FRAME_KIND_KERNEL);
	assert_null(stack->data[0].module);
	assert_string_equal(stack->data[1].module->path, "xfs");
	assert_null(stack->data[2].symbol);
	assert_null(symbolizer_kernel_error(f.sym));
	assert_ptr_equal(symbolizer_name_kernel(f.sym, &thread), stack);
	finish(&f);
}

static void test_kernel_addresses(void **state)
{
	struct fixture f = of_this_process();
	uint64_t pcs[] = {0, 1};
	struct snap_thread thread = {.kernel_pcs = pcs, .nkernel = 2};
	FILE *kallsyms = fopen("/proc/kallsyms", "r");
	unsigned long address = 0;
	char type, name[256];

	while (kallsyms && fscanf(kallsyms, "%lx %c %255s%*[^\n]", &address, &type, name) == 3)
		if (strcmp(name, "do_exit") == 0)
			break;
	if (kallsyms)
		fclose(kallsyms);
	pcs[0] = address + 4;
	assert_int_equal(symbolizer_name_kernel(f.sym, &thread)->len, 2);
	if (address) {
		assert_string_equal(symbolizer_name_kernel(f.sym, &thread)->data[0].symbol, "do_exit");
		assert_int_equal(symbolizer_name_kernel(f.sym, &thread)->data[0].offset, 4);
		assert_null(symbolizer_kernel_error(f.sym));
	} else {
		assert_non_null(symbolizer_kernel_error(f.sym));
	}
	assert_null(symbolizer_name_kernel(f.sym, &thread)->data[1].symbol);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inlined_calls),
		cmocka_unit_test(test_return_address),
		cmocka_unit_test(test_sharing),
		cmocka_unit_test(test_frames_of_runtimes),
		cmocka_unit_test(test_merge_that_fails),
		cmocka_unit_test(test_address_outside_of_all),
		cmocka_unit_test(test_dwarf_versions),
		cmocka_unit_test(test_separate_debug_file),
		cmocka_unit_test(test_without_aranges),
		cmocka_unit_test(test_shared_debug_file),
		cmocka_unit_test(test_names_without_symbol_table),
		cmocka_unit_test(test_problems),
		cmocka_unit_test(test_cplusplus),
		cmocka_unit_test(test_damaged_debug_info),
		cmocka_unit_test(test_kernel_text),
		cmocka_unit_test(test_kernel_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
