/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>

#include "hotspot_fake.h"
#include "runtime/hotspot/frame.h"

#define STACK UINT64_C(0x7ffd00000000)
#define OTHER UINT64_C(0x7f0000000000) /* native code */

enum { WORDS = 64, X_FP = 29, X_LR = 30, X_SP = 31, X_BCP = 22, R_RBP = 6, R_RSP = 7, R_BCP = 13 };

struct world {
	struct mem mem;
	struct fake fake;
	struct code_cache cache;
	struct methods methods;
	struct arena *arena;
	uint64_t stack[WORDS];
	struct maps maps;
	struct raw_stack out;
	struct walk walk;
	uint64_t compiled, interpreter, stub;
};

static struct world *world;

static ssize_t read_stack(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	uint64_t offset = address - STACK;

	if (offset > sizeof(world->stack) || len > sizeof(world->stack) - offset)
		return -EFAULT;
	memcpy(buf, (uint8_t *)world->stack + offset, len);
	return (ssize_t)len;
}

static int set_up(void **state)
{
	world = calloc(1, sizeof(*world));
	assert_non_null(world);
	fake_init(&world->fake);
	world->compiled = fake_blob(&world->fake, 1, 8, "nmethod", 6) + FAKE_CODE;
	world->interpreter = fake_blob(&world->fake, 10, 8, "Interpreter", -1) + FAKE_CODE;
	world->stub = fake_blob(&world->fake, 20, 8, "StubRoutines (1)", -1) + FAKE_CODE;
	world->fake.layout.facts[HS_CALL_RETURN] = world->stub + 0x40;
	world->arena = arena_create();
	world->mem.read = read_stack;
	vec_push(&world->maps, ((struct map_entry){.start = FAKE_BASE, .end = FAKE_BASE + FAKE_SIZE, .perms = MAP_PERM_EXEC, .path = ""}));
	vec_push(&world->maps, ((struct map_entry){.start = OTHER, .end = OTHER + 0x1000, .perms = MAP_PERM_EXEC, .path = ""}));
	vec_push(&world->maps, ((struct map_entry){.start = STACK, .end = STACK + sizeof(world->stack), .perms = MAP_PERM_READ, .path = ""}));
	return 0;
}

static int tear_down(void **state)
{
	code_cache_deinit(&world->cache);
	methods_deinit(&world->methods);
	arena_destroy(world->arena);
	fake_deinit(&world->fake);
	vec_deinit(&world->maps);
	raw_stack_deinit(&world->out);
	free(world);
	return 0;
}

/* sp and fp are numbers of words on the stack. */
static enum step_result step(const struct arch *arch, uint64_t pc, unsigned sp, unsigned fp, struct caller *caller, struct java_place *place)
{
	fake_load(&world->fake);
	code_cache_deinit(&world->cache);
	methods_deinit(&world->methods);
	code_cache_init(&world->cache, &world->fake.layout, &world->fake.pages);
	methods_init(&world->methods, &world->fake.layout, &world->fake.pages, world->arena);
	world->walk.arch = arch;
	world->walk.maps = &world->maps;
	world->walk.mem = &world->mem;
	world->walk.out = &world->out;
	world->walk.regs.pc = pc;
	regs_put(&world->walk.regs, arch->dwarf_sp, STACK + 8 * sp);
	regs_put(&world->walk.regs, arch->dwarf_fp, STACK + 8 * fp);
	*caller = (struct caller){0};
	return java_step(&world->cache, &world->methods, &world->walk, caller, place);
}

static void test_compiled(void **state)
{
	struct caller caller;
	struct java_place place;

	world->stack[2 + 6 - 1] = OTHER + 0x20;
	world->stack[2 + 6 - 2] = 0x1234; /* its caller uses that register for something else */
	assert_int_equal(step(&arch_aarch64, world->compiled + 0x40, 2, 30, &caller, &place), STEP_FOUND);
	assert_int_equal(caller.regs.pc, OTHER + 0x20);
	assert_int_equal(caller.regs.r[X_SP], STACK + 8 * 8);
	assert_int_equal(caller.regs.r[X_FP], 0x1234);
	assert_int_equal(place.code, world->compiled - FAKE_CODE);
	assert_int_equal(place.place, world->compiled + 0x40);
	world->walk.sp_is_bound = true; /* then nothing is certain */
	assert_int_equal(step(&arch_aarch64, world->compiled + 0x40, 2, 30, &caller, &place), STEP_UNKNOWN);
}

static void test_deoptimized(void **state)
{
	uint64_t start = world->compiled - FAKE_CODE;
	struct caller caller;
	struct java_place place;

	fake_put(&world->fake, start + FAKE_NM_DEOPT, world->compiled + 0x80, 8);
	fake_put(&world->fake, start + FAKE_NM_ORIG_PC, 16, 4);
	world->stack[2 + 5] = OTHER + 0x20;
	world->stack[2 + 2] = world->compiled + 0x24;
	assert_int_equal(step(&arch_aarch64, world->compiled + 0x80, 2, 30, &caller, &place), STEP_FOUND);
	assert_int_equal(place.place, world->compiled + 0x24);
	assert_int_equal(caller.regs.pc, OTHER + 0x20);
	world->stack[2 + 2] = OTHER; /* that is not in the method */
	assert_int_equal(step(&arch_aarch64, world->compiled + 0x80, 2, 30, &caller, &place), STEP_UNKNOWN);
}

static void put_interpreted(unsigned fp, int bcp, uint64_t sender)
{
	world->stack[fp] = STACK + 8 * 40;
	world->stack[fp + 1] = world->compiled + 0x10;
	world->stack[fp - 1] = sender;
	world->stack[fp - 3] = FAKE_DATA + 0x3000;
	world->stack[fp + bcp] = FAKE_DATA + 0x3055;
}

static void test_interpreted(void **state)
{
	static const struct {
		const struct arch *arch;
		int bcp, old_bcp;
	} kinds[] = {{&arch_aarch64, -9, -7}, {&arch_x86_64, -8, -7}};
	struct caller caller;
	struct java_place place;

	for (int i = 0; i < 4; i++) {
		const struct arch *arch = kinds[i / 2].arch;
		bool old = i % 2;

		memset(world->stack, 0, sizeof(world->stack));
		world->fake.layout.facts[HS_FEATURE] = old ? 8 : 11;
		put_interpreted(20, old ? kinds[i / 2].old_bcp : kinds[i / 2].bcp, STACK + 8 * 26);
		assert_int_equal(step(arch, world->interpreter + 8, 2, 20, &caller, &place), STEP_FOUND);
		assert_int_equal(caller.regs.pc, world->compiled + 0x10);
		assert_int_equal(caller.regs.r[arch->dwarf_sp], STACK + 8 * 26);
		assert_int_equal(caller.regs.r[arch->dwarf_fp], STACK + 8 * 40);
		assert_false(caller.sp_is_bound);
		assert_int_equal(place.code, FAKE_DATA + 0x3000);
		assert_int_equal(place.place, FAKE_DATA + 0x3055);
	}
	put_interpreted(20, -9, STACK + 8 * 15); /* of a caller that has left room for its own stack */
	assert_int_equal(step(&arch_aarch64, world->interpreter + 8, 2, 20, &caller, &place), STEP_FOUND);
	assert_true(caller.sp_is_bound);
	assert_int_equal(caller.regs.r[X_SP], STACK + 8 * 22);
}

/* While a frame is made or left, the bytecode register is of another method. */
static void test_interpreted_top(void **state)
{
	enum { METHOD = FAKE_DATA + 0x3000, CONST_METHOD = FAKE_DATA + 0x3100 };
	struct caller caller;
	struct java_place place;

	put_interpreted(20, -9, STACK + 8 * 26);
	fake_put(&world->fake, METHOD + 8, CONST_METHOD, 8);
	fake_put(&world->fake, CONST_METHOD + 10, 8, 2);
	world->walk.exact = true;
	regs_put(&world->walk.regs, X_BCP, CONST_METHOD + FAKE_CONST_METHOD + 7);
	assert_int_equal(step(&arch_aarch64, world->interpreter + 8, 2, 20, &caller, &place), STEP_FOUND);
	assert_int_equal(place.place, CONST_METHOD + FAKE_CONST_METHOD + 7);
	regs_put(&world->walk.regs, X_BCP, CONST_METHOD + FAKE_CONST_METHOD + 8);
	assert_int_equal(step(&arch_aarch64, world->interpreter + 8, 2, 20, &caller, &place), STEP_UNKNOWN);
	assert_int_equal(place.code, 0);
}

/* Native code gets back what it had in registers. */
static void test_entry(void **state)
{
	struct caller caller;
	struct java_place place;

	world->stack[30] = 0x2929;
	world->stack[31] = OTHER + 0x44;
	world->stack[30 - 9] = 0x1919;
	world->stack[30 - 18] = 0x2828;
	assert_int_equal(step(&arch_aarch64, world->stub + 0x40, 2, 30, &caller, &place), STEP_FOUND);
	assert_int_equal(caller.regs.pc, OTHER + 0x44);
	assert_int_equal(caller.regs.r[X_SP], STACK + 8 * 32);
	assert_int_equal(caller.regs.r[X_FP], 0x2929);
	assert_int_equal(caller.regs.r[19], 0x1919);
	assert_int_equal(caller.regs.r[28], 0x2828);
	world->stack[30 - 7] = 0x3;
	world->stack[30 - 11] = 0x15;
	assert_int_equal(step(&arch_x86_64, world->stub + 0x40, 2, 30, &caller, &place), STEP_FOUND);
	assert_int_equal(caller.regs.r[R_RSP], STACK + 8 * 32);
	assert_int_equal(caller.regs.r[R_RBP], 0x2929);
	assert_int_equal(caller.regs.r[3], 0x3);
	assert_int_equal(caller.regs.r[15], 0x15);
}

static void put_code(uint64_t at, const uint32_t *code, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fake_put(&world->fake, at + 4 * i, code[i], 4);
}

/* Routines that Java code calls: their code tells whether they have a frame. */
static void test_routine(void **state)
{
	static const uint32_t framed[] = {
		0xa9be7bfd, /* stp x29, x30, [sp, #-32]! */
		0x910003fd, /* mov x29, sp */
		0xf1000421, /* subs x1, x1, #1 */
		0x54ffffe1, /* b.ne to the one before */
		0x910003bf, /* mov sp, x29 */
		0xa8c27bfd, /* ldp x29, x30, [sp], #32 */
		0xd65f03c0, /* ret */
	};
	struct caller caller;
	struct java_place place;

	world->walk.exact = true;
	put_code(world->stub, framed, sizeof(framed) / sizeof(framed[0]));
	regs_put(&world->walk.regs, X_LR, world->compiled + 0x40);
	world->stack[20] = 0x2929;
	world->stack[21] = world->compiled + 0x40;
	world->stack[24 + 6 - 1] = OTHER + 0x20; /* where that returns to */
	for (unsigned i = 0; i < sizeof(framed) / sizeof(framed[0]); i++) {
		bool has_frame = i >= 1 && i <= 5;

		assert_int_equal(step(&arch_aarch64, world->stub + 4 * i, has_frame ? 20 : 24, i >= 2 && i <= 5 ? 20 : 33, &caller, &place),
				 STEP_FOUND);
		assert_int_equal(caller.regs.pc, world->compiled + 0x40);
		assert_int_equal(caller.regs.r[X_SP], STACK + 8 * 24);
		assert_int_equal(caller.regs.r[X_FP], has_frame ? 0x2929 : STACK + 8 * 33);
		assert_int_equal(caller.flags, 0);
	}
	world->stack[24 + 6 - 1] = 0x1234; /* nothing that it could return to */
	assert_int_equal(step(&arch_aarch64, world->stub + 8, 20, 20, &caller, &place), STEP_UNKNOWN);
	world->stack[24 + 6 - 1] = OTHER + 0x20;
	world->stack[21] = world->interpreter + 8; /* in the place of a method of which nothing is known */
	assert_int_equal(step(&arch_aarch64, world->stub + 8, 20, 20, &caller, &place), STEP_UNKNOWN);
}

/* The same where one routine has called another. */
static void test_routine_that_calls(void **state)
{
	static const uint8_t code[] = {0x55, 0x48, 0x8b, 0xec, 0x53, 0xe8, 0, 0, 0, 0, 0x5b, 0xc9, 0xc3}; /* enter; push; call; pop; leave */
	struct caller caller;
	struct java_place place;

	for (size_t i = 0; i < sizeof(code); i++)
		fake_put(&world->fake, world->stub + i, code[i], 1);
	world->stack[21] = 0x2929;
	world->stack[22] = world->compiled + 0x40;
	world->stack[23 + 6 - 1] = OTHER + 0x20;
	assert_int_equal(step(&arch_x86_64, world->stub + 10, 20, 21, &caller, &place), STEP_FOUND);
	assert_int_equal(caller.regs.pc, world->compiled + 0x40);
	assert_int_equal(caller.regs.r[R_RSP], STACK + 8 * 23);
	assert_int_equal(caller.regs.r[R_RBP], 0x2929);
	assert_int_equal(caller.flags, 0);
	fake_put(&world->fake, world->stub + 10, 0xf4, 1); /* no return */
	assert_int_equal(step(&arch_x86_64, world->stub + 10, 20, 21, &caller, &place), STEP_FOUND);
	assert_int_equal(caller.flags, FRAME_BY_FRAME_POINTER);
}

/* Registers that were saved for a call to native code are taken off behind it, and the frame begins above them. */
static void test_saved_for_native(void **state)
{
	static const struct {
		const char *what;
		unsigned words; /* saved */
		uint32_t code[5];
	} cases[] = {
		{"nothing", 0, {0xaa0003e1, 0x14000010}},
		{"a barrier", 10, {0xaa0003e1, 0x6cc10fe2 /* ldp d2, d3, [sp], #16 */, 0xacc117e4 /* ldp q4, q5, [sp], #32 */,
				   0xa8c20be1 /* ldp x1, x2, [sp], #32 */, 0x14000010}},
		{"vectors", 8, {0x4cdf2fe0 /* ld1 {v0.2d-v3.2d}, [sp], #64 */, 0x14000010}},
		{"the address, and again for the next call", 2, {0x910043ff /* add sp, sp, #16 */, 0xa9bf23ff, 0xd63f0100}},
		{"nothing, at the end of the method", 0, {0xa9427bfd /* ldp x29, x30, [sp, #32] */, 0x9100c3ff, 0xd65f03c0}},
		{"the address, at the end of the method", 2, {0x910043ff, 0xa9427bfd, 0x9100c3ff, 0xd65f03c0}},
	};
	static const struct raw_frame callee = {.pc = OTHER + 0x80}, current = {0};
	struct caller caller;
	struct java_place place;

	vec_push(&world->out, callee);
	vec_push(&world->out, current);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(world->stack, 0, sizeof(world->stack));
		put_code(world->compiled + 0x40, cases[i].code, 5);
		world->stack[2 + cases[i].words + 6 - 1] = OTHER + 0x20;
		print_message("%s\n", cases[i].what);
		assert_int_equal(step(&arch_aarch64, world->compiled + 0x40, 2, 30, &caller, &place), STEP_FOUND);
		assert_int_equal(caller.regs.pc, OTHER + 0x20);
		assert_int_equal(caller.regs.r[X_SP], STACK + 8 * (2 + cases[i].words + 6));
	}
	world->out.data[0].pc = world->stub; /* what is called by a stub is called as any method is */
	assert_int_equal(step(&arch_aarch64, world->compiled + 0x40, 4, 30, &caller, &place), STEP_FOUND);
	assert_int_equal(caller.regs.r[X_SP], STACK + 8 * (4 + 6));
}

static void test_saved_for_native_x86_64(void **state)
{
	static const struct {
		unsigned words;
		uint8_t code[16];
	} cases[] = {
		{4, {0x48, 0x8b, 0x04, 0x24, 0x48, 0x83, 0xc4, 0x20, 0xeb, 0x10}},	     /* mov (%rsp), %rax; add $32, %rsp; jmp */
		{0, {0x48, 0x83, 0xc4, 0x20, 0x5d, 0x49, 0x3b, 0x67, 0x28, 0x77, 0x10, 0xc3}}, /* add $32, %rsp; pop %rbp: the end */
	};
	static const struct raw_frame callee = {.pc = OTHER + 0x80}, current = {0};
	struct caller caller;
	struct java_place place;

	vec_push(&world->out, callee);
	vec_push(&world->out, current);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t k = 0; k < sizeof(cases[i].code); k++)
			fake_put(&world->fake, world->compiled + 0x40 + k, cases[i].code[k], 1);
		memset(world->stack, 0, sizeof(world->stack));
		world->stack[2 + cases[i].words + 6 - 1] = OTHER + 0x20;
		assert_int_equal(step(&arch_x86_64, world->compiled + 0x40, 2, 30, &caller, &place), STEP_FOUND);
		assert_int_equal(caller.regs.r[R_RSP], STACK + 8 * (2 + cases[i].words + 6));
	}
}

/* Whatever does not lead to code was no frame. */
/* A thread was interrupted in a method that has its frame: the link register must not say otherwise. */
static void test_compiled_top(void **state)
{
	static const uint32_t code[] = {0xd503201f, 0xd503201f, 0x17fffffe}; /* nop; nop; b: back to the first */
	const uint64_t at = world->compiled + 0x40;
	struct caller caller;
	struct java_place place;

	put_code(at, code, sizeof(code) / sizeof(code[0]));
	world->walk.exact = true;
	world->stack[2 + 6 - 1] = OTHER + 0x20;
	regs_put(&world->walk.regs, X_LR, OTHER + 0x20); /* nothing was called yet */
	assert_int_equal(step(&arch_aarch64, at, 2, 30, &caller, &place), STEP_FOUND);
	assert_int_equal(caller.regs.pc, OTHER + 0x20);
	regs_put(&world->walk.regs, X_LR, world->compiled + 0x20); /* something was */
	assert_int_equal(step(&arch_aarch64, at, 2, 30, &caller, &place), STEP_FOUND);
	regs_put(&world->walk.regs, X_LR, OTHER + 0x80);
	assert_int_equal(step(&arch_aarch64, at, 2, 30, &caller, &place), STEP_UNKNOWN);
}

static void test_saved_at_top(void **state)
{
	static const uint32_t code[] = {0xa9bf0be1, 0xd63f0100, 0xa8c10be1, 0x17fffffd}; /* stp x1, x2, …; blr; ldp x1, x2, …; b */
	const uint64_t at = world->compiled + 0x40;
	struct caller caller;
	struct java_place place;

	put_code(at, code, sizeof(code) / sizeof(code[0]));
	world->walk.exact = true;
	world->stack[2 + 2 + 6 - 1] = OTHER + 0x20;
	regs_put(&world->walk.regs, X_LR, OTHER + 0x20);
	assert_int_equal(step(&arch_aarch64, at, 4, 30, &caller, &place), STEP_FOUND);
	assert_int_equal(caller.regs.r[X_SP], STACK + 8 * 10);
	assert_int_equal(step(&arch_aarch64, at + 4, 2, 30, &caller, &place), STEP_FOUND);
	assert_int_equal(caller.regs.r[X_SP], STACK + 8 * 10);
}

/* The wrapper of a native method saves what it likes below its frame, to which its frame pointer leads. */
static void test_wrapper_top(void **state)
{
	static const uint32_t code[] = {0xa9b707e0, 0xd63f0100, 0x910003bf, 0xa8c17bfd, 0xd65f03c0}; /* stp; blr; mov sp, x29; ldp; ret */
	const uint64_t wrapper = fake_blob(&world->fake, 30, 8, "native nmethod", 12) + FAKE_CODE;
	struct caller caller;
	struct java_place place;

	put_code(wrapper + 0x40, code, sizeof(code) / sizeof(code[0]));
	world->walk.exact = true;
	world->stack[20] = STACK + 8 * 40;
	world->stack[21] = OTHER + 0x20;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(step(&arch_aarch64, wrapper + 0x40 + 4 * i, 3, 20, &caller, &place), STEP_FOUND);
		assert_int_equal(caller.regs.pc, OTHER + 0x20);
		assert_int_equal(caller.regs.r[X_SP], STACK + 8 * 22);
		assert_int_equal(caller.regs.r[X_FP], STACK + 8 * 40);
	}
	world->stack[21] = wrapper + 0x20; /* a second frame of the same wrapper */
	assert_int_equal(step(&arch_aarch64, wrapper + 0x44, 3, 20, &caller, &place), STEP_UNKNOWN);
}

/* The size that a stub tells is that of its frame around a call: where it was interrupted, it is on the way to that. */
static void test_stub_top(void **state)
{
	static const uint32_t code[] = {
		0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
		0x910003fd, /* mov x29, sp */
		0xa9be07e0, /* stp x0, x1, [sp, #-32]! */
		0xd63f0100, /* blr x8 */
		0xa8c207e0, /* ldp x0, x1, [sp], #32 */
		0x910003bf, /* mov sp, x29 */
		0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
		0xd65f03c0, /* ret */
	};
	static const unsigned sps[] = {24, 22, 22, 18, 18, 22, 22, 24};
	const uint64_t stub = fake_blob(&world->fake, 40, 8, "C1 Runtime new_type_array_blob", 6) + FAKE_CODE;
	struct caller caller;
	struct java_place place;

	put_code(stub, code, sizeof(code) / sizeof(code[0]));
	world->stack[22] = STACK + 8 * 40;
	world->stack[23] = world->compiled + 0x20;
	world->stack[24 + 6 - 1] = OTHER + 0x20; /* the frame of the caller */
	for (unsigned i = 0; i < sizeof(code) / sizeof(code[0]); i++) {
		world->walk.exact = true;
		regs_put(&world->walk.regs, X_LR, i == 0 || i == 7 ? world->compiled + 0x20 : OTHER);
		assert_int_equal(step(&arch_aarch64, stub + 4 * i, sps[i], i >= 2 && i <= 6 ? 22 : 40, &caller, &place), STEP_FOUND);
		assert_int_equal(caller.regs.pc, world->compiled + 0x20);
		assert_int_equal(caller.regs.r[X_SP], STACK + 8 * 24);
		assert_int_equal(caller.regs.r[X_FP], STACK + 8 * 40);
	}
	put_code(stub, (const uint32_t[]){0xd503201f}, 1); /* any other beginning */
	assert_int_equal(step(&arch_aarch64, stub + 8, 22, 22, &caller, &place), STEP_UNKNOWN);
	world->walk.exact = false;
	assert_int_equal(step(&arch_aarch64, stub + 16, 18, 22, &caller, &place), STEP_FOUND);
	assert_int_equal(caller.regs.r[X_SP], STACK + 8 * 24);
}

static void test_hostile(void **state)
{
	static const uint64_t pcs[] = {0, 1, STACK, FAKE_HEAP + 0x7000, UINT64_MAX};
	struct caller caller;
	struct java_place place;

	for (size_t i = 0; i < sizeof(pcs) / sizeof(pcs[0]); i++) {
		world->stack[2 + 5] = pcs[i];
		assert_int_equal(step(&arch_aarch64, world->compiled + 0x40, 2, 30, &caller, &place), STEP_UNKNOWN);
	}
	assert_int_equal(step(&arch_aarch64, world->compiled + 0x40, WORDS - 2, 30, &caller, &place), STEP_END); /* beyond the stack */
	assert_int_equal(step(&arch_aarch64, world->interpreter, 20, 10, &caller, &place), STEP_UNKNOWN); /* fp below sp */
	assert_int_equal(step(&arch_aarch64, world->interpreter, 2, 1 << 20, &caller, &place), STEP_UNKNOWN);
	assert_int_equal(step(&arch_aarch64, FAKE_HEAP + 0x7000, 2, 20, &caller, &place), STEP_UNKNOWN); /* free */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_compiled, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_deoptimized, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_interpreted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_interpreted_top, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_entry, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_compiled_top, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_saved_at_top, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_wrapper_top, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stub_top, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_routine, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_routine_that_calls, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_saved_for_native, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_saved_for_native_x86_64, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hostile, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
