/* SPDX-License-Identifier: MIT */
#include "capture/file_ahead.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/signals.h"
#include "capture/blocking.h"
#include "capture/file_source.h"
#include "capture/take.h"
#include "proc/descriptors.h"

struct file_ahead {
	const struct process *process;
	pthread_t thread;
	bool runs;
	bool tells_tcp;
	struct open_files *files;
	struct file_look look;
};

/* Some of what is waited for are sockets. */
static bool any_socket(const struct file_ahead *a)
{
	enum { SOME = 16 };
	struct descriptors dirs;
	unsigned looked_at = 0;
	bool found = false;

	if (descriptors_open(a->process, 0, NULL, &dirs) < 0)
		return false;
	for (int fd = 0; !found && looked_at < SOME && fd < FILE_WANTED_WORDS * 64; fd++) {
		if (!file_wants_has(&a->look.wants, (uint64_t)fd))
			continue;
		looked_at++;
		found = descriptors_is_socket(&dirs, fd);
	}
	descriptors_close(&dirs);
	return found;
}

static void *load_and_look(void *arg)
{
	struct file_ahead *a = arg;
	struct err why;

	a->tells_tcp = any_socket(a) || file_source_list_is_long();
	if (open_files_create(a->tells_tcp, &why, &a->files) == 0)
		file_look_at_one(a->files, a->process->mm_tid, &a->look);
	return NULL;
}

/* What the descriptors in registers are. True: there are many. */
static bool want(const struct snapshot *snap, struct file_wants *wants)
{
	for (size_t i = 0; i < snap->threads.len; i++) {
		const struct snap_thread *t = &snap->threads.data[i];
		const struct blocking_call *call = blocking_call_of(snapshot_arch_of(snap, t), t);

		if (call)
			file_wants_blocked(wants, call, &t->syscall);
	}
	return file_wants_count(wants) > FEW_FILES;
}

struct file_ahead *file_ahead_begin(const struct capture *capture, const struct snapshot *snap)
{
	struct file_ahead *a = file_source_may_be_bpf(capture) ? calloc(1, sizeof(*a)) : NULL;
	sigset_t before;

	if (!a)
		return NULL;
	a->process = &capture->target->process;
	if (want(snap, &a->look.wants)) {
		signals_block_for_worker(&before);
		a->runs = pthread_create(&a->thread, NULL, load_and_look, a) == 0;
		signals_restore(&before);
	}
	if (a->runs)
		return a;
	file_ahead_destroy(a);
	return NULL;
}

struct open_files *file_ahead_end(struct file_ahead *a, bool *tells_tcp)
{
	if (a->runs)
		pthread_join(a->thread, NULL);
	a->runs = false;
	*tells_tcp = a->tells_tcp;
	return steal_ptr(a->files);
}

void file_ahead_destroy(struct file_ahead *a)
{
	bool tells_tcp;

	if (!a)
		return;
	open_files_destroy(file_ahead_end(a, &tells_tcp));
	file_look_deinit(&a->look);
	free(a);
}

const struct file_look *file_ahead_of(const struct file_ahead *a, pid_t tid)
{
	return a->look.done && tid == a->process->mm_tid ? &a->look : NULL;
}
