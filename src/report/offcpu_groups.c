/* SPDX-License-Identifier: MIT */
#include "report/offcpu_groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"

void offcpu_groups_deinit(struct offcpu_groups *groups)
{
	vec_deinit(groups);
	free(groups->rows);
	groups->rows = NULL;
}

/* Stacks that are the same are so by address: the profile has seen to that. */
static bool same_wait(const struct offcpu_row *a, const struct offcpu_row *b)
{
	return a->pid == b->pid && a->tid == b->tid && a->state == b->state && a->kernel == b->kernel &&
	       a->user == b->user && a->kernel_error == b->kernel_error && a->user_error == b->user_error;
}

static uint64_t hash_wait(const struct offcpu_row *row)
{
	uint64_t hash = hash_u64(HASH_SEED, (uint64_t)(uint32_t)row->pid << 32 | (uint32_t)row->tid);

	hash = hash_u64(hash, (unsigned char)row->state);
	hash = hash_u64(hash, (uintptr_t)row->kernel);
	hash = hash_u64(hash, (uintptr_t)row->user);
	hash = hash_u64(hash, (uintptr_t)row->kernel_error);
	return hash_u64(hash, (uintptr_t)row->user_error);
}

/* Groups of the same hash are a chain, whose links are numbers plus one. */
struct chains {
	struct u64map first;
	VEC(size_t) next; /* of each group */
};

static void chains_deinit(struct chains *chains)
{
	u64map_deinit(&chains->first);
	vec_deinit(&chains->next);
}

/* The number of the row's group, plus one; 0 when memory is exhausted. A new group has its first row only. */
static size_t find_group(struct offcpu_groups *groups, struct chains *chains, const struct offcpu_row *const *row)
{
	bool created;
	uint64_t *first = u64map_put(&chains->first, hash_wait(*row), &created);

	if (!first)
		return 0;
	for (size_t i = *first; i; i = chains->next.data[i - 1])
		if (same_wait(groups->data[i - 1].rows[0], *row))
			return i;
	if (!vec_push(groups, (struct offcpu_group){.rows = row, .idle = true}) || !vec_push(&chains->next, *first))
		return 0;
	*first = groups->len;
	return groups->len;
}

static int by_falling_total(const void *a, const void *b)
{
	const struct offcpu_group *x = a, *y = b;

	if (x->sum.total_ns != y->sum.total_ns)
		return x->sum.total_ns < y->sum.total_ns ? 1 : -1;
	return x->rows < y->rows ? -1 : x->rows > y->rows; /* as they were */
}

/* Puts the rows of each group beside each other, in the order that they have. */
static void arrange(struct offcpu_groups *groups, const struct offcpu_profile *profile, const size_t *group_of)
{
	const struct offcpu_row **place = groups->rows;

	for (size_t i = 0; i < groups->len; i++) {
		groups->data[i].rows = place;
		place += groups->data[i].nrows;
		groups->data[i].nrows = 0;
	}
	for (size_t i = 0; i < profile->rows.len; i++) {
		struct offcpu_group *group = &groups->data[group_of[i] - 1];

		groups->rows[group->rows - groups->rows + group->nrows++] = &profile->rows.data[i];
	}
}

bool offcpu_groups_find(struct offcpu_groups *groups, const struct offcpu_profile *profile)
{
	_cleanup_(chains_deinit) struct chains chains = {0};
	const size_t n = profile->rows.len;
	_cleanup_free_ size_t *group_of = calloc(n + 1, sizeof(*group_of));

	groups->rows = calloc(n + 1, sizeof(*groups->rows));
	if (!group_of || !groups->rows)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct offcpu_row *row = &profile->rows.data[i];
		struct offcpu_group *group;

		groups->rows[i] = row;
		group_of[i] = find_group(groups, &chains, &groups->rows[i]);
		if (!group_of[i])
			return false;
		group = &groups->data[group_of[i] - 1];
		group->nrows++;
		group->idle &= row->idle;
		offcpu_sum_merge(&group->sum, &row->sum);
	}
	arrange(groups, profile, group_of);
	if (groups->len)
		qsort(groups->data, groups->len, sizeof(*groups->data), by_falling_total);
	return true;
}
