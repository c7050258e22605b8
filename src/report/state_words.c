/* SPDX-License-Identifier: MIT */
#include "report/state_words.h"

#include <inttypes.h>
#include <string.h>

#include "base/order.h"

enum {
	MOST_SIGNALS = 6,  /* that are named; of more, */
	SOME_SIGNALS = 4,  /* so many */
	ALL_SIGNALS = 60,  /* nobody means less by that: two cannot be waited for, and glibc keeps two for itself */
	MOST_CHILDREN = 4, /* that are named */
};

/* What is said of threads, and of the one that they are about. */
struct telling {
	const struct text *t;
	FILE *out;
	const struct trace_thread *const *members;
	size_t count;
	const struct trace_thread *first;
	const struct wait *wait; /* the first one's */
	bool goes_on;
};

static const char *verb(const struct telling *l, const char *one, const char *several)
{
	return l->count > 1 ? several : one;
}

bool state_has_words(const struct trace_thread *thread)
{
	return wait_is_state(&thread->wait) || (!thread->wait.kind && thread->thread->state == 'R');
}

/* Time */

static const char *precision(enum wait_left left)
{
	return left == LEFT_ABOUT ? "about " : left == LEFT_AT_MOST ? "at most " : "";
}

/* The first and the last of them; false when it is not known of any. */
static bool find_limits(const struct telling *l, const struct wait_state **next, const struct wait_state **last)
{
	*next = *last = NULL;
	for (size_t i = 0; i < l->count; i++) {
		const struct wait_state *s = &l->members[i]->wait.state;

		if (s->left == LEFT_UNKNOWN)
			continue;
		*next = !*next || s->left_ns < (*next)->left_ns ? s : *next;
		*last = !*last || s->left_ns > (*last)->left_ns ? s : *last;
	}
	return *next;
}

static void put_sleep(const struct telling *l)
{
	const struct wait_state *next, *last;
	char from[DURATION_LEN], to[DURATION_LEN];

	fputs(verb(l, "sleeps", "sleep"), l->out);
	if (!find_limits(l, &next, &last))
		return;
	format_duration((uint64_t)next->left_ns, from);
	format_duration((uint64_t)last->left_ns, to);
	if (l->count == 1)
		fprintf(l->out, ", %s%s left", precision(next->left), from);
	else
		fprintf(l->out, ", the next for %s%s", precision(next->left), from);
	if (strcmp(from, to) != 0)
		fprintf(l->out, ", the last for %s%s", precision(last->left), to);
}

void state_put_limit(const struct text *t, const struct trace_thread *const *members, size_t count)
{
	const struct telling l = {.t = t, .out = t->out, .members = members, .count = count};
	const struct wait_state *next, *last;
	char from[DURATION_LEN], to[DURATION_LEN];

	if (!members[0]->wait.timed)
		return;
	if (!find_limits(&l, &next, &last)) {
		fputs(", but not for ever", t->out);
		return;
	}
	format_duration((uint64_t)next->left_ns, from);
	format_duration((uint64_t)last->left_ns, to);
	if (strcmp(from, to) == 0)
		fprintf(t->out, ", for another %s at most", to);
	else
		fprintf(t->out, ", for another %s to %s at most", from, to);
}

/* Signals */

static void put_signal(FILE *out, int number)
{
	static const char *const names[] = {
		[1] = "HUP",   [2] = "INT",   [3] = "QUIT",  [4] = "ILL",     [5] = "TRAP",   [6] = "ABRT",  [7] = "BUS",   [8] = "FPE",
		[9] = "KILL",  [10] = "USR1", [11] = "SEGV", [12] = "USR2",   [13] = "PIPE",  [14] = "ALRM", [15] = "TERM", [16] = "STKFLT",
		[17] = "CHLD", [18] = "CONT", [19] = "STOP", [20] = "TSTP",   [21] = "TTIN",  [22] = "TTOU", [23] = "URG",  [24] = "XCPU",
		[25] = "XFSZ", [26] = "VTALRM", [27] = "PROF", [28] = "WINCH", [29] = "IO",   [30] = "PWR",  [31] = "SYS",
	};

	if (number > 0 && (size_t)number < sizeof(names) / sizeof(names[0]))
		fprintf(out, "SIG%s", names[number]);
	else
		fprintf(out, "signal %d", number);
}

static void put_signals(const struct telling *l)
{
	const uint64_t set = l->wait->state.signals;
	const int all = __builtin_popcountll(set), shown = all > MOST_SIGNALS ? SOME_SIGNALS : all;
	int n = 0;

	fprintf(l->out, "%s for ", verb(l, "waits", "wait"));
	if (!set || all >= ALL_SIGNALS) {
		fputs(set ? "any signal" : "a signal", l->out);
	} else {
		for (int i = 1; n < shown; i++) {
			if (!(set >> (i - 1) & 1))
				continue;
			fputs(!n ? "" : n + 1 < all ? ", " : " or ", l->out);
			put_signal(l->out, i);
			n++;
		}
		if (all > shown)
			fprintf(l->out, ", … (%d signals)", all);
	}
	state_put_limit(l->t, l->members, l->count);
}

/* Others */

/* "pid 812 gdb"; "4711 sleep" where what it is was said before. */
static void put_peer(const struct telling *l, const struct wait_peer *peer, const char *before)
{
	fputs(before, l->out);
	if (peer->pid)
		fprintf(l->out, "%s%d ", *before ? "pid " : "", (int)peer->pid);
	text_style(l->t, STYLE_STRONG);
	text_untrusted(l->t, peer->comm ? peer->comm : "?");
	text_style(l->t, STYLE_PLAIN);
}

static const char *does(char state)
{
	switch (state) {
	case 'R':
		return "runs";
	case 'S':
		return "sleeps";
	case 'D':
		return "is in an uninterruptible wait";
	case 'T':
		return "is stopped";
	case 't':
		return "is stopped by its tracer";
	case 'Z':
	case 'X':
		return "has ended";
	default:
		return NULL;
	}
}

static void put_does(const struct telling *l, const struct wait_peer *peer)
{
	if (does(peer->state) && !l->goes_on)
		fprintf(l->out, ", which %s", does(peer->state));
}

/* "any of its 12 children: 4711 sleep, 4712 cc1, which runs, …" */
static void put_children(const struct telling *l)
{
	const struct wait *w = l->wait;

	fprintf(l->out, "any of its %" PRIu32 " children%s: ", w->state.children, w->state.child_group ? " in a process group" : "");
	for (uint32_t i = 0; i < w->npeers && i < MOST_CHILDREN; i++) {
		fputs(i ? ", " : "", l->out);
		put_peer(l, &w->peers[i], "");
		if (w->peers[i].state != 'S' && does(w->peers[i].state))
			fprintf(l->out, " (%s)", does(w->peers[i].state));
	}
	fputs(w->state.children > MOST_CHILDREN ? ", …" : "", l->out);
}

static void put_child(const struct telling *l)
{
	const struct wait *w = l->wait;

	fprintf(l->out, "%s for ", verb(l, "waits", "wait"));
	if (!w->state.children_known) {
		fputs(w->state.any_child ? "a child" : "a certain child, which is not known", l->out);
	} else if (!w->npeers) {
		fputs(w->state.any_child ? "a child, but has none: it may trace other processes" : "a child that has ended", l->out);
	} else if (w->state.children > 1) {
		put_children(l);
	} else {
		fputs(w->state.child_group ? "its only child in a process group, " : w->state.any_child ? "its only child, " : "its child ", l->out);
		put_peer(l, &w->peers[0], "");
		put_does(l, &w->peers[0]);
	}
}

static void put_vfork(const struct telling *l)
{
	fprintf(l->out, "%s for its child ", verb(l, "waits", "wait"));
	if (l->wait->npeers) {
		put_peer(l, &l->wait->peers[0], "");
		fputc(' ', l->out);
	}
	fputs("to execute a program or end (vfork)", l->out);
	if (l->wait->npeers)
		put_does(l, &l->wait->peers[0]);
}

static void put_stopped(const struct telling *l)
{
	fputs(verb(l, "is stopped", "are stopped"), l->out);
	if (!l->wait->state.stop_signal)
		return;
	fputs(" by ", l->out);
	put_signal(l->out, l->wait->state.stop_signal);
}

static void put_traced(const struct telling *l)
{
	fprintf(l->out, "%s stopped by %s tracer", verb(l, "is", "are"), verb(l, "its", "their"));
	if (!l->wait->npeers)
		return;
	put_peer(l, &l->wait->peers[0], ", ");
}

static void put_ended(const struct telling *l)
{
	fputs(verb(l, "has ended", "have ended"), l->out);
	if (!l->wait->npeers) {
		fputs(l->first->thread->tid == l->first->snap->pid ? "; other threads of the process go on" : "", l->out);
		return;
	}
	put_peer(l, &l->wait->peers[0], "; its parent, ");
	fputs(", has not asked how", l->out);
}

/* Control groups and files */

static void put_frozen(const struct telling *l)
{
	fputs(verb(l, "is frozen", "are frozen"), l->out);
	if (!l->wait->state.place) {
		fprintf(l->out, " with %s control group", verb(l, "its", "their"));
		return;
	}
	fputs(" with control group ", l->out);
	text_untrusted(l->t, l->wait->state.place);
}

static void put_throttled(const struct telling *l)
{
	fprintf(l->out, "%s ready to run, but %s control group, or one above it, has used up its CPU quota", verb(l, "is", "are"), verb(l, "its", "their"));
}

/* " of /dev/vda1", where that says something. */
static void put_device(const struct text *t, const struct wait_state *s)
{
	if (!s->device || !*s->device || strcmp(s->device, "none") == 0 || strcmp(s->device, s->filesystem) == 0)
		return;
	fputs(" of ", t->out);
	text_untrusted(t, s->device);
}

void state_put_medium(const struct text *t, const struct trace_thread *const *members, size_t count)
{
	static const char *const words[WAIT_KIND_COUNT] = {
		[WAIT_DISK] = "the disk",
		[WAIT_NFS] = "an NFS server",
		[WAIT_FUSE] = "the server of a FUSE file system",
		[WAIT_REMOTE] = "the server of a file system",
		[WAIT_KERNEL_LOCK] = "a lock in the kernel",
	};
	const struct wait_state *s = &members[0]->wait.state;

	for (size_t i = 1; i < count; i++)
		if (members[i]->wait.state.medium != s->medium)
			return;
	if (!words[s->medium])
		return;
	fprintf(t->out, ", waiting for %s", words[s->medium]);
	if (!s->filesystem || s->medium == WAIT_KERNEL_LOCK)
		return;
	fputs(" (", t->out);
	text_untrusted(t, s->filesystem);
	put_device(t, s);
	fputc(')', t->out);
}

/* ", in close()": of a file that is not known, if all of them are in that. */
static void put_call(const struct telling *l)
{
	bool restarted;
	const struct syscall_info *call = trace_thread_call(l->first, &restarted);

	for (size_t i = 1; call && i < l->count; i++)
		if (trace_thread_call(l->members[i], &restarted) != call)
			return;
	if (call)
		fprintf(l->out, ", in %s()", call->name);
}

static void put_file(const struct telling *l, const char *what)
{
	const struct wait_state *s = &l->wait->state;

	fprintf(l->out, "%s for %s", verb(l, "waits", "wait"), what);
	if (s->in_fault)
		fputs(", for a page of memory", l->out);
	else if (!s->place)
		put_call(l);
	if (!s->place)
		return;
	fputs(": ", l->out);
	text_untrusted(l->t, s->place);
	if (!s->filesystem)
		return;
	fputs(" on ", l->out);
	text_untrusted(l->t, s->filesystem);
	put_device(l->t, s);
}

static void put_disk(const struct telling *l)
{
	put_file(l, "the disk");
}

static void put_nfs(const struct telling *l)
{
	put_file(l, "an NFS server to answer");
}

static void put_fuse(const struct telling *l)
{
	put_file(l, "the server of a FUSE file system to answer");
}

static void put_remote(const struct telling *l)
{
	put_file(l, "the server of a file system to answer");
}

static void put_fault(const struct telling *l)
{
	const struct wait_state *s = &l->wait->state;

	fprintf(l->out, "%s for a page of memory", verb(l, "waits", "wait"));
	if (l->wait->kind == WAIT_FAULT && s->filesystem) {
		fputs(" of a file, which may be on ", l->out);
		text_untrusted(l->t, s->filesystem);
		put_device(l->t, s);
	}
	if (l->wait->kind == WAIT_SWAP)
		fputs(" from swap", l->out);
	else if (l->wait->kind == WAIT_USERFAULT)
		fputs(" that a userfaultfd handler has to deliver", l->out);
}

static void put_seccomp(const struct telling *l)
{
	bool restarted;
	const struct syscall_info *call = trace_thread_call(l->first, &restarted);

	fprintf(l->out, "%s for a supervisor to decide on %s%s (seccomp)", verb(l, "waits", "wait"), call ? call->name : "its system call",
		call ? "()" : "");
}

static void put_kernel_lock(const struct telling *l)
{
	fprintf(l->out, "%s for a lock in the kernel", verb(l, "waits", "wait"));
	if (l->wait->state.in_fault)
		fputs(", for a page of memory", l->out);
	if (!l->wait->state.place)
		return;
	fputs(" (", l->out);
	text_untrusted(l->t, l->wait->state.place);
	fputc(')', l->out);
}

/* Objects of System V and POSIX */

static void put_key(const struct telling *l, const char *last)
{
	if (l->wait->state.has_key && l->wait->state.key)
		fprintf(l->out, " (key 0x%" PRIx32 ")", l->wait->state.key);
	else if (l->wait->state.has_key)
		fputs(" (private)", l->out);
	if (l->wait->npeers)
		put_peer(l, &l->wait->peers[0], last);
}

static void put_semaphore(const struct telling *l)
{
	fprintf(l->out, "%s for System V semaphore", verb(l, "waits", "wait"));
	if (l->wait->state.index >= 0)
		fprintf(l->out, " %d of set %d", (int)l->wait->state.index, (int)l->wait->state.id);
	else
		fprintf(l->out, "s of set %d", (int)l->wait->state.id);
	put_key(l, ", last changed by ");
	state_put_limit(l->t, l->members, l->count);
}

static void put_message(const struct telling *l)
{
	fprintf(l->out, "%s for a message in System V queue %d", verb(l, "waits", "wait"), (int)l->wait->state.id);
	put_key(l, ", last written to by ");
}

static void put_room(const struct telling *l)
{
	fprintf(l->out, "%s for room in System V queue %d", verb(l, "waits", "wait"), (int)l->wait->state.id);
	put_key(l, ", last read by ");
}

static void put_posix_queue(const struct telling *l)
{
	fprintf(l->out, "%s for %s in queue ", verb(l, "waits", "wait"), l->wait->kind == WAIT_MESSAGE ? "a message" : "room");
	if (l->wait->state.place)
		text_untrusted(l->t, l->wait->state.place);
	else
		fprintf(l->out, "fd %d", (int)l->wait->state.id);
	state_put_limit(l->t, l->members, l->count);
}

/* CPUs */

static bool is_ready(const struct trace_thread *t)
{
	return t->wait.kind == WAIT_CPU;
}

/* /proc does not tell whether a thread that is ready also runs. */
static bool is_on_cpu(const struct trace_thread *t)
{
	return !t->wait.kind && strcmp(t->snap->capture.method, "bpf") == 0;
}

static void put_one_ready(const struct telling *l)
{
	const int cpu = l->first->thread->facts.cpu;

	if (is_ready(l->first))
		fputs("is ready to run", l->out);
	else
		fputs(is_on_cpu(l->first) ? "runs" : "runs, or is ready to", l->out);
	if (cpu >= 0)
		fprintf(l->out, "%s on CPU %d", is_ready(l->first) || is_on_cpu(l->first) ? "" : ",", cpu);
	if (l->wait->npeers)
		put_peer(l, &l->wait->peers[0], ", behind ");
}

static bool is_same_peer(const struct wait *a, const struct wait *b)
{
	return a->npeers && b->npeers && a->peers[0].pid == b->peers[0].pid && strcmp(a->peers[0].comm, b->peers[0].comm) == 0;
}

static size_t count_behind(const struct telling *l, const struct wait *same)
{
	size_t n = 0;

	for (size_t i = 0; i < l->count; i++)
		n += is_ready(l->members[i]) && is_same_peer(&l->members[i]->wait, same);
	return n;
}

static void put_part(const struct telling *l, bool *any, size_t n, const char *what)
{
	if (!n)
		return;
	fprintf(l->out, "%s %zu %s", *any ? "," : ":", n, what);
	*any = true;
}

/* "run, or are ready to: 2 on CPUs, 6 behind pid 812 ffmpeg" */
static void put_ready(const struct telling *l)
{
	size_t on_cpus = 0, ready = 0, behind = 0, most = 0;
	const struct wait *ahead = NULL;
	bool any = false;

	if (l->count == 1) {
		put_one_ready(l);
		return;
	}
	for (size_t i = 0; i < l->count; i++) {
		const struct wait *w = &l->members[i]->wait;
		const size_t same = w->npeers && (!ahead || !is_same_peer(w, ahead)) ? count_behind(l, w) : 0;

		on_cpus += is_on_cpu(l->members[i]);
		ready += is_ready(l->members[i]);
		behind += w->npeers > 0;
		ahead = same > most ? w : ahead;
		most = same > most ? same : most;
	}
	fputs(ready == l->count ? "are ready to run" : "run, or are ready to", l->out);
	if (on_cpus + ready < l->count)
		return;
	put_part(l, &any, on_cpus, on_cpus == 1 ? "on a CPU" : "on CPUs");
	put_part(l, &any, most, "behind");
	if (ahead)
		put_peer(l, &ahead->peers[0], " ");
	put_part(l, &any, behind - most, "behind others");
	if (any && ready < l->count)
		put_part(l, &any, ready - behind, "ready");
}

static void put_throttled_or_ready(const struct telling *l)
{
	(l->wait->kind == WAIT_THROTTLED ? put_throttled : put_ready)(l);
}

void state_put_doing(const struct text *t, const struct trace_thread *const *members, size_t count, bool goes_on)
{
	static void (*const puts[WAIT_KIND_COUNT])(const struct telling *l) = {
		[WAIT_CHILD] = put_child,
		[WAIT_VFORK] = put_vfork,
		[WAIT_TIME] = put_sleep,
		[WAIT_SIGNAL] = put_signals,
		[WAIT_STOPPED] = put_stopped,
		[WAIT_TRACED] = put_traced,
		[WAIT_REAPER] = put_ended,
		[WAIT_FROZEN] = put_frozen,
		[WAIT_THROTTLED] = put_throttled_or_ready,
		[WAIT_CPU] = put_throttled_or_ready,
		[WAIT_FAULT] = put_fault,
		[WAIT_SWAP] = put_fault,
		[WAIT_USERFAULT] = put_fault,
		[WAIT_DISK] = put_disk,
		[WAIT_NFS] = put_nfs,
		[WAIT_FUSE] = put_fuse,
		[WAIT_REMOTE] = put_remote,
		[WAIT_SECCOMP] = put_seccomp,
		[WAIT_KERNEL_LOCK] = put_kernel_lock,
		[WAIT_SYSV_SEMAPHORE] = put_semaphore,
		[WAIT_SYSV_MESSAGE] = put_message,
		[WAIT_SYSV_ROOM] = put_room,
		[WAIT_MESSAGE] = put_posix_queue,
		[WAIT_ROOM] = put_posix_queue,
	};
	const struct telling l = {.t = t, .out = t->out, .members = members, .count = count, .first = members[0], .wait = &members[0]->wait, .goes_on = goes_on};

	if (l.wait->kind == WAIT_NOTHING)
		put_ready(&l);
	else
		puts[l.wait->kind](&l);
}

pid_t state_only_child(const struct wait *w)
{
	if (w->kind == WAIT_VFORK || (w->kind == WAIT_CHILD && w->state.children == 1))
		return w->npeers ? w->peers[0].pid : 0;
	return 0;
}

/* What is about a child, or about a process that has ended, is of that process only. */
int state_compare(const struct trace_thread *a, const struct trace_thread *b)
{
	const struct wait *x = &a->wait, *y = &b->wait;
	const bool own = x->kind == WAIT_CHILD || x->kind == WAIT_VFORK || x->kind == WAIT_REAPER;
	const bool has_peers = own || x->kind == WAIT_TRACED || x->kind == WAIT_SYSV_SEMAPHORE;
	int order = own ? COMPARE(a->snap->pid, b->snap->pid) : 0;

	if (!order && x->kind != WAIT_TIME)
		order = COMPARE(x->timed, y->timed);
	if (!order && has_peers)
		order = COMPARE(x->npeers ? x->peers[0].pid : 0, y->npeers ? y->peers[0].pid : 0);
	if (!order && x->kind == WAIT_CHILD)
		order = COMPARE(x->state.children, y->state.children);
	if (!order)
		order = COMPARE(x->state.signals, y->state.signals);
	if (!order)
		order = COMPARE(x->state.stop_signal, y->state.stop_signal);
	if (!order)
		order = COMPARE(x->state.id, y->state.id);
	if (!order)
		order = COMPARE(x->state.index, y->state.index);
	if (!order)
		order = COMPARE(x->state.in_fault, y->state.in_fault);
	return order ? order : compare_texts(x->state.place, y->state.place);
}
