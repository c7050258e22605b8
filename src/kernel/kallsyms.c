/* SPDX-License-Identifier: MIT */
#include "kernel/kallsyms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/debug.h"
#include "base/sorted.h"
#include "base/vec.h"
#include "privilege/broker.h"
#include "privilege/remedy.h"

enum {
	CHUNK = 256 << 10,
	MAX_FILE = 256 << 20,
	MAX_FUNCTION = 16 << 20, /* an address farther from the start of a symbol is not in it */
};

/* Both strings are offsets into the text; module 0 is the kernel proper. */
struct entry {
	uint64_t start;
	uint32_t name;
	uint32_t module;
};

struct kallsyms {
	VEC_FIELDS(struct entry); /* by rising address; equal ones in the order of the file */
	VEC(char) text;           /* the file, with a NUL after each name */
};

DEFINE_CLEANUP(kallsyms, struct kallsyms *, kallsyms_destroy)

static const char kernels_own[] = "/proc/kallsyms";

/* A parser has to ask for it: what the kernel shows depends on who opens it. */
static int open_file(const char *path)
{
	struct errand_reply reply;
	struct errand errand;
	int fd;

	if (broker_is_there() && strcmp(path, kernels_own) == 0) {
		errand_init(&errand, ERRAND_KALLSYMS, 0, 0, NULL);
		return broker_ask(&errand, &reply) < 0 ? reply.rc : reply.fd;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	debug_say(fd, "opening %s", path);
	return fd;
}

static void serve(void *ctx, const struct errand *errand, struct errand_reply *reply)
{
	reply->fd = open_file(kernels_own);
	reply->rc = reply->fd < 0 ? reply->fd : 0;
}

void kallsyms_errand_add(struct parser_job *job)
{
	job->services[ERRAND_KALLSYMS] = (struct service){.serve = serve};
}

static int read_whole(struct kallsyms *ks, const char *path, struct err *err)
{
	_cleanup_close_ int fd = open_file(path);
	ssize_t got = 1;

	if (fd < 0)
		return err_set(err, -fd, "%s cannot be opened: %s", path, strerror(-fd));
	while (got > 0) {
		if (ks->text.len >= MAX_FILE)
			return err_set(err, EFBIG, "%s is too large", path);
		if (!vec_reserve(&ks->text, ks->text.len + CHUNK))
			return err_set(err, ENOMEM, "out of memory");
		got = read(fd, ks->text.data + ks->text.len, ks->text.cap - ks->text.len - 1);
		if (got < 0)
			return err_set(err, errno, "%s cannot be read: %s", path, strerror(errno));
		ks->text.len += (size_t)got;
	}
	ks->text.data[ks->text.len] = '\0';
	return 0;
}

static const char *parse_hex(const char *p, uint64_t *out)
{
	uint64_t value = 0;

	for (;; p++) {
		if (*p >= '0' && *p <= '9')
			value = value << 4 | (uint64_t)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			value = value << 4 | (uint64_t)(*p - 'a' + 10);
		else
			break;
	}
	*out = value;
	return p;
}

/*
 * "ffffffff81000000 T name" and, for a module, "\t[module]"; `end` is where the newline was. False only when memory is
 * exhausted.
 */
static bool add_line(struct kallsyms *ks, const char *line, char *end, bool *visible)
{
	struct entry e = {0};
	const char *p = parse_hex(line, &e.start);
	char *tab;

	if (e.start)
		*visible = true;
	if (end - p < 4 || p[0] != ' ' || !strchr("tTwW", p[1]) || p[2] != ' ' || !e.start)
		return true;
	e.name = (uint32_t)(p + 3 - ks->text.data);
	tab = strchr(p, '\t');
	if (tab && end - tab > 3 && tab[1] == '[' && end[-1] == ']') {
		e.module = (uint32_t)(tab + 2 - ks->text.data);
		*tab = end[-1] = '\0';
	}
	return vec_push(ks, e);
}

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name); /* offsets are in the order of the file */
}

static void sort(struct kallsyms *ks)
{
	for (size_t i = 1; i < ks->len; i++) {
		if (compare(&ks->data[i - 1], &ks->data[i]) > 0) {
			qsort(ks->data, ks->len, sizeof(*ks->data), compare);
			return;
		}
	}
}

static int hidden(const char *path, struct err *err)
{
	char help[REMEDY_SIZE];

	return err_set(err, EPERM,
		       "%s shows no addresses: the kernel hides them (kernel.kptr_restrict) from processes without "
		       "CAP_SYSLOG: %s",
		       path, remedy(REFUSED_KALLSYMS, help));
}

int kallsyms_load(const char *path, struct err *err, struct kallsyms **out)
{
	_cleanup_(cleanup_kallsyms) struct kallsyms *ks = calloc(1, sizeof(*ks));
	bool visible = false;
	int ret;

	if (!ks)
		return err_set(err, ENOMEM, "out of memory");
	ret = read_whole(ks, path, err);
	if (ret < 0)
		return ret;
	for (char *line = ks->text.data, *end; *line; line = end + 1) {
		end = strchrnul(line, '\n');
		if (end == ks->text.data + ks->text.len)
			break; /* a line that was cut off */
		*end = '\0';
		if (!add_line(ks, line, end, &visible))
			return err_set(err, ENOMEM, "out of memory");
	}
	if (!visible)
		return hidden(path, err);
	sort(ks);
	*out = steal_ptr(ks);
	return 0;
}

void kallsyms_destroy(struct kallsyms *ks)
{
	if (!ks)
		return;
	vec_deinit(&ks->text);
	vec_deinit(ks);
	free(ks);
}

/*
 * Of several names of one address the first in the file is taken, as the kernel does when it prints a stack, so that
 * both sources of kernel stacks agree.
 */
bool kallsyms_find(const struct kallsyms *ks, uint64_t address, struct kernel_symbol *out)
{
	size_t upto = sorted_upto(ks->data, ks->len, .start, address);
	const struct entry *e;

	if (upto == 0)
		return false;
	while (upto > 1 && ks->data[upto - 2].start == ks->data[upto - 1].start)
		upto--;
	e = &ks->data[upto - 1];
	if (address - e->start >= MAX_FUNCTION)
		return false;
	*out = (struct kernel_symbol){
		.start = e->start,
		.name = ks->text.data + e->name,
		.module = e->module ? ks->text.data + e->module : NULL,
	};
	return true;
}

size_t kallsyms_len(const struct kallsyms *ks)
{
	return ks->len;
}

bool kernel_text_parse(const char *text, struct kernel_text *out)
{
	const char *p = text + strspn(text, " ");
	const char *open, *close;

	*out = (struct kernel_text){.name = p, .name_len = strcspn(p, "+ \t\n")};
	if (out->name_len == 0 || strncmp(p, "0x", 2) == 0)
		return false;
	p += out->name_len;
	if (strncmp(p, "+0x", 3) == 0) {
		const char *digits = p + 3;

		p = parse_hex(digits, &out->offset);
		out->has_offset = p > digits;
	}
	open = strchr(p, '[');
	close = open ? strchr(open, ']') : NULL;
	if (close && close > open + 1) {
		out->module = open + 1;
		out->module_len = (size_t)(close - open) - 1;
	}
	return true;
}
