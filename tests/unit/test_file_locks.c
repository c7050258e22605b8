/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"
#include "scratch.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/file_locks.h"
#include "proc/task_stat.h"

static void test_lines(void **state)
{
	struct file_lock lock;

	assert_true(file_lock_parse("17: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF\n", &lock));
	assert_int_equal(lock.id, 17);
	assert_false(lock.waits);
	assert_int_equal(lock.lock.kind, LOCK_BY_FLOCK);
	assert_true(lock.lock.writes);
	assert_int_equal(lock.pid, 4711);
	assert_int_equal(lock.dev_major, 8);
	assert_int_equal(lock.dev_minor, 1);
	assert_int_equal(lock.inode, 1234);
	assert_int_equal(lock.lock.start, 0);
	assert_true(lock.lock.end == UINT64_MAX);
	assert_true(file_lock_parse("17: -> POSIX  ADVISORY  READ  4712 fe:1a:18446744073709551615 10 19", &lock));
	assert_true(lock.waits);
	assert_int_equal(lock.lock.kind, LOCK_BY_FCNTL);
	assert_false(lock.lock.writes);
	assert_int_equal(lock.dev_major, 0xfe);
	assert_int_equal(lock.dev_minor, 0x1a);
	assert_true(lock.inode == UINT64_MAX);
	assert_int_equal(lock.lock.start, 10);
	assert_int_equal(lock.lock.end, 19);
	assert_true(file_lock_parse("3:  -> OFDLCK ADVISORY  WRITE -1 00:2f:7 0 EOF", &lock)); /* behind another one that waits */
	assert_true(lock.waits);
	assert_int_equal(lock.lock.kind, LOCK_BY_OFD);
	assert_int_equal(lock.pid, -1);
}

/* What is no such line is none, and nothing is read behind its end. */
static void test_other_lines(void **state)
{
	static const char *const lines[] = {
		"", ":", "1", "1:", "1: ->", "1: FLOCK", "1: FLOCK ADVISORY WRITE 1 08:01:1", "1: FLOCK ADVISORY WRITE 1 08:01 0 EOF",
		"1: LEASE  ACTIVE    READ  4711 08:01:1234 0 EOF", "1: DELEG  ACTIVE    READ  4711 08:01:1234 0 EOF",
		"1: POSIX  *NOINODE* READ  4711 <none>:0 0 EOF", "x: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF",
		"1: FLOCKFLOCKFLOCKFLOCKFLOCK ADVISORY WRITE 1 08:01:1 0 EOF",
	};
	struct file_lock lock;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_false(file_lock_parse(lines[i], &lock));
}

static const struct file_lock *find(const struct file_locks *locks, const struct locked_file *file, bool waits)
{
	for (size_t i = 0; i < locks->len; i++)
		if (locks->data[i].inode == file->inode && locks->data[i].dev_major == file->dev_major && locks->data[i].dev_minor == file->dev_minor &&
		    locks->data[i].waits == waits)
			return &locks->data[i];
	return NULL;
}

static void pause_for_ever(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/* A lock that we have, and a child that has the same open file; another one that waits for it. */
static void test_real_locks(void **state)
{
	FILE *file = tmpfile();
	int fd = fileno(file);
	struct file_locks locks = {0};
	struct held_lock held = {0};
	bool refused;
	struct locked_file which;
	struct process self;
	struct mount_list mounts = {.process = &self};
	char path[64];
	pid_t sharer, waiter;

	assert_non_null(file);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	sharer = fork();
	if (sharer == 0)
		pause_for_ever();
	waiter = fork();
	if (waiter == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		sharer = open(path, O_RDWR); /* another open file */
		close(fd);
		flock((int)sharer, LOCK_EX);
		_exit(0);
	}
	assert_int_equal(process_open(getpid(), NULL, &self), 0);
	assert_true(file_locks_find_file(&mounts, getpid(), fd, &which));
	assert_int_not_equal(which.inode, 0);
	do { /* until it waits */
		locks.len = 0;
		assert_int_equal(file_locks_read(&locks), 0);
	} while (!find(&locks, &which, true));
	held.lock = find(&locks, &which, false);
	assert_non_null(held.lock);
	assert_int_equal(held.lock->pid, getpid());
	assert_int_equal(find(&locks, &which, true)->pid, waiter);
	assert_int_equal(find(&locks, &which, true)->id, held.lock->id);
	assert_int_equal(file_locks_find_holders(&held, 1, &refused), 0);
	assert_int_equal(held.holders.len, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_true(held.holders.data[i].pid == getpid() || held.holders.data[i].pid == sharer);
		assert_string_equal(held.holders.data[i].comm, "test_file_locks");
	}
	kill(sharer, SIGKILL);
	kill(waiter, SIGKILL);
	waitpid(sharer, NULL, 0);
	waitpid(waiter, NULL, 0);
	mount_list_deinit(&mounts);
	process_close(&self);
	vec_deinit(&locks);
	vec_deinit(&held.holders);
	fclose(file);
}

/* Of a file on a mount that its process does not see only the number of the inode is known, which is that of others, too. */
static void test_mounts_of_others(void **state)
{
	FILE *file = tmpfile();
	struct locked_file which = {1, 2, 3};
	struct mount_list mounts = {0};
	struct scratch scratch;
	struct process self;

	assert_non_null(file);
	scratch_init(&scratch);
	scratch_text(&scratch, "mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n");
	assert_int_equal(process_open(getpid(), NULL, &self), 0);
	close(self.mm_fd);
	self.mm_fd = scratch_open(&scratch, ".", O_PATH | O_DIRECTORY);
	mounts.process = &self;
	assert_false(file_locks_find_file(&mounts, getpid(), fileno(file), &which));
	assert_int_equal(which.inode, 0);
	mount_list_deinit(&mounts);
	process_close(&self);
	scratch_deinit(&scratch);
	fclose(file);
}

static void *pause_in_thread(void *arg)
{
	pause_for_ever();
	return arg;
}

/* Only its second thread is left. */
static void lose_main_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, pause_in_thread, NULL) == 0)
		pthread_exit(NULL);
	_exit(1);
}

static void wait_for_zombie(pid_t pid)
{
	struct task_stat stat;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	do
		assert_int_equal(task_stat_read(AT_FDCWD, path, &stat), 0);
	while (stat.state != 'Z');
}

/* Its descriptors are still those of the others, though /proc shows none. */
static void test_main_thread_that_ended(void **state)
{
	FILE *file = tmpfile();
	struct file_locks locks = {0};
	struct held_lock held = {0};
	bool refused;
	struct mount_list mounts = {0};
	struct locked_file which;
	struct process self;
	pid_t sharer;

	assert_non_null(file);
	assert_int_equal(flock(fileno(file), LOCK_EX), 0);
	sharer = fork();
	if (sharer == 0)
		lose_main_thread();
	wait_for_zombie(sharer);
	assert_int_equal(process_open(sharer, NULL, &self), 0);
	mounts.process = &self;
	assert_int_not_equal(self.mm_tid, sharer);
	assert_true(file_locks_find_file(&mounts, self.mm_tid, fileno(file), &which));
	assert_int_equal(file_locks_read(&locks), 0);
	held.lock = find(&locks, &which, false);
	assert_non_null(held.lock);
	assert_int_equal(file_locks_find_holders(&held, 1, &refused), 0);
	assert_int_equal(held.holders.len, 2);
	assert_int_equal(held.holders.data[0].pid + held.holders.data[1].pid, getpid() + sharer);
	kill(sharer, SIGKILL);
	waitpid(sharer, NULL, 0);
	mount_list_deinit(&mounts);
	process_close(&self);
	vec_deinit(&locks);
	vec_deinit(&held.holders);
	fclose(file);
}

/* What their drivers tell may not come: who asked for the lock is told, and that there may be others. Nobody else is kept from having it. */
static void test_locks_on_devices(void **state)
{
	const int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct file_locks locks = {0};
	struct held_lock held = {0};
	bool refused;
	pid_t sharer;

	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_SH), 0);
	sharer = fork();
	if (sharer == 0)
		pause_for_ever();
	assert_int_equal(file_locks_read(&locks), 0);
	for (size_t i = 0; i < locks.len; i++)
		if (locks.data[i].pid == getpid() && locks.data[i].lock.kind == LOCK_BY_FLOCK)
			held.lock = &locks.data[i];
	assert_non_null(held.lock);
	assert_int_equal(file_locks_find_holders(&held, 1, &refused), 0);
	assert_int_equal(held.holders.len, 1);
	assert_int_equal(held.holders.data[0].pid, getpid());
	assert_false(held.holders.all);
	kill(sharer, SIGKILL);
	waitpid(sharer, NULL, 0);
	vec_deinit(&locks);
	vec_deinit(&held.holders);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_other_lines),
		cmocka_unit_test(test_real_locks),
		cmocka_unit_test(test_mounts_of_others),
		cmocka_unit_test(test_main_thread_that_ended),
		cmocka_unit_test(test_locks_on_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
