/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_JIT_FILES_H
#define STAKEOUT_TARGET_JIT_FILES_H

#include <stdbool.h>

#include "base/err.h"

/*
 * The files in which JIT compilers tell perf the names of their code, as the target sees them: jit-PID.dump, which the
 * compiler has mapped, and /tmp/perf-PID.map. A file counts only if root, the owner of the process or the user who runs us
 * owns it: others could put a file there to mislead. A saved snapshot has none: its process is gone.
 */

struct target;

enum jit_file_kind {
	JIT_FILE_DUMP,
	JIT_FILE_PERF_MAP,
};

struct jit_file {
	enum jit_file_kind kind;
	const char *path;       /* valid during the visit */
	int fd;                 /* belongs to the visitor; -1: it cannot be used, and `problem` tells why */
	const struct err *problem;
};

/* Returns true when no other file of this kind is to be looked for. */
typedef bool (*jit_file_fn)(void *arg, const struct jit_file *file);

/* Visits those that there are, dumps first: they know lines, too. */
void jit_files_visit(const struct target *target, jit_file_fn fn, void *arg);

#endif
