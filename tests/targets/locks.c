/* SPDX-License-Identifier: MIT */
/*
 * locks WHAT: threads that wait for each kind of lock. `holder` has what is wanted, and sleeps; `waiter` waits for it. With ABBA,
 * relock, ring or rwlock-cycle they wait for each other, or for themselves. With `healthy` many threads take many locks in order, all the
 * time. With `pool` and `few` eight or three threads wait each at a semaphore of its own. Others are told below.
 */
#include "target.h"

#include <semaphore.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { WAIT = 0, WAIT_PRIVATE = 128 }; /* for futex(), whose header not every C library has */
enum { LOCKS = 1000, WORKERS = 64, RING = 4, POOL = 8, FEW = 3 };

static pthread_mutex_t global_mutex, others[RING];
static pthread_rwlock_t global_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t global_condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t global_barrier, all_hold;
static pthread_once_t global_once = PTHREAD_ONCE_INIT;
static sem_t global_semaphore, held;
static pthread_t holding; /* set before `held` is posted */
static pthread_mutex_t ordered[LOCKS];
static pthread_cond_t handed = PTHREAD_COND_INITIALIZER;

/* The holder: has it, says so, and sleeps. */
static void say_held_and_rest(void)
{
	sem_post(&held);
	target_block();
}

static void await_held(void)
{
	while (sem_wait(&held) < 0)
		;
	sem_post(&held);
	target_arrived();
}

static void hold_mutex(void)
{
	holding = pthread_self();
	pthread_mutex_lock(&global_mutex);
	say_held_and_rest();
}

FRAME static void want_mutex(void)
{
	await_held();
	pthread_mutex_lock(&global_mutex);
}

static void want_mutex_for_an_hour(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 3600;
	await_held();
	pthread_mutex_timedlock(&global_mutex, &until);
}

static void die_with_mutex(void)
{
	holding = pthread_self();
	pthread_mutex_lock(&global_mutex);
	sem_post(&held);
	target_arrived();
}

static void want_of_the_dead(void)
{
	await_held();
	pthread_join(holding, NULL);
	pthread_mutex_lock(&global_mutex);
}

static void hold_to_write(void)
{
	pthread_rwlock_wrlock(&global_rwlock);
	say_held_and_rest();
}

static void hold_to_read(void)
{
	pthread_rwlock_rdlock(&global_rwlock);
	say_held_and_rest();
}

static void want_to_read(void)
{
	await_held();
	pthread_rwlock_rdlock(&global_rwlock);
}

static void want_to_write(void)
{
	await_held();
	pthread_rwlock_wrlock(&global_rwlock);
}

static void want_condition(void)
{
	pthread_mutex_lock(&global_mutex);
	target_arrived();
	for (;;)
		pthread_cond_wait(&global_condition, &global_mutex);
}

static void want_semaphore(void)
{
	target_arrived();
	while (sem_wait(&global_semaphore) < 0)
		;
}

static void want_own_semaphore(void)
{
	static sem_t own[POOL];
	static size_t taken;
	sem_t *semaphore;

	pthread_mutex_lock(&others[0]);
	semaphore = &own[taken++ % POOL];
	pthread_mutex_unlock(&others[0]);
	target_arrived();
	while (sem_wait(semaphore) < 0)
		;
}

static void want_barrier(void)
{
	target_arrived();
	pthread_barrier_wait(&global_barrier);
}

static void initialize(void)
{
	say_held_and_rest();
}

static void hold_once(void)
{
	pthread_once(&global_once, initialize);
}

static void want_once(void)
{
	await_held();
	pthread_once(&global_once, initialize);
}

/* A futex that is the program's own, while the C library's function that has called it is not done. */
FRAME static void wait_by_itself(void)
{
	static uint32_t word = 1;

	for (;;) {
#if defined(__x86_64__)
		register long fourth __asm__("r10") = 0;
		long result = SYS_futex;

		__asm__ volatile("syscall" : "+a"(result) : "D"(&word), "S"((long)WAIT_PRIVATE), "d"(1L), "r"(fourth) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
		register long number __asm__("x8") = SYS_futex, first __asm__("x0") = (long)&word, second __asm__("x1") = WAIT_PRIVATE;
		register long third __asm__("x2") = 1, fourth __asm__("x3") = 0;

		__asm__ volatile("svc 0" : "+r"(first) : "r"(number), "r"(second), "r"(third), "r"(fourth) : "memory");
#endif
	}
}

FRAME static void initialize_slowly(void)
{
	target_arrived();
	wait_by_itself();
}

static void wait_inside_once(void)
{
	pthread_once(&global_once, initialize_slowly);
}

static void hold_stream(void)
{
	flockfile(stderr);
	say_held_and_rest();
}

static void want_stream(void)
{
	await_held();
	flockfile(stderr);
}

static void hold_nothing(void)
{
	holding = pthread_self();
	say_held_and_rest();
}

static void want_end(void)
{
	await_held();
	pthread_join(holding, NULL);
}

/* Each has the one of its number, and wants the next. */
static void take_two(size_t first, size_t second)
{
	pthread_mutex_lock(&others[first]);
	pthread_barrier_wait(&all_hold);
	target_arrived();
	pthread_mutex_lock(&others[second]);
}

static void ring_0(void) { take_two(0, 1); }
static void ring_1(void) { take_two(1, 2); }
static void ring_2(void) { take_two(2, 3); }
static void ring_3(void) { take_two(3, 0); }

static void relock(void)
{
	pthread_mutex_lock(&global_mutex);
	target_arrived();
	pthread_mutex_lock(&global_mutex);
}

/* A mutex in memory of the program's own, right behind its variables. */
static pthread_mutex_t *behind;

static void hold_behind(void)
{
	pthread_mutex_lock(behind);
	say_held_and_rest();
}

static void want_behind(void)
{
	await_held();
	pthread_mutex_lock(behind);
}

static void start_behind(void)
{
	extern char end; /* of the variables, by the linker */
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), place = ((uintptr_t)&end + page - 1) / page * page;

	behind = mmap((void *)place, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (behind != (void *)place) { /* once in 8,192 the heap begins there */
		if (getenv("LOCKS_AGAIN") || setenv("LOCKS_AGAIN", "", 1) < 0)
			_exit(1);
		execl("/proc/self/exe", "locks", "behind", NULL);
	}
	pthread_mutex_init(behind, NULL);
	target_start("holder", hold_behind);
	target_start("waiter", want_behind);
}

static void mutex_then_rwlock(void)
{
	pthread_mutex_lock(&global_mutex);
	pthread_barrier_wait(&all_hold);
	target_arrived();
	pthread_rwlock_rdlock(&global_rwlock);
}

static void rwlock_then_mutex(void)
{
	pthread_rwlock_wrlock(&global_rwlock);
	pthread_barrier_wait(&all_hold);
	target_arrived();
	pthread_mutex_lock(&global_mutex);
}

static void make_mutex(pthread_mutex_t *mutex, int type, int robust, int protocol)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, type);
	pthread_mutexattr_setrobust(&attr, robust);
	pthread_mutexattr_setprotocol(&attr, protocol);
	pthread_mutex_init(mutex, &attr);
}

/* Three locks at a time, then a fourth, always in the same order; now and then a try, and a condition. */
static void *work(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	for (;;) {
		size_t a = (size_t)rand_r(&seed) % 16, b = a + 1 + (size_t)rand_r(&seed) % 16, c = b + 1 + (size_t)rand_r(&seed) % (LOCKS - b - 1);

		pthread_mutex_lock(&ordered[a]);
		if (c % 3 == 0 && pthread_mutex_trylock(&ordered[b]) != 0) {
			pthread_mutex_unlock(&ordered[a]);
			continue;
		}
		if (c % 3 != 0)
			pthread_mutex_lock(&ordered[b]);
		pthread_mutex_lock(&ordered[c]);
		if (c % 64 == 0) {
			struct timespec soon;

			clock_gettime(CLOCK_REALTIME, &soon);
			soon.tv_nsec = (soon.tv_nsec + 100 * 1000) % 1000000000;
			pthread_cond_timedwait(&handed, &ordered[c], &soon);
		} else if (c % 64 == 1) {
			pthread_cond_broadcast(&handed);
			sched_yield();
		}
		pthread_mutex_unlock(&ordered[c]);
		if (c % 2) /* after all of these */
			pthread_rwlock_rdlock(&global_rwlock);
		else
			pthread_rwlock_wrlock(&global_rwlock);
		pthread_rwlock_unlock(&global_rwlock);
		pthread_mutex_unlock(&ordered[b]);
		pthread_mutex_unlock(&ordered[a]);
	}
	return NULL;
}

static void be_healthy(void)
{
	pthread_t thread;

	for (size_t i = 0; i < LOCKS; i++) /* of all kinds */
		make_mutex(&ordered[i], i % 4 == 1 ? PTHREAD_MUTEX_ERRORCHECK : 0, i % 4 == 2 ? PTHREAD_MUTEX_ROBUST : 0,
			   i % 4 == 3 ? PTHREAD_PRIO_INHERIT : 0);
	for (uintptr_t i = 1; i <= WORKERS; i++)
		pthread_create(&thread, NULL, work, (void *)i);
}

/*
 * Futexes that are no locks of the C library: a number that is a thread's, the words of a mutex that one of small numbers has. And a mutex
 * that another process may have.
 */
static void *wait_for_latch(void *arg)
{
	static uint32_t latch = 1;

	for (;;)
		syscall(SYS_futex, &latch, WAIT, 1, NULL, NULL, 0);
	return arg;
}

static void *wait_for_words(void *arg)
{
	static uint32_t words[16] = {2, 0, 1, 5, 3};

	for (;;)
		syscall(SYS_futex, words, WAIT_PRIVATE, 2, NULL, NULL, 0);
	return arg;
}

static void *take_shared_twice(void *arg)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&others[0], &attr);
	pthread_mutex_lock(&others[0]);
	pthread_mutex_lock(&others[0]);
	return arg;
}

static void wait_for_others(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, wait_for_latch, NULL);
	pthread_create(&thread, NULL, wait_for_words, NULL);
	pthread_create(&thread, NULL, take_shared_twice, NULL);
}

/* The first owner lets go when both others wait; the one that came first gets it, and the other sleeps on. */
static atomic_int heir, waiter; /* their numbers, from when on they sleep only for the mutex */

static void await_sleep_of(atomic_int *tid)
{
	char name[64], state = 0;

	while (state != 'S') {
		FILE *file;

		sched_yield();
		if (!atomic_load(tid))
			continue;
		snprintf(name, sizeof(name), "/proc/self/task/%d/stat", atomic_load(tid));
		file = fopen(name, "r");
		if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		if (file)
			fclose(file);
	}
}

static void let_go_of_it(void)
{
	pthread_mutex_lock(&global_mutex);
	sem_post(&held);
	await_sleep_of(&heir);
	await_sleep_of(&waiter);
	pthread_mutex_unlock(&global_mutex);
	target_block();
}

static void inherit_it(void)
{
	await_held();
	atomic_store(&heir, target_gettid());
	pthread_mutex_lock(&global_mutex);
	target_block();
}

static void wait_for_the_heir(void)
{
	await_sleep_of(&heir);
	target_arrived();
	atomic_store(&waiter, target_gettid());
	pthread_mutex_lock(&global_mutex);
}

#ifdef __GLIBC__
/* A reader is inside, a writer waits for that, and where writers go first the next reader waits behind it. */
static atomic_int writer;

static void make_writers_first(void)
{
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&global_rwlock, &attr);
}

static void want_to_write_first(void)
{
	await_held();
	atomic_store(&writer, target_gettid());
	pthread_rwlock_wrlock(&global_rwlock);
}

static void want_to_read_behind_it(void)
{
	await_sleep_of(&writer);
	target_arrived();
	pthread_rwlock_rdlock(&global_rwlock);
}

static void read_behind_writer(void)
{
	make_writers_first();
	target_start("holder", hold_to_read);
	target_start("writer", want_to_write_first);
	target_start("waiter", want_to_read_behind_it);
}
#else
static void read_behind_writer(void) {}
#endif

static const struct {
	const char *what;
	void (*holder)(void); /* NULL: there is none */
	void (*waiter)(void);
	int type, robust, protocol; /* of the mutex */
} pairs[] = {
	{"mutex", hold_mutex, want_mutex, PTHREAD_MUTEX_NORMAL, 0, 0},
	{"recursive", hold_mutex, want_mutex, PTHREAD_MUTEX_RECURSIVE, 0, 0},
	{"errorcheck", hold_mutex, want_mutex, PTHREAD_MUTEX_ERRORCHECK, 0, 0},
	{"adaptive", hold_mutex, want_mutex, PTHREAD_MUTEX_ADAPTIVE_NP, 0, 0},
	{"robust", hold_mutex, want_mutex, 0, PTHREAD_MUTEX_ROBUST, 0},
	{"pi", hold_mutex, want_mutex, 0, 0, PTHREAD_PRIO_INHERIT},
	{"timed", hold_mutex, want_mutex_for_an_hour, 0, 0, 0},
	{"ended", die_with_mutex, want_of_the_dead, 0, 0, 0},
	{"write", hold_to_write, want_to_write, 0, 0, 0},
	{"read", hold_to_write, want_to_read, 0, 0, 0},
	{"readers", hold_to_read, want_to_write, 0, 0, 0},
	{"condition", NULL, want_condition, 0, 0, 0},
	{"semaphore", NULL, want_semaphore, 0, 0, 0},
	{"barrier", NULL, want_barrier, 0, 0, 0},
	{"once", hold_once, want_once, 0, 0, 0},
	{"inside-once", NULL, wait_inside_once, 0, 0, 0},
	{"stream", hold_stream, want_stream, 0, 0, 0},
	{"join", hold_nothing, want_end, 0, 0, 0},
	{"relock", NULL, relock, 0, 0, 0},
	{"relock-pi", NULL, relock, 0, 0, PTHREAD_PRIO_INHERIT},
	{"rwlock-cycle", mutex_then_rwlock, rwlock_then_mutex, 0, 0, 0},
};

static void start(const char *what)
{
	static void (*const ring[RING])(void) = {ring_0, ring_1, ring_2, ring_3};
	static const char *const names[RING] = {"ring_0", "ring_1", "ring_2", "ring_3"};

	const int is_pi = strcmp(what, "ring-pi") == 0, is_ring = is_pi || strcmp(what, "ring") == 0;

	pthread_barrier_init(&all_hold, NULL, is_ring ? RING : 2);
	for (size_t i = 0; is_pi && i < RING; i++)
		make_mutex(&others[i], 0, 0, PTHREAD_PRIO_INHERIT);
	for (size_t i = 0; is_ring && i < RING; i++)
		target_start(names[i], ring[i]);
	for (size_t i = 0; i < (strcmp(what, "pool") == 0 ? POOL : strcmp(what, "few") == 0 ? FEW : 0); i++)
		target_start("pooled", want_own_semaphore);
	if (strcmp(what, "healthy") == 0)
		be_healthy();
	if (strcmp(what, "shared-futexes") == 0)
		wait_for_others();
	if (strcmp(what, "handed-on") == 0) {
		make_mutex(&global_mutex, 0, PTHREAD_MUTEX_ROBUST, 0);
		target_start("first", let_go_of_it);
		target_start("heir", inherit_it);
		target_start("waiter", wait_for_the_heir);
	}
	if (strcmp(what, "behind") == 0)
		start_behind();
	if (strcmp(what, "read-behind-writer") == 0)
		read_behind_writer();
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (strcmp(what, pairs[i].what) != 0)
			continue;
		make_mutex(&global_mutex, pairs[i].type, pairs[i].robust, pairs[i].protocol);
		if (pairs[i].holder)
			target_start("holder", pairs[i].holder);
		target_start("waiter", pairs[i].waiter);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	target_init();
	sem_init(&held, 0, 0);
	sem_init(&global_semaphore, 0, 0);
	pthread_barrier_init(&global_barrier, NULL, 2);
	start(argv[1]);
	target_ready();
	target_serve(NULL);
}
