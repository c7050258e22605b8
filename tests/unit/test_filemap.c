/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/filemap.h"

enum { LEN = 5 * 4096 + 100 };

/* A file of that many bytes of 'x'. */
static int make_file(size_t len)
{
	char *bytes = malloc(len);
	int fd = memfd_create("filemap", MFD_CLOEXEC);

	assert_true(fd >= 0 && bytes);
	memset(bytes, 'x', len);
	assert_int_equal(write(fd, bytes, len), len);
	free(bytes);
	return fd;
}

static size_t count_x(const struct filemap *map)
{
	size_t n = 0;

	for (size_t i = 0; i < map->len; i++)
		n += map->data[i] == 'x';
	return n;
}

static void test_bytes(void **state)
{
	static const size_t lens[] = {1, 4095, 4096, 4097, 65536, LEN};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		int fd = make_file(lens[i]);
		struct filemap map;

		assert_int_equal(filemap_open(fd, lens[i], NULL, &map), 0);
		close(fd);
		assert_int_equal(map.len, lens[i]);
		assert_int_equal(count_x(&map), lens[i]);
		assert_int_equal(map.data[lens[i]], 0);
		assert_int_equal(strlen((const char *)map.data), lens[i]);
		assert_false(filemap_has_changed(&map));
		filemap_close(&map);
		filemap_close(&map);
	}
}

static void test_cut_short(void **state)
{
	int fd = make_file(LEN);
	struct filemap map, other;

	assert_int_equal(filemap_open(fd, LEN, NULL, &map), 0);
	assert_int_equal(filemap_open(fd, LEN, NULL, &other), 0);
	assert_int_equal(map.data[0], 'x');
	assert_int_equal(ftruncate(fd, 4096), 0);
	errno = EXDEV;
	assert_int_equal(count_x(&map), 4096);
	assert_int_equal(errno, EXDEV);
	assert_true(filemap_has_changed(&map));
	assert_false(filemap_has_changed(&other)); /* nobody has looked there */
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(count_x(&map), 0);
	assert_int_equal(count_x(&other), 0);
	assert_true(filemap_has_changed(&other));
	filemap_close(&other);
	filemap_close(&map);

	/* One that is shorter from the start. */
	assert_int_equal(filemap_open(fd, LEN, NULL, &map), 0);
	assert_false(filemap_has_changed(&map));
	assert_int_equal(count_x(&map), 0);
	assert_true(filemap_has_changed(&map));
	filemap_close(&map);
	close(fd);
}

static void test_refused(void **state)
{
	int fd = make_file(1), ends[2];
	struct filemap map;
	struct err err;

	assert_int_equal(filemap_open(fd, 0, &err, &map), -EINVAL);
	assert_int_equal(filemap_open(fd, UINT64_MAX, &err, &map), -EINVAL);
	assert_int_equal(filemap_open(fd, UINT64_C(1) << 62, &err, &map), -EFBIG);
	assert_int_equal(filemap_open(-1, 10, &err, &map), -EBADF);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(filemap_open(ends[0], 10, &err, &map), -ESPIPE);
	close(ends[0]);
	close(ends[1]);
	close(fd);
}

/* What finds no room in the list is copied. */
static void test_many(void **state)
{
	static struct filemap maps[FILEMAP_MAX];
	int fd = make_file(LEN);
	struct filemap one, cut;

	for (size_t i = 0; i < FILEMAP_MAX; i++) {
		assert_int_equal(filemap_open(fd, LEN, NULL, &maps[i]), 0);
		assert_true(maps[i].reserved > 0);
	}
	assert_int_equal(filemap_open(fd, LEN, NULL, &one), 0);
	assert_int_equal(one.reserved, 0);
	assert_int_equal(ftruncate(fd, 10), 0);
	assert_int_equal(count_x(&one), LEN);
	assert_int_equal(one.data[LEN], 0);
	assert_false(filemap_has_changed(&one));
	assert_int_equal(filemap_open(fd, LEN, NULL, &cut), 0);
	assert_true(filemap_has_changed(&cut));
	assert_int_equal(count_x(&cut), 10);
	filemap_close(&cut);
	filemap_close(&one);
	assert_int_equal(count_x(&maps[FILEMAP_MAX - 1]), 10);
	assert_true(filemap_has_changed(&maps[FILEMAP_MAX - 1]));
	assert_false(filemap_has_changed(&maps[0]));
	for (size_t i = 0; i < FILEMAP_MAX; i++)
		filemap_close(&maps[i]);
	assert_int_equal(filemap_open(fd, LEN, NULL, &one), 0);
	assert_true(one.reserved > 0);
	assert_false(filemap_has_changed(&one));
	filemap_close(&one);
	close(fd);
}

/* A program that has a mapping of its own, of a file that is cut short, ends as it would without us. */
static int status_of(void (*handler)(int), bool fault)
{
	struct rlimit no_core = {0};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int fd = make_file(LEN);
		char *mapped = mmap(NULL, LEN, PROT_READ, MAP_SHARED, fd, 0);
		struct filemap map;

		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGBUS, handler);
		if (filemap_open(fd, LEN, NULL, &map) < 0 || ftruncate(fd, 0) < 0 || map.data[LEN - 1])
			_exit(1);
		if (fault)
			_exit(mapped[0]);
		raise(SIGBUS);
		_exit(2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void end_with_3(int sig)
{
	_exit(3);
}

static void test_others_faults(void **state)
{
	int status;

	for (int fault = 0; fault < 2; fault++) {
		status = status_of(SIG_DFL, fault);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGBUS);
		status = status_of(end_with_3, fault);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 3);
	}
	status = status_of(SIG_IGN, true);
	assert_true(WIFSIGNALED(status));
	status = status_of(SIG_IGN, false);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 2);
}

/* Threads that map, read and let go, while the file has its end taken away and given back. */
static atomic_bool done;

static void *read_again_and_again(void *arg)
{
	int fd = *(int *)arg;

	while (!atomic_load(&done)) {
		struct filemap map;

		if (filemap_open(fd, LEN, NULL, &map) < 0 || count_x(&map) > LEN || map.data[LEN])
			return NULL;
		filemap_close(&map);
	}
	return &done;
}

static void test_threads(void **state)
{
	int fd = make_file(LEN);
	pthread_t threads[3];
	void *ok;

	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_again_and_again, &fd), 0);
	for (size_t i = 0; i < 5000; i++)
		assert_int_equal(ftruncate(fd, (off_t)(i % 2 ? LEN : i % 3 * 4096)), 0);
	atomic_store(&done, true);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(pthread_join(threads[i], &ok), 0);
		assert_non_null(ok);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),   cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_many),
		cmocka_unit_test(test_threads), cmocka_unit_test(test_others_faults),
	};

	return cmocka_run_group_tests_name("filemap", tests, NULL, NULL);
}
