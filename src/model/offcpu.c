/* SPDX-License-Identifier: MIT */
#include "model/offcpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

void offcpu_profile_deinit(struct offcpu_profile *profile)
{
	vec_deinit(&profile->threads);
	vec_deinit(&profile->rows);
	vec_deinit(&profile->processes);
	vec_deinit(&profile->members);
	vec_deinit(&profile->lengths);
	vec_deinit(&profile->losses);
	vec_deinit(&profile->notes);
	vec_deinit(&profile->looks);
}

uint64_t offcpu_process_key(pid_t pid, uint64_t start_ns)
{
	return hash_u64(hash_u64(HASH_SEED, (uint32_t)pid), start_ns);
}

bool offcpu_profile_add_thread(struct offcpu_profile *profile, const struct offcpu_thread *thread)
{
	offcpu_sum_merge(&profile->total, &thread->sum);
	return vec_push(&profile->threads, *thread);
}

bool offcpu_profile_add_row(struct offcpu_profile *profile, struct offcpu_row row)
{
	return vec_push(&profile->rows, row);
}

static int compare_processes(const void *a, const void *b)
{
	const struct offcpu_identity *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

void offcpu_profile_sort_processes(struct offcpu_profile *profile)
{
	if (profile->processes.len)
		qsort(profile->processes.data, profile->processes.len, sizeof(*profile->processes.data), compare_processes);
}

static int by_falling_total(const void *a, const void *b)
{
	const struct offcpu_member *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

void offcpu_sort_members(struct offcpu_member *members, size_t n)
{
	if (n)
		qsort(members, n, sizeof(*members), by_falling_total);
}

const struct offcpu_identity *offcpu_profile_process(const struct offcpu_profile *profile, pid_t pid, uint64_t start_ns)
{
	const struct offcpu_identity key = {.pid = pid, .start_ns = start_ns};

	if (!profile->processes.len)
		return NULL;
	return bsearch(&key, profile->processes.data, profile->processes.len, sizeof(key), compare_processes);
}

void offcpu_lengths_deinit(struct offcpu_lengths *lengths)
{
	vec_deinit(lengths);
}

bool offcpu_lengths_add(struct offcpu_lengths *lengths, uint64_t ns, uint64_t count)
{
	size_t at = 0, end = lengths->len;

	while (at < end) {
		size_t middle = at + (end - at) / 2;

		if (lengths->data[middle].ns < ns)
			at = middle + 1;
		else
			end = middle;
	}
	if (at < lengths->len && lengths->data[at].ns == ns) {
		lengths->data[at].count += count;
		return true;
	}
	if (!vec_reserve(lengths, lengths->len + 1))
		return false;
	memmove(lengths->data + at + 1, lengths->data + at, (lengths->len - at) * sizeof(*lengths->data));
	lengths->data[at] = (struct offcpu_length){ns, count};
	lengths->len++;
	return true;
}

size_t offcpu_profile_add_lengths(struct offcpu_profile *profile, const struct offcpu_lengths *lengths)
{
	const size_t number = profile->lengths.len + 1;

	return vec_push(&profile->lengths, (struct offcpu_lengths_link){lengths, number}) ? number : 0;
}

void offcpu_profile_join_lengths(struct offcpu_profile *profile, struct offcpu_row *to, const struct offcpu_row *row)
{
	struct offcpu_lengths_link *links = profile->lengths.data;
	size_t next;

	if (!to->lengths || !row->lengths) {
		to->lengths = 0;
		return;
	}
	next = links[to->lengths - 1].next;
	links[to->lengths - 1].next = links[row->lengths - 1].next;
	links[row->lengths - 1].next = next;
}

bool offcpu_gather_lengths(struct offcpu_lengths *all, const struct offcpu_profile *profile,
			   const struct offcpu_row *row)
{
	size_t number = row->lengths;

	if (!number)
		return true;
	do {
		const struct offcpu_lengths *lengths = profile->lengths.data[number - 1].lengths;

		if (!vec_reserve(all, all->len + lengths->len))
			return false;
		for (size_t i = 0; i < lengths->len; i++)
			vec_push(all, lengths->data[i]);
		number = profile->lengths.data[number - 1].next;
	} while (number != row->lengths);
	return true;
}

static int by_length(const void *a, const void *b)
{
	const struct offcpu_length *x = a, *y = b;

	return (x->ns > y->ns) - (x->ns < y->ns);
}

/* The length of the wait of this rank, from 1 on. The shortest and the longest are known exactly. */
static uint64_t length_of(const struct offcpu_lengths *all, const struct offcpu_sum *sum, uint64_t rank)
{
	uint64_t seen = 0, ns = 0;

	if (rank == 1 || rank == sum->count)
		return rank == 1 ? sum->min_ns : sum->max_ns;
	for (size_t i = 0; i < all->len && seen < rank; i++) {
		seen += all->data[i].count;
		ns = all->data[i].ns;
	}
	return ns < sum->min_ns ? sum->min_ns : ns > sum->max_ns ? sum->max_ns : ns;
}

struct offcpu_quantiles offcpu_take_quantiles(struct offcpu_lengths *all, const struct offcpu_sum *sum)
{
	struct offcpu_quantiles quantiles = {0};
	uint64_t count = 0;

	if (all->len)
		qsort(all->data, all->len, sizeof(*all->data), by_length);
	for (size_t i = 0; i < all->len; i++)
		count += all->data[i].count;
	if (count && count == sum->count) {
		quantiles.are_known = true;
		quantiles.p50_ns = length_of(all, sum, count - count / 2);
		quantiles.p99_ns = length_of(all, sum, count - count / 100);
	}
	all->len = 0;
	return quantiles;
}

static bool has_whole_stacks(const struct offcpu_row *row)
{
	return !row->user_error && !row->kernel_error &&
	       (!row->has_waker || (!row->waker.user_error && !row->waker.kernel_error));
}

bool offcpu_profile_is_complete(const struct offcpu_profile *profile)
{
	for (size_t i = 0; i < profile->losses.len; i++)
		if (profile->losses.data[i].count)
			return false;
	for (size_t i = 0; i < profile->rows.len; i++)
		if (!has_whole_stacks(&profile->rows.data[i]))
			return false;
	return !profile->estimate;
}

/* One that has slept since before the recording ended is in the wait that was not over. */
static bool is_in_it(const struct offcpu_profile *profile, const struct snapshot *snap, const struct snap_thread *t)
{
	const int64_t since = snap->taken_at_monotonic_ns - (int64_t)profile->stopped_ns;

	return t->state != 'R' && since >= 0 && t->off_cpu_ns > since;
}

const struct trace_thread *offcpu_profile_look(const struct offcpu_profile *profile, const struct offcpu_row *row,
					       const struct offcpu_sum *waits)
{
	if (!waits->unfinished || !row->tid)
		return NULL;
	for (size_t i = 0; i < profile->looks.len; i++) {
		const struct trace *trace = profile->looks.data[i];

		for (size_t k = 0; trace->snap->pid == row->pid && k < trace->threads.len; k++) {
			const struct trace_thread *t = &trace->threads.data[k];

			if (t->thread->tid == row->tid && t->wait.kind && is_in_it(profile, trace->snap, t->thread))
				return t;
		}
	}
	return NULL;
}
