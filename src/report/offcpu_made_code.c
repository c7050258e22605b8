/* SPDX-License-Identifier: MIT */
#include "report/offcpu_made_code.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "report/nameless.h"

/* Recognises "python3.12". A main thread that has renamed itself, such as node's "MainThread", is not recognised. */
static enum offcpu_maker maker_of(const char *name)
{
	static const char *const starts[OFFCPU_MAKER_OTHER] = {"node", "java", "python"};

	for (int i = 0; name && i < OFFCPU_MAKER_OTHER; i++)
		if (strncmp(name, starts[i], strlen(starts[i])) == 0)
			return i;
	return OFFCPU_MAKER_OTHER;
}

bool offcpu_find_makers(const struct offcpu_profile *profile, bool skip_idle, bool makers[OFFCPU_MAKERS])
{
	_cleanup_(u64map_deinit) struct u64map names = {0}; /* of main threads */
	bool created;

	memset(makers, 0, OFFCPU_MAKERS * sizeof(*makers));
	for (size_t i = 0; i < profile->threads.len; i++) {
		const struct offcpu_thread *thread = &profile->threads.data[i];
		uint64_t *name =
			thread->tid == thread->pid ? u64map_put(&names, (uint32_t)thread->pid, &created) : NULL;

		if (name)
			*name = (uintptr_t)thread->name;
		else if (thread->tid == thread->pid)
			return false;
	}
	for (size_t i = 0; i < profile->rows.len; i++) {
		const struct offcpu_row *row = &profile->rows.data[i];
		const uint64_t *name = u64map_find(&names, (uint32_t)row->pid);

		if ((row->idle && skip_idle) || !nameless_code_is_in(row->user))
			continue;
		makers[maker_of(name ? (const char *)(uintptr_t)*name : row->thread_name)] = true;
	}
	return true;
}

const char *offcpu_maker_help(enum offcpu_maker maker)
{
	static const char *const help[OFFCPU_MAKERS] = {
		[OFFCPU_MAKER_NODE] = "node names it when started with --perf-basic-prof",
		[OFFCPU_MAKER_JAVA] =
			"java names it with `jcmd PID Compiler.perfmap' during the recording, with an agent "
			"that writes a perf map, or, if it ends first, when started with "
			"-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
		[OFFCPU_MAKER_PYTHON] = "python names it from 3.12 on, when started with -X perf",
		[OFFCPU_MAKER_OTHER] = ("some runtimes name it when asked to, such as node with --perf-basic-prof; "
					"see CODE MADE AT RUN TIME in the manual"),
	};

	return help[maker];
}
