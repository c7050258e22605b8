/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_SUBJECT_H
#define STAKEOUT_SYMBOL_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "proc/process.h"
#include "target/modules.h"
#include "target/target.h"
#include "symbol/debuginfod.h"
#include "symbol/jit_names.h"

/* What addresses that are to be named belong to: a file, or a running process. */
struct subject;

enum { SUBJECT_MAX_BUILD_ID = 128 }; /* hex digits */

/* Checks a build-id that somebody has typed, and makes it lower case. */
int subject_parse_build_id(const char *text, char out[SUBJECT_MAX_BUILD_ID + 1], struct err *err);

int subject_open_file(const char *path, struct err *err, struct subject **out);

/*
 * The file with that build-id (hex, lower case), where packages install files by build-id, else from debuginfod servers
 * (may be NULL).
 */
int subject_open_build_id(const char *id, struct debuginfod *debuginfod, struct err *err, struct subject **out);

/* The process as its memory map is now; it is not stopped. */
int subject_open_process(struct process_id id, struct err *err, struct subject **out);

void subject_destroy(struct subject *subject);

/* From now on addresses count from the start of that section. Only for a file. */
int subject_use_section(struct subject *subject, const char *name, struct err *err);

/* How wide an address is written, and the address with what is beyond that width cut off. */
unsigned subject_digits(const struct subject *subject);
uint64_t subject_clip(const struct subject *subject, uint64_t address);

/* The module at an address, and the address in the file's own terms; NULL: no file is there. */
struct module *subject_find(struct subject *subject, uint64_t address, uint64_t *vaddr);

/* Only for a process. What was learnt of its files goes to the cache with the second. */
const struct target *subject_target(const struct subject *subject);
void subject_keep_names(struct subject *subject);

/* Names of code that is in no file; NULL for a file. */
struct jit_names *subject_jit_names(struct subject *subject);

#endif
