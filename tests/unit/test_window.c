/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/window.h"

struct job {
	int cpu; /* where the work was done */
	unsigned of;
	atomic_uint parts; /* one bit for each share that was done */
	atomic_uint wrong; /* shares that were done elsewhere than the others, or twice */
	int cpus[64];
	uint64_t opened_ns, until;
	bool shared;
};

static bool part(void *arg, unsigned share, unsigned of)
{
	struct job *job = arg;

	job->of = of;
	job->cpus[share % 64] = sched_getcpu();
	if (atomic_fetch_or(&job->parts, 1u << share) >> share & 1)
		atomic_fetch_add(&job->wrong, 1);
	return true;
}

static bool work(void *arg, uint64_t opened_ns, uint64_t until)
{
	struct job *job = arg;

	job->cpu = sched_getcpu();
	job->opened_ns = opened_ns;
	job->until = until;
	job->shared = window_share(part, job);
	return job->shared;
}

static struct window_plan plan_of(struct job *job)
{
	struct window_plan plan = {.priority = 1, .most_ns = 50 * 1000 * 1000, .work = work, .arg = job};

	sched_getaffinity(0, sizeof(plan.cpus), &plan.cpus);
	return plan;
}

/* Skips where nobody may do this. */
static struct window_result run(const struct window_plan *plan)
{
	struct window_result result = {0};
	int rc = window_run(plan, &result);

	if (rc == -EPERM)
		skip();
	assert_int_equal(rc, 0);
	return result;
}

/* Each share once, each on a CPU of its own. */
static void test_all_cpus(void **state)
{
	struct job job = {0};
	const struct window_plan plan = plan_of(&job);
	struct window_result result = run(&plan);

	assert_true(result.taken >= 1 && result.taken <= (unsigned)CPU_COUNT(&plan.cpus));
	assert_true(job.of >= 1 && job.of <= result.taken); /* one may come later than the work waits for */
	assert_int_equal(job.until - job.opened_ns, plan.most_ns);
	assert_int_equal(atomic_load(&job.wrong), 0);
	for (unsigned i = 0; i < job.of; i++)
		for (unsigned k = 0; k < i; k++)
			assert_true(!(atomic_load(&job.parts) >> i & 1) || !(atomic_load(&job.parts) >> k & 1) ||
				    job.cpus[i] != job.cpus[k]);
	assert_true(CPU_ISSET((size_t)job.cpu, &plan.cpus));
}

static void test_own_cpu_alone(void **state)
{
	struct job job = {0};
	struct window_plan plan = plan_of(&job);
	struct window_result result;

	CPU_ZERO(&plan.cpus);
	result = run(&plan);
	assert_int_equal(result.taken, 1);
	assert_true(job.shared && job.of == 1 && atomic_load(&job.parts) == 1);
}

/* The clock ends it: nobody waits for work that takes longer. */
static bool dawdle(void *arg, uint64_t opened_ns, uint64_t until)
{
	while (monotonic_ns() < until + 5 * 1000 * 1000)
		;
	return work(arg, opened_ns, until);
}

static void test_over(void **state)
{
	struct job job = {0};
	struct window_plan plan = plan_of(&job);

	plan.work = dawdle;
	plan.most_ns = 1000 * 1000;
	run(&plan);
	assert_true(job.shared);
	assert_true(atomic_load(&job.parts) & 1); /* the leader's own; helpers have left, and are not waited for */
}

static void test_lingers(void **state)
{
	struct job job = {0};
	struct window_plan plan = plan_of(&job);

	plan.most_ns = 3 * 1000 * 1000;
	plan.lingers = true;
	assert_true(run(&plan).length_ns >= plan.most_ns);
}

/* What does not come back is left behind, and finds out when it does. */
static bool hang(void *arg, uint64_t opened_ns, uint64_t until)
{
	static atomic_int *state;

	state = arg; /* of the caller, who is gone then */
	window_block();
	while (atomic_load(state) == 0)
		usleep(1000);
	atomic_store(state, window_go_on() ? 3 : 2);
	return false;
}

static void test_abandoned(void **state)
{
	static atomic_int step;
	struct job job = {0};
	struct window_plan plan = plan_of(&job);
	struct window_result result;
	int rc;

	plan.work = hang;
	plan.arg = &step;
	rc = window_run(&plan, &result);
	if (rc == -EPERM)
		skip();
	assert_int_equal(rc, -ETIMEDOUT);
	atomic_store(&step, 1);
	while (atomic_load(&step) == 1)
		usleep(1000);
	assert_int_equal(atomic_load(&step), 2);
}

/* Without the right to that priority. */
static void test_refused(void **state)
{
	struct job job = {0};
	const struct window_plan plan = plan_of(&job);
	pid_t child;
	int status;

	if (geteuid() != 0)
		skip();
	child = fork();
	if (child == 0) {
		struct window_result result;

		if (setgid(12345) < 0 || setuid(12345) < 0)
			_exit(2);
		_exit(window_run(&plan, &result) == -EPERM && !atomic_load(&job.parts) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_cpus), cmocka_unit_test(test_own_cpu_alone), cmocka_unit_test(test_over),
		cmocka_unit_test(test_lingers),  cmocka_unit_test(test_abandoned), cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
