/* SPDX-License-Identifier: MIT */
#include "tinyworld.h"

#include "unwind/go_stack.h"

enum { RBP = 6, RSP = 7, R14 = 14, FP = 29, LR = 30, SP = 31 };

/* Where the tiny world's stack has what the runtime knows, and a goroutine's stack behind that. */
enum { G0 = 0, G = 128, M = 256, STACK_LOW = 512, STACK_HIGH = 768, KEPT = 800, SAVED_SP = 600, SAVED_PC = 0x20 };

static void put(struct tiny *t, size_t at, uint64_t value)
{
	t->stack[at / 8] = value;
}

/* `old`: up to the release that dropped a word from the saved registers. */
static struct tiny *create(const struct arch *arch, bool old)
{
	struct tiny *t = tiny_create(arch);

	put(t, G0 + 48, TINY_STACK + M);
	put(t, G + 48, TINY_STACK + M);
	put(t, M, TINY_STACK + G0);
	put(t, M + (old ? 192 : 184), TINY_STACK + G);
	put(t, G, TINY_STACK + STACK_LOW);
	put(t, G + 8, TINY_STACK + STACK_HIGH);
	put(t, G + 56, TINY_STACK + SAVED_SP);
	put(t, G + 64, TINY_CODE + SAVED_PC);
	put(t, G + (old ? 96 : 88), 0x1234);  /* LR */
	put(t, G + (old ? 104 : 96), 0x5678); /* fp */
	tiny_stand(t, TINY_CODE, KEPT / 8, false);
	regs_put(&t->walk.regs, arch->dwarf_go, TINY_STACK + G0);
	return t;
}

static void test_saved(void **state)
{
	for (unsigned old = 0; old < 2; old++) {
		struct tiny *t = create(&arch_x86_64, old);
		struct regs regs;

		assert_true(go_stack_find(&t->walk, GO_ROW_SYSTEM, NULL, &regs));
		assert_int_equal(regs.pc, TINY_CODE); /* the frame is still that of systemstack */
		assert_int_equal(regs.valid, UINT64_C(1) << RSP | UINT64_C(1) << RBP | UINT64_C(1) << R14);
		assert_int_equal(regs.r[R14], TINY_STACK + G);
		assert_int_equal(regs.r[RSP], TINY_STACK + SAVED_SP);
		assert_int_equal(regs.r[RBP], 0x5678);
		assert_null(t->walk.stack);
		assert_true(go_stack_find(&t->walk, GO_ROW_MORESTACK, NULL, &regs));
		assert_int_equal(regs.pc, TINY_CODE + SAVED_PC);
		tiny_destroy(t);
	}
}

static void test_saved_link_register(void **state)
{
	for (unsigned old = 0; old < 2; old++) {
		struct tiny *t = create(&arch_aarch64, old);
		struct regs regs;

		assert_true(go_stack_find(&t->walk, GO_ROW_MORESTACK, NULL, &regs));
		assert_int_equal(regs.r[SP], TINY_STACK + SAVED_SP);
		assert_int_equal(regs.r[FP], 0x5678);
		assert_int_equal(regs.r[LR], 0x1234);
		tiny_destroy(t);
	}
}

static void expect_kept(const struct arch *arch, size_t goroutine, size_t depth)
{
	struct tiny *t = create(arch, true);
	struct regs regs;

	put(t, KEPT + goroutine, TINY_STACK + G);
	put(t, KEPT + depth, 64);
	assert_true(go_stack_find(&t->walk, GO_ROW_C, NULL, &regs));
	assert_int_equal(regs.valid, UINT64_C(1) << arch->dwarf_sp | UINT64_C(1) << arch->dwarf_go);
	assert_int_equal(regs.r[arch->dwarf_go], TINY_STACK + G);
	assert_int_equal(regs.r[arch->dwarf_sp], TINY_STACK + STACK_HIGH - 64);

	/* On the thread's stack already: where that was. */
	put(t, KEPT + goroutine, 0);
	put(t, KEPT + depth, TINY_STACK + KEPT + 80);
	assert_true(go_stack_find(&t->walk, GO_ROW_C, NULL, &regs));
	assert_int_equal(regs.r[arch->dwarf_sp], TINY_STACK + KEPT + 80);
	assert_int_equal(regs.r[arch->dwarf_go], TINY_STACK + G0);

	put(t, KEPT + goroutine, TINY_STACK + G);
	put(t, KEPT + depth, STACK_HIGH - STACK_LOW + 8); /* below the goroutine's stack */
	assert_false(go_stack_find(&t->walk, GO_ROW_C, NULL, &regs));
	tiny_destroy(t);
}

static void test_kept_by_a_call_of_c(void **state)
{
	expect_kept(&arch_x86_64, 48, 40);
	expect_kept(&arch_x86_64, 8, 0);
	expect_kept(&arch_aarch64, 0, 8);
}

static void expect_none(size_t at, uint64_t value)
{
	struct tiny *t = create(&arch_x86_64, true);
	struct regs regs;

	put(t, at, value);
	assert_false(go_stack_find(&t->walk, GO_ROW_MORESTACK, NULL, &regs));
	assert_int_equal(t->out.end, STACK_NO_UNWIND_INFO);
	assert_string_equal(t->out.error, "the Go runtime has switched stacks here");
	tiny_destroy(t);
}

/* Registers may hold anything: only what points at each other is believed. */
static void test_not_a_goroutine(void **state)
{
	expect_none(G0 + 48, 0);
	expect_none(G0 + 48, 0x10);
	expect_none(G0 + 48, TINY_STACK + M + 1);
	expect_none(M, TINY_STACK + G);
	expect_none(M + 192, TINY_STACK + G0);
	expect_none(G + 48, TINY_STACK + G0);
	expect_none(G + 56, TINY_STACK + STACK_HIGH);
	expect_none(G + 56, TINY_STACK + STACK_LOW - 8);
	expect_none(G + 56, TINY_STACK + SAVED_SP + 1);
	expect_none(G + 64, TINY_STACK);
}

/* Another layout than is known: nothing tells that there is none. */
static void test_neither_goroutine_nor_function(void **state)
{
	struct tiny *t = create(&arch_x86_64, true);
	struct regs regs;

	put(t, M + 192, 0);
	put(t, M + 184, TINY_STACK + KEPT);
	put(t, KEPT, 0x10);
	assert_false(go_stack_find(&t->walk, GO_ROW_MORESTACK, NULL, &regs));
	assert_int_equal(t->out.end, STACK_NO_UNWIND_INFO);
	tiny_destroy(t);
}

/* The thread is about to look for another goroutine. */
static void test_has_left_the_goroutine(void **state)
{
	for (unsigned old = 0; old < 2; old++) {
		struct tiny *t = create(&arch_x86_64, old);
		struct regs regs;

		put(t, M + (old ? 192 : 184), 0);
		if (old) {
			put(t, M + 184, TINY_STACK + KEPT); /* its first function */
			put(t, KEPT, TINY_CODE);
		}
		assert_false(go_stack_find(&t->walk, GO_ROW_MORESTACK, NULL, &regs));
		assert_int_equal(t->out.end, STACK_COMPLETE);
		tiny_destroy(t);
	}
}

/* Go that C has called, twice: the thread's own stack was left at one place, and before that at another. */
static void expect_callbacks(const struct arch *arch, size_t saved)
{
	enum { INNER = 816, OUTER = 896, BASE = 960 };
	struct tiny *t = create(arch, true);
	struct regs regs;

	put(t, G0 + 56, TINY_STACK + INNER);
	put(t, INNER + saved, TINY_STACK + OUTER);
	put(t, OUTER + saved, TINY_STACK + BASE);
	tiny_stand(t, TINY_CODE, SAVED_SP / 8, false);
	for (unsigned i = 0; i < 2; i++) {
		regs_put(&t->walk.regs, arch->dwarf_go, TINY_STACK + G);
		assert_true(go_stack_find(&t->walk, GO_ROW_CALLBACK, NULL, &regs));
		assert_int_equal(regs.valid, UINT64_C(1) << arch->dwarf_sp | UINT64_C(1) << arch->dwarf_go);
		assert_int_equal(regs.r[arch->dwarf_sp], TINY_STACK + (i ? OUTER : INNER));
		assert_int_equal(regs.r[arch->dwarf_go], TINY_STACK + G0);
	}
	t->walk.go_outer = 0;
	put(t, INNER + saved, TINY_STACK); /* nothing is kept there that is outside of it */
	assert_false(go_stack_find(&t->walk, GO_ROW_CALLBACK, NULL, &regs));
	assert_int_equal(t->out.end, STACK_NO_UNWIND_INFO);

	/* The stack was not left yet. */
	regs_put(&t->walk.regs, arch->dwarf_go, TINY_STACK + G0);
	assert_true(go_stack_find(&t->walk, GO_ROW_CALLBACK, NULL, &regs));
	assert_int_equal(regs.r[arch->dwarf_sp], TINY_STACK + SAVED_SP);
	put(t, G0 + 48, 0);
	assert_false(go_stack_find(&t->walk, GO_ROW_CALLBACK, NULL, &regs));
	tiny_destroy(t);
}

static void test_called_by_c(void **state)
{
	expect_callbacks(&arch_x86_64, 0);
	expect_callbacks(&arch_aarch64, 16);
}

static void test_frame(void **state)
{
	struct cfi_row row = {.cfa = {.kind = CFI_REGISTER_OFFSET, .reg = RSP, .offset = 0x20}};
	struct tiny *t = create(&arch_x86_64, true);
	struct regs regs;

	row.regs[RBP] = (struct cfi_rule){.kind = CFI_AT_CFA_OFFSET, .offset = -16};
	assert_false(go_stack_find(&t->walk, GO_ROW_FRAME, &row, &regs));
	assert_int_equal(t->out.end, STACK_MISSING_REGISTER);
	regs_put(&t->walk.regs, RBP, TINY_STACK + STACK_HIGH - 64);
	assert_true(go_stack_find(&t->walk, GO_ROW_FRAME, &row, &regs));
	assert_int_equal(regs.r[RSP], TINY_STACK + STACK_HIGH - 64 + 16 - 0x20);
	assert_int_equal(regs.r[RBP], TINY_STACK + STACK_HIGH - 64);
	assert_true(regs_has(&regs, R14)); /* a caller may have changed stacks, too, and needs it */
	assert_int_equal(regs.r[R14], TINY_STACK + G0);
	tiny_destroy(t);
}

static void test_missing_register(void **state)
{
	struct tiny *t = create(&arch_x86_64, true);
	struct regs regs;

	t->walk.regs.valid &= ~(UINT64_C(1) << R14);
	assert_false(go_stack_find(&t->walk, GO_ROW_SYSTEM, NULL, &regs));
	assert_int_equal(t->out.end, STACK_MISSING_REGISTER);
	tiny_destroy(t);
}

static void test_endless_switches(void **state)
{
	struct tiny *t = create(&arch_x86_64, true);
	struct regs regs;
	unsigned n = 0;

	while (n < 1000 && go_stack_find(&t->walk, GO_ROW_SYSTEM, NULL, &regs))
		n++;
	assert_in_range(n, 2, 100);
	tiny_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_saved),
		cmocka_unit_test(test_saved_link_register),
		cmocka_unit_test(test_kept_by_a_call_of_c),
		cmocka_unit_test(test_not_a_goroutine),
		cmocka_unit_test(test_has_left_the_goroutine), cmocka_unit_test(test_neither_goroutine_nor_function),
		cmocka_unit_test(test_called_by_c),
		cmocka_unit_test(test_frame),
		cmocka_unit_test(test_missing_register),
		cmocka_unit_test(test_endless_switches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
