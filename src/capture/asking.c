/* SPDX-License-Identifier: MIT */
/* What stages want of a thread's memory besides its stack: read while it sleeps, and proved to be of that sleep. */
#include <errno.h>
#include <stdlib.h>

#include "capture/take.h"
#include "target/ask.h"

/* One thread's questions. */
struct inquiry {
	struct ask answers;
	struct ask wants;
	bool done;
	bool read; /* something was, for it */
};

struct asking {
	struct capture *capture;
	struct snapshot *snap;
	const struct asker *asker;
	void *state;
	size_t first; /* copy that was made for an answer */
	struct inquiry *asked; /* beside snap->threads */
	VEC(struct ask *) wants; /* of this round */
};

/* Its memory stands still only while it sleeps: of one that was held nothing more can be had. */
static bool can_be_read(const struct snap_thread *t)
{
	return t->capture == CAPTURE_ASLEEP;
}

/* One question to each thread that still has one. False when memory is exhausted. */
static bool ask_all(struct asking *a)
{
	a->wants.len = 0;
	for (size_t i = 0; i < a->snap->threads.len; i++) {
		const struct snap_thread *t = &a->snap->threads.data[i];
		struct inquiry *asked = &a->asked[i];

		if (asked->done)
			continue;
		asked->wants.len = 0;
		if (!a->asker->ask(a->state, a->snap, t, &asked->answers, &asked->wants))
			return false;
		asked->done = !asked->wants.len || !can_be_read(t);
		if (!asked->done && !vec_push(&a->wants, &asked->wants))
			return false;
	}
	return true;
}

static bool answer_all(struct asking *a)
{
	if (!ask_read(&a->capture->target->memory, a->snap, a->wants.data, a->wants.len))
		return false;
	for (size_t i = 0; i < a->snap->threads.len; i++) {
		struct inquiry *asked = &a->asked[i];
		struct ask last = asked->answers;

		if (asked->done)
			continue;
		if (!ask_keep(a->snap, a->snap->threads.data[i].tid, &asked->wants))
			return false;
		asked->read = true;
		asked->answers = asked->wants;
		asked->wants = last;
	}
	return true;
}

/* What was read for the thread since `first`; what was read with its stack was proved with that. */
static void drop_copies(struct snapshot *snap, pid_t tid, size_t first)
{
	size_t kept = first;

	for (size_t i = first; i < snap->copies.len; i++)
		if (snap->copies.data[i].tid != tid)
			snap->copies.data[kept++] = snap->copies.data[i];
	snap->copies.len = kept;
}

/* Like pass 2 for the stacks: what was read of a thread that has run since is not of the snapshot's instant. */
static void confirm(struct asking *a)
{
	bool looked = false, confirmed = false;

	for (size_t i = 0; i < a->snap->threads.len; i++) {
		const struct snap_thread *t = &a->snap->threads.data[i];

		if (!a->asked[i].read)
			continue;
		if (!looked)
			confirmed = take_look(a->capture) == 0;
		looked = true;
		if (confirmed && capture_unmoved(a->capture, t))
			continue;
		drop_copies(a->snap, t->tid, a->first);
		if (a->asker->forget)
			a->asker->forget(a->state, a->snap, t);
	}
}

/* The number of this pass is higher than that of any before. Without it nobody is known to have stood still. */
void capture_note_stillness(struct capture *c, struct snapshot *snap)
{
	const bool looked = take_look(c) == 0;
	uint32_t pass = 0;

	for (size_t i = 0; !looked && i < snap->threads.len; i++)
		snap->threads.data[i].still = STILL_NEVER;
	for (size_t i = 0; i < snap->threads.len; i++) {
		const struct snap_thread *t = &snap->threads.data[i];

		pass = t->read_in > pass ? t->read_in : pass;
		pass = t->still_in > pass ? t->still_in : pass;
	}
	snap->capture.last_look = pass + 1;
	for (size_t i = 0; i < snap->threads.len; i++) {
		struct snap_thread *t = &snap->threads.data[i];

		if (t->still == STILL_NEVER || !capture_unmoved(c, t))
			continue;
		t->still_in = pass + 1;
		t->woken |= take_find_observed(c, t->tid)->state == 'R';
	}
}

int capture_ask(struct capture *c, struct snapshot *snap, const struct asker *asker, void *state, struct err *err)
{
	struct asking a = {.capture = c, .snap = snap, .asker = asker, .state = state, .first = snap->copies.len};
	bool ok;

	a.asked = calloc(snap->threads.len + 1, sizeof(*a.asked));
	ok = a.asked;
	for (unsigned round = 0; ok && round <= asker->max_rounds; round++) {
		ok = ask_all(&a);
		if (!a.wants.len || round == asker->max_rounds)
			break;
		ok = ok && answer_all(&a);
	}
	if (ok)
		confirm(&a);
	for (size_t i = 0; a.asked && i < snap->threads.len; i++) {
		ask_deinit(&a.asked[i].answers);
		ask_deinit(&a.asked[i].wants);
	}
	free(a.asked);
	vec_deinit(&a.wants);
	return ok ? 0 : err_set(err, ENOMEM, "out of memory");
}
