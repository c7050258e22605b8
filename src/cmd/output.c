/* SPDX-License-Identifier: MIT */
#include "cmd/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "privilege/caller.h"

static int fail(const char *path, int code, struct err *err)
{
	return err_set(err, code, "%s: %s", path, strerror(code));
}

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* A name of a file that is open already: a link of the kernel's, or one in /dev that leads there. */
static bool names_open_file(const char *path)
{
	static const char *const whole[] = {"/dev/stdout", "/dev/stderr", NULL};
	static const char *const starts[] = {"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", NULL};
	const char *number;

	for (int i = 0; whole[i]; i++)
		if (strcmp(path, whole[i]) == 0)
			return true;
	for (int i = 0; starts[i]; i++) {
		number = path + strlen(starts[i]);
		if (starts_with(path, starts[i]) && *number && strspn(number, "0123456789") == strlen(number))
			return true;
	}
	return false;
}

/* Whether a file that was there before may be written to, by what it is and whose. */
static int check(int fd, const char *path, enum output_kind kind, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return fail(path, errno, err);
	if (!S_ISREG(st.st_mode))
		return 0;
	if (st.st_uid != geteuid() && st.st_uid != 0 && st.st_uid != caller_find().uid)
		return err_set(err, EPERM, "%s belongs to another user (uid %u): it is not written to; remove it, or name another file",
			       path, (unsigned)st.st_uid);
	if (st.st_nlink > 1)
		return err_set(err, EPERM, "%s is one of %u names of a file (hard links): it is not written to; name another file",
			       path, (unsigned)st.st_nlink);
	if (kind == OUTPUT_SNAPSHOT && st.st_mode & 077 && fchmod(fd, st.st_mode & 0700) < 0)
		return fail(path, errno, err);
	return 0;
}

/* A descriptor, or -errno. New or not: one call cannot tell, and a link must be followed by neither. */
static int open_file(const char *path, enum output_kind kind, bool *created)
{
	const int flags = O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC;
	const mode_t mode = kind == OUTPUT_SNAPSHOT || geteuid() == 0 ? 0600 : 0666;
	int fd = -1;

	*created = false;
	if (names_open_file(path)) {
		fd = open(path, flags);
		return fd < 0 ? -errno : fd;
	}
	for (int tries = 0; fd < 0 && tries < 3; tries++) { /* it may be removed in between */
		fd = open(path, flags | O_CREAT | O_EXCL, mode);
		*created = fd >= 0;
		if (fd < 0 && errno == EEXIST)
			fd = open(path, flags | O_NOFOLLOW);
		if (fd < 0 && errno != ENOENT)
			break;
	}
	return fd < 0 ? -errno : fd;
}

int output_open(struct output *output, const char *path, enum output_kind kind, struct err *err)
{
	_cleanup_(caller_end) struct caller_scope with_callers_rights = caller_begin_rights();
	_cleanup_close_ int fd = -1;
	bool created;
	int rc;

	*output = (struct output){.path = path};
	if (kind == OUTPUT_REPORT && (!path || strcmp(path, "-") == 0)) {
		output->file = stdout;
		return 0;
	}
	fd = open_file(path, kind, &created);
	if (fd == -ELOOP)
		return err_set(err, ELOOP, "%s is a symbolic link: it is not written through; name the file itself", path);
	if (fd < 0)
		return fail(path, -fd, err);
	rc = created || names_open_file(path) ? 0 : check(fd, path, kind, err);
	if (rc == 0 && created)
		rc = caller_give(fd) < 0 ? fail(path, EPERM, err) : 0;
	if (rc < 0)
		return rc;
	output->file = fdopen(fd, "a");
	if (!output->file)
		return fail(path, errno, err);
	output->created = created;
	steal_fd(&fd);
	return 0;
}

static bool is_regular(const struct output *output, struct stat *st)
{
	return output->file && output->file != stdout && fstat(fileno(output->file), st) == 0 && S_ISREG(st->st_mode);
}

int output_empty(const struct output *output, struct err *err)
{
	struct stat st;

	return !is_regular(output, &st) || ftruncate(fileno(output->file), 0) == 0 ? 0 : fail(output->path, errno, err);
}

int output_copy(const struct output *output, int fd, struct err *err)
{
	char buf[64 << 10];
	ssize_t got = 0;
	bool ok = true;

	while (ok && (got = read(fd, buf, sizeof(buf))) > 0)
		ok = fwrite(buf, 1, (size_t)got, output->file) == (size_t)got;
	if (!ok || got < 0 || fflush(output->file) != 0)
		return err_set(err, errno, "writing the output: %s", strerror(errno));
	return 0;
}

int output_close(struct output *output, struct err *err)
{
	FILE *file = steal_ptr(output->file);

	if (!file || file == stdout || fclose(file) == 0)
		return 0;
	return err_set(err, errno, "writing the output: %s", strerror(errno));
}

void output_withdraw(struct output *output)
{
	FILE *file = output->file;
	struct stat st, there;

	if (is_regular(output, &st)) {
		if (output->created && lstat(output->path, &there) == 0 && there.st_dev == st.st_dev && there.st_ino == st.st_ino)
			unlink(output->path);
		__fpurge(file); /* or it would be written when the stream is closed */
		(void)!ftruncate(fileno(file), 0);
	}
	output->file = NULL;
	if (file && file != stdout)
		fclose(file);
}
