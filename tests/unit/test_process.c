/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "privilege/remedy.h"
#include "proc/family.h"
#include "proc/process.h"
#include "proc/task.h"

static void test_open_self(void **state)
{
	struct process p;
	struct process_info info;

	assert_int_equal(process_open(getpid(), NULL, &p), 0);
	assert_int_equal(process_info(&p, &info), 0);
	assert_string_equal(info.comm, program_invocation_short_name);
	assert_int_equal(info.state, 'R');
	assert_false(info.kernel_thread);
	assert_true(info.start_time > 0);
	process_close(&p);
}

static void test_no_such_process(void **state)
{
	struct err err = {0};
	struct process p;
	pid_t pid = child_start(child_sleeps);

	child_end(pid);
	assert_int_equal(process_open(pid, &err, &p), -ESRCH);
	assert_non_null(strstr(err.msg, "there is no process"));
}

static void test_gone_process_is_not_its_successor(void **state)
{
	struct process p;
	struct process_info info;
	struct tid_list tids = {0};
	pid_t pid = child_start(child_sleeps);

	assert_int_equal(process_open(pid, NULL, &p), 0);
	child_end(pid);
	assert_true(process_info(&p, &info) < 0);
	assert_true(process_list_tids(&p, &tids) < 0);
	vec_deinit(&tids);
	process_close(&p);
}

static void *tell_tid(void *arg)
{
	int *fds = arg;
	pid_t tid = (pid_t)syscall(SYS_gettid);
	char byte;

	assert_int_equal(write(fds[1], &tid, sizeof(tid)), sizeof(tid));
	assert_int_equal(read(fds[2], &byte, 1), 1);
	return NULL;
}

static void test_thread_is_no_process(void **state)
{
	int there[2], back[2], fds[3];
	struct tid_list tids = {0};
	struct err err = {0};
	struct process p;
	pthread_t thread;
	pid_t tid;

	assert_int_equal(pipe(there) | pipe(back), 0);
	fds[1] = there[1];
	fds[2] = back[0];
	pthread_create(&thread, NULL, tell_tid, fds);
	assert_int_equal(read(there[0], &tid, sizeof(tid)), sizeof(tid));
	assert_int_equal(process_open(tid, &err, &p), -EINVAL);
	assert_non_null(strstr(err.msg, "is a thread of process"));
	assert_int_equal(p.pid, getpid());
	assert_int_equal(process_open(getpid(), NULL, &p), 0);
	assert_int_equal(process_list_tids(&p, &tids), 0);
	assert_int_equal(tids.len, 2);
	assert_true(tids.data[0] == tid || tids.data[1] == tid);
	assert_int_equal(write(back[1], "x", 1), 1);
	pthread_join(thread, NULL);
	vec_deinit(&tids);
	process_close(&p);
}

static pthread_t main_thread;

static void *outlive_main(void *arg)
{
	pthread_join(main_thread, NULL);
	child_sleeps();
	return arg;
}

static void ends_main_thread(void)
{
	pthread_t thread;

	main_thread = pthread_self();
	if (pthread_create(&thread, NULL, outlive_main, NULL) == 0)
		pthread_exit(NULL);
}

static void wait_for_zombie(const struct process *p)
{
	char got = 0;

	for (int i = 0; i < 60000 && got != 'Z'; i++) {
		assert_int_equal(task_state(p, p->pid, &got), 0);
		usleep(1000);
	}
	assert_int_equal(got, 'Z');
}

/* Its main thread may have, and then it has not; when nobody has waited for it yet, it has. */
static void test_has_ended(void **state)
{
	pid_t pid = child_start(ends_main_thread);
	struct process p;

	assert_int_equal(process_open(pid, NULL, &p), 0);
	wait_for_zombie(&p);
	assert_false(process_has_ended(&p));
	assert_int_equal(process_parent(pid), getpid());
	kill(pid, SIGKILL);
	for (int i = 0; i < 60000 && !process_has_ended(&p); i++)
		usleep(1000);
	assert_true(process_has_ended(&p));
	assert_int_equal(process_parent(pid), 0);
	child_end(pid);
	assert_true(process_has_ended(&p));
	process_close(&p);
	assert_int_equal(process_open(getpid(), NULL, &p), 0);
	assert_false(process_has_ended(&p));
	process_close(&p);
}

static void test_maps(void **state)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct arena *arena = arena_create();
	struct maps maps = {0};
	const struct map_entry *e;
	struct process p;

	assert_int_equal(process_open(getpid(), NULL, &p), 0);
	assert_int_equal(process_maps(&p, arena, NULL, &maps), 0);
	for (size_t i = 1; i < maps.len; i++)
		assert_true(maps.data[i - 1].end <= maps.data[i].start);
	e = maps_find(&maps, (uintptr_t)test_maps);
	assert_non_null(e);
	assert_string_equal(e->path, process_exe(&p, arena));
	assert_int_equal(e->perms & (MAP_PERM_READ | MAP_PERM_WRITE | MAP_PERM_EXEC), MAP_PERM_READ | MAP_PERM_EXEC);
	assert_true(e->inode > 0);
	assert_false(e->deleted);
	e = maps_find(&maps, (uintptr_t)page);
	assert_non_null(e);
	assert_true(e->perms & MAP_PERM_SHARED);
	assert_true(e->deleted); /* shared anonymous memory is "/dev/zero (deleted)" */
	e = maps_find(&maps, (uintptr_t)&p);
	assert_non_null(e);
	assert_null(maps_find(&maps, 0));
	vec_deinit(&maps);
	arena_destroy(arena);
	process_close(&p);
	munmap(page, 4096);
}

static void pause_for_ever(void)
{
	for (;;)
		pause();
}

/* By the signal that it sends; threads of others, and we ourselves, are none. */
static void test_helper(void **state)
{
	pid_t child = child_start(pause_for_ever), helper = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);

	assert_true(helper >= 0);
	if (helper == 0)
		pause_for_ever();
	assert_true(process_is_helper(helper, getpid()));
	assert_false(process_is_helper(helper, getppid()));
	assert_false(process_is_helper(child, getpid()));
	assert_false(process_is_helper(getpid(), getpid()));
	child_end(child);
	kill(helper, SIGKILL);
	assert_int_equal(waitpid(helper, NULL, __WALL), helper);
	assert_false(process_is_helper(helper, getpid()));
}

static void test_denied_names_what_helps(void **state)
{
	char help[REMEDY_SIZE];
	struct err err = {0};
	struct process p;

	assert_int_equal(process_open(getpid(), NULL, &p), 0);
	assert_int_equal(process_explain_denied(&p, EPERM, "its memory cannot be read", &err), -EPERM);
	assert_non_null(strstr(err.msg, "root"));
	assert_non_null(strstr(err.msg, "CAP_SYS_PTRACE"));
	assert_non_null(strstr(err.msg, remedy(REFUSED_PTRACE, help)));
	process_close(&p);
}

static void test_newest(void **state)
{
	const pid_t before = process_newest(), child = child_start(child_sleeps);

	assert_true(before > 0);
	assert_int_not_equal(process_newest(), before);
	child_end(child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_self),
		cmocka_unit_test(test_no_such_process),
		cmocka_unit_test(test_gone_process_is_not_its_successor),
		cmocka_unit_test(test_thread_is_no_process),
		cmocka_unit_test(test_has_ended),
		cmocka_unit_test(test_newest),
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_helper),
		cmocka_unit_test(test_denied_names_what_helps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
