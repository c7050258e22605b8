/* SPDX-License-Identifier: MIT */
#include "offcpu/samples.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"

struct words {
	VEC_FIELDS(uint64_t);
};

/* All that makes two waits the same, as words: pid and tid, state, errors, kernel texts, user frames. */
enum {
	WORD_WHO,
	WORD_STATE,
	WORD_KERNEL_ERROR,
	WORD_USER_ERROR,
	WORD_NKERNEL,
	WORD_FRAMES,
	WORDS_OF_FRAME = sizeof(struct sleeping_frame) / sizeof(uint64_t),
};

struct sample_row {
	struct sample_row *next; /* with the same hash */
	const char *name;
	struct offcpu_sum sum;
	struct raw_stack raw;
	struct stack named; /* with the addresses of this process */
	const struct sleeping_frame *user;
	size_t nuser;
	size_t nwords;
	uint64_t words[];
};

struct samples {
	struct samples_options options;
	struct arena *arena; /* of names */
	struct words words;  /* of the wait being added */
	struct u64map by_hash;
	VEC(struct sample_row *) rows;
	struct u64map by_thread; /* pid and tid to index + 1 */
	VEC(struct offcpu_thread) threads;
	struct symbolizer *symbolizer;
};

DEFINE_CLEANUP(samples, struct samples *, samples_destroy)

struct samples *samples_create(const struct samples_options *options)
{
	_cleanup_(cleanup_samples) struct samples *samples = calloc(1, sizeof(*samples));

	if (!samples)
		return NULL;
	samples->options = *options;
	samples->arena = arena_create();
	return samples->arena ? steal_ptr(samples) : NULL;
}

void samples_destroy(struct samples *samples)
{
	if (!samples)
		return;
	for (size_t i = 0; i < samples->rows.len; i++) {
		raw_stack_deinit(&samples->rows.data[i]->raw);
		vec_deinit(&samples->rows.data[i]->named);
		free(samples->rows.data[i]);
	}
	vec_deinit(&samples->rows);
	vec_deinit(&samples->words);
	vec_deinit(&samples->threads);
	u64map_deinit(&samples->by_hash);
	u64map_deinit(&samples->by_thread);
	symbolizer_destroy(samples->symbolizer);
	arena_destroy(samples->arena);
	free(samples);
}

static uint64_t who(pid_t pid, pid_t tid)
{
	return (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
}

static bool write_words(struct samples *samples, const struct sample *sample)
{
	struct words *words = &samples->words;
	size_t user = WORD_FRAMES + sample->nkernel, n = user + sample->nuser * WORDS_OF_FRAME;

	if (!vec_reserve(words, n))
		return false;
	words->len = n;
	words->data[WORD_WHO] = who(sample->pid, sample->tid);
	words->data[WORD_STATE] = (uint64_t)(unsigned char)sample->state;
	words->data[WORD_KERNEL_ERROR] = (uintptr_t)sample->kernel_error;
	words->data[WORD_USER_ERROR] = (uintptr_t)sample->user_error;
	words->data[WORD_NKERNEL] = sample->nkernel;
	for (size_t i = 0; i < sample->nkernel; i++)
		words->data[WORD_FRAMES + i] = (uintptr_t)sample->kernel[i];
	if (sample->nuser)
		memcpy(words->data + user, sample->user, sample->nuser * sizeof(*sample->user));
	return true;
}

static struct sample_row *find_row(struct samples *samples, size_t nuser)
{
	const struct words *words = &samples->words;
	size_t size = words->len * sizeof(*words->data);
	struct sample_row *row;
	bool created;
	uint64_t *slot = u64map_put(&samples->by_hash, hash_bytes(HASH_SEED, words->data, size), &created);

	if (!slot)
		return NULL;
	for (row = (struct sample_row *)(uintptr_t)*slot; row; row = row->next)
		if (row->nwords == words->len && memcmp(row->words, words->data, size) == 0)
			return row;
	if (samples->rows.len >= samples->options.max_rows)
		return NULL;
	row = calloc(1, sizeof(*row) + size);
	if (!row || !vec_push(&samples->rows, row)) {
		free(row);
		return NULL;
	}
	row->nwords = words->len;
	memcpy(row->words, words->data, size);
	row->nuser = nuser;
	row->user = (const struct sleeping_frame *)(row->words + words->len - nuser * WORDS_OF_FRAME);
	row->next = (struct sample_row *)(uintptr_t)*slot;
	*slot = (uintptr_t)row;
	return row;
}

struct sample_row *samples_row(struct samples *samples, const struct sample *sample)
{
	return write_words(samples, sample) ? find_row(samples, sample->nuser) : NULL;
}

static struct offcpu_thread *find_thread(struct samples *samples, pid_t pid, pid_t tid)
{
	bool created;
	uint64_t *slot = u64map_put(&samples->by_thread, who(pid, tid), &created);

	if (!slot)
		return NULL;
	if (!*slot) {
		if (!vec_push(&samples->threads, (struct offcpu_thread){.pid = pid, .tid = tid}))
			return NULL;
		*slot = samples->threads.len;
	}
	return &samples->threads.data[*slot - 1];
}

bool samples_add(struct samples *samples, struct sample_row *row, pid_t pid, pid_t tid, const char *thread_name,
		 char state, uint64_t duration_ns, bool unfinished)
{
	struct offcpu_thread *thread = find_thread(samples, pid, tid);
	const char *name = arena_intern(samples->arena, thread_name);

	if (!thread || !name)
		return false;
	thread->name = name; /* threads take their names late: the last one counts */
	offcpu_sum_add(&thread->sum, duration_ns, 0);
	thread->sum.unfinished += unfinished;
	if (state == 'D')
		thread->uninterruptible_ns += duration_ns;
	else
		thread->sleeping_ns += duration_ns;
	if (!row)
		return false;
	row->name = name;
	offcpu_sum_add(&row->sum, duration_ns, 0);
	row->sum.unfinished += unfinished;
	return true;
}

/* All names at once, so that files are read on all cores. */
static bool prepare(struct samples *samples)
{
	_cleanup_free_ const struct raw_stack **stacks = calloc(samples->rows.len + 1, sizeof(*stacks));

	if (!stacks)
		return false;
	for (size_t i = 0; i < samples->rows.len; i++) {
		struct sample_row *row = samples->rows.data[i];

		for (size_t j = 0; j < row->nuser; j++)
			if (!vec_push(&row->raw, (struct raw_frame){.pc = row->user[j].place,
								    .flags = (uint32_t)row->user[j].flags}))
				return false;
		stacks[i] = &row->raw;
	}
	return symbolizer_prepare(samples->symbolizer, stacks, samples->rows.len);
}

static bool name_user(struct samples *samples, struct sample_row *row)
{
	const struct stack *shared = symbolizer_name(samples->symbolizer, &row->raw);

	for (size_t i = 0; shared && i < shared->len; i++) {
		struct frame frame = shared->data[i];

		frame.address = row->user[frame.raw].address;
		if (!vec_push(&row->named, frame))
			return false;
	}
	return shared;
}

static bool name_kernel(struct samples *samples, const struct sample_row *row, const struct stack **out)
{
	size_t n = row->words[WORD_NKERNEL];
	const char **texts = arena_alloc(samples->arena, (n + 1) * sizeof(*texts));
	struct snap_thread thread = {.kernel_text = texts, .nkernel = (uint32_t)n};

	if (!texts)
		return false;
	for (size_t i = 0; i < n; i++)
		texts[i] = (const char *)(uintptr_t)row->words[WORD_FRAMES + i];
	*out = symbolizer_name_kernel(samples->symbolizer, &thread);
	return *out;
}

static bool add_row(struct samples *samples, struct sample_row *from, struct offcpu_profile *out)
{
	struct offcpu_row row = {
		.pid = (pid_t)(from->words[WORD_WHO] >> 32),
		.tid = (pid_t)(uint32_t)from->words[WORD_WHO],
		.thread_name = from->name,
		.state = (char)from->words[WORD_STATE],
		.sum = from->sum,
		.kernel_error = (const char *)(uintptr_t)from->words[WORD_KERNEL_ERROR],
		.user_error = (const char *)(uintptr_t)from->words[WORD_USER_ERROR],
	};

	if (!from->sum.count) /* it was too short, or too long */
		return true;
	if (from->nuser) {
		if (!name_user(samples, from))
			return false;
		row.user = &from->named;
	}
	if (from->words[WORD_NKERNEL] && !name_kernel(samples, from, &row.kernel))
		return false;
	return offcpu_profile_add_row(out, row);
}

bool samples_fill(struct samples *samples, const struct symbolizer_options *naming, struct offcpu_profile *out)
{
	samples->symbolizer = symbolizer_create(NULL, naming);
	if (!samples->symbolizer || !prepare(samples))
		return false;
	for (size_t i = 0; i < samples->threads.len; i++) {
		if (!offcpu_profile_add_thread(out, &samples->threads.data[i]))
			return false;
	}
	for (size_t i = 0; i < samples->rows.len; i++)
		if (!add_row(samples, samples->rows.data[i], out))
			return false;
	return offcpu_profile_finish(out);
}
