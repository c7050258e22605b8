/* SPDX-License-Identifier: MIT */
#include "model/deadlock.h"

const struct deadlock *deadlocks_with(const struct deadlocks *deadlocks, const struct trace_thread *thread)
{
	for (size_t i = 0; i < deadlocks->len; i++)
		for (size_t k = 0; k < deadlocks->data[i].len; k++)
			if (deadlocks->data[i].data[k] == thread)
				return &deadlocks->data[i];
	return NULL;
}

static bool has(const struct deadlocks *deadlocks, bool likely)
{
	for (size_t i = 0; i < deadlocks->len; i++)
		if (deadlocks->data[i].likely == likely)
			return true;
	return false;
}

bool deadlocks_has_proved(const struct deadlocks *deadlocks)
{
	return has(deadlocks, false);
}

bool deadlocks_has_likely(const struct deadlocks *deadlocks)
{
	return has(deadlocks, true);
}

void deadlocks_deinit(struct deadlocks *deadlocks)
{
	for (size_t i = 0; i < deadlocks->len; i++)
		vec_deinit(&deadlocks->data[i]);
	vec_deinit(deadlocks);
}

const char *deadlocks_doubt(const struct deadlocks *deadlocks)
{
	static const char *const sentences[] = {
		[DOUBT_UNPROVED] = "Some threads seem to wait for each other, but not all of it could be proved: look again. If they still do, it is most likely a deadlock.",
		[DOUBT_LIMITS] = "Some threads wait for each other, but on sockets that may have a time limit of their own (SO_RCVTIMEO, SO_SNDTIMEO).",
		[DOUBT_HANDLERS] = "Some threads wait for each other, unless a signal handler of one of their processes, or an io_uring, ends that.",
		[DOUBT_STRANGERS] = "Some threads wait for each other, and nobody is known who could end that; but not all processes could be looked at.",
		[DOUBT_BOTH] = "Some threads wait for each other, unless a signal handler, an io_uring, or a process that could not be looked at ends that.",
	};

	return deadlocks->maybe_more ? sentences[deadlocks->doubt] : NULL;
}
