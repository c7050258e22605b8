/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "offcpu/waits.h"

struct stack_record {
	struct offcpu_stack head;
	uint64_t frames[8];
};

static struct offcpu_wait a_wait(uint32_t tid, char state, uint64_t duration, uint64_t stack)
{
	return (struct offcpu_wait){
		.kind = OFFCPU_WAIT,
		.key.state = (uint32_t)state,
		.key.tgid = 10,
		.key.tid = tid,
		.start_ns = 1000,
		.duration_ns = duration,
		.runnable_ns = state == 'R' ? duration : 0,
		.key.stack = {.low = stack, .high = ~stack},
		.comm = "worker",
	};
}

static struct stack_record a_stack(uint64_t id)
{
	return (struct stack_record){
		.head = {.kind = OFFCPU_STACK, .id = {.low = id, .high = ~id}, .nkernel = 2, .nuser = 2},
		.frames = {0xffffffff81000010, 0xffffffff81000020, 0x400100, 0x400200 | OFFCPU_BY_FRAME_POINTER},
	};
}

struct fixture {
	struct tables *tables;
	struct waits *waits;
};

static void start_limited(struct fixture *f, size_t max_rows, size_t max_stack_bytes)
{
	const struct waits_options options = {.max_rows = max_rows, .max_stack_bytes = max_stack_bytes};

	f->tables = tables_create(NULL); /* without a process: addresses stay addresses */
	assert_non_null(f->tables);
	f->waits = waits_create(f->tables, &options);
	assert_non_null(f->waits);
}

static void start(struct fixture *f, size_t max_rows)
{
	start_limited(f, max_rows, 0);
}

static void finish(struct fixture *f)
{
	waits_destroy(f->waits);
	tables_destroy(f->tables);
}

static const struct wait_row *add(struct fixture *f, const struct offcpu_wait *wait)
{
	return waits_add_wait(f->waits, wait, sizeof(*wait));
}

static void test_sums(void **state)
{
	struct offcpu_wait short_one = a_wait(11, 'S', 100, 1), long_one = a_wait(11, 'S', 300, 1);
	const struct wait_row *row;
	struct fixture f;

	long_one.runnable_ns = 40;
	start(&f, 10);
	row = add(&f, &short_one);
	assert_non_null(row);
	assert_ptr_equal(add(&f, &long_one), row);
	assert_int_equal(row->sum.count, 2);
	assert_int_equal(row->sum.total_ns, 400);
	assert_int_equal(row->sum.min_ns, 100);
	assert_int_equal(row->sum.max_ns, 300);
	assert_int_equal(row->sum.runnable_ns, 40);
	assert_int_equal(row->tgid, 10);
	assert_int_equal(row->tid, 11);
	assert_int_equal(row->state, 'S');
	assert_string_equal(row->name, "worker");
	assert_int_equal(waits_nrows(f.waits), 1);
	assert_int_equal(waits_lost(f.waits), 0);
	finish(&f);
}

/* Each part of the key makes a row of its own; the waker's name and the times do not. */
static void test_keys(void **state)
{
	struct offcpu_wait waits[] = {a_wait(11, 'S', 5, 1), a_wait(12, 'S', 5, 1), a_wait(11, 'D', 5, 1),
				      a_wait(11, 'S', 5, 2), a_wait(11, 'S', 5, 1), a_wait(11, 'S', 5, 1),
				      a_wait(11, 'S', 5, 1)};
	size_t n = sizeof(waits) / sizeof(waits[0]);
	struct fixture f;

	waits[4].key.tgid = 20;
	waits[5].key.waker_tid = 7;
	waits[6].key.stack.high++;
	start(&f, 100);
	for (size_t i = 0; i < n; i++)
		for (uint64_t j = 0; j < 3; j++) {
			waits[i].start_ns = i * 10 + j;
			assert_non_null(add(&f, &waits[i]));
		}
	assert_int_equal(waits_nrows(f.waits), n);
	assert_int_equal(waits_row(f.waits, 0)->tid, 11);
	assert_int_equal(waits_row(f.waits, 0)->sum.count, 3);
	finish(&f);
}

/* How long threads ran is known before or after their waits, and of a thread with a number that is used again by its start. */
static void test_ran(void **state)
{
	struct offcpu_wait wait = a_wait(11, 'S', 100, 1), later = a_wait(11, 'S', 100, 1), other = a_wait(12, 'S', 100, 1);
	const struct offcpu_ran first = {.kind = OFFCPU_RAN, .tgid = 10, .tid = 11, .thread_start_ns = 50, .ran_ns = 30, .until_ns = 1400};
	const struct offcpu_ran second = {.kind = OFFCPU_RAN, .tgid = 10, .tid = 11, .thread_start_ns = 1500, .ran_ns = 7000, .until_ns = 2000};
	struct fixture f;

	wait.key.thread_start_ns = 50;
	later.key.thread_start_ns = 1500;
	start(&f, 10);
	waits_add_ran(f.waits, &first, sizeof(first));
	assert_non_null(add(&f, &wait));
	assert_non_null(add(&f, &later));
	assert_non_null(add(&f, &other));
	waits_add_ran(f.waits, &second, sizeof(second));
	waits_add_ran(f.waits, &second, sizeof(second) - 1);
	waits_settle_ran(f.waits, 1000);
	assert_int_equal(waits_thread(f.waits, 0)->elapsed_ns, 400);
	assert_int_equal(waits_thread(f.waits, 0)->on_cpu_ns, 30);
	assert_int_equal(waits_thread(f.waits, 1)->elapsed_ns, 500);
	assert_int_equal(waits_thread(f.waits, 1)->on_cpu_ns, 500); /* never more */
	assert_int_equal(waits_thread(f.waits, 2)->elapsed_ns, 0);
	finish(&f);
}

static void test_threads(void **state)
{
	struct offcpu_wait waits[] = {a_wait(11, 'S', 100, 1), a_wait(11, 'D', 50, 2), a_wait(11, 'R', 7, 3),
				      a_wait(12, 'S', 1, 1)};
	const struct offcpu_thread *thread;
	struct fixture f;

	waits[0].runnable_ns = 30;
	waits[1].runnable_ns = 5;
	memcpy(waits[2].comm, "sixteen-letters!", OFFCPU_COMM); /* no NUL */
	start(&f, 10);
	for (size_t i = 0; i < 4; i++)
		add(&f, &waits[i]);
	assert_int_equal(waits_nthreads(f.waits), 2); /* also where rows are not by thread */
	thread = waits_thread(f.waits, 0);
	assert_int_equal(thread->pid, 10);
	assert_int_equal(thread->tid, 11);
	assert_string_equal(thread->name, "sixteen-letters!");
	assert_int_equal(thread->sleeping_ns, 70);
	assert_int_equal(thread->uninterruptible_ns, 45);
	assert_int_equal(thread->runnable_ns, 42);
	assert_int_equal(thread->sum.total_ns, 157);
	finish(&f);
}

/* Numbers are used again; when they were made tells threads apart, and in one process too. */
static void test_reused_numbers(void **state)
{
	struct offcpu_wait first = a_wait(11, 'S', 100, 1), second = first, again = first;
	struct fixture f;

	first.key.thread_start_ns = 5;
	second.key.thread_start_ns = 7;
	again.key.thread_start_ns = 7;
	again.key.stack.low = 9;
	start(&f, 10);
	add(&f, &first);
	assert_int_equal(add(&f, &second)->thread_start_ns, 7);
	add(&f, &again);
	assert_int_equal(waits_nrows(f.waits), 3);
	assert_int_equal(waits_nthreads(f.waits), 2);
	assert_int_equal(waits_thread(f.waits, 0)->start_ns, 5);
	assert_int_equal(waits_thread(f.waits, 0)->sum.count, 1);
	assert_int_equal(waits_thread(f.waits, 1)->sum.count, 2);
	finish(&f);
}

/* Over the limit waits of known threads are still added to these; there are no more threads than rows. */
static void test_many_threads(void **state)
{
	struct offcpu_wait known = a_wait(1, 'D', 100, 2);
	struct fixture f;

	start(&f, 3);
	for (uint32_t tid = 1; tid <= 10; tid++) {
		struct offcpu_wait wait = a_wait(tid, 'S', 100, 1);

		assert_true(!add(&f, &wait) == (tid > 3));
	}
	assert_null(add(&f, &known));
	assert_int_equal(waits_nrows(f.waits), 3);
	assert_int_equal(waits_nthreads(f.waits), 3);
	assert_int_equal(waits_thread(f.waits, 0)->sum.count, 2);
	assert_int_equal(waits_lost(f.waits), 8);
	finish(&f);
}

/* However often a thread changes its name, there is one for it and one for its row. */
static void test_names_change(void **state)
{
	struct offcpu_wait wait = a_wait(11, 'S', 100, 1);
	const struct wait_row *row;
	const char *name;
	struct fixture f;

	start(&f, 10);
	row = add(&f, &wait);
	name = row->name;
	memcpy(wait.comm, "other\0", 6);
	assert_ptr_equal(add(&f, &wait), row);
	assert_ptr_equal(row->name, name);
	assert_string_equal(row->name, "other");
	assert_string_equal(waits_thread(f.waits, 0)->name, "other");
	finish(&f);
}

static void test_stack(void **state)
{
	struct stack_record record = a_stack(1);
	struct offcpu_wait wait = a_wait(11, 'S', 5, 1);
	const struct wait_stack *stack;
	struct fixture f;

	record.head.user_end = OFFCPU_END_FAULT;
	start(&f, 10);
	waits_add_stack(f.waits, &record, sizeof(record.head) + 4 * sizeof(uint64_t));
	stack = add(&f, &wait)->stack;
	assert_non_null(stack);
	assert_int_equal(stack->nkernel, 2);
	assert_int_equal(stack->kernel[1], 0xffffffff81000020);
	assert_int_equal(stack->user_end, OFFCPU_END_FAULT);
	assert_int_equal(stack->user.len, 2);
	assert_int_equal(stack->user.data[0].pc, 0x400100);
	assert_int_equal(stack->user.data[0].flags, 0);
	assert_int_equal(stack->user.data[1].pc, 0x400200);
	assert_int_equal(stack->user.data[1].flags, FRAME_RETURN_ADDRESS | FRAME_BY_FRAME_POINTER);
	assert_int_equal(stack->addresses[1], 0x400200);
	waits_add_stack(f.waits, &record, sizeof(record)); /* once more: BPF could not note that we have it */
	assert_ptr_equal(add(&f, &wait)->stack, stack);
	assert_int_equal(waits_lost(f.waits), 0);
	finish(&f);
}

/* The frame that a signal interrupted is no return address, and the one before it is the trampoline. */
static void test_signal(void **state)
{
	struct stack_record record = a_stack(1);
	struct offcpu_wait wait = a_wait(11, 'S', 5, 1);
	const struct wait_stack *stack;
	struct fixture f;

	record.head.nuser = 4;
	record.frames[3] = 0x400200;
	record.frames[4] = 0x400300 | OFFCPU_INTERRUPTED;
	record.frames[5] = 0x400400;
	start(&f, 10);
	waits_add_stack(f.waits, &record, sizeof(record));
	stack = add(&f, &wait)->stack;
	assert_int_equal(stack->user.data[1].flags, FRAME_SIGNAL);
	assert_int_equal(stack->user.data[2].pc, 0x400300);
	assert_int_equal(stack->user.data[2].flags, 0);
	assert_int_equal(stack->user.data[3].flags, FRAME_RETURN_ADDRESS);
	finish(&f);
}

/* Neither is one where Go will go on, and the frame before it is an ordinary one. */
static void test_resumes(void **state)
{
	struct stack_record record = a_stack(1);
	struct offcpu_wait wait = a_wait(11, 'S', 5, 1);
	const struct wait_stack *stack;
	struct fixture f;

	record.head.nuser = 3;
	record.frames[3] = 0x400200;
	record.frames[4] = 0x400300 | OFFCPU_RESUMES;
	start(&f, 10);
	waits_add_stack(f.waits, &record, sizeof(record));
	stack = add(&f, &wait)->stack;
	assert_int_equal(stack->user.data[1].flags, FRAME_RETURN_ADDRESS);
	assert_int_equal(stack->user.data[2].pc, 0x400300);
	assert_int_equal(stack->user.data[2].flags, 0);
	finish(&f);
}

static struct offcpu_runtime_frame told(uint64_t code, uint16_t raw, uint16_t runtime)
{
	return (struct offcpu_runtime_frame){.code = code, .place = code + 1, .version = 7, .raw = raw, .runtime = runtime};
}

/* A stack of four user frames with these of runtimes; the result is good until finish(). */
static const struct raw_stack *add_told(struct fixture *f, const struct offcpu_runtime_frame *frames, uint32_t n, uint32_t end)
{
	static struct {
		struct offcpu_stack head;
		uint64_t user[4];
		struct offcpu_runtime_frame runtime[OFFCPU_RUNTIME_FRAMES];
	} record;

	record.head = (struct offcpu_stack){
		.kind = OFFCPU_STACK, .id = {.low = 1, .high = 1}, .nuser = 4, .nruntime = n, .runtime_end = end};
	memcpy(record.runtime, frames, n * sizeof(*frames));
	start(f, 10);
	assert_null(waits_add_stack(f->waits, &record, offsetof(typeof(record), runtime) + n * sizeof(*frames) - 1)); /* cut */
	return &waits_add_stack(f->waits, &record, offsetof(typeof(record), runtime) + n * sizeof(*frames))->user;
}

/* What ends an activation of Python tells where all of its frames are; others say it themselves, and come in between. */
static void test_frames_of_runtimes(void **state)
{
	const struct offcpu_runtime_frame frames[] = {
		told(0x30, 2, OFFCPU_JAVA), told(0x10, 0, OFFCPU_PYTHON), told(0x20, 0, OFFCPU_PYTHON),
		told(0, 1, OFFCPU_PYTHON),  told(0x40, 0, OFFCPU_PYTHON), told(0, 3, OFFCPU_PYTHON),
	};
	static const struct {
		uint64_t code;
		uint32_t raw, runtime;
	} expected[] = {{0x10, 1, FRAME_KIND_PYTHON}, {0x20, 1, FRAME_KIND_PYTHON}, {0x30, 2, FRAME_KIND_JAVA}, {0x40, 3, FRAME_KIND_PYTHON}};
	const struct raw_stack *stack;
	struct fixture f;

	stack = add_told(&f, frames, 6, OFFCPU_RUNTIME_NONE);
	assert_int_equal(stack->runtime.len, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(stack->runtime.data[i].code, expected[i].code);
		assert_int_equal(stack->runtime.data[i].place, expected[i].code + 1);
		assert_int_equal(stack->runtime.data[i].raw, expected[i].raw);
		assert_int_equal(stack->runtime.data[i].runtime, expected[i].runtime);
		assert_int_equal(stack->runtime.data[i].version, 7);
		assert_int_equal(stack->runtime.data[i].call, 0);
	}
	finish(&f);
}

/* When there were more, one without code stands for them, behind the last. */
static void test_more_frames_of_runtimes(void **state)
{
	const struct offcpu_runtime_frame frames[] = {told(0x10, 0, OFFCPU_PYTHON), told(0, 2, OFFCPU_PYTHON)};
	const struct offcpu_runtime_frame objects[] = {told(0x10, 1, OFFCPU_PYTHON_OBJECT), told(0x20, 2, OFFCPU_PYTHON_OBJECT)};
	const struct raw_stack *stack;
	struct fixture f;

	stack = add_told(&f, frames, 2, OFFCPU_RUNTIME_DEPTH);
	assert_int_equal(stack->runtime.len, 2);
	assert_int_equal(stack->runtime.data[1].code, 0);
	assert_int_equal(stack->runtime.data[1].raw, 2);
	finish(&f);
	stack = add_told(&f, objects, 2, OFFCPU_RUNTIME_DEPTH);
	assert_int_equal(stack->runtime.len, 3);
	assert_int_equal(stack->runtime.data[0].raw, 1);
	assert_int_equal(stack->runtime.data[2].code, 0);
	assert_int_equal(stack->runtime.data[2].raw, 2);
	finish(&f);
}

/* What the kernel has added up is added to what came as single waits. */
static void test_sums_of_the_kernel(void **state)
{
	struct offcpu_wait wait = a_wait(11, 'D', 5, 1);
	const struct offcpu_sums sums = {
		.count = 3,
		.unfinished = 1,
		.total_ns = 60,
		.max_ns = 40,
		.min_ns = 2,
		.runnable_ns = 10,
		.comm = "new name",
	};
	const struct wait_row *row;
	struct fixture f;

	start(&f, 10);
	row = add(&f, &wait);
	waits_add_sums(f.waits, &wait.key, &sums, NULL);
	assert_int_equal(waits_nrows(f.waits), 1);
	assert_int_equal(row->sum.count, 4);
	assert_int_equal(row->sum.unfinished, 1);
	assert_int_equal(row->sum.total_ns, 65);
	assert_int_equal(row->sum.max_ns, 40);
	assert_int_equal(row->sum.min_ns, 2);
	assert_int_equal(row->sum.runnable_ns, 10);
	assert_string_equal(row->name, "new name");
	assert_int_equal(waits_thread(f.waits, 0)->sum.count, 4);
	assert_int_equal(waits_thread(f.waits, 0)->uninterruptible_ns, 55);
	assert_int_equal(waits_thread(f.waits, 0)->runnable_ns, 10);
	finish(&f);
}

/* A wait that was not over says so. */
static void test_unfinished(void **state)
{
	struct offcpu_wait wait = a_wait(11, 'S', 5, 1);
	struct fixture f;

	start(&f, 10);
	add(&f, &wait);
	wait.flags = OFFCPU_UNFINISHED;
	assert_int_equal(add(&f, &wait)->sum.unfinished, 1);
	assert_int_equal(waits_row(f.waits, 0)->sum.count, 2);
	finish(&f);
}

/* An interrupt on an idle CPU is a waker, but no thread. */
static void test_interrupt(void **state)
{
	struct offcpu_wait wait = a_wait(11, 'S', 5, 1);
	const struct wait_row *row;
	struct fixture f;

	wait.key.waker_tid = OFFCPU_INTERRUPT;
	start(&f, 10);
	row = add(&f, &wait);
	assert_true(row->has_waker);
	assert_int_equal(row->waker_tid, 0);
	assert_string_equal(row->waker_name, "interrupt");
	finish(&f);
}

/* Two stacks whose ids have one half in common are two. */
static void test_half_an_id(void **state)
{
	struct stack_record one = a_stack(1), two = a_stack(1);
	struct offcpu_wait wait = a_wait(11, 'S', 5, 1), other = wait;
	struct fixture f;

	two.head.id.high = other.key.stack.high = 77;
	two.head.nuser = 1;
	start(&f, 10);
	waits_add_stack(f.waits, &one, sizeof(one));
	waits_add_stack(f.waits, &two, sizeof(two));
	assert_int_equal(add(&f, &wait)->stack->user.len, 2);
	assert_int_equal(add(&f, &other)->stack->user.len, 1);
	finish(&f);
}

/* A stack that did not fit the ring is sent with a later wait. */
static void test_stack_comes_late(void **state)
{
	struct stack_record record = a_stack(1), waker = a_stack(2);
	struct offcpu_wait wait = a_wait(11, 'S', 5, 1);
	const struct wait_row *row;
	struct fixture f;

	wait.key.waker_tid = 9;
	wait.key.waker_stack = waker.head.id;
	memcpy(wait.waker_comm, "waker", 6);
	start(&f, 10);
	row = add(&f, &wait);
	assert_null(row->stack);
	assert_null(row->waker_stack);
	waits_add_stack(f.waits, &record, sizeof(record));
	waits_add_stack(f.waits, &waker, sizeof(waker));
	assert_ptr_equal(add(&f, &wait), row);
	assert_non_null(row->stack);
	assert_non_null(row->waker_stack);
	assert_int_equal(row->stack->id.low, 1);
	assert_int_equal(row->waker_stack->id.low, 2);
	assert_string_equal(row->waker_name, "waker");
	finish(&f);
}

enum { LIMIT = 4096, TOO_LARGE = LIMIT / sizeof(uint64_t) }; /* for the stacks of a test, and frames of one that is not kept */

static void put_large_stack(struct fixture *f, uint64_t id)
{
	static const uint64_t kernel[TOO_LARGE];
	const struct stack_sample stack = {.id = {.low = id, .high = ~id}, .kernel = kernel, .nkernel = TOO_LARGE};

	waits_put_stack(f->waits, &stack);
}

static bool is_over_limit(const struct wait_stack *stack)
{
	return stack && stack->user_error && strstr(stack->user_error, "too many different stacks");
}

/* Rows say what became of their own stack: one is not kept, another did not fit the ring and is sent with a later wait. */
static void test_limit_of_stacks(void **state)
{
	struct stack_record late = a_stack(7), waker = a_stack(9);
	struct offcpu_wait lost = a_wait(11, 'S', 5, 7), dropped = a_wait(11, 'S', 5, 5);
	const struct offcpu_sums sums = {.count = 1, .total_ns = 5, .max_ns = 5, .min_ns = 5};
	const struct wait_row *row;
	struct fixture f;

	lost.key.waker_tid = dropped.key.waker_tid = 9;
	lost.key.waker_stack = waker.head.id;
	dropped.key.waker_stack = dropped.key.stack;
	start_limited(&f, 10, LIMIT);
	put_large_stack(&f, 5);
	assert_int_equal(waits_stacks_lost(f.waits), 1);
	row = add(&f, &dropped);
	assert_true(is_over_limit(row->stack) && is_over_limit(row->waker_stack));
	row = add(&f, &lost);
	assert_null(row->stack);
	assert_null(row->waker_stack);
	waits_add_stack(f.waits, &late, sizeof(late));
	waits_add_stack(f.waits, &waker, sizeof(waker));
	assert_ptr_equal(add(&f, &lost), row);
	assert_int_equal(row->stack->id.low, 7);
	assert_int_equal(row->waker_stack->id.low, 9);
	dropped.key.tid = 12;
	waits_add_sums(f.waits, &dropped.key, &sums, NULL); /* at the end */
	assert_true(is_over_limit(waits_row(f.waits, 2)->stack));
	dropped.key.stack.low = dropped.key.stack.high = 0; /* it has none */
	assert_null(add(&f, &dropped)->stack);
	assert_int_equal(waits_stacks_lost(f.waits), 1);
	finish(&f);
}

/* When there are more than it can remember, those that it does not know are taken for such. */
static void test_many_stacks_over_the_limit(void **state)
{
	enum { REMEMBERED = 1 << 18 };
	struct offcpu_wait unknown = a_wait(11, 'S', 5, 2 * REMEMBERED);
	struct fixture f;

	start_limited(&f, 10, LIMIT);
	for (uint64_t id = 1; id <= REMEMBERED; id++)
		put_large_stack(&f, id);
	put_large_stack(&f, 1);
	assert_null(add(&f, &unknown)->stack);
	put_large_stack(&f, REMEMBERED + 1);
	assert_true(is_over_limit(add(&f, &unknown)->stack));
	finish(&f);
}

static void test_bad_records(void **state)
{
	struct stack_record record = a_stack(1);
	struct offcpu_wait wait = a_wait(11, 'S', 5, 1);
	struct fixture f;

	start(&f, 10);
	waits_add_stack(f.waits, &record, sizeof(record.head) - 1);
	waits_add_stack(f.waits, &record, sizeof(record.head) + 4 * sizeof(uint64_t) - 1);
	record.head.nkernel = OFFCPU_KERNEL_FRAMES + 1;
	waits_add_stack(f.waits, &record, sizeof(record));
	record.head.nkernel = 0;
	record.head.nuser = UINT32_MAX;
	waits_add_stack(f.waits, &record, sizeof(record));
	assert_int_equal(waits_lost(f.waits), 4);
	assert_null(waits_add_wait(f.waits, &wait, sizeof(wait) - 1));
	wait.runnable_ns = wait.duration_ns + 1;
	assert_null(add(&f, &wait));
	assert_int_equal(waits_lost(f.waits), 6);
	assert_int_equal(waits_nrows(f.waits), 0);
	assert_int_equal(waits_nthreads(f.waits), 0);
	finish(&f);
}

/* What has no row of its own is counted as lost, but it is in the sums of its thread. */
static void test_limit_of_rows(void **state)
{
	struct fixture f;

	start(&f, 2);
	for (uint64_t i = 1; i <= 5; i++) {
		struct offcpu_wait wait = a_wait(11, 'S', 5, i);

		assert_int_equal(add(&f, &wait) != NULL, i <= 2);
	}
	assert_int_equal(waits_nrows(f.waits), 2);
	assert_int_equal(waits_lost(f.waits), 3);
	assert_int_equal(waits_thread(f.waits, 0)->sum.count, 5);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),        cmocka_unit_test(test_keys),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_ran),     cmocka_unit_test(test_stack),
		cmocka_unit_test(test_reused_numbers), cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_names_change),
		cmocka_unit_test(test_half_an_id),  cmocka_unit_test(test_stack_comes_late),
		cmocka_unit_test(test_bad_records), cmocka_unit_test(test_limit_of_rows),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_frames_of_runtimes),
		cmocka_unit_test(test_more_frames_of_runtimes),
		cmocka_unit_test(test_resumes),      cmocka_unit_test(test_sums_of_the_kernel),
		cmocka_unit_test(test_unfinished),  cmocka_unit_test(test_interrupt),
		cmocka_unit_test(test_limit_of_stacks), cmocka_unit_test(test_many_stacks_over_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
