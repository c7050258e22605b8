/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/take.h"

enum { STACKS = 0x10000, STACKS_END = 0x20000, MAX_SEEN = 4 };

/* A source that shows what it is given. */
struct fake_source {
	struct observer observer;
	struct observation seen[MAX_SEEN];
	size_t nseen;
	uint64_t generation;
	int rc;
	unsigned passes, destroyed;
	unsigned moves_before; /* this pass, its only thread; 0: never */
	struct observe_request last;
};

static int fake_observe(struct observer *observer, const struct observe_request *request, struct err *err,
			struct observations *out)
{
	struct fake_source *fake = (struct fake_source *)observer;

	fake->last = *request;
	if (++fake->passes == fake->moves_before)
		fake->seen[0].nvcsw++;
	if (fake->rc)
		return err_set(err, -fake->rc, "the fake failed");
	out->len = 0;
	out->generation = fake->generation;
	for (size_t i = 0; i < fake->nseen; i++)
		assert_true(vec_push(out, fake->seen[i]));
	return 0;
}

static void fake_destroy(struct observer *observer)
{
	((struct fake_source *)observer)->destroyed++;
}

struct fixture {
	struct fake_source fake;
	struct capture capture;
	struct take take;
	struct err err;
};

static struct fixture *make(void)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->fake.observer = (struct observer){.name = "fake", .observe = fake_observe, .destroy = fake_destroy};
	f->capture.observer = &f->fake.observer;
	f->capture.options.stack_size = 1 << 20;
	assert_int_equal(target_open(getpid(), NULL, &f->capture.target), 0);
	f->take.capture = &f->capture;
	f->take.snap = snapshot_create(getpid(), arch_host());
	f->take.maps_fresh = true; /* the map is the test's own, unless it says otherwise */
	f->take.err = &f->err;
	assert_true(vec_push(&f->take.snap->maps, (struct map_entry){.start = STACKS, .end = STACKS_END, .path = ""}));
	return f;
}

static void destroy(struct fixture *f)
{
	if (f->capture.observer != &f->fake.observer)
		f->capture.observer->destroy(f->capture.observer);
	target_close(f->capture.target);
	vec_deinit(&f->capture.seen);
	u64map_deinit(&f->capture.seen_index);
	vec_deinit(&f->take.work);
	vec_deinit(&f->take.unread);
	vec_deinit(&f->take.sps);
	u64map_deinit(&f->take.index);
	snapshot_destroy(f->take.snap);
	free(f);
}

static void add_seen(struct fixture *f, pid_t tid, uint64_t sp)
{
	struct observation *o = &f->fake.seen[f->fake.nseen++];
	unsigned reg = arch_host()->user_sp;

	*o = (struct observation){.tid = tid, .state = 'S'};
	o->regs.v[reg] = sp;
	o->regs.valid = sp ? UINT64_C(1) << reg : 0;
}

static void expect_extent(struct fixture *f, pid_t tid, uint64_t sp, uint64_t len, uint64_t region_end)
{
	const struct snap_thread thread = {.tid = tid};
	struct mem_copy extent = take_stack_extent(&f->take, &thread, sp);

	assert_int_equal(extent.start, sp);
	assert_int_equal(extent.len, len);
	assert_int_equal(extent.region_end, region_end);
	assert_null(extent.data);
}

static void test_extent_reaches_to_the_end_of_the_mapping(void **state)
{
	struct fixture *f = make();

	expect_extent(f, 1, STACKS + 0x100, STACKS_END - STACKS - 0x100, STACKS_END);
	expect_extent(f, 1, STACKS, STACKS_END - STACKS, STACKS_END);
	expect_extent(f, 1, STACKS_END - 8, 8, STACKS_END);
	destroy(f);
}

/* C libraries have the descriptor of a thread at the upper end of its stack. */
static void test_extent_ends_at_the_descriptor(void **state)
{
	struct fixture *f = make();
	struct snap_thread thread = {.tid = 1, .tid_address = STACKS_END - 0x800};
	struct mem_copy extent = take_stack_extent(&f->take, &thread, STACKS + 0x100);

	assert_int_equal(extent.region_end, STACKS_END - 0x800);
	assert_int_equal(extent.len, STACKS_END - 0x800 - STACKS - 0x100);
	thread.tid_address = STACKS; /* below: it runs on another stack */
	assert_int_equal(take_stack_extent(&f->take, &thread, STACKS + 0x100).region_end, STACKS_END);
	thread.tid_address = STACKS_END + 0x100; /* elsewhere */
	assert_int_equal(take_stack_extent(&f->take, &thread, STACKS + 0x100).region_end, STACKS_END);
	destroy(f);
}

/* Several stacks in one mapping, as some runtimes have them: each ends where the next one is in use. */
static void test_extent_ends_at_the_next_stack(void **state)
{
	struct fixture *f = make();

	add_seen(f, 3, STACKS + 0x3000);
	add_seen(f, 1, STACKS + 0x1000);
	add_seen(f, 4, 0); /* not known: it was running */
	add_seen(f, 2, STACKS + 0x2000);
	assert_int_equal(take_observe(&f->take, 0, false), 0);
	assert_int_equal(f->take.sps.len, 3);
	expect_extent(f, 1, STACKS + 0x1000, 0x1000, STACKS + 0x2000);
	expect_extent(f, 2, STACKS + 0x2000, 0x1000, STACKS + 0x3000);
	expect_extent(f, 3, STACKS + 0x3000, STACKS_END - (STACKS + 0x3000), STACKS_END);
	/* Where it was itself in that pass does not cut: it has called something since. */
	expect_extent(f, 2, STACKS + 0x1f00, 0x1100, STACKS + 0x3000);
	expect_extent(f, 4, STACKS + 0x1800, 0x800, STACKS + 0x2000);
	destroy(f);
}

static void test_extent_of_stacks_in_other_mappings(void **state)
{
	struct fixture *f = make();

	add_seen(f, 1, STACKS + 0x1000);
	add_seen(f, 2, STACKS_END + 0x1000);
	assert_int_equal(take_observe(&f->take, 0, false), 0);
	expect_extent(f, 1, STACKS + 0x1000, STACKS_END - (STACKS + 0x1000), STACKS_END);
	destroy(f);
}

static void test_extent_is_limited(void **state)
{
	struct fixture *f = make();

	f->capture.options.stack_size = 0x800;
	expect_extent(f, 1, STACKS + 0x1000, 0x800, STACKS_END); /* region_end tells that there is more */
	expect_extent(f, 1, STACKS_END - 0x10, 0x10, STACKS_END);
	add_seen(f, 1, STACKS + 0x1000);
	add_seen(f, 2, STACKS + 0x2000);
	assert_int_equal(take_observe(&f->take, 0, false), 0);
	expect_extent(f, 1, STACKS + 0x1000, 0x800, STACKS + 0x2000);
	destroy(f);
}

static void test_extent_of_a_stack_in_no_mapping(void **state)
{
	struct fixture *f = make();

	expect_extent(f, 1, 0, 0, 0);
	expect_extent(f, 1, STACKS_END, 0, 0);
	expect_extent(f, 1, UINT64_MAX, 0, 0);
	destroy(f);
}

/* The map is read again for a stack that is not in it, but once a round only. */
static void test_extent_of_a_new_stack(void **state)
{
	struct fixture *f = make();
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t sp = (uintptr_t)page + 64;

	assert_true(page != MAP_FAILED);
	expect_extent(f, 1, sp, 0, 0);
	f->take.maps_fresh = false;
	f->capture.options.stack_size = 1024;
	assert_int_equal(take_stack_extent(&f->take, &(struct snap_thread){.tid = 1}, sp).len, 1024);
	assert_true(f->take.maps_fresh);
	assert_non_null(maps_find(&f->take.snap->maps, (uintptr_t)page));
	munmap(page, 4096);
	destroy(f);
}

static void test_unmoved_by_run_counts(void **state)
{
	struct observation o = {.state = 'S', .has_runs = true, .runs = 7, .nvcsw = 3, .nivcsw = 1};
	struct snap_thread t = {.has_runs = true, .runs = 7, .nvcsw = 3, .nivcsw = 1};

	assert_true(take_unmoved(&o, &t));
	o.runs = 8;
	assert_false(take_unmoved(&o, &t));
	/* Equal counts are not enough: a thread that was preempted on its way to sleep goes on without being counted. */
	o.runs = 7;
	o.nvcsw = 4;
	assert_false(take_unmoved(&o, &t));
	o.nvcsw = 3;
	o.on_cpu = true;
	assert_false(take_unmoved(&o, &t));
	o.on_cpu = false;
	o.running = true; /* or so it seems to /proc, which calls what waits for a CPU so */
	assert_true(take_unmoved(&o, &t));
	o.state = 'Z';
	assert_false(take_unmoved(&o, &t));
	o.state = 'X';
	assert_false(take_unmoved(&o, &t));
}

static void test_unmoved_by_context_switches(void **state)
{
	const struct observation same = {.state = 'S', .nvcsw = 3, .nivcsw = 1};
	const struct snap_thread t = {.nvcsw = 3, .nivcsw = 1}, counted = {.nvcsw = 3, .nivcsw = 1, .has_runs = true};
	struct observation o = same;

	assert_true(take_unmoved(&o, &t));
	/* a count that only one of the passes has says nothing */
	assert_true(take_unmoved(&o, &counted));
	o.has_runs = true;
	o.runs = 7;
	assert_true(take_unmoved(&o, &t));
	o.running = true;
	assert_false(take_unmoved(&o, &t));
	o = same;
	o.nvcsw++;
	assert_false(take_unmoved(&o, &t));
	o = same;
	o.nivcsw++;
	assert_false(take_unmoved(&o, &t));
	o = same;
	o.state = 'Z';
	assert_false(take_unmoved(&o, &t));
}

static void test_passes(void **state)
{
	struct fixture *f = make();

	f->capture.options.kernel_stacks = true;
	add_seen(f, 20, STACKS + 8);
	add_seen(f, 10, STACKS);
	assert_int_equal(take_observe(&f->take, 0, false), 0);
	assert_true(f->fake.last.kernel_stacks);
	assert_ptr_equal(f->fake.last.arena, f->take.snap->arena);
	assert_int_equal(take_find_observed(&f->capture, 10)->tid, 10);
	assert_int_equal(take_find_observed(&f->capture, 20)->tid, 20);
	assert_null(take_find_observed(&f->capture, 30));
	assert_int_equal(f->take.sps.data[0].tid, 10);

	/* What a smaller pass sees replaces all that was seen, but not the stack pointers. */
	f->fake.nseen = 1;
	assert_int_equal(take_observe(&f->take, 20, false), 0);
	assert_int_equal(f->fake.last.only_tid, 20);
	assert_null(take_find_observed(&f->capture, 10));
	assert_int_equal(f->take.sps.len, 2);
	assert_int_equal(take_observe(&f->take, 0, true), 0);
	assert_true(f->fake.last.counters_only);
	assert_false(f->fake.last.kernel_stacks);
	assert_int_equal(f->take.sps.len, 2);
	assert_int_equal(take_look(&f->capture), 0);
	assert_true(f->fake.last.counters_only);
	destroy(f);
}

static void test_exec_in_the_middle(void **state)
{
	struct fixture *f = make();

	add_seen(f, 1, STACKS);
	f->fake.generation = 100;
	assert_int_equal(take_observe(&f->take, 0, false), 0);
	f->fake.generation = 0; /* not known, this time */
	assert_int_equal(take_observe(&f->take, 0, false), 0);
	f->fake.generation = 100;
	assert_int_equal(take_observe(&f->take, 0, true), 0);
	f->fake.generation = 101;
	assert_int_equal(take_observe(&f->take, 0, true), -EAGAIN);
	destroy(f);
}

enum { STACK_SIZE = 4096 };

static uint8_t *make_stack(void)
{
	uint8_t *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(stack != MAP_FAILED);
	return stack;
}

static void know_stack(struct fixture *f, const uint8_t *stack)
{
	assert_true(vec_push(&f->take.snap->maps, (struct map_entry){.start = (uintptr_t)stack, .end = (uintptr_t)stack + STACK_SIZE, .path = ""}));
}

static void add_caller(struct fixture *f, pid_t tid, const uint8_t *sp, int64_t nr, uint64_t arg)
{
	add_seen(f, tid, (uintptr_t)sp);
	f->fake.seen[f->fake.nseen - 1].syscall = (struct snap_syscall){.state = SYSCALL_IN, .nr = nr, .args = {arg}};
}

/* A thread that has been in a system call for so long, and moves before a pass. What the first round makes of it. */
static struct fixture *take_caller(int64_t nr, int fd, int64_t off_cpu_ns, unsigned moves_before)
{
	struct fixture *f = make();
	uint8_t *stack = make_stack();
	struct take *all = &f->take;

	know_stack(f, stack);
	add_caller(f, getpid(), stack + 64, nr, (uint64_t)fd);
	f->fake.seen[0].off_cpu_ns = off_cpu_ns;
	f->fake.moves_before = moves_before;
	f->capture.options.stop = STOP_NONE;
	f->take.may_gather = true;
	assert_int_equal(take_observe(&f->take, 0, false), 0);
	assert_int_equal(take_store_pass(&f->take), 0);
	take_passive(&all, 1);
	munmap(stack, STACK_SIZE);
	return f;
}

/* What threads wait for that have slept for long is gathered between the two passes: there is no third one. */
static void test_between_the_passes(void **state)
{
	enum { LONG = 2000000000, SHORT = 500000000 };
	struct fixture *f;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	f = take_caller(SYS_read, ends[0], LONG, 0);
	assert_int_equal(f->take.rc, 0);
	assert_int_equal(f->fake.passes, 2);
	assert_true(f->take.between);
	assert_int_equal(f->take.snap->waits.len, 1);
	assert_int_equal(f->take.snap->waits.data[0].on.kind, DESCRIPTOR_PIPE);
	assert_true(f->take.snap->threads.data[0].still_besides);
	destroy(f);

	f = take_caller(SYS_read, ends[0], LONG, 2);
	assert_int_equal(f->take.rc, -EAGAIN);
	assert_int_equal(f->fake.passes, 2);
	assert_true(f->capture.restless);
	destroy(f);

	f = take_caller(SYS_read, ends[0], SHORT, 2);
	assert_int_equal(f->take.rc, 0);
	assert_true(f->fake.passes > 2);
	assert_false(f->take.between || f->capture.restless);
	assert_int_equal(f->take.snap->waits.len, 0);
	destroy(f);

	f = take_caller(SYS_sched_yield, 0, LONG, 2); /* nothing was gathered */
	assert_int_equal(f->take.rc, 0);
	assert_true(f->fake.passes > 2);
	assert_false(f->take.between || f->capture.restless);
	destroy(f);
	close(ends[0]);
	close(ends[1]);
}

/* If one moves that had slept for long, it is all taken anew, in the other order: with a third pass. */
static void test_moves_between_the_passes(void **state)
{
	struct fixture *f = make();
	uint8_t *stack = make_stack();
	struct snapshot *snap;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	add_caller(f, getpid(), stack + 64, SYS_read, (uint64_t)ends[0]);
	f->fake.seen[0].off_cpu_ns = 2000000000;
	f->fake.moves_before = 2;
	f->capture.options.stop = STOP_NONE;
	assert_int_equal(capture_take(&f->capture, &f->err, &snap), 0);
	assert_int_equal(f->fake.passes, 2 + 3);
	assert_int_equal(snap->waits.len, 1);
	assert_true(snap->threads.data[0].still_besides);
	assert_null(f->capture.ahead);
	snapshot_destroy(snap);
	assert_int_equal(capture_take(&f->capture, &f->err, &snap), 0);
	assert_int_equal(f->fake.passes, 2 + 3 + 2);
	assert_true(snap->threads.data[0].still_besides);
	snapshot_destroy(snap);
	target_set_snapshot(f->capture.target, NULL);
	munmap(stack, STACK_SIZE);
	close(ends[0]);
	close(ends[1]);
	destroy(f);
}

/* What several wait for is copied once, if it is the same for all of them. */
static void test_shared_copies(void **state)
{
	struct fixture *f = make();
	uint8_t *stack = make_stack(), *words = make_stack();
	const struct snap_thread *t;

	know_stack(f, stack < words ? stack : words);
	know_stack(f, stack < words ? words : stack);
	words[64] = 'w';
	add_caller(f, getpid(), stack + 64, SYS_futex, (uintptr_t)words + 64);
	add_caller(f, getpid() + 1, stack + 128, SYS_futex, (uintptr_t)words + 64);
	add_caller(f, getpid() + 2, stack + 192, SYS_nanosleep, (uintptr_t)words + 64); /* as much as a time takes */
	add_caller(f, getpid() + 3, stack + 256, SYS_futex, (uintptr_t)words + 65);
	assert_int_equal(take_observe(&f->take, 0, false), 0);
	assert_int_equal(take_store_pass(&f->take), 0);
	assert_int_equal(take_copy_asleep(&f->take), 0);
	t = f->take.snap->threads.data;
	assert_int_equal(t[0].waited.data[0], 'w');
	assert_ptr_equal(t[1].waited.data, t[0].waited.data);
	assert_int_equal(t[1].waited.len, t[0].waited.len);
	assert_int_equal(t[2].waited.data[0], 'w');
	assert_ptr_not_equal(t[2].waited.data, t[0].waited.data);
	assert_int_equal(t[2].waited.len, 16);
	assert_ptr_not_equal(t[3].waited.data, t[0].waited.data);
	assert_int_equal(t[3].waited.start, (uintptr_t)words + 65);
	munmap(stack, STACK_SIZE);
	munmap(words, STACK_SIZE);
	destroy(f);
}

/* A source that fails when it is used makes place for /proc, and the snapshot says so. */
static void test_fallback(void **state)
{
	struct fixture *f = make();

	f->fake.rc = -EPERM;
	f->take.generation = 100;
	assert_int_equal(take_observe(&f->take, 0, false), 0);
	assert_int_equal(f->fake.destroyed, 1);
	assert_string_equal(f->take.snap->capture.method, "proc");
	assert_int_equal(f->take.snap->notes.len, 1);
	assert_non_null(strstr(f->take.snap->notes.data[0], "the fake failed"));
	assert_string_equal(f->take.snap->notes.data[0], f->capture.observer_note);
	assert_int_not_equal(f->take.generation, 100);
	assert_non_null(take_find_observed(&f->capture, getpid()));
	destroy(f);
}

/* Who holds the whole process learns the registers from that. */
static void test_fallback_when_all_are_stopped(void **state)
{
	struct fixture *f = make();

	f->fake.rc = -EPERM;
	f->capture.options.stop = STOP_ALL;
	f->take.snap->capture.method = "ptrace";
	assert_int_equal(take_observe(&f->take, 0, false), 0);
	assert_int_equal(f->fake.destroyed, 1);
	assert_string_equal(f->take.snap->capture.method, "ptrace");
	assert_int_equal(f->take.snap->notes.len, 0);
	destroy(f);
}

static void expect_no_fallback(int rc, enum source_choice choice, const char *note)
{
	struct fixture *f = make();

	f->fake.rc = rc;
	f->capture.options.source = choice;
	strcpy(f->capture.observer_note, note);
	assert_int_equal(take_observe(&f->take, 0, false), rc);
	assert_int_equal(f->fake.passes, 1);
	assert_int_equal(f->fake.destroyed, 0);
	assert_ptr_equal(f->capture.observer, &f->fake.observer);
	assert_int_equal(f->take.snap->notes.len, 0);
	destroy(f);
}

static void test_no_fallback(void **state)
{
	expect_no_fallback(-ESRCH, SOURCE_AUTO, "");
	expect_no_fallback(-ENOMEM, SOURCE_AUTO, "");
	expect_no_fallback(-EPERM, SOURCE_BPF, "");
	expect_no_fallback(-EPERM, SOURCE_AUTO, "it is /proc already");
}

static void test_threads_of_the_snapshot(void **state)
{
	struct fixture *f = make();
	const pid_t tids[] = {5, 7};
	struct snap_thread *t;
	size_t index;

	assert_true(take_wants(&f->capture, 6));
	f->capture.options.tids = tids;
	f->capture.options.ntids = 2;
	assert_true(take_wants(&f->capture, 7));
	assert_false(take_wants(&f->capture, 6));
	f->capture.options.ntids = 0;
	assert_false(take_wants(&f->capture, 5));

	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(take_add_thread(&f->take, 100 - (pid_t)i, &index), 0);
		assert_int_equal(index, i);
	}
	assert_int_equal(f->take.work.len, 3);
	assert_int_equal(f->take.work.data[2], WORK_TAKE);
	assert_int_equal(*u64map_find(&f->take.index, 99), 1);
	t = &f->take.snap->threads.data[1];
	assert_int_equal(t->tid, 99);
	assert_int_equal(t->off_cpu_ns, -1);
	assert_false(take_has_sp(&f->take, t));
	t->regs.valid = UINT64_C(1) << arch_host()->user_sp;
	assert_true(take_has_sp(&f->take, t));
	take_set_status(f->take.snap, t, THREAD_EXITED, "it ended");
	assert_int_equal(t->status, THREAD_EXITED);
	assert_string_equal(t->why, "it ended");
	destroy(f);
}

static void test_room_for_copies(void **state)
{
	struct fixture *f = make();
	struct bulk *bulk = take_add_bulk(f->take.snap, 10000, 20000);

	assert_non_null(bulk);
	assert_int_equal(bulk->size, 10000);
	for (size_t i = 0; i < bulk->size; i++)
		assert_int_equal(bulk->data[i], 0);
	memset(bulk->data, 0xff, bulk->size);
	assert_null(take_add_bulk(f->take.snap, (size_t)1 << 62, 0));
	assert_int_equal(f->take.snap->bulk.len, 1);
	assert_int_equal(take_out_of_memory(&f->take), -ENOMEM);
	assert_string_equal(f->err.msg, "out of memory");
	destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_extent_reaches_to_the_end_of_the_mapping),
		cmocka_unit_test(test_extent_ends_at_the_descriptor),
		cmocka_unit_test(test_extent_ends_at_the_next_stack),
		cmocka_unit_test(test_extent_of_stacks_in_other_mappings),
		cmocka_unit_test(test_extent_is_limited),
		cmocka_unit_test(test_extent_of_a_stack_in_no_mapping),
		cmocka_unit_test(test_extent_of_a_new_stack),
		cmocka_unit_test(test_unmoved_by_run_counts),
		cmocka_unit_test(test_unmoved_by_context_switches),
		cmocka_unit_test(test_passes),
		cmocka_unit_test(test_exec_in_the_middle),
		cmocka_unit_test(test_between_the_passes),
		cmocka_unit_test(test_moves_between_the_passes),
		cmocka_unit_test(test_shared_copies),
		cmocka_unit_test(test_fallback),
		cmocka_unit_test(test_fallback_when_all_are_stopped),
		cmocka_unit_test(test_no_fallback),
		cmocka_unit_test(test_threads_of_the_snapshot),
		cmocka_unit_test(test_room_for_copies),
	};

	return cmocka_run_group_tests_name("take", tests, NULL, NULL);
}
