/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "target/memory.h"
#include "target/patience.h"

enum { PAGE = 4096, JOBS = 600 };

/* Two readable pages, then one that is not. */
static uint8_t *make_region(void)
{
	uint8_t *region = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(region != MAP_FAILED);
	for (int i = 0; i < 2 * PAGE; i++)
		region[i] = (uint8_t)(i * 7);
	munmap(region + 2 * PAGE, PAGE);
	return region;
}

/* More jobs than one system call takes, one of them unreadable and one half readable. */
static void check_copy(bool use_proc_mem)
{
	uint8_t *region = make_region(), *out = calloc(JOBS, 64);
	struct memory_job *jobs = calloc(JOBS, sizeof(*jobs));
	struct process p;
	struct memory vm;

	assert_int_equal(process_open(getpid(), NULL, &p), 0);
	memory_init(&vm, &p, use_proc_mem);
	for (int i = 0; i < JOBS; i++)
		jobs[i] = (struct memory_job){.address = (uintptr_t)region + (unsigned)i * 8, .len = 64, .dst = out + i * 64};
	jobs[300].address = (uintptr_t)region + 2 * PAGE;
	jobs[400].address = (uintptr_t)region + 2 * PAGE - 16;
	assert_int_not_equal(memory_copy(&vm, jobs, JOBS), 1);
	for (int i = 0; i < JOBS; i++) {
		if (i == 300)
			assert_int_equal(jobs[i].done, 0);
		else if (i == 400)
			assert_int_equal(jobs[i].done, 16);
		else
			assert_int_equal(jobs[i].done, 64);
		assert_memory_equal(out + i * 64, region + i * 8 * (i != 400) + (i == 400) * (2 * PAGE - 16), jobs[i].done);
	}
	memory_deinit(&vm);
	process_close(&p);
	munmap(region, 2 * PAGE);
	free(jobs);
	free(out);
}

static void test_process_vm_readv(void **state)
{
	check_copy(false);
}

static void test_proc_mem(void **state)
{
	check_copy(true);
}

static void test_mem_interface(void **state)
{
	uint8_t *region = make_region(), buf[32];
	struct process p;
	struct memory vm;

	assert_int_equal(process_open(getpid(), NULL, &p), 0);
	memory_init(&vm, &p, false);
	assert_true(mem_read_exact(&vm.mem, (uintptr_t)region + 100, buf, sizeof(buf)));
	assert_memory_equal(buf, region + 100, sizeof(buf));
	assert_int_equal(vm.mem.read(&vm.mem, (uintptr_t)region + 2 * PAGE - 4, buf, sizeof(buf)), 4);
	assert_true(vm.mem.read(&vm.mem, (uintptr_t)region + 2 * PAGE, buf, sizeof(buf)) < 0);
	memory_deinit(&vm);
	process_close(&p);
	munmap(region, 2 * PAGE);
}

static void expect_nothing(struct memory *vm)
{
	uint8_t bytes[2] = {1, 1};
	struct memory_job jobs[] = {
		{.address = (uintptr_t)bytes, .len = 1, .dst = &bytes[0]},
		{.address = (uintptr_t)bytes, .len = 1, .dst = &bytes[1]},
	};

	assert_int_equal(memory_copy(vm, jobs, 2), -ESRCH);
	assert_int_equal(jobs[0].done, 0);
	assert_int_equal(jobs[1].done, 0);
	assert_int_equal(vm->mem.read(&vm->mem, (uintptr_t)bytes, bytes, 1), -ESRCH);
}

/* Whether it was waited for or not, and whether its number could be another's or not. */
static void test_gone_process(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct process p;
	struct memory vms[2], late;
	siginfo_t info;

	assert_int_equal(process_open(pid, NULL, &p), 0);
	for (int use_proc_mem = 0; use_proc_mem < 2; use_proc_mem++)
		memory_init(&vms[use_proc_mem], &p, use_proc_mem);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	for (int i = 0; i < 2; i++)
		expect_nothing(&vms[i]);
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 2; i++) {
		expect_nothing(&vms[i]);
		memory_deinit(&vms[i]);
	}

	/* Nothing could be opened of it. */
	for (int use_proc_mem = 0; use_proc_mem < 2; use_proc_mem++) {
		char c = 'x';
		struct memory_job job = {.address = (uintptr_t)&c, .len = 1, .dst = (uint8_t *)&c};

		memory_init(&late, &p, use_proc_mem);
		assert_true(memory_copy(&late, &job, 1) < 0);
		assert_int_equal(job.done, 0);
		memory_deinit(&late);
	}
	process_close(&p);
}

/* Eight pages with holes, as the map shows them, and two pages that were mapped after it was read. */
struct holes {
	uint8_t *region, *later;
	struct process p;
	struct memory vm;
	struct map_entry entry;
	struct maps maps;
};

static void make_holes(struct holes *h, bool use_proc_mem)
{
	h->region = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	h->later = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(h->region != MAP_FAILED && h->later != MAP_FAILED);
	madvise(h->region, 8 * PAGE, MADV_NOHUGEPAGE);
	h->region[0] = 1;
	h->region[7 * PAGE] = 8; /* all between was never touched, and reads as zeroes */
	h->later[0] = 9;
	assert_int_equal(process_open(getpid(), NULL, &h->p), 0);
	memory_init(&h->vm, &h->p, use_proc_mem);
	h->entry = (struct map_entry){
		.start = (uintptr_t)h->region,
		.end = (uintptr_t)h->region + 8 * PAGE,
		.perms = MAP_PERM_READ | MAP_PERM_WRITE,
		.path = "",
	};
	h->maps = (struct maps){.data = &h->entry, .len = 1};
	h->vm.maps = &h->maps;
}

static void end_holes(struct holes *h)
{
	memory_deinit(&h->vm);
	process_close(&h->p);
	munmap(h->region, 8 * PAGE);
	munmap(h->later, 2 * PAGE);
}

static void check_holes(bool use_proc_mem, bool held, size_t njobs)
{
	uint8_t out[2][8 * PAGE];
	struct holes h;
	struct memory_job jobs[2];

	make_holes(&h, use_proc_mem);
	memset(out, 0xee, sizeof(out));
	for (size_t i = 0; i < njobs; i++)
		jobs[i] = (struct memory_job){.address = h.entry.start, .len = 8 * PAGE, .dst = out[i]};
	if (held)
		memory_hold(&h.vm);
	assert_int_equal(memory_copy(&h.vm, jobs, njobs), 0);
	if (held)
		memory_release(&h.vm);
	for (size_t i = 0; i < njobs; i++) {
		assert_int_equal(jobs[i].done, 8 * PAGE);
		assert_false(jobs[i].unanswered);
		assert_memory_equal(out[i], h.region, 8 * PAGE);
	}
	end_holes(&h);
}

static void test_memory_with_holes(void **state)
{
	for (int i = 0; i < 8; i++)
		check_holes(i & 1, i & 2, i & 4 ? 2 : 1);
}

/* The stack of a thread that was made after the map was read; of that what is there. */
static void test_memory_that_is_not_in_the_map(void **state)
{
	for (int i = 0; i < 8; i++) {
		uint8_t out[2 * PAGE];
		struct memory_job jobs[2];
		struct holes h;

		make_holes(&h, i & 1);
		jobs[0] = (struct memory_job){.address = (uintptr_t)h.later, .len = 2 * PAGE, .dst = out};
		jobs[1] = (struct memory_job){.address = 4096, .len = 8, .dst = out + PAGE}; /* nothing is there */
		if (i & 2)
			memory_hold(&h.vm);
		memory_copy(&h.vm, jobs, i & 4 ? 2 : 1);
		if (i & 2)
			memory_release(&h.vm);
		assert_int_equal(jobs[0].done, PAGE);
		assert_int_equal(out[0], 9);
		assert_int_equal(jobs[1].done, 0);
		end_holes(&h);
	}
}

/* Memory that was only set aside when the map was read: heaps grow so. Of that, too, what is there. */
static void test_memory_that_was_closed(void **state)
{
	for (int held = 0; held < 2; held++) {
		uint8_t out[2 * PAGE];
		struct memory_job job = {.len = 2 * PAGE, .dst = out};
		struct holes h;

		make_holes(&h, false);
		h.entry = (struct map_entry){.start = (uintptr_t)h.later, .end = (uintptr_t)h.later + 2 * PAGE, .path = ""};
		job.address = h.entry.start;
		if (held)
			memory_hold(&h.vm);
		memory_copy(&h.vm, &job, 1);
		if (held)
			memory_release(&h.vm);
		assert_int_equal(job.done, PAGE);
		assert_int_equal(out[0], 9);
		assert_false(job.unanswered);
		end_holes(&h);
	}
}

/* Memory that was unmapped after the map was read is owed by nobody. */
static void test_memory_that_was_unmapped(void **state)
{
	for (int held = 0; held < 2; held++) {
		uint8_t out[PAGE];
		struct memory_job job = {.len = PAGE, .dst = out};
		struct notes silent = {0};
		struct holes h;

		make_holes(&h, false);
		job.address = h.entry.start;
		munmap(h.region, 8 * PAGE);
		if (held)
			memory_hold(&h.vm);
		memory_copy(&h.vm, &job, 1);
		if (held)
			memory_release(&h.vm);
		assert_int_equal(job.done, 0);
		assert_false(patience_tell(&silent));
		notes_deinit(&silent);
		h.region = mmap(NULL, 8 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* to be unmapped again */
		end_holes(&h);
	}
}

/* Pages in the middle of a mapping that nobody can read: they end what can be read, and nobody is said to owe them. */
static void check_guard(bool held)
{
	enum { SIZE = 65536, GUARD_INSTALL = 102 };
	uint8_t *region = mmap(NULL, 3 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct map_entry entry = {
		.start = (uintptr_t)region, .end = (uintptr_t)region + 3 * SIZE, .perms = MAP_PERM_READ | MAP_PERM_WRITE, .path = ""};
	const struct maps maps = {.data = &entry, .len = 1};
	static uint8_t out[2 * SIZE];
	struct memory_job job = {.address = entry.start, .len = 2 * SIZE, .dst = out};
	struct notes notes = {0};
	struct process p;
	struct memory vm;

	memset(region, 7, 3 * SIZE);
	assert_int_equal(process_open(getpid(), NULL, &p), 0);
	memory_init(&vm, &p, false);
	vm.maps = &maps;
	if (madvise(region + SIZE, SIZE, GUARD_INSTALL) < 0) {
		print_message("skipped: the kernel has no such pages\n");
		skip();
	}
	if (held)
		memory_hold(&vm);
	memory_copy(&vm, &job, 1);
	if (held)
		memory_release(&vm);
	assert_int_equal(job.done, SIZE);
	assert_memory_equal(out, region, SIZE);
	if (job.unanswered) {
		print_message("skipped: the kernel does not tell such pages\n");
		skip();
	}
	assert_false(patience_tell(&notes));
	notes_deinit(&notes);
	memory_deinit(&vm);
	process_close(&p);
	munmap(region, 3 * SIZE);
}

static void test_guard_pages(void **state)
{
	check_guard(false);
}

static void test_guard_pages_while_held(void **state)
{
	check_guard(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_process_vm_readv),
		cmocka_unit_test(test_proc_mem),
		cmocka_unit_test(test_mem_interface),
		cmocka_unit_test(test_gone_process),
		cmocka_unit_test(test_memory_with_holes),
		cmocka_unit_test(test_memory_that_is_not_in_the_map),
		cmocka_unit_test(test_memory_that_was_closed),
		cmocka_unit_test(test_memory_that_was_unmapped),
		cmocka_unit_test(test_guard_pages),
		cmocka_unit_test(test_guard_pages_while_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
