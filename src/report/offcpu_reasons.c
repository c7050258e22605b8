/* SPDX-License-Identifier: MIT */
#include "report/offcpu_reasons.h"

#include <stdlib.h>
#include <string.h>

#include "base/chains.h"
#include "base/cleanup.h"
#include "base/hash.h"

/* The length of the next piece to compare, up to and including the "0x" of an address. */
static size_t piece(const char *s)
{
	const char *address = strstr(s, "0x");

	return address ? (size_t)(address - s) + 2 : strlen(s);
}

/* The length of the digits of an address, which are not compared. */
static size_t digits(const char *s)
{
	return strspn(s, "0123456789abcdef");
}

bool offcpu_same_reason(const char *a, const char *b)
{
	if (a == b || !a || !b)
		return a == b;
	while (*a && *b) {
		size_t n = piece(a);

		if (piece(b) != n || memcmp(a, b, n) != 0)
			return false;
		a += n;
		b += n;
		a += digits(a);
		b += digits(b);
	}
	return *a == *b;
}

uint64_t offcpu_hash_reason(uint64_t hash, const char *reason)
{
	if (!reason)
		return hash_u64(hash, 0);
	for (size_t n; *reason; reason += n + digits(reason + n)) {
		n = piece(reason);
		hash = hash_bytes(hash, reason, n);
	}
	return hash;
}

static struct offcpu_reason *find(struct offcpu_reasons *reasons, struct chains *chains, enum offcpu_stack_kind kind,
				  const char *words)
{
	uint64_t hash = offcpu_hash_reason(hash_u64(HASH_SEED, kind), words);

	for (size_t i = chains_first(chains, hash); i; i = chains_next(chains, i))
		if (reasons->data[i - 1].kind == kind && offcpu_same_reason(reasons->data[i - 1].words, words))
			return &reasons->data[i - 1];
	if (!vec_push(reasons, (struct offcpu_reason){.kind = kind, .words = words}) || !chains_add(chains, hash))
		return NULL;
	return &reasons->data[reasons->len - 1];
}

static bool add(struct offcpu_reasons *reasons, struct chains *chains, enum offcpu_stack_kind kind, const char *words,
		const struct offcpu_sum *sum)
{
	struct offcpu_reason *reason;

	if (!words)
		return true;
	reason = find(reasons, chains, kind, words);
	if (!reason)
		return false;
	reason->waits += sum->count;
	reason->total_ns += sum->total_ns;
	return true;
}

static int by_frequency(const void *a, const void *b)
{
	const struct offcpu_reason *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->waits != y->waits)
		return x->waits < y->waits ? 1 : -1;
	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return strcmp(x->words, y->words);
}

bool offcpu_reasons_find(struct offcpu_reasons *reasons, const struct offcpu_profile *profile)
{
	_cleanup_(chains_deinit) struct chains chains = {0};
	bool ok = true;

	for (size_t i = 0; ok && i < profile->rows.len; i++) {
		const struct offcpu_row *row = &profile->rows.data[i];

		ok = add(reasons, &chains, OFFCPU_USER_STACK, row->user_error, &row->sum) &&
		     add(reasons, &chains, OFFCPU_KERNEL_STACK, row->kernel_error, &row->sum);
		if (ok && row->has_waker)
			ok = add(reasons, &chains, OFFCPU_WAKER_USER_STACK, row->waker.user_error, &row->sum) &&
			     add(reasons, &chains, OFFCPU_WAKER_KERNEL_STACK, row->waker.kernel_error, &row->sum);
	}
	if (reasons->len)
		qsort(reasons->data, reasons->len, sizeof(*reasons->data), by_frequency);
	return ok;
}
