/* SPDX-License-Identifier: MIT */
#include "child.h"
#include "far_disk.h"
#include "fake_probe.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

#include "offcpu/feed/process_reader.h"

struct fixture {
	struct offcpu_probe probe;
	struct tables *tables;
	struct process_reader *reader;
};

static int start(void **state)
{
	static struct fixture f;

	fake_probe_init(&f.probe);
	f.tables = tables_create(&f.probe);
	f.reader = f.tables ? process_reader_create(f.tables) : NULL;
	*state = &f;
	return f.reader ? 0 : -1;
}

static int finish(void **state)
{
	struct fixture *f = *state;

	process_reader_destroy(f->reader);
	tables_destroy(f->tables);
	fake_probe_deinit(&f->probe);
	return 0;
}

/* A file with code that this process does not have. */
static void maps_another_file(void)
{
	int fd = open("/bin/true", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		_exit(1);
	raise(SIGSTOP); /* tells that it is there */
	child_sleeps();
}

static pid_t start_with_another_file(void)
{
	pid_t pid = child_start(maps_another_file);
	int status;

	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

/* The probe has the maps of who was told last. */
static void wait_for(struct fixture *f, pid_t pid)
{
	while (__atomic_load_n(&f->probe.tgid, __ATOMIC_ACQUIRE) != pid)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Who has only files that are known does not wait for those that have others, and these wait for no file twice. */
static void test_known_files_first(void **state)
{
	struct fixture *f = *state;
	pid_t others[] = {start_with_another_file(), start_with_another_file()}, known = child_start(child_sleeps);
	uint64_t made;

	assert_int_equal(process_reader_read(f->reader, getpid(), NULL), 0);
	made = tables_made(f->tables);
	assert_int_equal(process_reader_start(f->reader, NULL), 0);
	alarm(60); /* ends the test should anybody wait for ever */
	far_disk_init();
	process_reader_ask(f->reader, others[0], REQUEST_READ | REQUEST_ASKED);
	sem_wait(&far_disk.asked);
	process_reader_ask(f->reader, others[1], REQUEST_READ);
	process_reader_ask(f->reader, known, REQUEST_READ);
	wait_for(f, known);
	sem_post(&far_disk.answered);
	wait_for(f, others[1]);
	alarm(0);
	process_reader_end(f->reader);
	assert_int_equal(tables_made(f->tables), made + 1);
	assert_int_equal(process_reader_counts(f->reader).lost, 0);
	assert_int_equal(process_reader_counts(f->reader).gone, 0);
	for (int i = 0; i < 2; i++)
		child_end(others[i]);
	child_end(known);
}

/* A process that had ended before it could be read counts if a stack needed it. */
static void test_gone(void **state)
{
	struct fixture *f = *state;
	pid_t gone = child_start(child_sleeps), known = child_start(child_sleeps);

	child_end(gone);
	assert_int_equal(process_reader_read(f->reader, getpid(), NULL), 0);
	process_reader_ask(f->reader, gone, REQUEST_READ);
	process_reader_ask(f->reader, known, REQUEST_READ);
	assert_int_equal(process_reader_start(f->reader, NULL), 0);
	wait_for(f, known);
	assert_int_equal(process_reader_counts(f->reader).gone, 0);
	process_reader_ask(f->reader, gone, REQUEST_READ | REQUEST_ASKED);
	process_reader_ask(f->reader, getpid(), REQUEST_READ | REQUEST_ASKED);
	wait_for(f, getpid());
	assert_int_equal(process_reader_counts(f->reader).gone, 1);
	process_reader_end(f->reader);
	assert_null(process_reader_denied(f->reader, known));
	child_end(known);
}

/* Of all processes that could not be read those count of which somebody wanted to know why. */
static void test_denied(void **state)
{
	struct fixture *f = *state;
	struct err err = {0};

	f->probe.crowded = true;
	assert_int_equal(process_reader_read(f->reader, getpid(), &err), -ENOSPC);
	assert_int_equal(process_reader_counts(f->reader).denied, 0);
	for (int i = 0; i < 2; i++)
		assert_string_equal(process_reader_denied(f->reader, getpid()), err.msg);
	assert_int_equal(process_reader_counts(f->reader).denied, 1);
	f->probe.crowded = false;
	assert_int_equal(process_reader_read(f->reader, getpid(), &err), 0);
	assert_null(process_reader_denied(f->reader, getpid()));
}

/* Nobody waits for requests at the end. */
static void test_ended_early(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(process_reader_start(f->reader, NULL), 0);
	process_reader_end(f->reader);
	process_reader_ask(f->reader, getpid(), REQUEST_READ);
	process_reader_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_known_files_first, start, finish),
		cmocka_unit_test_setup_teardown(test_gone, start, finish),
		cmocka_unit_test_setup_teardown(test_denied, start, finish),
		cmocka_unit_test_setup_teardown(test_ended_early, start, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
