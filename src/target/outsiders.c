/* SPDX-License-Identifier: MIT */
#include "target/outsiders.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/map.h"
#include "model/lock_words.h"
#include "proc/relatives.h"
#include "proc/task_status.h"
#include "target/thread_copies.h"

enum { MAX_THREADS = 512 }; /* of a process, that are looked through */

struct search {
	const struct process *process;
	const struct sharers *sharers;
	struct snapshot *snap;
	struct thread_copies copies;
	struct u64map settled; /* numbers that are not to be looked up: those of the snapshot's threads, and what was looked up */
	size_t lookups;
	struct u64map relatives; /* in another pid namespace: number there → thread, of the process itself and of its parent */
	bool has_relatives;
};

static bool settle_own(struct search *s)
{
	bool created;

	for (size_t i = 0; i < s->snap->threads.len; i++) {
		const struct snap_thread *t = &s->snap->threads.data[i];

		if (!u64map_put(&s->settled, (uint32_t)(s->snap->inner_pid ? t->inner_tid : t->tid), &created))
			return false;
	}
	return true;
}

/* Those that are numbered by as many namespaces as the process are numbered by its own. */
static void add_relatives(struct search *s, const struct process *process, unsigned levels)
{
	struct tid_list tids = {0};

	if (process_list_tids(process, &tids) < 0)
		tids.len = 0;
	for (size_t i = 0; i < tids.len && i < MAX_THREADS; i++) {
		unsigned namespaces = 0;
		const pid_t number = process_innermost_number(tids.data[i], &namespaces);
		bool created = false;
		uint64_t *slot = number > 0 && namespaces == levels ? u64map_put(&s->relatives, (uint64_t)number, &created) : NULL;

		if (created)
			*slot = (uint64_t)tids.data[i];
	}
	vec_deinit(&tids);
}

static void find_relatives(struct search *s)
{
	struct task_stat stat;
	struct process parent;
	unsigned levels = 0;

	s->has_relatives = true;
	if (process_innermost_number(s->snap->pid, &levels) <= 0)
		return;
	if (s->snap->partial)
		add_relatives(s, s->process, levels);
	if (process_glance(s->snap->pid, &stat) < 0 || process_open(stat.parent, NULL, &parent) < 0)
		return;
	add_relatives(s, &parent, levels);
	process_close(&parent);
}

/* By numbers of another pid namespace only relatives can be found. 0: it is none of them. */
static pid_t find_thread(struct search *s, uint32_t number)
{
	const uint64_t *slot;

	if (!s->snap->inner_pid)
		return (pid_t)number;
	if (!s->has_relatives)
		find_relatives(s);
	slot = u64map_find(&s->relatives, number);
	return slot ? (pid_t)*slot : 0;
}

static bool read_status(pid_t pid, struct task_status *out)
{
	char name[32];

	snprintf(name, sizeof(name), "/proc/%d/status", (int)pid);
	return task_status_read(AT_FDCWD, name, out) == 0 && out->tgid > 0;
}

static const struct snap_outsider *find_of_process(const struct snapshot *snap, pid_t pid)
{
	for (size_t i = 0; i < snap->outsiders.len; i++)
		if (snap->outsiders.data[i].pid == pid)
			return &snap->outsiders.data[i];
	return NULL;
}

/* What is said of its process; asked once for all threads of that. */
static bool describe_process(const struct search *s, const struct task_status *thread, struct snap_outsider *out)
{
	const struct snap_outsider *before = find_of_process(s->snap, out->pid);
	struct task_status process;

	if (before) {
		out->comm = before->comm;
		out->same_memory = before->same_memory;
		out->shares_memory = before->shares_memory;
		return true;
	}
	if (!read_status(out->pid, &process))
		return false;
	out->comm = arena_intern(s->snap->arena, process.name);
	out->same_memory = process_check_numbers(NULL) == 0 && syscall(SYS_kcmp, s->process->mm_tid, out->tid, KCMP_VM, 0UL, 0UL) == 0;
	out->shares_memory = !s->snap->inner_pid && !s->snap->has_doubtful_numbers && thread->nspids <= 1 && sharers_have(s->sharers, out->pid);
	return out->comm;
}

static void look_up(struct search *s, uint32_t number)
{
	struct snap_outsider outsider = {.number = number, .tid = find_thread(s, number)};
	struct task_status thread;

	if (outsider.tid <= 0 || !read_status(outsider.tid, &thread))
		return;
	outsider.pid = thread.tgid;
	if (outsider.pid == s->snap->pid)
		outsider.comm = arena_intern(s->snap->arena, thread.name);
	else if (!describe_process(s, &thread, &outsider))
		return;
	if (outsider.comm)
		(void)vec_push(&s->snap->outsiders, outsider);
}

/* Each once. */
static void want(struct search *s, uint32_t number)
{
	bool created = false;

	if (!s->settled.len && !settle_own(s))
		return;
	if (u64map_put(&s->settled, number, &created) && created && s->lookups < MAX_OUTSIDERS) {
		s->lookups++;
		look_up(s, number);
	}
}

static void look_at_wait(struct search *s, const struct snap_thread *t)
{
	uint32_t words[WAIT_WORDS] = {0}, numbers[MAX_OWNER_NUMBERS];
	struct thread_copies_mem memory;
	unsigned n;

	if (!thread_copies_mem_init(&memory, &s->copies, s->snap, t) ||
	    memory.mem.read(&memory.mem, t->syscall.args[0], words, sizeof(words)) <= 0)
		return;
	n = lock_owner_numbers((uint32_t)t->syscall.args[1], (uint32_t)t->syscall.args[2], words, numbers);
	for (unsigned i = 0; i < n; i++)
		want(s, numbers[i]);
}

/* What goes on after a stop has its arguments still. */
static bool may_wait_for_futex(const struct snapshot *snap, const struct snap_thread *t)
{
	const struct arch *arch = snapshot_arch_of(snap, t);

	return t->syscall.state == SYSCALL_IN && (arch_is_futex(arch, t->syscall.nr) || arch_is_restart(arch, t->syscall.nr));
}

void outsiders_find(const struct process *process, const struct sharers *sharers, struct snapshot *snap)
{
	struct search s = {.process = process, .sharers = sharers, .snap = snap};
	const struct snap_thread *last = NULL;

	for (size_t i = 0; i < snap->threads.len; i++) {
		const struct snap_thread *t = &snap->threads.data[i];

		if (!may_wait_for_futex(snap, t))
			continue;
		if (!last || memcmp(t->syscall.args, last->syscall.args, 3 * sizeof(t->syscall.args[0])) != 0) /* many may wait for one */
			look_at_wait(&s, t);
		last = t;
	}
	thread_copies_deinit(&s.copies);
	u64map_deinit(&s.settled);
	u64map_deinit(&s.relatives);
}
