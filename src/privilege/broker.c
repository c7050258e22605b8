/* SPDX-License-Identifier: MIT */
#include "privilege/broker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/debug.h"
#include "privilege/message.h"
#include "privilege/sandbox.h"

/* Of this process if it is a parser: there is one broker for all of it. */
static int broker_socket = -1;
static pthread_mutex_t broker_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool something_timed_out;

bool broker_is_there(void)
{
	return broker_socket >= 0;
}

bool broker_has_complained(void)
{
	return atomic_load(&something_timed_out);
}

bool errand_init(struct errand *errand, enum errand_kind kind, int a, int b, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	errand->kind = kind;
	errand->number[0] = a;
	errand->number[1] = b;
	errand->len = (uint32_t)len;
	if (len >= sizeof(errand->data))
		return false;
	memcpy(errand->data, text ? text : "", len + 1);
	return true;
}

void errand_answer(struct errand_reply *reply, const char *text)
{
	size_t len = strnlen(text, sizeof(reply->data) - 1);

	memcpy(reply->data, text, len);
	reply->data[len] = '\0';
	reply->len = (uint32_t)len;
}

/* The parser's side */

int broker_ask(const struct errand *errand, struct errand_reply *reply)
{
	const size_t head = offsetof(struct errand_reply, data);
	size_t got = 0;
	int fd = -1;

	pthread_mutex_lock(&broker_lock);
	if (message_send(broker_socket, errand, offsetof(struct errand, data) + errand->len + 1, -1))
		got = message_receive(broker_socket, reply, sizeof(*reply), &fd);
	pthread_mutex_unlock(&broker_lock);
	if (got <= head || reply->len != got - head - 1) {
		*reply = (struct errand_reply){.rc = -EPIPE, .fd = -1};
		return -EPIPE;
	}
	reply->fd = fd;
	if (reply->rc == -ETIMEDOUT || reply->number == ETIMEDOUT)
		atomic_store(&something_timed_out, true);
	if (reply->rc < 0 && fd >= 0)
		close(steal_fd(&reply->fd));
	return reply->rc;
}

/* Files to parse, and 0, 1 and 2. */
static bool may_keep(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	struct statfs fs;
	struct stat st;

	if (fd <= STDERR_FILENO)
		return true;
	if (flags < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC)
		return false;
	return (flags & O_ACCMODE) == O_RDONLY || ((flags & O_ACCMODE) == O_RDWR && fs.f_type == TMPFS_MAGIC); /* memfd */
}

/*
 * Directories and memory of processes, sockets, BPF programs, the user's files: the parser has none of them. Their numbers
 * stay taken, as the code that owns them will close them, and names roots by them; what they lead to is nothing.
 */
static int let_go_of_files(int socket, int kept)
{
	_cleanup_close_ int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	_cleanup_closedir_ DIR *list = opendir("/proc/self/fd");
	struct dirent *entry;

	if (nothing < 0 || !list)
		return -errno;
	while ((entry = readdir(list))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || fd == socket || fd == kept || fd == nothing || fd == dirfd(list) || may_keep(fd))
			continue;
		if (dup3(nothing, fd, O_CLOEXEC) < 0)
			return -errno;
	}
	return 0;
}

static void give_up_rights(const struct parser_job *job, int socket)
{
	struct err err = {0};
	int rc = let_go_of_files(socket, job->keep_fd);

	if (rc < 0)
		err_set(&err, -rc, "closing files: %s", strerror(-rc));
	if (sandbox_enter(rc < 0 ? NULL : &err) < 0)
		rc = -EPERM;
	debug_say(rc, "the parser has given up its rights%s%s", err.code ? "; not all: " : "", err.msg);
	if (rc < 0 && job->complain)
		job->complain(job->arg, err.msg);
}

__attribute__((noreturn)) static void be_parser(const struct parser_job *job, int socket, pid_t parent)
{
	struct errand end;

	broker_socket = socket;
	signal(SIGINT, SIG_IGN); /* Ctrl-C is for the broker, which knows what is waited for */
	prctl(PR_SET_NAME, "stakeout-parser");
	give_up_rights(job, socket);
	if (getppid() != parent)
		_exit(0);
	job->work(job->arg);
	debug_say(0, "the parser is done");
	errand_init(&end, ERRAND_END, 0, 0, NULL);
	message_send(socket, &end, offsetof(struct errand, data) + 1, -1);
	_exit(0);
}

/* The broker's side */

static bool is_whole(const struct errand *errand, size_t got)
{
	const size_t head = offsetof(struct errand, data);

	return got > head && errand->len == got - head - 1 && errand->data[errand->len] == '\0' && errand->kind < ERRAND_KINDS;
}

static int client_socket = -1;

int broker_client(void)
{
	return client_socket;
}

static const char *const errand_names[ERRAND_KINDS] = {
	[ERRAND_FILE] = "file",		  [ERRAND_STAT] = "stat",	  [ERRAND_REAL_PATH] = "real path",
	[ERRAND_JIT_FILE] = "JIT file",	  [ERRAND_COMPLAINT] = "complaint", [ERRAND_KALLSYMS] = "kallsyms",
	[ERRAND_CACHE] = "cache",	  [ERRAND_DOWNLOAD] = "download", [ERRAND_REPORT] = "report",
};

/* Until the parser says that it is done (true), or closes its end: it has died, or is of no use. */
static bool serve(const struct parser_job *job, int socket)
{
	struct errand errand;
	struct errand_reply reply;
	size_t got;
	int unwanted;

	client_socket = socket;
	while ((got = message_receive(socket, &errand, sizeof(errand), &unwanted)) > 0) {
		if (unwanted >= 0)
			close(unwanted);
		if (!is_whole(&errand, got))
			return false;
		if (errand.kind == ERRAND_END)
			return true;
		memset(&reply, 0, offsetof(struct errand_reply, data) + 1);
		reply.rc = -EPERM;
		reply.fd = -1;
		if (job->services[errand.kind].serve)
			job->services[errand.kind].serve(job->services[errand.kind].ctx, &errand, &reply);
		debug_say(reply.rc, "errand %s: %s", errand_names[errand.kind], errand.data);
		message_send(socket, &reply, offsetof(struct errand_reply, data) + reply.len + 1, reply.fd);
		if (reply.fd >= 0)
			close(reply.fd);
	}
	return false;
}

static int explain_end(int status, struct err *err)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE)
		return err_set(err, EPIPE, "nobody reads what is written");
	if (WIFSIGNALED(status))
		return err_set(err, EOWNERDEAD, "signal %d, %s", WTERMSIG(status), strsignal(WTERMSIG(status)));
	return err_set(err, EOWNERDEAD, "exit code %d", WEXITSTATUS(status));
}

/* The one before has ended by now; the last one is nobody's when this process ends. */
static void reap(pid_t child)
{
	static pid_t last;

	if (last)
		waitpid(last, NULL, 0);
	last = child;
}

int parser_run(const struct parser_job *job, struct err *err)
{
	_cleanup_close_ int ours = -1, theirs = -1;
	pid_t parent = getpid(), child;
	int sockets[2], status = 0;
	bool done;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return err_set(err, errno, "a socket cannot be made: %s", strerror(errno));
	ours = sockets[0];
	theirs = sockets[1];
	child = fork();
	if (child == 0)
		be_parser(job, theirs, parent);
	debug_say(child < 0 ? -errno : 0, "a process to parse was made: %d", (int)child);
	if (child < 0)
		return err_set(err, errno, "a process cannot be made: %s", strerror(errno));
	close(steal_fd(&theirs));
	done = serve(job, ours);
	close(steal_fd(&ours));
	if (done) {
		reap(child);
		return 0;
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(err, errno, "waiting for a process: %s", strerror(errno));
	return explain_end(status, err);
}
