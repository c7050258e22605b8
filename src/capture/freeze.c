/* SPDX-License-Identifier: MIT */
#include "capture/freeze.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/debug.h"
#include "base/map.h"
#include "base/signals.h"
#include "capture/altstack.h"
#include "capture/capture.h"
#include "privilege/remedy.h"
#include "proc/task.h"

enum {
	SEIZE_NS = 50 * 1000 * 1000, /* far more than it takes, unless it blocks: see join() */
	SEIZE_NS_PER_THREAD = 50 * 1000,
	SPIN_NS = 60 * 1000, /* a running thread stops within a few µs: cheaper than sleeping */
	FIRST_NAP_NS = 10 * 1000,
	LONGEST_NAP_NS = 2 * 1000 * 1000,
	BATCH = 64,
};

#define ESCAPE_SIGNAL 55 /* of the real-time ones, which C libraries use the first of, and others those that are near both ends */

struct freeze {
	atomic_bool all_seized;
	bool escaped; /* from a PTRACE_SEIZE that would not end */
	const struct freeze_request *request;
	struct held_list *list;
	uint64_t buffer_used;
};

/*
 * Where the tracing thread goes on when it is called out of a blocked PTRACE_SEIZE; NULL outside of one. Volatile, as
 * the compiler does not know of the handler.
 */
static __thread sigjmp_buf *volatile escape;

static void on_escape_signal(int sig, siginfo_t *info, void *context);

static struct signal_loan escapes = SIGNAL_LOAN(ESCAPE_SIGNAL, on_escape_signal);

static void on_escape_signal(int sig, siginfo_t *info, void *context)
{
	if (escape)
		siglongjmp(*escape, 1);
	if (info->si_code != SI_TKILL || info->si_pid != getpid()) /* ours may come too late */
		signal_loan_pass_on(&escapes, info, context);
}

/*
 * The one call that may block for ever: see join(). A signal alone does not end it, since the kernel starts it again
 * when the handler returns: the handler does not return.
 */
static long seize_call(struct freeze *fz, pid_t tid, unsigned long options)
{
	sigjmp_buf here;
	long rc;

	if (sigsetjmp(here, 1)) {
		escape = NULL;
		fz->escaped = true;
		errno = EAGAIN;
		return -1;
	}
	escape = &here;
	rc = ptrace(PTRACE_SEIZE, tid, NULL, options);
	escape = NULL;
	return rc;
}

static void seize(struct freeze *fz, struct held_thread *h)
{
	unsigned long options = fz->request->whole_process ? PTRACE_O_TRACECLONE : 0;
	struct task_status status;

	if (fz->escaped)
		return;
	h->seized_ns = monotonic_ns();
	if (seize_call(fz, h->tid, options) == 0)
		h->seized = true;
	else if (errno == ESRCH || task_status(fz->request->process, h->tid, &status) < 0 || status.state == 'Z' ||
		 status.state == 'X')
		h->result = HELD_GONE;
	else
		h->result = status.tracer ? HELD_TRACED : HELD_DENIED;
}

/* A thread that is not in the list and can be stopped: not one in state D, which would keep all others waiting. */
static bool is_newcomer(struct freeze *fz, struct u64map *known, pid_t tid)
{
	bool created = false;
	char state;

	return u64map_put(known, (uint64_t)tid, &created) && created && fz->list->len < fz->list->cap &&
	       task_state(fz->request->process, tid, &state) == 0 && state != 'D' && state != 'Z' && state != 'X' &&
	       !task_is_kernel_worker(fz->request->process, tid);
}

/*
 * Threads created between the listing and the moment at which their creator was seized are found by listing again;
 * after that, PTRACE_O_TRACECLONE attaches to new ones by itself.
 */
static void seize_newcomers(struct freeze *fz)
{
	struct tid_list tids = {0};
	struct u64map known = {0};
	bool found = true, created;

	for (size_t i = 0; i < fz->list->len; i++)
		u64map_put(&known, (uint64_t)fz->list->data[i].tid, &created);
	for (int tries = 0; found && tries < 8; tries++) {
		found = false;
		if (process_list_tids(fz->request->process, &tids) < 0)
			break;
		for (size_t i = 0; i < tids.len; i++) {
			struct held_thread fresh = {.tid = tids.data[i]};

			if (!is_newcomer(fz, &known, tids.data[i]))
				continue;
			seize(fz, &fresh);
			found |= fresh.seized;
			fz->list->data[fz->list->len++] = fresh;
		}
	}
	vec_deinit(&tids);
	u64map_deinit(&known);
}

/*
 * A thread may have fallen asleep since it was seen running. An interrupt would now make its system call fail with
 * EINTR, and it need not be stopped to be read. The test is test_capture.py::test_no_eintr.
 */
static void look(struct freeze *fz, struct held_thread *h)
{
	char state;

	if (task_state(fz->request->process, h->tid, &state) < 0)
		h->result = HELD_GONE;
	else if (state != 'R' && state != 't') /* 't': seized, and stopped on its way to a signal */
		h->result = HELD_ASLEEP;
}

static void interrupt(struct held_thread *h)
{
	h->asked_ns = monotonic_ns();
	if (ptrace(PTRACE_INTERRUPT, h->tid, NULL, NULL) < 0)
		h->result = HELD_GONE;
}

/* Leaves regs.valid 0 for a 32-bit context of a 64-bit program, whose registers are others. */
static void take_registers(struct freeze *fz, struct held_thread *h)
{
	const unsigned n = fz->request->arch->nuser_regs, word = fz->request->arch->word;
	uint32_t narrow[ARCH_MAX_USER_REGS];
	struct iovec iov = {.iov_base = word == 4 ? (void *)narrow : h->regs.v,
			    .iov_len = word == 4 ? sizeof(narrow) : sizeof(h->regs.v)};

	if (ptrace(PTRACE_GETREGSET, h->tid, (void *)NT_PRSTATUS, &iov) < 0 || iov.iov_len != (size_t)n * word)
		return;
	for (unsigned i = 0; word == 4 && i < n; i++)
		h->regs.v[i] = narrow[i];
	h->regs.valid = (UINT64_C(1) << n) - 1;
}

/* Adopts the thread that a held one has just created; the kernel has attached us to it already. */
static void adopt_clone(struct freeze *fz, const struct held_thread *parent)
{
	unsigned long tid = 0;

	if (ptrace(PTRACE_GETEVENTMSG, parent->tid, NULL, &tid) < 0 || fz->list->len >= fz->list->cap)
		return;
	fz->list->data[fz->list->len++] = (struct held_thread){
		.tid = (pid_t)tid,
		.seized = true,
		.seized_ns = parent->asked_ns,
		.asked_ns = parent->asked_ns,
	};
}

/*
 * Another thread of ours that waits for any child may have been told of the stop in our place: then the thread stands, and
 * nobody will say so. Returns its number, and the status that was told. The test is test_freeze.c::test_others_wait.
 */
static pid_t find_untold_stop(pid_t tid, int *status)
{
	siginfo_t info;
	pid_t got;

	if (ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) < 0)
		return 0;
	got = waitpid(tid, status, __WALL | WNOHANG); /* it may have stopped just now */
	if (got != 0)
		return got;
	*status = 0x7f | info.si_signo << 8;
	if (info.si_signo == SIGTRAP && (info.si_code & 0xff) == SIGTRAP)
		*status |= info.si_code >> 8 << 16;
	return tid;
}

/* Looks once whether the thread has stopped. True when nothing more is to be waited for. */
static bool reap(struct freeze *fz, struct held_thread *h, bool thoroughly)
{
	int status, event;
	pid_t got = waitpid(h->tid, &status, __WALL | WNOHANG);

	if (got == 0 && thoroughly)
		got = find_untold_stop(h->tid, &status);
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
	if (event != PTRACE_EVENT_STOP)
		h->asked_ns = h->seized_ns; /* it may have stood since then */
	h->result = HELD_STOPPED;
	take_registers(fz, h);
	return true;
}

/* Short at first, and never much of the time that was waited already: who is held pays for it. */
static void nap(uint64_t waited, uint64_t left)
{
	uint64_t ns = FIRST_NAP_NS + waited / 8;
	struct timespec rest;

	if (ns > LONGEST_NAP_NS)
		ns = LONGEST_NAP_NS;
	rest = ns_to_timespec(ns < left ? ns : left);
	nanosleep(&rest, NULL);
}

/*
 * Waits until the thread has stopped, or until the deadline. Not for SIGCHLD: that is the whole process's, another thread
 * may take it, and it may be about somebody else's child.
 */
static bool await(struct freeze *fz, struct held_thread *h, uint64_t deadline)
{
	uint64_t start = monotonic_ns(), spin_until = fz->request->whole_process ? 0 : start + SPIN_NS;
	bool napped = false;

	for (;;) {
		uint64_t now;

		if (reap(fz, h, napped))
			return true;
		now = monotonic_ns();
		if (now >= deadline)
			return false;
		if (now < spin_until)
			continue;
		nap(now - start, deadline - now);
		napped = true;
	}
}

/* Gives a copy its place in the buffer; shorter where that is full. */
static struct memory_job place_copy(struct freeze *fz, struct mem_copy *copy)
{
	const struct bulk *buffer = &fz->request->buffer;
	uint64_t room = buffer->size - fz->buffer_used;

	if (copy->len > room)
		copy->len = room;
	copy->data = buffer->data + fz->buffer_used;
	fz->buffer_used += (copy->len + 15) & ~UINT64_C(15);
	if (fz->buffer_used > buffer->size)
		fz->buffer_used = buffer->size;
	return (struct memory_job){.address = copy->start, .len = copy->len, .dst = copy->data};
}

/* What to copy of a held thread's stack; false when there is nothing. */
static bool plan_copy(struct freeze *fz, struct held_thread *h, struct memory_job *job)
{
	const struct freeze_request *rq = fz->request;
	uint64_t sp = h->regs.v[rq->arch->user_sp];
	const struct map_entry *map = h->regs.valid ? maps_find(rq->maps, sp) : NULL;
	uint64_t end;

	if (!map)
		return false;
	end = h->stack_end > sp && h->stack_end < map->end ? h->stack_end : map->end;
	h->stack = (struct mem_copy){.start = sp, .len = end - sp, .region_end = end};
	if (h->stack.len > rq->stack_size)
		h->stack.len = rq->stack_size;
	*job = place_copy(fz, &h->stack);
	return true;
}

static void copy_batch(struct freeze *fz, struct held_thread **owners, struct memory_job *jobs, size_t n)
{
	const struct freeze_request *rq = fz->request;

	memory_copy(rq->vm, jobs, n);
	for (size_t i = 0; i < n; i++) {
		struct held_thread *h = owners[i];

		memory_job_finish(&jobs[i], &h->stack);
		if (altstack_interrupted(rq->arch, rq->maps, &h->altstack, &h->stack, rq->stack_size, &h->interrupted)) {
			struct memory_job job = place_copy(fz, &h->interrupted);

			memory_copy(rq->vm, &job, 1);
			memory_job_finish(&job, &h->interrupted);
		}
	}
}

static void copy_stacks(struct freeze *fz, size_t from, size_t to)
{
	struct memory_job jobs[BATCH];
	struct held_thread *owners[BATCH];
	size_t n = 0;

	for (size_t i = from; i < to; i++) {
		struct held_thread *h = &fz->list->data[i];

		if (h->result == HELD_STOPPED && plan_copy(fz, h, &jobs[n]))
			owners[n++] = h;
		if (n == BATCH || (n && i + 1 == to)) {
			copy_batch(fz, owners, jobs, n);
			n = 0;
		}
	}
}

/* Word by word, as debuggers did before there was anything better; for comparison (--ptrace). */
struct peek_mem {
	struct mem mem;
	pid_t tid;
	struct memory *vm;
};

static ssize_t read_peek(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	const struct peek_mem *peek = (const struct peek_mem *)mem;
	pid_t tid = peek->tid;
	size_t done = 0;

	if (!memory_is_prompt(peek->vm, address, len))
		return -ETIMEDOUT; /* no thread is held while another party is waited for */

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
		struct held_thread *h = &fz->list->data[i];
		struct peek_mem peek = {.mem = {.read = read_peek}, .tid = h->tid, .vm = fz->request->vm};

		if (h->result == HELD_STOPPED)
			fz->request->on_held(fz->request->on_held_arg, h, &peek.mem);
	}
}

bool freeze_is_same_place(const struct arch *arch, const struct user_regs *seen, const struct user_regs *held)
{
	uint64_t pc = UINT64_C(1) << arch->user_pc, sp = UINT64_C(1) << arch->user_sp;

	return (seen->valid & pc) && (seen->valid & sp) && seen->v[arch->user_sp] == held->v[arch->user_sp] &&
	       (seen->v[arch->user_pc] == held->v[arch->user_pc] ||
		(arch->id == ARCH_AARCH64 && seen->v[arch->user_pc] == held->v[arch->user_pc] + 4) ||
		(arch->id == ARCH_ARM && seen->v[arch->user_pc] - held->v[arch->user_pc] <= 4));
}

/* What language runtimes want of the threads of one part of the list. */
static void read_more(struct freeze *fz, size_t from, size_t to)
{
	const struct freeze_request *rq = fz->request;

	for (size_t i = from; rq->reader && i < to; i++) {
		struct held_thread *h = &fz->list->data[i];
		struct thread_recorder recorder;

		if (h->result != HELD_STOPPED || (h->seen && !freeze_is_same_place(rq->arch, h->seen, &h->regs)))
			continue;
		thread_recorder_init(&recorder, rq->vm, rq->room, h->tid, &h->stack, &h->interrupted);
		rq->reader->read(rq->reader->arg, h->tid, &h->regs, &recorder.mem);
	}
}

static void let_go(struct held_thread *h)
{
	if (h->result != HELD_STOPPED || !h->seized)
		return;
	ptrace(PTRACE_DETACH, h->tid, NULL, (void *)(uintptr_t)h->signal);
	h->pause_ns = monotonic_ns() - h->asked_ns;
	h->seized = false;
}

/* Stops and copies the threads of one part of the list, which may grow at its end by clones. */
static void stop_wave(struct freeze *fz, size_t from, const size_t *to)
{
	uint64_t deadline = monotonic_ns() + fz->request->wait_ns;

	for (size_t i = from; i < *to; i++)
		if (fz->list->data[i].result == HELD_PENDING)
			interrupt(&fz->list->data[i]);
	for (size_t i = from; i < *to; i++)
		if (fz->list->data[i].result == HELD_PENDING && !await(fz, &fz->list->data[i], deadline))
			fz->list->data[i].result = HELD_TIMEOUT;
	copy_stacks(fz, from, *to);
	read_more(fz, from, *to);
}

static void *freeze_main(void *arg)
{
	struct freeze *fz = arg;
	const struct freeze_request *rq = fz->request;
	struct held_list *list = fz->list;

	prctl(PR_SET_TIMERSLACK, 1); /* of this thread: its naps are short */
	for (size_t i = 0; i < list->len; i++)
		seize(fz, &list->data[i]);
	if (rq->whole_process)
		seize_newcomers(fz);
	if (fz->escaped)
		return NULL;
	atomic_store(&fz->all_seized, true);
	for (size_t i = 0; rq->look_first && i < list->len; i++)
		if (list->data[i].result == HELD_PENDING)
			look(fz, &list->data[i]);

	/* From here to let_go(): no allocation, no file, no output. What runs is stopped last and let go first. */
	stop_wave(fz, 0, &rq->nfirst);
	stop_wave(fz, rq->nfirst, &list->len);
	if (rq->on_held)
		show_held(fz);
	if (rq->stood_ns)
		*rq->stood_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	for (size_t i = list->len; i-- > 0;)
		let_go(&list->data[i]);
	return NULL;
}

/*
 * On a loaded machine the tracing thread would wait for a CPU while it holds the target's threads. Where it may, it
 * runs before all ordinary threads, for the few microseconds that a hold takes (but not while it unwinds); and on our
 * own CPU, which is free while we wait, lest it displace the very threads that it is about to read.
 */
static int start_thread(struct freeze *fz, pthread_t *thread)
{
	struct sched_param first = {.sched_priority = 1};
	int rc = EPERM, here = sched_getcpu();
	char help[REMEDY_SIZE];
	pthread_attr_t attr;
	cpu_set_t cpus;

	pthread_attr_init(&attr);
	if (here >= 0 && here < CPU_SETSIZE) {
		CPU_ZERO(&cpus);
		CPU_SET(here, &cpus);
		pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	}
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &first);
	if (!fz->request->on_held)
		rc = pthread_create(thread, &attr, freeze_main, fz);
	pthread_attr_destroy(&attr);
	if (rc && !fz->request->on_held && debug_is_on())
		debug_say(-rc, "threads are held without real-time priority (SCHED_FIFO): %s", remedy(REFUSED_REALTIME, help));
	return rc ? pthread_create(thread, NULL, freeze_main, fz) : 0;
}

/*
 * An execve in a process of several threads kills the others and waits until they are gone; until then nobody can
 * attach to the process. One of the others that we have seized already is gone only when we have waited for it: the two
 * of us would wait for each other for ever. The end of the tracing thread lets go of all, and the exec goes on.
 * The test is test_survival.py::test_execve_in_the_middle. Returns -EAGAIN then.
 */
static int join(struct freeze *fz, pthread_t thread)
{
	uint64_t ns = SEIZE_NS + fz->list->len * SEIZE_NS_PER_THREAD;

	for (;; ns = SEIZE_NS) {
		struct timespec until = ns_to_timespec(clock_ns(CLOCK_REALTIME) + ns);

		if (pthread_timedjoin_np(thread, NULL, &until) == 0)
			return fz->escaped ? -EAGAIN : 0;
		/* Again and again: the signal does nothing to a thread that is about to make the call. */
		if (!atomic_load(&fz->all_seized))
			pthread_kill(thread, ESCAPE_SIGNAL);
	}
}

/* No handler of others is to run in the thread that holds. */
static void block_for_holder(sigset_t *before)
{
	sigset_t escape_only;

	signals_block_for_worker(before);
	sigemptyset(&escape_only);
	sigaddset(&escape_only, ESCAPE_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &escape_only, NULL);
}

/* The caller gets its signals again, but Ctrl-Z must not find us holding. */
static void unblock_all_but_stops(const sigset_t *before)
{
	sigset_t mask = *before;

	sigaddset(&mask, SIGTSTP);
	sigaddset(&mask, SIGTTIN);
	sigaddset(&mask, SIGTTOU);
	signals_restore(&mask);
}

int freeze_threads(const struct freeze_request *request, struct err *err, struct held_list *list)
{
	struct freeze fz = {.request = request, .list = list};
	sigset_t old;
	pthread_t thread;
	int rc;

	if (!vec_reserve(list, list->len + (request->whole_process ? FREEZE_ROOM_FOR_CLONES : 0)))
		return err_set(err, ENOMEM, "out of memory");
	rc = signal_loan_take(&escapes);
	if (rc < 0)
		return err_set(err, -rc, "cannot catch signal %d: %s", ESCAPE_SIGNAL, strerror(-rc));
	memory_hold(request->vm);
	block_for_holder(&old);
	rc = start_thread(&fz, &thread);
	unblock_all_but_stops(&old);
	if (rc)
		rc = err_set(err, rc, "cannot start the tracing thread: %s", strerror(rc));
	else
		rc = join(&fz, thread);
	signals_restore(&old);
	signal_loan_return(&escapes);
	memory_release(request->vm);
	return rc;
}
