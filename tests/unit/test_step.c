/* SPDX-License-Identifier: MIT */
/* Steps that test_unwind.c's walks do not take. */
#include "tinyworld.h"

enum {
	RBX = 3,
	RBP = 6,
	RSP = 7,
	R12 = 12,
	X19 = 19,
	FP = 29,
	LR = 30,
	SP = 31,
	DEF_CFA = 0x0c,
	OFFSET = 0x80,
	SAME_VALUE = 0x08,
	UNDEFINED = 0x07,
	REGISTER = 0x09,
	VAL_OFFSET = 0x14,
	EXPRESSION = 0x10,
	VAL_EXPRESSION = 0x16,
};

/* A frame of four words: frame record at the bottom, x19 above it. */
#define FRAME_OF_FOUR DEF_CFA, SP, 32, OFFSET | FP, 4, OFFSET | LR, 3, OFFSET | X19, 2

/*
 * On aarch64 a frame record tells neither where its frame starts nor where it ends. A caller found by one has an sp
 * that is only a lower bound: its row is then applied from its own frame record, which is where fp points.
 */
static void test_sp_from_the_frame_record(void **state)
{
	struct tiny *t = tiny_create(&arch_aarch64);
	struct caller caller;

	TINY_CFI(t, 0, 0x100, FRAME_OF_FOUR);
	tiny_stand(t, TINY_CODE + 0x20, 2, false);
	regs_put(&t->walk.regs, FP, TINY_STACK + 8 * 10);
	t->stack[10] = TINY_STACK + 8 * 30;
	t->stack[11] = TINY_CODE + 0x200;
	t->stack[12] = 0x1919;
	t->stack[3] = TINY_CODE + 0x300; /* what sp as it stands would give */
	t->walk.sp_is_bound = true;
	assert_true(tiny_step(t, &caller));
	assert_int_equal(caller.regs.pc, TINY_CODE + 0x200);
	assert_int_equal(caller.regs.r[SP], TINY_STACK + 8 * 14);
	assert_int_equal(caller.regs.r[FP], TINY_STACK + 8 * 30);
	assert_int_equal(caller.regs.r[X19], 0x1919);
	assert_false(caller.sp_is_bound); /* now it is known */
	assert_false(caller.exact);
	assert_int_equal(caller.flags, 0);

	t->walk.sp_is_bound = false;
	assert_true(tiny_step(t, &caller));
	assert_int_equal(caller.regs.pc, TINY_CODE + 0x300);
	assert_int_equal(caller.regs.r[SP], TINY_STACK + 8 * 6);
	tiny_destroy(t);
}

static void test_sp_from_a_record_further_up(void **state)
{
	struct tiny *t = tiny_create(&arch_aarch64);
	struct caller caller;

	/* locals below the record: fp at CFA - 16, 64 bytes of frame */
	TINY_CFI(t, 0, 0x100, DEF_CFA, SP, 64, OFFSET | FP, 2, OFFSET | LR, 1);
	tiny_stand(t, TINY_CODE + 0x20, 2, false);
	regs_put(&t->walk.regs, FP, TINY_STACK + 8 * 10);
	t->stack[11] = TINY_CODE + 0x200;
	t->walk.sp_is_bound = true;
	assert_true(tiny_step(t, &caller));
	assert_int_equal(caller.regs.pc, TINY_CODE + 0x200);
	assert_int_equal(caller.regs.r[SP], TINY_STACK + 8 * 12);
	tiny_destroy(t);
}

static void expect_missing(struct tiny *t, unsigned reg)
{
	struct caller caller;

	assert_false(tiny_step(t, &caller));
	assert_int_equal(t->out.end, STACK_MISSING_REGISTER);
	assert_non_null(strstr(t->out.error, t->arch->dwarf_reg_names[reg]));
}

/* Where the row has no frame record there is nothing to compute sp from. */
static void test_bound_without_a_frame_record(void **state)
{
	struct tiny *t = tiny_create(&arch_aarch64);
	struct caller caller;

	TINY_CFI(t, 0, 0x100, DEF_CFA, SP, 32, OFFSET | LR, 3);                     /* fp is not saved */
	TINY_CFI(t, 0x100, 0x100, DEF_CFA, SP, 32, OFFSET | FP, 4, OFFSET | LR, 1); /* not side by side */
	TINY_CFI(t, 0x200, 0x100, DEF_CFA, SP, 32, OFFSET | FP, 3, OFFSET | LR, 4); /* the wrong way round */
	TINY_CFI(t, 0x300, 0x100, FRAME_OF_FOUR);
	TINY_CFI(t, 0x400, 0x100, DEF_CFA, FP, 16, OFFSET | FP, 2, OFFSET | LR, 1); /* does without sp */
	for (unsigned i = 0; i < 3; i++) {
		tiny_stand(t, TINY_CODE + 0x100 * i + 0x20, 2, false);
		regs_put(&t->walk.regs, FP, TINY_STACK + 8 * 10);
		t->walk.sp_is_bound = true;
		expect_missing(t, SP);
	}
	tiny_stand(t, TINY_CODE + 0x320, 2, false); /* fp is not known */
	t->walk.sp_is_bound = true;
	expect_missing(t, FP);

	tiny_stand(t, TINY_CODE + 0x420, 2, false);
	regs_put(&t->walk.regs, FP, TINY_STACK + 8 * 10);
	t->stack[11] = TINY_CODE + 0x200;
	t->walk.sp_is_bound = true;
	assert_true(tiny_step(t, &caller));
	assert_int_equal(caller.regs.pc, TINY_CODE + 0x200);
	assert_int_equal(caller.regs.r[SP], TINY_STACK + 8 * 12);
	tiny_destroy(t);
}

/* A frame pointer that leads down again, or out of the stack. */
static void test_hostile_frame_record(void **state)
{
	struct tiny *t = tiny_create(&arch_aarch64);
	struct caller caller;

	TINY_CFI(t, 0, 0x100, FRAME_OF_FOUR);
	tiny_stand(t, TINY_CODE + 0x20, 20, false);
	regs_put(&t->walk.regs, FP, TINY_STACK + 8 * 10);
	t->stack[11] = TINY_CODE + 0x200;
	t->walk.sp_is_bound = true;
	assert_false(tiny_step(t, &caller));
	assert_int_equal(t->out.end, STACK_NO_PROGRESS);
	regs_put(&t->walk.regs, FP, UINT64_MAX - 8);
	assert_false(tiny_step(t, &caller));
	assert_int_equal(t->out.end, STACK_UNREADABLE);
	tiny_destroy(t);
}

/* Every kind of rule for a register; those that cannot be had are left out. */
static void test_rules(void **state)
{
	struct tiny *t = tiny_create(&arch_x86_64);
	struct caller caller;

	TINY_CFI(t, 0, 0x100, DEF_CFA, RSP, 32, OFFSET | 16, 1, /* return address at CFA - 8 */
		 VAL_OFFSET, RBX, 2,                            /* CFA - 16 */
		 EXPRESSION, R12, 2, 0x23, 0x08,                /* at CFA + 8 */
		 VAL_EXPRESSION, 13, 2, 0x23, 0x10,             /* CFA + 16 */
		 REGISTER, 14, RBP,                             /* what rbp has */
		 OFFSET | RBP, 100,                             /* out of the stack: not to be had */
		 UNDEFINED, 15);
	tiny_stand(t, TINY_CODE + 0x20, 0, true);
	regs_put(&t->walk.regs, RBP, 0xbbbb);
	regs_put(&t->walk.regs, 15, 0xffff);
	regs_put(&t->walk.regs, 0, 0xaaaa); /* rax: calls do not preserve it */
	t->stack[3] = TINY_CODE + 0x200;
	t->stack[5] = 0x1212;
	assert_true(tiny_step(t, &caller));
	assert_int_equal(caller.regs.pc, TINY_CODE + 0x200);
	assert_int_equal(caller.regs.r[RSP], TINY_STACK + 32);
	assert_int_equal(caller.regs.r[RBX], TINY_STACK + 16);
	assert_int_equal(caller.regs.r[R12], 0x1212);
	assert_int_equal(caller.regs.r[13], TINY_STACK + 48);
	assert_int_equal(caller.regs.r[14], 0xbbbb);
	assert_false(regs_has(&caller.regs, RBP));
	assert_false(regs_has(&caller.regs, 15));
	assert_false(regs_has(&caller.regs, 0));
	tiny_destroy(t);
}

/* Code of no file may be a trampoline, too: some kernels put it on the stack. */
static void check_loose_sigreturn(const struct arch *arch)
{
	struct tiny *t = tiny_create(arch);
	struct caller caller;
	uint8_t *frame = (uint8_t *)&t->stack[2];
	uint64_t pc = TINY_CODE + 4, sp = 0x1000;

	tiny_code(t, TINY_JIT + 0x40, arch->sigreturn_code[0], arch->sigreturn_len[0]);
	memcpy(frame + arch->sigframe_pc_offset, &pc, 8);
	memcpy(frame + arch->sigframe_offset[arch->dwarf_sp], &sp, 8);
	tiny_stand(t, TINY_JIT + 0x40, 2, false);
	t->out.data[0].flags = FRAME_RETURN_ADDRESS;
	assert_true(tiny_step(t, &caller));
	assert_int_equal(caller.regs.pc, pc);
	assert_int_equal(caller.regs.r[arch->dwarf_sp], sp);
	assert_true(caller.exact);
	assert_int_equal(t->out.data[0].flags, FRAME_SIGNAL);
	tiny_destroy(t);
}

static void test_loose_sigreturn(void **state)
{
	check_loose_sigreturn(&arch_x86_64);
	check_loose_sigreturn(&arch_aarch64);
}

/* A signal frame that cannot be read ends the walk. */
static void test_signal_frame_cut_off(void **state)
{
	struct tiny *t = tiny_create(&arch_x86_64);
	struct caller caller;

	tiny_code(t, TINY_CODE, arch_x86_64.sigreturn_code[0], arch_x86_64.sigreturn_len[0]);
	tiny_stand(t, TINY_CODE, TINY_STACK_WORDS - 4, false);
	assert_false(tiny_step(t, &caller));
	assert_int_equal(t->out.end, STACK_UNREADABLE);
	tiny_destroy(t);
}

/* A signal frame may lead anywhere, also to itself: then only counting ends the walk. */
static void test_signal_frame_that_leads_to_itself(void **state)
{
	struct tiny *t = tiny_create(&arch_x86_64);
	uint8_t *frame = (uint8_t *)&t->stack[0];
	uint64_t pc = TINY_CODE, sp = TINY_STACK;
	struct caller caller;
	unsigned steps = 0;

	tiny_code(t, TINY_CODE, arch_x86_64.sigreturn_code[0], arch_x86_64.sigreturn_len[0]);
	memcpy(frame + arch_x86_64.sigframe_pc_offset, &pc, 8);
	memcpy(frame + arch_x86_64.sigframe_offset[RSP], &sp, 8);
	tiny_stand(t, TINY_CODE, 0, true);
	while (steps < 1000 && tiny_step(t, &caller)) {
		t->walk.regs = caller.regs;
		t->walk.exact = caller.exact;
		steps++;
	}
	assert_in_range(steps, 16, 999); /* handlers that interrupt handlers are real, up to a point */
	assert_int_equal(t->out.end, STACK_NO_PROGRESS);
	tiny_destroy(t);
}

/* A runtime whose code is what no file has, and what its steps are told to find. */
struct teller {
	enum step_result result;
	uint64_t pc;
	uint64_t sp;
};

static bool teller_owns(void *state, uint64_t pc)
{
	return pc >= TINY_JIT && pc < TINY_JIT + TINY_JIT_LEN;
}

static enum step_result teller_step(void *state, struct walk *w, struct caller *out)
{
	const struct teller *teller = state;

	out->regs.pc = teller->pc;
	regs_put(&out->regs, w->arch->dwarf_sp, teller->sp);
	if (teller->result == STEP_END)
		walk_end(w, STACK_UNREADABLE, "told so");
	return teller->result;
}

static void test_runtime_steps(void **state)
{
	static const struct stepper_ops ops = {.owns = teller_owns, .step = teller_step};
	struct teller teller = {.result = STEP_FOUND, .pc = TINY_CODE + 0x20, .sp = TINY_STACK + 8 * 20};
	const struct stepper stepper = {.ops = &ops, .state = &teller};
	struct tiny *t = tiny_create(&arch_aarch64);
	struct caller caller;

	tiny_stand(t, TINY_JIT + 0x20, 2, false);
	t->walk.steppers = &stepper;
	t->walk.nsteppers = 1;
	assert_true(tiny_step(t, &caller));
	assert_int_equal(caller.regs.pc, TINY_CODE + 0x20);
	assert_int_equal(caller.flags, 0);
	assert_false(t->walk.is_unsure);

	teller.sp = TINY_STACK + 8 * 2; /* not towards the base */
	assert_false(tiny_step(t, &caller));
	assert_int_equal(t->out.end, STACK_NO_PROGRESS);

	teller.result = STEP_END;
	assert_false(tiny_step(t, &caller));
	assert_int_equal(t->out.end, STACK_UNREADABLE);

	/* What it cannot tell is guessed, and said to be. */
	teller.result = STEP_UNKNOWN;
	regs_put(&t->walk.regs, FP, TINY_STACK + 8 * 10);
	t->stack[10] = TINY_STACK + 8 * 30;
	t->stack[11] = TINY_JIT + 0x40;
	assert_true(tiny_step(t, &caller));
	assert_int_equal(caller.regs.pc, TINY_JIT + 0x40);
	assert_true(t->walk.is_unsure);
	tiny_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runtime_steps),
		cmocka_unit_test(test_sp_from_the_frame_record),
		cmocka_unit_test(test_sp_from_a_record_further_up),
		cmocka_unit_test(test_bound_without_a_frame_record),
		cmocka_unit_test(test_hostile_frame_record),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_loose_sigreturn),
		cmocka_unit_test(test_signal_frame_cut_off),
		cmocka_unit_test(test_signal_frame_that_leads_to_itself),
	};

	return cmocka_run_group_tests_name("step", tests, NULL, NULL);
}
