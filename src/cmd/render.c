/* SPDX-License-Identifier: MIT */
#include "cmd/render.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "privilege/caller.h"

static const char program[] = "dot";

bool render_is_wanted(const char *path)
{
	const size_t len = path ? strlen(path) : 0;

	return len > 4 && strcmp(path + len - 4, ".svg") == 0;
}

int render_check(struct err *err)
{
	const char *places = getenv("PATH");
	char path[4096];

	for (size_t len; places && *places; places += len + (places[len] == ':')) {
		len = strcspn(places, ":");
		if (snprintf(path, sizeof(path), "%.*s/%s", (int)len, places, program) < (int)sizeof(path) && access(path, X_OK) == 0)
			return 0;
	}
	return err_set(err, ENOENT, "a picture is made by the program dot, which is not in PATH: install the package graphviz, or use --dot");
}

/* In the child. */
static void execute(int from, int to)
{
	char *const arguments[] = {(char *)program, "-Tsvg", NULL};

	caller_begin_rights();
	if (dup2(from, STDIN_FILENO) < 0 || dup2(to, STDOUT_FILENO) < 0)
		_exit(126);
	execvp(program, arguments);
	_exit(127);
}

int render_svg(int from, int to, struct err *err)
{
	int status = 0;
	pid_t pid;

	signal(SIGCHLD, SIG_DFL); /* where it is ignored, nobody would know how it ended */
	pid = fork();
	if (pid == 0)
		execute(from, to);
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(err, errno, "%s: %s", program, strerror(errno));
	if (pid < 0)
		return err_set(err, errno, "starting %s: %s", program, strerror(errno));
	if (!WIFEXITED(status))
		return err_set(err, EIO, "%s was ended by signal %d", program, WTERMSIG(status));
	return WEXITSTATUS(status) ? err_set(err, EIO, "%s has failed (exit status %d)", program, WEXITSTATUS(status)) : 0;
}
