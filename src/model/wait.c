/* SPDX-License-Identifier: MIT */
#include "model/wait.h"

#include <string.h>

const char *wait_kind_name(enum wait_kind kind)
{
	static const char *const names[WAIT_KIND_COUNT] = {
		[WAIT_MUTEX] = "mutex",	        [WAIT_READ_LOCK] = "read_lock", [WAIT_WRITE_LOCK] = "write_lock",
		[WAIT_CONDITION] = "condition", [WAIT_SEMAPHORE] = "semaphore", [WAIT_BARRIER] = "barrier",
		[WAIT_ONCE] = "once",	        [WAIT_STREAM] = "stream",	[WAIT_JOIN] = "join",
		[WAIT_FUTURE] = "future",       [WAIT_PARKED] = "parked",	[WAIT_FUTEX] = "futex",
		[WAIT_READ] = "read",		[WAIT_WRITE] = "write",
		[WAIT_SYNC] = "sync",	        [WAIT_ACCEPT] = "accept",	[WAIT_CONNECT] = "connect",
		[WAIT_EVENTS] = "events",       [WAIT_OPEN] = "open",		[WAIT_CONTROL] = "control",
		[WAIT_FILE_LOCK] = "file_lock",
	};

	return names[kind];
}

enum wait_kind wait_kind_named(const char *name)
{
	for (enum wait_kind kind = WAIT_NOTHING + 1; kind < WAIT_KIND_COUNT; kind++)
		if (strcmp(wait_kind_name(kind), name) == 0)
			return kind;
	return WAIT_NOTHING;
}

const char *wait_holder_name(enum wait_holder holder)
{
	static const char *const names[HOLDER_COUNT] = {
		[HOLDER_NOT_RECORDED] = "not_recorded", [HOLDER_NONE] = "none",	  [HOLDER_THREAD] = "thread",
		[HOLDER_READERS] = "readers",	        [HOLDER_ENDED] = "ended",
	};

	return names[holder];
}
