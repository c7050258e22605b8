/* SPDX-License-Identifier: MIT */
/*
 * locks_shared FILE KIND ROLE: processes that share locks of a KIND (mutex, robust, pi, rwlock) in the memory of a file. `holder` makes
 * them, has one and sleeps, and `waiter` waits for it; with `first`, which makes them, and `second` each has one and waits for the other's.
 * `both` is one process that does what `holder` and `waiter` do. `healthy` and `healthy-too` take many in order, all the time. `private` is a child that waits for a lock of its parent's in memory which
 * they do not share.
 */
#include "target.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>

enum { PAGE = 65536, LOCKS = 64, WORKERS = 16 }; /* a page of any machine */

struct shared {
	atomic_int made;
	pthread_barrier_t both;
	pthread_mutex_t mutexes[2];
	pthread_rwlock_t rwlocks[2];
	pthread_mutex_t ordered[LOCKS];
	pthread_rwlock_t last;
};

static struct shared *shared;
static bool use_rwlocks;
static size_t mine, theirs;

/* Who makes them has all of the file mapped, the other only the part where they are: at another place in its mapping. */
static void map(const char *path, bool makes)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	size_t size = PAGE + sizeof(*shared);
	uint8_t *bytes;

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		target_die(path);
	bytes = mmap(NULL, makes ? size : sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, makes ? 0 : PAGE);
	if (bytes == MAP_FAILED)
		target_die("mmap");
	shared = (struct shared *)(makes ? bytes + PAGE : bytes);
	close(fd);
}

static void make_mutex(pthread_mutex_t *mutex, const char *kind)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (strcmp(kind, "robust") == 0)
		pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (strcmp(kind, "pi") == 0)
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(mutex, &attr);
}

static void make_all(const char *kind)
{
	static const char *const kinds[] = {"mutex", "robust", "pi"};
	pthread_barrierattr_t barrier;
	pthread_rwlockattr_t rwlock;

	pthread_barrierattr_init(&barrier);
	pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->both, &barrier, 2);
	pthread_rwlockattr_init(&rwlock);
	pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED);
	for (size_t i = 0; i < 2; i++) {
		pthread_rwlock_init(&shared->rwlocks[i], &rwlock);
		make_mutex(&shared->mutexes[i], kind);
	}
	pthread_rwlock_init(&shared->last, &rwlock);
	for (size_t i = 0; i < LOCKS; i++)
		make_mutex(&shared->ordered[i], kinds[i % 3]);
	atomic_store(&shared->made, 1);
}

static void lock(size_t which)
{
	if (use_rwlocks)
		pthread_rwlock_wrlock(&shared->rwlocks[which]);
	else
		pthread_mutex_lock(&shared->mutexes[which]);
}

static void hold(void)
{
	lock(0);
	target_block();
}

static void want(void)
{
	target_arrived();
	lock(0);
}

static void start_both(void)
{
	target_start("holder", hold);
	while (!atomic_load(&target_threads[0].tid))
		sched_yield();
	target_start("waiter", want);
}

static void take_both(void)
{
	lock(mine);
	target_arrived();
	pthread_barrier_wait(&shared->both);
	lock(theirs);
}

static void *work(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg * 2654435761u + (unsigned)getpid();

	for (;;) {
		size_t a = (size_t)rand_r(&seed) % 8, b = a + 1 + (size_t)rand_r(&seed) % (LOCKS - a - 1);

		pthread_mutex_lock(&shared->ordered[a]);
		pthread_mutex_lock(&shared->ordered[b]);
		if (b % 2)
			pthread_rwlock_rdlock(&shared->last);
		else
			pthread_rwlock_wrlock(&shared->last);
		pthread_rwlock_unlock(&shared->last);
		pthread_mutex_unlock(&shared->ordered[b]);
		pthread_mutex_unlock(&shared->ordered[a]);
	}
	return NULL;
}

static void start_workers(void)
{
	pthread_t thread;

	for (uintptr_t i = 1; i <= WORKERS; i++)
		pthread_create(&thread, NULL, work, (void *)i);
}

/* The lock says that it is shared, but the memory is a copy: nobody will ever open it there. */
static void leave_child_waiting(void)
{
	static pthread_mutex_t mutex;

	make_mutex(&mutex, "mutex");
	pthread_mutex_lock(&mutex);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "child");
		pthread_mutex_lock(&mutex);
	}
}

int main(int argc, char **argv)
{
	const char *role = argc == 4 ? argv[3] : "";
	const bool makes = strcmp(role, "holder") == 0 || strcmp(role, "first") == 0 || strcmp(role, "healthy") == 0 ||
			   strcmp(role, "both") == 0;

	if (argc != 4)
		return 2;
	target_init();
	map(argv[1], makes);
	use_rwlocks = strcmp(argv[2], "rwlock") == 0;
	if (makes)
		make_all(argv[2]);
	while (strcmp(role, "private") != 0 && !atomic_load(&shared->made))
		sched_yield();
	mine = strcmp(role, "second") == 0;
	theirs = !mine;
	if (strcmp(role, "holder") == 0)
		target_start("holder", hold);
	else if (strcmp(role, "waiter") == 0)
		target_start("waiter", want);
	else if (strcmp(role, "first") == 0 || strcmp(role, "second") == 0)
		target_start(role, take_both);
	else if (strcmp(role, "both") == 0)
		start_both();
	else if (strcmp(role, "private") == 0)
		leave_child_waiting();
	else
		start_workers();
	target_ready();
	target_serve(NULL);
}
