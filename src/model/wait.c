/* SPDX-License-Identifier: MIT */
#include "model/wait.h"

const char *wait_kind_name(enum wait_kind kind)
{
	static const char *const names[WAIT_KIND_COUNT] = {
		[WAIT_MUTEX] = "mutex",	        [WAIT_READ_LOCK] = "read_lock", [WAIT_WRITE_LOCK] = "write_lock",
		[WAIT_CONDITION] = "condition", [WAIT_SEMAPHORE] = "semaphore", [WAIT_BARRIER] = "barrier",
		[WAIT_ONCE] = "once",	        [WAIT_STREAM] = "stream",	[WAIT_JOIN] = "join",
		[WAIT_FUTURE] = "future",       [WAIT_PARKED] = "parked",	[WAIT_FUTEX] = "futex",
	};

	return names[kind];
}

const char *wait_holder_name(enum wait_holder holder)
{
	static const char *const names[HOLDER_COUNT] = {
		[HOLDER_NOT_RECORDED] = "not_recorded", [HOLDER_NONE] = "none",	  [HOLDER_THREAD] = "thread",
		[HOLDER_READERS] = "readers",	        [HOLDER_ENDED] = "ended",
	};

	return names[holder];
}
