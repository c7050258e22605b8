/* SPDX-License-Identifier: MIT */
/*
 * waits_exact THRESHOLD_US ROUNDS [DIR]: threads that sleep, contend for a mutex, wait on a pipe, a condition variable,
 * a child process and, with DIR, a disk, each at call sites of their own, and measure each wait. Question: "go": they
 * make ROUNDS rounds; the answer is what they measured so far, as JSON: see struct waits_site. No frame pointers.
 */
/* build: -fomit-frame-pointer */
#include "waits.h"

#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/wait.h>

enum { NAP_US = 4000, SHORT_NAP_US = 50, MAX_SITES = 4, BLOCK = 4096 };

struct waiter {
	const char *name;
	void (*rounds)(struct waiter *self);
	pid_t tid;
	sem_t gate;
	struct waits_site sites[MAX_SITES];
};

static uint64_t threshold_ns;
static int nrounds;
static const char *directory;
static sem_t finished;

/* A function that makes and measures one wait of thread `self` at its site number `n`. */
#define SITE(n, function, call)                                                                                        \
	FRAME static void function(struct waiter *self)                                                                \
	{                                                                                                              \
		struct waits_mark mark = waits_begin();                                                                \
                                                                                                                       \
		NO_FRAME_POINTER();                                                                                    \
		call;                                                                                                  \
		self->sites[n].name = #function;                                                                       \
		waits_end(&self->sites[n], &mark, threshold_ns);                                                       \
	}

SITE(0, sleep_long, waits_nap(NAP_US))
SITE(1, sleep_short, waits_nap(SHORT_NAP_US))

FRAME static void sleeper(struct waiter *self)
{
	for (int i = 0; i < nrounds; i++) {
		sleep_long(self);
		sleep_short(self);
	}
}

/* The holder has the mutex while it sleeps; the locker asks for it only then, and is sure to wait. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t held, released;

SITE(0, hold_sleep, waits_nap(NAP_US))
SITE(1, hold_turn, sem_wait(&released))
SITE(0, lock_wait, pthread_mutex_lock(&lock))
SITE(1, lock_turn, sem_wait(&held))

FRAME static void hold_release(void)
{
	pthread_mutex_unlock(&lock);
}

FRAME static void holder(struct waiter *self)
{
	for (int i = 0; i < nrounds; i++) {
		pthread_mutex_lock(&lock);
		sem_post(&held);
		hold_sleep(self);
		hold_release();
		hold_turn(self);
	}
}

FRAME static void locker(struct waiter *self)
{
	for (int i = 0; i < nrounds; i++) {
		lock_turn(self);
		lock_wait(self);
		pthread_mutex_unlock(&lock);
		sem_post(&released);
	}
}

static int channel[2];

static void pipe_read(void)
{
	char byte;

	if (read(channel[0], &byte, 1) != 1)
		target_die("read");
}

FRAME static void pipe_send(void)
{
	if (write(channel[1], "x", 1) != 1)
		target_die("write");
}

SITE(0, pipe_wait, pipe_read())
SITE(0, pipe_pause, waits_nap(NAP_US))

FRAME static void pipe_reader(struct waiter *self)
{
	for (int i = 0; i < nrounds; i++)
		pipe_wait(self);
}

FRAME static void pipe_writer(struct waiter *self)
{
	for (int i = 0; i < nrounds; i++) {
		pipe_pause(self);
		pipe_send();
	}
}

static pthread_mutex_t cond_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int tickets;

static void cond_take(void)
{
	pthread_mutex_lock(&cond_lock);
	while (!tickets)
		pthread_cond_wait(&cond, &cond_lock);
	tickets--;
	pthread_mutex_unlock(&cond_lock);
}

/* Woken when the mutex is free: else the waiter would go to sleep once more, for that. */
FRAME static void cond_give(void)
{
	pthread_mutex_lock(&cond_lock);
	tickets++;
	pthread_mutex_unlock(&cond_lock);
	pthread_cond_signal(&cond);
}

SITE(0, cond_wait, cond_take())
SITE(0, cond_pause, waits_nap(NAP_US))

FRAME static void cond_waiter(struct waiter *self)
{
	for (int i = 0; i < nrounds; i++)
		cond_wait(self);
}

FRAME static void cond_signaller(struct waiter *self)
{
	for (int i = 0; i < nrounds; i++) {
		cond_pause(self);
		cond_give();
	}
}

/*
 * The parent of a child that shares its memory is in state D until the child has gone. The child has no stack of its
 * own and may not touch its parent's: it sleeps and ends within the assembly. Not clone() of the C library, which has
 * no unwind information where it waits.
 */
static pid_t child_pid;

#if defined(__x86_64__)
static long clone_that_sleeps(long flags, const struct timespec *nap)
{
	register long a10 __asm__("r10") = 0;
	register long a8 __asm__("r8") = 0;
	register const struct timespec *kept __asm__("r9") = nap;
	long rc;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "mov %[sleep], %%eax\n\t"
			 "mov $1, %%edi\n\t"
			 "xor %%esi, %%esi\n\t"
			 "mov %%r9, %%rdx\n\t"
			 "xor %%r10d, %%r10d\n\t"
			 "syscall\n\t"
			 "mov %[exit], %%eax\n\t"
			 "xor %%edi, %%edi\n\t"
			 "syscall\n"
			 "1:"
			 : "=a"(rc), "+r"(a10)
			 : "a"((long)SYS_clone), "D"(flags), "S"(0L), "d"(0L), "r"(a8),
			   "r"(kept), [sleep] "i"(SYS_clock_nanosleep), [exit] "i"(SYS_exit_group)
			 : "rcx", "r11", "memory");
	return rc;
}
#elif defined(__aarch64__)
static long clone_that_sleeps(long flags, const struct timespec *nap)
{
	register long x0 __asm__("x0") = flags;
	register long x1 __asm__("x1") = 0;
	register long x2 __asm__("x2") = 0;
	register long x3 __asm__("x3") = 0;
	register long x4 __asm__("x4") = 0;
	register long x8 __asm__("x8") = SYS_clone;
	register const struct timespec *kept __asm__("x9") = nap;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x8, %[sleep]\n\t"
			 "mov x0, #1\n\t"
			 "mov x1, #0\n\t"
			 "mov x2, x9\n\t"
			 "mov x3, #0\n\t"
			 "svc #0\n\t"
			 "mov x8, %[exit]\n\t"
			 "mov x0, #0\n\t"
			 "svc #0\n"
			 "1:"
			 : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3), "+r"(x8)
			 : "r"(x4), "r"(kept), [sleep] "i"(SYS_clock_nanosleep), [exit] "i"(SYS_exit_group)
			 : "memory", "cc");
	return x0;
}
#endif

static void child_run(void)
{
	const struct timespec nap = {.tv_nsec = NAP_US * 1000};

	child_pid = (pid_t)clone_that_sleeps(CLONE_VM | CLONE_VFORK | SIGCHLD, &nap);
	if (child_pid < 0)
		target_die("clone");
}

static void child_reap(void)
{
	if (waitpid(child_pid, NULL, 0) != child_pid)
		target_die("waitpid");
}

SITE(0, vfork_wait, child_run())
SITE(1, vfork_reap, child_reap())

FRAME static void forker(struct waiter *self)
{
	for (int i = 0; i < nrounds; i++) {
		vfork_wait(self);
		vfork_reap(self);
	}
}

static int file_direct = -1, file_cached = -1;
static char block[BLOCK] __attribute__((aligned(BLOCK)));

static void write_block(int fd)
{
	if (fd < 0 || pwrite(fd, block, BLOCK, 0) != BLOCK)
		target_die("pwrite");
}

SITE(0, disk_write, write_block(file_direct))
SITE(1, disk_sync, fsync(file_cached))

FRAME static void disk_writer(struct waiter *self)
{
	for (int i = 0; directory && i < nrounds; i++) {
		disk_write(self);
		write_block(file_cached);
		disk_sync(self);
	}
}

/* A file system without O_DIRECT waits for the disk all the same. */
static int open_file(const char *name, int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC | flags, 0600);
	if (fd < 0)
		fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC | (flags & ~O_DIRECT), 0600);
	if (fd < 0)
		target_die(path);
	unlink(path);
	return fd;
}

static struct waiter waiters[] = {
	{.name = "sleeper", .rounds = sleeper},
	{.name = "holder", .rounds = holder},
	{.name = "locker", .rounds = locker},
	{.name = "pipe_reader", .rounds = pipe_reader},
	{.name = "pipe_writer", .rounds = pipe_writer},
	{.name = "cond_waiter", .rounds = cond_waiter},
	{.name = "cond_signaller", .rounds = cond_signaller},
	{.name = "forker", .rounds = forker},
	{.name = "disk_writer", .rounds = disk_writer},
};

enum { WAITERS = sizeof(waiters) / sizeof(waiters[0]) };

FRAME static void waiter_run(void)
{
	struct waiter *self = NULL;

	for (int i = 0; i < WAITERS; i++)
		if (!strcmp(waiters[i].name, target_self->name))
			self = &waiters[i];
	self->tid = target_gettid();
	target_arrived();
	for (;;) {
		sem_wait(&self->gate);
		self->rounds(self);
		sem_post(&finished);
	}
}

static void print_site(const struct waits_site *s, int first)
{
	printf("%s\"%s\": {\"calls\": %llu, \"switches\": %llu, \"again\": %llu, \"preempted\": %llu, ", first ? "" : ", ",
	       s->name, (unsigned long long)s->calls, (unsigned long long)s->switches, (unsigned long long)s->again,
	       (unsigned long long)s->preempted);
	printf("\"count\": %llu, \"near\": %llu, ", (unsigned long long)s->count, (unsigned long long)s->near);
	printf("\"total_ns\": %llu, \"waited_ns\": %llu, \"max_ns\": %llu, \"all_ns\": %llu, \"off_ns\": %llu}",
	       (unsigned long long)s->total_ns, (unsigned long long)s->waited_ns, (unsigned long long)s->max_ns,
	       (unsigned long long)s->all_ns, (unsigned long long)s->off_ns);
}

static void go(const char *question)
{
	for (int i = 0; i < WAITERS; i++)
		sem_post(&waiters[i].gate);
	for (int i = 0; i < WAITERS; i++)
		sem_wait(&finished);
	printf("{\"pid\": %d, \"threshold_ns\": %llu, \"threads\": [", (int)getpid(), (unsigned long long)threshold_ns);
	for (int i = 0; i < WAITERS; i++) {
		printf("%s{\"name\": \"%s\", \"tid\": %d, \"sites\": {", i ? ", " : "", waiters[i].name,
		       (int)waiters[i].tid);
		for (int n = 0; n < MAX_SITES && waiters[i].sites[n].name; n++)
			print_site(&waiters[i].sites[n], n == 0);
		printf("}}");
	}
	printf("]}\n");
}

int main(int argc, char **argv)
{
	target_init();
	threshold_ns = argc > 1 ? strtoull(argv[1], NULL, 10) * 1000 : 1000000;
	nrounds = argc > 2 ? atoi(argv[2]) : 50;
	directory = argc > 3 ? argv[3] : NULL;
	if (directory) {
		file_direct = open_file("direct", O_DIRECT | O_DSYNC);
		file_cached = open_file("cached", 0);
		write_block(file_direct); /* so that the rounds do not extend the file */
	}
	for (int i = 0; i < WAITERS; i++)
		sem_init(&waiters[i].gate, 0, 0);
	sem_init(&finished, 0, 0);
	sem_init(&held, 0, 0);
	sem_init(&released, 0, 0);
	if (pipe2(channel, O_CLOEXEC))
		target_die("pipe2");
	for (int i = 0; i < WAITERS; i++)
		target_start(waiters[i].name, waiter_run);
	target_ready();
	target_serve(go);
}
