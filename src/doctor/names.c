/* SPDX-License-Identifier: MIT */
/* Whether addresses can get names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "doctor/check.h"
#include "kernel/kallsyms.h"
#include "symbol/debuginfod.h"

static int try_kallsyms(struct doctor *doctor, const char **how, struct err *err)
{
	struct kallsyms *names;
	int rc = kallsyms_load("/proc/kallsyms", err, &names);

	if (rc < 0)
		return rc;
	*how = arena_printf(doctor->arena, "%zu functions", kallsyms_len(names));
	kallsyms_destroy(names);
	return 0;
}

static int try_cache(struct doctor *doctor, const char **how, struct err *err)
{
	return store_open(NULL, STORE_DEFAULT_LIMIT, err, &doctor->cache);
}

static int try_debuginfod(struct doctor *doctor, const char **how, struct err *err)
{
	int rc;

	if (!debuginfod_is_wanted())
		return err_set(err, ENOENT, "no server is named: DEBUGINFOD_URLS is not set");
	rc = debuginfod_try(err);
	if (rc < 0)
		return rc;
	*how = getenv("DEBUGINFOD_URLS");
	return 0;
}

static const char *remedy_cache(struct doctor *doctor, int code)
{
	return "set XDG_CACHE_HOME to a directory of your own";
}

static const char *remedy_debuginfod(struct doctor *doctor, int code)
{
	if (!library_loading_built_in())
		return "use a stakeout that is not one static file, or get what is missing with `debuginfod-find debuginfo BUILD-ID`";
	return debuginfod_is_wanted() ? "install libdebuginfod1" :
		"export DEBUGINFOD_URLS=https://debuginfod.elfutils.org, and give --debuginfod";
}

static const char group[] = "names";

static const struct check list[] = {
	{
		.group = group,
		.name = "kallsyms",
		.about = "names of kernel functions (/proc/kallsyms)",
		.costs = "kernel frames are addresses, unless BPF names them",
		.attempt = try_kallsyms,
		.refused = REFUSED_KALLSYMS,
		.better = "snapshot_bpf",
	},
	{
		.group = group,
		.name = "cache",
		.about = "what was read of symbols is kept for the next time",
		.costs = "every run reads the symbols of large programs anew",
		.attempt = try_cache,
		.remedy = remedy_cache,
	},
	{
		.group = group,
		.name = "debuginfod",
		.about = "debug info that is not installed comes from servers (debuginfod)",
		.costs = "lines and inlined calls only where a debug package is installed",
		.attempt = try_debuginfod,
		.remedy = remedy_debuginfod,
		.is_extra = true,
	},
};

const struct checks name_checks = {list, sizeof(list) / sizeof(list[0])};
