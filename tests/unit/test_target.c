/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "target/process_files.h"

static const struct mem_copy *find_image(const struct snapshot *snap, uint64_t start)
{
	for (size_t i = 0; i < snap->images.len; i++)
		if (snap->images.data[i].start == start)
			return &snap->images.data[i];
	return NULL;
}

/* The child is this program: its code is where ours is. */
static void test_child(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct process_files files = {0};
	const struct map_entry *code = NULL;
	struct module *module;
	struct err err = {0};
	char exe[4096] = "";
	uint64_t vaddr;

	if (process_files_open(pid, &err, &files) != 0)
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < files.snap->maps.len; i++) {
		const struct map_entry *e = &files.snap->maps.data[i];

		if (e->start <= (uintptr_t)test_child && (uintptr_t)test_child < e->end)
			code = e;
		if (strcmp(e->path, "[vdso]") == 0) {
			assert_non_null(find_image(files.snap, e->start));
			assert_memory_equal(find_image(files.snap, e->start)->data, "\177ELF", 4);
			assert_non_null(modules_find(files.modules, e->start, &vaddr));
		}
	}
	assert_non_null(code);
	assert_true(code->perms & MAP_PERM_EXEC);
	child_end(pid);

	/* Files are open: the process is not needed any more. */
	module = modules_find(files.modules, (uintptr_t)test_child, &vaddr);
	assert_non_null(module);
	assert_non_null(module->image);
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_string_equal(module->info.path, exe);
	process_files_close(&files);
	assert_null(files.snap);
	assert_null(files.modules);
}

struct asked {
	uint64_t identity; /* what is known */
	uint64_t start;    /* where that is mapped */
	unsigned times;
};

static bool is_known(void *arg, const struct map_entry *entry, uint64_t identity)
{
	struct asked *asked = arg;

	assert_true(entry->perms & MAP_PERM_EXEC);
	asked->times++;
	if (identity != asked->identity)
		return false;
	asked->start = entry->start;
	return true;
}

/* A file that is known has no module, and its mapping is as it was. */
static void test_known_files(void **state)
{
	struct process_files all = {0}, files = {0};
	struct asked asked = {0};
	const struct map_entry *entry;
	uint64_t vaddr;

	assert_int_equal(process_files_open(getpid(), NULL, &all), 0);
	asked.identity = image_identity(modules_find(all.modules, (uintptr_t)test_known_files, &vaddr)->image);
	process_files_close(&all);
	assert_int_equal(process_files_open_others(getpid(), is_known, &asked, NULL, &files), 0);
	if (!asked.times) {
		print_message("skipped: /proc/PID/map_files is not readable\n");
		process_files_close(&files);
		skip();
	}
	entry = maps_find(&files.snap->maps, (uintptr_t)test_known_files);
	assert_non_null(entry);
	assert_int_equal(asked.start, entry->start);
	assert_true(entry->perms & MAP_PERM_EXEC);
	assert_null(modules_find(files.modules, (uintptr_t)test_known_files, &vaddr));
	assert_non_null(modules_find(files.modules, (uintptr_t)strtol, &vaddr));
	assert_true(asked.times >= 2);
	process_files_close(&files);
}

static void test_ended(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct process_files files = {0};
	struct err err = {0};

	child_end(pid);
	assert_int_equal(process_files_open(pid, &err, &files), -ESRCH);
	assert_true(err.msg[0]);
	assert_null(files.snap);
}

/* It has a number, but no memory. */
static void test_zombie(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct process_files files = {0};
	struct err err = {0};
	siginfo_t info;

	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(process_files_open(pid, &err, &files) < 0);
	assert_true(err.msg[0]);
	assert_null(files.snap);
	waitpid(pid, NULL, 0);
}

static void test_kernel_thread(void **state)
{
	struct process_files files = {0};
	struct err err = {0};
	FILE *comm = fopen("/proc/2/comm", "re");
	char name[32] = "";

	if (!comm || !fgets(name, sizeof(name), comm) || strcmp(name, "kthreadd\n") != 0) {
		if (comm)
			fclose(comm);
		print_message("skipped: kthreadd is not visible from this pid namespace\n");
		skip();
	}
	fclose(comm);
	assert_int_equal(process_files_open(2, &err, &files), -EINVAL);
	assert_non_null(strstr(err.msg, "kernel thread"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child),  cmocka_unit_test(test_known_files),   cmocka_unit_test(test_ended),
		cmocka_unit_test(test_zombie), cmocka_unit_test(test_kernel_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
