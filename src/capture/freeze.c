/* SPDX-License-Identifier: MIT */
#include "capture/freeze.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "proc/task.h"

enum {
	ROOM_FOR_CLONES = 256,
	SPIN_NS = 60 * 1000, /* a running thread stops within a few µs: cheaper than sleeping for its signal */
	BATCH = 64,
};

struct freeze {
	const struct freeze_request *request;
	struct held_list *list;
	uint64_t buffer_used;
	sigset_t sigchld;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void seize(struct freeze *fz, struct held *h)
{
	unsigned long options = fz->request->whole_process ? PTRACE_O_TRACECLONE : 0;
	struct task_status status;

	if (ptrace(PTRACE_SEIZE, h->tid, NULL, options) == 0) {
		h->seized = true;
		return;
	}
	if (errno == ESRCH)
		h->result = HELD_GONE;
	else if (task_status(fz->request->process, h->tid, &status) == 0 && status.tracer)
		h->result = HELD_TRACED;
	else
		h->result = HELD_DENIED;
}

static bool listed(const struct held_list *list, pid_t tid)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->data[i].tid == tid)
			return true;
	return false;
}

/*
 * Threads created between the listing and the moment at which their creator was seized are found by listing again;
 * after that, PTRACE_O_TRACECLONE attaches to new ones by itself.
 */
static void seize_newcomers(struct freeze *fz)
{
	struct tid_list tids = {0};
	bool found = true;

	for (int tries = 0; found && tries < 8; tries++) {
		found = false;
		if (process_list_tids(fz->request->process, &tids) < 0)
			break;
		for (size_t i = 0; i < tids.len; i++) {
			struct held fresh = {.tid = tids.data[i]};

			/* Listed in the same order as before: only the tail is new, so this is rarely a full search. */
			if (i < fz->list->len && fz->list->data[i].tid == tids.data[i])
				continue;
			if (listed(fz->list, tids.data[i]) || fz->list->len >= fz->list->cap)
				continue;
			seize(fz, &fresh);
			found |= fresh.seized;
			fz->list->data[fz->list->len++] = fresh;
		}
	}
	vec_deinit(&tids);
}

/*
 * A thread may have fallen asleep since it was seen running. An interrupt would now make its system call fail with
 * EINTR, and it need not be stopped to be read. The test is test_capture.py::test_auto_never_interrupts_sleepers.
 */
static void look(struct freeze *fz, struct held *h)
{
	char state;

	if (task_state(fz->request->process, h->tid, &state) < 0)
		h->result = HELD_GONE;
	else if (state != 'R')
		h->result = HELD_ASLEEP;
}

static void interrupt(struct held *h)
{
	h->asked_ns = now_ns();
	if (ptrace(PTRACE_INTERRUPT, h->tid, NULL, NULL) < 0)
		h->result = HELD_GONE;
}

static bool take_registers(struct freeze *fz, struct held *h)
{
	struct iovec iov = {.iov_base = h->regs.v, .iov_len = sizeof(h->regs.v)};
	unsigned n = fz->request->arch->nuser_regs;

	if (ptrace(PTRACE_GETREGSET, h->tid, (void *)NT_PRSTATUS, &iov) < 0)
		return false;
	if (iov.iov_len != n * sizeof(h->regs.v[0]))
		return false; /* a 32-bit context: capture.c says so */
	h->regs.valid = (UINT64_C(1) << n) - 1;
	return true;
}

/* Adopts the thread that a held one has just created; the kernel has attached us to it already. */
static void adopt_clone(struct freeze *fz, const struct held *parent)
{
	unsigned long tid = 0;

	if (ptrace(PTRACE_GETEVENTMSG, parent->tid, NULL, &tid) < 0 || fz->list->len >= fz->list->cap)
		return;
	fz->list->data[fz->list->len++] = (struct held){.tid = (pid_t)tid, .seized = true, .asked_ns = now_ns()};
}

/* Looks once whether the thread has stopped. True when nothing more is to be waited for. */
static bool reap(struct freeze *fz, struct held *h)
{
	int status, event;
	pid_t got = waitpid(h->tid, &status, __WALL | WNOHANG);

	if (got == 0)
		return false;
	if (got < 0 || !WIFSTOPPED(status)) {
		h->result = HELD_GONE;
		h->seized = false;
		return true;
	}
	event = status >> 16;
	if (event == PTRACE_EVENT_CLONE)
		adopt_clone(fz, h);
	else if (event == 0)
		h->signal = WSTOPSIG(status);
	h->result = HELD_STOPPED;
	take_registers(fz, h);
	return true;
}

/* Waits until the thread has stopped, or until the deadline. */
static bool await(struct freeze *fz, struct held *h, uint64_t deadline)
{
	uint64_t spin_until = fz->request->whole_process ? 0 : now_ns() + SPIN_NS;

	for (;;) {
		uint64_t now;
		struct timespec left;

		if (reap(fz, h))
			return true;
		now = now_ns();
		if (now >= deadline)
			return false;
		if (now < spin_until)
			continue;
		left = (struct timespec){.tv_sec = (time_t)((deadline - now) / 1000000000u),
					 .tv_nsec = (long)((deadline - now) % 1000000000u)};
		sigtimedwait(&fz->sigchld, NULL, &left);
	}
}

/* Where the stack of a held thread goes; false when there is nothing to copy. */
static bool plan_copy(struct freeze *fz, struct held *h, struct vmread_job *job)
{
	const struct freeze_request *rq = fz->request;
	uint64_t sp = h->regs.v[rq->arch->user_sp];
	const struct map_entry *map = h->regs.valid ? maps_find(rq->maps, sp) : NULL;
	uint64_t len, room = rq->buffer.size - fz->buffer_used;

	if (!map)
		return false;
	len = map->end - sp;
	if (len > rq->stack_size)
		len = rq->stack_size;
	if (len > room)
		len = room;
	h->stack = (struct mem_copy){.start = sp, .region_end = map->end, .data = rq->buffer.data + fz->buffer_used};
	*job = (struct vmread_job){.address = sp, .len = len, .dst = h->stack.data};
	fz->buffer_used += (len + 15) & ~UINT64_C(15);
	if (fz->buffer_used > rq->buffer.size)
		fz->buffer_used = rq->buffer.size;
	return true;
}

static void copy_stacks(struct freeze *fz, size_t from, size_t to)
{
	struct vmread_job jobs[BATCH];
	struct held *owners[BATCH];
	size_t n = 0;

	for (size_t i = from; i < to; i++) {
		struct held *h = &fz->list->data[i];

		if (h->result == HELD_STOPPED && !h->stack.data && plan_copy(fz, h, &jobs[n]))
			owners[n++] = h;
		if (n == BATCH || (n && i + 1 == to)) {
			vmread_copy(fz->request->vm, jobs, n);
			for (size_t k = 0; k < n; k++)
				owners[k]->stack.len = jobs[k].done;
			n = 0;
		}
	}
}

/* Word by word, as debuggers did before there was anything better; for comparison (--ptrace). */
struct peek_mem {
	struct mem mem;
	pid_t tid;
};

static ssize_t read_peek(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	pid_t tid = ((struct peek_mem *)mem)->tid;
	size_t done = 0;

	while (done < len) {
		uint64_t at = address + done, aligned = at & ~UINT64_C(7);
		size_t skip = at - aligned, n = 8 - skip < len - done ? 8 - skip : len - done;
		long word;

		errno = 0;
		word = ptrace(PTRACE_PEEKDATA, tid, (void *)(uintptr_t)aligned, NULL);
		if (errno)
			return done ? (ssize_t)done : -errno;
		memcpy((uint8_t *)buf + done, (uint8_t *)&word + skip, n);
		done += n;
	}
	return (ssize_t)done;
}

static void show_held(struct freeze *fz)
{
	for (size_t i = 0; i < fz->list->len; i++) {
		struct held *h = &fz->list->data[i];
		struct peek_mem peek = {.mem = {.read = read_peek}, .tid = h->tid};

		if (h->result == HELD_STOPPED)
			fz->request->on_held(fz->request->on_held_arg, h, &peek.mem);
	}
}

static void let_go(struct held *h)
{
	if (h->result != HELD_STOPPED || !h->seized)
		return;
	ptrace(PTRACE_DETACH, h->tid, NULL, (void *)(uintptr_t)h->signal);
	h->pause_ns = now_ns() - h->asked_ns;
	h->seized = false;
}

/* Those that had not stopped when the others were let go: each by itself, for the rest of the time. */
static void take_late(struct freeze *fz, uint64_t deadline)
{
	for (size_t i = 0; i < fz->list->len; i++) {
		struct held *h = &fz->list->data[i];

		if (h->result != HELD_PENDING)
			continue;
		h->late = true;
		if (!await(fz, h, deadline)) {
			h->result = HELD_TIMEOUT;
			continue;
		}
		copy_stacks(fz, i, i + 1);
		let_go(h);
	}
}

/* Stops and copies the threads of one part of the list, which may grow at its end by clones. */
static void stop_wave(struct freeze *fz, size_t from, const size_t *to)
{
	uint64_t deadline = now_ns() + fz->request->wait_ns;

	for (size_t i = from; i < *to; i++)
		if (fz->list->data[i].result == HELD_PENDING)
			interrupt(&fz->list->data[i]);
	for (size_t i = from; i < *to; i++)
		if (fz->list->data[i].result == HELD_PENDING)
			await(fz, &fz->list->data[i], deadline);
	copy_stacks(fz, from, *to);
}

static void *freeze_main(void *arg)
{
	struct freeze *fz = arg;
	const struct freeze_request *rq = fz->request;
	struct held_list *list = fz->list;
	uint64_t start;

	for (size_t i = 0; i < list->len; i++)
		seize(fz, &list->data[i]);
	if (rq->whole_process)
		seize_newcomers(fz);
	for (size_t i = 0; rq->look_first && i < list->len; i++)
		if (list->data[i].result == HELD_PENDING)
			look(fz, &list->data[i]);

	/* From here to let_go(): no allocation, no file, no output. What runs is stopped last and let go first. */
	start = now_ns();
	stop_wave(fz, 0, &rq->nfirst);
	stop_wave(fz, rq->nfirst, &list->len);
	if (rq->on_held)
		show_held(fz);
	for (size_t i = list->len; i-- > 0;)
		let_go(&list->data[i]);

	take_late(fz, start + rq->timeout_ns);
	return NULL;
}

/*
 * On a loaded machine the tracing thread would wait for a CPU while it holds the target's threads. Where it may, it
 * runs before all ordinary threads, for the few microseconds that a hold takes.
 */
static int start_thread(struct freeze *fz, pthread_t *thread)
{
	struct sched_param first = {.sched_priority = 1};
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &first);
	rc = pthread_create(thread, &attr, freeze_main, fz);
	pthread_attr_destroy(&attr);
	return rc ? pthread_create(thread, NULL, freeze_main, fz) : 0;
}

int freeze_threads(const struct freeze_request *request, struct err *err, struct held_list *list)
{
	struct freeze fz = {.request = request, .list = list};
	sigset_t old;
	pthread_t thread;
	int rc;

	if (!vec_reserve(list, list->len + (request->whole_process ? ROOM_FOR_CLONES : 0)))
		return err_set(err, ENOMEM, "out of memory");
	/* Blocked in all threads of ours, so that it stays pending until sigtimedwait() takes it. */
	sigemptyset(&fz.sigchld);
	sigaddset(&fz.sigchld, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &fz.sigchld, &old);
	rc = start_thread(&fz, &thread);
	if (rc == 0)
		pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc ? err_set(err, rc, "cannot start the tracing thread: %s", strerror(rc)) : 0;
}
