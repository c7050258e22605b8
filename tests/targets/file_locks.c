/* SPDX-License-Identifier: MIT */
/*
 * file_locks DIR HOW ROLE [BESIDE]: a process that has locks on files of a folder, by flock, fcntl or ofd (bytes 10 to 19). `holder` has
 * the one on `a` and sleeps; `parent` has a child besides that has the same open file; `waiter` wants it. `first` has a and wants b when it
 * is told to, `second` has b and wants a; BESIDE is what another thread does: `mutex`, wait for the first thread, or `idle`, nothing. `twice` wants
 * what it has itself. `reader` and its child both wait to read what the other is to write, by a pipe or a socket, or by poll;
 * with `third` besides another process could write to both, until a line comes.
 */
#include "target.h"

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/socket.h>

enum { START = 10, LENGTH = 10 };

static const char *how;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int open_file(const char *dir, const char *name)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		target_die(path);
	return fd;
}

static void lock(int fd)
{
	struct flock wish = {.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_start = START - 4, .l_len = LENGTH};
	int rc;

	lseek(fd, 4, SEEK_SET); /* where the lock begins follows from that */

	do
		rc = strcmp(how, "flock") == 0 ? flock(fd, LOCK_EX) : fcntl(fd, strcmp(how, "ofd") == 0 ? F_OFD_SETLKW : F_SETLKW, &wish);
	while (rc < 0 && errno == EINTR);
	if (rc < 0)
		target_die("lock");
}

static void *want_mutex(void *arg)
{
	pthread_mutex_lock(&mutex);
	return arg;
}

static void *do_nothing(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void say_ready(const char *name, pid_t pid)
{
	printf("ready %d main=%d", (int)getpid(), (int)getpid());
	if (pid)
		printf(" %s=%d", name, (int)pid);
	printf("\n");
	fflush(stdout);
}

static void rest(void)
{
	for (;;)
		pause();
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rest();
	}
	return pid;
}

static void take_both(const char *dir, const char *mine, const char *theirs, const char *beside)
{
	int other = open_file(dir, theirs);
	pthread_t thread;
	char c;

	lock(open_file(dir, mine));
	pthread_mutex_lock(&mutex);
	if (*beside)
		pthread_create(&thread, NULL, strcmp(beside, "mutex") == 0 ? want_mutex : do_nothing, NULL);
	say_ready("", 0);
	if (read(STDIN_FILENO, &c, 1) != 1)
		target_die("read");
	lock(other);
}

static void wait_to_read(int fd)
{
	struct pollfd set = {.fd = fd, .events = POLLIN};
	char c;

	if (strcmp(how, "poll") == 0)
		poll(&set, 1, -1);
	else
		(void)!read(fd, &c, 1);
}

static void start_third(void)
{
	char c;

	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)!read(STDIN_FILENO, &c, 1);
	_exit(0);
}

/* Each has only the ends that it uses. */
static void read_from_each_other(bool with_third)
{
	int ends[2][2]; /* where each reads, and writes */
	pid_t pid;

	if (strcmp(how, "pipe") == 0) {
		if (pipe(ends[0]) < 0 || pipe(ends[1]) < 0)
			target_die("pipe");
		pid = ends[0][1];
		ends[0][1] = ends[1][1];
		ends[1][1] = (int)pid;
	} else {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends[0]) < 0)
			target_die("socketpair");
		ends[1][0] = ends[0][1];
		ends[0][1] = dup(ends[0][0]);
		ends[1][1] = dup(ends[1][0]);
	}
	if (with_third)
		start_third();
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0][0]);
		close(ends[0][1]);
		wait_to_read(ends[1][0]);
		_exit(0);
	}
	close(ends[1][0]);
	close(ends[1][1]);
	say_ready("child", pid);
	wait_to_read(ends[0][0]);
}

int main(int argc, char **argv)
{
	const char *role = argc > 3 ? argv[3] : "", *beside = argc > 4 ? argv[4] : "";

	if (argc < 4)
		return 2;
	target_init();
	how = argv[2];
	if (strcmp(role, "first") == 0)
		take_both(argv[1], "a", "b", beside);
	else if (strcmp(role, "second") == 0)
		take_both(argv[1], "b", "a", beside);
	if (strcmp(role, "reader") == 0)
		read_from_each_other(strcmp(beside, "third") == 0);
	if (strcmp(role, "waiter") == 0)
		say_ready("", 0);
	lock(open_file(argv[1], "a"));
	if (strcmp(role, "twice") == 0) {
		say_ready("", 0);
		lock(open_file(argv[1], "a"));
	}
	say_ready("child", strcmp(role, "parent") == 0 ? start_child() : 0);
	rest();
}
