/* SPDX-License-Identifier: MIT */
#include "runtime/python/threads.h"

#include <errno.h>
#include <string.h>

enum {
	FIRST_TID_OFFSET = 0x40, /* in the C library's struct pthread: 0xd0 and 0x2d0 in glibc, others elsewhere */
	LAST_TID_OFFSET = 0x400,
};

static bool read_u64(struct mem *mem, uint64_t address, uint64_t *out)
{
	return mem_read_exact(mem, address, out, sizeof(*out));
}

static bool is_known(const struct tid_list *tids, pid_t tid)
{
	return !tids->len || tid_list_has(tids, tid);
}

/* It is among those from `first` on: the list is a ring. */
static bool is_listed(const struct python_threads *threads, size_t first, uint64_t tstate)
{
	for (size_t i = first; i < threads->len; i++)
		if (threads->data[i].tstate == tstate)
			return true;
	return false;
}

/* One interpreter's. A list that changes meanwhile may lead astray: what does not say that it is this one's ends it. */
static int list_interpreter(const struct python_layout *layout, struct mem *mem, uint64_t interp, struct err *err,
			    struct python_threads *out)
{
	uint64_t tstate, next;
	size_t first = out->len;

	if (!read_u64(mem, interp + layout->at[PY_INTERP_THREADS], &tstate))
		return err_set(err, EINVAL, "layout check failed: an interpreter's state cannot be read");
	for (; tstate && out->len < PYTHON_MAX_THREADS && !is_listed(out, first, tstate); tstate = next) {
		struct python_thread thread = {.tstate = tstate, .interp = interp};
		uint64_t owner, native = 0;

		if (!read_u64(mem, tstate + layout->at[PY_TSTATE_NEXT], &next) ||
		    !read_u64(mem, tstate + layout->at[PY_TSTATE_INTERP], &owner) ||
		    !read_u64(mem, tstate + layout->at[PY_TSTATE_THREAD], &thread.thread) || owner != interp ||
		    (layout->at[PY_TSTATE_NATIVE] && !read_u64(mem, tstate + layout->at[PY_TSTATE_NATIVE], &native)))
			return out->len ? 0 : err_set(err, EINVAL, "layout check failed: a thread state is not its interpreter's");
		thread.tid = thread.own = thread.native = (pid_t)native;
		if (!vec_push(out, thread))
			return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

static int list_all(const struct python_layout *layout, struct mem *mem, struct err *err, struct python_threads *out)
{
	uint64_t interp;
	int rc = 0;

	out->len = 0;
	if (!read_u64(mem, layout->at[PY_RUNTIME] + layout->at[PY_RUNTIME_INTERPRETERS], &interp))
		return err_set(err, EINVAL, "layout check failed: _PyRuntime cannot be read");
	if (!interp)
		return err_set(err, EAGAIN, "it has no interpreter yet, or no longer");
	for (int i = 0; rc == 0 && interp && i < PYTHON_MAX_INTERPRETERS; i++) {
		rc = list_interpreter(layout, mem, interp, err, out);
		if (rc == 0 && !read_u64(mem, interp + layout->at[PY_INTERP_NEXT], &interp))
			rc = err_set(err, EINVAL, "layout check failed: an interpreter's state cannot be read");
	}
	return rc;
}

/* Whether all thread states have a tid of the process there, and no two the same. */
static bool is_tid_offset(struct mem *mem, const struct tid_list *tids, uint64_t offset, struct python_threads *threads)
{
	for (size_t i = 0; i < threads->len; i++) {
		uint32_t tid;

		if (!mem_read_exact(mem, threads->data[i].thread + offset, &tid, sizeof(tid)) || !tid || !is_known(tids, (pid_t)tid))
			return false;
		for (size_t k = 0; k < i; k++)
			if (threads->data[k].tid == (pid_t)tid && threads->data[k].thread != threads->data[i].thread)
				return false;
		threads->data[i].tid = threads->data[i].own = (pid_t)tid;
	}
	return threads->len;
}

/* Up to 3.10 a thread state has what pthread_self() is: the address of a struct that has the tid somewhere. */
static int find_tids(struct python_layout *layout, struct mem *mem, const struct tid_list *tids, struct err *err,
		     struct python_threads *threads)
{
	uint64_t known = layout->at[PY_PTHREAD_TID];

	if (known) {
		for (size_t i = 0; i < threads->len; i++) {
			uint32_t tid = 0;

			mem_read_exact(mem, threads->data[i].thread + known, &tid, sizeof(tid));
			threads->data[i].tid = threads->data[i].own = (pid_t)tid;
		}
		return 0;
	}
	for (uint64_t offset = FIRST_TID_OFFSET; tids->len && offset < LAST_TID_OFFSET; offset += 4)
		if (is_tid_offset(mem, tids, offset, threads)) {
			layout->at[PY_PTHREAD_TID] = offset;
			return 0;
		}
	return err_set(err, EINVAL, "layout check failed: the ids of its threads are not where the C library keeps them");
}

static bool has_thread(const struct python_threads *threads, uint64_t interp, pid_t tid)
{
	for (size_t i = 0; i < threads->len; i++)
		if (threads->data[i].interp == interp && threads->data[i].tid == tid)
			return true;
	return false;
}

/* Where the tid is in what pthread_self() points to, by a thread whose state has it. 0: it cannot be told. */
static uint64_t find_tid_offset(struct mem *mem, const struct tid_list *tids, const struct python_threads *threads)
{
	uint8_t bytes[LAST_TID_OFFSET];

	for (size_t i = 0; i < threads->len; i++) {
		uint32_t tid = (uint32_t)threads->data[i].tid, word;

		if (!tid_list_has(tids, threads->data[i].tid) ||
		    !mem_read_exact(mem, threads->data[i].thread, bytes, sizeof(bytes)))
			continue;
		for (uint64_t offset = FIRST_TID_OFFSET; offset < LAST_TID_OFFSET; offset += sizeof(word)) {
			memcpy(&word, bytes + offset, sizeof(word));
			if (word == tid)
				return offset;
		}
	}
	return 0;
}

/*
 * A program may fork by itself, as uWSGI does, and go on with the same thread state, which has its parent's tid then. What
 * pthread_self() is has not changed, and the C library has the new tid there. Thread states of threads that were not forked
 * may lead to the memory of a new one, which has a state of its own.
 */
static void find_forked(struct python_layout *layout, struct mem *mem, const struct tid_list *tids, struct python_threads *threads)
{
	if (!layout->at[PY_PTHREAD_TID])
		layout->at[PY_PTHREAD_TID] = find_tid_offset(mem, tids, threads);
	for (size_t i = 0; i < threads->len; i++) {
		struct python_thread *thread = &threads->data[i];
		uint32_t tid;

		if (is_known(tids, thread->tid))
			continue;
		if (!layout->at[PY_PTHREAD_TID] && threads->len == 1)
			find_tids(layout, mem, tids, NULL, threads);
		else if (layout->at[PY_PTHREAD_TID] && mem_read_exact(mem, thread->thread + layout->at[PY_PTHREAD_TID], &tid, sizeof(tid)) &&
			 is_known(tids, (pid_t)tid) && !has_thread(threads, thread->interp, (pid_t)tid))
			thread->tid = thread->own = (pid_t)tid;
	}
}

/* Threads that have ended since, or have not begun, are left out. */
static int check_tids(const struct tid_list *tids, struct err *err, struct python_threads *threads)
{
	size_t kept = 0;

	for (size_t i = 0; i < threads->len; i++)
		if (threads->data[i].tid > 0 && is_known(tids, threads->data[i].tid))
			threads->data[kept++] = threads->data[i];
	threads->len = kept;
	return kept ? 0 : err_set(err, EINVAL, "layout check failed: no thread state is of a thread of the process");
}

int python_threads_list(struct python_layout *layout, struct mem *mem, const struct tid_list *tids, struct err *err,
			struct python_threads *out)
{
	int rc = list_all(layout, mem, err, out);

	if (rc == 0 && !layout->at[PY_TSTATE_NATIVE])
		rc = find_tids(layout, mem, tids, err, out);
	else if (rc == 0)
		find_forked(layout, mem, tids, out);
	return rc < 0 ? rc : check_tids(tids, err, out);
}
