/* SPDX-License-Identifier: MIT */
#include "symbol/jit_names.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"
#include "symbol/source.h"
#include "symbol/source_jitdump.h"
#include "symbol/source_perf_map.h"
#include "target/jit_files.h"
#include "target/target.h"

struct jit_names {
	const struct target *target;
	struct notes *notes;
	bool opened;
	VEC(struct source) sources; /* the first one that knows an address wins */
};

struct jit_names *jit_names_create(const struct target *target, struct notes *notes)
{
	struct jit_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->target = target;
	names->notes = notes;
	return names;
}

void jit_names_destroy(struct jit_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->sources.len; i++)
		source_deinit(&names->sources.data[i]);
	vec_deinit(&names->sources);
	free(names);
}

static bool keep(struct jit_names *names, const struct source_ops *ops, void *data)
{
	struct source source = {.ops = ops, .data = data};

	if (vec_push(&names->sources, source))
		return true;
	source_deinit(&source);
	return false;
}

/* Add other kinds of sources here. */
static bool open_source(void *arg, const struct jit_file *file)
{
	struct jit_names *names = arg;
	struct perf_map_source *perf_map = NULL;
	struct jitdump_source *dump = NULL;
	struct err err = *file->problem;

	if (file->fd >= 0 && file->kind == JIT_FILE_DUMP && jitdump_source_create(file->fd, &err, &dump) == 0)
		keep(names, &jitdump_source_ops, dump);
	if (file->fd >= 0 && file->kind == JIT_FILE_PERF_MAP && perf_map_source_create(file->fd, &err, &perf_map) == 0)
		keep(names, &perf_map_source_ops, perf_map);
	if (err.code)
		notes_add(names->notes, "names of code made at run time: %s: %s%s", file->path, err.msg,
			  err.code == EACCES ? "; run as root, or as the file's owner" : "");
	return perf_map;
}

bool jit_names_find(struct jit_names *names, uint64_t address, struct calls *out)
{
	out->len = 0;
	if (!names->opened) {
		names->opened = true;
		jit_files_visit(names->target, open_source, names);
	}
	for (size_t i = 0; i < names->sources.len; i++)
		if (source_find(&names->sources.data[i], address, out))
			return true;
	out->len = 0;
	return false;
}
