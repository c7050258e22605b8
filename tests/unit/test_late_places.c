/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"
#include "fake_probe.h"

#include "offcpu/record/late_places.h"

enum { ONE = 10, OTHER = 20 }; /* processes */

struct fixture {
	struct offcpu_probe probe;
	struct tables *tables;
	struct waits *waits;
	struct late_places places;
	uint32_t set; /* that has the code of this test */
};

static int start(void **state)
{
	const struct waits_options options = {.max_rows = 100};
	static struct fixture f;

	fake_probe_init(&f.probe);
	f.tables = tables_create(&f.probe);
	f.waits = f.tables ? waits_create(f.tables, &options) : NULL;
	late_places_init(&f.places);
	*state = &f;
	if (!f.waits || tables_read_process(f.tables, getpid(), NULL) < 0)
		return -1;
	f.set = f.probe.maps.set;
	return 0;
}

static int finish(void **state)
{
	struct fixture *f = *state;

	late_places_deinit(&f->places);
	waits_destroy(f->waits);
	tables_destroy(f->tables);
	fake_probe_deinit(&f->probe);
	return 0;
}

/* A stack of a process, at the address of this function, and a wait that has it. */
static const struct wait_stack *take(struct fixture *f, pid_t tgid, uint32_t set)
{
	const struct raw_frame frame = {.pc = (uintptr_t)take};
	struct offcpu_wait wait = {
		.kind = OFFCPU_WAIT,
		.key = {.tgid = (uint32_t)tgid, .tid = (uint32_t)tgid, .state = 'S'},
		.duration_ns = 1,
	};

	wait.key.stack.low = 2 * waits_nstacks(f->waits) + 1;
	waits_put_stack(f->waits, &(struct stack_sample){
					  .id = wait.key.stack,
					  .user = &frame,
					  .nuser = 1,
					  .user_end = set ? OFFCPU_END_COMPLETE : OFFCPU_END_NO_TABLES,
					  .set = set,
				  });
	return waits_add_wait(f->waits, &wait, sizeof(wait))->stack;
}

/* Another process has it as well. */
static void share(struct fixture *f, pid_t tgid, const struct wait_stack *stack)
{
	const struct offcpu_wait wait = {
		.kind = OFFCPU_WAIT,
		.key = {.tgid = (uint32_t)tgid, .tid = (uint32_t)tgid, .state = 'S', .stack = stack->id},
		.duration_ns = 1,
	};

	assert_ptr_equal(waits_add_wait(f->waits, &wait, sizeof(wait))->stack, stack);
}

static void end_program(struct fixture *f, pid_t tgid)
{
	late_places_end_program(&f->places, tgid, waits_nstacks(f->waits));
}

static void assert_placed(const struct wait_stack *stack, bool placed)
{
	assert_int_equal(stack->user.len, 1);
	assert_int_equal(stack->addresses[0], (uintptr_t)take);
	assert_int_equal(stack->user.data[0].pc != (uintptr_t)take, placed);
}

/* By what is known of the same process a little later. */
static void test_later(void **state)
{
	struct fixture *f = *state;
	const struct wait_stack *before = take(f, ONE, 0), *other = take(f, OTHER, 0), *again = take(f, ONE, 0);
	const struct wait_stack *known = take(f, ONE, f->set), *after = take(f, ONE, 0);

	assert_placed(before, false);
	assert_placed(known, true);
	late_places_find(&f->places, f->tables, f->waits);
	assert_placed(before, true);
	assert_placed(again, true);
	assert_int_equal(before->user.data[0].pc, known->user.data[0].pc);
	assert_placed(other, false);
	assert_placed(after, false);
}

/* But not if it is another program by then. */
static void test_executed(void **state)
{
	struct fixture *f = *state;
	const struct wait_stack *first, *second, *third;

	end_program(f, ONE);
	first = take(f, ONE, 0);
	end_program(f, OTHER);
	take(f, ONE, f->set);
	second = take(f, ONE, 0);
	end_program(f, ONE);
	take(f, ONE, f->set);
	third = take(f, ONE, 0);
	take(f, ONE, f->set);
	end_program(f, ONE);
	late_places_find(&f->places, f->tables, f->waits);
	assert_placed(first, true);
	assert_placed(second, false);
	assert_placed(third, true);
}

/* Nor with maps that are gone, or do not have the address. */
static void test_unknown(void **state)
{
	struct fixture *f = *state;
	const struct wait_stack *stack = take(f, ONE, 0);

	take(f, ONE, f->set + 1);
	late_places_find(&f->places, f->tables, f->waits);
	assert_placed(stack, false);
}

/* When a stack came says nothing of a process that was not the only one to have it. */
static void test_shared(void **state)
{
	struct fixture *f = *state;
	const struct wait_stack *stack = take(f, ONE, 0);

	share(f, ONE, take(f, OTHER, f->set));
	late_places_find(&f->places, f->tables, f->waits);
	assert_placed(stack, false);
}

/* When not all ends of programs are known, only what was before counts. */
static void test_too_many(void **state)
{
	struct fixture *f = *state;
	const struct wait_stack *before = take(f, ONE, 0), *after;

	take(f, ONE, f->set);
	for (int i = 0; f->places.known == SIZE_MAX; i++) {
		assert_true(i < 1 << 24);
		end_program(f, OTHER);
	}
	after = take(f, ONE, 0);
	take(f, ONE, f->set);
	late_places_find(&f->places, f->tables, f->waits);
	assert_placed(before, true);
	assert_placed(after, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_later, start, finish),
		cmocka_unit_test_setup_teardown(test_executed, start, finish),
		cmocka_unit_test_setup_teardown(test_unknown, start, finish),
		cmocka_unit_test_setup_teardown(test_shared, start, finish),
		cmocka_unit_test_setup_teardown(test_too_many, start, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
