/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>

#include "offcpu/sample/watch_list.h"

struct fixture {
	struct waits *waits;
	struct sleeping *sleeping;
	struct looker *looker;
	struct watch_list *list;
};

static void start(struct fixture *f, struct watch_list_options options)
{
	const struct waits_options waits = {.max_rows = 100};
	const struct looker_options looker = {.filter = {.sleeping = true, .max_ns = UINT64_MAX}};

	f->waits = waits_create(NULL, &waits);
	f->sleeping = sleeping_create(true, NULL);
	f->looker = looker_create(&looker, f->waits, f->sleeping);
	f->list = watch_list_create(f->looker, &options);
	assert_non_null(f->waits);
	assert_non_null(f->sleeping);
	assert_non_null(f->looker);
	assert_non_null(f->list);
}

static void finish(struct fixture *f)
{
	watch_list_destroy(f->list);
	looker_destroy(f->looker);
	sleeping_destroy(f->sleeping);
	waits_destroy(f->waits);
}

/* At two looks and the end, all that sleep: how many threads have a wait. */
static size_t sleepers(struct fixture *f)
{
	watch_list_look(f->list);
	watch_list_look(f->list);
	watch_list_end(f->list);
	return waits_nthreads(f->waits);
}

static void has_child(void)
{
	if (fork() == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	child_sleeps();
}

static void test_children(void **state)
{
	pid_t pid = child_start(has_child);
	struct fixture f;

	for (int children = 0; children < 2; children++) {
		start(&f, (struct watch_list_options){.children = children});
		assert_int_equal(watch_list_add(f.list, pid, NULL), 0);
		assert_int_equal(watch_list_add(f.list, pid, NULL), 0); /* it is there already */
		for (int i = 0; i < 60000 && sleepers(&f) < 1u + (unsigned)children; i++)
			usleep(1000);
		assert_int_equal(waits_nthreads(f.waits), 1 + children);
		finish(&f);
	}
	child_end(pid);
}

static void test_ended(void **state)
{
	pid_t pid = child_start(child_sleeps), gone = child_start(child_sleeps);
	struct err err = {0};
	struct fixture f;

	start(&f, (struct watch_list_options){0});
	assert_int_equal(watch_list_add(f.list, gone, NULL), 0);
	assert_int_equal(watch_list_add(f.list, pid, NULL), 0);
	child_end(gone);
	assert_int_equal(watch_list_add(f.list, gone, NULL), 0); /* nobody has looked yet */
	watch_list_look(f.list);
	assert_int_equal(watch_list_add(f.list, gone, &err), -ESRCH);
	assert_int_equal(watch_list_unreadable(f.list), 0);
	child_end(pid);
	finish(&f);
}

/* Nobody has waited for it: it is there, but it has ended. */
static void test_not_waited_for(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct fixture f;

	start(&f, (struct watch_list_options){0});
	assert_int_equal(watch_list_add(f.list, pid, NULL), 0);
	watch_list_look(f.list);
	assert_false(watch_list_is_empty(f.list));
	kill(pid, SIGKILL);
	for (int i = 0; i < 60000 && !watch_list_is_empty(f.list); i++) {
		watch_list_look(f.list);
		usleep(1000);
	}
	assert_true(watch_list_is_empty(f.list));
	child_end(pid);
	finish(&f);
}

/* How many processes and threads were ever started on this machine. */
static uint64_t started(void)
{
	unsigned long long n = 0;
	char line[4096];
	FILE *f = fopen("/proc/stat", "re");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && sscanf(line, "processes %llu", &n) != 1)
		;
	fclose(f);
	assert_true(n > 0);
	return n;
}

/* As many as descriptors are left for: not one, besides what the scan itself needs. */
static void test_unreadable(void **state)
{
	const struct watch_list_options all = {.all_processes = true};
	struct rlimit before, few;
	struct fixture f;
	uint64_t n, before_all;
	int fd;

	start(&f, all);
	before_all = started();
	fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = (rlim_t)fd + 2;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	watch_list_scan(f.list);
	n = watch_list_unreadable(f.list);
	for (int i = 0; i < 10; i++)
		watch_list_scan(f.list);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(n > 0);
	assert_in_range(watch_list_unreadable(f.list), n, n + started() - before_all); /* each once, and who has come */
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children),
		cmocka_unit_test(test_ended),
		cmocka_unit_test(test_not_waited_for),
		cmocka_unit_test(test_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
