/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/runtime.h"

static struct stack ends_with(struct frame frames[static 2], const char *symbol, uint32_t flags)
{
	frames[0] = (struct frame){.symbol = "runtime.park_m"};
	frames[1] = (struct frame){.symbol = symbol, .flags = flags};
	return (struct stack){.data = frames, .len = 2};
}

static void expect(const char *symbol, uint32_t flags, bool is_switch, bool whole)
{
	struct frame frames[2];
	struct stack stack = ends_with(frames, symbol, flags);
	const char *why;

	assert_int_equal(go_runtime.is_cut(&stack, &why), is_switch);
	assert_int_equal(why == NULL, whole);
}

static void test_leaves(void **state)
{
	expect("runtime.mcall", FRAME_RETURN_ADDRESS, true, true);
	expect("runtime.mcall.abi0", FRAME_RETURN_ADDRESS, true, true);
	expect("runtime.mcall", 0, false, true); /* it is there itself, and may not have switched yet */
}

static void test_calls(void **state)
{
	expect("runtime.systemstack", FRAME_RETURN_ADDRESS, true, false);
	expect("runtime.systemstack.abi0", FRAME_RETURN_ADDRESS, true, false);
	expect("runtime.morestack.abi0", FRAME_RETURN_ADDRESS, true, false);
	expect("runtime.asmcgocall.abi0", FRAME_RETURN_ADDRESS, true, false);
}

static void test_others(void **state)
{
	struct stack none = {0};
	const char *why;

	expect("runtime.systemstack_switch", FRAME_RETURN_ADDRESS, false, true);
	expect("runtime.mcall.func1", FRAME_RETURN_ADDRESS, false, true);
	expect("main.main", FRAME_RETURN_ADDRESS, false, true);
	expect(NULL, FRAME_RETURN_ADDRESS, false, true);
	assert_false(go_runtime.is_cut(&none, &why));
	assert_null(why);
}

/* What was found behind a switch belongs to something else, and is cut off; the switch stays. */
static void expect_merged(const char *symbol, uint32_t flags, size_t len)
{
	struct frame frames[] = {
		{.symbol = "runtime.futex", .raw = 0},
		{.symbol = "inlined", .raw = 1, .inlined = true},
		{.symbol = symbol, .raw = 1, .flags = flags},
		{.symbol = "runtime.mcall", .raw = 2, .flags = FRAME_RETURN_ADDRESS},
		{.symbol = "main.main", .raw = 3, .flags = FRAME_RETURN_ADDRESS},
	};
	struct stack stack = {.data = frames, .len = sizeof(frames) / sizeof(frames[0])};
	struct raw_stack raw = {0};

	assert_true(go_runtime.merge(NULL, &raw, &stack));
	assert_int_equal(stack.len, len);
	for (size_t i = 0; i < len; i++)
		assert_ptr_equal(&stack.data[i], &frames[i]);
}

static void test_merge_cuts_at_the_switch(void **state)
{
	struct frame one[] = {{.symbol = "main.main"}};
	struct stack whole = {.data = one, .len = 1}, none = {0};
	struct raw_stack raw = {0};
	const char *why;

	expect_merged("runtime.systemstack.abi0", FRAME_RETURN_ADDRESS, 3); /* the first one counts */
	expect_merged("runtime.mcall", FRAME_RETURN_ADDRESS, 3);
	expect_merged("runtime.mcall", 0, 4);
	expect_merged("main.other", FRAME_RETURN_ADDRESS, 4);
	expect_merged(NULL, FRAME_RETURN_ADDRESS, 4);
	assert_true(go_runtime.merge(NULL, &raw, &whole));
	assert_int_equal(whole.len, 1);
	assert_false(go_runtime.is_cut(&whole, &why));
	assert_true(go_runtime.merge(NULL, &raw, &none));
	assert_int_equal(none.len, 0);
}

static bool has(const struct runtimes *runtimes, const struct runtime_ops *ops)
{
	for (size_t i = 0; i < runtimes->len; i++)
		if (runtimes->data[i].ops == ops)
			return true;
	return false;
}

/* Where nobody looked at the process it may be any; where somebody did, only what its files do not rule out. */
static void test_init(void **state)
{
	struct runtimes all, found;
	struct target *target;

	assert_true(runtimes_init(&all, NULL));
	assert_true(has(&all, &go_runtime)); /* by its stacks */
	for (size_t i = 0; i < all.len; i++) {
		assert_null(all.data[i].state);
		assert_non_null(all.data[i].ops->name);
	}
	assert_int_equal(target_open_whole(getpid(), NULL, NULL, &target), 0);
	assert_true(runtimes_init(&found, target));
	assert_true(has(&found, &go_runtime));
	assert_true(found.len <= all.len);
	for (size_t i = 0; i < found.len; i++)
		assert_true(has(&all, found.data[i].ops));
	runtimes_deinit(&found);
	runtimes_deinit(&all);
	target_close(target);
}

/* A runtime that has two frames of a function for each thread, and puts one name at the end. */
struct fake {
	unsigned frames, merges, destroyed;
	bool fails;
};

static bool fake_frames(void *state, const struct snapshot *snap, const struct snap_thread *thread,
			struct raw_stack *raw)
{
	struct fake *fake = state;

	fake->frames++;
	for (uint64_t i = 0; !fake->fails && i < 2; i++)
		assert_true(vec_push(&raw->runtime,
				     (struct runtime_frame){.code = (uint64_t)thread->tid, .place = i}));
	return !fake->fails;
}

static bool fake_merge(void *state, const struct raw_stack *raw, struct stack *stack)
{
	struct fake *fake = state;

	fake->merges++;
	return !fake->fails && vec_push(stack, (struct frame){.symbol = "fake"});
}

static bool fake_is_cut(const struct stack *stack, const char **why)
{
	*why = "the fake is there";
	return stack->len && strcmp(stack->data[stack->len - 1].symbol, "fake") == 0;
}

static void fake_destroy(void *state)
{
	((struct fake *)state)->destroyed++;
}

static void test_each_has_its_say(void **state)
{
	static const struct runtime_ops ops = {.name = "fake",
					       .frames = fake_frames,
					       .merge = fake_merge,
					       .is_cut = fake_is_cut,
					       .destroy = fake_destroy};
	static const struct runtime_ops idle = {.name = "idle"}; /* all of it is optional */
	struct fake fakes[2] = {0};
	struct runtimes runtimes = {0};
	struct raw_stack raw = {0};
	struct stack stack = {0};
	struct snap_thread thread = {.tid = 7};
	const char *why = "unset";

	assert_true(vec_push(&runtimes, (struct runtime){.ops = &ops, .state = &fakes[0]}));
	assert_true(vec_push(&runtimes, (struct runtime){.ops = &idle}));
	assert_true(vec_push(&runtimes, (struct runtime){.ops = &go_runtime}));
	assert_true(vec_push(&runtimes, (struct runtime){.ops = &ops, .state = &fakes[1]}));
	assert_false(runtimes_is_cut(&runtimes, &stack, &why));
	assert_true(runtimes_frames(&runtimes, NULL, &thread, &raw));
	assert_int_equal(raw.runtime.len, 4);
	assert_int_equal(raw.runtime.data[3].code, 7);
	assert_int_equal(raw.runtime.data[3].place, 1);
	assert_true(runtimes_merge(&runtimes, &raw, &stack));
	assert_int_equal(stack.len, 2);
	assert_true(runtimes_is_cut(&runtimes, &stack, &why));
	assert_string_equal(why, "the fake is there");

	fakes[0].fails = true; /* memory is exhausted: the others are not asked */
	assert_false(runtimes_frames(&runtimes, NULL, &thread, &raw));
	assert_false(runtimes_merge(&runtimes, &raw, &stack));
	assert_int_equal(fakes[0].frames, 2);
	assert_int_equal(fakes[1].frames, 1);
	assert_int_equal(fakes[1].merges, 1);
	runtimes_deinit(&runtimes);
	assert_int_equal(fakes[0].destroyed, 1);
	assert_int_equal(fakes[1].destroyed, 1);
	raw_stack_deinit(&raw);
	vec_deinit(&stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaves),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_merge_cuts_at_the_switch),
		cmocka_unit_test(test_init),
		cmocka_unit_test(test_each_has_its_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
