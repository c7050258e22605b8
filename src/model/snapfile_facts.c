/* SPDX-License-Identifier: MIT */
#include "model/snapfile_facts.h"

#include <errno.h>
#include <inttypes.h>

enum {
	MAX_OTHERS = 1 << 16,
	LEAST_OTHER = 4 + 1 + 4, /* bytes; fewer cannot be one: bounds what a wrong number costs */
};

enum { FACT_THROTTLED = 1, FACT_HAS_CHILDREN = 2, FACT_FROZEN = 4, FACT_HAS_KEY = 8, FACT_HAS_AHEAD = 16, FACT_HAS_HANDLER = 32, FACT_HAS_ASYNC_HANDLER = 64 };

static void put_other(struct bytes *b, const struct wait_peer *other)
{
	put_u32(b, (uint32_t)other->pid);
	put_u8(b, (uint8_t)other->state);
	put_string(b, other->comm);
}

void put_facts(struct bytes *b, const struct snap_thread *t)
{
	const struct thread_facts *f = &t->facts;

	put_u32(b, (uint32_t)t->tid);
	put_u32(b, (f->throttled ? FACT_THROTTLED : 0u) | (f->has_children ? FACT_HAS_CHILDREN : 0u) | (f->frozen ? FACT_FROZEN : 0u) |
			   (f->has_key ? FACT_HAS_KEY : 0u) | (f->ahead.comm ? FACT_HAS_AHEAD : 0u) | (f->has_handler ? FACT_HAS_HANDLER : 0u) |
			   (f->has_async_handler ? FACT_HAS_ASYNC_HANDLER : 0u));
	put_u32(b, (uint32_t)f->cpu);
	put_u64(b, (uint64_t)f->timer_ns);
	put_u32(b, f->stop_signal);
	put_u32(b, f->key);
	put_u32(b, f->total);
	put_string(b, f->place);
	put_string(b, f->filesystem);
	put_string(b, f->device);
	if (f->ahead.comm)
		put_other(b, &f->ahead);
	put_u32(b, f->nothers);
	for (uint32_t i = 0; i < f->nothers; i++)
		put_other(b, &f->others[i]);
}

static int get_other(struct cursor *c, struct snapshot *snap, struct err *err, struct wait_peer *out)
{
	out->pid = (pid_t)cursor_u32(c);
	out->state = (char)cursor_u8(c);
	return get_text(c, snap, err, &out->comm);
}

static int get_others(struct cursor *c, struct snapshot *snap, struct err *err, struct thread_facts *f)
{
	const uint32_t n = cursor_u32(c);
	struct wait_peer *others;
	int ret = 0;

	if (n > MAX_OTHERS || n > cursor_left(c) / LEAST_OTHER)
		return err_set(err, EINVAL, "%" PRIu32 " other processes", n);
	others = arena_alloc(snap->arena, n * sizeof(*others) + 1);
	if (!others)
		return snapfile_no_memory(err);
	for (uint32_t i = 0; !ret && i < n; i++)
		ret = get_other(c, snap, err, &others[i]);
	f->others = others;
	f->nothers = n;
	return ret;
}

int get_facts(struct cursor *c, struct snapshot *snap, struct err *err)
{
	struct snap_thread *t = snap->threads.len ? &snap->threads.data[snap->threads.len - 1] : NULL;
	const pid_t tid = (pid_t)cursor_u32(c);
	struct thread_facts f = {0};
	const char **const strings[] = {&f.place, &f.filesystem, &f.device};
	uint32_t bits = cursor_u32(c), signal;
	int ret = 0;

	f.cpu = (int32_t)cursor_u32(c);
	f.timer_ns = (int64_t)cursor_u64(c);
	signal = cursor_u32(c);
	f.stop_signal = signal <= UINT8_MAX ? (uint8_t)signal : 0;
	f.key = cursor_u32(c);
	f.total = cursor_u32(c);
	f.throttled = bits & FACT_THROTTLED;
	f.has_children = bits & FACT_HAS_CHILDREN;
	f.frozen = bits & FACT_FROZEN;
	f.has_key = bits & FACT_HAS_KEY;
	f.has_handler = bits & FACT_HAS_HANDLER;
	f.has_async_handler = bits & FACT_HAS_ASYNC_HANDLER;
	for (size_t i = 0; !ret && i < sizeof(strings) / sizeof(strings[0]); i++)
		ret = get_string(c, snap, err, strings[i]);
	if (!ret && bits & FACT_HAS_AHEAD)
		ret = get_other(c, snap, err, &f.ahead);
	if (!ret)
		ret = get_others(c, snap, err, &f);
	if (ret || c->bad)
		return ret;
	if (!t || t->tid != tid)
		return err_set(err, EINVAL, "it does not follow the thread %d", (int)tid);
	t->facts = f;
	return 0;
}
