/* SPDX-License-Identifier: MIT */
#include "report/offcpu_groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/chains.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "report/offcpu_reasons.h"

void offcpu_groups_deinit(struct offcpu_groups *groups)
{
	vec_deinit(groups);
	free(groups->threads);
	free(groups->wakers);
	free(groups->members);
	groups->threads = groups->wakers = NULL;
	groups->members = NULL;
}

static pid_t process_of(const struct offcpu_row *row)
{
	return (row->user && row->tid) || row->program ? 0 : row->pid;
}

static uint64_t start_of(const struct offcpu_row *row)
{
	return process_of(row) ? row->process_start_ns : 0;
}

/* Apart from the stacks. */
static bool same_kind(const struct offcpu_row *a, const struct offcpu_row *b)
{
	return process_of(a) == process_of(b) && start_of(a) == start_of(b) && a->program == b->program && a->state == b->state &&
	       a->idle == b->idle && offcpu_same_reason(a->kernel_error, b->kernel_error) &&
	       offcpu_same_reason(a->user_error, b->user_error);
}

static uint64_t hash_kind(const struct offcpu_row *row)
{
	uint64_t hash = hash_u64(HASH_SEED, (uint32_t)process_of(row));

	hash = hash_u64(hash, start_of(row));
	hash = hash_u64(hash, row->program);
	hash = hash_u64(hash, (unsigned char)row->state);
	hash = hash_u64(hash, row->idle);
	hash = offcpu_hash_reason(hash, row->kernel_error);
	return offcpu_hash_reason(hash, row->user_error);
}

/* Equal stacks have equal addresses: the profile has merged them. */
static bool same_place(const struct offcpu_row *a, const struct offcpu_row *b)
{
	return a->kernel == b->kernel && a->user == b->user && same_kind(a, b);
}

static uint64_t hash_place(const struct offcpu_row *row)
{
	return hash_u64(hash_u64(hash_kind(row), (uintptr_t)row->kernel), (uintptr_t)row->user);
}

static bool same_functions(const struct stack *a, const struct stack *b)
{
	return a == b || (a && b && stack_same_functions(a, b));
}

static uint64_t hash_functions(uint64_t hash, const struct stack *stack)
{
	return hash_u64(hash, stack ? stack_hash_functions(stack) : 0);
}

struct place {
	const struct offcpu_row *row; /* the first one found */
	size_t group;
};

struct search {
	bool exact;
	struct chains by_place;
	struct chains by_functions; /* groups of threads that were preempted */
	VEC(size_t) preempted;      /* the numbers of these groups */
	VEC(struct place) places;
};

static void search_deinit(struct search *search)
{
	chains_deinit(&search->by_place);
	chains_deinit(&search->by_functions);
	vec_deinit(&search->preempted);
	vec_deinit(&search->places);
}

/* The number of a group for a place that is new; SIZE_MAX when memory is exhausted. */
static size_t group_of_place(struct offcpu_groups *groups, struct search *search, const struct offcpu_row *row)
{
	const bool anywhere = row->state == 'R' && !search->exact;
	uint64_t hash = 0;

	if (anywhere) {
		hash = hash_functions(hash_functions(hash_kind(row), row->kernel), row->user);
		for (size_t i = chains_first(&search->by_functions, hash); i; i = chains_next(&search->by_functions, i)) {
			const struct offcpu_row *other = groups->data[search->preempted.data[i - 1]].row;

			if (same_kind(other, row) && same_functions(other->kernel, row->kernel) &&
			    same_functions(other->user, row->user))
				return search->preempted.data[i - 1];
		}
	}
	if (!vec_push(groups, (struct offcpu_group){.row = row, .idle = row->idle}))
		return SIZE_MAX;
	if (anywhere && (!vec_push(&search->preempted, groups->len - 1) || !chains_add(&search->by_functions, hash)))
		return SIZE_MAX;
	return groups->len - 1;
}

/* The number of the row's group; SIZE_MAX when memory is exhausted. */
static size_t find_group(struct offcpu_groups *groups, struct search *search, const struct offcpu_row *row)
{
	uint64_t hash = hash_place(row);
	size_t group;

	for (size_t i = chains_first(&search->by_place, hash); i; i = chains_next(&search->by_place, i))
		if (same_place(search->places.data[i - 1].row, row))
			return search->places.data[i - 1].group;
	group = group_of_place(groups, search, row);
	if (group == SIZE_MAX || !vec_push(&search->places, (struct place){row, group}) ||
	    !chains_add(&search->by_place, hash))
		return SIZE_MAX;
	groups->data[group].nplaces++;
	return group;
}

static int by_order(const struct offcpu_row *a, const struct offcpu_row *b)
{
	return (a > b) - (a < b);
}

static int by_thread(const void *a, const void *b)
{
	const struct offcpu_row *x = ((const struct offcpu_part *)a)->row, *y = ((const struct offcpu_part *)b)->row;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->process_start_ns != y->process_start_ns)
		return x->process_start_ns < y->process_start_ns ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->thread_start_ns > y->thread_start_ns) - (x->thread_start_ns < y->thread_start_ns);
}

static int by_stack(const struct stack *a, const struct stack *b)
{
	return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

static int by_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) : !a - !b;
}

static int by_waker(const void *a, const void *b)
{
	const struct offcpu_row *x = ((const struct offcpu_part *)a)->row, *y = ((const struct offcpu_part *)b)->row;

	if (x->has_waker != y->has_waker)
		return x->has_waker ? -1 : 1;
	if (x->waker.interrupt != y->waker.interrupt)
		return x->waker.interrupt ? -1 : 1;
	if (x->waker.pid != y->waker.pid)
		return x->waker.pid < y->waker.pid ? -1 : 1;
	if (x->waker.tid != y->waker.tid)
		return x->waker.tid < y->waker.tid ? -1 : 1;
	if (x->waker.kernel != y->waker.kernel)
		return by_stack(x->waker.kernel, y->waker.kernel);
	if (x->waker.user != y->waker.user)
		return by_stack(x->waker.user, y->waker.user);
	if (by_text(x->waker.kernel_error, y->waker.kernel_error) != 0)
		return by_text(x->waker.kernel_error, y->waker.kernel_error);
	return by_text(x->waker.user_error, y->waker.user_error);
}

static int by_falling_total(const void *a, const void *b)
{
	const struct offcpu_part *x = a, *y = b;

	if (x->sum.total_ns != y->sum.total_ns)
		return x->sum.total_ns < y->sum.total_ns ? 1 : -1;
	return by_order(x->row, y->row);
}

/* Sorts the parts and merges those that compare as equal. Returns how many are left. */
static size_t add_up(struct offcpu_part *parts, size_t n, int (*compare)(const void *, const void *))
{
	size_t kept = 0;

	qsort(parts, n, sizeof(*parts), compare);
	for (size_t i = 1; i < n; i++) {
		if (compare(&parts[kept], &parts[i]) != 0) {
			parts[++kept] = parts[i];
			continue;
		}
		offcpu_sum_merge(&parts[kept].sum, &parts[i].sum);
		if (by_order(parts[i].row, parts[kept].row) < 0)
			parts[kept].row = parts[i].row;
	}
	return kept + 1;
}

/* At most a fifth shorter than the longest, as all idle threads are. */
static bool are_alike(const struct offcpu_part *parts, size_t n)
{
	uint64_t least = parts[0].sum.total_ns, most = least;

	for (size_t i = 1; i < n; i++) {
		least = parts[i].sum.total_ns < least ? parts[i].sum.total_ns : least;
		most = parts[i].sum.total_ns > most ? parts[i].sum.total_ns : most;
	}
	return least >= most - most / 5;
}

static int by_weight(const void *a, const void *b)
{
	const struct offcpu_group *x = a, *y = b;

	if (x->idle != y->idle)
		return x->idle ? 1 : -1;
	if (x->sum.total_ns != y->sum.total_ns)
		return x->sum.total_ns < y->sum.total_ns ? 1 : -1;
	return by_order(x->row, y->row);
}

/* The threads have to be in order. */
static size_t count_processes(const struct offcpu_part *threads, size_t n)
{
	size_t processes = 1;

	for (size_t i = 1; i < n; i++)
		processes += threads[i].row->pid != threads[i - 1].row->pid ||
			     threads[i].row->process_start_ns != threads[i - 1].row->process_start_ns;
	return processes;
}

/* The rows have to be those of the group, not added up yet. */
static bool find_quantiles(struct offcpu_group *group, const struct offcpu_profile *profile, const struct offcpu_part *rows,
			   struct offcpu_lengths *lengths)
{
	for (size_t i = 0; i < group->nrows; i++)
		if (!offcpu_gather_lengths(lengths, profile, rows[i].row))
			return false;
	group->quantiles = offcpu_take_quantiles(lengths, &group->sum);
	return true;
}

static int by_pid(const void *a, const void *b)
{
	const struct offcpu_member *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* The processes of all rows together; a thread may be in several of them. `members` has room for them. How many it took. */
static size_t find_members(struct offcpu_group *group, const struct offcpu_profile *profile, const struct offcpu_part *rows,
			   struct offcpu_member *members)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < group->nrows; i++)
		for (size_t k = 0; k < rows[i].row->nmembers; k++)
			members[n++] = profile->members.data[rows[i].row->first_member + k];
	if (!n)
		return 0;
	qsort(members, n, sizeof(*members), by_pid);
	for (size_t i = 1; i < n; i++) {
		if (by_pid(&members[i], &members[kept]) != 0) {
			members[++kept] = members[i];
			continue;
		}
		members[kept].total_ns += members[i].total_ns;
		if (members[i].nthreads > members[kept].nthreads)
			members[kept].nthreads = members[i].nthreads;
	}
	offcpu_sort_members(members, kept + 1);
	group->members = members;
	group->nmembers = kept + 1;
	return n;
}

/* Puts the rows of each group next to each other, once by thread and once by waker. False when memory is exhausted. */
static bool arrange(struct offcpu_groups *groups, const struct offcpu_profile *profile, const size_t *group_of,
		    size_t *filled)
{
	_cleanup_(offcpu_lengths_deinit) struct offcpu_lengths lengths = {0};
	size_t place = 0, members = 0;

	for (size_t i = 0; i < groups->len; i++) {
		filled[i] = place;
		place += groups->data[i].nrows;
	}
	for (size_t i = 0; i < profile->rows.len; i++) {
		const struct offcpu_row *row = &profile->rows.data[i];

		place = filled[group_of[i]]++;
		groups->threads[place] = groups->wakers[place] = (struct offcpu_part){.row = row, .sum = row->sum};
	}
	for (size_t i = 0; i < groups->len; i++) {
		struct offcpu_group *group = &groups->data[i];
		struct offcpu_part *threads = groups->threads + filled[i] - group->nrows;
		struct offcpu_part *wakers = groups->wakers + filled[i] - group->nrows;

		if (!find_quantiles(group, profile, threads, &lengths))
			return false;
		members += find_members(group, profile, threads, groups->members + members);
		group->threads = threads;
		group->nthreads = add_up(threads, group->nrows, by_thread);
		group->nprocesses = count_processes(threads, group->nthreads);
		group->alike = are_alike(threads, group->nthreads);
		if (!group->alike)
			qsort(threads, group->nthreads, sizeof(*threads), by_falling_total);
		group->wakers = wakers;
		group->nwakers = add_up(wakers, group->nrows, by_waker);
		qsort(wakers, group->nwakers, sizeof(*wakers), by_falling_total);
	}
	return true;
}

static size_t count_members(const struct offcpu_profile *profile)
{
	size_t n = 0;

	for (size_t i = 0; i < profile->rows.len; i++)
		n += profile->rows.data[i].nmembers;
	return n;
}

bool offcpu_groups_find(struct offcpu_groups *groups, const struct offcpu_profile *profile, bool exact)
{
	_cleanup_(search_deinit) struct search search = {.exact = exact};
	const size_t n = profile->rows.len;
	_cleanup_free_ size_t *group_of = calloc(n + 1, sizeof(*group_of));
	_cleanup_free_ size_t *filled = calloc(n + 1, sizeof(*filled));

	groups->threads = calloc(n + 1, sizeof(*groups->threads));
	groups->wakers = calloc(n + 1, sizeof(*groups->wakers));
	groups->members = calloc(count_members(profile) + 1, sizeof(*groups->members));
	if (!group_of || !filled || !groups->threads || !groups->wakers || !groups->members)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct offcpu_row *row = &profile->rows.data[i];
		struct offcpu_group *group;

		group_of[i] = find_group(groups, &search, row);
		if (group_of[i] == SIZE_MAX)
			return false;
		group = &groups->data[group_of[i]];
		group->nrows++;
		offcpu_sum_merge(&group->sum, &row->sum);
	}
	if (!arrange(groups, profile, group_of, filled))
		return false;
	if (groups->len)
		qsort(groups->data, groups->len, sizeof(*groups->data), by_weight);
	return true;
}
