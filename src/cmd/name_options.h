/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_CMD_NAME_OPTIONS_H
#define STAKEOUT_CMD_NAME_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>

#include "base/err.h"
#include "cmd/download_line.h"
#include "symbol/module_symbols.h"

/* Where names come from besides the files themselves: what all commands that show names have in common. */
struct name_options {
	bool no_cache;
	bool use_debuginfod;
	const char *urls; /* of --debuginfod=URLS, or NULL */
	int timeout;      /* seconds, or 0 */

	/* Of name_options_open(). */
	bool opened;
	struct symbol_options symbols;
	struct download_line line;
	struct store *cache;
	struct err cache_error; /* code 0: there is a cache, or none was wanted; else a note for --verbose */
	struct err debuginfod_error; /* likewise, for everybody */
};

enum {
	NAME_OPTION_FIRST = 2000,
	NAME_NO_CACHE,
	NAME_DEBUGINFOD,
	NAME_DEBUGINFOD_TIMEOUT,
	NAME_PATIENCE,
};

/* clang-format off */
#define NAME_LONG_OPTIONS                                                     \
	{"no-cache", no_argument, NULL, NAME_NO_CACHE},                       \
	{"debuginfod", optional_argument, NULL, NAME_DEBUGINFOD},             \
	{"debuginfod-timeout", required_argument, NULL, NAME_DEBUGINFOD_TIMEOUT}, \
	{"patience", required_argument, NULL, NAME_PATIENCE}
/* clang-format on */

#define NAME_HELP                                                                                                      \
	"      --no-cache         neither use nor keep what was learnt of programs in other runs\n"                    \
	"      --debuginfod[=URLS]  ask debuginfod servers for debug info; also when DEBUGINFOD_URLS is set\n"         \
	"      --debuginfod-timeout SECONDS  give up when nothing came for so long\n"                                  \
	"      --patience TIME    how long to wait, in all, for memory and files that somebody else\n"                 \
	"                         delivers (2s)\n"

/* Takes one option. 1: taken, 0: not one of these, -EINVAL: its value is wrong (said in err). */
int name_options_take(struct name_options *naming, int opt, const char *value, struct err *err);

/* Opens cache and servers, once. What cannot be had is missing in `symbols`, and why is in the errors. */
void name_options_open(struct name_options *naming);

void name_options_deinit(struct name_options *naming);

#endif
