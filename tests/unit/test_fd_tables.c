/* SPDX-License-Identifier: MIT */
#include "capture/fd_tables.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "capture/take.h"
#include "cmocka_all.h"

enum { COMMON = 0x1000, OTHER = 0x2000 };

static struct besides besides_of(struct capture *capture, struct target *target)
{
	capture->target = target;
	assert_int_equal(process_open(getpid(), NULL, &target->process), 0);
	return (struct besides){.capture = capture, .snap = snapshot_create(getpid(), arch_host())};
}

static void end(struct besides *b)
{
	process_close(&b->capture->target->process);
	snapshot_destroy(b->snap);
}

static void test_as_observed(void **state)
{
	struct capture capture = {.unstoppable = true};
	struct target target = {0};
	struct besides b = besides_of(&capture, &target);
	struct snap_thread same = {.tid = getpid() + 1, .facts.files = COMMON}, own = {.tid = getpid() + 2, .facts.files = OTHER}, unknown = {.tid = getpid() + 3};
	struct fd_tables tables;

	assert_true(vec_push(&b.snap->threads, (struct snap_thread){.tid = getpid(), .facts.files = COMMON}));
	tables = fd_tables_of(&b);
	assert_int_equal(fd_tables_own(&tables, &b.snap->threads.data[0]), 0);
	assert_int_equal(fd_tables_own(&tables, &same), 0);
	assert_int_equal(fd_tables_own(&tables, &own), OTHER);
	assert_int_equal(fd_tables_own(&tables, &unknown), 0);
	b.snap->threads.len = 0; /* the main thread was not wanted */
	tables = fd_tables_of(&b);
	assert_int_equal(fd_tables_own(&tables, &own), 0);
	end(&b);
}

struct helper {
	bool unshares;
	atomic_int tid;
	int wake[2];
};

static void *have_table(void *arg)
{
	struct helper *h = arg;
	char byte;

	if (h->unshares && unshare(CLONE_FILES) < 0)
		return NULL;
	atomic_store(&h->tid, gettid());
	return read(h->wake[0], &byte, 1) < 0 ? NULL : arg;
}

static void test_as_compared(void **state)
{
	struct capture capture = {0};
	struct target target = {0};
	struct besides b = besides_of(&capture, &target);
	struct fd_tables tables = fd_tables_of(&b);

	for (int i = 0; i < 2; i++) {
		struct helper h = {.unshares = i == 1};
		struct snap_thread t = {0};
		pthread_t thread;

		assert_int_equal(pipe(h.wake), 0);
		assert_int_equal(pthread_create(&thread, NULL, have_table, &h), 0);
		while (!(t.tid = atomic_load(&h.tid)))
			usleep(1000);
		assert_int_equal(fd_tables_own(&tables, &t), h.unshares ? t.tid : 0);
		assert_int_equal(write(h.wake[1], "", 1), 1);
		pthread_join(thread, NULL);
		close(h.wake[0]);
		close(h.wake[1]);
	}
	end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_observed),
		cmocka_unit_test(test_as_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
