/* SPDX-License-Identifier: MIT */
#include "cmd/naming.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cache.h"
#include "cmd/view.h"
#include "symbol/debuginfod.h"

int naming_option(struct naming *naming, int opt, const char *value, struct err *err)
{
	uint64_t seconds;

	switch (opt) {
	case NAMING_NO_CACHE:
		naming->no_cache = true;
		return 1;
	case NAMING_DEBUGINFOD:
		naming->use_debuginfod = true;
		naming->urls = value;
		return 1;
	case NAMING_DEBUGINFOD_TIMEOUT:
		if (!parse_size(value, 1, 1u << 20, &seconds))
			return err_set(err, EINVAL, "--debuginfod-timeout takes a number of seconds, not '%s'", value);
		naming->timeout = (int)seconds;
		return 1;
	default:
		return 0;
	}
}

/* One line that is written over and over, and taken away at the end. */
static void show_progress(void *arg, const char *label, uint64_t bytes, uint64_t total)
{
	const double mega = 1 << 20;
	const char *name = label ? strrchr(label, '/') : NULL;

	if (!label)
		fputs("\r\033[K", stderr);
	else if (total)
		fprintf(stderr, "\r\033[Kdownloading debug info of %.60s: %.1f of %.1f MiB", name ? name + 1 : label,
			(double)bytes / mega, (double)total / mega);
	else
		fprintf(stderr, "\r\033[Kdownloading debug info of %.60s: %.1f MiB", name ? name + 1 : label,
			(double)bytes / mega);
	fflush(stderr);
}

void naming_open(struct naming *naming)
{
	const struct debuginfod_options debuginfod = {
		.urls = naming->urls,
		.timeout = naming->timeout,
		.progress = isatty(STDERR_FILENO) ? show_progress : NULL,
	};

	if (naming->opened)
		return;
	naming->opened = true;
	if (!naming->no_cache && cache_open(&naming->cache_error, &naming->cache) < 0)
		naming->cache = NULL;
	naming->symbols.cache = naming->cache;
	if ((naming->use_debuginfod || debuginfod_is_wanted()) &&
	    debuginfod_create(&debuginfod, &naming->debuginfod_error, &naming->symbols.debuginfod) < 0)
		naming->symbols.debuginfod = NULL;
}

void naming_deinit(struct naming *naming)
{
	debuginfod_destroy(naming->symbols.debuginfod);
	store_close(naming->cache);
	naming->symbols = (struct symbol_options){0};
	naming->cache = NULL;
}
