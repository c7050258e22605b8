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

void deadlocks_deinit(struct deadlocks *deadlocks)
{
	for (size_t i = 0; i < deadlocks->len; i++)
		vec_deinit(&deadlocks->data[i]);
	vec_deinit(deadlocks);
}
