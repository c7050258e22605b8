/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "model/descriptor.h"
#include "wait/graph.h"

/* Some processes with threads, numbered 100 * (process + 1) + thread. */
enum { PROCESSES = 4, THREADS = 4, MAX_PEERS = 4 };

struct world {
	struct snapshot snaps[PROCESSES];
	struct snap_thread threads[PROCESSES][THREADS];
	struct trace_thread traced[PROCESSES][THREADS];
	struct trace traces[PROCESSES];
	const struct trace *all[PROCESSES];
	struct wait_peer peers[PROCESSES][THREADS][MAX_PEERS];
	struct deadlocks found;
};

static pid_t pid_of(unsigned process)
{
	return (pid_t)(100 * (process + 1));
}

/* Each process has so many threads, which run. */
static void init(struct world *w, unsigned nthreads)
{
	*w = (struct world){0};
	for (unsigned p = 0; p < PROCESSES; p++) {
		w->snaps[p].pid = pid_of(p);
		w->snaps[p].capture.instant_ns = 1;
		w->traces[p].snap = &w->snaps[p];
		w->traces[p].threads.data = w->traced[p];
		w->traces[p].threads.len = nthreads;
		w->all[p] = &w->traces[p];
		for (unsigned t = 0; t < nthreads; t++) {
			w->threads[p][t] = (struct snap_thread){.tid = pid_of(p) + (pid_t)t, .state = 'S', .still_besides = true, .off_cpu_ns = -1};
			w->traced[p][t] = (struct trace_thread){.snap = &w->snaps[p], .thread = &w->threads[p][t]};
		}
	}
}

static void wants_lock(struct world *w, unsigned p, unsigned t, unsigned owner_p, unsigned owner_t)
{
	w->traced[p][t].wait = (struct wait){.kind = WAIT_MUTEX, .holder = HOLDER_THREAD, .owner = pid_of(owner_p) + (pid_t)owner_t,
					     .owner_pid = pid_of(owner_p), .certain = true};
}

static void wants_one_of(struct world *w, unsigned p, unsigned t, unsigned n, const unsigned *peers)
{
	for (unsigned i = 0; i < n; i++)
		w->peers[p][t][i] = (struct wait_peer){.pid = pid_of(peers[i]), .comm = "peer"};
	w->traced[p][t].wait = (struct wait){.kind = WAIT_FUTEX, .peers = w->peers[p][t], .npeers = n, .peers_known = true, .certain = true};
}

#define ONE_OF(...) sizeof((unsigned[]){__VA_ARGS__}) / sizeof(unsigned), (const unsigned[]){__VA_ARGS__}

/* Two processes of one thread each, of which both read what the other would write; the first one that. */
static void init_readers(struct world *w, const struct snap_wait *reads)
{
	init(w, 1);
	wants_one_of(w, 0, 0, ONE_OF(1));
	wants_one_of(w, 1, 0, ONE_OF(0));
	w->traced[0][0].wait.kind = WAIT_READ;
	w->traced[0][0].wait.on = reads;
}

static const struct deadlocks *find(struct world *w, size_t nprocesses)
{
	deadlocks_deinit(&w->found);
	w->found.maybe_more = false;
	assert_true(deadlocks_find(w->all, nprocesses, &w->found));
	return &w->found;
}

static bool has(const struct world *w, size_t which, unsigned p, unsigned t)
{
	return which < w->found.len && deadlocks_with(&w->found, &w->traced[p][t]) == &w->found.data[which];
}

/* Who waits behind a circle is no part of it. */
static void test_circle(void **state)
{
	struct world w;

	init(&w, 4);
	wants_lock(&w, 0, 2, 0, 1);
	wants_lock(&w, 0, 1, 0, 3);
	wants_lock(&w, 0, 3, 0, 2);
	wants_lock(&w, 0, 0, 0, 3);
	assert_int_equal(find(&w, 1)->len, 1);
	assert_int_equal(w.found.data[0].len, 3);
	for (size_t i = 0; i < 3; i++) /* each waits for the next */
		assert_int_equal(w.found.data[0].data[i]->wait.owner, w.found.data[0].data[(i + 1) % 3]->thread->tid);
	assert_null(deadlocks_with(&w.found, &w.traced[0][0]));
	assert_false(w.found.maybe_more);
	w.traced[0][1].wait.timed = true;
	assert_int_equal(find(&w, 1)->len, 0);
	assert_false(w.found.maybe_more);
	w.traced[0][1].wait.timed = false;
	w.traced[0][1].wait.certain = false;
	assert_int_equal(find(&w, 1)->len, 0);
	assert_true(w.found.maybe_more);
	deadlocks_deinit(&w.found);
}

static void test_itself(void **state)
{
	struct world w;

	init(&w, 2);
	wants_lock(&w, 0, 1, 0, 1);
	assert_int_equal(find(&w, 1)->len, 1);
	assert_true(has(&w, 0, 0, 1));
	/* a process of one thread that wants what it has itself, in another descriptor */
	deadlocks_deinit(&w.found);
	init(&w, 1);
	wants_one_of(&w, 0, 0, ONE_OF(0));
	assert_int_equal(find(&w, 1)->len, 1);
	assert_int_equal(w.found.data[0].len, 1);
	deadlocks_deinit(&w.found);
}

/* Both read what only the other could write. */
static void test_two_processes(void **state)
{
	struct world w;

	init(&w, 1);
	wants_one_of(&w, 0, 0, ONE_OF(1));
	wants_one_of(&w, 1, 0, ONE_OF(0));
	assert_int_equal(find(&w, 2)->len, 1);
	assert_int_equal(w.found.data[0].len, 2);
	assert_int_equal(find(&w, 1)->len, 0); /* the other one is not looked at */
	assert_false(w.found.maybe_more);
	w.traced[0][0].wait.peers_known = false; /* somebody else may do it */
	assert_int_equal(find(&w, 2)->len, 0);
	w.traced[0][0].wait.peers_known = true;
	w.threads[1][0].still_besides = false; /* it ran before it was known who has the other end */
	assert_int_equal(find(&w, 2)->len, 0);
	assert_true(w.found.maybe_more);
	w.threads[1][0].still_besides = true;
	w.snaps[1].capture.instant_ns = 2; /* it was captured later: by then the first may have got what it waited for */
	assert_int_equal(find(&w, 2)->len, 0);
	assert_true(w.found.maybe_more);
	w.snaps[1].capture.instant_ns = 1;
	w.snaps[1].partial = true; /* and has other threads */
	assert_int_equal(find(&w, 2)->len, 0);
	deadlocks_deinit(&w.found);
}

/* Others of its process can add to what it waits for. */
static void test_helpers(void **state)
{
	struct snap_thread threads[2] = {{.status = THREAD_CAPTURED}, {.status = THREAD_CAPTURED}};
	struct world w;

	init(&w, 1);
	wants_one_of(&w, 0, 0, ONE_OF(1));
	wants_one_of(&w, 1, 0, ONE_OF(0));
	w.traced[0][0].wait.kind = WAIT_EVENTS;
	assert_int_equal(find(&w, 2)->len, 1);
	w.snaps[0].threads.data = threads;
	w.snaps[0].threads.len = 2;
	assert_int_equal(find(&w, 2)->len, 0);
	w.traced[0][0].wait.kind = WAIT_CHILD; /* for a certain one, nobody can */
	assert_int_equal(find(&w, 2)->len, 1);
	w.traced[0][0].wait.state.any_child = true;
	assert_int_equal(find(&w, 2)->len, 0);
	deadlocks_deinit(&w.found);
}

/* Sockets may have time limits of their own, but not calls that wait for events of them. */
static void test_sockets(void **state)
{
	const struct snap_wait reads = {.kind = WAIT_READ, .on = {.kind = DESCRIPTOR_SOCKET}}, polls = {.kind = WAIT_EVENTS, .on = {.fd = -1}};
	const struct snap_wait reads_for_ever = {.kind = WAIT_READ, .on = {.kind = DESCRIPTOR_SOCKET, .socket.endless = true}};
	struct world w;

	init_readers(&w, &reads);
	assert_int_equal(find(&w, 2)->len, 0);
	assert_true(w.found.maybe_more && w.found.doubt == DOUBT_LIMITS);
	w.threads[1][0].still_besides = false; /* that is not all that is not known */
	assert_int_equal(find(&w, 2)->len, 0);
	assert_true(w.found.maybe_more && w.found.doubt == DOUBT_UNPROVED);
	w.threads[1][0].still_besides = true;
	w.traced[0][0].wait.on = &reads_for_ever;
	assert_int_equal(find(&w, 2)->len, 1);
	w.traced[0][0].wait.kind = WAIT_EVENTS;
	w.traced[0][0].wait.on = &polls;
	assert_int_equal(find(&w, 2)->len, 1);
	deadlocks_deinit(&w.found);
}

static bool only_calls_may_end_it(const struct world *w)
{
	return w->found.maybe_more && w->found.doubt == DOUBT_HANDLERS;
}

/* Two that are idle: each waits for events, which may be signals. That is how they are meant to be, and nothing to talk of. */
static void test_idle_pair(void **state)
{
	struct world w;

	init(&w, 1);
	wants_one_of(&w, 0, 0, ONE_OF(0, 1));
	wants_one_of(&w, 1, 0, ONE_OF(0));
	w.traced[0][0].wait.kind = WAIT_EVENTS;
	w.traced[1][0].wait.kind = WAIT_READ;
	w.threads[0][0].facts.has_async_handler = true;
	assert_int_equal(find(&w, 2)->len, 0);
	assert_false(w.found.maybe_more);
	w.traced[0][0].wait.kind = WAIT_WRITE;
	assert_int_equal(find(&w, 2)->len, 0);
	assert_true(only_calls_may_end_it(&w));
	deadlocks_deinit(&w.found);
}

/* Signals end waits, but not those for locks in memory. */
static void test_calls(void **state)
{
	struct world w;

	init(&w, 1);
	wants_one_of(&w, 0, 0, ONE_OF(1));
	wants_one_of(&w, 1, 0, ONE_OF(0));
	w.threads[0][0].facts.has_handler = true; /* by hand: mostly nobody will */
	assert_int_equal(find(&w, 2)->len, 1);
	w.threads[0][0].facts.has_async_handler = true;
	assert_int_equal(find(&w, 2)->len, 0);
	assert_true(only_calls_may_end_it(&w));
	w.traced[0][0].wait.kind = WAIT_VFORK;
	assert_int_equal(find(&w, 2)->len, 1);
	wants_lock(&w, 0, 0, 1, 0);
	assert_int_equal(find(&w, 2)->len, 0); /* in a handler somebody may act */
	assert_true(only_calls_may_end_it(&w));
	wants_lock(&w, 1, 0, 0, 0);
	w.threads[1][0].facts.has_async_handler = true;
	assert_int_equal(find(&w, 2)->len, 1);

	deadlocks_deinit(&w.found);
	init(&w, 1);
	wants_one_of(&w, 0, 0, ONE_OF(0)); /* itself */
	assert_int_equal(find(&w, 1)->len, 1);
	w.threads[0][0].facts.has_handler = true;
	assert_int_equal(find(&w, 1)->len, 0);
	w.threads[0][0].facts.has_async_handler = true;
	assert_int_equal(find(&w, 1)->len, 0);
	assert_false(w.found.maybe_more); /* it is there for that */
	deadlocks_deinit(&w.found);
}

/* Python runs handlers, which may raise exceptions, in its main thread also while that waits for a lock. */
static void test_handler_of_python(void **state)
{
	struct world w;

	init(&w, 3);
	wants_lock(&w, 0, 0, 0, 1);
	wants_lock(&w, 0, 1, 0, 0);
	w.traced[0][0].wait.kind = w.traced[0][1].wait.kind = WAIT_PYTHON_RLOCK;
	w.threads[0][0].facts.has_handler = w.threads[0][1].facts.has_handler = true;
	assert_int_equal(find(&w, 1)->len, 1);
	w.threads[0][0].facts.has_async_handler = w.threads[0][1].facts.has_async_handler = true;
	assert_int_equal(find(&w, 1)->len, 0);
	assert_true(only_calls_may_end_it(&w));
	w.threads[0][0].still_besides = w.threads[0][1].still_besides = false; /* as nothing was gathered */
	assert_int_equal(find(&w, 1)->len, 0);
	assert_true(only_calls_may_end_it(&w));
	w.traced[0][0].wait.kind = WAIT_GIL; /* which comes first */
	assert_int_equal(find(&w, 1)->len, 1);
	deadlocks_deinit(&w.found);

	init(&w, 3);
	wants_lock(&w, 0, 2, 0, 1);
	wants_lock(&w, 0, 1, 0, 2);
	w.traced[0][1].wait.kind = w.traced[0][2].wait.kind = WAIT_PYTHON_RLOCK;
	w.threads[0][1].facts.has_async_handler = w.threads[0][2].facts.has_async_handler = true;
	assert_int_equal(find(&w, 1)->len, 1); /* other threads run none */
	deadlocks_deinit(&w.found);
}

/* A handler may write what others wait for, though the thread that it runs in goes on to wait for a lock. */
static void test_handler_in_a_lock(void **state)
{
	struct world w;

	init(&w, 2);
	wants_one_of(&w, 0, 0, ONE_OF(1));
	wants_one_of(&w, 0, 1, ONE_OF(1));
	wants_lock(&w, 1, 0, 0, 0);
	wants_lock(&w, 1, 1, 0, 0);
	assert_int_equal(find(&w, 2)->len, 1);
	w.threads[1][1].facts.has_async_handler = true;
	assert_int_equal(find(&w, 2)->len, 0);
	assert_true(only_calls_may_end_it(&w));
	w.threads[1][1].status = THREAD_ZOMBIE;
	assert_int_equal(find(&w, 2)->len, 1);
	deadlocks_deinit(&w.found);
}

/* One thread that is free frees its process, and with it all who wait for that. */
static void test_every_thread(void **state)
{
	struct world w;

	init(&w, 2);
	wants_one_of(&w, 0, 0, ONE_OF(1));
	wants_one_of(&w, 0, 1, ONE_OF(1));
	wants_one_of(&w, 1, 0, ONE_OF(0));
	assert_int_equal(find(&w, 2)->len, 0); /* the second thread of the other process runs */
	wants_lock(&w, 1, 1, 1, 0);
	assert_int_equal(find(&w, 2)->len, 1);
	assert_int_equal(w.found.data[0].len, 4);
	w.traced[1][1].wait.timed = true;
	assert_int_equal(find(&w, 2)->len, 0);
	w.threads[1][1].status = THREAD_ZOMBIE; /* nor does a dead one act */
	assert_int_equal(find(&w, 2)->len, 1);
	assert_int_equal(w.found.data[0].len, 3);
	deadlocks_deinit(&w.found);
}

/* One of several that could end it is enough to do so. */
static void test_one_of_several(void **state)
{
	struct world w;

	init(&w, 1);
	wants_one_of(&w, 0, 0, ONE_OF(1, 2));
	wants_one_of(&w, 1, 0, ONE_OF(0));
	wants_one_of(&w, 2, 0, ONE_OF(3));
	assert_int_equal(find(&w, 4)->len, 0);
	wants_one_of(&w, 3, 0, ONE_OF(3, 0));
	assert_int_equal(find(&w, 4)->len, 1);
	assert_int_equal(w.found.data[0].len, 4);
	deadlocks_deinit(&w.found);
}

/* Two that have nothing to do with each other, and one that can only wait for one of them. */
static void test_components(void **state)
{
	struct world w;

	init(&w, 2);
	wants_lock(&w, 0, 0, 0, 1);
	wants_lock(&w, 0, 1, 0, 0);
	wants_one_of(&w, 1, 0, ONE_OF(2));
	wants_lock(&w, 1, 1, 1, 0);
	wants_one_of(&w, 2, 0, ONE_OF(1));
	wants_one_of(&w, 2, 1, ONE_OF(0)); /* which will never do anything */
	wants_one_of(&w, 3, 0, ONE_OF(0));
	assert_int_equal(find(&w, 4)->len, 2);
	assert_true(has(&w, 0, 0, 0) && has(&w, 0, 0, 1));
	assert_true(has(&w, 1, 1, 0) && has(&w, 1, 1, 1) && has(&w, 1, 2, 0));
	assert_null(deadlocks_with(&w.found, &w.traced[2][1])); /* it waits, but nobody waits for it in turn */
	assert_null(deadlocks_with(&w.found, &w.traced[3][0]));
	deadlocks_deinit(&w.found);
}

/* Locks alone are proved at the instant of the snapshot, whatever happens while other things are looked at. */
static void test_locks_need_no_more(void **state)
{
	struct world w;

	init(&w, 1);
	wants_lock(&w, 0, 0, 1, 0);
	wants_lock(&w, 1, 0, 0, 0);
	w.threads[1][0].still_besides = false;
	assert_int_equal(find(&w, 2)->len, 1);
	wants_one_of(&w, 0, 0, ONE_OF(1));
	assert_int_equal(find(&w, 2)->len, 0);
	deadlocks_deinit(&w.found);
}

/* Long chains are no deep recursion. */
static void test_many(void **state)
{
	enum { MANY = 200000 };
	struct snap_thread *threads = calloc(MANY, sizeof(*threads));
	struct trace_thread *traced = calloc(MANY, sizeof(*traced));
	struct snapshot snap = {.pid = 1};
	struct trace trace = {.snap = &snap, .threads = {.data = traced, .len = MANY}};
	const struct trace *all = &trace;
	struct deadlocks found = {0};

	assert_true(threads && traced);
	for (int i = 0; i < MANY; i++) {
		threads[i].tid = i + 1;
		traced[i] = (struct trace_thread){.snap = &snap, .thread = &threads[i]};
		traced[i].wait = (struct wait){.kind = WAIT_MUTEX, .holder = HOLDER_THREAD, .owner_pid = 1, .owner = (i + 1) % MANY + 1, .certain = true};
	}
	assert_true(deadlocks_find(&all, 1, &found));
	assert_int_equal(found.len, 1);
	assert_int_equal(found.data[0].len, MANY);
	deadlocks_deinit(&found);
	free(threads);
	free(traced);
}

/* Each of many that poll has all the others beside it: no look at all of them for each, which would take a minute. */
static void test_many_that_poll(void **state)
{
	enum { MANY = 200000 };
	struct snap_thread *threads = calloc(MANY, sizeof(*threads));
	struct trace_thread *traced = calloc(MANY, sizeof(*traced));
	struct snapshot snap = {.pid = 1, .threads = {.data = threads, .len = MANY}};
	struct trace trace = {.snap = &snap, .threads = {.data = traced, .len = MANY}};
	struct wait_peer itself = {.pid = 1};
	const struct trace *all = &trace;
	struct deadlocks found = {0};

	assert_true(threads && traced);
	for (int i = 0; i < MANY; i++) {
		threads[i] = (struct snap_thread){.tid = i + 1, .still_besides = true};
		traced[i] = (struct trace_thread){.snap = &snap, .thread = &threads[i]};
		traced[i].wait = (struct wait){.kind = WAIT_EVENTS, .peers = &itself, .npeers = 1, .peers_known = true, .certain = true};
	}
	assert_true(deadlocks_find(&all, 1, &found));
	assert_int_equal(found.len, 0);
	free(threads);
	free(traced);
}

/* Somebody else may have the other end, who could not be looked at. */
static void test_strangers(void **state)
{
	struct snap_wait reads = {.kind = WAIT_READ, .on = {.kind = DESCRIPTOR_PIPE}};
	struct world w;

	init_readers(&w, &reads);
	w.traced[0][0].wait.peers_known = false;
	assert_int_equal(find(&w, 2)->len, 0);
	assert_true(w.found.maybe_more && w.found.doubt == DOUBT_STRANGERS);
	assert_int_equal(find(&w, 1)->len, 0); /* the other one was not given */
	assert_false(w.found.maybe_more);
	reads.on.kind = DESCRIPTOR_FIFO; /* which anybody may open */
	assert_int_equal(find(&w, 2)->len, 0);
	assert_false(w.found.maybe_more);
	reads.on.kind = DESCRIPTOR_PIPE;
	w.threads[1][0].facts.has_async_handler = true;
	assert_int_equal(find(&w, 2)->len, 0);
	assert_true(w.found.maybe_more && w.found.doubt == DOUBT_BOTH);
	w.threads[1][0].facts.has_async_handler = false;
	reads.guessed = true;
	assert_int_equal(find(&w, 2)->len, 0);
	assert_false(w.found.maybe_more);
	deadlocks_deinit(&w.found);
}

/* Who has a lock was inferred: likely, unless all else is proved, and then it is told behind what is. */
static void test_likely(void **state)
{
	struct world w;

	init(&w, 4);
	wants_lock(&w, 0, 0, 0, 1);
	wants_lock(&w, 0, 1, 0, 0);
	w.traced[0][0].wait.holder = HOLDER_INFERRED;
	w.traced[0][0].wait.certain = false;
	wants_lock(&w, 0, 2, 0, 0); /* no part of it */
	assert_int_equal(find(&w, 1)->len, 1);
	assert_true(w.found.data[0].likely && deadlocks_has_likely(&w.found) && !deadlocks_has_proved(&w.found));
	assert_true(has(&w, 0, 0, 0) && has(&w, 0, 0, 1) && !has(&w, 0, 0, 2));
	assert_false(w.found.maybe_more);
	w.traced[0][0].wait.timed = true;
	assert_int_equal(find(&w, 1)->len, 0);
	assert_false(w.found.maybe_more);
	w.traced[0][0].wait.timed = false;
	w.threads[0][0].off_cpu_ns = 3000000; /* for a moment, as in healthy programs */
	assert_int_equal(find(&w, 1)->len, 0);
	assert_true(w.found.maybe_more && w.found.doubt == DOUBT_UNPROVED);
	w.threads[0][0].off_cpu_ns = INT64_C(3000000000);
	assert_int_equal(find(&w, 1)->len, 1);
	w.traced[0][0].wait.kind = WAIT_PYTHON_LOCK; /* of the main thread, which runs handlers meanwhile */
	w.threads[0][0].facts.has_async_handler = true;
	assert_int_equal(find(&w, 1)->len, 0);
	assert_true(w.found.maybe_more);
	assert_int_equal(w.found.doubt, DOUBT_HANDLERS);
	w.threads[0][0].facts.has_async_handler = false;
	w.traced[0][1].wait.certain = false; /* the other one was not proved */
	assert_int_equal(find(&w, 1)->len, 0);
	assert_true(w.found.maybe_more);
	assert_int_equal(w.found.doubt, DOUBT_UNPROVED);
	w.traced[0][1].wait.certain = true;
	wants_lock(&w, 1, 2, 1, 3);
	wants_lock(&w, 1, 3, 1, 2);
	assert_int_equal(find(&w, 2)->len, 2);
	assert_true(!w.found.data[0].likely && has(&w, 0, 1, 2));
	assert_true(w.found.data[1].likely && has(&w, 1, 0, 0));
	assert_false(w.found.maybe_more);
	deadlocks_deinit(&w.found);
}

/* The same where one of those waits for another process: likely, and another look would tell no more. */
static void test_likely_by_processes(void **state)
{
	struct world w;

	init(&w, 2);
	wants_one_of(&w, 0, 0, ONE_OF(1));
	wants_lock(&w, 0, 1, 0, 0);
	wants_one_of(&w, 1, 0, ONE_OF(0));
	wants_one_of(&w, 1, 1, ONE_OF(0));
	assert_int_equal(find(&w, 2)->len, 1);
	assert_false(w.found.data[0].likely);
	w.traced[0][1].wait.holder = HOLDER_INFERRED;
	w.traced[0][1].wait.certain = false;
	assert_int_equal(find(&w, 2)->len, 1);
	assert_true(w.found.data[0].likely && has(&w, 0, 0, 1) && has(&w, 0, 1, 0));
	assert_false(w.found.maybe_more);
	w.threads[1][0].still_besides = false;
	assert_int_equal(find(&w, 2)->len, 0);
	assert_true(w.found.maybe_more && w.found.doubt == DOUBT_UNPROVED);
	deadlocks_deinit(&w.found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_circle),		   cmocka_unit_test(test_itself),
		cmocka_unit_test(test_two_processes),	   cmocka_unit_test(test_every_thread),
		cmocka_unit_test(test_one_of_several),	   cmocka_unit_test(test_components),
		cmocka_unit_test(test_locks_need_no_more), cmocka_unit_test(test_many),
		cmocka_unit_test(test_helpers),
		cmocka_unit_test(test_sockets), cmocka_unit_test(test_calls),
		cmocka_unit_test(test_many_that_poll), cmocka_unit_test(test_handler_in_a_lock),
		cmocka_unit_test(test_handler_of_python), cmocka_unit_test(test_idle_pair), cmocka_unit_test(test_likely),
		cmocka_unit_test(test_likely_by_processes), cmocka_unit_test(test_strangers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
