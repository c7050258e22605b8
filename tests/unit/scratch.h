/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_SCRATCH_H
#define STAKEOUT_TESTS_SCRATCH_H

#include "cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elf/image.h"

/* A directory for one test, with the files that it builds there. */
struct scratch {
	char dir[64];
};

static inline void scratch_init(struct scratch *s)
{
	strcpy(s->dir, "/tmp/stakeout-test-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
}

/* Runs a shell command in the directory; it must succeed. */
static inline void __attribute__((format(printf, 2, 3))) scratch_run(const struct scratch *s, const char *fmt, ...)
{
	char command[4096];
	va_list ap;
	int len = snprintf(command, sizeof(command), "cd %s && ", s->dir);

	va_start(ap, fmt);
	vsnprintf(command + len, sizeof(command) - (size_t)len, fmt, ap);
	va_end(ap);
	if (system(command) != 0)
		fail_msg("command failed: %s", command);
}

static inline void scratch_deinit(struct scratch *s)
{
	scratch_run(s, "rm -rf %s", s->dir);
}

static inline void scratch_write(const struct scratch *s, const char *name, const void *data, size_t len)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static inline void scratch_text(const struct scratch *s, const char *name, const char *text)
{
	scratch_write(s, name, text, strlen(text));
}

/* The whole file, for free(). */
static inline char *scratch_read(const struct scratch *s, const char *name, size_t *len)
{
	char path[256];
	char *data;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	f = fopen(path, "r");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	*len = (size_t)ftell(f);
	rewind(f);
	data = malloc(*len + 1);
	assert_int_equal(fread(data, 1, *len, f), *len);
	fclose(f);
	return data;
}

static inline int scratch_open(const struct scratch *s, const char *name, int flags)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	return open(path, flags | O_CLOEXEC);
}

static inline struct image *scratch_image(const struct scratch *s, const char *name)
{
	struct image *image = NULL;

	assert_int_equal(image_open_fd(scratch_open(s, name, O_RDONLY), NULL, &image), 0);
	return image;
}

/* Ends the test as skipped, with its reason, unless the program is there. */
static inline void scratch_needs(const char *program)
{
	char probe[128];

	snprintf(probe, sizeof(probe), "command -v %s >/dev/null", program);
	if (system(probe) != 0) {
		print_message("skipped: %s is not installed\n", program);
		skip();
	}
}

#endif
