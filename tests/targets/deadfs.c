/* SPDX-License-Identifier: MIT */
/*
 * deadfs [-n] [-l] [-k] [-t SECONDS] [-r BYTES] DIRECTORY MOUNTPOINT: a file system that can stop answering. It shows
 * DIRECTORY, read-only, through the kernel's FUSE protocol.
 *
 *   -n   mount it in a mount namespace of its own: enter that by the pid of the ready line
 *   -l   once stopped, leave requests in the kernel's queue. Who waits can then be killed, as with NFS. Without it
 *        they are taken from there, and who waits cannot even be killed, as with a server that hangs itself.
 *   -k   keep the page cache when a file is opened again
 *   -t   how long the kernel may trust names and attributes; 0 by default, so that it always asks
 *   -r   how far the kernel may read ahead; 0 by default: a page that nobody touched has to be asked for
 *
 * Questions: "stop" (SIGUSR1) and "go" (SIGUSR2; answers what has been waiting, too), both answered when that is done,
 * "waiting" (how many requests wait for an answer; at most 1 with -l), "drop" (makes the kernel forget all pages).
 * SIGTERM, or the end of standard input, ends the connection, so that nobody waits any longer, and unmounts.
 * Exits with 77 where there is no FUSE or no right to mount.
 */
#include "target.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { REQUEST_MAX = 1 << 17, READ_MAX = 1 << 20, CANNOT = 77 };

struct request {
	struct request *next;
	struct fuse_in_header *in; /* what follows it is the body, with a 0 behind its end */
};

static struct {
	int fuse;
	int alive; /* the guard ends when this is closed */
	const char *mountpoint;
	char **paths; /* by node - FUSE_ROOT_ID; nodes are never forgotten: there are few */
	size_t npaths;
	bool stopped, leave, keep_cache;
	double trust;
	uint32_t readahead;
	struct request *queue, **queue_end; /* what has not been answered */
	unsigned waiting;
} fs = {.fuse = -1, .alive = -1, .queue_end = &fs.queue};

static void cannot(const char *what)
{
	perror(what);
	exit(errno == ENOENT || errno == ENODEV || errno == EPERM || errno == EACCES || errno == EINVAL ? CANNOT : 1);
}

static void reply_parts(const struct fuse_in_header *in, int error, const void *data, size_t len)
{
	struct fuse_out_header out = {.len = (uint32_t)(sizeof(out) + len), .error = error, .unique = in->unique};
	struct iovec parts[] = {{&out, sizeof(out)}, {(void *)data, len}};

	/* ENOENT: who asked has gone. */
	if (writev(fs.fuse, parts, 2) < 0 && errno != ENOENT && errno != ENODEV)
		target_die("answering");
}

static void reply_error(const struct fuse_in_header *in, int error)
{
	reply_parts(in, -error, NULL, 0);
}

/* The node of a path, or the next one that is free. */
static uint64_t node_of(const char *path)
{
	size_t i = 0;

	while (i < fs.npaths && strcmp(fs.paths[i], path))
		i++;
	if (i == fs.npaths) {
		fs.paths = realloc(fs.paths, (i + 1) * sizeof(*fs.paths));
		if (!fs.paths || !(fs.paths[i] = strdup(path)))
			target_die("realloc");
		fs.npaths++;
	}
	return i + FUSE_ROOT_ID;
}

static const char *path_of(uint64_t node)
{
	return node - FUSE_ROOT_ID < fs.npaths ? fs.paths[node - FUSE_ROOT_ID] : "/nonexistent";
}

static void set_attr(const struct stat *st, struct fuse_attr *a)
{
	*a = (struct fuse_attr){
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.blocks = (uint64_t)st->st_blocks,
		.atime = (uint64_t)st->st_atim.tv_sec,
		.mtime = (uint64_t)st->st_mtim.tv_sec,
		.ctime = (uint64_t)st->st_ctim.tv_sec,
		.atimensec = (uint32_t)st->st_atim.tv_nsec,
		.mtimensec = (uint32_t)st->st_mtim.tv_nsec,
		.ctimensec = (uint32_t)st->st_ctim.tv_nsec,
		.mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.blksize = 4096,
	};
}

static uint64_t trust_seconds(void)
{
	return (uint64_t)fs.trust;
}

static uint32_t trust_rest(void)
{
	return (uint32_t)((fs.trust - (double)trust_seconds()) * 1e9);
}

static void answer_init(const struct fuse_in_header *in)
{
	const struct fuse_init_in *asked = (const void *)(in + 1);
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = asked->minor < FUSE_KERNEL_MINOR_VERSION ? asked->minor : FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = fs.readahead,
		.flags = fs.readahead ? asked->flags & FUSE_ASYNC_READ : 0,
		.max_write = 65536,
	};

	reply_parts(in, 0, &out, sizeof(out));
}

static void answer_lookup(const struct fuse_in_header *in)
{
	struct fuse_entry_out out = {
		.entry_valid = trust_seconds(),
		.attr_valid = trust_seconds(),
		.entry_valid_nsec = trust_rest(),
		.attr_valid_nsec = trust_rest(),
	};
	char path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/%s", path_of(in->nodeid), (const char *)(in + 1)) >= (int)sizeof(path)) {
		reply_error(in, ENAMETOOLONG);
	} else if (lstat(path, &st)) {
		reply_error(in, errno);
	} else {
		out.nodeid = node_of(path);
		set_attr(&st, &out.attr);
		reply_parts(in, 0, &out, sizeof(out));
	}
}

static void answer_getattr(const struct fuse_in_header *in)
{
	struct fuse_attr_out out = {.attr_valid = trust_seconds(), .attr_valid_nsec = trust_rest()};
	struct stat st;

	if (lstat(path_of(in->nodeid), &st)) {
		reply_error(in, errno);
	} else {
		set_attr(&st, &out.attr);
		reply_parts(in, 0, &out, sizeof(out));
	}
}

static void answer_readlink(const struct fuse_in_header *in)
{
	char to[PATH_MAX];
	ssize_t len = readlink(path_of(in->nodeid), to, sizeof(to));

	if (len < 0)
		reply_error(in, errno);
	else
		reply_parts(in, 0, to, (size_t)len);
}

static void answer_open(const struct fuse_in_header *in)
{
	const struct fuse_open_in *asked = (const void *)(in + 1);
	struct fuse_open_out out = {.open_flags = fs.keep_cache ? FOPEN_KEEP_CACHE : 0};
	int fd;

	if ((asked->flags & O_ACCMODE) != O_RDONLY) {
		reply_error(in, EROFS);
		return;
	}
	fd = open(path_of(in->nodeid), O_RDONLY | O_CLOEXEC | (in->opcode == FUSE_OPENDIR ? O_DIRECTORY : 0));
	if (fd < 0) {
		reply_error(in, errno);
		return;
	}
	out.fh = (uint64_t)fd;
	reply_parts(in, 0, &out, sizeof(out));
}

static void answer_read(const struct fuse_in_header *in)
{
	const struct fuse_read_in *asked = (const void *)(in + 1);
	static char data[READ_MAX];
	ssize_t len =
		pread((int)asked->fh, data, asked->size < READ_MAX ? asked->size : READ_MAX, (off_t)asked->offset);

	if (len < 0)
		reply_error(in, errno);
	else
		reply_parts(in, 0, data, (size_t)len);
}

static void answer_readdir(const struct fuse_in_header *in)
{
	const struct fuse_read_in *asked = (const void *)(in + 1);
	static uint64_t data[REQUEST_MAX / 8];
	size_t len = 0, room = asked->size < sizeof(data) ? asked->size : sizeof(data);
	DIR *dir = opendir(path_of(in->nodeid));
	struct dirent *entry;

	if (!dir) {
		reply_error(in, errno);
		return;
	}
	/* The directory does not change, so that the place of an entry is its number. */
	for (uint64_t i = 0; (entry = readdir(dir)); i++) {
		size_t name_len = strlen(entry->d_name);
		size_t size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + name_len);
		struct fuse_dirent *d = (struct fuse_dirent *)((char *)data + len);

		if (i < asked->offset)
			continue;
		if (len + size > room)
			break;
		memset(d, 0, size);
		d->ino = entry->d_ino;
		d->off = i + 1;
		d->namelen = (uint32_t)name_len;
		d->type = entry->d_type;
		memcpy(d->name, entry->d_name, name_len);
		len += size;
	}
	closedir(dir);
	reply_parts(in, 0, data, len);
}

static void answer_statfs(const struct fuse_in_header *in)
{
	struct fuse_statfs_out out = {0};
	struct statfs st;

	if (statfs(fs.paths[0], &st)) {
		reply_error(in, errno);
		return;
	}
	out.st.blocks = st.f_blocks;
	out.st.bfree = st.f_bfree;
	out.st.bavail = st.f_bavail;
	out.st.files = st.f_files;
	out.st.ffree = st.f_ffree;
	out.st.bsize = (uint32_t)st.f_bsize;
	out.st.frsize = (uint32_t)st.f_frsize;
	out.st.namelen = (uint32_t)st.f_namelen;
	reply_parts(in, 0, &out, sizeof(out));
}

static void answer_release(const struct fuse_in_header *in)
{
	const struct fuse_release_in *asked = (const void *)(in + 1);

	close((int)asked->fh);
	reply_error(in, 0);
}

static void answer_request(const struct fuse_in_header *in)
{
	switch (in->opcode) {
	case FUSE_INIT:
		return answer_init(in);
	case FUSE_LOOKUP:
		return answer_lookup(in);
	case FUSE_GETATTR:
		return answer_getattr(in);
	case FUSE_READLINK:
		return answer_readlink(in);
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		return answer_open(in);
	case FUSE_READ:
		return answer_read(in);
	case FUSE_READDIR:
		return answer_readdir(in);
	case FUSE_STATFS:
		return answer_statfs(in);
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		return answer_release(in);
	case FUSE_DESTROY:
	case FUSE_ACCESS:
		return reply_error(in, 0);
	case FUSE_SETATTR:
	case FUSE_WRITE:
	case FUSE_CREATE:
	case FUSE_MKNOD:
	case FUSE_MKDIR:
	case FUSE_SYMLINK:
	case FUSE_UNLINK:
	case FUSE_RMDIR:
		return reply_error(in, EROFS);
	default:
		return reply_error(in, ENOSYS);
	}
}

/* A request that nobody waits for the answer of. FUSE_INTERRUPT means that who asked got a signal: it waits on. */
static bool is_notice(const struct fuse_in_header *in)
{
	return in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET || in->opcode == FUSE_INTERRUPT;
}

static void enqueue(const void *data, size_t len)
{
	struct request *r = malloc(sizeof(*r));

	if (!r || !(r->in = malloc(len)))
		target_die("malloc");
	memcpy(r->in, data, len);
	r->next = NULL;
	*fs.queue_end = r;
	fs.queue_end = &r->next;
	fs.waiting++;
}

/* The connection first: unmounting may have to wait for an answer. */
static void end(void)
{
	close(fs.fuse);
	umount2(fs.mountpoint, MNT_DETACH);
	close(fs.alive);
	wait(NULL);
	exit(0);
}

/* Answers, or keeps, one request. */
static void take_request(void)
{
	static uint64_t data[REQUEST_MAX / 8 + 1];
	struct fuse_in_header *in = (void *)data;
	ssize_t len = read(fs.fuse, data, REQUEST_MAX);

	if (len < (ssize_t)sizeof(*in)) {
		if (len < 0 && errno == ENODEV) /* unmounted by somebody else */
			end();
		return; /* ENOENT, EINTR, EAGAIN: the one that was there has gone */
	}
	((char *)data)[len] = '\0';
	if (is_notice(in))
		return;
	if (fs.stopped)
		enqueue(data, (size_t)len + 1);
	else
		answer_request(in);
}

static void go_on(void)
{
	fs.stopped = false;
	while (fs.queue) {
		struct request *r = fs.queue;

		fs.queue = r->next;
		answer_request(r->in);
		free(r->in);
		free(r);
	}
	fs.queue_end = &fs.queue;
	fs.waiting = 0;
}

/* Not to be asked for while somebody waits for a page: the kernel would wait with us. */
static void drop_pages(void)
{
	for (size_t i = 0; i < fs.npaths; i++) {
		struct fuse_notify_inval_inode_out inode = {.ino = i + FUSE_ROOT_ID};
		struct fuse_out_header out = {.len = sizeof(out) + sizeof(inode), .error = FUSE_NOTIFY_INVAL_INODE};
		struct iovec parts[] = {{&out, sizeof(out)}, {&inode, sizeof(inode)}};

		if (writev(fs.fuse, parts, 2) < 0 && errno != ENOENT)
			target_die("dropping pages");
	}
}

static unsigned waiting(void)
{
	struct pollfd pfd = {.fd = fs.fuse, .events = POLLIN};

	return fs.leave && fs.stopped ? poll(&pfd, 1, 0) == 1 : fs.waiting;
}

static void answer(const char *question)
{
	if (!strcmp(question, "stop")) {
		fs.stopped = true;
		printf("stopped\n");
	} else if (!strcmp(question, "go")) {
		go_on();
		printf("going\n");
	} else if (!strcmp(question, "waiting")) {
		printf("%u\n", waiting());
	} else if (!strcmp(question, "drop")) {
		drop_pages();
		printf("dropped\n");
	} else {
		printf("?\n");
	}
	fflush(stdout);
}

static void hear_signal(int signals)
{
	struct signalfd_siginfo info;

	if (read(signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGUSR1)
		fs.stopped = true;
	else if (info.ssi_signo == SIGUSR2)
		go_on();
	else
		end();
}

static void hear_line(void)
{
	static char line[64];
	static size_t len;

	if (read(STDIN_FILENO, &line[len], 1) != 1)
		end();
	if (line[len] != '\n') {
		len += len < sizeof(line) - 1;
		return;
	}
	line[len] = '\0';
	len = 0;
	answer(line);
}

/*
 * A server that is killed closes its connection, so that nobody waits any longer; but its mount would stay. This one is
 * not killed with it.
 */
static void start_guard(void)
{
	int alive[2];
	char c;

	if (pipe2(alive, O_CLOEXEC))
		target_die("pipe2");
	switch (fork()) {
	case -1:
		target_die("fork");
		break;
	case 0:
		setsid();
		prctl(PR_SET_PDEATHSIG, 0);
		for (int fd = 0; fd < 3; fd++)
			close(fd);
		close(alive[1]);
		while (read(alive[0], &c, 1) < 0 && errno == EINTR)
			;
		umount2(fs.mountpoint, MNT_DETACH);
		_exit(0);
	default:
		close(alive[0]);
		fs.alive = alive[1];
	}
}

static void mount_it(bool own_namespace)
{
	char options[128];

	if (own_namespace) {
		if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
			cannot("a mount namespace");
	} else {
		start_guard();
	}
	fs.fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fs.fuse < 0)
		cannot("/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other", fs.fuse, getuid(),
		 getgid());
	if (mount("deadfs", fs.mountpoint, "fuse.deadfs", MS_RDONLY | MS_NOSUID | MS_NODEV, options))
		cannot("mount");
}

int main(int argc, char **argv)
{
	bool own_namespace = false;
	sigset_t set;
	int opt, signals;

	target_init();
	while ((opt = getopt(argc, argv, "nlkt:r:")) != -1) {
		if (opt == 'n')
			own_namespace = true;
		else if (opt == 'l')
			fs.leave = true;
		else if (opt == 'k')
			fs.keep_cache = true;
		else if (opt == 't')
			fs.trust = atof(optarg);
		else if (opt == 'r')
			fs.readahead = (uint32_t)strtoul(optarg, NULL, 0);
		else
			return 2;
	}
	if (argc != optind + 2)
		return 2;
	node_of(argv[optind]); /* the root */
	fs.mountpoint = argv[optind + 1];
	sigemptyset(&set);
	for (const int *s = (const int[]){SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP, 0}; *s; s++)
		sigaddset(&set, *s);
	mount_it(own_namespace);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (signals < 0)
		target_die("signalfd");
	target_ready();
	for (;;) {
		struct pollfd pfds[] = {
			{.fd = STDIN_FILENO, .events = POLLIN},
			{.fd = signals, .events = POLLIN},
			{.fd = fs.stopped && fs.leave ? -1 : fs.fuse, .events = POLLIN},
		};

		if (poll(pfds, 3, -1) < 0 && errno != EINTR)
			target_die("poll");
		if (pfds[2].revents)
			take_request();
		if (pfds[1].revents)
			hear_signal(signals);
		if (pfds[0].revents)
			hear_line();
	}
}
