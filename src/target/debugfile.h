/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_DEBUGFILE_H
#define STAKEOUT_TARGET_DEBUGFILE_H

#include <stdbool.h>

#include "base/err.h"
#include "elf/image.h"

/*
 * Finding the separate debug file of a stripped one. Every place is looked at twice: below the target's root, then
 * below our own, since a container rarely has debug packages and its host may.
 */

/* What is known of the file whose debug file is wanted. */
struct debugfile_query {
	struct image *image;
	const char *path; /* as the target sees it, for the debuglink; NULL: only the build-id is used */
	int root_fd;      /* the target's root directory, or -1 */
};

/*
 * By build-id in /usr/lib/debug/.build-id, then by .gnu_debuglink (next to the file, in .debug/ and under
 * /usr/lib/debug), checked by build-id, else by CRC. -ENOENT when there is none; *out belongs to the caller.
 */
int debugfile_find(const struct debugfile_query *query, struct err *err, struct image **out);

/*
 * The file that `debug` shares DWARF with (.gnu_debugaltlink, written by dwz). `path` is that of the file which holds
 * the DWARF, used where that was not found here: dwz links may be relative. -ENOENT when it names none, or none is
 * found.
 */
int debugfile_open_alt(struct image *debug, const char *path, int root_fd, struct err *err, struct image **out);

/*
 * Split DWARF. A .dwo file is named by the DWARF: `name`, relative to `dir` (may be NULL), where it was compiled; also
 * looked for beside the file at `path` (may be NULL), since builds get moved. The reader must check its id.
 */
int debugfile_open_dwo(const char *dir, const char *name, const char *path, int root_fd, struct image **out);

/* The .dwp file of all of them: PATH.dwp. */
int debugfile_open_dwp(const char *path, int root_fd, struct image **out);

/*
 * Where distributions link programs and their debug files by build-id, below a root. False when the text cannot be a
 * build-id: it may be foreign.
 */
enum build_id_place { BUILD_ID_PROGRAM, BUILD_ID_PROGRAM_DEBUG, BUILD_ID_DEBUG_FILE, BUILD_ID_PLACES };
enum { BUILD_ID_PATH = 256 };
bool build_id_path(enum build_id_place place, const char *id, char out[static BUILD_ID_PATH]);

#endif
