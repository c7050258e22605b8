/* SPDX-License-Identifier: MIT */
#include "report/wait_words.h"

#include <inttypes.h>
#include <string.h>

#include "base/order.h"
#include "report/descriptor_words.h"
#include "report/state_words.h"

/* As a sentence has it: "waits for …". */
static const char *const objects[WAIT_KIND_COUNT] = {
	[WAIT_MUTEX] = "mutex",
	[WAIT_READ_LOCK] = "the right to read under lock",
	[WAIT_WRITE_LOCK] = "the right to write under lock",
	[WAIT_CONDITION] = "condition variable",
	[WAIT_SEMAPHORE] = "semaphore",
	[WAIT_BARRIER] = "others to come to barrier",
	[WAIT_ONCE] = "an initialization, at",
	[WAIT_STREAM] = "the lock of a stream, at",
	[WAIT_FUTURE] = "the result of a future, at",
	[WAIT_PARKED] = "another thread to unpark it, at",
	[WAIT_FUTEX] = "futex",
};

/* Of language runtimes: by kind; what has an address is told with it, if that is known. */
static const struct {
	const char *words;
	const char *without; /* instead of words and address, where nothing is known of the object; NULL: the words alone */
	bool has_address;
} runtime_objects[WAIT_KIND_COUNT] = {
	[WAIT_GIL] = {"the GIL", NULL, false},
	[WAIT_PYTHON_LOCK] = {"lock", "a lock", true},
	[WAIT_PYTHON_RLOCK] = {"RLock", "an RLock", true},
	[WAIT_PYTHON_CONDITION] = {"a notification of a condition", NULL, false},
	[WAIT_PYTHON_EVENT] = {"an event to be set", NULL, false},
	[WAIT_PYTHON_SEMAPHORE] = {"a semaphore", NULL, false},
	[WAIT_PYTHON_BARRIER] = {"others to come to a barrier", NULL, false},
	[WAIT_PYTHON_ITEM] = {"an item of a queue", NULL, false},
	[WAIT_PYTHON_ROOM] = {"room in a queue", NULL, false},
	[WAIT_PYTHON_DONE] = {"all items of a queue to be done", NULL, false},
	[WAIT_PYTHON_FUTURE] = {"the result of a future", NULL, false},
	[WAIT_PYTHON_JOIN] = {"the end of a thread", NULL, false},
	[WAIT_MONITOR] = {"the monitor of", "a monitor", true},
	[WAIT_NOTIFICATION] = {"a notification of", "a notification", true},
	[WAIT_JAVA_LOCK] = {"lock", "a lock", true},
	[WAIT_JAVA_CONDITION] = {"a signal of", "a signal", true},
	[WAIT_JAVA_SEMAPHORE] = {"a permit of", "a permit", true},
	[WAIT_JAVA_LATCH] = {"the end of", "the end of a latch", true},
	[WAIT_JAVA_PARK] = {"being unparked, by", "being unparked", true},
	[WAIT_JAVA_JOIN] = {"the end of a thread", NULL, false},
	[WAIT_CHANNEL] = {"a message of a channel", NULL, false},
	[WAIT_CHANNEL_ROOM] = {"room in a channel", NULL, false},
	[WAIT_GO_WORK] = {"work: no goroutine is ready", NULL, false},
	[WAIT_GO_GOROUTINE] = {"a goroutine that is locked to the thread, and not ready", NULL, false},
	[WAIT_GO_START] = {"Go to start its threads again (stop the world)", NULL, false},
	[WAIT_GO_STOP] = {"other threads of Go to stop (stop the world)", NULL, false},
	[WAIT_GO_MONITOR] = {"its next look at the threads of Go (sysmon)", NULL, false},
	[WAIT_GO_TEMPLATE] = {"threads to start for Go (templateThread)", NULL, false},
	[WAIT_GO_SIGNAL] = {"a signal, to hand it to os/signal", NULL, false},
	[WAIT_GO_LOCK] = {"a lock of Go's runtime, at", "a lock of Go's runtime", true},
	[WAIT_GO_NOTE] = {"another thread of Go's runtime", NULL, false},
};

/* False: it is not one of these. */
static bool put_runtime_object(const struct text *t, const struct wait *w)
{
	if (!runtime_objects[w->kind].words)
		return false;
	if (!w->address && runtime_objects[w->kind].without) {
		fputs(runtime_objects[w->kind].without, t->out);
		return true;
	}
	fputs(runtime_objects[w->kind].words, t->out);
	if (!runtime_objects[w->kind].has_address)
		return true;
	if (w->type && w->kind >= WAIT_MONITOR) { /* Python's are named by the words */
		fputc(' ', t->out);
		text_style(t, STYLE_STRONG);
		text_untrusted(t, w->type);
		text_style(t, STYLE_PLAIN);
	}
	fprintf(t->out, " 0x%" PRIx64, w->address);
	return true;
}

static bool is_join(const struct wait *w)
{
	return w->kind == WAIT_JOIN || w->kind == WAIT_PYTHON_JOIN || w->kind == WAIT_JAVA_JOIN;
}

/* "robust recursive ", of what is not as usual. */
static void put_attributes(const struct text *t, const struct mutex_attributes *mutex)
{
	static const char *const types[MUTEX_TYPE_COUNT] = {
		[MUTEX_RECURSIVE] = "recursive ",
		[MUTEX_ERROR_CHECKING] = "error-checking ",
		[MUTEX_ADAPTIVE] = "adaptive ",
	};

	fputs(mutex->robust ? "robust " : "", t->out);
	fputs(mutex->inherits ? "priority-inheriting " : "", t->out);
	fputs(types[mutex->type] ? types[mutex->type] : "", t->out);
}

static void put_object(const struct text *t, const struct wait *w)
{
	const char *slash = w->path ? strrchr(w->path, '/') : NULL;

	if (put_runtime_object(t, w))
		return;
	if (w->kind == WAIT_JOIN) {
		fputs("the end of a thread", t->out);
		return;
	}
	if (!w->address && !w->word && w->mutex.inherits) {
		fputs("a priority-inheriting mutex that the kernel has refused; which one is not known", t->out);
		return;
	}
	if (!w->address && !w->word) {
		fprintf(t->out, w->kind == WAIT_CONDITION ? "a %s" : "%s", objects[w->kind]);
		return;
	}
	put_attributes(t, &w->mutex);
	fprintf(t->out, "%s ", objects[w->kind]);
	if (w->variable) {
		text_style(t, STYLE_STRONG);
		text_untrusted(t, w->variable);
		text_style(t, STYLE_PLAIN);
		if (w->variable_offset)
			fprintf(t->out, "+0x%" PRIx64, w->variable_offset);
		fputc(' ', t->out);
	}
	fprintf(t->out, "0x%" PRIx64, w->address ? w->address : w->word);
	if (!w->path)
		return;
	fputs(" (", t->out);
	text_untrusted(t, slash ? slash + 1 : w->path);
	fprintf(t->out, "+0x%" PRIx64 ")", w->offset);
}

/* Of a process that has no other. */
static const struct trace_thread *only_thread(pid_t pid, const struct trace *const *traces, size_t ntraces)
{
	const struct trace_thread *found = NULL;

	for (size_t i = 0; i < ntraces; i++)
		for (size_t k = 0; traces[i]->snap->pid == pid && !traces[i]->snap->partial && k < traces[i]->threads.len; k++) {
			const struct trace_thread *t = &traces[i]->threads.data[k];

			if (t->thread->status == THREAD_ZOMBIE)
				continue;
			if (found)
				return NULL;
			found = t;
		}
	return found;
}

void wait_put_doing(const struct text *t, const struct trace_thread *const *members, size_t count)
{
	if (wait_is_on_descriptors(members[0]->wait.kind)) {
		descriptor_put_doing(t, members, count);
		state_put_medium(t, members, count);
		return;
	}
	if (wait_is_state(&members[0]->wait)) {
		state_put_doing(t, members, count, false);
		return;
	}
	fputs(count > 1 ? "wait for " : "waits for ", t->out);
	put_object(t, &members[0]->wait);
}

const struct trace_thread *wait_find_owner(const struct wait *w, const struct trace *const *traces, size_t ntraces)
{
	if (w->npeers == 1)
		return only_thread(w->peers[0].pid, traces, ntraces);
	for (size_t i = 0; wait_has_owner(w) && i < ntraces; i++)
		for (size_t k = 0; traces[i]->snap->pid == w->owner_pid && k < traces[i]->threads.len; k++)
			if (traces[i]->threads.data[k].thread->tid == w->owner)
				return &traces[i]->threads.data[k];
	return NULL;
}

/* Of others there is no owner. */
static bool can_have_owner(enum wait_kind kind)
{
	return kind == WAIT_MUTEX || kind == WAIT_READ_LOCK || kind == WAIT_WRITE_LOCK || kind == WAIT_STREAM || kind == WAIT_FUTEX ||
	       kind == WAIT_PYTHON_LOCK || kind == WAIT_GO_LOCK;
}

static const char *beginning(const struct wait *w)
{
	return is_join(w) ? ":" : w->kind == WAIT_ONCE ? ", done by" : ", held by";
}

void wait_put_process(const struct text *t, pid_t pid, const char *comm)
{
	fprintf(t->out, "pid %d (", (int)pid);
	text_untrusted(t, comm ? comm : "?");
	fputc(')', t->out);
}

static const char not_looked_at[] = ", which is not looked at", give_it[] = ": give it, too";

static bool is_looked_at(pid_t pid, const struct trace *const *traces, size_t ntraces)
{
	for (size_t i = 0; i < ntraces; i++)
		if (traces[i]->snap->pid == pid)
			return true;
	return false;
}

/* A thread of the process itself that was not wanted; else, of a lock that several processes share, or all of their memory, whose it is. */
static void put_owners_process(const struct text *t, const struct trace_thread *waiter, const struct trace_thread *owner)
{
	const struct wait *w = &waiter->wait;

	if (!owner && w->owner_comm && w->owner_pid == waiter->snap->pid) {
		fputc(' ', t->out);
		text_untrusted(t, w->owner_comm);
		fputs(not_looked_at, t->out);
		return;
	}
	if (!w->shared && !w->owner_comm && (!owner || owner->snap == waiter->snap))
		return;
	fputs(" of ", t->out);
	if (owner) {
		wait_put_process(t, owner->snap->pid, owner->snap->comm);
	} else if (w->owner_comm) {
		wait_put_process(t, w->owner_pid, w->owner_comm);
		fprintf(t->out, "%s%s", not_looked_at, give_it);
	} else {
		fputs("another process, which is not known", t->out);
	}
}

void wait_put_holder(const struct text *t, const struct trace_thread *const *members, size_t count, const struct trace *const *traces, size_t ntraces)
{
	const struct wait *w = &members[0]->wait;
	const struct trace_thread *owner = wait_find_owner(w, traces, ntraces);

	if (wait_is_on_descriptors(w->kind)) {
		descriptor_put_peers(t, members, count);
		if (w->kind == WAIT_FILE_LOCK && w->npeers == 1 && !is_looked_at(w->peers[0].pid, traces, ntraces))
			fprintf(t->out, "%s%s", not_looked_at, give_it);
	} else if (w->holder == HOLDER_NOT_RECORDED && can_have_owner(w->kind) && !w->mutex.inherits) {
		fputs(", which does not record who holds it", t->out);
	} else if (w->holder == HOLDER_NOT_RECORDED && w->kind == WAIT_ONCE) {
		fputs(", which does not record who does it", t->out);
	} else if (w->holder == HOLDER_READERS) {
		fputs(", held by readers, which it does not record", t->out);
	} else if (w->holder == HOLDER_NONE) {
		fputs(", which nobody holds just now", t->out);
	} else if (w->holder == HOLDER_ENDED && !w->owner) {
		fputs(", held by a thread that has ended", t->out);
	} else if (w->holder == HOLDER_ENDED) {
		fprintf(t->out, ", held by tid %d, which is no thread of the process%s", (int)w->owner, w->owner_lives ? "" : " any more");
	} else if (wait_has_owner(w)) {
		fprintf(t->out, "%s tid %d", beginning(w), (int)w->owner);
		if (owner) {
			fputc(' ', t->out);
			text_untrusted(t, trace_thread_name(owner));
		}
		if (w->count > 1)
			fprintf(t->out, " (%" PRIu64 " times)", w->count);
		fputs(w->holder == HOLDER_INFERRED ? " (in a with block of it)" : "", t->out);
		put_owners_process(t, members[0], owner);
		if (owner && owner->thread->state == 'R' && !is_join(w))
			fputs(", which runs", t->out);
	}
}

/* Those that run, and those that are ready to, are told together. */
static uint64_t kind_of(const struct trace_thread *t)
{
	return !t->wait.kind && t->thread->state == 'R' ? WAIT_CPU : t->wait.kind;
}

/* The object; of what a runtime has made of several the futex underneath is each thread's own, and says nothing. */
static uint64_t object_of(const struct wait *w)
{
	return runtime_objects[w->kind].words && !runtime_objects[w->kind].has_address ? 0 : w->address;
}

static uint64_t word_of(const struct wait *w)
{
	return runtime_objects[w->kind].words ? 0 : w->word;
}

int wait_compare(const struct trace_thread *a, const struct trace_thread *b)
{
	const struct wait *x = &a->wait, *y = &b->wait;
	const uint64_t left[] = {x->kind, (uint64_t)a->snap->pid, object_of(x), word_of(x), (uint64_t)x->owner, x->timed};
	const uint64_t right[] = {y->kind, (uint64_t)b->snap->pid, object_of(y), word_of(y), (uint64_t)y->owner, y->timed};
	int order = COMPARE(kind_of(a), kind_of(b));

	if (!order && wait_is_on_descriptors(x->kind))
		return descriptor_wait_compare(a, b);
	if (!order && wait_is_state(x))
		return state_compare(a, b);
	for (size_t i = 1; !order && x->kind && y->kind && i < sizeof(left) / sizeof(left[0]); i++)
		order = COMPARE(left[i], right[i]);
	return order;
}
