/* SPDX-License-Identifier: MIT */
/* The reports of a watch: of a round, and of them all. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "full_once.h"
#include "report/watch.h"
#include "report/watch_words.h"
#include "sample.h"
#include "watch/rounds.h"

struct fixture {
	struct watch_log log;
	struct snapshot *snap;
	struct trace trace;
	struct deadlocks deadlocks, fresh;
	char *text;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_true(watch_init(&f->log));
	f->log.interval_ns = 1000000000;
	f->log.wanted = 3;
	f->snap = sample_snapshot();
	f->snap->taken_at_monotonic_ns = 0;
	sample_trace(&f->trace, f->snap);
	for (size_t i = 0; i < f->trace.threads.len; i++) { /* the sample has none; they are what is compared */
		struct raw_frame frame = {.pc = 0x1000 * (i + 1)};

		f->trace.threads.data[i].raw.len = 0;
		assert_true(vec_push(&f->trace.threads.data[i].raw, frame));
	}
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	watch_deinit(&f->log);
	trace_deinit(&f->trace);
	snapshot_destroy(f->snap);
	deadlocks_deinit(&f->deadlocks);
	vec_deinit(&f->fresh);
	free(f->text);
	free(f);
	return 0;
}

static struct snap_thread *thread(struct fixture *f, pid_t tid)
{
	for (size_t i = 0; i < f->snap->threads.len; i++)
		if (f->snap->threads.data[i].tid == tid)
			return &f->snap->threads.data[i];
	fail();
	return NULL;
}

static void look(struct fixture *f)
{
	char place[WATCH_PLACE];

	watch_begin_round(&f->log, (f->log.rounds + 1) * f->log.interval_ns);
	assert_true(watch_see(&f->log, &f->trace));
	for (size_t i = 0; i < f->log.threads.len; i++) {
		watch_name_place(f->log.threads.data[i].traced, place);
		watch_put_place(&f->log, &f->log.threads.data[i], *place ? place : NULL);
	}
}

typedef int (*report_fn)(const struct watch_report *report, const struct report_options *options, FILE *out);

static int write_to(struct fixture *f, report_fn fn, struct report_options options, FILE *out)
{
	const struct trace *traces[] = {&f->trace};
	const struct watch_report report = {.watch = &f->log, .traces = traces, .n = 1, .deadlocks = &f->deadlocks, .fresh = &f->fresh};

	return fn(&report, &options, out);
}

static const char *write(struct fixture *f, report_fn fn, struct report_options options)
{
	size_t len;
	FILE *out;

	free(f->text);
	out = open_memstream(&f->text, &len);
	assert_int_equal(write_to(f, fn, options, out), 0);
	fclose(out);
	return f->text;
}

static void expect(struct fixture *f, report_fn fn, const char *want)
{
	const char *text = write(f, fn, (struct report_options){0});

	if (!strstr(text, want))
		fail_msg("no %s in %s", want, text);
}

static void expect_not(struct fixture *f, report_fn fn, const char *unwanted)
{
	const char *text = write(f, fn, (struct report_options){0});

	if (strstr(text, unwanted))
		fail_msg("%s in %s", unwanted, text);
}

static void test_first_round(void **state)
{
	struct fixture *f = *state;

	look(f);
	expect(f, report_watch_round_text, "stakeout: watching server (pid 4711): 3 looks, one every 1.0 s; Ctrl-C ends it, with a summary\n");
	expect(f, report_watch_round_text, "    0.0 s  7 threads\n"); /* the eighth has ended */
	expect(f, report_watch_round_text, "tid 4715 hasher runs on CPU 0, in mix");
	f->log.wanted = 0;
	expect(f, report_watch_round_text, "stakeout: watching server (pid 4711): one every 1.0 s; Ctrl-C");
	f->log.wanted = 1;
	expect(f, report_watch_round_text, "stakeout: watching server (pid 4711): 1 look\n");
}

static void test_only_changes(void **state)
{
	struct fixture *f = *state;
	struct snap_thread *hasher = thread(f, 4715);

	hasher->cpu_ns = 0;
	look(f);
	hasher->cpu_ns = 980000000;
	thread(f, 4711)->nvcsw++;
	look(f);
	expect(f, report_watch_round_text, "    1.0 s  5 threads did not move, 1 came back to its place, 1 ran: 98 % CPU\n");
	expect(f, report_watch_round_text, "           tid 4715 hasher ran, 98 % CPU: in mix\n");
	expect(f, report_watch_round_text, "           tid 4711 server moved, and came back to where it was: in aeMain\n");
	expect_not(f, report_watch_round_text, "worker");
	hasher->cpu_ns += 980000000;
	thread(f, 4711)->nvcsw++;
	look(f);
	expect(f, report_watch_round_text, "    2.0 s  5 threads did not move, 1 came back to its place, 1 ran: 98 % CPU\n");
	expect_not(f, report_watch_round_text, "hasher");
	expect_not(f, report_watch_round_text, "server");
	f->log.skipped_now = 2;
	hasher->state = 'S';
	look(f);
	expect(f, report_watch_round_text, "none of 7 threads moved\n");
	expect(f, report_watch_round_text, "tid 4715 hasher did not move any more: in mix\n");
	expect(f, report_watch_round_text, "note: 2 looks were left out: their time was over before they could begin\n");
}

static void test_ends_and_failures(void **state)
{
	struct fixture *f = *state;

	look(f);
	thread(f, 4715)->status = THREAD_EXITED;
	look(f);
	expect(f, report_watch_round_text, "1 has ended");
	expect(f, report_watch_round_text, "           tid 4715 hasher has ended; last seen in mix\n");
	expect(f, report_watch_summary_text, "\nENDED: 1 thread\n  tid 4715 hasher, before look 2: seen once, last seen in mix\n");
	watch_begin_round(&f->log, 3 * f->log.interval_ns);
	assert_true(watch_miss(&f->log, SAMPLE_PID, false, "its map is refused"));
	expect(f, report_watch_round_text, "note: its map is refused\n");
	expect(f, report_watch_round_text, "    2.0 s  nothing could be seen\n");
	watch_begin_round(&f->log, 4 * f->log.interval_ns);
	assert_true(watch_miss(&f->log, SAMPLE_PID, true, "process 4711 has ended"));
	expect(f, report_watch_round_text, "           server (pid 4711) has ended\n");
	expect(f, report_watch_summary_text, "; 1 look failed\n");
	expect(f, report_watch_summary_text, "\nserver (pid 4711) has ended\n");
}

/* Names of threads are the target's, and so may be what a board has of places. */
static void test_hostile_names(void **state)
{
	struct fixture *f = *state;

	look(f);
	look(f);
	for (size_t i = 0; i < f->log.threads.len; i++)
		f->log.threads.data[i].verdict = WATCH_BUSY;
	watch_put_place(&f->log, &f->log.threads.data[0], "\033[2Jgone");
	expect_not(f, report_watch_round_text, "\033");
	expect_not(f, report_watch_summary_text, "\033");
	expect(f, report_watch_summary_text, "\\x1b[2Jgone");
	expect_not(f, report_watch_summary_json, "\033");
}

static void test_summary(void **state)
{
	struct fixture *f = *state;
	struct trace_thread *stuck = NULL;

	for (size_t i = 0; i < f->trace.threads.len; i++)
		if (f->trace.threads.data[i].thread->tid == 4713)
			stuck = &f->trace.threads.data[i];
	assert_non_null(stuck);
	stuck->wait = (struct wait){.kind = WAIT_MUTEX, .address = 0x1234, .holder = HOLDER_THREAD, .owner = 4715, .owner_pid = SAMPLE_PID};
	thread(f, 4715)->cpu_ns = 0;
	for (int i = 0; i < 4; i++) {
		thread(f, 4715)->cpu_ns += 980000000;
		thread(f, 4711)->nvcsw++;
		if (i < 2)
			thread(f, 4712)->nvcsw++;
		look(f);
	}
	expect(f, report_watch_summary_text, "\nSUMMARY: 4 looks in 3.0 s: 7 threads\n");
	expect(f, report_watch_summary_text,
	       "\nSTUCK: 2 threads are blocked, and did not move at all in 3.0 s\n  tid 4713 worker waits for mutex 0x1234, held by tid 4715 hasher, which runs\n");
	expect(f, report_watch_summary_text, "  tid 4716 disk is"); /* the kernel does not let it go */
	expect(f, report_watch_summary_text, "\nDID NOT MOVE: 2 threads waited all the time");
	expect(f, report_watch_summary_text, "\nSTOPPED MOVING: 1 thread moved at first, but not in the last looks\n  tid 4712 worker has not moved for 2.0 s; it is in");
	expect(f, report_watch_summary_text, "\nBACK IN THE SAME PLACE: 1 thread moved, but each look found it in the same place");
	expect(f, report_watch_summary_text, "    in aeMain\n");
	expect(f, report_watch_summary_text, ", moved in 3 of 3 intervals\n");
	expect(f, report_watch_summary_text, "\nBUSY: 1 thread ran\n  tid 4715 hasher: 98 % CPU, seen in mix (4 of 4 looks)\n");
	expect(f, report_watch_summary_text, "\nNo deadlock was found.\n");
	f->deadlocks.maybe_more = true;
	expect(f, report_watch_summary_text, "\nSome threads seem to wait for each other");
}

/* Of a runtime's process its own threads are of less interest, however many they are. */
static void test_programs_first(void **state)
{
	struct fixture *f = *state;
	struct trace_thread *t = &f->trace.threads.data[3];

	f->trace.threads.data[1].raw.data[0].pc = f->trace.threads.data[2].raw.data[0].pc;
	look(f);
	look(f);
	assert_true(strstr(write(f, report_watch_summary_text, (struct report_options){0}), "2 threads are in futex") < strstr(f->text, "tid 4714 "));
	t->user = &sample_sleep;
	look(f);
	assert_true(strstr(write(f, report_watch_summary_text, (struct report_options){0}), "tid 4714 ") < strstr(f->text, "2 threads are in futex"));
	assert_non_null(strstr(f->text, "    in Worker.run\n"));
}

static void test_deadlock(void **state)
{
	struct fixture *f = *state;
	struct deadlock d = {0};

	for (size_t i = 1; i < 3; i++) {
		struct trace_thread *t = &f->trace.threads.data[i];

		t->wait = (struct wait){.kind = WAIT_MUTEX, .address = i, .holder = HOLDER_THREAD, .owner = SAMPLE_PID + 3 - (pid_t)i, .owner_pid = SAMPLE_PID};
		assert_true(vec_push(&d, t));
	}
	assert_true(vec_push(&f->deadlocks, d));
	look(f);
	look(f);
	expect_not(f, report_watch_round_text, "DEADLOCK"); /* it was told before */
	expect(f, report_watch_summary_text, "\nDEADLOCK: 2 threads wait for each other\n  tid 4712 worker waits for mutex 0x1, held by tid 4713 worker\n");
	expect_not(f, report_watch_summary_text, "No deadlock");
	expect_not(f, report_watch_summary_text, "STUCK: 3"); /* they are told once */
	assert_true(vec_push(&f->fresh, d));
	expect(f, report_watch_round_text, "\nDEADLOCK: 2 threads wait for each other\n");
	expect(f, report_watch_round_json, "\"deadlocks\":[[{\"pid\":4711,\"tid\":4712},{\"pid\":4711,\"tid\":4713}]]");
}

static void test_json(void **state)
{
	struct fixture *f = *state;

	thread(f, 4715)->cpu_ns = 0;
	look(f);
	thread(f, 4715)->cpu_ns = 123400000;
	look(f);
	expect(f, report_watch_round_json, "{\"schema\":\"stakeout.watch/1\",\"type\":\"round\",\"round\":2,\"elapsed_ns\":1000000000,\"skipped_looks\":0,");
	expect(f, report_watch_round_json,
	       "{\"pid\":4711,\"tid\":4715,\"name\":\"hasher\",\"state\":\"R\",\"step\":\"ran\",\"cpu_percent\":12.340,\"place\":\"mix\",\"changed\":true}");
	expect(f, report_watch_round_json, "\"step\":\"still\",\"cpu_percent\":null,\"place\":\"__futex_abstimed_wait_common\",\"changed\":false}");
	expect(f, report_watch_summary_json, "\"verdict\":\"busy\",\"looks\":2,\"born_in_round\":1,\"ended_in_round\":null,\"steps\":{\"still\":0,\"returned\":0,\"ran\":1}");
	expect(f, report_watch_summary_json, "\"places\":[{\"function\":\"mix\",\"looks\":2}],\"other_looks\":0,\"waits_for\":null,\"stack\":");
	write(f, report_watch_summary_json, (struct report_options){0});
	assert_ptr_equal(strchr(f->text, '\n'), f->text + strlen(f->text) - 1); /* one line */
}

static void test_no_room(void **state)
{
	static const report_fn all[] = {report_watch_round_text, report_watch_summary_text, report_watch_round_json, report_watch_summary_json};
	struct fixture *f = *state;

	look(f);
	look(f);
	for (size_t i = 0; i < 4; i++) {
		FILE *full = fopen("/dev/full", "w");

		assert_non_null(full);
		assert_int_equal(write_to(f, all[i], (struct report_options){0}, full), -ENOSPC);
		fclose(full);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_first_round, setup, teardown),
		cmocka_unit_test_setup_teardown(test_only_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ends_and_failures, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_summary, setup, teardown),
		cmocka_unit_test_setup_teardown(test_programs_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deadlock, setup, teardown),
		cmocka_unit_test_setup_teardown(test_json, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_room, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
