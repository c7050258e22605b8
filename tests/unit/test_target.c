/* SPDX-License-Identifier: MIT */
#include "exec_child.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>


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
	struct target *target = NULL;
	const struct map_entry *code = NULL;
	struct module *module;
	struct err err = {0};
	char exe[4096] = "";
	uint64_t vaddr;

	if (target_open_whole(pid, NULL, &err, &target) != 0)
		fail_msg("%s", err.msg);
	assert_true(target_is_live(target));
	assert_int_equal(target->process.pid, pid);
	assert_int_equal(target->snap->pid, pid);
	assert_int_equal(target->snap->threads.len, 0);
	assert_int_not_equal(target->generation, 0);
	assert_int_equal(generation_of(pid), target->generation);
	assert_int_equal(target_check(target, &err), 0);
	for (size_t i = 0; i < target->snap->maps.len; i++) {
		const struct map_entry *e = &target->snap->maps.data[i];

		if (e->start <= (uintptr_t)test_child && (uintptr_t)test_child < e->end)
			code = e;
		if (strcmp(e->path, "[vdso]") == 0) {
			assert_non_null(find_image(target->snap, e->start));
			assert_memory_equal(find_image(target->snap, e->start)->data, "\177ELF", 4);
			assert_non_null(modules_find(target->modules, e->start, &vaddr));
		}
	}
	assert_non_null(code);
	assert_true(code->perms & MAP_PERM_EXEC);
	child_end(pid);

	/* Files are open: the process is not needed any more. */
	module = modules_find(target->modules, (uintptr_t)test_child, &vaddr);
	assert_non_null(module);
	assert_non_null(module->image);
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_string_equal(module->info.path, exe);
	target_close(target);
	target_close(NULL);
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
	struct target *all = NULL, *target = NULL;
	struct asked asked = {0};
	const struct modules_options options = {.is_known = is_known, .arg = &asked};
	const struct map_entry *entry;
	uint64_t vaddr;

	assert_int_equal(target_open_whole(getpid(), NULL, NULL, &all), 0);
	asked.identity = image_identity(modules_find(all->modules, (uintptr_t)test_known_files, &vaddr)->image);
	target_close(all);
	assert_int_equal(target_open_whole(getpid(), &options, NULL, &target), 0);
	if (!asked.start) {
		print_message("skipped: /proc/PID/map_files is not readable\n");
		target_close(target);
		skip();
	}
	entry = maps_find(&target->snap->maps, (uintptr_t)test_known_files);
	assert_non_null(entry);
	assert_int_equal(asked.start, entry->start);
	assert_true(entry->perms & MAP_PERM_EXEC);
	assert_null(modules_find(target->modules, (uintptr_t)test_known_files, &vaddr));
	assert_non_null(modules_find(target->modules, (uintptr_t)strtol, &vaddr));
	assert_true(asked.times >= 2);
	target_close(target);
}

static void test_ended(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct target *target = NULL;
	struct err err = {0};

	child_end(pid);
	assert_int_equal(target_open_whole(pid, NULL, &err, &target), -ESRCH);
	assert_true(err.msg[0]);
	assert_null(target);
}

/* It has a number, but no memory. */
static void test_zombie(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct target *target = NULL;
	struct err err = {0};
	siginfo_t info;

	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(target_open_whole(pid, NULL, &err, &target) < 0);
	assert_true(err.msg[0]);
	assert_null(target);
	waitpid(pid, NULL, 0);
}

static void test_kernel_thread(void **state)
{
	struct target *target = NULL;
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
	assert_int_equal(target_open_whole(2, NULL, &err, &target), -EINVAL);
	assert_non_null(strstr(err.msg, "kernel thread"));
	assert_null(target);
}

/* What is learnt of a process counts only as long as it executes the same program. */
static void test_executes(void **state)
{
	struct exec_child child = exec_child_start();
	struct target *target = NULL;
	struct err err = {0};
	uint64_t before, vaddr;

	assert_int_equal(target_open_whole(child.pid, NULL, NULL, &target), 0);
	before = target->generation;
	assert_int_equal(target_check(target, &err), 0);
	assert_non_null(maps_find(&target->snap->maps, (uintptr_t)test_executes));

	exec_child_exec(&child);
	assert_int_equal(target_check(target, &err), -EAGAIN);
	assert_non_null(strstr(err.msg, "executed"));
	assert_int_equal(target_check(target, NULL), -EAGAIN); /* looking does not change it */
	assert_int_equal(target->generation, before);

	/* Another look, and it is a target as any other. */
	target_look(target);
	assert_int_not_equal(target->generation, before);
	assert_int_equal(target_check(target, NULL), 0);
	assert_int_equal(target_read_map(target, NULL), 0);
	assert_null(target->modules); /* those were of the other program */
	assert_int_equal(target_open_files(target, NULL, NULL), 0);
	for (size_t i = 0; i < target->snap->maps.len; i++) {
		const struct map_entry *e = &target->snap->maps.data[i];

		assert_null(strstr(e->path, "test_target"));
		if (e->perms & MAP_PERM_EXEC && e->inode)
			assert_non_null(modules_find(target->modules, e->start, &vaddr));
	}
	target_close(target);
	exec_child_end(&child);
}

/* A process that has ended but was not waited for has its number still; then it has not, whoever gets it. */
static void test_check_ended(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct target *target = NULL;
	struct err err = {0};
	siginfo_t info;

	assert_int_equal(target_open(pid, NULL, &target), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(process_has_number(&target->process));
	waitpid(pid, NULL, 0);
	assert_false(process_has_number(&target->process));
	assert_int_equal(target_check(target, &err), -ESRCH);
	assert_non_null(strstr(err.msg, "has ended"));
	assert_int_equal(target_read_map(target, &err), -ESRCH);
	assert_true(target_is_live(target)); /* as opposed to a saved one */
	target_close(target);
}

/* One process, opened by somebody else: neither needs the other afterwards. */
static void test_open_process(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct target *target = NULL;
	struct process process, copy;

	assert_int_equal(process_open(pid, NULL, &process), 0);
	assert_int_equal(process_dup(&process, NULL, &copy), 0);
	assert_int_equal(copy.pid, pid);
	assert_int_equal(copy.mm_tid, process.mm_tid);
	assert_int_equal(copy.pidfd >= 0, process.pidfd >= 0);
	assert_int_not_equal(copy.dir_fd, process.dir_fd);
	assert_int_not_equal(copy.task_fd, process.task_fd);
	assert_int_not_equal(copy.mm_fd, process.mm_fd);
	process_close(&process);
	assert_true(process_has_number(&copy));
	assert_int_equal(process_count_threads(&copy), 1);

	assert_int_equal(target_open_process(&copy, NULL, &target), 0);
	process_close(&copy);
	assert_int_equal(target->generation, generation_of(pid));
	assert_int_equal(target_check(target, NULL), 0);
	assert_int_equal(target_read_map(target, NULL), 0);
	child_end(pid);
	assert_int_equal(target_check(target, NULL), -ESRCH);

	/* Also of one that is gone: then it is known to be. */
	assert_int_equal(process_dup(&target->process, NULL, &copy), 0);
	assert_false(process_has_number(&copy));
	process_close(&copy);
	target_close(target);
}

static int stays[2]; /* tells which thread does */

/* Joining a thread does not wait for that: it still has its memory when the kernel tells that it ends. */
static void wait_for_lost_memory(pid_t tid)
{
	char path[64], first = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/statm", (int)tid);
	while (first != '0') {
		FILE *statm = fopen(path, "re");

		if (!statm)
			_exit(1);
		first = (char)fgetc(statm);
		fclose(statm);
	}
}

static void *stay(void *arg)
{
	pid_t tid = gettid();

	wait_for_lost_memory(getpid());
	if (write(stays[1], &tid, sizeof(tid)) != sizeof(tid))
		_exit(1);
	child_sleeps();
	return NULL;
}

static void leave(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, stay, NULL) != 0)
		_exit(1);
	pthread_exit(NULL);
}

/* A main thread that has ended has no memory, nor any files: those of another are taken. */
static void test_main_thread_has_ended(void **state)
{
	struct memory_job job;
	uint8_t bytes[16] = {0};
	struct target *target = NULL;
	struct err err = {0};
	uint64_t vaddr;
	pid_t pid, tid = 0;

	assert_int_equal(pipe(stays), 0);
	pid = child_start(leave);
	assert_int_equal(read(stays[0], &tid, sizeof(tid)), (ssize_t)sizeof(tid));
	if (target_open_whole(pid, NULL, &err, &target) != 0)
		fail_msg("%s", err.msg);
	assert_int_equal(target->process.pid, pid);
	assert_int_equal(target->process.mm_tid, tid);
	assert_int_equal(target_check(target, NULL), 0);
	assert_true(target->root_fd >= 0);
	assert_non_null(modules_find(target->modules, (uintptr_t)leave, &vaddr)->image);
	job = (struct memory_job){.address = (uintptr_t)leave, .len = sizeof(bytes), .dst = bytes};
	assert_int_equal(memory_copy(&target->memory, &job, 1), 0);
	assert_int_equal(job.done, sizeof(bytes));
	assert_memory_equal(bytes, (const void *)(uintptr_t)leave, sizeof(bytes));
	assert_true(mem_read_exact(&target->memory.mem, (uintptr_t)leave, bytes, sizeof(bytes)));

	assert_int_equal(target_open(tid, &err, &target), -EINVAL); /* a thread is no process */
	child_end(pid);
	job.done = 0;
	assert_int_equal(memory_copy(&target->memory, &job, 1), -ESRCH);
	assert_int_equal(job.done, 0);
	target_close(target);
	close(stays[0]);
	close(stays[1]);
}

/* The main thread ends while the target is open: another look finds who has the memory. */
static void leave_later(void)
{
	char byte;

	if (read(exec_child_starting.in[0], &byte, 1) != 1)
		_exit(1);
	leave();
}

static void test_main_thread_ends(void **state)
{
	struct target *target = NULL;
	pid_t pid, tid = 0;
	uint64_t generation;

	assert_int_equal(pipe(stays), 0);
	assert_int_equal(pipe(exec_child_starting.in), 0);
	pid = child_start(leave_later);
	assert_int_equal(target_open(pid, NULL, &target), 0);
	assert_int_equal(target->process.mm_tid, pid);
	generation = target->generation;
	assert_int_equal(write(exec_child_starting.in[1], "", 1), 1);
	assert_int_equal(read(stays[0], &tid, sizeof(tid)), (ssize_t)sizeof(tid));
	target_look(target);
	assert_int_equal(target->process.mm_tid, tid);
	assert_int_equal(target->generation, generation); /* it is the same program */
	assert_int_equal(target_check(target, NULL), 0);
	assert_int_equal(target_read_map(target, NULL), 0);
	child_end(pid);
	target_close(target);
	for (int i = 0; i < 2; i++) {
		close(stays[i]);
		close(exec_child_starting.in[i]);
	}
}

static void test_saved(void **state)
{
	struct snapshot *snap = snapshot_create(getpid(), arch_host());
	struct target *target;

	snap->replayed = true;
	target = target_open_saved(snap);
	assert_non_null(target);
	assert_false(target_is_live(target));
	assert_ptr_equal(target->snap, snap);
	assert_int_equal(target_open_files(target, NULL, NULL), 0);
	assert_non_null(target->modules);
	target_close(target);
	snapshot_destroy(snap); /* it is not the target's */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child),
		cmocka_unit_test(test_known_files),
		cmocka_unit_test(test_ended),
		cmocka_unit_test(test_zombie),
		cmocka_unit_test(test_kernel_thread),
		cmocka_unit_test(test_executes),
		cmocka_unit_test(test_check_ended),
		cmocka_unit_test(test_open_process),
		cmocka_unit_test(test_main_thread_has_ended),
		cmocka_unit_test(test_main_thread_ends),
		cmocka_unit_test(test_saved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
