/* SPDX-License-Identifier: MIT */
#include "cmd/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "privilege/caller.h"

enum { QUIET_TRIES = 100 }; /* 10 ms each, until we say whom we wait for */

/* In the child. */
static void wait_and_execute(char **command, int go, int failed)
{
	ssize_t n;
	char byte;
	int code;

	do
		n = read(go, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(126); /* the recording could not begin */
	caller_begin_rights(); /* it is found by them, too */
	execvp(command[0], command);
	code = errno;
	_exit(write(failed, &code, sizeof(code)) == sizeof(code) ? 127 : 126);
}

int child_start(struct child *child, char **command, const sigset_t *mask, struct err *err)
{
	int go[2], failed[2], code;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) < 0)
		return err_set(err, errno, "starting %s: %s", command[0], strerror(errno));
	child->go = go[1];
	if (pipe2(failed, O_CLOEXEC) < 0) {
		code = errno;
		close(go[0]);
		return err_set(err, code, "starting %s: %s", command[0], strerror(code));
	}
	child->failed = failed[0];
	signal(SIGCHLD, SIG_DFL); /* where it is ignored, nobody would know of its end */
	child->pid = fork();
	if (child->pid == 0) {
		close(go[1]);
		sigprocmask(SIG_SETMASK, mask, NULL);
		wait_and_execute(command, go[0], failed[1]);
	}
	code = errno;
	close(go[0]);
	close(failed[1]);
	if (child->pid > 0)
		return 0;
	child->pid = 0;
	return err_set(err, code, "starting %s: %s", command[0], strerror(code));
}

int child_release(struct child *child, const char *name, struct err *err)
{
	ssize_t n = send(child->go, "", 1, MSG_NOSIGNAL); /* somebody may have killed it by now */
	int code;

	close(steal_fd(&child->go));
	if (n != 1)
		return err_set(err, ECHILD, "%s ended before it was started", name);
	if (read(child->failed, &code, sizeof(code)) != sizeof(code))
		return 0;
	return err_set(err, code, "%s: %s", name, strerror(code));
}

bool child_has_ended(struct child *child)
{
	pid_t pid = child->pid > 0 && !child->ended ? waitpid(child->pid, NULL, WNOHANG) : 0;

	child->ended |= pid > 0 || (pid < 0 && errno == ECHILD);
	return child->ended;
}

void child_terminate(struct child *child)
{
	if (child->go >= 0)
		close(steal_fd(&child->go));
	if (child->failed >= 0)
		close(steal_fd(&child->failed));
	if (child->pid > 0 && !child->asked && !child_has_ended(child))
		kill(child->pid, SIGTERM);
	child->asked = true;
}

void child_wait(struct child *child)
{
	if (child->pid <= 0)
		return;
	for (int i = 0; i < QUIET_TRIES && !child_has_ended(child); i++)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	if (child->ended)
		return;
	fprintf(stderr, "stakeout: process %d was sent SIGTERM; waiting for its end\n", (int)child->pid);
	while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
		;
	child->ended = true;
}
