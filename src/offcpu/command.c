/* SPDX-License-Identifier: MIT */
#include "offcpu/command.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/vec.h"
#include "elf/image.h"
#include "target/rootfile.h"

enum { MAX_FILES = 64, MAX_SCRIPT_LINE = 256 };

struct files {
	VEC(char *) paths; /* each once */
	char *libraries;   /* the directory; NULL: not known */
};

DEFINE_CLEANUP(image, struct image *, image_destroy)

/* Takes the path over. */
static void add_file(struct files *files, char *path)
{
	for (size_t i = 0; path && i < files->paths.len; i++)
		if (strcmp(files->paths.data[i], path) == 0) {
			free(path);
			return;
		}
	if (!path || files->paths.len >= MAX_FILES || !vec_push(&files->paths, path))
		free(path);
}

static char *join(const char *directory, size_t len, const char *name)
{
	char *path = NULL;

	return asprintf(&path, "%.*s%s%s", (int)len, directory, len ? "/" : "", name) < 0 ? NULL : path;
}

static bool is_executable(const char *path)
{
	struct stat st;

	return rootfile_stat(-1, path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

/* NULL when it has none. */
static char *find_in_path(const char *name)
{
	const char *path = getenv("PATH");
	size_t len;

	if (strchr(name, '/'))
		return strdup(name);
	for (path = path ? path : "/bin:/usr/bin"; path; path = path[len] ? path + len + 1 : NULL) {
		char *file;

		len = strcspn(path, ":");
		file = join(path, len, name);
		if (file && is_executable(file))
			return file;
		free(file);
	}
	return NULL;
}

static void map_segments(int fd, const struct image *image)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const Elf64_Phdr *phdr;

	for (size_t i = 0; (phdr = image_segment(image, i)); i++) {
		uint64_t in_page = phdr->p_offset % page;

		if (phdr->p_type == PT_LOAD && (phdr->p_flags & PF_X) && phdr->p_filesz &&
		    phdr->p_filesz <= SIZE_MAX - page)
			mmap(NULL, phdr->p_filesz + in_page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
			     (off_t)(phdr->p_offset - in_page));
	}
}

/* The dynamic loader. Libraries usually lie next to it, wherever that is on this system. */
static void add_loader(struct files *files, struct image *image)
{
	struct span section = image_section(image, ".interp");
	struct cursor c = cursor_init(section.data, section.len);
	char name[PATH_MAX], *path = cursor_string(&c, name, sizeof(name)) ? rootfile_real_path(name) : NULL;

	if (!path)
		return;
	free(files->libraries);
	files->libraries = strndup(path, (size_t)(strrchr(path, '/') - path));
	add_file(files, path);
}

static void add_needed(struct files *files, struct image *image)
{
	struct span dynamic = image_section(image, ".dynamic"), names = image_section(image, ".dynstr");
	Elf64_Dyn entry;

	if (!image_is_64bit(image) || !dynamic.data || !names.data || !files->libraries)
		return;
	for (size_t at = 0; at + sizeof(entry) <= dynamic.len; at += sizeof(entry)) {
		struct cursor c = cursor_init(names.data, names.len);
		char name[NAME_MAX + 1];

		memcpy(&entry, dynamic.data + at, sizeof(entry));
		if (entry.d_tag == DT_NEEDED && cursor_seek(&c, entry.d_un.d_val) &&
		    cursor_string(&c, name, sizeof(name)) && !strchr(name, '/'))
			add_file(files, join(files->libraries, strlen(files->libraries), name));
	}
}

/* The interpreter that a script names. */
static void add_interpreter(struct files *files, const char *line)
{
	const char *name = line + strlen("#!");
	size_t len;

	name += strspn(name, " \t");
	len = strcspn(name, " \t\n");
	if (len)
		add_file(files, strndup(name, len));
}

static void map_file(struct files *files, const char *path)
{
	_cleanup_close_ int fd = rootfile_open(-1, path, NULL);
	_cleanup_(cleanup_image) struct image *image = NULL;
	char line[MAX_SCRIPT_LINE] = "";

	if (fd < 0)
		return;
	if (pread(fd, line, sizeof(line) - 1, 0) > 2 && memcmp(line, "#!", 2) == 0) {
		add_interpreter(files, line);
		return;
	}
	if (image_open_fd(dup(fd), NULL, &image) < 0)
		return;
	map_segments(fd, image);
	add_loader(files, image);
	add_needed(files, image);
}

void command_map_code(const char *name)
{
	struct files files = {0};

	add_file(&files, find_in_path(name));
	for (size_t i = 0; i < files.paths.len; i++) /* which grows meanwhile */
		map_file(&files, files.paths.data[i]);
	for (size_t i = 0; i < files.paths.len; i++)
		free(files.paths.data[i]);
	vec_deinit(&files.paths);
	free(files.libraries);
}
