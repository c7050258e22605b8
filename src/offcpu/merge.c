/* SPDX-License-Identifier: MIT */
#include "offcpu/merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/chains.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/order.h"
#include "offcpu/idle.h"

enum {
	SCHEDULER_FRAMES = 4, /* that one of two equal stacks may lack */
};

/* Which frames are equal. */
enum likeness {
	SAME_ADDRESS,
	SAME_PLACE,    /* in the same file, wherever processes have it */
	SAME_FUNCTION, /* wherever in it they are */
};

struct distinct_stacks {
	enum likeness likeness;
	struct u64map by_address; /* of a stack, to the first equal one */
	struct chains by_frames;
	VEC(const struct stack *) stacks;
};

/* A row that went into another one, or stayed. */
struct share {
	size_t row; /* where it is now */
	pid_t pid;
	pid_t tid;
	uint64_t process_start_ns;
	uint64_t thread_start_ns;
	uint64_t total_ns;
};

struct merge {
	struct offcpu_profile *profile;
	struct distinct_stacks stacks;
	struct distinct_stacks interrupts; /* stacks of interrupts that woke threads */
	struct chains by_outer; /* frames of a kernel stack without its innermost ones, to such stacks */
	VEC(const struct stack *) outers;
	struct u64map noted; /* addresses of stacks already in `outers` */
	struct chains by_key;
	struct chains by_place; /* by process, state and stacks: rows with finished waits, which come first */
	VEC(uint64_t) idle_ns;  /* of the rows of the profile that are kept */
	VEC(struct share) shares; /* of rows of programs */
};

static void distinct_stacks_deinit(struct distinct_stacks *distinct)
{
	u64map_deinit(&distinct->by_address);
	chains_deinit(&distinct->by_frames);
	vec_deinit(&distinct->stacks);
}

static void merge_deinit(struct merge *merge)
{
	distinct_stacks_deinit(&merge->stacks);
	distinct_stacks_deinit(&merge->interrupts);
	chains_deinit(&merge->by_outer);
	vec_deinit(&merge->outers);
	u64map_deinit(&merge->noted);
	chains_deinit(&merge->by_key);
	chains_deinit(&merge->by_place);
	vec_deinit(&merge->idle_ns);
	vec_deinit(&merge->shares);
}

static uint64_t hash_text(uint64_t seed, const char *s)
{
	return s ? hash_bytes(seed, s, strlen(s)) : hash_u64(seed, 0);
}

static bool same_frame(const struct frame *a, const struct frame *b, enum likeness likeness)
{
	const bool anywhere = likeness == SAME_PLACE && a->module && a->kind != FRAME_KIND_KERNEL;

	return (anywhere || a->address == b->address) && a->kind == b->kind && a->inlined == b->inlined && a->flags == b->flags &&
	       a->offset == b->offset && a->module == b->module && a->module_offset == b->module_offset &&
	       a->line == b->line && a->column == b->column && same_text(a->symbol, b->symbol) &&
	       same_text(a->file, b->file);
}

static bool same_frames(const struct frame *a, const struct frame *b, size_t n, enum likeness likeness)
{
	bool same = true;

	for (size_t i = 0; same && i < n; i++)
		same = same_frame(&a[i], &b[i], likeness);
	return same;
}

static bool same_stack(const struct stack *a, const struct stack *b, enum likeness likeness)
{
	if (likeness == SAME_FUNCTION)
		return stack_same_functions(a, b);
	return a->len == b->len && same_frames(a->data, b->data, a->len, likeness);
}

/* Where the kernel gives names only, as in /proc, frames have no addresses. */
static uint64_t hash_frames(const struct frame *frames, size_t n, enum likeness likeness)
{
	uint64_t hash = hash_u64(HASH_SEED, n);

	for (size_t i = 0; i < n; i++) {
		const struct frame *frame = &frames[i];

		hash = hash_u64(hash, likeness == SAME_ADDRESS ? frame->address : 0);
		hash = hash_u64(hash, frame->module_offset);
		hash = hash_u64(hash, frame->flags);
		hash = hash_u64(hash, frame->offset);
		hash = hash_text(hash, frame->symbol);
	}
	return hash;
}

/* Replaces a stack by the first equal one; after that, stacks are equal when their addresses are. */
static bool use_first(struct distinct_stacks *distinct, const struct stack **stack)
{
	uint64_t *first, hash;
	bool created;

	if (!*stack || !(*stack)->len) {
		*stack = NULL;
		return true;
	}
	first = u64map_put(&distinct->by_address, (uintptr_t)*stack, &created);
	if (!first)
		return false;
	if (!created) {
		*stack = (const struct stack *)(uintptr_t)*first;
		return true;
	}
	*first = (uintptr_t)*stack;
	hash = distinct->likeness == SAME_FUNCTION ? stack_hash_functions(*stack)
						   : hash_frames((*stack)->data, (*stack)->len, distinct->likeness);
	for (size_t i = chains_first(&distinct->by_frames, hash); i; i = chains_next(&distinct->by_frames, i)) {
		const struct stack *other = distinct->stacks.data[i - 1];

		if (!same_stack(other, *stack, distinct->likeness))
			continue;
		*stack = other;
		*first = (uintptr_t)*stack;
		return true;
	}
	return vec_push(&distinct->stacks, *stack) && chains_add(&distinct->by_frames, hash);
}

static bool same_waker(const struct offcpu_waker *a, const struct offcpu_waker *b)
{
	return a->pid == b->pid && a->tid == b->tid && a->interrupt == b->interrupt && a->kernel == b->kernel &&
	       a->user == b->user && same_text(a->kernel_error, b->kernel_error) && same_text(a->user_error, b->user_error);
}

static bool same_who(const struct offcpu_row *a, const struct offcpu_row *b)
{
	if (a->program || b->program)
		return a->program == b->program;
	return a->pid == b->pid && a->tid == b->tid && a->process_start_ns == b->process_start_ns &&
	       a->thread_start_ns == b->thread_start_ns;
}

static bool same_row(const struct offcpu_row *a, const struct offcpu_row *b)
{
	return same_who(a, b) && a->state == b->state && a->kernel == b->kernel &&
	       a->user == b->user && same_text(a->kernel_error, b->kernel_error) &&
	       same_text(a->user_error, b->user_error) && a->has_waker == b->has_waker &&
	       (!a->has_waker || same_waker(&a->waker, &b->waker));
}

static uint64_t hash_who(const struct offcpu_row *row)
{
	uint64_t hash = hash_u64(HASH_SEED, (uint64_t)(uint32_t)row->pid << 32 | (uint32_t)row->tid);

	if (row->program)
		return row->program;
	hash = hash_u64(hash, row->process_start_ns);
	return hash_u64(hash, row->thread_start_ns);
}

/* Apart from errors and the waker. */
static uint64_t hash_wait(const struct offcpu_row *row)
{
	uint64_t hash = hash_who(row);

	hash = hash_u64(hash, (unsigned char)row->state);
	return hash_u64(hash_u64(hash, (uintptr_t)row->kernel), (uintptr_t)row->user);
}

static uint64_t hash_row(const struct offcpu_row *row)
{
	uint64_t hash = hash_wait(row);

	hash = hash_text(hash, row->kernel_error);
	hash = hash_text(hash, row->user_error);
	if (!row->has_waker)
		return hash;
	hash = hash_u64(hash, (uint64_t)(uint32_t)row->waker.pid << 32 | (uint32_t)row->waker.tid);
	hash = hash_u64(hash, (uintptr_t)row->waker.kernel);
	hash = hash_u64(hash, (uintptr_t)row->waker.user);
	hash = hash_text(hash, row->waker.kernel_error);
	return hash_text(hash, row->waker.user_error);
}

static void join(struct offcpu_profile *profile, struct offcpu_row *to, const struct offcpu_row *row)
{
	offcpu_sum_merge(&to->sum, &row->sum);
	offcpu_profile_join_lengths(profile, to, row);
	if (row->thread_name)
		to->thread_name = row->thread_name;
	if (row->waker.name)
		to->waker.name = row->waker.name;
}

/* The number of the equal row among those that are kept; 0: there is none. */
static size_t find_same(const struct merge *merge, const struct offcpu_row *rows, const struct offcpu_row *row)
{
	size_t i = chains_first(&merge->by_key, hash_row(row));

	while (i && !same_row(&rows[i - 1], row))
		i = chains_next(&merge->by_key, i);
	return i;
}

/* All of its waits are open. */
static bool is_unfinished(const struct offcpu_row *row)
{
	return row->sum.count == row->sum.unfinished;
}

static bool same_process(const struct offcpu_row *a, const struct offcpu_row *b)
{
	return a->program || b->program ? a->program == b->program : a->pid == b->pid;
}

static uint64_t hash_place(const struct offcpu_row *row, const struct stack *kernel)
{
	uint64_t hash = hash_u64(HASH_SEED, row->program ? row->program : (uint32_t)row->pid);

	hash = hash_u64(hash, (unsigned char)row->state);
	return hash_u64(hash_u64(hash, (uintptr_t)kernel), (uintptr_t)row->user);
}

/* Whether some thread of the process has a finished wait there. */
static bool is_place(const struct merge *merge, const struct offcpu_row *rows, const struct offcpu_row *row,
		     const struct stack *kernel)
{
	size_t i = chains_first(&merge->by_place, hash_place(row, kernel));

	while (i && (!same_process(&rows[i - 1], row) || rows[i - 1].state != row->state || rows[i - 1].kernel != kernel ||
		     rows[i - 1].user != row->user))
		i = chains_next(&merge->by_place, i);
	return i;
}

/*
 * When the kernel shows the stack of a thread that is not running, the scheduler's own functions, such as
 * schedule_timeout(), are left out; the stack of a finished wait has them. So the same place is a stack with a few more
 * frames: one of the same thread if possible, for which there is a row, else that of another thread, or with a waker.
 */
static size_t find_finished(const struct merge *merge, const struct offcpu_row *rows, struct offcpu_row *row)
{
	struct offcpu_row finished = *row;
	const struct stack *elsewhere = NULL;
	size_t found = 0, i;

	if (!row->kernel)
		return 0;
	i = chains_first(&merge->by_outer, hash_frames(row->kernel->data, row->kernel->len, SAME_ADDRESS));
	for (; i && !found; i = chains_next(&merge->by_outer, i)) {
		const struct stack *stack = merge->outers.data[i - 1];

		finished.kernel = stack;
		if (stack->len <= row->kernel->len ||
		    !same_frames(stack->data + stack->len - row->kernel->len, row->kernel->data, row->kernel->len,
				 SAME_ADDRESS))
			continue;
		found = find_same(merge, rows, &finished);
		if (!found && !elsewhere && is_place(merge, rows, row, stack))
			elsewhere = stack;
	}
	if (!found && elsewhere && !is_place(merge, rows, row, row->kernel))
		row->kernel = elsewhere;
	return found;
}

/* So that find_finished() can find it. */
static bool note_outer(struct merge *merge, const struct stack *kernel)
{
	bool created;

	if (!kernel)
		return true;
	if (!u64map_put(&merge->noted, (uintptr_t)kernel, &created))
		return false;
	for (size_t i = 1; created && i < kernel->len && i <= SCHEDULER_FRAMES; i++)
		if (!vec_push(&merge->outers, kernel) ||
		    !chains_add(&merge->by_outer, hash_frames(kernel->data + i, kernel->len - i, SAME_ADDRESS)))
			return false;
	return true;
}

static bool note_share(struct merge *merge, const struct offcpu_row *row, size_t at)
{
	const struct share share = {
		.row = at,
		.pid = row->pid,
		.tid = row->tid,
		.process_start_ns = row->process_start_ns,
		.thread_start_ns = row->thread_start_ns,
		.total_ns = row->sum.total_ns,
	};

	return !row->program || vec_push(&merge->shares, share);
}

/* Adds the row to the equal one among the first `merge->idle_ns.len` of `rows`, or puts it behind those. */
static bool keep(struct merge *merge, struct offcpu_row *rows, struct offcpu_row row)
{
	const uint64_t idle_ns = row.idle ? row.sum.total_ns : 0;
	size_t same;

	if (!use_first(&merge->stacks, &row.kernel) || !use_first(&merge->stacks, &row.user) ||
	    !use_first(row.waker.interrupt ? &merge->interrupts : &merge->stacks, &row.waker.kernel) ||
	    !use_first(&merge->stacks, &row.waker.user))
		return false;
	same = find_same(merge, rows, &row);
	if (!same && is_unfinished(&row))
		same = find_finished(merge, rows, &row);
	if (same) {
		join(merge->profile, &rows[same - 1], &row);
		merge->idle_ns.data[same - 1] += idle_ns;
		return note_share(merge, &row, same - 1);
	}
	if (!is_unfinished(&row) &&
	    (!chains_add(&merge->by_place, hash_place(&row, row.kernel)) || !note_outer(merge, row.kernel)))
		return false;
	if (!chains_add(&merge->by_key, hash_row(&row)) || !vec_push(&merge->idle_ns, idle_ns))
		return false;
	rows[merge->idle_ns.len - 1] = row;
	return note_share(merge, &row, merge->idle_ns.len - 1);
}

/* Finished waits come first: their stacks are the complete ones. */
static void put_unfinished_last(struct offcpu_row *rows, size_t n)
{
	size_t finished = 0;

	for (size_t i = 0; i < n; i++)
		if (!is_unfinished(&rows[i])) {
			struct offcpu_row row = rows[i];

			rows[i] = rows[finished];
			rows[finished++] = row;
		}
}

/* Whatever the waker: the reader sees one stack, which is idle or not. */
static bool mark_idle(const struct merge *merge, struct offcpu_row *rows)
{
	_cleanup_(u64map_deinit) struct u64map idle = {0}, all = {0};
	bool created;

	for (size_t i = 0; i < merge->idle_ns.len; i++) {
		uint64_t wait = hash_wait(&rows[i]);
		uint64_t *idle_ns = u64map_put(&idle, wait, &created), *all_ns = u64map_put(&all, wait, &created);

		if (!idle_ns || !all_ns)
			return false;
		*idle_ns += merge->idle_ns.data[i];
		*all_ns += rows[i].sum.total_ns;
	}
	for (size_t i = 0; i < merge->idle_ns.len; i++) {
		uint64_t wait = hash_wait(&rows[i]);

		rows[i].idle = offcpu_is_nearly_all(*u64map_find(&idle, wait), *u64map_find(&all, wait));
	}
	return true;
}

static int by_row_and_thread(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->process_start_ns != y->process_start_ns)
		return x->process_start_ns < y->process_start_ns ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->thread_start_ns > y->thread_start_ns) - (x->thread_start_ns < y->thread_start_ns);
}

static bool add_share(struct offcpu_profile *profile, const struct share *share, const struct share *last)
{
	struct offcpu_row *row = &profile->rows.data[share->row];
	struct offcpu_member *member;

	if (!last || last->row != share->row)
		row->first_member = profile->members.len;
	if (!last || last->row != share->row || last->pid != share->pid ||
	    last->process_start_ns != share->process_start_ns) {
		if (!vec_push(&profile->members, (struct offcpu_member){.pid = share->pid, .start_ns = share->process_start_ns}))
			return false;
		row->nmembers++;
		last = NULL;
	}
	member = &profile->members.data[profile->members.len - 1];
	member->nthreads += !last || last->tid != share->tid || last->thread_start_ns != share->thread_start_ns;
	member->total_ns += share->total_ns;
	return true;
}

/* Whose waits each row of a program has. A row of one process says so itself, too. */
static bool find_members(struct offcpu_profile *profile, struct merge *merge)
{
	const struct share *shares = merge->shares.data;

	if (merge->shares.len)
		qsort(merge->shares.data, merge->shares.len, sizeof(*shares), by_row_and_thread);
	for (size_t i = 0; i < merge->shares.len; i++)
		if (!add_share(profile, &shares[i], i ? &shares[i - 1] : NULL))
			return false;
	for (size_t i = 0; i < profile->rows.len; i++) {
		struct offcpu_row *row = &profile->rows.data[i];

		if (!row->program)
			continue;
		if (row->nmembers)
			offcpu_sort_members(profile->members.data + row->first_member, row->nmembers);
		row->tid = 0;
		row->thread_start_ns = 0;
		row->pid = row->nmembers == 1 ? row->pid : 0;
		row->process_start_ns = row->nmembers == 1 ? row->process_start_ns : 0;
	}
	return true;
}

static bool merge_rows(struct offcpu_profile *profile, enum likeness likeness)
{
	_cleanup_(merge_deinit) struct merge merge = {
		.profile = profile, .stacks = {.likeness = likeness}, .interrupts = {.likeness = SAME_FUNCTION}};
	struct offcpu_row *rows = profile->rows.data;
	size_t done = 0;
	bool marked;

	put_unfinished_last(rows, profile->rows.len);
	while (done < profile->rows.len && keep(&merge, rows, rows[done]))
		done++;
	marked = mark_idle(&merge, rows);
	if (done < profile->rows.len) /* out of memory: the rest stays as it is */
		memmove(rows + merge.idle_ns.len, rows + done, (profile->rows.len - done) * sizeof(*rows));
	profile->rows.len -= done - merge.idle_ns.len;
	return marked && profile->rows.len == merge.idle_ns.len && find_members(profile, &merge);
}

bool offcpu_merge_rows(struct offcpu_profile *profile)
{
	return merge_rows(profile, SAME_ADDRESS);
}

static uint64_t hash_program(const struct offcpu_identity *process)
{
	return hash_text(hash_text(HASH_SEED, process->file), process->script_word);
}

enum { SEVERAL = 0 };

/* The programs of processes by their names; SEVERAL: more than one is called so. */
static bool find_programs(const struct offcpu_profile *profile, struct u64map *programs)
{
	for (size_t i = 0; i < profile->processes.len; i++) {
		const struct offcpu_identity *process = &profile->processes.data[i];
		uint64_t *program;
		bool created;

		if (!process->file || !process->name)
			continue;
		program = u64map_put(programs, hash_text(HASH_SEED, process->name), &created);
		if (!program)
			return false;
		*program = created || *program == hash_program(process) ? hash_program(process) : SEVERAL;
	}
	return true;
}

/* Never 0. A process of which only the name is known is taken for one of the program that others of this name run. */
static uint64_t program_of(const struct offcpu_identity *process, const struct u64map *programs,
			   const struct offcpu_row *row)
{
	const uint64_t own = offcpu_process_key(row->pid, row->process_start_ns);
	const uint64_t name = process && process->name ? hash_text(HASH_SEED, process->name) : 0;
	const uint64_t *program = name ? u64map_find(programs, name) : NULL;

	if (process && process->file)
		return hash_program(process) | 1;
	if (program)
		return (*program == SEVERAL ? own : *program) | 1;
	return (name ? name : own) | 1;
}

bool offcpu_merge_threads(struct offcpu_profile *profile)
{
	_cleanup_(u64map_deinit) struct u64map names = {0}, programs = {0}; /* names of main threads */

	if (!find_programs(profile, &programs))
		return false;
	for (size_t i = 0; i < profile->threads.len; i++) {
		const struct offcpu_thread *thread = &profile->threads.data[i];
		uint64_t *name;
		bool created;

		if (thread->tid != thread->pid)
			continue;
		name = u64map_put(&names, offcpu_process_key(thread->pid, thread->process_start_ns), &created);
		if (!name)
			return false;
		*name = (uintptr_t)thread->name;
	}
	for (size_t i = 0; i < profile->rows.len; i++) {
		struct offcpu_row *row = &profile->rows.data[i];
		const struct offcpu_identity *process = offcpu_profile_process(profile, row->pid, row->process_start_ns);
		const uint64_t *name = u64map_find(&names, offcpu_process_key(row->pid, row->process_start_ns));

		row->program = program_of(process, &programs, row);
		if (name && *name)
			row->thread_name = (const char *)(uintptr_t)*name;
		else if (process && process->name)
			row->thread_name = process->name;
	}
	return merge_rows(profile, SAME_PLACE);
}
