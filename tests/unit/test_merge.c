/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "offcpu/merge.h"

#define STACK(...)                                                                                                     \
	(struct stack)                                                                                                 \
	{                                                                                                              \
		.data = (struct frame[]){__VA_ARGS__},                                                                 \
		.len = sizeof((struct frame[]){__VA_ARGS__}) / sizeof(struct frame),                                   \
	}

struct fixture {
	struct offcpu_profile profile;
	struct stack kernel, same_kernel, other_kernel;
	struct stack user, same_user, other_user;
};

/* The same frames at other addresses are what remains of two kernel stacks, of which different parts were cut off. */
static int setup(void **state)
{
	static struct frame kernel[] = {{.address = 0x100, .symbol = "read", .raw = 3, .kind = FRAME_KIND_KERNEL}};
	static struct frame same[] = {{.address = 0x100, .symbol = "read", .raw = 5, .kind = FRAME_KIND_KERNEL}};
	static struct frame other[] = {{.address = 0x101, .symbol = "read", .raw = 5, .kind = FRAME_KIND_KERNEL}};
	static struct frame user[] = {{.address = 0x10}, {.address = 0x20, .flags = FRAME_RETURN_ADDRESS}};
	static struct frame same_user[] = {{.address = 0x10}, {.address = 0x20, .flags = FRAME_RETURN_ADDRESS}};
	static struct frame other_user[] = {{.address = 0x10},
					    {.address = 0x20, .flags = FRAME_RETURN_ADDRESS | FRAME_BY_FRAME_POINTER}};
	static struct fixture f;

	f = (struct fixture){
		.kernel = {.data = kernel, .len = 1},
		.same_kernel = {.data = same, .len = 1},
		.other_kernel = {.data = other, .len = 1},
		.user = {.data = user, .len = 2},
		.same_user = {.data = same_user, .len = 2},
		.other_user = {.data = other_user, .len = 2},
	};
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	offcpu_profile_deinit(&((struct fixture *)*state)->profile);
	return 0;
}

/* A row like all others, to be changed. */
static struct offcpu_row *add(struct fixture *f)
{
	struct offcpu_row row = {
		.pid = 10,
		.tid = 11,
		.thread_name = "worker",
		.state = 'S',
		.kernel = &f->kernel,
		.user = &f->user,
		.sum = {.count = 2, .total_ns = 30, .min_ns = 10, .max_ns = 20, .runnable_ns = 3},
	};

	assert_true(offcpu_profile_add_row(&f->profile, row));
	return &f->profile.rows.data[f->profile.rows.len - 1];
}

static void test_same(void **state)
{
	struct fixture *f = *state;
	struct offcpu_row *row;

	assert_true(offcpu_merge_rows(&f->profile));
	add(f);
	row = add(f);
	row->kernel = &f->same_kernel;
	row->user = &f->same_user;
	row->thread_name = "renamed";
	row->sum = (struct offcpu_sum){
		.count = 3, .total_ns = 50, .min_ns = 5, .max_ns = 40, .runnable_ns = 4, .unfinished = 1};
	add(f)->thread_name = NULL;
	assert_true(offcpu_merge_rows(&f->profile));
	assert_int_equal(f->profile.rows.len, 1);
	row = f->profile.rows.data;
	assert_int_equal(row->sum.count, 7);
	assert_int_equal(row->sum.total_ns, 110);
	assert_int_equal(row->sum.min_ns, 5);
	assert_int_equal(row->sum.max_ns, 40);
	assert_int_equal(row->sum.runnable_ns, 10);
	assert_int_equal(row->sum.unfinished, 1);
	assert_string_equal(row->thread_name, "renamed");
	assert_ptr_equal(row->kernel, &f->kernel);
	assert_ptr_equal(row->user, &f->user);
}

/* Each differs from the first in one thing that a reader sees. */
static void test_different(void **state)
{
	struct fixture *f = *state;
	struct offcpu_row *row;

	add(f);
	add(f)->pid = 12;
	add(f)->tid = 12;
	add(f)->state = 'D';
	add(f)->kernel = &f->other_kernel;
	add(f)->kernel = NULL;
	add(f)->user = &f->other_user;
	add(f)->user = NULL;
	add(f)->user_error = "it ends";
	add(f)->kernel_error = "it ends";
	row = add(f);
	row->has_waker = true;
	row->waker = (struct offcpu_waker){.pid = 1, .tid = 2};
	row = add(f);
	row->has_waker = true;
	row->waker = (struct offcpu_waker){.pid = 1, .tid = 3};
	row = add(f);
	row->has_waker = true;
	row->waker = (struct offcpu_waker){.pid = 1, .tid = 3, .user = &f->user};
	row = add(f);
	row->has_waker = true;
	row->waker = (struct offcpu_waker){.pid = 1, .tid = 3, .kernel = &f->kernel};
	row = add(f);
	row->has_waker = true;
	row->waker = (struct offcpu_waker){.pid = 1, .tid = 3, .user_error = "it ends"};
	row = add(f);
	row->has_waker = true;
	row->waker = (struct offcpu_waker){.pid = 1, .tid = 3, .kernel_error = "it ends"};
	assert_true(offcpu_merge_rows(&f->profile));
	assert_int_equal(f->profile.rows.len, 16);
	for (size_t i = 0; i < f->profile.rows.len; i++)
		assert_int_equal(f->profile.rows.data[i].sum.count, 2);
}

static void test_same_errors_and_wakers(void **state)
{
	struct fixture *f = *state;
	struct stack nothing = {0};
	char error[] = "it ends";
	struct offcpu_row *row;

	for (int i = 0; i < 2; i++) {
		row = add(f);
		row->user = i ? NULL : &nothing;
		row->user_error = i ? error : "it ends";
		row->has_waker = true;
		row->waker = (struct offcpu_waker){
			.pid = 1, .tid = 2, .name = i ? "last" : "first", .user = i ? &f->user : &f->same_user,
			.user_error = i ? error : "it ends"};
	}
	assert_true(offcpu_merge_rows(&f->profile));
	assert_int_equal(f->profile.rows.len, 1);
	assert_null(f->profile.rows.data[0].user);
	assert_string_equal(f->profile.rows.data[0].waker.name, "last");
}

/* /proc tells names of kernel functions, but not their addresses. */
static void test_names_alone(void **state)
{
	struct fixture *f = *state;
	char copy[] = "read";
	struct stack a = STACK({.symbol = "read"}), b = STACK({.symbol = copy}), c = STACK({.symbol = "write"});

	add(f)->kernel = &a;
	add(f)->kernel = &b;
	add(f)->kernel = &c;
	assert_true(offcpu_merge_rows(&f->profile));
	assert_int_equal(f->profile.rows.len, 2);
	assert_int_equal(f->profile.rows.data[0].sum.count, 4);
}

/* The order stays, and every row is found again among many. */
static void test_many(void **state)
{
	enum { TIDS = 5000, TIMES = 4 };
	struct fixture *f = *state;

	for (int i = 0; i < TIDS * TIMES; i++)
		add(f)->tid = 1 + i % TIDS;
	assert_true(offcpu_merge_rows(&f->profile));
	assert_int_equal(f->profile.rows.len, TIDS);
	for (int i = 0; i < TIDS; i++) {
		assert_int_equal(f->profile.rows.data[i].tid, 1 + i);
		assert_int_equal(f->profile.rows.data[i].sum.count, 2 * TIMES);
	}
}

static void test_threads(void **state)
{
	struct fixture *f = *state;
	struct offcpu_row *rows;

	assert_true(offcpu_profile_add_thread(&f->profile, &(struct offcpu_thread){.pid = 10, .tid = 11, .name = "a"}));
	assert_true(
		offcpu_profile_add_thread(&f->profile, &(struct offcpu_thread){.pid = 10, .tid = 10, .name = "main"}));
	add(f);
	add(f)->tid = 12;
	add(f)->pid = 20;
	add(f)->kernel = NULL;
	assert_true(offcpu_merge_threads(&f->profile));
	rows = f->profile.rows.data;
	assert_int_equal(f->profile.rows.len, 3);
	assert_int_equal(rows[0].tid, 0);
	assert_int_equal(rows[0].sum.count, 4);
	assert_string_equal(rows[0].thread_name, "main");
	assert_int_equal(rows[1].pid, 20);
	assert_string_equal(rows[1].thread_name, "worker"); /* nobody knows the main thread's */
	assert_null(rows[2].kernel);
}

static void add_process(struct fixture *f, struct offcpu_identity process)
{
	assert_true(vec_push(&f->profile.processes, process));
}

static void add_at(struct fixture *f, pid_t pid, pid_t tid, const struct stack *user, uint64_t total_ns)
{
	struct offcpu_row *row = add(f);

	row->pid = pid;
	row->tid = tid;
	row->user = user;
	row->sum.total_ns = total_ns;
}

/* Of one program: the same place in the same file is the same, wherever each has it, and at another address it is not. */
static void test_programs(void **state)
{
	static const struct module_info exe = {.path = "/bin/server"}, lib = {.path = "/lib/lib.so"};
	const struct stack here = STACK({.address = 0x1010, .module = &exe, .module_offset = 0x10}),
			   there = STACK({.address = 0x2010, .module = &exe, .module_offset = 0x10}),
			   next = STACK({.address = 0x2011, .module = &exe, .module_offset = 0x11}),
			   library = STACK({.address = 0x2010, .module = &lib, .module_offset = 0x10}),
			   made = STACK({.address = 0x3000}), made_too = STACK({.address = 0x4000});
	struct fixture *f = *state;
	const struct offcpu_member *members;
	struct offcpu_row *rows;

	add_process(f, (struct offcpu_identity){.pid = 10, .name = "server", .file = "/bin/server"});
	add_process(f, (struct offcpu_identity){.pid = 20, .name = "server", .file = "/bin/server"});
	add_at(f, 10, 10, &here, 30);
	add_at(f, 20, 20, &there, 40);
	add_at(f, 20, 21, &there, 50);
	add_at(f, 20, 20, &next, 1);
	add_at(f, 20, 20, &library, 1);
	add_at(f, 10, 10, &made, 1);
	add_at(f, 20, 20, &made_too, 1);
	assert_true(offcpu_merge_threads(&f->profile));
	rows = f->profile.rows.data;
	assert_int_equal(f->profile.rows.len, 5);
	assert_int_equal(rows[0].pid, 0);
	assert_int_equal(rows[0].tid, 0);
	assert_string_equal(rows[0].thread_name, "server");
	assert_int_equal(rows[0].sum.total_ns, 120);
	assert_int_equal(rows[0].nmembers, 2);
	members = f->profile.members.data + rows[0].first_member;
	assert_int_equal(members[0].pid, 20); /* the heaviest first */
	assert_int_equal(members[0].nthreads, 2);
	assert_int_equal(members[0].total_ns, 90);
	assert_int_equal(members[1].pid, 10);
	assert_int_equal(members[1].nthreads, 1);
	for (size_t i = 1; i < 5; i++)
		assert_int_equal(rows[i].nmembers, 1);
	assert_int_equal(rows[3].pid, 10);
	assert_int_equal(rows[4].pid, 20);
}

/* What makes processes those of one program; each has the same stacks. */
static void test_which_program(void **state)
{
	static const struct {
		struct offcpu_identity a, b;
		bool same;
	} cases[] = {
		{{.name = "x", .file = "/bin/x"}, {.name = "y", .file = "/bin/x"}, true},
		{{.name = "x", .file = "/bin/x"}, {.name = "x", .file = "/usr/bin/x"}, false},
		{{.name = "x", .file = "/bin/py", .script_word = "a"}, {.name = "x", .file = "/bin/py", .script_word = "b"}, false},
		{{.name = "x", .file = "/bin/py", .script_word = "a"}, {.name = "y", .file = "/bin/py", .script_word = "a"}, true},
		{{.name = "x", .file = "/bin/x"}, {.name = "x"}, true}, /* it has ended before somebody looked */
		{{.name = "x", .file = "/bin/x"}, {.name = "y"}, false},
		{{.name = "x"}, {.name = "x"}, true},
		{{.name = "x"}, {.name = NULL}, false},
		{{.name = NULL}, {.name = NULL}, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = *state;
		struct offcpu_identity a = cases[i].a, b = cases[i].b;

		a.pid = 10;
		b.pid = 20;
		add_process(f, a);
		add_process(f, b);
		add_at(f, 10, 10, &f->user, 30);
		add_at(f, 20, 20, &f->user, 30);
		assert_true(offcpu_merge_threads(&f->profile));
		if (f->profile.rows.len != (cases[i].same ? 1 : 2))
			fail_msg("case %zu: %zu rows", i, f->profile.rows.len);
		offcpu_profile_deinit(&f->profile);
		f->profile = (struct offcpu_profile){0};
	}
}

/* Of two programs with that name nobody knows which it was. */
static void test_name_of_several_programs(void **state)
{
	struct fixture *f = *state;

	add_process(f, (struct offcpu_identity){.pid = 10, .name = "x", .file = "/bin/x"});
	add_process(f, (struct offcpu_identity){.pid = 20, .name = "x", .file = "/usr/bin/x"});
	add_process(f, (struct offcpu_identity){.pid = 30, .name = "x"});
	for (pid_t pid = 10; pid <= 30; pid += 10)
		add_at(f, pid, pid, &f->user, 30);
	assert_true(offcpu_merge_threads(&f->profile));
	assert_int_equal(f->profile.rows.len, 3);
}

/* Two processes with a thread that works, the second one's for twice as long, and two that are idle. */
static void add_pools(struct fixture *f)
{
	for (int pid = 1; pid <= 2; pid++) {
		for (int tid = 0; tid < 3; tid++) {
			struct offcpu_row *row = add(f);

			row->pid = pid;
			row->tid = 10 + tid;
			row->idle = tid > 0;
			row->sum.total_ns = tid ? 100 : pid * 50;
		}
	}
}

/* By time: a thread that works hides no pool. */
static void test_idle_threads(void **state)
{
	struct fixture *f = *state;

	add_pools(f);
	assert_true(offcpu_merge_threads(&f->profile));
	assert_int_equal(f->profile.rows.len, 2);
	assert_true(f->profile.rows.data[0].idle);  /* 200 of 250 */
	assert_false(f->profile.rows.data[1].idle); /* 200 of 300 */
}

/* By stack: which of its threads somebody woke tells nothing of the process. */
static void test_idle_threads_with_wakers(void **state)
{
	struct fixture *f = *state;

	add_pools(f);
	for (size_t i = 0; i < f->profile.rows.len; i++) {
		struct offcpu_row *row = &f->profile.rows.data[i];

		row->has_waker = true;
		row->waker = (struct offcpu_waker){.pid = 1, .tid = row->tid < 12 ? 7 : 8};
		row->user_error = row->tid > 10 ? "it ends" : NULL;
	}
	assert_true(offcpu_merge_threads(&f->profile));
	assert_int_equal(f->profile.rows.len, 6);
	for (int i = 0; i < 6; i++)
		assert_int_equal(f->profile.rows.data[i].idle, f->profile.rows.data[i].pid == 1);
}

/* A wait that is not over has a kernel stack without the scheduler's functions: the same place with more frames is its. */
static void test_unfinished(void **state)
{
	struct fixture *f = *state;
	struct stack finished = STACK({.address = 0x50, .symbol = "schedule_timeout"}, {.address = 0x100, .symbol = "read"},
				      {.address = 0x200, .symbol = "sys_read"});
	struct stack open = STACK({.address = 0x100, .symbol = "read"}, {.address = 0x200, .symbol = "sys_read"});
	struct stack elsewhere = STACK({.address = 0x100, .symbol = "read"}, {.address = 0x201, .symbol = "sys_read"});
	struct offcpu_row *row;

	row = add(f); /* before those that are over */
	row->kernel = &open;
	row->sum = (struct offcpu_sum){.count = 1, .unfinished = 1, .total_ns = 7, .min_ns = 7, .max_ns = 7};
	add(f)->kernel = &finished;
	row = add(f);
	row->kernel = &elsewhere;
	row->sum.unfinished = row->sum.count;
	row = add(f); /* of another thread */
	row->kernel = &open;
	row->tid = 12;
	row->sum.unfinished = row->sum.count;
	add(f)->kernel = &open; /* over, and without it */
	assert_true(offcpu_merge_rows(&f->profile));
	assert_int_equal(f->profile.rows.len, 4);
	for (size_t i = 0; i < 4; i++) {
		row = &f->profile.rows.data[i];
		if (row->kernel != &finished)
			continue;
		assert_int_equal(row->sum.count, 2);
		assert_int_equal(row->sum.unfinished, 0);
	}
}

static void test_unfinished_alone(void **state)
{
	struct fixture *f = *state;
	struct stack finished = STACK({.address = 0x50, .symbol = "schedule_timeout"}, {.address = 0x100, .symbol = "read"});
	struct stack open = STACK({.address = 0x100, .symbol = "read"});
	struct offcpu_row *row;

	row = add(f);
	row->kernel = &open;
	row->sum = (struct offcpu_sum){.count = 1, .unfinished = 1, .total_ns = 7, .min_ns = 7, .max_ns = 7};
	add(f)->kernel = &finished;
	assert_true(offcpu_merge_rows(&f->profile));
	assert_int_equal(f->profile.rows.len, 1);
	assert_ptr_equal(f->profile.rows.data[0].kernel, &finished);
	assert_int_equal(f->profile.rows.data[0].sum.count, 3);
	assert_int_equal(f->profile.rows.data[0].sum.unfinished, 1);
}

/* Another thread, or the same with a waker, has been there: the place looks the same, but is another row. */
static void test_unfinished_elsewhere(void **state)
{
	struct fixture *f = *state;
	struct stack finished = STACK({.address = 0x50, .symbol = "schedule_timeout"}, {.address = 0x100, .symbol = "read"});
	struct stack open = STACK({.address = 0x100, .symbol = "read"});
	struct offcpu_row *row;

	row = add(f);
	row->kernel = &finished;
	row->has_waker = true;
	for (int i = 0; i < 6; i++) {
		row = add(f);
		row->kernel = &open;
		row->sum.unfinished = row->sum.count;
		row->tid += i / 2;
		row->pid += i / 4;
	}
	assert_true(offcpu_merge_rows(&f->profile));
	assert_int_equal(f->profile.rows.len, 4);
	for (size_t i = 0; i < 4; i++) {
		row = &f->profile.rows.data[i];
		assert_ptr_equal(row->kernel, row->pid == 10 ? &finished : &open);
		assert_int_equal(row->sum.count, i ? 4 : 2);
	}
}

/* Where in its functions an interrupt was tells nothing; where a thread was does. */
static void test_interrupts(void **state)
{
	struct fixture *f = *state;
	struct stack a = STACK({.address = 0x10, .offset = 4, .symbol = "wake"}, {.address = 0x22c, .symbol = "timer"});
	struct stack b = STACK({.address = 0x10, .offset = 4, .symbol = "wake"}, {.address = 0x260, .symbol = "timer"});
	struct stack disk = STACK({.address = 0x10, .offset = 4, .symbol = "wake"}, {.address = 0x300, .symbol = "disk"});
	struct stack nameless = STACK({.address = 0x10, .offset = 4, .symbol = "wake"}, {.address = 0x260});
	const struct stack *const stacks[] = {&a, &b, &disk, &nameless};

	for (pid_t tid = 0; tid < 2; tid++)
		for (size_t i = 0; i < 4; i++) {
			struct offcpu_row *row = add(f);

			row->has_waker = true;
			row->waker = (struct offcpu_waker){.tid = tid, .interrupt = !tid, .kernel = stacks[i]};
		}
	assert_true(offcpu_merge_rows(&f->profile));
	assert_int_equal(f->profile.rows.len, 3 + 4);
	assert_ptr_equal(f->profile.rows.data[0].waker.kernel, &a);
	assert_int_equal(f->profile.rows.data[0].sum.count, 4);
	assert_ptr_equal(f->profile.rows.data[4].waker.kernel, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_same, setup, teardown),
		cmocka_unit_test_setup_teardown(test_different, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_errors_and_wakers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unfinished, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unfinished_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unfinished_elsewhere, setup, teardown),
		cmocka_unit_test_setup_teardown(test_interrupts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_programs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_which_program, setup, teardown),
		cmocka_unit_test_setup_teardown(test_name_of_several_programs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_threads_with_wakers, setup, teardown),
	};

	return cmocka_run_group_tests_name("offcpu_merge", tests, NULL, NULL);
}
