/* SPDX-License-Identifier: MIT */
/* What language runtimes read of a thread besides its stack, while that stands still. */
#include <stdlib.h>

#include "base/map.h"
#include "capture/take.h"

enum { READY = 8 << 10 }; /* of each thread's room: pages that are there before it is held */

static const uint64_t most_room = UINT64_C(1) << 30;

bool take_add_room(struct take *take, size_t nthreads, struct recorder_room *room)
{
	size_t ncopies = nthreads * RECORDER_THREAD_COPIES, bytes = ncopies * RECORDER_THREAD_BLOCK;
	const struct bulk *bulk;

	if (bytes > most_room - take->room) { /* what earlier rounds read is not given back */
		bytes = most_room - take->room;
		ncopies = bytes / RECORDER_THREAD_BLOCK;
	}
	if (!ncopies)
		return false;
	take->room += bytes;
	*room = (struct recorder_room){.cap = ncopies};
	bulk = take_add_bulk(take->snap, bytes, nthreads * READY);
	room->copies = calloc(ncopies, sizeof(*room->copies));
	if (!bulk || !room->copies) {
		free(room->copies);
		*room = (struct recorder_room){0};
		return false;
	}
	room->bytes = *bulk;
	return true;
}

int take_keep_room(struct take *take, struct recorder_room *room, bool replaces)
{
	struct snapshot *snap = take->snap;
	struct u64map again = {0};
	size_t kept = 0;
	bool ok = true;

	for (size_t i = 0; ok && replaces && i < room->len; i++) {
		bool created;

		ok = u64map_put(&again, (uint64_t)room->copies[i].tid, &created);
	}
	for (size_t i = 0; ok && i < snap->copies.len; i++)
		if (!u64map_find(&again, (uint64_t)snap->copies.data[i].tid))
			snap->copies.data[kept++] = snap->copies.data[i];
	if (ok)
		snap->copies.len = kept;
	for (size_t i = 0; ok && i < room->len; i++)
		ok = vec_push(&snap->copies, room->copies[i]);
	take->room -= room->bytes.size - room->used; /* nobody has touched the rest */
	u64map_deinit(&again);
	free(room->copies);
	room->copies = NULL;
	return ok ? 0 : take_out_of_memory(take);
}

/* Native stacks need far less. */
int take_do_without(struct take *take)
{
	take->capture->reads = false;
	notes_add(&take->snap->notes, "no frames of language runtimes: there is no memory for what has to be read");
	return 0;
}

int take_read_asleep(struct take *take)
{
	const struct thread_reader *reader = take->capture->options.reader;
	struct recorder_room room;
	size_t n = 0;

	for (size_t i = 0; i < take->work.len; i++)
		n += take->unread.data[i];
	if (!take->capture->reads || !n)
		return 0;
	if (!take_add_room(take, n, &room))
		return take_do_without(take);
	for (size_t i = 0; i < take->work.len; i++) {
		const struct snap_thread *t = &take->snap->threads.data[i];
		struct thread_recorder recorder;

		if (!take->unread.data[i])
			continue;
		thread_recorder_init(&recorder, &take->capture->target->memory, &room, t->tid, &t->stack, &t->interrupted);
		reader->read(reader->arg, t->tid, &t->regs, &recorder.mem);
		take->unread.data[i] = false;
	}
	return take_keep_room(take, &room, true);
}

void take_refresh_reader(struct take *take)
{
	const struct thread_reader *reader = take->capture->options.reader;

	if (take->capture->reads)
		reader->refresh(reader->arg);
}

/* Files may have been opened, which takes longer than many a thread sleeps: they are looked at anew. */
int take_begin_reading(struct take *take)
{
	const struct thread_reader *reader = take->capture->options.reader;

	take->capture->reads = reader && !take->snap->kernel_thread && reader->begin(reader->arg, take->snap);
	return take->capture->reads ? take_observe(take, 0, false) : 0;
}
