/* SPDX-License-Identifier: MIT */
#include "cmd/name_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmd/cache.h"
#include "cmd/parse.h"
#include "cmd/terminal.h"
#include "symbol/debuginfod.h"
#include "target/patience.h"

int name_options_take(struct name_options *naming, int opt, const char *value, struct err *err)
{
	uint64_t seconds, ns;

	switch (opt) {
	case NAME_NO_CACHE:
		naming->no_cache = true;
		return 1;
	case NAME_DEBUGINFOD:
		naming->use_debuginfod = true;
		naming->urls = value;
		return 1;
	case NAME_DEBUGINFOD_TIMEOUT:
		if (!parse_size(value, 1, 1u << 20, &seconds))
			return err_set(err, EINVAL, "--debuginfod-timeout takes a number of seconds, not '%s'", value);
		naming->timeout = (int)seconds;
		return 1;
	case NAME_PATIENCE:
		if (!parse_duration(value, NS_PER_S, &ns))
			return err_set(err, EINVAL, "--patience takes a time such as 500ms or 3s, not '%s'", value);
		patience_set(ns);
		return 1;
	default:
		return 0;
	}
}

void name_options_open(struct name_options *naming)
{
	const struct debuginfod_options debuginfod = {
		.urls = naming->urls,
		.timeout = naming->timeout,
		.progress = terminal_is_capable(STDERR_FILENO) ? download_line_show : NULL,
		.arg = &naming->line,
	};

	if (naming->opened)
		return;
	naming->opened = true;
	naming->line.out = stderr;
	if (!naming->no_cache && cache_open(&naming->cache_error, &naming->cache) < 0) {
		naming->cache = NULL;
		err_prefix(&naming->cache_error, "no cache");
	}
	naming->symbols.cache = naming->cache;
	if ((naming->use_debuginfod || debuginfod_is_wanted()) &&
	    debuginfod_create(&debuginfod, &naming->debuginfod_error, &naming->symbols.debuginfod) < 0) {
		naming->symbols.debuginfod = NULL;
		err_prefix(&naming->debuginfod_error, "debuginfod is not asked");
	}
}

void name_options_deinit(struct name_options *naming)
{
	debuginfod_destroy(naming->symbols.debuginfod);
	store_close(naming->cache);
	naming->symbols = (struct symbol_options){0};
	naming->cache = NULL;
}
