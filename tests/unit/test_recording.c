/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "offcpu/record/recording.h"

enum { NAPS = 20, NAP_US = 3000 };

static int to_child[2], from_child[2];
/* Naps that something else has made longer: the thread may have slept for less, or not at all, when its time was over. */
static unsigned *disturbed;

static void say(int fd)
{
	if (write(fd, "x", 1) != 1)
		_exit(1);
}

static void hear(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		_exit(1);
}

static void __attribute__((noinline)) naps_here(void)
{
	for (int i = 0; i < NAPS; i++) {
		struct timespec t = ns_to_timespec((uint64_t)NAP_US * 1000);
		uint64_t start = monotonic_ns();
		struct rusage before, after;

		getrusage(RUSAGE_THREAD, &before);
		while (nanosleep(&t, &t) < 0 && errno == EINTR)
			;
		getrusage(RUSAGE_THREAD, &after);
		*disturbed += after.ru_nivcsw != before.ru_nivcsw || after.ru_nvcsw != before.ru_nvcsw + 1 ||
			      monotonic_ns() - start > (uint64_t)NAP_US * 1500;
	}
	__asm__ volatile(""); /* no tail call: the function stays on the stack */
}

/* At each word: naps in a child of its own, which has ended when the answer comes. */
static void body(void)
{
	for (;;) {
		pid_t pid;

		hear(to_child[0]);
		pid = fork();
		if (!pid) {
			naps_here();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		say(from_child[1]);
	}
}

static struct recording_options the_options(const pid_t *pid, bool events)
{
	return (struct recording_options){
		.watch =
			{
				.pids = pid,
				.npids = 1,
				.by_thread = true,
				.children = true,
				.kernel_stacks = true,
				.user_stacks = true,
				.filter = {.min_ns = 1000000, .max_ns = UINT64_MAX, .sleeping = true},
			},
		.events = events,
	};
}

static struct recording *start(const struct recording_options *options, pid_t pid)
{
	struct recording *recording = NULL;
	struct err err = {0};
	int rc = recording_start(options, &err, &recording);

	if (rc == -EPERM || rc == -EACCES || rc == -ENOSYS || rc == -ENOENT) {
		print_message("skipped: %s\n", err.msg);
		child_end(pid);
		skip();
	}
	if (rc < 0)
		fail_msg("%s", err.msg);
	return recording;
}

static bool has_frame(const struct stack *stack, const char *name)
{
	for (size_t i = 0; stack && i < stack->len; i++)
		if (stack->data[i].symbol && strcmp(stack->data[i].symbol, name) == 0)
			return true;
	return false;
}

static pid_t start_child(void)
{
	assert_int_equal(pipe(to_child), 0);
	assert_int_equal(pipe(from_child), 0);
	*disturbed = 0;
	return child_start(body);
}

static void finish(struct recording *recording, pid_t pid)
{
	watch_destroy(recording_watch(recording));
	child_end(pid);
	for (int i = 0; i < 2; i++) {
		close(to_child[i]);
		close(from_child[i]);
	}
}

/* The naps of processes that came and went in the recording, all with whole stacks and names. */
static void test_children_that_have_ended(void **state)
{
	enum { CHILDREN = 5 };
	pid_t pid = start_child();
	const struct recording_options options = the_options(&pid, false);
	struct recording *recording = start(&options, pid);
	struct offcpu_profile profile = {0};
	uint64_t naps = 0;

	for (int i = 0; i < CHILDREN; i++) {
		say(to_child[1]);
		hear(from_child[0]);
	}
	assert_int_equal(recording_watch(recording)->ops->finish(recording_watch(recording), NULL, &profile), 0);
	for (size_t i = 0; i < profile.rows.len; i++) {
		const struct offcpu_row *row = &profile.rows.data[i];

		if (!has_frame(row->user, "naps_here"))
			continue;
		naps += row->sum.count;
		assert_true(*disturbed || row->sum.min_ns >= NAP_US * 500);
		assert_null(row->user_error);
		assert_int_not_equal(row->pid, pid);
	}
	assert_in_range(naps, CHILDREN * NAPS - *disturbed, CHILDREN * NAPS);
	assert_true(recording_watch(recording)->ops->progress(recording_watch(recording)).waits >= naps);
	assert_int_equal(recording_watch(recording)->ops->progress(recording_watch(recording)).lost, 0);
	offcpu_profile_deinit(&profile);
	finish(recording, pid);
}

struct nap_count {
	unsigned naps;
	int64_t last_end_ns;
};

static void take(void *arg, const struct offcpu_event *event)
{
	struct nap_count *count = arg;
	int64_t end_ns = event->time_ns + (int64_t)event->duration_ns;

	if (!has_frame(event->what->user, "naps_here"))
		return;
	assert_true(end_ns > count->last_end_ns);
	count->last_end_ns = end_ns;
	count->naps++;
}

/* Each wait once, in the order of their ends. */
static void test_events(void **state)
{
	pid_t pid = start_child();
	const struct recording_options options = the_options(&pid, true);
	struct recording *recording = start(&options, pid);
	struct nap_count count = {0};
	unsigned naps;

	say(to_child[1]);
	hear(from_child[0]);
	assert_true(recording_take_events(recording, take, &count));
	say(to_child[1]);
	hear(from_child[0]);
	recording_watch(recording)->ops->stop(recording_watch(recording));
	assert_true(recording_take_events(recording, take, &count));
	naps = count.naps;
	assert_in_range(naps, 2 * NAPS - *disturbed, 2 * NAPS);
	assert_true(recording_take_events(recording, take, &count));
	assert_int_equal(count.naps, naps);
	finish(recording, pid);
}

/* A recording that nobody finishes leaves nothing behind. */
static void test_destroyed_early(void **state)
{
	pid_t pid = start_child();
	const struct recording_options options = the_options(&pid, true);
	struct recording *recording = start(&options, pid);

	say(to_child[1]);
	hear(from_child[0]);
	finish(recording, pid);
	watch_destroy(NULL);
}

/* Whether a process is there is for the caller to see; here it may end at any time. */
static void test_process_that_has_ended(void **state)
{
	pid_t pid = start_child();
	const struct recording_options options = the_options(&pid, false);
	struct recording *recording = start(&options, pid); /* or it skips */
	struct offcpu_profile profile;
	struct err err = {0};

	finish(recording, pid);
	assert_int_equal(recording_start(&options, &err, &recording), 0);
	assert_int_equal(recording_watch(recording)->ops->finish(recording_watch(recording), &err, &profile), 0);
	assert_int_equal(profile.total.count, 0);
	assert_int_equal(profile.notes.len, 1);
	offcpu_profile_deinit(&profile);
	watch_destroy(recording_watch(recording));
}

static bool has_note(const struct offcpu_profile *profile, const char *word)
{
	for (size_t i = 0; i < profile->notes.len; i++)
		if (strstr(profile->notes.data[i], word))
			return true;
	return false;
}

static uint64_t loss(const struct offcpu_profile *profile, const char *name)
{
	for (size_t i = 0; i < profile->losses.len; i++)
		if (strcmp(profile->losses.data[i].name, name) == 0)
			return profile->losses.data[i].count;
	fail_msg("there is no %s", name);
	return 0;
}

/* A process that BPF does not show: here a thread of the kernel, which none of it watches. */
static void test_hidden_process(void **state)
{
	const pid_t kthreadd = 2;
	char comm[16] = "";
	int fd = open("/proc/2/comm", O_RDONLY | O_CLOEXEC);
	pid_t pids[] = {0, kthreadd};
	struct recording_options options = the_options(pids, false);
	struct recording *recording = NULL;
	struct offcpu_profile profile = {0};
	struct err err = {0};

	if (fd < 0 || read(fd, comm, sizeof(comm) - 1) < 0 || strcmp(comm, "kthreadd\n") != 0)
		skip();
	close(fd);
	pids[0] = start_child();
	options.watch.npids = 2;
	recording = start(&options, pids[0]);
	assert_int_equal(recording_watch(recording)->ops->finish(recording_watch(recording), NULL, &profile), 0);
	assert_true(has_note(&profile, "waits of one process may be missing: BPF's task iterator does not list process 2"));
	assert_int_equal(loss(&profile, "reads_failed"), 1);
	offcpu_profile_deinit(&profile);
	finish(recording, pids[0]);

	recording = NULL;
	options = the_options(&kthreadd, false);
	assert_int_equal(recording_start(&options, &err, &recording), -ENOENT);
	assert_string_equal(err.msg, "BPF's task iterator does not list process 2");
	assert_null(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children_that_have_ended),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_destroyed_early),
		cmocka_unit_test(test_process_that_has_ended),
		cmocka_unit_test(test_hidden_process),
	};

	disturbed = mmap(NULL, sizeof(*disturbed), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (disturbed == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
