/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "proc/process.h"

/* Reads a number, hexadecimal or decimal, and the `stop` behind it. False when they are not there. */
static bool number(const char **p, unsigned base, char stop, uint64_t *out)
{
	const char *s = *p;
	uint64_t value = 0;

	for (;; s++) {
		unsigned digit;

		if (*s >= '0' && *s <= '9')
			digit = (unsigned)(*s - '0');
		else if (base == 16 && *s >= 'a' && *s <= 'f')
			digit = (unsigned)(*s - 'a') + 10;
		else
			break;
		value = value * base + digit;
	}
	if (s == *p || *s != stop)
		return false;
	*p = s + 1;
	*out = value;
	return true;
}

/* "start-end perms offset major:minor inode          path"; `line` is NUL-terminated without its newline. */
static bool parse_line(const char *line, struct arena *arena, struct map_entry *e)
{
	static const char deleted[] = " (deleted)";
	const char *p = line;
	uint64_t major, minor;
	size_t len;

	*e = (struct map_entry){0};
	if (!number(&p, 16, '-', &e->start) || !number(&p, 16, ' ', &e->end) || strnlen(p, 5) < 5)
		return false;
	e->perms = (p[0] == 'r' ? MAP_PERM_READ : 0) | (p[1] == 'w' ? MAP_PERM_WRITE : 0) |
		   (p[2] == 'x' ? MAP_PERM_EXEC : 0) | (p[3] == 's' ? MAP_PERM_SHARED : 0);
	p += 5;
	if (!number(&p, 16, ' ', &e->offset) || !number(&p, 16, ':', &major) || !number(&p, 16, ' ', &minor))
		return false;
	e->dev_major = (uint32_t)major;
	e->dev_minor = (uint32_t)minor;
	e->inode = strtoull(p, NULL, 10);
	p += strspn(p, "0123456789");
	p += strspn(p, " ");
	len = strlen(p);
	if (e->inode && len > sizeof(deleted) - 1 && strcmp(p + len - (sizeof(deleted) - 1), deleted) == 0) {
		e->deleted = true;
		len -= sizeof(deleted) - 1;
	}
	e->path = arena_intern_n(arena, p, len);
	return e->path && e->start < e->end;
}

int process_maps(const struct process *process, struct arena *arena, struct err *err, struct maps *out)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int fd = openat(process->mm_fd, "maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0 && (errno == EACCES || errno == EPERM))
		return process_explain_denied(process, errno, "its memory map cannot be read", err);
	if (fd < 0)
		return err_set(err, errno, "process %d: maps: %s", (int)process->pid, strerror(errno));
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return err_set(err, ENOMEM, "out of memory");
	}
	setvbuf(f, NULL, _IOFBF, 128 * 1024);
	out->len = 0;
	while ((len = getline(&line, &size, f)) > 0) {
		struct map_entry e;

		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		if (parse_line(line, arena, &e) && !vec_push(out, e))
			return err_set(err, ENOMEM, "out of memory");
	}
	if (ferror(f))
		return err_set(err, errno, "process %d: maps: %s", (int)process->pid, strerror(errno));
	return 0;
}
