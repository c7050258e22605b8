/* SPDX-License-Identifier: MIT */
#include "symbol/subject.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "target/debugfile.h"
#include "target/rootfile.h"
#include "target/target.h"

struct subject {
	struct module *file; /* NULL for a process */
	bool has_section;
	uint64_t section_start;
	uint64_t section_size;
	struct target *process;
	struct jit_names *jit;
};

DEFINE_CLEANUP(subject, struct subject *, subject_destroy)
DEFINE_CLEANUP(image, struct image *, image_destroy)

void subject_destroy(struct subject *subject)
{
	if (!subject)
		return;
	module_destroy(subject->file);
	jit_names_destroy(subject->jit);
	target_close(subject->process);
	free(subject);
}

int subject_parse_build_id(const char *text, char out[SUBJECT_MAX_BUILD_ID + 1], struct err *err)
{
	enum { MIN_BUILD_ID = 4 };
	size_t len = strlen(text);

	if (len < MIN_BUILD_ID || len > SUBJECT_MAX_BUILD_ID || len % 2 ||
	    strspn(text, "0123456789abcdefABCDEF") != len)
		return err_set(err, EINVAL, "'%s' is not a build-id", text);
	for (size_t i = 0; i <= len; i++)
		out[i] = (char)tolower((unsigned char)text[i]);
	return 0;
}

static int open_image(const char *path, struct err *err, struct image **out)
{
	_cleanup_(cleanup_image) struct image *image = NULL;
	int rc = rootfile_open_image(-1, path, err, &image);

	if (rc < 0)
		return err_prefix(err, "%s", path);
	if (image_type(image) == ET_REL) /* it has relocations in place of addresses */
		return err_set(err, ENOEXEC, "%s: a relocatable object, which has no addresses before it is linked",
			       path);
	*out = steal_ptr(image);
	return 0;
}

/* Debug files are looked for beside the file itself, not beside a link to it. */
static int use_image(struct image *image, const char *path, struct err *err, struct subject **out)
{
	_cleanup_(cleanup_subject) struct subject *subject = calloc(1, sizeof(*subject));
	_cleanup_free_ char *real = rootfile_real_path(path);
	int rc;

	if (!subject) {
		image_destroy(image);
		return err_set(err, ENOMEM, "out of memory");
	}
	rc = module_create(image, real ? real : path, err, &subject->file);
	if (rc == 0)
		*out = steal_ptr(subject);
	return rc;
}

int subject_open_file(const char *path, struct err *err, struct subject **out)
{
	struct image *image = NULL;
	int rc = open_image(path, err, &image);

	return rc < 0 ? rc : use_image(image, path, err, out);
}

/* Its debug file has all that the program has, for naming. */
static int download(struct debuginfod *debuginfod, const char *id, struct err *err, struct subject **out)
{
	_cleanup_(cleanup_image) struct image *image = NULL;
	int fd = debuginfod_find(debuginfod, DEBUGINFOD_DEBUGINFO, id, id, err);
	int rc;

	if (fd < 0)
		fd = debuginfod_find(debuginfod, DEBUGINFOD_EXECUTABLE, id, id, err);
	if (fd < 0)
		return fd;
	rc = image_open_fd(fd, err, &image);
	if (rc < 0)
		return rc;
	if (!image_build_id(image) || strcmp(image_build_id(image), id) != 0)
		return err_set(err, ESTALE, "the debuginfod server gave another file than that with build-id %s", id);
	return use_image(steal_ptr(image), id, err, out);
}

/* The program or library before its debug file: that is found from it, and not the other way round. */
int subject_open_build_id(const char *id, struct debuginfod *debuginfod, struct err *err, struct subject **out)
{
	for (int place = 0; place < BUILD_ID_PLACES; place++) {
		_cleanup_(cleanup_image) struct image *image = NULL;
		char path[BUILD_ID_PATH];

		if (!build_id_path((enum build_id_place)place, id, path) || open_image(path, NULL, &image) < 0)
			continue;
		if (image_build_id(image) && strcmp(image_build_id(image), id) == 0)
			return use_image(steal_ptr(image), path, err, out);
	}
	if (debuginfod && download(debuginfod, id, err, out) == 0)
		return 0;
	if (debuginfod)
		return err_prefix(err, "build-id %s", id);
	return err_set(err, ENOENT,
		       "no file with build-id %s is in /usr/lib/.build-id or /usr/lib/debug/.build-id; install its "
		       "debug package, or ask a server with --debuginfod",
		       id);
}

int subject_open_process(struct process_id id, struct err *err, struct subject **out)
{
	_cleanup_(cleanup_subject) struct subject *subject = calloc(1, sizeof(*subject));
	int rc;

	if (!subject)
		return err_set(err, ENOMEM, "out of memory");
	rc = target_open_whole(id.pid, NULL, err, &subject->process);
	if (rc == 0)
		rc = process_check_id(&subject->process->process, id, err);
	if (rc == 0 && !(subject->jit = jit_names_create(subject->process, modules_notes(subject->process->modules))))
		rc = err_set(err, ENOMEM, "out of memory");
	if (rc == 0)
		*out = steal_ptr(subject);
	return rc;
}

int subject_use_section(struct subject *subject, const char *name, struct err *err)
{
	/* Not image_section(): in a debug file the sections of code have no bytes. */
	const Elf64_Shdr *shdr = image_find_shdr(subject->file->image, name);

	if (!shdr)
		return err_set(err, ENOENT, "%s: it has no section %s", subject->file->info.path, name);
	subject->has_section = true;
	subject->section_start = shdr->sh_addr;
	subject->section_size = shdr->sh_flags & SHF_ALLOC ? shdr->sh_size : 0; /* what is not loaded has no addresses */
	return 0;
}

static bool is_32bit(const struct subject *subject)
{
	return subject->file && !image_is_64bit(subject->file->image);
}

unsigned subject_digits(const struct subject *subject)
{
	return is_32bit(subject) ? 8 : 16;
}

uint64_t subject_clip(const struct subject *subject, uint64_t address)
{
	return is_32bit(subject) ? (uint32_t)address : address;
}

struct module *subject_find(struct subject *subject, uint64_t address, uint64_t *vaddr)
{
	if (!subject->file)
		return modules_find(subject->process->modules, address, vaddr);
	if (subject->has_section && address >= subject->section_size)
		return NULL;
	*vaddr = subject->section_start + address;
	return subject->file;
}

const struct target *subject_target(const struct subject *subject)
{
	return subject->process;
}

void subject_keep_names(struct subject *subject)
{
	modules_keep_symbols(subject->process->modules);
}

struct jit_names *subject_jit_names(struct subject *subject)
{
	return subject->jit;
}
