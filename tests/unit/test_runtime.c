/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/runtime.h"

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
	for (size_t i = 0; i < all.len; i++) {
		assert_null(all.data[i].state);
		assert_non_null(all.data[i].ops->name);
	}
	assert_int_equal(target_open_whole(getpid(), NULL, NULL, &target), 0);
	assert_true(runtimes_init(&found, target));
	assert_true(found.len <= all.len);
	for (size_t i = 0; i < found.len; i++)
		assert_true(has(&all, found.data[i].ops));
	runtimes_deinit(&found);
	runtimes_deinit(&all);
	target_close(target);
}

/* By the names of files with code, as every process is asked. */
static void test_told(void **state)
{
	static const struct {
		const char *path;
		uint32_t perms;
		bool told;
	} known[] = {
		{"/usr/bin/node", MAP_PERM_EXEC, true},
		{"/opt/node-22/bin/node", MAP_PERM_EXEC, true},
		{"/usr/lib/aarch64-linux-gnu/libnode.so.108", MAP_PERM_EXEC, true},
		{"/usr/lib/electron/electron", MAP_PERM_EXEC, true},
		{"/usr/bin/node", MAP_PERM_READ, false},
		{"/usr/lib/node/addon.so", MAP_PERM_EXEC, false},
		{"/usr/bin/bash", MAP_PERM_EXEC, false},
		{"[vdso]", MAP_PERM_EXEC, false},
		{"", MAP_PERM_EXEC, false},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct map_entry entry = {.end = 4096, .path = known[i].path, .perms = known[i].perms};
		const struct maps maps = {.data = &entry, .len = 1};

		assert_int_equal(runtimes_are_told(&maps, NULL), known[i].told);
	}
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

static bool fake_merge(void *state, const struct raw_stack *raw, bool keep, struct stack *stack)
{
	struct fake *fake = state;

	fake->merges++;
	return !fake->fails && vec_push(stack, (struct frame){.symbol = "fake"});
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
					       .destroy = fake_destroy};
	static const struct runtime_ops idle = {.name = "idle"}; /* all of it is optional */
	struct fake fakes[2] = {0};
	struct runtimes runtimes = {0};
	struct raw_stack raw = {0};
	struct stack stack = {0};
	struct snap_thread thread = {.tid = 7};

	assert_true(vec_push(&runtimes, (struct runtime){.ops = &ops, .state = &fakes[0]}));
	assert_true(vec_push(&runtimes, (struct runtime){.ops = &idle}));
	assert_true(vec_push(&runtimes, (struct runtime){.ops = &ops, .state = &fakes[1]}));
	assert_true(runtimes_frames(&runtimes, NULL, &thread, &raw));
	assert_int_equal(raw.runtime.len, 4);
	assert_int_equal(raw.runtime.data[3].code, 7);
	assert_int_equal(raw.runtime.data[3].place, 1);
	assert_true(runtimes_merge(&runtimes, &raw, &stack));
	assert_int_equal(stack.len, 2);

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

static void tell_first(void *state, const struct snapshot *snap, const struct snap_thread *thread, struct thread_runtime *out)
{
	if (thread->tid != 8)
		*out = (struct thread_runtime){.runtime = "first", .has_gil = true, .holds_gil = true};
}

static void tell_second(void *state, const struct snapshot *snap, const struct snap_thread *thread, struct thread_runtime *out)
{
	assert_null(out->runtime);
	*out = (struct thread_runtime){.runtime = "second", .has_gil = true, .name = "worker", .state = "WAITING", .has_daemon = true, .is_daemon = true};
}

static void test_thread(void **state)
{
	static const struct runtime_ops first = {.thread = tell_first}, second = {.thread = tell_second};
	const struct snap_runtime found = {.name = "first", .version = "1.2"};
	struct snapshot *snap = snapshot_create(7, &arch_x86_64);
	struct runtimes runtimes = {0};
	struct thread_runtime told;

	assert_non_null(snap);
	assert_non_null(snapshot_add_runtime(snap, &found));
	assert_true(vec_push(&runtimes, (struct runtime){.ops = &first}));
	assert_true(vec_push(&runtimes, (struct runtime){.ops = &second}));
	runtimes_thread(&runtimes, snap, &(struct snap_thread){.tid = 7}, &told);
	assert_string_equal(told.runtime, "first");
	assert_string_equal(told.version, "1.2");
	assert_true(told.has_gil && told.holds_gil);
	assert_string_equal(told.name, "worker"); /* what it leaves open the next one tells */
	assert_string_equal(told.state, "WAITING");
	assert_true(told.has_daemon && told.is_daemon);
	runtimes_thread(&runtimes, snap, &(struct snap_thread){.tid = 8}, &told);
	assert_string_equal(told.runtime, "second");
	assert_null(told.version);
	assert_true(told.has_gil && !told.holds_gil);
	runtimes_deinit(&runtimes);
	snapshot_destroy(snap);
}

/* What another version of ours has saved is not guessed at, and the report says so. */
static void test_saved_by_another_version(void **state)
{
	static const char *const names[] = {"python", "openjdk", "v8"};
	uint64_t facts[400] = {1, 2, 3};

	for (size_t i = 0; i < 3; i++)
		for (uint32_t n = 0; n < 400; n += 21) {
			const struct snap_runtime runtime = {.name = names[i], .facts = facts, .nfacts = n};
			struct snapshot *snap = snapshot_create(1, &arch_x86_64);
			struct target *target = target_open_saved(snap);
			struct runtimes found;

			assert_non_null(snapshot_add_runtime(snap, &runtime));
			assert_true(runtimes_init(&found, target));
			assert_int_equal(found.len, 0);
			assert_non_null(strstr(snapshot_find_runtime(snap, names[i])->problem, "another version of stakeout"));
			runtimes_deinit(&found);
			target_close(target);
			snapshot_destroy(snap);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_init),
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_each_has_its_say),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_saved_by_another_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
