/* SPDX-License-Identifier: MIT */
/*
 * file_locks DIR HOW ROLE [BESIDE]: a process that has locks on files of a folder, by flock, fcntl or ofd (bytes 10 to 19). `holder` has
 * the one on `a` and sleeps; `parent` has a child besides that has the same open file; `waiter` wants it. `first` has a and wants b when it
 * is told to, `second` has b and wants a; BESIDE is what another thread does: `mutex`, wait for the first thread, or `idle`, nothing. `reader`
 * and `writer`, which it starts, both wait to read what the other is to write; `twice` wants what it has itself.
 */
#include "target.h"

#include <fcntl.h>
#include <sys/file.h>

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

/* Each has only the ends that it uses. */
static void read_from_each_other(void)
{
	int there[2], back[2];
	pid_t pid;
	char c;

	if (pipe(there) < 0 || pipe(back) < 0)
		target_die("pipe");
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(there[1]);
		close(back[0]);
		(void)!read(there[0], &c, 1);
		_exit(0);
	}
	close(there[0]);
	close(back[1]);
	say_ready("child", pid);
	(void)!read(back[0], &c, 1);
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
		read_from_each_other();
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
