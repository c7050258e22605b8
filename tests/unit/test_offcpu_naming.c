/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"
#include "fake_probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bpf/offcpu_record.h"
#include "offcpu/naming.h"

struct stack_record {
	struct offcpu_stack head;
	uint64_t frames[8];
};

struct fixture {
	struct offcpu_probe probe;
	struct tables *tables;
	struct waits *waits;
	struct offcpu_naming_options options;
	struct offcpu_naming *naming;
	struct offcpu_profile profile;
};

/* Named like the code of this program, which is read as if BPF had asked for it. */
static int start(void **state)
{
	const struct waits_options options = {.max_rows = 100};
	static struct fixture f;

	f = (struct fixture){.profile.duration_ns = 1000000};
	fake_probe_init(&f.probe);
	f.tables = tables_create(&f.probe);
	f.waits = waits_create(f.tables, &options);
	f.options = (struct offcpu_naming_options){.native = {.find = tables_module, .find_ctx = f.tables}};
	f.naming = offcpu_naming_create(&f.options);
	*state = &f;
	return f.naming && tables_read_process(f.tables, getpid(), NULL) == 0 ? 0 : -1;
}

static int finish(void **state)
{
	struct fixture *f = *state;

	offcpu_profile_deinit(&f->profile);
	waits_destroy(f->waits);
	tables_destroy(f->tables);
	offcpu_naming_destroy(f->naming);
	fake_probe_deinit(&f->probe);
	return 0;
}

static void add_stack(struct fixture *f, uint64_t id, struct stack_record record)
{
	record.head.kind = OFFCPU_STACK;
	record.head.id = (struct offcpu_stack_id){.low = id, .high = id};
	waits_add_stack(f->waits, &record, sizeof(record));
}

static void add_wait(struct fixture *f, uint64_t id, char state, uint64_t duration)
{
	struct offcpu_wait wait = {
		.kind = OFFCPU_WAIT,
		.key.state = (uint32_t)state,
		.key.tgid = 10,
		.key.tid = 11,
		.duration_ns = duration,
		.key.stack = {.low = id, .high = id},
		.comm = "worker",
	};

	assert_non_null(waits_add_wait(f->waits, &wait, sizeof(wait)));
}

static void inner(void)
{
}

static void outer(void)
{
}

static void test_user_frames(void **state)
{
	struct fixture *f = *state;
	const struct offcpu_row *row;

	/* A return address that is the first of a function belongs to what is before it: one byte in is taken. */
	add_stack(f, 1,
		  (struct stack_record){
			  .head = {.set = f->probe.maps.set, .nuser = 3, .user_end = OFFCPU_END_NO_UNWIND},
			  .frames = {(uintptr_t)inner, (uintptr_t)outer + 1, 0x10 | OFFCPU_BY_FRAME_POINTER}});
	add_wait(f, 1, 'S', 5);
	assert_true(offcpu_naming_fill(f->naming, f->waits, &f->profile));
	assert_int_equal(f->profile.rows.len, 1);
	row = &f->profile.rows.data[0];
	assert_int_equal(row->user->len, 3);
	assert_string_equal(row->user->data[0].symbol, "inner");
	assert_string_equal(row->user->data[1].symbol, "outer");
	assert_int_equal(row->user->data[0].address, (uintptr_t)inner); /* the process's, not the file's */
	assert_int_equal(row->user->data[1].address, (uintptr_t)outer + 1);
	assert_null(row->user->data[2].symbol);
	assert_int_equal(row->user->data[2].address, 0x10);
	assert_true(row->user->data[2].flags & FRAME_BY_FRAME_POINTER);
	assert_null(row->kernel);
	assert_null(row->kernel_error);
	assert_string_equal(row->user_error, "no unwind information, and no frame pointer to follow");
	assert_false(row->has_waker);
}

/* As the sampler has them: kernel frames are texts already, and user frames have places. */
static void test_texts_and_places(void **state)
{
	char text[] = "do_wait+0x10/0x20 [thing]";
	const char *const texts[] = {"__schedule+0x1/0x9", text};
	const struct raw_frame user = {.pc = 0x1234};
	struct fixture *f = *state;
	const uint64_t place = tables_place(f->tables, f->probe.maps.set, (uintptr_t)inner);
	const struct offcpu_row *row;

	waits_put_stack(f->waits, &(struct stack_sample){.id = {.low = 1, .high = 1},
							.kernel_text = texts,
							.nkernel = 2,
							.user = &user,
							.nuser = 1,
							.places = &place});
	memset(text, 'x', sizeof(text) - 1); /* they were copied */
	add_wait(f, 1, 'S', 5);
	assert_true(offcpu_naming_fill(f->naming, f->waits, &f->profile));
	row = &f->profile.rows.data[0];
	assert_int_equal(row->kernel->len, 1);
	assert_string_equal(row->kernel->data[0].symbol, "do_wait");
	assert_string_equal(row->kernel->data[0].module->path, "thing");
	assert_int_equal(row->user->len, 1);
	assert_string_equal(row->user->data[0].symbol, "inner");
	assert_int_equal(row->user->data[0].address, 0x1234);
	assert_null(row->kernel_error);
	assert_null(row->user_error);
}

static const char *user_error_of(struct fixture *f, uint32_t user_end)
{
	struct offcpu_row row;

	add_stack(f, 100 + user_end, (struct stack_record){.head = {.user_end = user_end}});
	add_wait(f, 100 + user_end, 'S', 5);
	assert_true(offcpu_naming_row(f->naming, waits_row(f->waits, waits_nrows(f->waits) - 1), &row));
	return row.user_error;
}

static void test_errors(void **state)
{
	struct fixture *f = *state;
	struct offcpu_row row;

	assert_null(user_error_of(f, OFFCPU_END_COMPLETE));
	assert_null(user_error_of(f, OFFCPU_END_NO_USER));
	assert_null(user_error_of(f, 1000));
	assert_string_equal(user_error_of(f, OFFCPU_END_FAULT), "EFAULT: stack page not resident");
	for (uint32_t end = OFFCPU_END_NO_TABLES; end <= OFFCPU_END_NO_PROGRESS; end++)
		if (end != OFFCPU_END_FAULT)
			assert_non_null(user_error_of(f, end));

	add_stack(f, 1, (struct stack_record){.head = {.kernel_error = -EFAULT}});
	add_wait(f, 1, 'S', 5);
	assert_true(offcpu_naming_row(f->naming, waits_row(f->waits, waits_nrows(f->waits) - 1), &row));
	assert_string_equal(row.kernel_error, "EFAULT: Bad address");
	add_stack(f, 2, (struct stack_record){.head = {.kernel_error = -524}}); /* ENOTSUPP, which libc does not know */
	add_wait(f, 2, 'S', 5);
	assert_true(offcpu_naming_row(f->naming, waits_row(f->waits, waits_nrows(f->waits) - 1), &row));
	assert_string_equal(row.kernel_error, "kernel error 524");

	add_wait(f, 3, 'S', 5); /* its stack never came */
	assert_true(offcpu_naming_row(f->naming, waits_row(f->waits, waits_nrows(f->waits) - 1), &row));
	assert_null(row.user);
	assert_non_null(strstr(row.user_error, "lost"));
}

/* The heaviest first; where the stack was lost nobody knows whether the thread was idle. */
static void test_order(void **state)
{
	struct fixture *f = *state;
	const uint64_t nearly = f->profile.duration_ns * 9 / 10;

	add_stack(f, 1, (struct stack_record){.head = {.nuser = 1}, .frames = {0x10}});
	add_wait(f, 1, 'S', 10);
	add_wait(f, 2, 'D', nearly);
	add_wait(f, 3, 'S', nearly + 1);
	add_wait(f, 1, 'S', 20);
	assert_true(offcpu_naming_fill(f->naming, f->waits, &f->profile));
	assert_int_equal(f->profile.rows.len, 3);
	assert_int_equal(f->profile.rows.data[0].sum.total_ns, nearly + 1);
	assert_false(f->profile.rows.data[0].idle);
	assert_int_equal(f->profile.rows.data[1].state, 'D');
	assert_int_equal(f->profile.rows.data[2].sum.total_ns, 30);
	assert_int_equal(f->profile.threads.len, 1);
	assert_int_equal(f->profile.total.count, 4);
	assert_int_equal(f->profile.total.total_ns, 2 * nearly + 31);
	assert_int_equal(f->profile.total.min_ns, 10);
	assert_int_equal(f->profile.total.max_ns, nearly + 1);
}

/* Stacks that BPF has sent twice, as when its memory of them was full, are one; so are those that were lost. */
static void test_same_stacks(void **state)
{
	struct fixture *f = *state;

	for (uint64_t id = 1; id <= 2; id++) {
		add_stack(f, id,
			  (struct stack_record){.head = {.set = f->probe.maps.set, .nuser = 2},
						.frames = {(uintptr_t)inner, (uintptr_t)outer + 1}});
		add_wait(f, id, 'S', 100 * id);
		add_wait(f, 10 + id, 'S', 10 * id);
	}
	add_stack(f, 3,
		  (struct stack_record){.head = {.set = f->probe.maps.set, .nuser = 2},
					.frames = {(uintptr_t)inner, (uintptr_t)outer + 2}});
	add_wait(f, 3, 'S', 1);
	assert_int_equal(waits_nrows(f->waits), 5);
	assert_true(offcpu_naming_fill(f->naming, f->waits, &f->profile));
	assert_int_equal(f->profile.rows.len, 3);
	assert_int_equal(f->profile.rows.data[0].sum.total_ns, 300);
	assert_int_equal(f->profile.rows.data[0].sum.count, 2);
	assert_int_equal(f->profile.rows.data[0].sum.min_ns, 100);
	assert_int_equal(f->profile.rows.data[1].sum.total_ns, 30);
	assert_non_null(strstr(f->profile.rows.data[1].user_error, "lost"));
	assert_int_equal(f->profile.rows.data[2].sum.total_ns, 1);
}

/* Where a function of the kernel is; 0 when it is not shown. */
static uint64_t kernel_address(const char *function)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long long address, found = 0;
	char line[256], name[128];

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %*c %127s", &address, name) == 2 && strcmp(name, function) == 0)
			found = address;
	fclose(f);
	return found;
}

/*
 * The scheduler's frames are no part of what waits, and stacks that differ in nothing else are the same. They are part
 * of what an interrupt may have hit before it woke somebody.
 */
static void test_scheduler_frames(void **state)
{
	const uint64_t schedule = kernel_address("schedule"), inside = kernel_address("schedule_timeout");
	const uint64_t read = kernel_address("vfs_read");
	struct offcpu_wait wait = {.kind = OFFCPU_WAIT,
				   .key.state = 'S',
				   .key.tgid = 10,
				   .key.tid = 11,
				   .duration_ns = 5,
				   .waker_tgid = 20,
				   .key.waker_tid = 21};
	struct fixture *f = *state;
	const struct offcpu_row *row;

	if (!schedule || !inside || !read)
		skip(); /* /proc/kallsyms has no addresses for this user */
	add_stack(f, 1, (struct stack_record){.head = {.nkernel = 2}, .frames = {schedule + 1, read + 1}});
	add_stack(f, 2, (struct stack_record){.head = {.nkernel = 3}, .frames = {inside + 1, schedule + 2, read + 1}});
	for (uint64_t id = 1; id <= 2; id++) {
		wait.key.stack = (struct offcpu_stack_id){.low = id, .high = id};
		wait.key.waker_stack = (struct offcpu_stack_id){.low = 2, .high = 2};
		assert_non_null(waits_add_wait(f->waits, &wait, sizeof(wait)));
	}
	assert_true(offcpu_naming_fill(f->naming, f->waits, &f->profile));
	assert_int_equal(f->profile.rows.len, 1);
	row = &f->profile.rows.data[0];
	assert_int_equal(row->sum.count, 2);
	assert_int_equal(row->kernel->len, 1);
	assert_string_equal(row->kernel->data[0].symbol, "vfs_read");
	assert_int_equal(row->waker.kernel->len, 3);
}

static void test_waker(void **state)
{
	struct fixture *f = *state;
	struct offcpu_wait wait = {
		.kind = OFFCPU_WAIT,
		.key.state = 'S',
		.key.tgid = 10,
		.key.tid = 11,
		.duration_ns = 5,
		.waker_tgid = 20,
		.key.waker_tid = 21,
		.key.waker_stack = {.low = 1, .high = 1},
		.waker_comm = "waker",
	};
	struct offcpu_row row;

	add_stack(f, 1,
		  (struct stack_record){.head = {.set = f->probe.maps.set, .nuser = 1}, .frames = {(uintptr_t)inner}});
	assert_non_null(waits_add_wait(f->waits, &wait, sizeof(wait)));
	assert_true(offcpu_naming_row(f->naming, waits_row(f->waits, 0), &row));
	assert_true(row.has_waker);
	assert_int_equal(row.waker.pid, 20);
	assert_int_equal(row.waker.tid, 21);
	assert_string_equal(row.waker.name, "waker");
	assert_int_equal(row.waker.user->len, 1);
	assert_string_equal(row.waker.user->data[0].symbol, "inner");
	assert_null(row.waker.user_error);
	assert_null(row.waker.kernel_error);
	assert_non_null(row.user_error); /* the stack of who waited never came */
}

static const char *why_no_maps(void *arg, pid_t tgid)
{
	return tgid == 20 ? "those of the waker" : "those of another";
}

/* What is missing of a waker's stacks is said, but not of stacks that nobody wants. */
static void test_waker_errors(void **state)
{
	struct fixture *f = *state;
	struct offcpu_wait wait = {
		.kind = OFFCPU_WAIT,
		.key.state = 'S',
		.key.tgid = 10,
		.key.tid = 11,
		.waker_tgid = 20,
		.key.waker_tid = 21,
		.key.waker_stack = {.low = 1, .high = 1},
	};
	const struct wait_row *from;
	struct offcpu_row row;

	from = waits_add_wait(f->waits, &wait, sizeof(wait));
	assert_true(offcpu_naming_row(f->naming, from, &row));
	assert_non_null(strstr(row.waker.user_error, "lost"));
	assert_non_null(strstr(row.waker.kernel_error, "lost"));
	add_stack(f, 1, (struct stack_record){.head = {.kernel_error = -EFAULT, .user_end = OFFCPU_END_NO_TABLES}});
	from = waits_add_wait(f->waits, &wait, sizeof(wait));
	assert_true(offcpu_naming_row(f->naming, from, &row));
	assert_non_null(strstr(row.waker.user_error, "not known yet"));
	assert_string_equal(row.waker.kernel_error, "EFAULT: Bad address");
	f->options.no_maps = why_no_maps;
	f->options.hide_kernel_stacks = true;
	assert_true(offcpu_naming_row(f->naming, from, &row));
	assert_string_equal(row.waker.user_error, "those of the waker");
	assert_null(row.waker.kernel_error);
	wait.key.waker_tid = OFFCPU_OUTSIDE;
	wait.waker_tgid = 0;
	from = waits_add_wait(f->waits, &wait, sizeof(wait));
	assert_true(offcpu_naming_row(f->naming, from, &row));
	assert_non_null(strstr(row.waker.user_error, "outside of this pid namespace"));
}

static const char *call_worker(void *arg, pid_t tgid, pid_t tid, uint64_t start_ns)
{
	return tid == 12 ? NULL : "what the program calls it";
}

/* A name is that of the last thread with the number; a main thread, and one that has none, have the kernel's. */
static void test_names_of_threads(void **state)
{
	static const struct {
		uint32_t tid;
		uint64_t start_ns;
		const char *name;
	} threads[] = {
		{10, 1, "worker"},
		{11, 1, "worker"},
		{11, 2, "what the program calls it"},
		{12, 1, "worker"},
	};
	struct fixture *f = *state;

	f->options.thread_name = call_worker;
	for (size_t i = 0; i < 4; i++) {
		const struct offcpu_wait wait = {
			.kind = OFFCPU_WAIT,
			.key = {.state = 'S', .tgid = 10, .tid = threads[i].tid, .thread_start_ns = threads[i].start_ns, .waker_tid = 11},
			.waker_tgid = 10,
			.waker_comm = "worker",
			.duration_ns = 10 - i,
			.comm = "worker",
		};

		assert_non_null(waits_add_wait(f->waits, &wait, sizeof(wait)));
	}
	assert_true(offcpu_naming_fill(f->naming, f->waits, &f->profile));
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(f->profile.threads.data[i].name, threads[i].name);
		assert_string_equal(f->profile.rows.data[i].thread_name, threads[i].name);
		assert_string_equal(f->profile.rows.data[i].waker.name, "what the program calls it");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_user_frames, start, finish),
		cmocka_unit_test_setup_teardown(test_texts_and_places, start, finish),
		cmocka_unit_test_setup_teardown(test_errors, start, finish),
		cmocka_unit_test_setup_teardown(test_order, start, finish),
		cmocka_unit_test_setup_teardown(test_same_stacks, start, finish),
		cmocka_unit_test_setup_teardown(test_scheduler_frames, start, finish),
		cmocka_unit_test_setup_teardown(test_waker, start, finish),
		cmocka_unit_test_setup_teardown(test_waker_errors, start, finish),
		cmocka_unit_test_setup_teardown(test_names_of_threads, start, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
