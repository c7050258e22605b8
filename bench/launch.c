/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * launch SECONDS INPUT OUTPUT COMMAND…: runs a command and prints its wall time in ns, processor time in µs, peak resident
 * memory in KiB, and exit status (128 + signal; -1 when it was ended after SECONDS). Time and memory are also those of
 * processes that it has started and not waited for.
 */

static pid_t child;
static volatile sig_atomic_t late;

static void end_child(int sig)
{
	late = 1;
	kill(child, SIGKILL);
}

static long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void become(const char *input, const char *output, char **argv)
{
	int in = open(input, O_RDONLY), out = open(output, O_WRONLY), none = open("/dev/null", O_WRONLY);

	if (in < 0 || out < 0 || none < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(none, 2) < 0)
		_exit(126);
	execvp(argv[0], argv);
	_exit(127);
}

static long long micros(struct timeval tv)
{
	return tv.tv_sec * 1000000LL + tv.tv_usec;
}

int main(int argc, char **argv)
{
	struct rusage usage;
	long long start, wall;
	int status;

	if (argc < 5 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return 2;
	start = now();
	child = fork();
	if (child == 0)
		become(argv[2], argv[3], argv + 4);
	signal(SIGALRM, end_child);
	alarm((unsigned)atoi(argv[1]));
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return 1;
	wall = now() - start;
	while (wait(NULL) > 0)
		;
	getrusage(RUSAGE_CHILDREN, &usage);
	printf("%lld %lld %ld %d\n", wall, micros(usage.ru_utime) + micros(usage.ru_stime), usage.ru_maxrss,
	       late                  ? -1
	       : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				     : WEXITSTATUS(status));
	return 0;
}
