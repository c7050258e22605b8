/* SPDX-License-Identifier: MIT */
#include "symbol/debuginfod.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/debug.h"
#include "base/library.h"
#include "elf/image.h"
#include "privilege/message.h"
#include "privilege/sandbox.h"
#include "target/patience.h"

enum {
	DEFAULT_TIMEOUT = 60, /* seconds */
	MAX_BUILD_ID = 128,   /* hex digits */
	SHOW_FROM = 4096,     /* bytes; less is the library counting its own calls */
	FIRST_FREE_FD = STDERR_FILENO + 1,
	NICER = 10,
};

static const char soname[] = "libdebuginfod.so.1";

/* The functions of libdebuginfod that we use; the same in every release of that soname. */
struct client;
typedef int (*find_fn)(struct client *client, const unsigned char *build_id, int build_id_len, char **path);
typedef int (*progress_fn)(struct client *client, long a, long b);

struct library {
	struct client *(*begin)(void);
	void (*end)(struct client *client);
	find_fn find[2]; /* by enum debuginfod_kind */
	void (*set_progressfn)(struct client *client, progress_fn fn);
};

struct debuginfod {
	pthread_mutex_t lock; /* guards everything below; held while a file is downloaded */
	int timeout;          /* seconds; 0: none */
	bool keep_signals;
	void (*progress)(void *arg, const char *label, uint64_t bytes, uint64_t total);
	void *arg;
	bool one_server;
	struct library library;
	struct client *client; /* NULL until it is needed */
	struct err given_up;   /* code != 0: why no server is asked any more */

	/* The process that downloads for a broker */
	pid_t downloader; /* 0: not started */
	int socket;       /* to it */

	/* Of the download under way */
	const char *label;
	long last;          /* the library's last number */
	uint64_t last_time; /* when it last showed progress */
	bool timed_out;
};

/* Global, because a signal handler has nothing else to write to. */
static volatile sig_atomic_t interrupted;

/* Whose download this thread waits for: the library's callback gets only its client. */
static _Thread_local struct debuginfod *downloading;

static void on_interrupt(int sig)
{
	interrupted = 1;
}

int debuginfod_try(struct err *err)
{
	void *library;

	return library_load(soname, err, &library);
}

bool debuginfod_is_wanted(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	return urls && urls[strspn(urls, " ")];
}

static int choose_timeout(int wanted)
{
	const char *text = getenv("DEBUGINFOD_TIMEOUT");
	int value = text && *text ? atoi(text) : DEFAULT_TIMEOUT;

	if (wanted > 0)
		return wanted;
	return value > 0 ? value : 0;
}

static bool is_one_url(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	urls += strspn(urls, " ");
	urls += strcspn(urls, " ");
	return !urls[strspn(urls, " ")];
}

int debuginfod_create(const struct debuginfod_options *options, struct err *err, struct debuginfod **out)
{
	struct debuginfod *d;

	if (options->urls && *options->urls && setenv("DEBUGINFOD_URLS", options->urls, 1) != 0)
		return err_set(err, ENOMEM, "out of memory");
	if (!debuginfod_is_wanted())
		return err_set(err, ENOENT,
			       "no debuginfod server is known: set DEBUGINFOD_URLS or name one, for example "
			       "--debuginfod=https://debuginfod.elfutils.org/");
	d = calloc(1, sizeof(*d));
	if (!d)
		return err_set(err, ENOMEM, "out of memory");
	pthread_mutex_init(&d->lock, NULL);
	d->socket = -1;
	interrupted = 0;
	d->timeout = choose_timeout(options->timeout);
	d->keep_signals = options->keep_signals;
	d->progress = options->progress;
	d->arg = options->arg;
	d->one_server = is_one_url();
	/*
	 * The library gives up on downloads slower than 100 KiB a second, and retries three times: so we do the timing.
	 */
	setenv("DEBUGINFOD_TIMEOUT", "0", 1);
	setenv("DEBUGINFOD_RETRY_LIMIT", "0", 0);
	*out = d;
	return 0;
}

void debuginfod_destroy(struct debuginfod *d)
{
	if (!d)
		return;
	if (d->downloader && !broker_is_there()) {
		close(d->socket);
		waitpid(d->downloader, NULL, 0);
	}
	if (d->client)
		d->library.end(d->client);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* The path in the library's cache, even if the file does not exist. NULL when memory is exhausted. */
static char *cache_path(enum debuginfod_kind kind, const char *build_id)
{
	static const char *const names[] = {"debuginfo", "executable"};
	const char *own = getenv("DEBUGINFOD_CACHE_PATH");
	const char *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME") ? getenv("HOME") : "/";
	_cleanup_free_ char *dir = NULL;
	char *path = NULL;
	int ret;

	if (own && *own) {
		ret = asprintf(&dir, "%s", own);
	} else {
		ret = asprintf(&dir, "%s/.debuginfod_client_cache", home); /* where old releases had it */
		if (ret >= 0 && access(dir, F_OK) != 0) {
			free(steal_ptr(dir));
			ret = xdg && *xdg ? asprintf(&dir, "%s/debuginfod_client", xdg)
					  : asprintf(&dir, "%s/.cache/debuginfod_client", home);
		}
	}
	if (ret < 0) {
		dir = NULL;
		return NULL;
	}
	return asprintf(&path, "%s/%s/%s", dir, build_id, names[kind]) < 0 ? NULL : path;
}

/* -ENOENT when it is not there, or when there is only a mark that the servers do not have it. */
static int open_cached(enum debuginfod_kind kind, const char *build_id)
{
	_cleanup_free_ char *path = cache_path(kind, build_id);
	_cleanup_close_ int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return -ENOENT;
	return steal_fd(&fd);
}

/* Up to 0.188 the library marks an interrupted download as a file that the servers do not have. */
static void forget_miss(enum debuginfod_kind kind, const char *build_id)
{
	_cleanup_free_ char *path = cache_path(kind, build_id);
	struct stat st;

	if (path && lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
		unlink(path);
}

/* A number that grows by one with each call counts calls, until the size is known: then it counts bytes. */
static bool has_moved(struct debuginfod *d, long a, long b)
{
	long before = d->last;

	d->last = a;
	return b > 0 ? a != before : a > before + 1;
}

static bool is_cancelled(const struct debuginfod *d)
{
	return d->keep_signals ? patience_is_interrupted() : interrupted;
}

static int on_progress(struct client *client, long a, long b)
{
	struct debuginfod *d = downloading;
	uint64_t now = monotonic_ns();

	if (has_moved(d, a, b))
		d->last_time = now;
	d->timed_out = d->timeout && now - d->last_time > (uint64_t)d->timeout * NS_PER_S;
	if (d->progress)
		d->progress(d->arg, d->label, b > 0 || a >= SHOW_FROM ? (uint64_t)a : 0, b > 0 ? (uint64_t)b : 0);
	return is_cancelled(d) || d->timed_out;
}

static void *load_function(void *handle, const char *name, struct err *err)
{
	void *function = library_function(handle, name);

	if (!function)
		err_set(err, ENOSYS, "%s has no %s", soname, name);
	return function;
}

static int load(struct debuginfod *d, struct err *err)
{
	struct library *l = &d->library;
	void *handle;

	if (d->client)
		return 0;
	if (library_load(soname, err, &handle) < 0)
		return err_prefix(err, "debuginfod cannot be used");
	l->begin = (struct client * (*)(void)) load_function(handle, "debuginfod_begin", err);
	l->end = (void (*)(struct client *))load_function(handle, "debuginfod_end", err);
	l->find[DEBUGINFOD_DEBUGINFO] = (find_fn)load_function(handle, "debuginfod_find_debuginfo", err);
	l->find[DEBUGINFOD_EXECUTABLE] = (find_fn)load_function(handle, "debuginfod_find_executable", err);
	l->set_progressfn =
		(void (*)(struct client *, progress_fn))load_function(handle, "debuginfod_set_progressfn", err);
	if (!l->begin || !l->end || !l->find[0] || !l->find[1] || !l->set_progressfn)
		return -ENOSYS;
	d->client = l->begin();
	if (!d->client)
		return err_set(err, ENOMEM, "libdebuginfod cannot be started");
	l->set_progressfn(d->client, on_progress);
	return 0;
}

/* Gets the library's answer, catching Ctrl-C meanwhile. */
static int download(struct debuginfod *d, enum debuginfod_kind kind, const char *build_id, const char *label)
{
	const struct sigaction catch = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND | SA_RESTART};
	struct sigaction before;
	int ret;

	d->label = label;
	d->last = 0;
	d->last_time = monotonic_ns();
	d->timed_out = false;
	downloading = d;
	sigaction(SIGINT, NULL, &before);
	if (!d->keep_signals && before.sa_handler != SIG_IGN)
		sigaction(SIGINT, &catch, NULL);
	ret = d->library.find[kind](d->client, (const unsigned char *)build_id, 0, NULL);
	if (!d->keep_signals)
		sigaction(SIGINT, &before, NULL);
	downloading = NULL;
	if (d->progress)
		d->progress(d->arg, NULL, 0, 0);
	debug_say(ret, "asking debuginfod servers for %s", build_id);
	return ret;
}

static int give_up(struct debuginfod *d, int code, const char *why)
{
	return err_set(&d->given_up, code, "%s", why);
}

/* What a failed download means for later ones. Leaves the sentence in d->given_up or in err. */
static int judge(struct debuginfod *d, int ret, uint64_t took, struct err *err)
{
	char why[200];

	if (is_cancelled(d))
		return give_up(d, ECANCELED, "the download from the debuginfod server was cancelled");
	if (d->timed_out) {
		snprintf(why, sizeof(why), "the debuginfod server sent nothing for %d s", d->timeout);
		return give_up(d, ETIMEDOUT, why);
	}
	if (ret == -ENOENT)
		return err_set(err, ENOENT, "the debuginfod server does not have it");
	snprintf(why, sizeof(why), "the debuginfod server cannot be asked: %s", strerror(-ret));
	/* With several servers the others may still answer, as long as we do not have to wait for this one. */
	if (ret == -EFBIG || ret == -EIO || (!d->one_server && took < NS_PER_S))
		return err_set(err, -ret, "%s", why);
	return give_up(d, -ret, why);
}

static int find_locked(struct debuginfod *d, enum debuginfod_kind kind, const char *build_id, const char *label,
		       struct err *err)
{
	int ret = open_cached(kind, build_id);
	uint64_t start = monotonic_ns();

	if (ret >= 0)
		return ret;
	if (!d->given_up.code && load(d, &d->given_up) == 0) {
		ret = download(d, kind, build_id, label);
		if (ret >= 0)
			return ret;
		if (is_cancelled(d) || d->timed_out)
			forget_miss(kind, build_id);
		ret = judge(d, ret, monotonic_ns() - start, err);
	}
	return d->given_up.code ? err_set(err, d->given_up.code, "%s", d->given_up.msg) : ret;
}

DEFINE_CLEANUP(image, struct image *, image_destroy)

/* A proxy's error page comes with a success code, and stays in the cache. */
static int check_file(int fd, const char *build_id, struct err *err)
{
	_cleanup_(cleanup_image) struct image *image = NULL;
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	const char *got;

	if (copy < 0)
		return err_set(err, errno, "out of file descriptors");
	if (image_open_fd(copy, err, &image) < 0)
		return err_prefix(err, "what the debuginfod server sent cannot be used");
	got = image_build_id(image);
	if (!got || strcmp(got, build_id) != 0)
		return err_set(err, EBADMSG, "the debuginfod server sent a file with build-id %s",
			       got ? got : "missing");
	return 0;
}

static bool is_build_id(const char *build_id)
{
	size_t len = strspn(build_id, "0123456789abcdef");

	return len > 0 && len <= MAX_BUILD_ID && len % 2 == 0 && !build_id[len];
}

/* For a parser: "BUILD-ID LABEL". */
static int find_by_broker(enum debuginfod_kind kind, const char *build_id, const char *label, struct err *err)
{
	char text[ERRAND_ROOM];
	struct errand_reply reply;
	struct errand errand;

	snprintf(text, sizeof(text), "%s %s", build_id, label);
	errand_init(&errand, ERRAND_DOWNLOAD, (int)kind, 0, text);
	if (broker_ask(&errand, &reply) < 0)
		return err_set(err, -reply.rc, "%s", reply.rc == -EPIPE ? "debuginfod cannot be asked" : reply.data);
	return reply.fd < 0 ? err_set(err, EPIPE, "debuginfod cannot be asked") : reply.fd;
}

int debuginfod_find(struct debuginfod *d, enum debuginfod_kind kind, const char *build_id, const char *label,
		    struct err *err)
{
	_cleanup_close_ int fd = -1;
	int ret;

	if (!is_build_id(build_id))
		return err_set(err, EINVAL, "not a build-id");
	if (broker_is_there()) {
		fd = find_by_broker(kind, build_id, label, err);
	} else {
		pthread_mutex_lock(&d->lock);
		fd = find_locked(d, kind, build_id, label, err);
		pthread_mutex_unlock(&d->lock);
	}
	if (fd < 0)
		return fd;
	ret = check_file(fd, build_id, err);
	return ret < 0 ? ret : steal_fd(&fd);
}

/*
 * The broker does not download either: it has rights, and the library brings thirty others that talk to the network. A
 * process of the caller's does, which stays for the next file: it knows who did not answer.
 */

static void answer(struct debuginfod *d, const struct errand *errand, struct errand_reply *reply)
{
	const char *space = strchr(errand->data, ' ');
	char build_id[MAX_BUILD_ID + 1];
	struct err err = {0};

	*reply = (struct errand_reply){.rc = -EINVAL, .fd = -1};
	if (!space || space - errand->data > MAX_BUILD_ID)
		return;
	snprintf(build_id, sizeof(build_id), "%.*s", (int)(space - errand->data), errand->data);
	if (!is_build_id(build_id) || errand->number[0] < 0 || errand->number[0] > DEBUGINFOD_EXECUTABLE)
		return;
	reply->fd = find_locked(d, (enum debuginfod_kind)errand->number[0], build_id, space + 1, &err);
	reply->rc = reply->fd < 0 ? reply->fd : 0;
	errand_answer(reply, err.msg);
}

__attribute__((noreturn)) static void be_downloader(struct debuginfod *d, int socket)
{
	const struct sigaction catch = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
	struct errand_reply reply;
	struct errand errand;
	int unwanted;

	dup2(socket, FIRST_FREE_FD);
	syscall(SYS_close_range, FIRST_FREE_FD + 1, ~0U, 0);
	prctl(PR_SET_NAME, "stakeout-fetch");
	setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICER); /* as all that looks for names */
	signal(SIGINT, SIG_IGN);
	sigaction(SIGUSR1, &catch, NULL); /* the broker says when Ctrl-C was pressed */
	if (sandbox_become_caller(NULL) < 0)
		_exit(1);
	while (message_receive(FIRST_FREE_FD, &errand, sizeof(errand), &unwanted) > 0) {
		answer(d, &errand, &reply);
		message_send(FIRST_FREE_FD, &reply, sizeof(reply), reply.fd);
		if (reply.fd >= 0)
			close(reply.fd);
	}
	_exit(0);
}

static int start_downloader(struct debuginfod *d)
{
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return -errno;
	d->downloader = fork();
	if (d->downloader == 0)
		be_downloader(d, sockets[1]);
	close(sockets[1]);
	if (d->downloader < 0) {
		d->downloader = 0;
		close(sockets[0]);
		return -EAGAIN;
	}
	d->socket = sockets[0];
	return 0;
}

/* The first Ctrl-C ends the download; a second one does what it normally does. False: nobody wants it any more. */
static bool wait_for_answer(const struct debuginfod *d)
{
	const struct sigaction catch = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
	struct pollfd fds[] = {{.fd = d->socket, .events = POLLIN}, {.fd = broker_client(), .events = POLLIN}};
	struct sigaction before;
	sigset_t sigint, mask;
	bool told = false;

	sigemptyset(&sigint);
	sigaddset(&sigint, SIGINT);
	sigaction(SIGINT, NULL, &before);
	sigprocmask(SIG_BLOCK, &sigint, &mask); /* or it could come between the look and the wait */
	if (before.sa_handler != SIG_IGN)
		sigaction(SIGINT, &catch, NULL);
	while (ppoll(fds, 2, NULL, &mask) < 0 && errno == EINTR) {
		if (interrupted && !told)
			kill(d->downloader, SIGUSR1);
		told |= interrupted;
	}
	sigaction(SIGINT, &before, NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return fds[0].revents;
}

static void stop_downloader(struct debuginfod *d)
{
	kill(d->downloader, SIGKILL);
	waitpid(d->downloader, NULL, 0);
	close(d->socket);
	d->downloader = 0;
}

static void serve(void *ctx, const struct errand *errand, struct errand_reply *reply)
{
	struct debuginfod *d = ctx;
	int rc = d->downloader ? 0 : start_downloader(d), fd = -1;

	if (rc == 0 && !message_send(d->socket, errand, sizeof(*errand), -1))
		rc = -EPIPE;
	if (rc == 0 && !wait_for_answer(d)) {
		stop_downloader(d);
		rc = -EPIPE;
	}
	if (rc == 0) {
		rc = message_receive(d->socket, reply, sizeof(*reply), &fd) == sizeof(*reply) && reply->len < ERRAND_ROOM
			     ? reply->rc
			     : -EPIPE;
	}
	reply->rc = rc;
	reply->fd = fd;
	if (rc == -EPIPE || rc == -EAGAIN)
		errand_answer(reply, "the process that downloads has ended");
}

void debuginfod_errand_add(struct parser_job *job, struct debuginfod *d)
{
	if (d)
		job->services[ERRAND_DOWNLOAD] = (struct service){serve, d};
}
