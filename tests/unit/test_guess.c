/* SPDX-License-Identifier: MIT */
/* Guesses that test_unwind.c's walks do not make. */
#include "tinyworld.h"

static const struct arch *const archs[] = {&arch_x86_64, &arch_aarch64};

static struct tiny *stand_at(const struct arch *arch, uint64_t pc, bool exact)
{
	struct tiny *t = tiny_create(arch);

	tiny_stand(t, pc, 0, exact);
	regs_put(&t->walk.regs, arch->dwarf_fp, 1); /* of no use, unless the test says otherwise */
	return t;
}

static void expect_end(struct tiny *t, enum stack_end end)
{
	struct caller caller;

	assert_false(tiny_step(t, &caller));
	if (t->out.end != end)
		fail_msg("ended with %s: %s", stack_end_name(t->out.end), t->out.error);
	assert_int_equal(t->out.error[0] == '\0', end == STACK_COMPLETE);
}

static void expect_step(struct tiny *t, uint64_t pc, uint64_t sp, uint32_t flags, struct caller *caller)
{
	assert_true(tiny_step(t, caller));
	assert_int_equal(caller->regs.pc, pc);
	assert_int_equal(caller->regs.r[t->arch->dwarf_sp], sp);
	assert_int_equal(caller->flags, flags);
	assert_false(caller->exact);
}

static void put_exit(struct tiny *t, uint64_t at)
{
	static const uint8_t x86[] = {0x89, 0xc7, 0x31, 0xc0, 0xb0, 60, 0x0f, 0x05};
	static const uint32_t aarch64[] = {0xd2800ba8, 0xd4000001};

	if (t->arch->id == ARCH_X86_64)
		tiny_code(t, at, x86, sizeof(x86));
	else
		tiny_code(t, at, aarch64, sizeof(aarch64));
}

/* A thread's function returns into code that ends the thread: there is nothing below, whatever the stack holds. */
static void test_end_of_a_thread(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		struct tiny *t = stand_at(archs[i], TINY_CODE + 0x20, false);

		put_exit(t, TINY_CODE + 0x20);
		t->stack[1] = tiny_return(t, TINY_CODE + 0x200);
		expect_end(t, STACK_COMPLETE);
		/* Who stands there was interrupted: it may have come from anywhere. */
		tiny_stand(t, TINY_CODE + 0x20, 0, true);
		regs_put(&t->walk.regs, t->arch->dwarf_fp, 1);
		assert_true(tiny_step(t, &(struct caller){0}));
		tiny_destroy(t);
	}
}

static void test_startup_code(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		struct tiny *t = stand_at(archs[i], TINY_BASE + TINY_ENTRY_AT, true);

		t->stack[1] = tiny_return(t, TINY_CODE + 0x200);
		expect_end(t, STACK_COMPLETE);
		t->walk.regs.pc = TINY_BASE + TINY_ENTRY_AT + 127;
		expect_end(t, STACK_COMPLETE);
		t->walk.regs.pc = TINY_BASE + TINY_ENTRY_AT + 128;
		assert_true(tiny_step(t, &(struct caller){0}));
		t->walk.regs.pc = TINY_BASE + TINY_ENTRY_AT - 4;
		assert_true(tiny_step(t, &(struct caller){0}));
		tiny_destroy(t);
	}
}

/* The frame record gives sp on x86_64, and only a bound of it on aarch64. */
static void test_frame_pointer_tells_sp(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		struct tiny *t = stand_at(archs[i], TINY_CODE + 0x20, false);
		struct caller caller;

		regs_put(&t->walk.regs, t->arch->dwarf_fp, TINY_STACK + 8 * 10);
		t->stack[10] = 0x1234;
		t->stack[11] = tiny_return(t, TINY_CODE + 0x200);
		expect_step(t, TINY_CODE + 0x200, TINY_STACK + 8 * 12, FRAME_BY_FRAME_POINTER, &caller);
		assert_int_equal(caller.regs.r[t->arch->dwarf_fp], 0x1234);
		assert_int_equal(caller.sp_is_bound, t->arch == &arch_aarch64);
		tiny_destroy(t);
	}
}

/* A frame that V8 made returns to the start of code, which has a trap before it; that of others follows a call. */
static void test_frame_pointer_to_a_start(void **state)
{
	static const uint8_t start[8] = {0}, traps[] = {0xcc, 0xcc, 0xcc, 0xcc};

	for (size_t i = 0; i < 2; i++) {
		struct tiny *t = stand_at(archs[i], TINY_CODE + 0x20, false);
		struct caller caller;

		regs_put(&t->walk.regs, t->arch->dwarf_fp, TINY_STACK + 8 * 10);
		t->stack[10] = 0x1234;
		t->stack[11] = TINY_CODE + 0x200;
		t->stack[40] = tiny_return(t, TINY_CODE + 0x300);
		tiny_code(t, TINY_CODE + 0x1fc, start, sizeof(start));
		assert_true(tiny_step(t, &caller));
		assert_int_equal(caller.regs.pc, TINY_CODE + 0x300);
		tiny_code(t, TINY_CODE + 0x1fc, traps, sizeof(traps));
		expect_step(t, TINY_CODE + 0x200, TINY_STACK + 8 * 12, FRAME_BY_FRAME_POINTER, &caller);
		t->stack[11] = TINY_CODE + 0x1fe;
		assert_true(tiny_step(t, &caller));
		assert_int_equal(caller.regs.pc, TINY_CODE + 0x300);
		tiny_destroy(t);
	}
}

/* On aarch64 V8 enters its interpreter by a jump that was told where to return to. */
static void test_frame_pointer_behind_a_jump(void **state)
{
	static const uint32_t jump[] = {0x100000fe /* adr x30, +28 */, 0xd503201f, 0xd503201f, 0xd503201f, 0xd503201f, 0xd503201f,
					0xd61f0220 /* br x17 */};
	struct tiny *t = stand_at(&arch_aarch64, TINY_CODE + 0x20, false);
	struct caller caller;

	regs_put(&t->walk.regs, t->arch->dwarf_fp, TINY_STACK + 8 * 10);
	t->stack[11] = TINY_CODE + 0x204;
	t->stack[40] = tiny_return(t, TINY_CODE + 0x300);
	assert_true(tiny_step(t, &caller));
	assert_int_equal(caller.regs.pc, TINY_CODE + 0x300);
	tiny_code(t, TINY_CODE + 0x204 - sizeof(jump), jump, sizeof(jump));
	expect_step(t, TINY_CODE + 0x204, TINY_STACK + 8 * 12, FRAME_BY_FRAME_POINTER, &caller);
	tiny_destroy(t);
}

/* Registers that calls preserve are the caller's as well, others are not. */
static void test_registers_of_the_caller(void **state)
{
	struct tiny *t = stand_at(&arch_x86_64, TINY_CODE + 0x20, false);
	struct caller caller;

	for (unsigned reg = 0; reg < arch_x86_64.dwarf_ra; reg++)
		if (reg != arch_x86_64.dwarf_sp && reg != arch_x86_64.dwarf_fp)
			regs_put(&t->walk.regs, reg, reg);
	t->stack[0] = tiny_return(t, TINY_CODE + 0x200);
	expect_step(t, TINY_CODE + 0x200, TINY_STACK + 8, FRAME_BY_SCAN, &caller);
	for (unsigned reg = 0; reg < arch_x86_64.dwarf_ra; reg++)
		if (reg != arch_x86_64.dwarf_sp)
			assert_int_equal(regs_has(&caller.regs, reg), arch_x86_64.callee_saved >> reg & 1);
	tiny_destroy(t);
}

/* Code made at run time: its frame records are followed, its stack is not searched. */
static void test_code_of_no_file(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		struct tiny *t = stand_at(archs[i], TINY_JIT + 0x20, true);
		struct caller caller;

		t->stack[1] = tiny_return(t, TINY_CODE + 0x200);
		expect_end(t, STACK_NO_UNWIND_INFO);
		assert_non_null(strstr(t->out.error, "no unwind information for"));
		/* An interpreter's frame returns to where no call is, in code that is of no file either. */
		regs_put(&t->walk.regs, t->arch->dwarf_fp, TINY_STACK + 8 * 10);
		t->stack[11] = TINY_JIT + 0x80;
		expect_step(t, TINY_JIT + 0x80, TINY_STACK + 8 * 12, FRAME_BY_FRAME_POINTER, &caller);
		/* In a file there must be a call. */
		t->stack[11] = TINY_CODE + 0x300;
		expect_end(t, STACK_NO_UNWIND_INFO);
		t->stack[11] = 0;
		expect_end(t, STACK_NO_UNWIND_INFO);
		tiny_destroy(t);
	}
}

/* aarch64: such code's last call has left its return in the link register, while the frame record tells the caller. */
static void test_link_register_or_frame_record(void **state)
{
	struct tiny *t = stand_at(&arch_aarch64, TINY_JIT + 0x20, true);
	struct caller caller;

	regs_put(&t->walk.regs, arch_aarch64.dwarf_ra, tiny_return(t, TINY_CODE + 0x200));
	regs_put(&t->walk.regs, arch_aarch64.dwarf_fp, TINY_STACK + 8 * 10);
	t->stack[11] = tiny_return(t, TINY_CODE + 0x300);
	expect_step(t, TINY_CODE + 0x300, TINY_STACK + 8 * 12, FRAME_BY_FRAME_POINTER, &caller);
	/* In a file's code a leaf is likelier. */
	tiny_stand(t, TINY_CODE + 0x100, 0, true);
	regs_put(&t->walk.regs, arch_aarch64.dwarf_ra, TINY_CODE + 0x200);
	regs_put(&t->walk.regs, arch_aarch64.dwarf_fp, TINY_STACK + 8 * 10);
	expect_step(t, TINY_CODE + 0x200, TINY_STACK, FRAME_BY_SCAN, &caller);
	/* A caller's link register is long gone, and one that points at the pc itself leads nowhere. */
	t->walk.exact = false;
	expect_step(t, TINY_CODE + 0x300, TINY_STACK + 8 * 12, FRAME_BY_FRAME_POINTER, &caller);
	tiny_stand(t, TINY_CODE + 0x200, 0, true);
	regs_put(&t->walk.regs, arch_aarch64.dwarf_ra, TINY_CODE + 0x200);
	regs_put(&t->walk.regs, arch_aarch64.dwarf_fp, TINY_STACK + 8 * 10);
	expect_step(t, TINY_CODE + 0x300, TINY_STACK + 8 * 12, FRAME_BY_FRAME_POINTER, &caller);
	tiny_destroy(t);
}

/* aarch64: a call of what is no code leaves the way back in the link register. */
static void test_call_to_nowhere(void **state)
{
	struct tiny *t = stand_at(&arch_aarch64, 0, true);
	struct caller caller;

	t->stack[0] = tiny_return(t, TINY_CODE + 0x300);
	expect_end(t, STACK_NO_UNWIND_INFO);
	assert_non_null(strstr(t->out.error, "0x0 is not in executable memory"));
	regs_put(&t->walk.regs, arch_aarch64.dwarf_ra, tiny_return(t, TINY_CODE + 0x200));
	expect_step(t, TINY_CODE + 0x200, TINY_STACK, FRAME_BY_SCAN, &caller);
	t->walk.exact = false;
	expect_end(t, STACK_NO_UNWIND_INFO);
	tiny_destroy(t);
}

/* x86_64: only the word at sp counts then, not some leftover further up. */
static void test_only_the_first_word_after_a_call_to_nowhere(void **state)
{
	struct tiny *t = stand_at(&arch_x86_64, 0x10, true);
	struct caller caller;

	t->stack[1] = tiny_return(t, TINY_CODE + 0x200);
	expect_end(t, STACK_NO_UNWIND_INFO);
	t->stack[0] = TINY_CODE + 0x200;
	expect_step(t, TINY_CODE + 0x200, TINY_STACK + 8, FRAME_BY_SCAN, &caller);
	tiny_destroy(t);
}

/* x86_64: a stub that binds lazily has pushed up to two words on its caller's frame. */
static void test_plt_stub(void **state)
{
	struct tiny *t = stand_at(&arch_x86_64, TINY_BASE + TINY_PLT_AT + 6, true);
	struct caller caller;

	regs_put(&t->walk.regs, arch_x86_64.dwarf_fp, TINY_STACK + 8 * 20); /* the caller's, not the stub's */
	t->stack[21] = tiny_return(t, TINY_CODE + 0x300);
	for (unsigned pushed = 0; pushed < 3; pushed++) {
		memset(t->stack, 0, 3 * sizeof(t->stack[0]));
		t->stack[pushed] = tiny_return(t, TINY_CODE + 0x200);
		expect_step(t, TINY_CODE + 0x200, TINY_STACK + 8 * (pushed + 1), FRAME_BY_SCAN, &caller);
		assert_int_equal(caller.regs.r[arch_x86_64.dwarf_fp], TINY_STACK + 8 * 20);
	}
	/* Not for code that is no stub: there the frame pointer comes first. */
	t->walk.regs.pc = TINY_CODE + 0x10;
	expect_step(t, TINY_CODE + 0x300, TINY_STACK + 8 * 22, FRAME_BY_FRAME_POINTER, &caller);
	tiny_destroy(t);
}

/* A frame pointer of 0 marks the outermost frame, but not for who may have just set out. */
static void test_frame_pointer_of_zero(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		struct tiny *t = stand_at(archs[i], TINY_CODE + 0x20, false);

		regs_put(&t->walk.regs, t->arch->dwarf_fp, 0);
		expect_end(t, STACK_COMPLETE);
		t->walk.exact = true;
		expect_end(t, STACK_NO_UNWIND_INFO);
		/* Far from the stack's base it is just a register that happens to be 0. */
		t->walk.exact = false;
		t->snap->maps.data[TINY_STACK_MAP].path = "";
		expect_end(t, STACK_COMPLETE);
		t->snap->maps.data[TINY_STACK_MAP].end += 4096;
		expect_end(t, STACK_NO_UNWIND_INFO);
		tiny_destroy(t);
	}
}

/* The search does not go past the end of the stack's mapping, nor into one that it was not in. */
static void test_search_at_the_end_of_the_stack(void **state)
{
	struct tiny *t = stand_at(&arch_x86_64, TINY_CODE + 0x20, false);
	struct caller caller;

	tiny_stand(t, TINY_CODE + 0x20, TINY_STACK_WORDS - 1, false);
	regs_put(&t->walk.regs, arch_x86_64.dwarf_fp, 1);
	t->stack[TINY_STACK_WORDS - 1] = tiny_return(t, TINY_CODE + 0x200);
	expect_step(t, TINY_CODE + 0x200, TINY_STACK + sizeof(t->stack), FRAME_BY_SCAN, &caller);
	tiny_stand(t, TINY_CODE + 0x20, TINY_STACK_WORDS, false);
	regs_put(&t->walk.regs, arch_x86_64.dwarf_fp, 1);
	expect_end(t, STACK_NO_UNWIND_INFO);
	regs_put(&t->walk.regs, arch_x86_64.dwarf_sp, UINT64_MAX - 8);
	expect_end(t, STACK_NO_UNWIND_INFO);
	tiny_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_end_of_a_thread),
		cmocka_unit_test(test_startup_code),
		cmocka_unit_test(test_frame_pointer_tells_sp),
		cmocka_unit_test(test_frame_pointer_to_a_start),
		cmocka_unit_test(test_frame_pointer_behind_a_jump),
		cmocka_unit_test(test_registers_of_the_caller),
		cmocka_unit_test(test_code_of_no_file),
		cmocka_unit_test(test_link_register_or_frame_record),
		cmocka_unit_test(test_call_to_nowhere),
		cmocka_unit_test(test_only_the_first_word_after_a_call_to_nowhere),
		cmocka_unit_test(test_plt_stub),
		cmocka_unit_test(test_frame_pointer_of_zero),
		cmocka_unit_test(test_search_at_the_end_of_the_stack),
	};

	return cmocka_run_group_tests_name("guess", tests, NULL, NULL);
}
