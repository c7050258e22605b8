/* SPDX-License-Identifier: MIT */
#include "child.h"
#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "stakeout.h"

/* ThreadSanitizer has a thread of its own in each process. */
#ifdef __SANITIZE_THREAD__
enum { CHILD_THREADS = 2 };
#else
enum { CHILD_THREADS = 1 };
#endif

static struct stakeout *create(void)
{
	struct stakeout *stakeout;

	assert_int_equal(stakeout_create(NULL, &stakeout), 0);
	return stakeout;
}

static struct stakeout_snapshot *take(struct stakeout *stakeout, pid_t pid, uint64_t flags)
{
	const struct stakeout_snapshot_options options = {.size = sizeof(options), .flags = flags};
	struct stakeout_snapshot *snapshot;

	if (stakeout_snapshot_take(stakeout, pid, &options, &snapshot) < 0)
		fail_msg("%s", stakeout_error(stakeout));
	return snapshot;
}

static struct stakeout_thread thread_of(const struct stakeout_snapshot *snapshot, size_t process, size_t index)
{
	struct stakeout_thread thread = {.size = sizeof(thread)};

	assert_int_equal(stakeout_snapshot_thread(snapshot, process, index, &thread), 0);
	return thread;
}

static struct stakeout_process process_of(const struct stakeout_snapshot *snapshot, size_t index)
{
	struct stakeout_process process = {.size = sizeof(process)};

	assert_int_equal(stakeout_snapshot_process(snapshot, index, &process), 0);
	return process;
}

static struct stakeout_frame frame_of(const struct stakeout_stack *stack, size_t index)
{
	struct stakeout_frame frame = {.size = sizeof(frame)};

	assert_int_equal(stakeout_stack_frame(stack, index, &frame), 0);
	return frame;
}

static bool has_function(const struct stakeout_stack *stack, const char *name)
{
	for (size_t i = 0; i < stakeout_stack_depth(stack); i++) {
		const char *function = frame_of(stack, i).function;

		if (function && strcmp(function, name) == 0)
			return true;
	}
	return false;
}

/* Programs that were built with an older header, or with a newer one. */
static void test_sizes_of_options(void **state)
{
	struct {
		struct stakeout_options known;
		uint64_t later;
	} newer = {.known = {.size = sizeof(newer)}};
	struct {
		size_t size;
		uint64_t flags;
	} older = {.size = sizeof(older), .flags = STAKEOUT_NO_DEMANGLE};
	struct stakeout *stakeout;

	assert_int_equal(stakeout_create((const struct stakeout_options *)&older, &stakeout), 0);
	stakeout_free(stakeout);
	assert_int_equal(stakeout_create(&newer.known, &stakeout), 0);
	stakeout_free(stakeout);
	newer.later = 1;
	assert_int_equal(stakeout_create(&newer.known, &stakeout), -E2BIG);
	assert_null(stakeout);
	older.size = 4;
	assert_int_equal(stakeout_create((const struct stakeout_options *)&older, &stakeout), -EINVAL);
	older.size = sizeof(older);
	older.flags = UINT64_C(1) << 63;
	assert_int_equal(stakeout_create((const struct stakeout_options *)&older, &stakeout), -EINVAL);
	stakeout_free(NULL);
}

static void test_sizes_of_results(void **state)
{
	struct {
		struct stakeout_process known;
		uint64_t later;
	} newer = {.known = {.size = sizeof(newer)}, .later = 77};
	struct {
		size_t size;
		pid_t pid;
		int beyond;
	} older = {.size = offsetof(struct stakeout_process, complete), .beyond = 77};
	pid_t pid = child_start(child_sleeps);
	struct stakeout *stakeout = create();
	struct stakeout_snapshot *snapshot = take(stakeout, pid, 0);

	assert_int_equal(stakeout_snapshot_process(snapshot, 0, &newer.known), 0);
	assert_int_equal(newer.known.size, sizeof(newer));
	assert_int_equal(newer.known.pid, pid);
	assert_int_equal(newer.known.nthreads, CHILD_THREADS);
	assert_int_equal(newer.later, 0);
	assert_int_equal(stakeout_snapshot_process(snapshot, 0, (struct stakeout_process *)&older), 0);
	assert_int_equal(older.pid, pid);
	assert_int_equal(older.beyond, 77);
	older.size = 0;
	assert_int_equal(stakeout_snapshot_process(snapshot, 0, (struct stakeout_process *)&older), -EINVAL);
	stakeout_snapshot_free(snapshot);
	stakeout_free(stakeout);
	child_end(pid);
}

/* The child may not have come to sleep yet when it is looked at. */
static struct stakeout_snapshot *take_in(struct stakeout *stakeout, pid_t pid, uint64_t flags, const char *function)
{
	struct stakeout_snapshot *snapshot = take(stakeout, pid, flags);

	while (!has_function(thread_of(snapshot, 0, 0).user, function)) {
		stakeout_snapshot_free(snapshot);
		snapshot = take(stakeout, pid, flags);
	}
	return snapshot;
}

static void test_snapshot(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct stakeout *stakeout = create();
	struct stakeout_snapshot *snapshot = take_in(stakeout, pid, 0, "child_sleeps");
	struct stakeout_process process = process_of(snapshot, 0);
	struct stakeout_thread thread = thread_of(snapshot, 0, 0);
	struct stakeout_frame frame = frame_of(thread.user, 0);

	assert_int_equal(stakeout_snapshot_processes(snapshot), 1);
	assert_int_equal(process.pid, pid);
	assert_true(process.complete);
	assert_string_equal(process.name, "test_library");
	assert_non_null(process.exe);
	assert_non_null(process.method);
	assert_true(process.time_ns > 0);
	for (size_t i = 0; i < process.nnotes; i++)
		assert_non_null(stakeout_snapshot_note(snapshot, 0, i));
	assert_null(stakeout_snapshot_note(snapshot, 0, process.nnotes));
	assert_null(stakeout_snapshot_note(snapshot, 1, 0));
	assert_int_equal(thread.tid, pid);
	assert_string_equal(thread.status, "captured");
	assert_string_equal(thread.end, "complete");
	assert_true(thread.complete);
	assert_null(thread.problem);
	assert_string_equal(frame.kind, "native");
	assert_non_null(frame.module);
	assert_false(frame.flags & (STAKEOUT_FRAME_RETURN_ADDRESS | STAKEOUT_FRAME_INLINED));
	assert_true(frame_of(thread.user, stakeout_stack_depth(thread.user) - 1).flags & STAKEOUT_FRAME_RETURN_ADDRESS);
	assert_int_equal(stakeout_stack_frame(thread.user, stakeout_stack_depth(thread.user), &frame), -ERANGE);
	assert_int_equal(stakeout_snapshot_thread(snapshot, 0, CHILD_THREADS, &thread), -ERANGE);
	assert_int_equal(stakeout_snapshot_thread(snapshot, 1, 0, &thread), -ERANGE);
	assert_int_equal(stakeout_snapshot_process(snapshot, 1, &process), -ERANGE);
	assert_int_equal(stakeout_stack_depth(NULL), 0);
	child_end(pid); /* the snapshot stays, and so does what the handle had */
	stakeout_free(stakeout);
	assert_true(has_function(thread_of(snapshot, 0, 0).user, "child_sleeps"));
	stakeout_snapshot_free(snapshot);
}

static void test_who_runs_is_held(void **state)
{
	pid_t pid = child_start(child_spins);
	struct stakeout *stakeout = create();
	struct stakeout_snapshot *snapshot = take_in(stakeout, pid, STAKEOUT_STOP_ALL, "child_spins");
	struct stakeout_process process = process_of(snapshot, 0);

	assert_true(thread_of(snapshot, 0, 0).held);
	assert_int_equal(process.nheld, CHILD_THREADS);
	assert_true(process.max_held_ns > 0);
	stakeout_snapshot_free(snapshot);
	stakeout_free(stakeout);
	child_end(pid);
}

/* Only who has a CPU just then: on a busy machine that may take some looks. */
static void test_only_who_runs_is_held(void **state)
{
	pid_t pid = child_start(child_spins);
	struct stakeout *stakeout = create();
	size_t held = 0;

	for (int i = 0; i < 5000 && !held; i++) {
		struct stakeout_snapshot *snapshot = take(stakeout, pid, STAKEOUT_STOP_HOLD | STAKEOUT_NO_NAMES);

		held = process_of(snapshot, 0).nheld;
		stakeout_snapshot_free(snapshot);
	}
	assert_int_equal(held, 1);
	stakeout_free(stakeout);
	child_end(pid);
}

/* Unwinding alone gives the same places. */
static void test_without_names(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct stakeout *stakeout = create();
	struct stakeout_snapshot *named = take_in(stakeout, pid, STAKEOUT_NO_KERNEL, "child_sleeps");
	struct stakeout_snapshot *bare = take(stakeout, pid, STAKEOUT_NO_NAMES);
	struct stakeout_thread thread = thread_of(bare, 0, 0), other = thread_of(named, 0, 0);
	size_t at = 0;

	assert_null(thread.kernel);
	assert_null(other.kernel);
	assert_true(thread.complete);
	assert_true(stakeout_stack_depth(thread.user) > 2);
	for (size_t i = 0; i < stakeout_stack_depth(other.user); i++) {
		struct stakeout_frame frame = frame_of(other.user, i), raw;

		if (frame.flags & STAKEOUT_FRAME_INLINED)
			continue;
		raw = frame_of(thread.user, at++);
		assert_int_equal(raw.pc, frame.pc);
		assert_null(raw.function);
		assert_string_equal(raw.kind, "native");
	}
	assert_int_equal(at, stakeout_stack_depth(thread.user));
	stakeout_snapshot_free(bare);
	stakeout_snapshot_free(named);
	stakeout_free(stakeout);
	child_end(pid);
}

static pid_t *grandchild; /* shared */

static void have_a_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		*grandchild = getpid();
	}
	child_sleeps();
}

static void *share(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static void test_children(void **state)
{
	struct stakeout *stakeout = create();
	struct stakeout_snapshot *snapshot;
	pid_t pid;

	grandchild = share(sizeof(*grandchild));
	pid = child_start(have_a_child);
	while (!*(volatile pid_t *)grandchild)
		usleep(1000);
	snapshot = take(stakeout, pid, STAKEOUT_CHILDREN);
	assert_int_equal(stakeout_snapshot_processes(snapshot), 2);
	assert_int_equal(process_of(snapshot, 0).pid, pid);
	assert_int_equal(process_of(snapshot, 1).pid, *grandchild);
	assert_int_equal(thread_of(snapshot, 1, 0).tid, *grandchild);
	stakeout_snapshot_free(snapshot);
	stakeout_free(stakeout);
	child_end(pid);
	munmap(grandchild, sizeof(*grandchild));
}

static void test_errors(void **state)
{
	struct stakeout_snapshot_options options = {.size = sizeof(options)};
	struct stakeout *stakeout = create();
	struct stakeout_snapshot *snapshot;
	struct stakeout_symbols *symbols;
	struct stakeout_waits *waits;
	pid_t pid = child_start(child_sleeps), none[] = {0x3fffffff};

	assert_string_equal(stakeout_error(stakeout), "");
	assert_int_equal(stakeout_snapshot_take(stakeout, none[0], NULL, &snapshot), -ESRCH);
	assert_null(snapshot);
	assert_non_null(strstr(stakeout_error(stakeout), "1073741823"));
	options.flags = STAKEOUT_STOP_ALL | STAKEOUT_STOP_NONE;
	assert_int_equal(stakeout_snapshot_take(stakeout, pid, &options, &snapshot), -EINVAL);
	options.flags = STAKEOUT_STOP_HOLD | STAKEOUT_STOP_NONE;
	assert_int_equal(stakeout_snapshot_take(stakeout, pid, &options, &snapshot), -EINVAL);
	options.flags = STAKEOUT_RAW | STAKEOUT_NO_RUNTIMES;
	assert_int_equal(stakeout_snapshot_take(stakeout, pid, &options, &snapshot), -EINVAL);
	options = (struct stakeout_snapshot_options){
		.size = sizeof(options), .flags = STAKEOUT_CHILDREN, .tids = &pid, .ntids = 1};
	assert_int_equal(stakeout_snapshot_take(stakeout, pid, &options, &snapshot), -EINVAL);
	assert_true(stakeout_error(stakeout)[0]);
	options.flags = 0;
	assert_int_equal(stakeout_snapshot_take(stakeout, pid, &options, &snapshot), 0);
	assert_string_equal(stakeout_error(stakeout), "");
	stakeout_snapshot_free(snapshot);
	assert_int_equal(stakeout_symbols_of_file(stakeout, "/nonexistent", &symbols), -ENOENT);
	assert_int_equal(stakeout_symbols_of_build_id(stakeout, "xyz", &symbols), -EINVAL);
	assert_int_equal(stakeout_symbols_of_build_id(stakeout, "0123456789ABCDEF", &symbols), -ENOENT);
	assert_null(symbols);
	assert_int_equal(stakeout_waits_start(stakeout, none, 1, NULL, &waits), -ESRCH);
	assert_null(waits);
	stakeout_snapshot_free(NULL);
	stakeout_symbols_free(NULL);
	stakeout_waits_free(NULL);
	stakeout_free(stakeout);
	child_end(pid);
}

/* What a handle cannot have is in the notes of what is made with it. */
static void test_notes(void **state)
{
	const struct stakeout_options options = {
		.size = sizeof(options),
		.flags = STAKEOUT_CACHE | STAKEOUT_DEBUGINFOD,
		.cache_dir = "/proc/nowhere",
	};
	pid_t pid = child_start(child_sleeps);
	struct stakeout_snapshot *snapshot;
	unsigned found = 0;
	struct stakeout *stakeout;
	const char *note;

	unsetenv("DEBUGINFOD_URLS");
	assert_int_equal(stakeout_create(&options, &stakeout), 0);
	snapshot = take(stakeout, pid, 0);
	for (size_t i = 0; (note = stakeout_snapshot_note(snapshot, 0, i)); i++)
		found += strstr(note, "no cache: ") || strstr(note, "debuginfod is not asked: ");
	assert_int_equal(found, 2);
	stakeout_snapshot_free(snapshot);
	stakeout_free(stakeout);
	child_end(pid);
}

/* What sudo leaves in the environment tells the program whom it works for; a program that uses the library is itself. */
static void test_stays_who_it_is(void **state)
{
	const struct stakeout_options options = {.size = sizeof(options), .flags = STAKEOUT_CACHE};
	struct stakeout *stakeout;
	struct scratch scratch;
	char path[300];
	struct stat st;

	scratch_init(&scratch);
	setenv("XDG_CACHE_HOME", scratch.dir, 1);
	setenv("SUDO_UID", "65534", 1);
	setenv("SUDO_GID", "65534", 1);
	assert_int_equal(stakeout_create(&options, &stakeout), 0);
	stakeout_free(stakeout);
	snprintf(path, sizeof(path), "%s/stakeout", scratch.dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	unsetenv("XDG_CACHE_HOME");
	scratch_deinit(&scratch);
}

/* Addresses of this process, as it sees them, and of its file. */
static void test_symbols(void **state)
{
	uint64_t addresses[] = {(uintptr_t)child_sleeps, (uintptr_t)test_errors, 1, (uintptr_t)test_errors};
	struct stakeout *stakeout = create();
	struct stakeout_symbols *of_process, *of_file;
	const struct stakeout_stack *stacks[4], *again;
	struct stakeout_frame frame;

	assert_int_equal(stakeout_symbols_of_process(stakeout, getpid(), &of_process), 0);
	assert_int_equal(stakeout_symbols_find(of_process, addresses, 4, stacks), 0);
	assert_true(has_function(stacks[0], "child_sleeps"));
	assert_true(has_function(stacks[1], "test_errors"));
	assert_ptr_equal(stacks[3], stacks[1]);
	assert_int_equal(stakeout_stack_depth(stacks[2]), 1);
	assert_null(frame_of(stacks[2], 0).function);
	frame = frame_of(stacks[1], stakeout_stack_depth(stacks[1]) - 1);
	assert_true(frame.flags & STAKEOUT_FRAME_HAS_OFFSET);
	assert_int_equal(frame.function_offset, 0);
	assert_non_null(strstr(frame.file, "test_library.c"));
	assert_true(frame.line > 0);
	assert_int_equal(stakeout_symbols_of_file(stakeout, "/proc/self/exe", &of_file), 0);
	assert_int_equal(stakeout_symbols_find(of_file, &frame.module_offset, 1, &again), 0);
	assert_true(has_function(again, "test_errors"));
	stakeout_free(stakeout);
	assert_int_equal(stakeout_symbols_find(of_file, &frame.module_offset, 1, &again), 0);
	stakeout_symbols_free(of_file);
	stakeout_symbols_free(of_process);
}

static _Atomic unsigned *naps; /* shared */

static __attribute__((noinline)) void nap(void)
{
	const struct timespec moment = {.tv_nsec = 3 * 1000 * 1000};

	nanosleep(&moment, NULL);
	atomic_fetch_add(naps, 1);
}

static void naps_often(void)
{
	for (;;)
		nap();
}

static struct stakeout_waits *start_waits(struct stakeout *stakeout, pid_t pid, uint64_t flags)
{
	const struct stakeout_waits_options options = {.size = sizeof(options), .flags = flags};
	struct stakeout_waits *waits;

	if (stakeout_waits_start(stakeout, &pid, 1, &options, &waits) < 0)
		fail_msg("%s", stakeout_error(stakeout));
	return waits;
}

static void test_waits(void **state)
{
	struct stakeout_waits_summary summary = {.size = sizeof(summary)};
	struct stakeout_wait wait = {.size = sizeof(wait)};
	struct stakeout *stakeout = create();
	struct stakeout_waits *waits;
	uint64_t total = 0;
	unsigned before;
	pid_t pid;

	naps = share(sizeof(*naps));
	pid = child_start(naps_often);
	waits = start_waits(stakeout, pid, STAKEOUT_WAITS_WAKERS);
	before = atomic_load(naps);
	while (atomic_load(naps) < before + 20)
		assert_int_equal(stakeout_waits_sleep(waits, 1000 * 1000), 0);
	assert_int_equal(stakeout_waits_stop(waits), 0);
	assert_int_equal(stakeout_waits_stop(waits), -EALREADY);
	stakeout_free(stakeout);
	assert_int_equal(stakeout_waits_summary(waits, &summary), 0);
	assert_non_null(summary.method);
	assert_true(summary.duration_ns > 0 && summary.start_ns > 0);
	for (size_t i = 0; i < summary.nnotes; i++)
		assert_non_null(stakeout_waits_note(waits, i));
	assert_null(stakeout_waits_note(waits, summary.nnotes));
	if (!summary.estimate) /* which may see nothing at all */
		assert_true(summary.count >= 20);
	for (size_t i = 0; i < summary.nwaits; i++) {
		assert_int_equal(stakeout_waits_wait(waits, i, &wait), 0);
		assert_int_equal(wait.pid, pid);
		assert_true(wait.count > 0 && wait.total_ns >= wait.max_ns && wait.max_ns >= wait.min_ns);
		total += wait.total_ns;
		if (wait.tid == pid && wait.state == 'S' && !wait.user_problem)
			assert_true(has_function(wait.user, "nap"));
	}
	assert_int_equal(total, summary.total_ns);
	assert_int_equal(stakeout_waits_wait(waits, summary.nwaits, &wait), -ERANGE);
	stakeout_waits_free(waits);
	child_end(pid);
	munmap(naps, sizeof(*naps));
}

static void test_waits_end_with_the_process(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct stakeout *stakeout = create();
	struct stakeout_waits *waits = start_waits(stakeout, pid, STAKEOUT_WAITS_NO_KERNEL);

	child_end(pid);
	assert_int_equal(stakeout_waits_sleep(waits, UINT64_MAX), 1);
	stakeout_waits_free(waits); /* without a stop */
	stakeout_free(stakeout);
}

static struct stakeout *to_interrupt;

static void interrupt(int sig)
{
	stakeout_interrupt(to_interrupt);
}

static void test_interrupt(void **state)
{
	const struct itimerval often = {.it_interval = {.tv_usec = 10000}, .it_value = {.tv_usec = 10000}}, never = {0};
	const struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
	pid_t pid = child_start(child_sleeps);
	struct stakeout *stakeout = to_interrupt = create();
	struct stakeout_waits *waits = start_waits(stakeout, pid, 0);
	struct sigaction before;

	sigaction(SIGALRM, &action, &before);
	setitimer(ITIMER_REAL, &often, NULL);
	assert_int_equal(stakeout_waits_sleep(waits, UINT64_MAX), -EINTR);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
	assert_int_equal(stakeout_waits_sleep(waits, 1000), 0); /* it was for that call only */
	assert_int_equal(stakeout_waits_stop(waits), 0);
	stakeout_waits_free(waits);
	stakeout_free(stakeout);
	child_end(pid);
}

/* What nobody else can see of our own threads that run is said, and nothing hangs. */
static void test_own_process(void **state)
{
	struct stakeout *stakeout = create();
	struct stakeout_snapshot *snapshot = take(stakeout, getpid(), 0);
	bool found = false;

	for (size_t i = 0; i < process_of(snapshot, 0).nthreads; i++)
		found |= thread_of(snapshot, 0, i).tid == getpid();
	assert_true(found);
	stakeout_snapshot_free(snapshot);
	stakeout_free(stakeout);
}

/* What a process has that a library might leave behind. */
struct belongings {
	size_t fds;
	size_t threads;
	struct sigaction actions[64];
	sigset_t mask;
};

static size_t count_entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static void look_at_belongings(struct belongings *out)
{
	memset(out, 0, sizeof(*out));
	out->fds = count_entries("/proc/self/fd");
	out->threads = count_entries("/proc/self/task");
	for (int sig = 1; sig < 64; sig++)
		sigaction(sig, NULL, &out->actions[sig]);
	pthread_sigmask(SIG_SETMASK, NULL, &out->mask);
}

static void assert_nothing_left(const struct belongings *before)
{
	struct belongings after;

	look_at_belongings(&after);
	assert_int_equal(after.fds, before->fds);
	assert_int_equal(after.threads, before->threads);
	for (int sig = 1; sig < 64; sig++) {
		assert_ptr_equal(after.actions[sig].sa_handler, before->actions[sig].sa_handler);
		assert_int_equal(sigismember(&after.mask, sig), sigismember(&before->mask, sig));
	}
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void on_signal(int sig)
{
}

static void use_all(void)
{
	struct stakeout *stakeout = create();
	pid_t asleep = child_start(child_sleeps), busy = child_start(child_spins);
	struct stakeout_snapshot *first = take(stakeout, asleep, 0), *second = take(stakeout, busy, 0);
	struct stakeout_waits *waits = start_waits(stakeout, asleep, 0), *unstopped = start_waits(stakeout, busy, 0);
	const struct stakeout_stack *stack;
	struct stakeout_symbols *symbols;
	uint64_t address = (uintptr_t)use_all;

	assert_int_equal(stakeout_symbols_of_process(stakeout, asleep, &symbols), 0);
	assert_int_equal(stakeout_symbols_find(symbols, &address, 1, &stack), 0);
	assert_true(has_function(stack, "use_all"));
	assert_int_equal(stakeout_waits_stop(waits), 0);
	stakeout_free(stakeout);
	stakeout_snapshot_free(second);
	stakeout_waits_free(waits);
	stakeout_symbols_free(symbols);
	stakeout_waits_free(unstopped);
	stakeout_snapshot_free(first);
	child_end(asleep);
	child_end(busy);
}

static void test_nothing_is_left(void **state)
{
	const int ours[] = {SIGBUS, SIGCHLD, SIGALRM, 55};
	struct sigaction defaults[4];
	struct belongings before;

	for (int i = 0; i < 4; i++) {
		const struct sigaction action = {.sa_handler = on_signal};

		sigaction(ours[i], &action, &defaults[i]);
	}
	look_at_belongings(&before);
	use_all();
	assert_nothing_left(&before);
	for (int i = 0; i < 4; i++)
		sigaction(ours[i], &defaults[i], NULL);
}

enum { THREADS = 8, ROUNDS = 2 };

struct crowd {
	pid_t pids[2];
	const struct stakeout_snapshot *shared; /* read by all */
	const char *functions[2];
};

static const char *look(struct stakeout *stakeout, pid_t pid, const char *function)
{
	struct stakeout_thread thread = {.size = sizeof(thread)};
	struct stakeout_snapshot *snapshot;
	const char *wrong = NULL;

	if (stakeout_snapshot_take(stakeout, pid, NULL, &snapshot) < 0)
		return stakeout_error(stakeout);
	if (stakeout_snapshot_thread(snapshot, 0, 0, &thread) < 0)
		wrong = "no thread";
	else if (strcmp(thread.status, "captured") == 0 && !has_function(thread.user, function))
		wrong = "another stack";
	stakeout_snapshot_free(snapshot);
	return wrong;
}

/* NULL, or what went wrong: in another thread cmocka cannot fail. */
static void *be_one_of_many(void *arg)
{
	const struct crowd *crowd = arg;
	uint64_t address = (uintptr_t)be_one_of_many;
	static _Thread_local char wrong[400];
	const struct stakeout_stack *stack;
	struct stakeout_symbols *symbols;
	const char *problem = NULL;
	struct stakeout *stakeout;

	if (stakeout_create(NULL, &stakeout) < 0)
		return "cannot be created";
	for (int i = 0; !problem && i < 2 * ROUNDS; i++)
		problem = look(stakeout, crowd->pids[i % 2], crowd->functions[i % 2]);
	if (!problem && !has_function(thread_of(crowd->shared, 0, 0).user, crowd->functions[0]))
		problem = "another shared stack";
	if (!problem && stakeout_symbols_of_process(stakeout, getpid(), &symbols) == 0) {
		if (stakeout_symbols_find(symbols, &address, 1, &stack) < 0 || !has_function(stack, "be_one_of_many"))
			problem = "another name";
		stakeout_symbols_free(symbols);
	}
	if (problem)
		snprintf(wrong, sizeof(wrong), "%s", problem);
	stakeout_free(stakeout);
	return problem ? strdup(wrong) : NULL;
}

static void test_many_threads(void **state)
{
	struct crowd crowd = {.functions = {"child_sleeps", "child_spins"}};
	pthread_t threads[THREADS];
	struct stakeout *stakeout;
	struct belongings before;
	char *wrong;

	look_at_belongings(&before);
	crowd.pids[0] = child_start(child_sleeps);
	crowd.pids[1] = child_start(child_spins);
	stakeout = create();
	stakeout_snapshot_free(take_in(stakeout, crowd.pids[1], 0, "child_spins"));
	crowd.shared = take_in(stakeout, crowd.pids[0], 0, "child_sleeps");
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, be_one_of_many, &crowd), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], (void **)&wrong);
		if (wrong)
			fail_msg("%s", wrong);
	}
	child_end(crowd.pids[0]);
	child_end(crowd.pids[1]);
	stakeout_free(stakeout);
	stakeout_snapshot_free((struct stakeout_snapshot *)crowd.shared);
	assert_nothing_left(&before);
}

static void *do_nothing(void *arg)
{
	return arg;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_left), /* first: there is nothing yet */
		cmocka_unit_test(test_sizes_of_options),
		cmocka_unit_test(test_sizes_of_results),
		cmocka_unit_test(test_snapshot),
		cmocka_unit_test(test_who_runs_is_held),
		cmocka_unit_test(test_only_who_runs_is_held),
		cmocka_unit_test(test_without_names),
		cmocka_unit_test(test_children),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_stays_who_it_is),
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_waits_end_with_the_process),
		cmocka_unit_test(test_interrupt),
		cmocka_unit_test(test_own_process),
		cmocka_unit_test(test_many_threads),
	};
	pthread_t thread;

	if (pthread_create(&thread, NULL, do_nothing, NULL) == 0) /* ThreadSanitizer's own begins with the first */
		pthread_join(thread, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
