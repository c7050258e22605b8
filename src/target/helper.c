/* SPDX-License-Identifier: MIT */
#include "target/helper.h"

#include <errno.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/debug.h"
#include "privilege/message.h"
#include "target/patience.h"

static int receive_reply(int socket, struct helper_reply *reply)
{
	int fd;

	if (message_receive(socket, reply, sizeof(*reply), &fd) != sizeof(*reply)) {
		if (fd >= 0)
			close(fd);
		return -EIO; /* it has died */
	}
	reply->fd = fd;
	return 0;
}

/* A child that is never heard of again must not keep pipes, BPF programs or anything else of ours alive. */
static void close_others(const struct helper_task *task, int socket)
{
	int kept[HELPER_MAX_KEEP + 1], n = 0;
	unsigned from = 0;

	kept[n++] = socket;
	for (int i = 0; i < HELPER_MAX_KEEP; i++)
		if (task->keep[i] >= 0)
			kept[n++] = task->keep[i];
	for (int i = 1; i < n; i++) /* few: sorted by inserting */
		for (int k = i; k > 0 && kept[k] < kept[k - 1]; k--) {
			int swap = kept[k];

			kept[k] = kept[k - 1];
			kept[k - 1] = swap;
		}
	for (int i = 0; i < n; i++) {
		if ((unsigned)kept[i] > from)
			syscall(SYS_close_range, from, (unsigned)kept[i] - 1, 0);
		from = (unsigned)kept[i] + 1;
	}
	syscall(SYS_close_range, from, ~0U, 0);
}

static void be_helper(const struct helper_task *task, uint8_t *window, int socket, pid_t parent)
{
	struct helper_reply reply = {.fd = -1};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	prctl(PR_SET_NAME, "stakeout-helper");
	close_others(task, socket);
	task->run(task->arg, window, &reply);
	message_send(socket, &reply, sizeof(reply), reply.fd);
	_exit(0);
}

/* Without a signal at its end, and without the C library's ceremony: it only makes system calls. */
static pid_t make_child(void)
{
	return (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
}

/*
 * A helper ends soon after its answer or its SIGKILL, but closing a file can take as long as reading it, so it is not waited
 * for. One that has not ended yet is tried again when the next one is done. True if there are such.
 */
static bool reap(pid_t child)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pid_t unreaped[64]; /* more than that stay zombies until we end */
	size_t n = sizeof(unreaped) / sizeof(unreaped[0]);
	bool any = false;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n; i++) {
		if (!unreaped[i] && child) {
			unreaped[i] = child;
			child = 0;
		}
		if (unreaped[i] && waitpid(unreaped[i], NULL, __WALL | WNOHANG) != 0)
			unreaped[i] = 0;
		any |= unreaped[i] != 0;
	}
	pthread_mutex_unlock(&lock);
	return any;
}

void helper_reap_all(void)
{
	const struct timespec moment = {.tv_nsec = 1000 * 1000};

	for (int i = 0; i < 100 && reap(0); i++)
		nanosleep(&moment, NULL);
}

static uint8_t *copy_window(const uint8_t *window, uint64_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	if (copy)
		memcpy(copy, window, len);
	return copy;
}

static int run_in_window(const struct helper_task *task, uint8_t *window, struct helper_reply *reply, uint8_t **bytes)
{
	_cleanup_close_ int ours = -1, theirs = -1;
	sigset_t all, before;
	pid_t parent = getpid(), child;
	int sockets[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return -errno;
	ours = sockets[0];
	theirs = sockets[1];
	sigfillset(&all); /* Ctrl-C is for us: the child does not outlive us anyway */
	sigprocmask(SIG_SETMASK, &all, &before);
	child = make_child();
	if (child == 0)
		be_helper(task, window, theirs, parent);
	rc = child < 0 ? -errno : 0;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (rc < 0)
		return rc;
	close(steal_fd(&theirs));
	rc = patience_wait(ours);
	if (rc == 0)
		rc = receive_reply(ours, reply);
	if (rc < 0)
		kill(child, SIGKILL);
	reap(child);
	if (rc == 0 && task->window && reply->len <= task->window) {
		*bytes = copy_window(window, reply->len);
		rc = *bytes ? 0 : -ENOMEM;
	}
	return rc < 0 ? rc : reply->rc;
}

int helper_run(const struct helper_task *task, struct helper_reply *reply, uint8_t **bytes)
{
	uint8_t *window = NULL;
	int rc;

	*reply = (struct helper_reply){.fd = -1};
	if (!patience_left())
		return -ETIMEDOUT;
	if (task->window) {
		window = mmap(NULL, task->window, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (window == MAP_FAILED)
			return -ENOMEM;
	}
	rc = run_in_window(task, window, reply, bytes);
	debug_say(rc, "a helper was asked for what may not answer; %.1f s of patience are left", (double)patience_left() / 1e9);
	if (window)
		munmap(window, task->window);
	return rc;
}
