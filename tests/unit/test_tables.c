/* SPDX-License-Identifier: MIT */
#include "child.h"
#include "fake_probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "offcpu/feed/tables.h"

enum { PAGE = 65536, MANY = 3000 };

struct fixture {
	struct offcpu_probe probe;
	struct tables *tables;
};

static int start(void **state)
{
	static struct fixture f;

	fake_probe_init(&f.probe);
	f.tables = tables_create(&f.probe);
	*state = &f;
	return f.tables && f.probe.mappings ? 0 : -1;
}

static int finish(void **state)
{
	struct fixture *f = *state;

	tables_destroy(f->tables);
	fake_probe_deinit(&f->probe);
	return 0;
}

static void read_self(struct fixture *f)
{
	struct err err = {0};

	if (tables_read_process(f->tables, getpid(), &err) != 0)
		fail_msg("%s", err.msg);
}

static unsigned count_executable_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];
	unsigned n = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		n += strchr(line, ' ')[3] == 'x';
	fclose(maps);
	return n;
}

/* The address in the file of libc is what the dynamic loader says. */
static void assert_named(struct fixture *f, uint32_t set)
{
	uint64_t address = (uintptr_t)dlsym(RTLD_DEFAULT, "getppid"), place, vaddr;
	struct module *module;
	Dl_info info;

	assert_true(dladdr((void *)(uintptr_t)address, &info));
	place = tables_place(f->tables, set, address);
	assert_true(place);
	module = tables_module(f->tables, place, &vaddr);
	assert_non_null(module);
	assert_string_equal(strrchr(module->info.path, '/') + 1, "libc.so.6");
	assert_int_equal(vaddr, address - (uintptr_t)info.dli_fbase);
}

static void test_maps_of_a_process(void **state)
{
	struct fixture *f = *state;
	const struct offcpu_mapping *m;

	read_self(f);
	assert_int_equal(f->probe.tgid, getpid());
	assert_true(f->probe.maps.set);
	assert_int_equal(f->probe.maps.count, count_executable_mappings());
	assert_true(f->probe.objects >= 2); /* this program, libc */
	assert_true(f->probe.news);
	m = &f->probe.mappings[f->probe.maps.first];
	for (uint32_t i = 0; i < f->probe.maps.count; i++) {
		assert_int_equal(m[i].set, f->probe.maps.set);
		assert_true(m[i].start < m[i].end);
		assert_true(i == 0 || m[i - 1].end <= m[i].start);
	}
	assert_named(f, f->probe.maps.set);
	assert_int_equal(tables_place(f->tables, 0, (uintptr_t)test_maps_of_a_process), 0);
	assert_int_equal(tables_place(f->tables, f->probe.maps.set, 8), 0);
	assert_int_equal(tables_place(f->tables, f->probe.maps.set + 1, (uintptr_t)test_maps_of_a_process), 0);
}

/* Maps that are as they were take no new room, and BPF is told that there is nothing new. */
static void test_nothing_new(void **state)
{
	struct fixture *f = *state;
	struct offcpu_maps maps;
	unsigned objects;

	read_self(f);
	maps = f->probe.maps;
	objects = f->probe.objects;
	read_self(f);
	assert_memory_equal(&f->probe.maps, &maps, sizeof(maps));
	assert_int_equal(f->probe.objects, objects);
	assert_int_equal(f->probe.answers, 2);
	assert_false(f->probe.news);

	f->probe.maps = (struct offcpu_maps){0}; /* an exec of the same program, mapped at the same addresses */
	read_self(f);
	assert_memory_equal(&f->probe.maps, &maps, sizeof(maps));
	assert_true(f->probe.news);
}

/* A process ends before the tables of its files are made: they are made all the same, and BPF knows the files by them. */
static void test_files_of_who_is_gone(void **state)
{
	struct fixture *f = *state;
	pid_t pid = child_start(child_sleeps);
	uint64_t new_bytes;
	unsigned told = 0;

	f->probe.finds = true;
	assert_int_equal(tables_read_known(f->tables, pid, false, NULL, &new_bytes), -EAGAIN);
	assert_true(new_bytes > 0);
	child_end(pid);
	assert_int_equal(f->probe.objects, 0);
	while (tables_make_one(f->tables))
		assert_int_equal(f->probe.objects, 0);
	tables_give(f->tables);
	assert_true(f->probe.objects >= 2); /* this program, libc */
	assert_int_equal(f->probe.batches, 1);
	for (unsigned i = 0; i < f->probe.nfiles; i++)
		told += f->probe.codes[i].nrows == f->probe.rows[f->probe.codes[i].object];
	assert_true(told >= 2);
	assert_false(tables_make_one(f->tables));
	read_self(f); /* it has the same files, and the vDSO */
	assert_true(f->probe.objects <= told + 1);
	assert_named(f, f->probe.maps.set);
}

/* What BPF has found out itself names addresses as what was read does. */
static void test_found(void **state)
{
	struct fixture *f = *state;
	struct {
		struct offcpu_found head;
		struct offcpu_mapping mappings[OFFCPU_FOUND_MAPPINGS];
	} record = {.head = {.kind = OFFCPU_FOUND, .tgid = 1, .set = OFFCPU_FOUND_SET | 9}};

	read_self(f);
	for (uint32_t i = 0; i < f->probe.maps.count; i++)
		if (f->probe.mappings[f->probe.maps.first + i].nrows)
			record.mappings[record.head.count++] = f->probe.mappings[f->probe.maps.first + i];
	tables_add_found(f->tables, &record, sizeof(record.head) + record.head.count * sizeof(record.mappings[0]));
	assert_named(f, OFFCPU_FOUND_SET | 9);
	assert_int_equal(tables_place(f->tables, OFFCPU_FOUND_SET | 8, (uintptr_t)test_found), 0);
	assert_int_equal(tables_place(f->tables, OFFCPU_FOUND_SET | 9, 8), 0);
}

/* BPF is left in peace for a while only if it has asked in vain. */
static void test_not_asked_for(void **state)
{
	struct fixture *f = *state;
	pid_t pid = child_start(child_sleeps);

	assert_int_equal(tables_reread_process(f->tables, pid, NULL), 0);
	assert_int_equal(f->probe.answers, 1); /* news it may have at once */
	assert_true(f->probe.news);
	assert_int_equal(tables_reread_process(f->tables, pid, NULL), 0);
	assert_int_equal(f->probe.answers, 1);
	assert_int_equal(tables_read_process(f->tables, pid, NULL), 0);
	assert_int_equal(f->probe.answers, 2);
	assert_false(f->probe.news);
	child_end(pid);
	assert_int_equal(tables_reread_process(f->tables, pid, NULL), -ESRCH);
	assert_int_equal(f->probe.answers, 2);
}

/* Stacks that were walked with the old maps may still be on their way. */
static void test_new_mapping(void **state)
{
	struct fixture *f = *state;
	const struct offcpu_mapping *m;
	struct offcpu_maps old;
	struct calls calls = {0};
	uint64_t place, address;
	bool found = false;
	void *code;

	read_self(f);
	old = f->probe.maps;
	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(code, MAP_FAILED);
	read_self(f);
	munmap(code, PAGE);
	assert_int_not_equal(f->probe.maps.set, old.set);
	assert_int_equal(f->probe.maps.count, old.count + 1);
	m = &f->probe.mappings[f->probe.maps.first];
	for (uint32_t i = 0; i < f->probe.maps.count; i++)
		if (m[i].start == (uintptr_t)code) {
			assert_int_equal(m[i].object, OFFCPU_NO_OBJECT);
			found = true;
		}
	assert_true(found);
	place = tables_place(f->tables, f->probe.maps.set, (uintptr_t)code);
	assert_true(place);
	assert_null(tables_module(f->tables, place, &address)); /* nothing names it */
	assert_false(tables_find_made(f->tables, place, &address, &calls));
	assert_int_equal(address, (uintptr_t)code);
	vec_deinit(&calls);
	assert_named(f, f->probe.maps.set);
	assert_named(f, old.set);
	assert_int_equal(f->probe.mappings[old.first].set, old.set);
}

/* Code that is in no file has the names that a file for perf gives it. */
static void test_made_code(void **state)
{
	struct fixture *f = *state;
	void *code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t place, address, vaddr;
	struct calls calls = {0};
	char path[64];
	FILE *map;

	assert_ptr_not_equal(code, MAP_FAILED);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "we");
	assert_non_null(map);
	fprintf(map, "%lx 100 made\n", (unsigned long)code);
	fclose(map);
	read_self(f);
	place = tables_place(f->tables, f->probe.maps.set, (uintptr_t)code + 5);
	assert_true(place);
	assert_null(tables_module(f->tables, place, &vaddr));
	assert_true(tables_find_made(f->tables, place, &address, &calls));
	unlink(path);
	assert_int_equal(address, (uintptr_t)code + 5);
	assert_int_equal(calls.len, 1);
	assert_int_equal(calls.data[0].start, (uintptr_t)code);
	assert_false(tables_find_made(f->tables, (uintptr_t)code, &address, &calls));
	assert_false(tables_find_made(f->tables, tables_place(f->tables, f->probe.maps.set, (uintptr_t)test_made_code),
				      &address, &calls));
	vec_deinit(&calls);
	munmap(code, PAGE);
}

/* A process that has ended is named all the same, and its number may be that of another one by then. */
static void test_end_of_a_process(void **state)
{
	struct fixture *f = *state;
	struct offcpu_maps maps;
	struct err err = {0};
	pid_t pid = child_start(child_sleeps);

	assert_int_equal(tables_read_process(f->tables, pid, &err), 0);
	child_end(pid);
	maps = f->probe.maps;
	tables_forget_process(f->tables, pid);
	assert_int_equal(f->probe.maps.set, 0);
	assert_named(f, maps.set);

	f->probe.maps = (struct offcpu_maps){.set = maps.set + 1}; /* that a new process has from its parent */
	tables_forget_process(f->tables, pid);
	assert_int_equal(f->probe.maps.set, maps.set + 1);

	assert_int_equal(tables_read_process(f->tables, pid, &err), -ESRCH);
	assert_false(f->probe.news);
	assert_int_equal(f->probe.answers, 2);
}

static void protect(char *area, unsigned page, unsigned pages)
{
	assert_int_equal(mprotect(area + page * PAGE, PAGE * pages, PROT_READ | PROT_EXEC), 0);
}

/* When all room was used that of the oldest sets is used anew, and they are not known any more. */
static void test_room_is_used_anew(void **state)
{
	struct fixture *f = *state;
	size_t len = 2 * (size_t)(MANY + 200) * PAGE;
	char *area = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct offcpu_maps first;

	assert_ptr_not_equal(area, MAP_FAILED);
	for (unsigned i = 0; i < MANY; i++)
		protect(area, 2 * i, 1);
	protect(area, 2 * (MANY + 1), 1); /* one more mapping, each time longer */
	read_self(f);
	first = f->probe.maps;
	assert_true(first.count > MANY);
	for (unsigned i = 1; i < FAKE_SLOTS / MANY + 3; i++) {
		protect(area, 2 * (MANY + 1), i + 1);
		read_self(f);
	}
	assert_named(f, f->probe.maps.set);
	assert_int_equal(tables_place(f->tables, first.set, (uintptr_t)test_room_is_used_anew), 0);
	assert_int_not_equal(f->probe.mappings[first.first].set, first.set);
	for (uint32_t i = 0; i < f->probe.maps.count; i++)
		assert_int_equal(f->probe.mappings[f->probe.maps.first + i].set, f->probe.maps.set);
	assert_int_equal(tables_losses(f->tables).mappings, 0);
	munmap(area, len);
}

/* Workers that a server has forked have the same mappings, once. */
static void test_forked_processes(void **state)
{
	struct fixture *f = *state;
	pid_t pids[3];
	struct offcpu_maps first;
	unsigned objects;

	for (int i = 0; i < 3; i++)
		pids[i] = child_start(child_sleeps);
	assert_int_equal(tables_read_process(f->tables, pids[0], NULL), 0);
	first = f->probe.maps;
	objects = f->probe.objects;
	for (int i = 1; i < 3; i++) {
		assert_int_equal(tables_read_process(f->tables, pids[i], NULL), 0);
		assert_int_equal(f->probe.tgid, pids[i]);
		assert_memory_equal(&f->probe.maps, &first, sizeof(first));
		assert_true(f->probe.news);
	}
	assert_int_equal(f->probe.objects, objects);
	assert_int_equal(tables_set_of(f->tables, pids[2]), first.set);
	for (int i = 0; i < 3; i++) {
		tables_forget_process(f->tables, pids[i]);
		child_end(pids[i]);
	}
	assert_int_equal(tables_set_of(f->tables, pids[2]), 0);
	assert_named(f, first.set);
}

/* Not all processes tell of their end: their room is found when it is needed. */
static void test_ended_unseen(void **state)
{
	struct fixture *f = *state;
	size_t len = 2 * (size_t)(MANY + 200) * PAGE;
	char *area = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	unsigned rounds = FAKE_SLOTS / MANY + 3;

	assert_ptr_not_equal(area, MAP_FAILED);
	for (unsigned i = 0; i < MANY; i++)
		protect(area, 2 * i, 1);
	for (unsigned i = 0; i < rounds; i++) {
		pid_t pid;

		protect(area, 2 * (MANY + 1), i + 1);
		pid = child_start(child_sleeps);
		assert_int_equal(tables_read_process(f->tables, pid, NULL), 0);
		child_end(pid);
	}
	assert_named(f, f->probe.maps.set);
	assert_int_equal(tables_losses(f->tables).mappings, 0);
	munmap(area, len);
}

/* What is over the limits is counted once, however often the process is read. */
static void test_losses(void **state)
{
	struct fixture *f = *state;
	size_t len = 2 * (size_t)4200 * PAGE;
	char *area = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	unsigned all;

	assert_ptr_not_equal(area, MAP_FAILED);
	for (unsigned i = 0; i < 4200; i++)
		protect(area, 2 * i, 1);
	all = count_executable_mappings();
	for (int i = 0; i < 3; i++) {
		read_self(f);
		assert_int_equal(f->probe.maps.count, 4096);
		assert_int_equal(tables_losses(f->tables).mappings, all - 4096);
		assert_int_equal(tables_losses(f->tables).objects, 0);
	}
	munmap(area, len);
}

static void test_no_room_for_a_process(void **state)
{
	struct fixture *f = *state;
	struct err err = {0};
	uint64_t lost;

	f->probe.crowded = true;
	assert_int_equal(tables_read_process(f->tables, getpid(), &err), -ENOSPC);
	assert_false(f->probe.news);
	lost = tables_losses(f->tables).mappings;
	assert_int_equal(lost, count_executable_mappings());
	assert_int_equal(tables_read_process(f->tables, getpid(), &err), -ENOSPC);
	assert_int_equal(tables_losses(f->tables).mappings, lost);
	f->probe.crowded = false;
	read_self(f);
	assert_true(f->probe.news);
}

static void test_no_tables(void **state)
{
	struct fixture *f = *state;
	uint64_t lost;

	f->probe.full = true;
	read_self(f);
	lost = tables_losses(f->tables).objects;
	assert_true(lost >= 2);
	read_self(f);
	assert_int_equal(tables_losses(f->tables).objects, lost);
	assert_named(f, f->probe.maps.set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_maps_of_a_process, start, finish),
		cmocka_unit_test_setup_teardown(test_nothing_new, start, finish),
		cmocka_unit_test_setup_teardown(test_files_of_who_is_gone, start, finish),
		cmocka_unit_test_setup_teardown(test_found, start, finish),
		cmocka_unit_test_setup_teardown(test_not_asked_for, start, finish),
		cmocka_unit_test_setup_teardown(test_new_mapping, start, finish),
		cmocka_unit_test_setup_teardown(test_made_code, start, finish),
		cmocka_unit_test_setup_teardown(test_end_of_a_process, start, finish),
		cmocka_unit_test_setup_teardown(test_room_is_used_anew, start, finish),
		cmocka_unit_test_setup_teardown(test_forked_processes, start, finish),
		cmocka_unit_test_setup_teardown(test_ended_unseen, start, finish),
		cmocka_unit_test_setup_teardown(test_losses, start, finish),
		cmocka_unit_test_setup_teardown(test_no_room_for_a_process, start, finish),
		cmocka_unit_test_setup_teardown(test_no_tables, start, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
