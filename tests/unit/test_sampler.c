/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <string.h>

#include "offcpu/sample/sampler.h"

static const struct sampler_options defaults = {
	.watch =
		{
			.by_thread = true,
			.kernel_stacks = true,
			.user_stacks = true,
			.filter = {.min_ns = 1000000, .max_ns = UINT64_MAX, .sleeping = true, .uninterruptible = true},
		},
};

enum { ENOUGH_LOOKS = 20 };

static void wait_for_looks(struct watch *sampler)
{
	for (int i = 0; i < 60000 && sampler_looks(sampler) < ENOUGH_LOOKS; i++)
		usleep(1000);
	assert_true(sampler_looks(sampler) >= ENOUGH_LOOKS);
}

/* Until it has looked often enough; what is asleep by then has been seen so. */
static struct watch *sample(pid_t pid, struct sampler_options options, struct offcpu_profile *out)
{
	struct watch *sampler;
	struct err err = {0};

	options.watch.pids = &pid;
	options.watch.npids = 1;
	if (sampler_start(&options, &err, &sampler) < 0)
		fail_msg("%s", err.msg);
	wait_for_looks(sampler);
	if (sampler->ops->finish(sampler, &err, out) < 0)
		fail_msg("%s", err.msg);
	return sampler;
}

static bool calls(const struct stack *stack, const char *name)
{
	for (size_t i = 0; stack && i < stack->len; i++)
		if (stack->data[i].symbol && strcmp(stack->data[i].symbol, name) == 0)
			return true;
	return false;
}

static void test_sleeper(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct offcpu_profile profile;
	struct watch *sampler = sample(pid, defaults, &profile);

	(void)state;
	child_end(pid);
	assert_true(profile.estimate);
	assert_string_equal(profile.method, "proc");
	assert_int_equal(profile.rows.len, 1);
	assert_int_equal(profile.rows.data[0].pid, pid);
	assert_int_equal(profile.rows.data[0].tid, pid);
	assert_int_equal(profile.rows.data[0].state, 'S');
	assert_int_equal(profile.rows.data[0].sum.count, 1);
	assert_true(profile.rows.data[0].sum.total_ns <= profile.duration_ns);
	/* /proc knows only pc and sp: code that needs more, as under a sanitizer, ends the walk and says so. */
	if (profile.rows.data[0].user_error)
		assert_non_null(strstr(profile.rows.data[0].user_error, "register"));
	assert_true(calls(profile.rows.data[0].user, "child_sleeps"));
	assert_true(profile.rows.data[0].kernel || profile.rows.data[0].kernel_error);
	assert_int_equal(profile.threads.len, 1);
	assert_int_equal(profile.total.count, 1);
	offcpu_profile_deinit(&profile);
	sampler->ops->destroy(sampler);
}

static void test_running_is_no_wait(void **state)
{
	pid_t pid = child_start(child_spins);
	struct offcpu_profile profile;
	struct watch *sampler = sample(pid, defaults, &profile);

	(void)state;
	child_end(pid);
	assert_int_equal(profile.rows.len, 0);
	assert_int_equal(profile.total.count, 0);
	offcpu_profile_deinit(&profile);
	sampler->ops->destroy(sampler);
}

static void test_options(void **state)
{
	struct sampler_options options = defaults;
	pid_t pid = child_start(child_sleeps);
	struct offcpu_profile profile;
	struct watch *sampler;

	(void)state;
	options.watch.user_stacks = options.watch.kernel_stacks = options.watch.by_thread = false;
	options.watch.wakers = true;
	options.why = "it is not there";
	sampler = sample(pid, options, &profile);
	assert_int_equal(profile.rows.len, 1);
	assert_int_equal(profile.rows.data[0].tid, 0);
	assert_null(profile.rows.data[0].user);
	assert_null(profile.rows.data[0].user_error);
	assert_null(profile.rows.data[0].kernel);
	assert_null(profile.rows.data[0].kernel_error);
	assert_int_equal(profile.notes.len, 3);
	assert_non_null(strstr(profile.notes.data[0], "it is not there"));
	assert_non_null(strstr(profile.notes.data[1], "--wakers"));
	assert_non_null(strstr(profile.notes.data[2], "estimates"));
	offcpu_profile_deinit(&profile);
	sampler->ops->destroy(sampler);

	options.watch.filter.max_ns = options.watch.filter.min_ns; /* it waits longer */
	sampler = sample(pid, options, &profile);
	assert_int_equal(profile.rows.len, 0);
	offcpu_profile_deinit(&profile);
	sampler->ops->destroy(sampler);

	options = defaults;
	options.watch.filter.sleeping = false; /* it is not in state D */
	sampler = sample(pid, options, &profile);
	assert_int_equal(profile.rows.len, 0);
	offcpu_profile_deinit(&profile);
	sampler->ops->destroy(sampler);
	child_end(pid);
}

static void test_refusals(void **state)
{
	struct sampler_options options = defaults;
	pid_t pid = child_start(child_sleeps);
	struct watch *sampler;
	struct err err = {0};

	(void)state;
	child_end(pid);
	options.watch.pids = &pid;
	options.watch.npids = 1;
	assert_int_equal(sampler_start(&options, &err, &sampler), -ESRCH);
	options.watch.npids = 0;
	options.watch.filter.sleeping = options.watch.filter.uninterruptible = false;
	assert_int_equal(sampler_start(&options, &err, &sampler), -EINVAL);
	assert_non_null(strstr(err.msg, "--state R needs BPF"));
}

/* A process that ends has ended its wait. */
static void test_end_of_process(void **state)
{
	struct sampler_options options = defaults;
	pid_t pid = child_start(child_sleeps);
	struct offcpu_profile profile;
	struct watch *sampler;
	struct err err = {0};

	(void)state;
	options.watch.pids = &pid;
	options.watch.npids = 1;
	assert_int_equal(sampler_start(&options, &err, &sampler), 0);
	wait_for_looks(sampler);
	child_end(pid);
	for (int i = 0; i < 60000 && !sampler->ops->progress(sampler).waits; i++)
		usleep(1000);
	assert_int_equal(sampler->ops->progress(sampler).waits, 1);
	assert_int_equal(sampler->ops->finish(sampler, &err, &profile), 0);
	assert_int_equal(profile.rows.len, 1);
	assert_true(calls(profile.rows.data[0].user, "child_sleeps")); /* named though it is gone */
	offcpu_profile_deinit(&profile);
	sampler->ops->destroy(sampler);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleeper),        cmocka_unit_test(test_running_is_no_wait),
		cmocka_unit_test(test_options),        cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_end_of_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
