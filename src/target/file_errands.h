/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_FILE_ERRANDS_H
#define STAKEOUT_TARGET_FILE_ERRANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "privilege/broker.h"
#include "target/jit_files.h"
#include "target/roots.h"
#include "target/target.h"

/*
 * Files for a parser (privilege/broker.h). It may have what can hold names of code: ELF files, what JIT compilers leave for
 * perf, and what says which distribution it is; but nothing of /proc or /sys, and nothing else that root could read.
 */

/* What a broker serves with: the processes that its parser works on, */
struct file_scope {
	const struct target *const *targets;
	size_t n;
	struct roots *roots; /* of other processes; may be NULL */
};

void file_errands_add(struct parser_job *job, const struct file_scope *scope);

/* In the parser, in place of rootfile_open(), rootfile_stat(), rootfile_real_path() and jit_files_visit(). */
int file_errand_open(int root_fd, const char *path, bool itself, struct stat *st);
int file_errand_stat(int root_fd, const char *path, struct stat *st);
char *file_errand_real_path(const char *path);
void file_errand_visit_jit(const struct target *target, jit_file_fn fn, void *arg);

#endif
