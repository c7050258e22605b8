/* SPDX-License-Identifier: MIT */
/* What test_symbolizer.c, which names whole stacks, does not show of single frames. */
#include "libelf_of.h"
#include "scratch.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "symbol/native_names.h"
#include "target/target.h"

enum { LOAD_AT = 0x10000000 };

struct fixture {
	struct scratch scratch;
	struct snapshot *snap;
	struct target *target;
	struct arena *arena;
	struct native_names_options options;
	struct native_names *names;
	struct stack stack;
};

static void map_library(struct fixture *f)
{
	struct map_entry e = {.start = LOAD_AT, .perms = MAP_PERM_READ | MAP_PERM_EXEC};
	struct stat st;
	char path[256];

	snprintf(path, sizeof(path), "%s/l.so", f->scratch.dir);
	assert_int_equal(stat(path, &st), 0);
	e.end = LOAD_AT + (((uint64_t)st.st_size + 4095) & ~UINT64_C(4095));
	e.inode = st.st_ino;
	e.dev_major = major(st.st_dev);
	e.dev_minor = minor(st.st_dev);
	e.path = arena_intern(f->snap->arena, path);
	assert_true(vec_push(&f->snap->maps, e));
}

/* A library of the text, mapped as in a saved snapshot; its names are made readable if `demangle`. */
static void start(struct fixture *f, const char *text, const char *flags, bool demangle)
{
	*f = (struct fixture){.snap = snapshot_create(1, arch_host()), .arena = arena_create(), .options.demangle = demangle};
	scratch_init(&f->scratch);
	scratch_text(&f->scratch, "l.c", text);
	scratch_run(&f->scratch, "cc -g -O2 -shared -fPIC %s -o l.so l.c", flags);
	f->snap->replayed = true;
	map_library(f);
	f->target = target_open_saved(f->snap);
	assert_non_null(f->target);
	assert_int_equal(target_open_files(f->target, NULL, NULL), 0);
	f->names = native_names_create(f->target->modules, f->arena, &f->options);
	assert_non_null(f->names);
}

static void finish(struct fixture *f)
{
	native_names_destroy(f->names);
	vec_deinit(&f->stack);
	target_close(f->target);
	snapshot_destroy(f->snap);
	arena_destroy(f->arena);
	scratch_deinit(&f->scratch);
}

/* Appends the frames of one address; the first of them. */
static const struct frame *name(struct fixture *f, uint64_t pc, uint32_t flags, uint32_t index)
{
	struct raw_frame raw = {.pc = pc, .flags = flags};
	size_t before = f->stack.len;

	assert_true(native_names_add(f->names, &raw, index, &f->stack));
	assert_true(f->stack.len > before);
	return &f->stack.data[before];
}

static uint64_t address_of(const struct fixture *f, const char *wanted)
{
	struct image *image = scratch_image(&f->scratch, "l.so");
	uint64_t size, found = libelf_symbol(image, wanted, &size);

	image_destroy(image);
	assert_true(found);
	return LOAD_AT + found;
}

static const char simple[] = "int puts(const char *);\n"
			     "__attribute__((noinline)) int first(int x) { return x + 1; }\n"
			     "int second(int x) { return puts(\"x\") + first(x); }\n";

/* Each address is looked up once; what belongs to the stack it is in is each one's own. */
static void test_found_once(void **state)
{
	struct fixture f;
	struct frame once, again;
	uint64_t at;

	start(&f, simple, "", true);
	at = address_of(&f, "first");
	once = *name(&f, at, 0, 3);
	again = *name(&f, at, FRAME_BY_SCAN, 7);
	assert_string_equal(once.symbol, "first");
	assert_ptr_equal(again.symbol, once.symbol);
	assert_ptr_equal(again.file, once.file);
	assert_ptr_equal(again.module, once.module);
	assert_int_equal(once.raw, 3);
	assert_int_equal(once.flags, 0);
	assert_int_equal(again.raw, 7);
	assert_int_equal(again.flags, FRAME_BY_SCAN);
	assert_int_equal(f.stack.len, 2);
	assert_int_equal(once.module_offset, at - LOAD_AT);
	assert_int_equal(once.offset, 0);
	assert_true(once.has_offset);
	finish(&f);
}

/* One address, as where execution stood and as where a call returns to: not the same code. */
static void test_the_same_address_as_return(void **state)
{
	struct fixture f;
	struct frame exact, returned, signal;
	uint64_t at;

	start(&f, simple, "", true);
	at = address_of(&f, "second");
	exact = *name(&f, at, 0, 0);
	returned = *name(&f, at, FRAME_RETURN_ADDRESS, 0);
	assert_string_equal(exact.symbol, "second");
	assert_true(!returned.symbol || strcmp(returned.symbol, "second") != 0);
	assert_int_equal(returned.address, at);
	assert_int_equal(returned.module_offset, at - LOAD_AT); /* what is shown is the address itself */
	signal = *name(&f, at, FRAME_RETURN_ADDRESS | FRAME_SIGNAL, 0);
	assert_string_equal(signal.symbol, "second");
	assert_int_equal(signal.kind, FRAME_KIND_SIGNAL);
	assert_int_equal(exact.kind, FRAME_KIND_NATIVE);
	finish(&f);
}

/* A stub is named by what it jumps to. */
static void test_plt(void **state)
{
	struct fixture f;
	struct image *image;
	unsigned found = 0;

	start(&f, simple, "-Wl,-z,lazy", true);
	image = scratch_image(&f.scratch, "l.so");
	for (uint64_t at = 0; at < 0x4000; at += 4) {
		const char *section = image_section_name_at(image, at);
		const struct frame *frame;

		if (!section || strncmp(section, ".plt", 4) != 0)
			continue;
		frame = name(&f, LOAD_AT + at, 0, 0);
		found += frame->symbol && strcmp(frame->symbol, "puts@plt") == 0 && frame->has_offset;
	}
	assert_true(found > 0);
	image_destroy(image);
	finish(&f);
}

static const char labelled[] =
	"volatile int sink;\n"
	"extern inline __attribute__((always_inline, gnu_inline)) void inlined(int x) "
	"__asm__(\"its_label\");\n"
	"extern inline __attribute__((always_inline, gnu_inline)) void inlined(int x) { sink = x; }\n"
	"void outer(int x) { inlined(x); sink = 0; }\n";

/* The name of the first inlined call in outer(). */
static const char *inlined_name(struct fixture *f)
{
	uint64_t at = address_of(f, "outer");

	for (uint64_t end = at + 32; at < end; at++) {
		const struct frame *frame = name(f, at, 0, 0);

		if (frame->inlined)
			return frame->symbol;
	}
	fail_msg("nothing is inlined");
	return NULL;
}

/* A linkage name that is not mangled is an alias: the source's own name reads better. */
static void test_linkage_names(void **state)
{
	struct fixture f;
	const char *raw;

	start(&f, labelled, "", true);
	assert_string_equal(inlined_name(&f), "inlined");
	finish(&f);
	start(&f, labelled, "", false);
	raw = inlined_name(&f);
	assert_true(strcmp(raw, "its_label") == 0 || strcmp(raw, "inlined") == 0); /* if the compiler tells it */
	finish(&f);
}

static void test_no_module(void **state)
{
	static const uint64_t pcs[] = {0, 1, LOAD_AT - 1, UINT64_MAX};
	struct fixture f;

	start(&f, simple, "", true);
	for (size_t i = 0; i < sizeof(pcs) / sizeof(pcs[0]); i++) {
		for (uint32_t flags = 0; flags <= FRAME_RETURN_ADDRESS; flags++) {
			const struct frame *frame = name(&f, pcs[i], flags, 0);

			assert_int_equal(frame->address, pcs[i]);
			assert_null(frame->symbol);
			assert_null(frame->module);
			assert_null(frame->file);
			assert_int_equal(frame->module_offset, 0);
			assert_false(frame->has_offset);
		}
	}
	/* The first address of a module, as a return address, is behind what is before it. */
	assert_null(name(&f, LOAD_AT, FRAME_RETURN_ADDRESS, 0)->module);
	assert_non_null(name(&f, LOAD_AT, 0, 0)->module);
	finish(&f);
}

static void test_destroy_nothing(void **state)
{
	native_names_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found_once), cmocka_unit_test(test_the_same_address_as_return),
		cmocka_unit_test(test_plt),        cmocka_unit_test(test_linkage_names),
		cmocka_unit_test(test_no_module),  cmocka_unit_test(test_destroy_nothing),
	};

	return cmocka_run_group_tests_name("native_names", tests, NULL, NULL);
}
