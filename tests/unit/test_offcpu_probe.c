/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "kernel/offcpu_probe.h"
#include "proc/task.h"
#include "proc/task_status.h"

enum { NAPS = 20, NAP_US = 3000, SHORT_NAP_US = 50, MIN_NS = 1000000, POLL_MS = 10, PATIENCE = 500 };

static int to_child[2], from_child[2];

static void tell(int fd, pid_t value)
{
	if (write(fd, &value, sizeof(value)) != sizeof(value))
		_exit(1);
}

static pid_t hear(int fd)
{
	pid_t value = 0;

	if (read(fd, &value, sizeof(value)) != sizeof(value))
		return -1;
	return value;
}

/* What the child did, by its own account. */
struct deeds {
	uint64_t from_ns, until_ns;
	uint64_t sleeps;   /* how often it has left its CPU to wait: one whose CPU is taken away may find its nap over */
	uint64_t switches; /* and at all, up to the end */
};

struct seen {
	pid_t tgid;
	struct deeds deeds; /* if set, only these waits count */
	unsigned told, waits, others, stacks, exits, execs;
	unsigned unseen; /* waits whose end was not seen, and so without a stack */
	uint64_t missed; /* waits whose end is not known */
	bool in_thread;	 /* the kernel tells each thread itself that it is back */
	bool whole; /* each wait came after its stack */
	struct offcpu_stack_id ids[512];
};

static bool has_stack(const struct seen *seen, struct offcpu_stack_id id)
{
	for (unsigned i = 0; i < seen->stacks; i++)
		if (memcmp(&seen->ids[i], &id, sizeof(id)) == 0)
			return true;
	return false;
}

static bool is_of(const struct deeds *deeds, uint64_t ns)
{
	return !deeds->until_ns || (ns >= deeds->from_ns && ns <= deeds->until_ns);
}

static void take(void *arg, const void *record, size_t len)
{
	const struct offcpu_process *process = record;
	const struct offcpu_stack *stack = record;
	const struct offcpu_wait *wait = record;
	struct seen *seen = arg;

	switch (*(const uint32_t *)record) {
	case OFFCPU_WAIT:
		assert_int_equal(len, sizeof(*wait));
		seen->told++;
		if ((pid_t)wait->key.tgid != seen->tgid) {
			seen->others++;
			break;
		}
		if (wait->key.state == OFFCPU_RUNNABLE || !is_of(&seen->deeds, wait->start_ns))
			break;
		seen->waits++;
		seen->unseen += wait->key.stack.low == OFFCPU_STACK_UNSEEN;
		if (wait->key.stack.low != OFFCPU_STACK_BEFORE && wait->key.stack.low != OFFCPU_STACK_UNSEEN)
			seen->whole &= has_stack(seen, wait->key.stack);
		break;
	case OFFCPU_STACK:
		assert_int_equal(len, sizeof(*stack) + (stack->nkernel + stack->nuser) * sizeof(uint64_t));
		assert_true(seen->stacks < 512);
		seen->ids[seen->stacks++] = stack->id;
		break;
	case OFFCPU_EXIT:
		seen->exits += (pid_t)process->tgid == seen->tgid;
		break;
	case OFFCPU_EXEC:
		seen->execs += (pid_t)process->tgid == seen->tgid;
		break;
	}
}

static struct offcpu_probe_options the_options(enum offcpu_rung rung)
{
	return (struct offcpu_probe_options){
		.rung = rung,
		.filter = {.min_ns = MIN_NS,
			   .max_ns = UINT64_MAX,
			   .sleeping = true,
			   .uninterruptible = true,
			   .runnable = true},
		.events = true,
		.kernel_stacks = true,
		.user_stacks = true,
		.ring_bytes = 4 << 20, /* also for the stacks that are sent as they were, while nobody reads */
		.max_mappings = 64,
	};
}

/* A probe that watches the child; skips, with the reason, where BPF or this rung is refused. */
static struct offcpu_probe *start(pid_t pid, const struct offcpu_probe_options *options)
{
	struct offcpu_probe *probe = NULL;
	struct err err = {0};
	int rc = offcpu_probe_create(options, &err, &probe);

	if (rc == 0)
		rc = offcpu_probe_watch(probe, pid, &err);
	if (rc == 0)
		rc = offcpu_probe_start(probe, &err);
	if (rc < 0) {
		/* One of the rungs is there on every kernel that permits BPF at all. */
		if (options->rung == OFFCPU_RUNG_AUTO && rc != -EPERM && rc != -EACCES && rc != -ENOSYS &&
		    !strstr(err.msg, "BTF"))
			fail_msg("%s", err.msg);
		print_message("skipped: %s\n", err.msg);
		offcpu_probe_destroy(probe);
		child_end(pid);
		skip();
	}
	return probe;
}

static pid_t start_child(void (*body)(void))
{
	assert_int_equal(pipe(to_child), 0);
	assert_int_equal(pipe(from_child), 0);
	return child_start(body);
}

static void end(struct offcpu_probe *probe, pid_t pid)
{
	offcpu_probe_destroy(probe);
	if (pid)
		child_end(pid);
	close(to_child[0]);
	close(to_child[1]);
	close(from_child[0]);
	close(from_child[1]);
}

/* Ends the recording; the number of waits that were not over, the last of them in *open. */
static size_t stop(struct offcpu_probe *probe, struct seen *seen, struct offcpu_open *open)
{
	const struct offcpu_open *all = NULL;
	struct err err = {0};
	size_t n = 0;

	offcpu_probe_end(probe);
	assert_int_equal(offcpu_probe_stop(probe, &err, &all, &n), 0);
	assert_int_equal(offcpu_probe_poll(probe, 0, take, seen), 0);
	for (size_t i = 0; i < n; i++)
		if (!(all[i].wait.flags & OFFCPU_UNFINISHED)) /* it was over, but its thread could not tell it */
			take(seen, &all[i].wait, sizeof(all[i].wait));
	if (n && open)
		*open = all[n - 1];
	return n;
}

static void nap_for(uint64_t us)
{
	struct timespec t = ns_to_timespec(us * 1000);

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static void nap(void)
{
	nap_for(NAP_US);
}

static void naps(void)
{
	for (;;) {
		struct deeds deeds = {.from_ns = monotonic_ns()};
		struct rusage before, after;

		getrusage(RUSAGE_THREAD, &after); /* so that this needs no page later */
		hear(to_child[0]);
		deeds.from_ns = monotonic_ns();
		getrusage(RUSAGE_THREAD, &before);
		for (int i = 0; i < 2 * NAPS; i++)
			nap_for(i % 2 ? SHORT_NAP_US : NAP_US);
		getrusage(RUSAGE_THREAD, &after);
		deeds.until_ns = monotonic_ns();
		deeds.sleeps = (uint64_t)(after.ru_nvcsw - before.ru_nvcsw);
		deeds.switches = (uint64_t)(after.ru_nvcsw + after.ru_nivcsw);
		if (write(from_child[1], &deeds, sizeof(deeds)) != sizeof(deeds))
			_exit(1);
	}
}

static uint64_t count_switches(pid_t pid)
{
	struct task_status status = {0};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	assert_int_equal(task_status_read(AT_FDCWD, path, &status), 0);
	return status.nvcsw + status.nivcsw;
}

/* Lets the child nap, until it has left its CPU once more: then nothing that it did before is still to be told. */
static struct deeds let_nap(pid_t pid)
{
	struct deeds deeds = {0};

	tell(to_child[1], 1);
	assert_int_equal(read(from_child[0], &deeds, sizeof(deeds)), sizeof(deeds));
	assert_true(deeds.sleeps > NAPS / 2);
	while (count_switches(pid) <= deeds.switches)
		nap();
	return deeds;
}

enum { QUESTIONS = 3 }; /* the child waits for one, and may wait for a lock of the pipe that it is in, or the answer's */

static void assert_not_lost(struct offcpu_probe *probe, enum offcpu_lost what)
{
	uint64_t n = offcpu_probe_loss(probe, what);

	if (n)
		fail_msg("%llu lost of kind %d (enum offcpu_lost)", (unsigned long long)n, (int)what);
}

/* What is told of a child's naps: each wait after its stack, and those of nobody else. */
static struct seen record_naps(const struct offcpu_probe_options *options)
{
	pid_t pid = start_child(naps);
	struct seen seen = {.tgid = pid, .whole = true};
	struct offcpu_probe *probe = start(pid, options);

	seen.deeds = let_nap(pid);
	stop(probe, &seen, NULL);
	seen.missed = offcpu_probe_loss(probe, OFFCPU_LOST_RESUMES);
	seen.in_thread = strcmp(offcpu_probe_method(probe), "sched_exit") == 0;
	for (int i = 0; i < OFFCPU_LOSSES; i++)
		if (i != OFFCPU_LOST_RESUMES)
			assert_not_lost(probe, i);
	assert_true(seen.whole);
	assert_int_equal(seen.others, 0);
	end(probe, pid);
	return seen;
}

/* Stacks are taken when a thread leaves its CPU if every wait counts, and otherwise when it is back. */
enum { EVERY_NS = 0, ALMOST_EVERY_NS = 1 };

static struct seen record_rung(enum offcpu_rung rung, uint64_t min_ns, uint32_t pretended)
{
	struct offcpu_probe_options options = the_options(rung);

	options.filter.min_ns = min_ns;
	options.pretended = pretended;
	return record_naps(&options);
}

/*
 * Every wait is told. A return may go unseen at any time, as when the thread before is hidden from BPF: then the next
 * switch tells, and only after the naps, when the recording ends, may there be none.
 */
static struct seen check_rung(enum offcpu_rung rung, uint64_t min_ns, uint32_t pretended)
{
	struct seen seen = record_rung(rung, min_ns, pretended);

	assert_int_equal(seen.waits, seen.deeds.sleeps);
	assert_in_range(seen.missed, 0, 1);
	if (seen.in_thread && !(pretended & OFFCPU_UNSEEN_BACK))
		assert_int_equal(seen.unseen, 0);
	return seen;
}

/* Task storage is refused, and nothing is lost. */
static void test_busy_when_leaving(void **state)
{
	check_rung(OFFCPU_RUNG_AUTO, EVERY_NS, OFFCPU_BUSY_LEAVING | OFFCPU_BUSY_NOTING);
	check_rung(OFFCPU_RUNG_AUTO, ALMOST_EVERY_NS, OFFCPU_BUSY_LEAVING);
	check_rung(OFFCPU_RUNG_SWITCH, EVERY_NS, OFFCPU_BUSY_LEAVING);
}

static void test_busy_when_back(void **state)
{
	check_rung(OFFCPU_RUNG_AUTO, ALMOST_EVERY_NS, OFFCPU_BUSY_BACK);
	check_rung(OFFCPU_RUNG_SWITCH, EVERY_NS, OFFCPU_BUSY_BACK);
}

/* Where a return may go unseen, too, what both make unknown is counted, not only that of naps. */
static void check_at_times(enum offcpu_rung rung, uint64_t min_ns)
{
	struct seen seen = record_rung(rung, min_ns, OFFCPU_BUSY_LEAVING | OFFCPU_BUSY_BACK | OFFCPU_BUSY_AT_TIMES);

	assert_in_range(seen.deeds.sleeps, seen.waits, seen.waits + seen.missed);
	assert_in_range(seen.missed, 0, seen.in_thread ? 1 : seen.deeds.sleeps / 2);
}

static void test_busy_at_times(void **state)
{
	check_at_times(OFFCPU_RUNG_AUTO, EVERY_NS);
	check_at_times(OFFCPU_RUNG_AUTO, ALMOST_EVERY_NS);
	check_at_times(OFFCPU_RUNG_SWITCH, EVERY_NS);
}

/* A program that is not run does not lose a wait, but at most its stack. */
static void test_unseen_back(void **state)
{
	struct seen seen = check_rung(OFFCPU_RUNG_AUTO, ALMOST_EVERY_NS, OFFCPU_UNSEEN_BACK);

	assert_int_equal(seen.unseen, seen.in_thread ? seen.waits : seen.unseen);
	seen = check_rung(OFFCPU_RUNG_AUTO, EVERY_NS, OFFCPU_UNSEEN_BACK);
	assert_int_equal(seen.unseen, 0);
}

static uint64_t cpu_ns(pid_t pid)
{
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	return clock_ns(clock);
}

/* How long the child ran before is not forgotten when what was noted of it gets another place. */
static void test_ran(void **state)
{
	struct offcpu_probe_options options = the_options(OFFCPU_RUNG_AUTO);
	pid_t pid = start_child(naps);
	struct seen seen = {.tgid = pid};
	const struct offcpu_ran *ran = NULL;
	struct offcpu_probe *probe;
	struct err err = {0};
	uint64_t before;
	size_t n = 0;

	let_nap(pid);
	before = cpu_ns(pid);
	options.pretended = OFFCPU_BUSY_NOTING;
	probe = start(pid, &options);
	let_nap(pid);
	offcpu_probe_end(probe);
	assert_int_equal(offcpu_probe_ran(probe, &err, &ran, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(ran->tid, pid);
	assert_in_range(ran->ran_ns, 1, cpu_ns(pid) - before);
	stop(probe, &seen, NULL);
	end(probe, pid);
}

static void test_auto(void **state)
{
	check_rung(OFFCPU_RUNG_AUTO, EVERY_NS, 0);
	check_rung(OFFCPU_RUNG_AUTO, ALMOST_EVERY_NS, 0);
}

static void test_sched_exit(void **state)
{
	check_rung(OFFCPU_RUNG_SCHED_EXIT, EVERY_NS, 0);
}

static void test_kprobe(void **state)
{
	check_rung(OFFCPU_RUNG_KPROBE, EVERY_NS, 0);
}

static void test_switch(void **state)
{
	check_rung(OFFCPU_RUNG_SWITCH, EVERY_NS, 0);
}

/* States that were not asked for are not told. */
static void test_states(void **state)
{
	struct offcpu_probe_options options = the_options(OFFCPU_RUNG_AUTO);
	pid_t pid = start_child(naps);
	struct seen seen = {.tgid = pid};
	struct offcpu_probe *probe;

	options.filter.sleeping = false;
	probe = start(pid, &options);
	let_nap(pid);
	assert_int_equal(stop(probe, &seen, NULL), 0);
	assert_int_equal(seen.waits, 0);
	end(probe, pid);
}

struct added {
	pid_t tgid;
	uint64_t min_ns, count, others;
	const struct seen *seen;
	bool whole;
	bool many; /* waits of one row, more than have a place in its sum */
};

/* Each wait is in its bucket, so that all together are as long as the sum says, within the error of a bucket. */
static void check_lengths(const struct offcpu_sums *sums, const struct offcpu_lengths_counted *lengths)
{
	const uint64_t nfirst = sums->count < OFFCPU_FIRST_WAITS ? sums->count : OFFCPU_FIRST_WAITS;
	uint64_t counts[OFFCPU_BUCKETS] = {0}, count = 0, total = 0, slack = sums->total_ns / 16 + 256 * sums->count;

	assert_int_equal(lengths != NULL, sums->count > OFFCPU_FIRST_WAITS);
	for (uint64_t i = 0; i < nfirst; i++)
		counts[sums->first[i]]++;
	for (uint32_t bucket = 0; bucket < OFFCPU_BUCKETS; bucket++) {
		counts[bucket] += lengths ? lengths->counts[bucket] : 0;
		count += counts[bucket];
		total += counts[bucket] * offcpu_bucket_middle(bucket);
	}
	assert_int_equal(count, sums->count);
	assert_in_range(total, sums->total_ns - slack, sums->total_ns + slack);
	assert_true(counts[offcpu_bucket_of(sums->min_ns)] && counts[offcpu_bucket_of(sums->max_ns)]);
}

static void add(void *arg, const struct offcpu_key *key, const struct offcpu_sums *sums,
		const struct offcpu_lengths_counted *lengths)
{
	struct added *added = arg;

	if ((pid_t)key->tgid != added->tgid) {
		added->others++;
		return;
	}
	assert_true(sums->min_ns <= sums->max_ns && sums->max_ns <= sums->total_ns);
	assert_true(sums->min_ns >= added->min_ns);
	check_lengths(sums, lengths);
	added->many |= lengths != NULL;
	added->whole &= has_stack(added->seen, key->stack);
	if (key->state == OFFCPU_RUNNABLE)
		return;
	added->count += sums->count;
}

/* Without events no wait is sent, only their sums are there; *sleeps is how often the child has slept meanwhile. */
static struct added add_up(uint64_t min_ns, int rounds, uint64_t *sleeps)
{
	struct offcpu_probe_options options = the_options(OFFCPU_RUNG_AUTO);
	pid_t pid = start_child(naps);
	struct seen seen = {.tgid = pid};
	struct added added = {.tgid = pid, .seen = &seen, .min_ns = min_ns, .whole = true};
	struct offcpu_probe *probe;

	options.events = false;
	options.filter.min_ns = min_ns;
	probe = start(pid, &options);
	for (*sleeps = 0; rounds > 0; rounds--)
		*sleeps += let_nap(pid).sleeps;
	stop(probe, &seen, NULL);
	assert_int_equal(seen.told, 0);
	assert_int_equal(offcpu_probe_sums(probe, add, &added), 0);
	assert_int_equal(added.others, 0);
	assert_true(added.whole);
	assert_true(offcpu_probe_seen(probe) >= added.count);
	end(probe, pid);
	return added;
}

static void test_sums(void **state)
{
	uint64_t sleeps;
	struct added added = add_up(0, 1, &sleeps);

	assert_in_range(added.count, sleeps, sleeps + QUESTIONS);
}

/* More waits than have a place in their sum: those of one place in the code are most of them. */
static void test_many_waits(void **state)
{
	enum { ROUNDS = 4 };
	uint64_t sleeps;
	struct added added = add_up(0, ROUNDS, &sleeps);

	assert_in_range(added.count, sleeps, sleeps + ROUNDS * QUESTIONS);
	assert_true(added.many);
}

/* Short naps are not counted, as no sum has a wait below the threshold: add() looks at that. */
static void test_threshold(void **state)
{
	uint64_t sleeps;
	struct added added = add_up(MIN_NS, 1, &sleeps);

	assert_in_range(added.count, NAPS / 2, sleeps + QUESTIONS);
}

static bool is_asleep(pid_t pid)
{
	struct process process;
	char letter = 0;

	assert_int_equal(process_open(pid, NULL, &process), 0);
	assert_int_equal(task_state(&process, pid, &letter), 0);
	process_close(&process);
	return letter == 'S';
}

/* A wait that began before and is not over counts from the beginning to the end. */
static void test_open_wait(void **state)
{
	struct offcpu_probe_options options = the_options(OFFCPU_RUNG_AUTO);
	pid_t pid = start_child(naps); /* waits for the question, which never comes */
	struct seen seen = {.tgid = pid};
	struct offcpu_probe *probe;
	struct offcpu_open open;

	for (int i = 0; i < PATIENCE && !is_asleep(pid); i++)
		nap();
	options.filter.min_ns = 0;
	probe = start(pid, &options);
	nap();
	assert_int_equal(stop(probe, &seen, &open), 1);
	assert_int_equal(open.wait.key.tid, pid);
	assert_int_equal(open.wait.key.state, OFFCPU_SLEEPING);
	assert_true(open.wait.flags & OFFCPU_UNFINISHED);
	assert_int_equal(open.wait.start_ns, offcpu_probe_begin_ns(probe));
	assert_int_equal(open.wait.duration_ns, offcpu_probe_end(probe) - offcpu_probe_begin_ns(probe));
	assert_int_equal(seen.waits, 0);
	end(probe, pid);
}

/* Answers each question at once: it is always woken by the test, and never waits for long. */
static void echo(void)
{
	for (;;)
		tell(from_child[1], hear(to_child[0]));
}

/* A waker's stacks are taken only of waits that are already long enough. */
static void test_wakers_of_short_waits(void **state)
{
	struct offcpu_probe_options options = the_options(OFFCPU_RUNG_AUTO);
	pid_t pid = start_child(echo);
	struct seen seen = {.tgid = pid};
	struct offcpu_probe *probe;

	options.wakers = true;
	options.filter.min_ns = 3600ull * NS_PER_S;
	probe = start(pid, &options);
	for (pid_t i = 1; i <= NAPS; i++) {
		tell(to_child[1], i);
		assert_int_equal(hear(from_child[0]), i);
	}
	stop(probe, &seen, NULL);
	assert_int_equal(seen.stacks, 0);
	end(probe, pid);
}

static void keep(void *arg, const void *record, size_t len)
{
	const struct offcpu_wait *wait = record;

	if (wait->kind == OFFCPU_WAIT && wait->key.state == OFFCPU_SLEEPING)
		*(struct offcpu_wait *)arg = *wait;
}

/* Keeps the CPU that the child wants, so that it waits for it. False: not permitted. */
static bool take_cpu_from(pid_t pid)
{
	const struct sched_param first = {.sched_priority = 1};
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	return sched_setaffinity(0, sizeof(one), &one) == 0 && sched_setaffinity(pid, sizeof(one), &one) == 0 &&
	       sched_setscheduler(0, SCHED_FIFO, &first) == 0;
}

static void give_cpu_back(const cpu_set_t *before)
{
	const struct sched_param usual = {0};

	sched_setscheduler(0, SCHED_OTHER, &usual);
	sched_setaffinity(0, sizeof(*before), before);
}

/* A wait that was short when it was woken, and long because there was no CPU, has a waker without stacks. */
static void test_waker_of_starved_thread(void **state)
{
	const uint64_t long_ns = NS_PER_S / 2;
	struct offcpu_probe_options options = the_options(OFFCPU_RUNG_AUTO);
	pid_t pid = start_child(echo);
	struct offcpu_wait wait = {0};
	struct offcpu_probe *probe;
	cpu_set_t before;

	options.wakers = true;
	options.filter.min_ns = long_ns;
	probe = start(pid, &options);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	if (!take_cpu_from(pid)) {
		end(probe, pid);
		skip();
	}
	tell(to_child[1], 1);
	assert_int_equal(hear(from_child[0]), 1);
	for (int i = 0; i < PATIENCE && !is_asleep(pid); i++)
		nap();
	tell(to_child[1], 2);
	for (uint64_t until = monotonic_ns() + long_ns + long_ns / 5; monotonic_ns() < until;)
		;
	give_cpu_back(&before);
	assert_int_equal(hear(from_child[0]), 2);
	offcpu_probe_end(probe);
	assert_int_equal(offcpu_probe_poll(probe, 0, keep, &wait), 0);
	assert_int_equal(wait.key.tid, pid);
	assert_int_equal(wait.key.waker_tid, getpid());
	assert_int_equal(wait.key.waker_stack.low, OFFCPU_STACK_EARLY);
	assert_true(wait.runnable_ns >= long_ns);
	end(probe, pid);
}

/* Who is watched, and not shown by the kernel's iterator. */
static void test_hidden(void **state)
{
	const struct offcpu_probe_options options = the_options(OFFCPU_RUNG_AUTO);
	pid_t nobody, pid = start_child(naps);
	struct offcpu_probe *probe = start(pid, &options);

	nobody = child_start(child_sleeps);
	child_end(nobody);
	assert_int_equal(offcpu_probe_watch(probe, nobody, NULL), 0);
	assert_int_equal(offcpu_probe_note_waiting(probe, NULL), 0);
	assert_false(offcpu_probe_is_hidden(probe, pid));
	assert_true(offcpu_probe_is_hidden(probe, nobody));
	end(probe, pid);
}

/* A process that was waited for may not have left its CPU for the last time. */
static void assert_forgotten(struct offcpu_probe *probe, pid_t pid)
{
	for (int i = 0; i < PATIENCE && offcpu_probe_is_watched(probe, pid); i++)
		nap();
	assert_false(offcpu_probe_is_watched(probe, pid));
}

static void forks(void)
{
	for (;;) {
		pid_t pid;

		hear(to_child[0]);
		pid = fork();
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			hear(to_child[0]);
			_exit(0);
		}
		tell(from_child[1], pid);
		waitpid(pid, NULL, 0);
		tell(from_child[1], pid);
	}
}

/* A child has the mappings of its parent at once, and nothing of it is left when it has ended. */
static void check_fork(bool children)
{
	struct offcpu_probe_options options = the_options(OFFCPU_RUNG_AUTO);
	const struct offcpu_maps maps = {.first = 3, .count = 0, .set = 4711};
	pid_t pid = start_child(forks), child;
	struct seen seen = {0};
	struct offcpu_probe *probe;

	options.children = children;
	probe = start(pid, &options);
	assert_int_equal(offcpu_probe_set_process(probe, pid, &maps), 0);
	tell(to_child[1], 1);
	seen.tgid = child = hear(from_child[0]);
	assert_true(child > 0);
	assert_int_equal(offcpu_probe_is_watched(probe, child), children);
	assert_int_equal(offcpu_probe_set_of(probe, child) == maps.set, children);
	tell(to_child[1], 1);
	assert_int_equal(hear(from_child[0]), child);
	assert_forgotten(probe, child);
	assert_false(offcpu_probe_set_of(probe, child) == maps.set);
	assert_true(offcpu_probe_set_of(probe, pid) == maps.set);
	offcpu_probe_poll(probe, 0, take, &seen);
	assert_int_equal(seen.exits, children);

	offcpu_probe_forget_process(probe, pid, maps.set + 1); /* of a process that had this number before */
	assert_true(offcpu_probe_set_of(probe, pid) == maps.set);
	offcpu_probe_forget_process(probe, pid, maps.set);
	assert_false(offcpu_probe_set_of(probe, pid) == maps.set);
	end(probe, pid);
}

static void test_fork(void **state)
{
	check_fork(true);
}

static void test_fork_without_children(void **state)
{
	check_fork(false);
}

static void forks_naps(void)
{
	hear(to_child[0]);
	for (int i = 0; i < NAPS; i++) {
		pid_t pid = fork();

		if (!pid) {
			nap();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	tell(from_child[1], 1);
	hear(to_child[0]);
}

/* A stack that processes share is sent once, however many there are; here that of the kernel alone, without any tables. */
static void test_shared_stack(void **state)
{
	struct offcpu_probe_options options = the_options(OFFCPU_RUNG_AUTO);
	pid_t pid = start_child(forks_naps);
	struct seen seen = {.tgid = pid};
	struct offcpu_probe *probe;

	options.children = true;
	options.user_stacks = false;
	options.filter.runnable = options.filter.uninterruptible = false; /* a CPU is lost anywhere */
	probe = start(pid, &options);
	tell(to_child[1], 1);
	assert_int_equal(hear(from_child[0]), 1);
	stop(probe, &seen, NULL);
	assert_true(seen.others > NAPS / 2);
	assert_true(seen.stacks < NAPS / 2);
	end(probe, pid);
}

static void *outlives_main(void *arg)
{
	pid_t leader = getpid();
	char path[64], line[512] = "", *state;

	/* Until the main thread is a zombie. */
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)leader);
	do {
		FILE *f = fopen(path, "re");

		if (!f || !fgets(line, sizeof(line), f))
			_exit(1);
		fclose(f);
		state = strrchr(line, ')');
	} while (state[2] != 'Z');
	tell(from_child[1], 1);
	hear(to_child[0]);
	_exit(0);
}

static void ends_main_thread(void)
{
	pthread_t thread;

	hear(to_child[0]);
	pthread_create(&thread, NULL, outlives_main, NULL);
	syscall(SYS_exit, 0);
}

/* A process has ended when its last thread has, not its first. */
static void test_main_thread_ends(void **state)
{
	const struct offcpu_probe_options options = the_options(OFFCPU_RUNG_AUTO);
	const struct offcpu_maps maps = {.set = 5};
	pid_t pid = start_child(ends_main_thread);
	struct offcpu_probe *probe = start(pid, &options);
	struct seen seen = {.tgid = pid};

	assert_int_equal(offcpu_probe_set_process(probe, pid, &maps), 0);
	tell(to_child[1], 1);
	assert_int_equal(hear(from_child[0]), 1);
	offcpu_probe_poll(probe, 0, take, &seen);
	assert_int_equal(seen.exits, 0);
	assert_true(offcpu_probe_is_watched(probe, pid));
	assert_true(offcpu_probe_set_of(probe, pid) == maps.set);
	tell(to_child[1], 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_forgotten(probe, pid);
	offcpu_probe_poll(probe, 0, take, &seen);
	assert_int_equal(seen.exits, 1);
	end(probe, 0);
}

static bool is_zombie(pid_t pid)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0 && info.si_pid == pid;
}

/* One that ended before it was watched, and that nobody has waited for: nothing more comes of it. */
static void test_zombie(void **state)
{
	const struct offcpu_probe_options options = the_options(OFFCPU_RUNG_AUTO);
	pid_t pid = start_child(child_sleeps);
	struct offcpu_probe *probe;

	kill(pid, SIGKILL);
	assert_true(is_zombie(pid));
	probe = start(pid, &options);
	assert_false(offcpu_probe_watches_any(probe));
	assert_false(offcpu_probe_is_hidden(probe, pid));
	end(probe, pid);
}

/* Its main thread has ended, and others live on. */
static void test_main_thread_has_ended(void **state)
{
	const struct offcpu_probe_options options = the_options(OFFCPU_RUNG_AUTO);
	pid_t pid = start_child(ends_main_thread);
	struct offcpu_probe *probe;

	tell(to_child[1], 1);
	assert_int_equal(hear(from_child[0]), 1);
	probe = start(pid, &options);
	assert_true(offcpu_probe_is_watched(probe, pid));
	assert_true(offcpu_probe_watches_any(probe));
	assert_false(offcpu_probe_is_hidden(probe, pid));
	end(probe, pid);
}

static void *executes(void *arg)
{
	execl("/bin/sh", "sh", "-c", "read line", NULL);
	_exit(1);
}

static void executes_in_thread(void)
{
	pthread_t thread;

	hear(to_child[0]);
	dup2(to_child[0], STDIN_FILENO);
	pthread_create(&thread, NULL, executes, NULL);
	pause();
}

/* An exec by another thread than the main one: that takes over the process's number. */
static void test_exec_by_thread(void **state)
{
	const struct offcpu_probe_options options = the_options(OFFCPU_RUNG_AUTO);
	const struct offcpu_maps maps = {.set = 5};
	pid_t pid = start_child(executes_in_thread);
	struct offcpu_probe *probe = start(pid, &options);
	struct seen seen = {.tgid = pid};

	assert_int_equal(offcpu_probe_set_process(probe, pid, &maps), 0);
	tell(to_child[1], 1);
	for (int i = 0; i < PATIENCE && !seen.execs; i++)
		offcpu_probe_poll(probe, POLL_MS, take, &seen);
	assert_int_equal(seen.execs, 1);
	assert_int_equal(seen.exits, 0);
	assert_true(offcpu_probe_is_watched(probe, pid));
	assert_false(offcpu_probe_set_of(probe, pid) == maps.set);
	end(probe, pid);
}

enum { NAP = 1, OTHER_WAITS, END_CHILDREN };

/* What fills the ring, and what needs room there that none of the former did: two stacks, and the ends of processes. */
static void fills_the_ring(void)
{
	for (;;) {
		struct timeval t = {.tv_usec = NAP_US};
		pid_t what = hear(to_child[0]), pid;

		for (int i = 0; what == NAP && i < NAPS; i++)
			nap();
		if (what == OTHER_WAITS) {
			poll(NULL, 0, NAP_US / 1000);
			select(0, NULL, NULL, NULL, &t);
		}
		for (int i = 0; what == END_CHILDREN && i < NAPS; i++) {
			pid = fork();
			if (!pid)
				_exit(0);
			waitpid(pid, NULL, 0);
		}
		tell(from_child[1], what);
	}
}

static void let(pid_t what)
{
	tell(to_child[1], what);
	assert_int_equal(hear(from_child[0]), what);
}

/* What finds no room in the ring is counted: not one wait is neither told nor lost. */
static void test_losses(void **state)
{
	struct offcpu_probe_options options = the_options(OFFCPU_RUNG_AUTO);
	pid_t pid = start_child(fills_the_ring);
	struct seen seen = {.tgid = pid};
	struct offcpu_probe *probe;

	options.ring_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	options.children = true;
	options.filter.min_ns = 0;
	probe = start(pid, &options);
	/* Of the largest pages, 64 KiB, one is filled. */
	for (int i = 0; i < (64 << 10) / (int)sizeof(struct offcpu_wait) / NAPS + 1; i++)
		if (!offcpu_probe_loss(probe, OFFCPU_LOST_WAITS))
			let(NAP);
	assert_true(offcpu_probe_loss(probe, OFFCPU_LOST_WAITS) > 0);
	let(OTHER_WAITS);
	let(END_CHILDREN);
	stop(probe, &seen, NULL);
	assert_true(offcpu_probe_loss(probe, OFFCPU_LOST_STACKS) > 0);
	assert_true(offcpu_probe_loss(probe, OFFCPU_LOST_REQUESTS) > 0);
	assert_true(seen.told > 0);
	assert_int_equal(seen.told + offcpu_probe_loss(probe, OFFCPU_LOST_WAITS), offcpu_probe_seen(probe));
	end(probe, pid);
}

static void test_limits(void **state)
{
	struct offcpu_probe_options options = the_options(OFFCPU_RUNG_AUTO);
	const struct offcpu_mapping mapping = {.start = 1, .end = 2, .set = 1};
	const struct unwind_row row = {.kind = UNWIND_END};
	uint32_t objects[] = {0, 4095};
	pid_t pid = start_child(child_sleeps);
	struct offcpu_probe *probe;
	int tables[2];

	options.pretended = OFFCPU_NEVER_FINDS; /* its own mappings lie behind */
	probe = start(pid, &options);
	assert_int_equal(offcpu_probe_set_mapping(probe, options.max_mappings - 1, &mapping), 0);
	assert_true(offcpu_probe_set_mapping(probe, options.max_mappings, &mapping) < 0);
	tables[0] = offcpu_probe_create_table(probe, &row, 1, 0);
	tables[1] = offcpu_probe_create_table(probe, &row, 1, 0);
	assert_true(tables[0] >= 0 && tables[1] >= 0);
	assert_int_equal(offcpu_probe_create_table(probe, &row, 0, 0), -ENOSPC);
	assert_int_equal(offcpu_probe_set_objects(probe, objects, tables, 2), 0);
	assert_int_equal(offcpu_probe_set_objects(probe, objects, tables, 0), 0);
	objects[1] = 4096;
	assert_int_equal(offcpu_probe_set_objects(probe, objects, tables, 2), -ENOSPC);
	close(tables[0]);
	close(tables[1]);
	end(probe, pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_auto),
		cmocka_unit_test(test_sched_exit),
		cmocka_unit_test(test_kprobe),
		cmocka_unit_test(test_switch),
		cmocka_unit_test(test_busy_when_leaving),
		cmocka_unit_test(test_busy_when_back),
		cmocka_unit_test(test_busy_at_times),
		cmocka_unit_test(test_unseen_back),
		cmocka_unit_test(test_ran),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_many_waits),
		cmocka_unit_test(test_threshold),
		cmocka_unit_test(test_open_wait),
		cmocka_unit_test(test_wakers_of_short_waits),
		cmocka_unit_test(test_waker_of_starved_thread),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_fork_without_children),
		cmocka_unit_test(test_shared_stack),
		cmocka_unit_test(test_main_thread_ends),
		cmocka_unit_test(test_zombie),
		cmocka_unit_test(test_main_thread_has_ended),
		cmocka_unit_test(test_exec_by_thread),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
