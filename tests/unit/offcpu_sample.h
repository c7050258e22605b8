/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_OFFCPU_SAMPLE_H
#define STAKEOUT_TESTS_OFFCPU_SAMPLE_H

#include "cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "full_once.h"
#include "report/offcpu.h"
#include "sample.h"

/*
 * Ten seconds of the sample's server: an event loop, a worker that contends for a lock and is preempted, a disk thread
 * with less and less of a stack, and one with a name that tries to fool a terminal. REPORT names the function under
 * test, before this is included.
 */

struct fixture {
	struct offcpu_profile profile;
	char *text; /* the last report */
};

#define SAMPLE_MS UINT64_C(1000000)

/* One wait of the event loop is not over, here and in the thread's sum and the total. */
static inline struct offcpu_sum sample_unfinished(struct offcpu_sum sum)
{
	sum.unfinished = 1;
	return sum;
}

static inline struct offcpu_sum sample_sum(uint64_t count, uint64_t total, uint64_t max, uint64_t min, uint64_t runnable)
{
	return (struct offcpu_sum){
		.count = count, .total_ns = total, .max_ns = max, .min_ns = min, .runnable_ns = runnable};
}

static inline void sample_offcpu_rows(struct offcpu_profile *p)
{
	static struct offcpu_length waits[] = {{99500000, 80}, {101000000, 10}};
	static const struct offcpu_lengths lengths = {.data = waits, .len = 2};

	vec_push(&p->rows, (struct offcpu_row){
		.pid = 4711, .tid = 4711, .thread_name = "server", .state = 'S', .idle = true, .cause = OFFCPU_CAUSE_EVENTS,
		.sum = sample_unfinished(sample_sum(90, 9000 * SAMPLE_MS, 100 * SAMPLE_MS, 99 * SAMPLE_MS, 0)),
		.kernel = &sample_epoll_kernel, .user = &sample_epoll,
		.lengths = offcpu_profile_add_lengths(p, &lengths),
	});
	vec_push(&p->rows, (struct offcpu_row){
		.pid = 4711, .tid = 4712, .thread_name = "worker", .state = 'S', .cause = OFFCPU_CAUSE_LOCK,
		.sum = sample_sum(4, 600 * SAMPLE_MS, 300 * SAMPLE_MS, 20 * SAMPLE_MS, 2 * SAMPLE_MS),
		.kernel = &sample_futex_kernel, .user = &sample_futex,
		.user_error = "EFAULT: stack page not resident", .has_waker = true,
		.waker = {.pid = 4711, .tid = 4711, .name = "server", .kernel = &sample_futex_kernel,
			  .user = &sample_spin},
	});
	vec_push(&p->rows, (struct offcpu_row){
		.pid = 4711, .tid = 4713, .thread_name = "disk", .state = 'D', .cause = OFFCPU_CAUSE_DISK,
		.sum = sample_sum(1, 300 * SAMPLE_MS, 300 * SAMPLE_MS, 300 * SAMPLE_MS, 0),
		.kernel = &sample_disk_kernel, .user_error = "no unwind tables yet",
	});
	vec_push(&p->rows, (struct offcpu_row){
		.pid = 4711, .tid = 4712, .thread_name = "worker", .state = 'R',
		.sum = sample_sum(30, 90 * SAMPLE_MS, 5 * SAMPLE_MS, 1 * SAMPLE_MS, 90 * SAMPLE_MS),
		.user = &sample_spin, .kernel_error = "not permitted",
	});
	vec_push(&p->rows, (struct offcpu_row){
		.pid = 99, .tid = 0, .thread_name = SAMPLE_EVIL ";\n", .state = 'S', .cause = OFFCPU_CAUSE_OTHER,
		.sum = sample_sum(2, 900, 600, 300, 0),
	});
}

static const struct offcpu_filter sample_filter = {
	.min_ns = SAMPLE_MS, .max_ns = UINT64_MAX, .sleeping = true, .uninterruptible = true, .runnable = true};

static inline void sample_offcpu(struct offcpu_profile *p)
{
	p->start_ns = INT64_C(1700000000000000042);
	p->duration_ns = 10000 * SAMPLE_MS;
	p->method = "sched_exit";
	p->filter = sample_filter;
	p->total = sample_unfinished(sample_sum(127, 9990 * SAMPLE_MS + 900, 300 * SAMPLE_MS, 300, 92 * SAMPLE_MS));
	vec_push(&p->threads, (struct offcpu_thread){
		.pid = 4711, .tid = 4711, .name = "server", .sleeping_ns = 9000 * SAMPLE_MS,
		.idle_ns = 9000 * SAMPLE_MS,
		.sum = sample_unfinished(sample_sum(90, 9000 * SAMPLE_MS, 100 * SAMPLE_MS, 99 * SAMPLE_MS, 0)),
	});
	vec_push(&p->threads, (struct offcpu_thread){
		.pid = 4711, .tid = 4712, .name = "worker", .sleeping_ns = 598 * SAMPLE_MS,
		.runnable_ns = 92 * SAMPLE_MS,
		.sum = sample_sum(34, 690 * SAMPLE_MS, 300 * SAMPLE_MS, 1 * SAMPLE_MS, 92 * SAMPLE_MS),
	});
	vec_push(&p->threads, (struct offcpu_thread){
		.pid = 4711, .tid = 4713, .name = "disk", .uninterruptible_ns = 300 * SAMPLE_MS,
		.sum = sample_sum(1, 300 * SAMPLE_MS, 300 * SAMPLE_MS, 300 * SAMPLE_MS, 0),
	});
	vec_push(&p->threads, (struct offcpu_thread){
		.pid = 99, .tid = 99, .name = SAMPLE_EVIL ";\n", .sleeping_ns = 900,
		.sum = sample_sum(2, 900, 600, 300, 0),
	});
	vec_push(&p->losses, (struct offcpu_loss){"waits", 12});
	vec_push(&p->losses, (struct offcpu_loss){"stacks", 0});
	vec_push(&p->losses, (struct offcpu_loss){"requests", 1});
	vec_push(&p->notes, "no \033[31mkernel stacks: run as root");
	sample_offcpu_rows(p);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	sample_offcpu(&f->profile);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	offcpu_profile_deinit(&f->profile);
	free(f->text);
	free(f);
	return 0;
}

static const char *report(struct fixture *f, struct offcpu_report_options options)
{
	size_t len;
	FILE *out;

	free(f->text);
	f->text = NULL;
	out = open_memstream(&f->text, &len);
	assert_non_null(out);
	assert_int_equal(REPORT(&f->profile, &options, out), 0);
	fclose(out);
	return f->text;
}

static inline void expect(void **state, struct offcpu_report_options options, const char *want)
{
	const char *text = report(*state, options);

	if (!strstr(text, want))
		fail_msg("no %s in %s", want, text);
}

static inline void expect_not(void **state, struct offcpu_report_options options, const char *unwanted)
{
	const char *text = report(*state, options);

	if (strstr(text, unwanted))
		fail_msg("%s in %s", unwanted, text);
}

static inline void expect_stream_error(void **state)
{
	const struct offcpu_report_options options = {0};
	struct fixture *f = *state;
	FILE *full = fopen("/dev/full", "w");
	struct full_once once;

	assert_non_null(full);
	assert_int_equal(REPORT(&f->profile, &options, full), -ENOSPC);
	fclose(full);
	full = full_once_open(&once);
	assert_int_equal(REPORT(&f->profile, &options, full), -ENOSPC);
	assert_true(once.writes > 2);
	fclose(full);
}

/* Nothing was recorded: rows, threads, losses and notes are not there. */
static inline void clear(struct fixture *f)
{
	offcpu_profile_deinit(&f->profile);
	f->profile = (struct offcpu_profile){.method = "switch", .filter = sample_filter};
}

#endif
