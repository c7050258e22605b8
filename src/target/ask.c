/* SPDX-License-Identifier: MIT */
#include "target/ask.h"

#include <errno.h>
#include <string.h>

#include "target/target.h"

/* What all questions for one process may bring, in bytes. */
static const uint64_t max_bytes = UINT64_C(512) << 20;

bool ask_want(struct ask *wants, uint64_t address, uint64_t len, enum ask_keep keep)
{
	return vec_push(wants, (struct ask_range){.address = address, .len = len, .keep = keep});
}

void ask_deinit(struct ask *ask)
{
	vec_deinit(ask);
}

bool ask_read(struct memory *memory, struct snapshot *snap, struct ask *const *asks, size_t n)
{
	VEC(struct memory_job) jobs = {0};
	VEC(struct ask_range *) ranges = {0};
	bool ok = true;

	for (size_t i = 0; ok && i < n; i++) {
		for (size_t k = 0; ok && k < asks[i]->len; k++) {
			struct ask_range *range = &asks[i]->data[k];

			if (!range->len || range->len > max_bytes - snap->asked_bytes)
				continue;
			range->data = arena_alloc(snap->arena, range->len);
			ok = range->data && vec_push(&ranges, range) &&
			     vec_push(&jobs, (struct memory_job){
						     .address = range->address, .len = range->len, .dst = range->data});
			snap->asked_bytes += range->len;
		}
	}
	if (ok)
		memory_copy(memory, jobs.data, jobs.len); /* errors are seen range by range */
	for (size_t i = 0; ok && i < jobs.len; i++)
		ranges.data[i]->got = jobs.data[i].done;
	vec_deinit(&jobs);
	vec_deinit(&ranges);
	return ok;
}

bool ask_keep(struct snapshot *snap, pid_t tid, const struct ask *answers)
{
	bool ok = true;

	for (size_t i = 0; ok && i < answers->len; i++) {
		const struct ask_range *range = &answers->data[i];
		struct mem_copy copy = {
			.start = range->address,
			.len = range->got,
			.region_end = range->address + range->got,
			.data = range->data,
		};

		if (!range->got)
			continue;
		if (range->keep == ASK_BYTES)
			ok = vec_push(&snap->copies, (struct snap_copy){.tid = tid, .copy = copy});
		else if (range->got == range->len && range->keep == ASK_IMAGE)
			ok = vec_push(&snap->images, copy);
		else if (range->got == range->len && range->keep == ASK_JIT_IMAGE)
			ok = vec_push(&snap->jit_images, copy);
	}
	return ok;
}

int ask_process(struct target *target, struct snapshot *snap, const struct asker *asker, void *state, struct err *err)
{
	struct ask answers = {0}, wants = {0}, *asks[] = {&wants};
	bool ok = true;

	for (unsigned round = 0; ok; round++) {
		struct ask last = answers;

		wants.len = 0;
		ok = asker->ask(state, snap, NULL, &answers, &wants);
		if (!ok || !wants.len || round == asker->max_rounds)
			break;
		ok = ask_read(&target->memory, snap, asks, 1) && ask_keep(snap, 0, &wants);
		answers = wants;
		wants = last;
	}
	ask_deinit(&answers);
	ask_deinit(&wants);
	return ok ? 0 : err_set(err, ENOMEM, "out of memory");
}

enum { MAX_VDSO = 1 << 20 };

static bool want_vdso(void *state, const struct snapshot *snap, const struct snap_thread *thread,
		      const struct ask *answers, struct ask *wants)
{
	for (size_t i = 0; !answers->len && i < snap->maps.len; i++) {
		const struct map_entry *e = &snap->maps.data[i];

		if (strcmp(e->path, "[vdso]") == 0 && e->end - e->start <= MAX_VDSO &&
		    !ask_want(wants, e->start, e->end - e->start, ASK_IMAGE))
			return false;
	}
	return true;
}

/* One round: what it wants it only wants to keep. */
const struct asker ask_vdso = {.max_rounds = 1, .ask = want_vdso};
