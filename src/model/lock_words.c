/* SPDX-License-Identifier: MIT */
#include "model/lock_words.h"

#include <linux/futex.h>

struct numbers {
	uint32_t *out;
	unsigned n;
};

static void add(struct numbers *numbers, uint32_t number)
{
	if (number && number <= INT32_MAX && number != INCONSISTENT)
		numbers->out[numbers->n++] = number;
}

/* It is in the futex itself where the kernel knows the owner, and where a bit of the value tells that somebody waits: robust mutexes, and musl's locks. */
unsigned lock_owner_numbers(uint32_t op, uint32_t value, const uint32_t words[WAIT_WORDS], uint32_t out[MAX_OWNER_NUMBERS])
{
	struct numbers numbers = {.out = out};

	op &= (uint32_t)FUTEX_CMD_MASK;
	if (op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2 || value & (FUTEX_WAITERS | MUSL_STREAM_AWAITED)) {
		add(&numbers, words[0] & FUTEX_TID_MASK);
	} else if (value == LOCKED_AND_AWAITED) {
		add(&numbers, words[MUTEX_OWNER]);
	} else if (value == WRITE_PHASE) {
		add(&numbers, words[RWLOCK_WRITER - RWLOCK_PHASE]);
		add(&numbers, words[RWLOCK_WRITER - RWLOCK_WRITERS]);
	}
	return numbers.n;
}
