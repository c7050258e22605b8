/* SPDX-License-Identifier: MIT */
#include "offcpu/waits.h"

#include <stdlib.h>
#include <string.h>

#include "base/chains.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"
#include "offcpu/sent_stack.h"

enum { MAX_DROPPED = 1 << 18 }; /* how many dropped stacks are remembered */

struct keyed_row {
	struct wait_row row;
	struct offcpu_key key;
	struct offcpu_lengths lengths;
	char name[OFFCPU_COMM + 1]; /* row.name */
};

struct keyed_thread {
	struct offcpu_thread thread;
	char name[OFFCPU_COMM + 1]; /* thread.name */
};

/* Of a thread; see struct offcpu_ran. */
struct run_time {
	uint64_t ran_ns;
	uint64_t until_ns;
};

struct waits {
	struct tables *tables;
	struct waits_options options;
	struct arena *arena; /* holds names and frames */
	VEC(struct wait_stack *) stacks;
	struct chains by_id; /* by its low half */
	VEC(struct keyed_row *) rows;
	struct chains by_key;
	VEC(struct keyed_thread *) threads;
	struct chains by_thread; /* by numbers and start */
	struct u64map ran; /* hash of a thread, as in by_thread, to its index + 1 in `times` */
	VEC(struct run_time) times;
	size_t stack_bytes;
	struct wait_stack over_limit; /* stands for stacks that are not kept */
	struct u64map dropped; /* hashes of the ids of dropped stacks */
	bool dropped_more;     /* more were dropped than there is room for */
	uint64_t stacks_lost;
	uint64_t lost;
};

DEFINE_CLEANUP(waits, struct waits *, waits_destroy)

/* Stands for stacks that were not taken, for this reason. */
static void put_reason(struct waits *waits, uint64_t low, const char *words)
{
	const struct stack_sample none = {
		.id.low = low,
		.user_end = OFFCPU_END_NO_USER,
		.user_error = words,
		.kernel_error_words = words,
	};

	waits_put_stack(waits, &none);
}

struct waits *waits_create(struct tables *tables, const struct waits_options *options)
{
	_cleanup_(cleanup_waits) struct waits *waits = calloc(1, sizeof(*waits));

	if (!waits)
		return NULL;
	waits->tables = tables;
	waits->options = *options;
	waits->arena = arena_create();
	if (!waits->arena)
		return NULL;
	waits->over_limit.user_end = OFFCPU_END_NO_USER;
	waits->over_limit.user_error = waits->over_limit.kernel_error_words = "there were too many different stacks to keep it";
	put_reason(waits, OFFCPU_STACK_BEFORE,
		   "the wait began before the recording, and stacks are taken when a wait begins");
	put_reason(waits, OFFCPU_STACK_EARLY,
		   "the wait was shorter than --min when it was woken, by this thread or by an interrupt that hit it");
	put_reason(waits, OFFCPU_STACK_UNSEEN, "the kernel did not tell when the thread came back, where its stack is taken");
	return steal_ptr(waits);
}

void waits_destroy(struct waits *waits)
{
	if (!waits)
		return;
	for (size_t i = 0; i < waits->stacks.len; i++) {
		raw_stack_deinit(&waits->stacks.data[i]->user);
		free(waits->stacks.data[i]);
	}
	for (size_t i = 0; i < waits->rows.len; i++) {
		offcpu_lengths_deinit(&waits->rows.data[i]->lengths);
		free(waits->rows.data[i]);
	}
	for (size_t i = 0; i < waits->threads.len; i++)
		free(waits->threads.data[i]);
	vec_deinit(&waits->stacks);
	vec_deinit(&waits->rows);
	vec_deinit(&waits->threads);
	chains_deinit(&waits->by_id);
	chains_deinit(&waits->by_key);
	chains_deinit(&waits->by_thread);
	u64map_deinit(&waits->dropped);
	u64map_deinit(&waits->ran);
	vec_deinit(&waits->times);
	arena_destroy(waits->arena);
	free(waits);
}

static struct wait_stack *find_stack(const struct waits *waits, struct offcpu_stack_id id)
{
	for (size_t i = chains_first(&waits->by_id, id.low); i; i = chains_next(&waits->by_id, i))
		if (waits->stacks.data[i - 1]->id.low == id.low && waits->stacks.data[i - 1]->id.high == id.high)
			return waits->stacks.data[i - 1];
	return NULL;
}

static uint64_t hash_id(struct offcpu_stack_id id)
{
	return hash_u64(hash_u64(HASH_SEED, id.low), id.high);
}

/* Remembers the id, as waits with this stack may come much later: the kernel adds them up. */
static void drop_stack(struct waits *waits, struct offcpu_stack_id id)
{
	const uint64_t hash = hash_id(id);
	bool created;

	waits->stacks_lost++;
	if (u64map_find(&waits->dropped, hash))
		return;
	if (waits->dropped.len >= MAX_DROPPED || !u64map_put(&waits->dropped, hash, &created))
		waits->dropped_more = true;
}

/* For a row. NULL: it has none, or the stack was lost but may be sent again. */
static struct wait_stack *find_for_row(struct waits *waits, struct offcpu_stack_id id)
{
	struct wait_stack *stack = find_stack(waits, id);

	if (stack || !id.low)
		return stack;
	return waits->dropped_more || u64map_find(&waits->dropped, hash_id(id)) ? &waits->over_limit : NULL;
}

static bool is_missing(const struct waits *waits, const struct wait_stack *stack)
{
	return !stack || stack == &waits->over_limit;
}

static uint64_t place_of(struct waits *waits, const struct stack_sample *sample, uint32_t index)
{
	if (sample->places)
		return sample->places[index];
	return tables_place_frame(waits->tables, sample->set, &sample->user[index]);
}

static bool copy_kernel_text(struct waits *waits, const struct stack_sample *sample, struct wait_stack *out)
{
	out->kernel_text = arena_alloc(waits->arena, sample->nkernel * sizeof(*out->kernel_text) + 1);
	for (uint32_t i = 0; out->kernel_text && i < sample->nkernel; i++)
		out->kernel_text[i] = arena_intern(waits->arena, sample->kernel_text[i]);
	return out->kernel_text;
}

static bool fill_user(struct waits *waits, const struct stack_sample *sample, struct wait_stack *out)
{
	out->addresses = arena_alloc(waits->arena, sample->nuser * sizeof(*out->addresses) + 1);
	if (!out->addresses)
		return false;
	for (uint32_t i = 0; i < sample->nuser; i++) {
		struct raw_frame frame = sample->user[i];

		out->addresses[i] = frame.pc;
		frame.pc = place_of(waits, sample, i);
		if (!vec_push(&out->user, frame))
			return false;
	}
	return true;
}

bool waits_replace_user(struct waits *waits, struct wait_stack *stack, const struct stack_sample *sample)
{
	struct wait_stack other = {0};

	if (!fill_user(waits, sample, &other)) {
		raw_stack_deinit(&other.user);
		return false;
	}
	vec_deinit(&stack->user);
	other.user.runtime = stack->user.runtime;
	stack->user = other.user;
	stack->addresses = other.addresses;
	stack->user_end = sample->user_end;
	return true;
}

static bool fill_stack(struct waits *waits, const struct stack_sample *sample, struct wait_stack *out)
{
	out->id = sample->id;
	out->set = sample->set;
	out->kernel_error = sample->kernel_error;
	out->user_end = sample->user_end;
	out->user_error = sample->user_error ? arena_intern(waits->arena, sample->user_error) : NULL;
	out->kernel_error_words =
		sample->kernel_error_words ? arena_intern(waits->arena, sample->kernel_error_words) : NULL;
	out->nkernel = sample->nkernel;
	out->copy = sample->copy;
	out->kernel = arena_alloc(waits->arena, sample->nkernel * sizeof(*out->kernel) + 1);
	if (!out->kernel)
		return false;
	if (sample->kernel_text && !copy_kernel_text(waits, sample, out))
		return false;
	if (sample->kernel)
		memcpy(out->kernel, sample->kernel, sample->nkernel * sizeof(*out->kernel));
	if (!fill_user(waits, sample, out))
		return false;
	out->runtime_end = sample->runtime_end;
	out->runtime_process = sample->runtime_process;
	for (uint32_t i = 0; i < sample->nruntime; i++)
		if (!vec_push(&out->user.runtime, sample->runtime[i]))
			return false;
	return true;
}

struct wait_stack *waits_put_stack(struct waits *waits, const struct stack_sample *sample)
{
	struct wait_stack *stack;
	size_t bytes = sizeof(*stack) + sample->nkernel * sizeof(uint64_t) +
		       sample->nuser * (sizeof(struct raw_frame) + sizeof(uint64_t)) +
		       sample->nruntime * sizeof(struct runtime_frame);

	if (find_stack(waits, sample->id))
		return NULL;
	if (waits->options.max_stack_bytes && waits->stack_bytes + bytes > waits->options.max_stack_bytes) {
		drop_stack(waits, sample->id);
		return NULL;
	}
	waits->stack_bytes += bytes;
	stack = vec_reserve(&waits->stacks, waits->stacks.len + 1) ? calloc(1, sizeof(*stack)) : NULL;
	if (!stack || !chains_add(&waits->by_id, sample->id.low)) {
		free(stack);
		waits->lost++;
		return NULL;
	}
	stack->number = waits->stacks.len;
	waits->stacks.data[waits->stacks.len++] = stack;
	if (!fill_stack(waits, sample, stack))
		waits->lost++;
	return stack;
}

struct wait_stack *waits_add_stack(struct waits *waits, const void *record, size_t len)
{
	struct sent_stack sent;

	if (!sent_stack_read(record, len, &sent)) {
		waits->lost++;
		return NULL;
	}
	return waits_put_stack(waits, &(struct stack_sample){
					      .id = sent.head->id,
					      .kernel = sent.kernel,
					      .nkernel = sent.head->nkernel,
					      .kernel_error = sent.head->kernel_error,
					      .user = sent.user,
					      .nuser = sent.head->nuser,
					      .user_end = sent.head->user_end,
					      .runtime = sent.runtime,
					      .nruntime = sent.nruntime,
					      .runtime_end = sent.head->runtime_end,
					      .set = sent.head->set,
					      .copy = sent.head->copy,
				      });
}

/* The row of a key, or NULL. *hash: the hash of the key. */
static struct keyed_row *find_row(const struct waits *waits, const struct offcpu_key *key, uint64_t *hash)
{
	*hash = hash_bytes(HASH_SEED, key, sizeof(*key));
	for (size_t i = chains_first(&waits->by_key, *hash); i; i = chains_next(&waits->by_key, i))
		if (memcmp(&waits->rows.data[i - 1]->key, key, sizeof(*key)) == 0)
			return waits->rows.data[i - 1];
	return NULL;
}

static struct keyed_row *create_row(struct waits *waits, const struct offcpu_key *key, uint64_t hash)
{
	struct keyed_row *row;

	if (waits->rows.len >= waits->options.max_rows)
		return NULL;
	row = vec_reserve(&waits->rows, waits->rows.len + 1) ? calloc(1, sizeof(*row)) : NULL;
	if (!row || !chains_add(&waits->by_key, hash)) {
		free(row);
		return NULL;
	}
	row->key = *key;
	waits->rows.data[waits->rows.len++] = row;
	return row;
}

/* Waits with one key, and what BPF reported of them. */
struct wait_group {
	struct offcpu_key key;
	struct offcpu_sum sum;
	const uint8_t *first; /* buckets of waits; NULL: it is one wait */
	const struct offcpu_lengths_counted *lengths; /* of further ones, or NULL */
	const char *comm;
	const char *waker_comm;
	pid_t waker_tgid;
};

/*
 * The last name counts: threads take their names late. It is replaced in place, since a thread may go on renaming
 * itself.
 */
static void keep_comm(char name[static OFFCPU_COMM + 1], const char *comm)
{
	memcpy(name, comm, OFFCPU_COMM);
}

static bool is_of_thread(const struct keyed_thread *thread, const struct offcpu_key *key)
{
	return thread->thread.pid == (pid_t)key->tgid && thread->thread.tid == (pid_t)key->tid &&
	       thread->thread.start_ns == key->thread_start_ns;
}

static uint64_t hash_thread(uint32_t tgid, uint32_t tid, uint64_t start_ns)
{
	return hash_u64(hash_u64(HASH_SEED, (uint64_t)tgid << 32 | tid), start_ns);
}

static struct keyed_thread *find_thread(const struct waits *waits, const struct offcpu_key *key, uint64_t *hash)
{
	*hash = hash_thread(key->tgid, key->tid, key->thread_start_ns);
	for (size_t i = chains_first(&waits->by_thread, *hash); i; i = chains_next(&waits->by_thread, i))
		if (is_of_thread(waits->threads.data[i - 1], key))
			return waits->threads.data[i - 1];
	return NULL;
}

/* At most as many as rows: each thread has at least one row. */
static struct keyed_thread *create_thread(struct waits *waits, const struct offcpu_key *key, uint64_t hash)
{
	struct keyed_thread *thread;

	if (waits->threads.len >= waits->options.max_rows)
		return NULL;
	thread = vec_reserve(&waits->threads, waits->threads.len + 1) ? calloc(1, sizeof(*thread)) : NULL;
	if (!thread || !chains_add(&waits->by_thread, hash)) {
		free(thread);
		return NULL;
	}
	thread->thread = (struct offcpu_thread){
		.pid = (pid_t)key->tgid,
		.tid = (pid_t)key->tid,
		.process_start_ns = key->process_start_ns,
		.start_ns = key->thread_start_ns,
		.name = thread->name,
	};
	waits->threads.data[waits->threads.len++] = thread;
	return thread;
}

static void add_to_thread(struct waits *waits, const struct wait_group *group)
{
	uint64_t hash, blocked = group->sum.total_ns - group->sum.runnable_ns;
	struct keyed_thread *keyed = find_thread(waits, &group->key, &hash);
	struct offcpu_thread *thread;

	if (!keyed)
		keyed = create_thread(waits, &group->key, hash);
	if (!keyed)
		return; /* there will be no row for it either, and that is counted */
	keep_comm(keyed->name, group->comm);
	thread = &keyed->thread;
	offcpu_sum_merge(&thread->sum, &group->sum);
	thread->runnable_ns += group->sum.runnable_ns;
	if (group->key.state == OFFCPU_UNINTERRUPTIBLE)
		thread->uninterruptible_ns += blocked;
	else
		thread->sleeping_ns += blocked;
}

static const char *intern_comm(struct waits *waits, const char *comm)
{
	return arena_intern_n(waits->arena, comm, strnlen(comm, OFFCPU_COMM));
}

static struct wait_row new_row(struct waits *waits, const struct wait_group *group)
{
	struct wait_row row = {
		.tgid = (pid_t)group->key.tgid,
		.tid = (pid_t)group->key.tid,
		.process_start_ns = group->key.process_start_ns,
		.thread_start_ns = group->key.thread_start_ns,
		.state = (char)group->key.state,
	};

	row.has_waker = group->key.waker_tid != 0;
	if (group->key.waker_tid == OFFCPU_INTERRUPT) {
		row.waker_name = OFFCPU_INTERRUPT_NAME;
		row.interrupt = true;
	} else if (group->key.waker_tid == OFFCPU_OUTSIDE) {
		row.waker_name = OFFCPU_OUTSIDE_NAME;
	} else if (row.has_waker) {
		row.waker_tgid = group->waker_tgid;
		row.waker_tid = (pid_t)group->key.waker_tid;
		row.waker_name = intern_comm(waits, group->waker_comm);
	}
	return row;
}

static void note_owner(struct wait_stack *stack, pid_t tgid)
{
	if (!stack->tgid)
		stack->tgid = tgid;
	stack->is_shared |= stack->tgid != tgid;
}

/* What does not fit into memory is missing, which makes the lengths of the row unknown. */
static void add_lengths(struct offcpu_lengths *lengths, const struct wait_group *group)
{
	const uint64_t nfirst = group->sum.count < OFFCPU_FIRST_WAITS ? group->sum.count : OFFCPU_FIRST_WAITS;

	if (!group->first) {
		offcpu_lengths_add(lengths, offcpu_bucket_middle(offcpu_bucket_of(group->sum.total_ns)), 1);
		return;
	}
	for (uint64_t i = 0; i < nfirst; i++)
		offcpu_lengths_add(lengths, offcpu_bucket_middle(group->first[i]), 1);
	for (uint32_t bucket = 0; group->lengths && bucket < OFFCPU_BUCKETS; bucket++)
		if (group->lengths->counts[bucket])
			offcpu_lengths_add(lengths, offcpu_bucket_middle(bucket), group->lengths->counts[bucket]);
}

static const struct wait_row *add(struct waits *waits, const struct wait_group *group)
{
	struct keyed_row *row;
	uint64_t hash;

	if (!group->sum.count || group->sum.runnable_ns > group->sum.total_ns) {
		waits->lost++;
		return NULL;
	}
	add_to_thread(waits, group);
	row = find_row(waits, &group->key, &hash);
	if (!row) {
		row = create_row(waits, &group->key, hash);
		if (!row) {
			waits->lost += group->sum.count;
			return NULL;
		}
		row->row = new_row(waits, group);
		row->row.name = row->name;
	}
	if (is_missing(waits, row->row.stack))
		row->row.stack = find_for_row(waits, group->key.stack);
	if (row->row.stack)
		note_owner(row->row.stack, row->row.tgid);
	if (is_missing(waits, row->row.waker_stack) && row->row.has_waker)
		row->row.waker_stack = find_for_row(waits, group->key.waker_stack);
	keep_comm(row->name, group->comm);
	offcpu_sum_merge(&row->row.sum, &group->sum);
	add_lengths(&row->lengths, group);
	return &row->row;
}

const struct wait_row *waits_add_wait(struct waits *waits, const void *record, size_t len)
{
	const struct offcpu_wait *wait = record;
	struct wait_group group;

	if (len < sizeof(*wait)) {
		waits->lost++;
		return NULL;
	}
	group = (struct wait_group){
		.key = wait->key,
		.comm = wait->comm,
		.waker_comm = wait->waker_comm,
		.waker_tgid = (pid_t)wait->waker_tgid,
	};
	offcpu_sum_add(&group.sum, wait->duration_ns, wait->runnable_ns);
	group.sum.unfinished = wait->flags & OFFCPU_UNFINISHED ? 1 : 0;
	return add(waits, &group);
}

void waits_add_sums(struct waits *waits, const struct offcpu_key *key, const struct offcpu_sums *sums,
		    const struct offcpu_lengths_counted *lengths)
{
	const struct wait_group group = {
		.key = *key,
		.sum =
			{
				.count = sums->count,
				.unfinished = sums->unfinished,
				.total_ns = sums->total_ns,
				.max_ns = sums->max_ns,
				.min_ns = sums->min_ns,
				.runnable_ns = sums->runnable_ns,
			},
		.first = sums->first,
		.lengths = lengths,
		.comm = sums->comm,
		.waker_comm = sums->waker_comm,
		.waker_tgid = (pid_t)sums->waker_tgid,
	};

	add(waits, &group);
}

void waits_add_ran(struct waits *waits, const void *record, size_t len)
{
	const struct offcpu_ran *ran = record;
	uint64_t *index;
	bool created;

	if (len < sizeof(*ran) || waits->times.len >= waits->options.max_rows)
		return;
	index = u64map_put(&waits->ran, hash_thread(ran->tgid, ran->tid, ran->thread_start_ns), &created);
	if (index && created && vec_push(&waits->times, (struct run_time){ran->ran_ns, ran->until_ns}))
		*index = waits->times.len;
}

void waits_settle_ran(struct waits *waits, uint64_t begin_ns)
{
	for (size_t i = 0; i < waits->threads.len; i++) {
		struct offcpu_thread *thread = &waits->threads.data[i]->thread;
		const uint64_t hash = hash_thread((uint32_t)thread->pid, (uint32_t)thread->tid, thread->start_ns);
		const uint64_t *index = u64map_find(&waits->ran, hash);
		const uint64_t from = thread->start_ns > begin_ns ? thread->start_ns : begin_ns;
		const struct run_time *time = index && *index ? &waits->times.data[*index - 1] : NULL;

		if (!time || time->until_ns <= from)
			continue;
		thread->elapsed_ns = time->until_ns - from;
		thread->on_cpu_ns = time->ran_ns < thread->elapsed_ns ? time->ran_ns : thread->elapsed_ns;
	}
}

size_t waits_nrows(const struct waits *waits)
{
	return waits->rows.len;
}

const struct wait_row *waits_row(const struct waits *waits, size_t index)
{
	return &waits->rows.data[index]->row;
}

const struct offcpu_lengths *waits_lengths(const struct waits *waits, size_t index)
{
	return &waits->rows.data[index]->lengths;
}

size_t waits_nstacks(const struct waits *waits)
{
	return waits->stacks.len;
}

struct wait_stack *waits_stack(const struct waits *waits, size_t index)
{
	return waits->stacks.data[index];
}

size_t waits_nthreads(const struct waits *waits)
{
	return waits->threads.len;
}

const struct offcpu_thread *waits_thread(const struct waits *waits, size_t index)
{
	return &waits->threads.data[index]->thread;
}

uint64_t waits_stacks_lost(const struct waits *waits)
{
	return waits->stacks_lost;
}

uint64_t waits_lost(const struct waits *waits)
{
	return waits->lost;
}
