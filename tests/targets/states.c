/* SPDX-License-Identifier: MIT */
/*
 * states WHAT: a thread, `waiter`, that waits for something that is neither a lock in memory nor a descriptor: see the table at the end.
 * With children, "ready … partner=PID" tells the first of them, which calls itself that; key=KEY that of an object of System V.
 */
/* build: -lrt */
#include "target.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

enum { HOUR = 3600, CANNOT = 77, CHILDREN = 3 };

static pid_t children[CHILDREN];
static int object = -1; /* of System V */
static int pidfd = -1;
static char *page;

static void cannot(const char *what)
{
	perror(what);
	exit(CANNOT);
}

/* Its own: several tests may run at once. */
static key_t object_key(void)
{
	return 0x57000000 + (key_t)getpid();
}

/* A process that calls itself partner, and does nothing. */
static pid_t start_child(void)
{
	const pid_t parent = getpid();
	pid_t pid = fork();

	if (pid < 0)
		target_die("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it has died before that */
		_exit(0);
	prctl(PR_SET_NAME, "partner");
	for (;;)
		pause();
}

static void sleep_relatively(void)
{
	struct timespec hour = {.tv_sec = HOUR};

	target_arrived();
	nanosleep(&hour, NULL);
}

/* Not on the stack, which is copied anyway. */
static void sleep_by_heap(void)
{
	struct timespec *hour = calloc(1, sizeof(*hour));

	hour->tv_sec = HOUR;
	target_arrived();
	clock_nanosleep(CLOCK_MONOTONIC, 0, hour, NULL);
}

static void sleep_until(clockid_t clock)
{
	struct timespec until;

	clock_gettime(clock, &until);
	until.tv_sec += HOUR;
	target_arrived();
	clock_nanosleep(clock, TIMER_ABSTIME, &until, NULL);
}

static void sleep_until_monotonic(void)
{
	sleep_until(CLOCK_MONOTONIC);
}

static void sleep_until_realtime(void)
{
	sleep_until(CLOCK_REALTIME);
}

static void sleep_until_boottime(void)
{
	sleep_until(CLOCK_BOOTTIME);
}

static void sleep_by_select(void)
{
	struct timeval hour = {.tv_sec = HOUR};

	target_arrived();
	select(0, NULL, NULL, NULL, &hour);
}

static void sleep_by_poll(void)
{
	target_arrived();
	poll(NULL, 0, HOUR * 1000);
}

/* A word that nobody changes, for an hour from now: by how long, not until when. */
static void wait_for_futex(void)
{
	static int word;
	struct timespec hour = {.tv_sec = HOUR};

	target_arrived();
	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &hour, NULL, 0);
}

static void wait_for_any_signal(void)
{
	sigset_t none;

	sigemptyset(&none);
	target_arrived();
	sigsuspend(&none);
}

static void wait_for_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	target_arrived();
	sigwaitinfo(&set, NULL);
}

static void wait_for_signal_an_hour(void)
{
	sigset_t *set = calloc(1, sizeof(*set));
	struct timespec hour = {.tv_sec = HOUR};

	sigemptyset(set);
	sigaddset(set, SIGHUP);
	target_arrived();
	sigtimedwait(set, NULL, &hour);
}

static void wait_for_child(void)
{
	int status;

	target_arrived();
	waitpid(children[0], &status, 0);
}

static void wait_for_children(void)
{
	int status;

	target_arrived();
	waitpid(-1, &status, 0);
}

/* Only the first one is in it. */
static void wait_for_group(void)
{
	int status;

	target_arrived();
	waitpid(-children[0], &status, 0);
}

static void wait_for_pidfd(void)
{
	siginfo_t info;

	target_arrived();
	waitid((idtype_t)3 /* P_PIDFD */, (id_t)pidfd, &info, WEXITED);
}

static void wait_for_semaphore(void)
{
	static struct sembuf take = {.sem_num = 1, .sem_op = -1}; /* not in the stack, which is copied anyway */

	target_arrived();
	semop(object, &take, 1);
}

static void wait_for_message(void)
{
	struct {
		long type;
		char text[64];
	} message;

	target_arrived();
	msgrcv(object, &message, sizeof(message.text), 0, 0);
}

static void wait_for_room(void)
{
	struct {
		long type;
		char text[64];
	} message = {.type = 1};

	while (msgsnd(object, &message, sizeof(message.text), IPC_NOWAIT) == 0)
		;
	target_arrived();
	msgsnd(object, &message, sizeof(message.text), 0);
}

static void wait_for_posix_message(void)
{
	char text[64];

	target_arrived();
	mq_receive((mqd_t)object, text, sizeof(text), NULL);
}

/* Until the queue is full. */
static void wait_for_posix_room(void)
{
	target_arrived();
	while (mq_send((mqd_t)object, "x", 1, 0) == 0)
		;
}

/* Nobody answers. */
static void wait_for_supervisor(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = filter};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program) < 0)
		cannot("seccomp");
	target_arrived();
	syscall(SYS_getppid);
}

static void wait_for_page(void)
{
	target_arrived();
	*(volatile char *)page = 1;
}

static void make_children(void)
{
	for (int i = 0; i < CHILDREN; i++)
		children[i] = start_child();
}

static void make_child(void)
{
	children[0] = start_child();
}

static void make_group(void)
{
	make_children();
	setpgid(children[0], children[0]);
}

static void make_pidfd(void)
{
	make_child();
	pidfd = (int)syscall(SYS_pidfd_open, children[0], 0);
	if (pidfd < 0)
		cannot("pidfd_open");
}

static void make_semaphores(void)
{
	/* That the child goes on is no news: if it comes while signals are blocked for another fork, it ends the wait later. */
	const struct sigaction quiet = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP};
	int status;

	sigaction(SIGCHLD, &quiet, NULL);
	object = semget(object_key(), 2, IPC_CREAT | 0600);
	if (object < 0 || semctl(object, 1, SETVAL, 0) < 0)
		cannot("semget");
	children[0] = fork();
	if (children[0] == 0) { /* it is the last that changes it */
		struct sembuf add = {.sem_num = 1, .sem_op = 1}, take = {.sem_num = 1, .sem_op = -1};

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "partner");
		semop(object, &add, 1);
		semop(object, &take, 1);
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	waitpid(children[0], &status, WUNTRACED);
	kill(children[0], SIGCONT);
}

static void make_queue(void)
{
	object = msgget(object_key(), IPC_CREAT | 0600);
	if (object < 0)
		cannot("msgget");
}

static void make_posix_queue(void)
{
	struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 64};

	object = (int)mq_open("/stakeout-states", O_CREAT | O_RDWR, 0600, &attributes);
	if (object < 0)
		cannot("mq_open");
	mq_unlink("/stakeout-states");
}

static void make_page(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0)
		cannot("userfaultfd");
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (uintptr_t)page;
	range.range.len = size;
	if (page == MAP_FAILED || ioctl(fd, UFFDIO_REGISTER, &range) < 0)
		cannot("UFFDIO_REGISTER");
}

/* What is made of System V stays until it is removed: by a process that waits for the end of this one. */
static void remove_object(bool queue)
{
	const pid_t watched = getpid();
	int fd = (int)syscall(SYS_pidfd_open, watched, 0);

	if (fd < 0 || fork() != 0)
		return;
	setsid();
	prctl(PR_SET_NAME, "remover");
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
	if (queue)
		msgctl(object, IPC_RMID, NULL);
	else
		semctl(object, 0, IPC_RMID);
	_exit(0);
}

static const struct {
	const char *name;
	void (*make)(void);
	void (*wait)(void);
} states[] = {
	{"sleep", NULL, sleep_relatively},
	{"sleep-heap", NULL, sleep_by_heap},
	{"sleep-monotonic", NULL, sleep_until_monotonic},
	{"sleep-realtime", NULL, sleep_until_realtime},
	{"sleep-boottime", NULL, sleep_until_boottime},
	{"select", NULL, sleep_by_select},
	{"poll", NULL, sleep_by_poll},
	{"futex", NULL, wait_for_futex},
	{"pause", NULL, target_block},
	{"sigsuspend", NULL, wait_for_any_signal},
	{"sigwait", NULL, wait_for_signals},
	{"sigtimedwait", NULL, wait_for_signal_an_hour},
	{"child", make_child, wait_for_child},
	{"children", make_children, wait_for_children},
	{"group", make_group, wait_for_group},
	{"pidfd", make_pidfd, wait_for_pidfd},
	{"semaphore", make_semaphores, wait_for_semaphore},
	{"message", make_queue, wait_for_message},
	{"room", make_queue, wait_for_room},
	{"posix-message", make_posix_queue, wait_for_posix_message},
	{"posix-room", make_posix_queue, wait_for_posix_room},
	{"seccomp", NULL, wait_for_supervisor},
	{"userfault", make_page, wait_for_page},
};

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	target_init();
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (strcmp(what, states[i].name) != 0)
			continue;
		if (states[i].make)
			states[i].make();
		if (strcmp(what, "semaphore") == 0 || strcmp(what, "message") == 0 || strcmp(what, "room") == 0)
			remove_object(strcmp(what, "semaphore") != 0);
		target_start("waiter", states[i].wait);
		while (!atomic_load(&target_threads[0].tid))
			sched_yield();
		printf("ready %d waiter=%d", (int)getpid(), (int)target_threads[0].tid);
		if (children[0])
			printf(" partner=%d", (int)children[0]);
		if (object >= 0)
			printf(" key=%d", (int)object_key());
		printf("\n");
		fflush(stdout);
		target_serve(NULL);
	}
	return 2;
}
