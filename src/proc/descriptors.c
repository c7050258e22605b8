/* SPDX-License-Identifier: MIT */
#include "proc/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum {
	INFO_SIZE = 4096,  /* of all but an epoll's what matters is in the first lines */
	LINE_SIZE = 256,   /* longer ones are not about what is watched */
};

static int open_directory(const struct process *process, pid_t tid, const char *name)
{
	char path[32];

	snprintf(path, sizeof(path), "%d/%s", (int)tid, name);
	return openat(tid ? process->task_fd : process->mm_fd, tid ? path : name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int descriptors_open(const struct process *process, pid_t tid, bool (*is_local)(uint64_t mount), struct descriptors *out)
{
	int fd = open_directory(process, tid, "fd");

	if (fd < 0)
		return -errno;
	*out = (struct descriptors){
		.links = fd,
		.infos = open_directory(process, tid, "fdinfo"),
		.is_local = is_local,
	};
	return 0;
}

void descriptors_close(struct descriptors *dirs)
{
	cleanup_close(&dirs->links);
	cleanup_close(&dirs->infos);
}

static bool starts_with(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* What the kernel has no path for: "anon_inode:[eventfd]", also without brackets. */
static enum descriptor_kind kind_of_anonymous(const char *name)
{
	static const struct {
		const char *name;
		enum descriptor_kind kind;
	} kinds[] = {
		{"[eventpoll]", DESCRIPTOR_EPOLL},   {"[eventfd]", DESCRIPTOR_EVENTFD},	 {"[timerfd]", DESCRIPTOR_TIMERFD},
		{"[signalfd]", DESCRIPTOR_SIGNALFD}, {"inotify", DESCRIPTOR_INOTIFY},	 {"[fanotify]", DESCRIPTOR_FANOTIFY},
		{"[pidfd]", DESCRIPTOR_PIDFD},	     {"[io_uring]", DESCRIPTOR_IO_URING}, {"[userfaultfd]", DESCRIPTOR_USERFAULTFD},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(name, kinds[i].name) == 0)
			return kinds[i].kind;
	return DESCRIPTOR_OTHER;
}

static enum descriptor_kind kind_of_path(const char *path)
{
	if (starts_with(path, "/dev/pts/") || starts_with(path, "/dev/tty") || strcmp(path, "/dev/ptmx") == 0 ||
	    strcmp(path, "/dev/console") == 0)
		return DESCRIPTOR_TERMINAL;
	return strcmp(path, "/dev/fuse") == 0 ? DESCRIPTOR_FUSE : DESCRIPTOR_FILE;
}

void descriptor_parse_link(const char *link, struct descriptor *out)
{
	static const char anonymous[] = "anon_inode:";

	if (starts_with(link, "pipe:[")) {
		out->kind = DESCRIPTOR_PIPE;
		out->inode = strtoull(link + strlen("pipe:["), NULL, 10);
	} else if (starts_with(link, "socket:[")) {
		out->kind = DESCRIPTOR_SOCKET;
		out->inode = strtoull(link + strlen("socket:["), NULL, 10);
	} else if (starts_with(link, anonymous)) {
		out->kind = kind_of_anonymous(link + strlen(anonymous));
	} else {
		out->kind = link[0] == '/' ? kind_of_path(link) : starts_with(link, "pidfd:[") ? DESCRIPTOR_PIDFD : DESCRIPTOR_OTHER;
	}
}

/* By hand: there may be thousands, and printf() takes longer than all else that is done for one. */
const char *descriptor_name(enum descriptor_kind kind, uint64_t inode, struct arena *arena)
{
	const char *what = kind == DESCRIPTOR_SOCKET ? "socket:[" : "pipe:[";
	const size_t len = strlen(what);
	char text[sizeof("socket:[18446744073709551615]")], *const end = text + sizeof(text), *at = end;

	*--at = ']';
	do
		*--at = (char)('0' + inode % 10);
	while (inode /= 10);
	at = memcpy(at - len, what, len);
	return arena_intern_n(arena, at, (size_t)(end - at));
}

/* "(3, 999123456)": seconds and nanoseconds; both 0 when it is not set. */
static int64_t parse_left(const char *text)
{
	uint64_t s, ns;

	if (sscanf(text, " (%" SCNu64 ", %" SCNu64 ")", &s, &ns) != 2 || s > INT64_MAX / NS_PER_S - 1 || ns >= NS_PER_S || (!s && !ns))
		return -1;
	return (int64_t)(s * NS_PER_S + ns);
}

void descriptor_parse_info(const char *text, struct descriptor *out, uint64_t *mount)
{
	*mount = 0;
	for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *value = strchr(line, ':');
		const size_t len = value ? (size_t)(value - line) : 0;

		if (!value || memchr(line, '\n', len))
			continue;
		value++;
		if (len == 3 && starts_with(line, "pos"))
			out->offset = strtoll(value, NULL, 10);
		else if (len == 5 && starts_with(line, "flags"))
			out->flags = (uint32_t)strtoul(value, NULL, 8) & ~(uint32_t)O_CLOEXEC;
		else if (len == 6 && starts_with(line, "mnt_id"))
			*mount = strtoull(value, NULL, 10);
		else if (len == 3 && starts_with(line, "ino") && !out->inode)
			out->inode = strtoull(value, NULL, 10);
		else if (len == 13 && starts_with(line, "eventfd-count"))
			out->count = strtoull(value, NULL, 16);
		else if (len == 8 && starts_with(line, "it_value"))
			out->left_ns = parse_left(value);
		else if (len == 3 && starts_with(line, "Pid"))
			out->pid = (pid_t)strtol(value, NULL, 10);
	}
}

uint64_t descriptor_device(const struct statx *st)
{
	return (uint64_t)st->stx_dev_major << 32 | st->stx_dev_minor;
}

/* A path may lead to anything; its inode is asked for only where no server has to answer. */
static void find_type(const struct descriptors *dirs, const char *number, uint64_t mount, struct descriptor *out)
{
	struct statx st;

	if (!dirs->is_local(mount) || statx(dirs->links, number, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &st) < 0)
		return;
	switch (st.stx_mode & S_IFMT) {
	case S_IFIFO:
		out->kind = DESCRIPTOR_FIFO;
		break;
	case S_IFDIR:
		out->kind = DESCRIPTOR_DIRECTORY;
		break;
	case S_IFCHR:
	case S_IFBLK:
		out->kind = DESCRIPTOR_DEVICE;
		break;
	default:
		break;
	}
	out->inode = out->kind == DESCRIPTOR_FIFO ? st.stx_ino : 0;
	out->device = out->kind == DESCRIPTOR_FIFO ? descriptor_device(&st) : 0;
}

/* Of all others the link tells what is wanted; reading one more file takes three times as long. */
static bool has_info(enum descriptor_kind kind)
{
	return kind == DESCRIPTOR_FILE || kind == DESCRIPTOR_PIPE || kind == DESCRIPTOR_TIMERFD || kind == DESCRIPTOR_EVENTFD || kind == DESCRIPTOR_PIDFD;
}

bool descriptor_is_device(const char *link)
{
	return strncmp(link, "/dev/", 5) == 0 && strncmp(link, "/dev/shm/", 9) != 0 && strncmp(link, "/dev/mqueue/", 12) != 0;
}

static void read_info(const struct descriptors *dirs, const char *number, struct descriptor *out)
{
	const bool is_path = out->kind == DESCRIPTOR_FILE;
	char text[INFO_SIZE];
	uint64_t mount = 0;

	if (dirs->infos >= 0 && process_read_file(dirs->infos, number, text, sizeof(text)) >= 0)
		descriptor_parse_info(text, out, &mount);
	if (is_path)
		find_type(dirs, number, mount, out);
	if (out->kind != DESCRIPTOR_FIFO && out->kind != DESCRIPTOR_PIPE)
		out->inode = 0;
	if (out->kind != DESCRIPTOR_FILE)
		out->offset = -1;
}

int descriptors_read(const struct descriptors *dirs, int fd, struct arena *arena, struct descriptor *out)
{
	char link[4096], number[16];
	ssize_t len;

	*out = (struct descriptor){.fd = fd, .offset = -1, .left_ns = -1};
	snprintf(number, sizeof(number), "%d", fd);
	len = readlinkat(dirs->links, number, link, sizeof(link) - 1);
	if (len < 0)
		return -errno;
	link[len] = '\0';
	descriptor_parse_link(link, out);
	if (has_info(out->kind) && !descriptor_is_device(link))
		read_info(dirs, number, out);
	out->name = arena_intern(arena, link);
	return out->name ? 0 : -ENOMEM;
}

bool descriptors_is_socket(const struct descriptors *dirs, int fd)
{
	char number[16], link[sizeof("socket:[") - 1];

	snprintf(number, sizeof(number), "%d", fd);
	return readlinkat(dirs->links, number, link, sizeof(link)) == sizeof(link) && memcmp(link, "socket:[", sizeof(link)) == 0;
}

/* By a handle, which is checked first: the number may be that of another file by now, whose file system does not answer. */
bool descriptors_protocol(const struct descriptors *dirs, int fd, uint64_t inode, char *out, size_t size)
{
	char number[16], path[32], wanted[48], link[48];
	_cleanup_close_ int handle = -1;
	ssize_t len;

	snprintf(number, sizeof(number), "%d", fd);
	handle = openat(dirs->links, number, O_PATH | O_CLOEXEC);
	if (handle < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
	snprintf(wanted, sizeof(wanted), "socket:[%llu]", (unsigned long long)inode);
	len = readlink(path, link, sizeof(link) - 1);
	if (len < 0)
		return false;
	link[len] = '\0';
	if (strcmp(link, wanted) != 0)
		return false;
	len = getxattr(path, "system.sockprotoname", out, size - 1);
	if (len <= 0)
		return false;
	out[len] = '\0';
	return true;
}

ssize_t process_working_directory(const struct process *process, pid_t tid, char *buf, size_t size)
{
	char path[32];
	ssize_t len;

	snprintf(path, sizeof(path), "%d/cwd", (int)tid);
	len = readlinkat(process->task_fd, path, buf, size - 1);
	if (len < 0)
		return -errno;
	buf[len] = '\0';
	return len;
}

/* Like "tfd: %d events: %x data: %x pos:%d ino:%x sdev:%x", with any number of spaces: there may be ten thousands of them. */
bool descriptor_parse_watched(const char *line, struct watched_descriptor *out)
{
	static const char *const words[] = {"tfd:", "events:", "data:", "pos:", "ino:", "sdev:"};
	static const int bases[] = {10, 16, 16, 10, 16, 16};
	uint64_t values[6];

	for (size_t i = 0; i < 6; i++) {
		char *end;

		line += strspn(line, " ");
		if (!starts_with(line, words[i]))
			return false;
		line += strlen(words[i]);
		values[i] = strtoull(line, &end, bases[i]);
		if (end == line)
			return false;
		line = end;
	}
	*out = (struct watched_descriptor){.fd = (int)values[0], .events = (uint32_t)values[1], .inode = values[4], .device = values[5]};
	return values[0] <= INT_MAX;
}

ssize_t descriptors_info(int infos, int fd, uint8_t *buf, size_t size)
{
	char number[16] = "", *digit = number + sizeof(number) - 1;
	size_t len = 0;
	ssize_t got = 1;
	int file;

	do
		*--digit = (char)('0' + fd % 10);
	while (fd /= 10);
	file = openat(infos, digit, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return -errno;
	while (got > 0 && len < size) {
		got = read(file, buf + len, size - len);
		len += got > 0 ? (size_t)got : 0;
	}
	close(file);
	return (ssize_t)len;
}

bool descriptors_watched(const uint8_t *info, size_t len, struct watched_descriptors *out)
{
	const char *at = (const char *)info, *const end = at + len;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const size_t length = newline ? (size_t)(newline - at) : (size_t)(end - at);
		struct watched_descriptor watched;
		char line[LINE_SIZE];

		if (!newline)
			break; /* cut */
		if (length < sizeof(line)) {
			memcpy(line, at, length);
			line[length] = '\0';
			if (descriptor_parse_watched(line, &watched) && !vec_push(out, watched))
				return false;
		}
		at = newline + 1;
	}
	return true;
}
