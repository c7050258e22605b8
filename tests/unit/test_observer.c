/* SPDX-License-Identifier: MIT */
/* Both observers of a pass, by the same tests. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "capture/observer.h"
#include "proc/task.h"

enum { PATIENCE_MS = 5000 };

typedef int (*create_fn)(const struct process *process, struct err *err, struct observer **out);

struct fixture {
	pid_t pid;
	struct process process;
	struct observer *observer;
	struct arena *arena;
	struct observations seen;
};

static void finish(struct fixture *f)
{
	if (f->observer)
		f->observer->destroy(f->observer);
	child_end(f->pid);
	process_close(&f->process);
	vec_deinit(&f->seen);
	arena_destroy(f->arena);
}

static void start(struct fixture *f, create_fn create, void (*body)(void))
{
	struct err err = {0};

	*f = (struct fixture){.pid = child_start(body), .arena = arena_create()};
	assert_int_equal(process_open(f->pid, NULL, &f->process), 0);
	if (create(&f->process, &err, &f->observer) < 0) {
		assert_true(err.code && err.msg[0]);
		print_message("skipped: %s\n", err.msg);
		finish(f);
		skip();
	}
}

static int pass(struct fixture *f, struct observe_request request)
{
	request.arena = f->arena;
	return f->observer->observe(f->observer, &request, NULL, &f->seen);
}

static const struct observation *find(const struct fixture *f, const char *name)
{
	for (size_t i = 0; i < f->seen.len; i++)
		if (strcmp(f->seen.data[i].name, name) == 0)
			return &f->seen.data[i];
	return NULL;
}

/* Passes until a thread of that name is in the state; what was seen is in f->seen. */
static const struct observation *wait_for(struct fixture *f, struct observe_request request, const char *name, char state)
{
	for (int i = 0; i < PATIENCE_MS; i++, usleep(1000)) {
		const struct observation *o;

		assert_int_equal(pass(f, request), 0);
		o = find(f, name);
		if (o && o->state == state)
			return o;
	}
	fail_msg("no thread %s in state %c", name, state);
	return NULL;
}

static void *spins(void *arg)
{
	prctl(PR_SET_NAME, "spins");
	child_spins();
	return NULL;
}

static void sleeps_and_spins(void)
{
	pthread_t thread;

	prctl(PR_SET_NAME, "sleeps");
	pthread_create(&thread, NULL, spins, NULL);
	child_sleeps();
}

static void check_sleeper(const struct fixture *f, const struct observation *o)
{
	const struct arch *arch = arch_host();
	uint64_t pc_and_sp = UINT64_C(1) << arch->user_pc | UINT64_C(1) << arch->user_sp;

	assert_int_equal(o->tid, f->pid);
	assert_false(o->running);
	assert_false(o->kernel_worker);
	assert_int_equal(o->regs_error, 0);
	assert_int_equal(o->regs.valid & pc_and_sp, pc_and_sp);
	assert_int_equal(o->syscall.state, SYSCALL_IN);
#ifdef SYS_pause
	assert_int_equal(o->syscall.nr, SYS_pause);
#else
	assert_int_equal(o->syscall.nr, SYS_ppoll);
#endif
	assert_true(o->nvcsw > 0);
}

/* Whoever has a CPU has no registers to show; BPF knows who only waits for one. */
static void check_spinner(const struct fixture *f, const struct observation *o)
{
	if (o->running) {
		assert_int_equal(o->regs.valid, 0);
		assert_int_equal(o->syscall.state, SYSCALL_UNKNOWN);
		assert_int_equal(o->off_cpu_ns, -1);
	} else {
		assert_string_equal(f->observer->name, "bpf");
		assert_true(o->regs.valid >> arch_host()->user_sp & 1);
		assert_int_not_equal(o->syscall.state, SYSCALL_UNKNOWN);
	}
}

static void check_states(create_fn create)
{
	const struct observation *o;
	struct fixture f;

	start(&f, create, sleeps_and_spins);
	o = wait_for(&f, (struct observe_request){0}, "spins", 'R');
	assert_int_not_equal(o->tid, f.pid);
	check_spinner(&f, o);
	for (int i = 0; i < 20; i++)
		check_spinner(&f, wait_for(&f, (struct observe_request){0}, "spins", 'R'));

	check_sleeper(&f, wait_for(&f, (struct observe_request){0}, "sleeps", 'S'));
	assert_int_equal(f.seen.len, 2);
	assert_int_equal(find(&f, "sleeps")->nkernel, 0); /* it was not asked for */
	assert_int_not_equal(f.seen.generation, 0);
	finish(&f);
}

static void check_kernel_stack(create_fn create)
{
	const struct observation *o;
	struct fixture f;

	start(&f, create, child_sleeps);
	o = wait_for(&f, (struct observe_request){.kernel_stacks = true}, program_invocation_short_name, 'S');
	if (o->kernel_error) {
		assert_int_equal(o->nkernel, 0);
		assert_null(o->kernel_text);
		print_message("skipped: the kernel stack is refused: %s\n", strerror(-o->kernel_error));
		finish(&f);
		skip();
	}
	assert_true(o->nkernel >= 2);
	assert_true(o->kernel_pcs || o->kernel_text);
	for (unsigned i = 0; i < o->nkernel; i++) {
		if (o->kernel_pcs)
			assert_true(o->kernel_pcs[i] >> 63);
		else
			assert_non_null(strstr(o->kernel_text[i], "+0x"));
	}
	finish(&f);
}

static void check_requests(create_fn create)
{
	struct fixture f;
	uint64_t nvcsw;

	start(&f, create, sleeps_and_spins);
	wait_for(&f, (struct observe_request){0}, "spins", 'R');
	nvcsw = wait_for(&f, (struct observe_request){0}, "sleeps", 'S')->nvcsw;

	assert_int_equal(pass(&f, (struct observe_request){.only_tid = f.pid, .kernel_stacks = true}), 0);
	assert_int_equal(f.seen.len, 1);
	check_sleeper(&f, &f.seen.data[0]);

	assert_int_equal(pass(&f, (struct observe_request){.counters_only = true}), 0);
	assert_int_equal(f.seen.len, 2);
	assert_int_equal(find(&f, "sleeps")->state, 'S');
	assert_false(find(&f, "sleeps")->running);
	assert_int_equal(find(&f, "sleeps")->nvcsw, nvcsw);
	assert_int_equal(find(&f, "sleeps")->regs.valid, 0);
	assert_int_equal(find(&f, "sleeps")->syscall.state, SYSCALL_UNKNOWN);
	assert_int_equal(find(&f, "sleeps")->nkernel, 0);
	assert_int_equal(find(&f, "spins")->state, 'R');

	/* A thread that is another process's is none of this one's: the test's own. */
	assert_int_equal(pass(&f, (struct observe_request){.only_tid = getpid()}), 0);
	assert_int_equal(f.seen.len, 0);
	finish(&f);
}

/* A thread that was woken and fell asleep again shows other counters. */
static void check_counters(create_fn create)
{
	const struct observe_request counters = {.counters_only = true};
	struct observation before, same, after;
	struct fixture f;

	start(&f, create, child_sleeps);
	before = *wait_for(&f, counters, program_invocation_short_name, 'S');
	same = *wait_for(&f, counters, program_invocation_short_name, 'S');
	assert_int_equal(same.nvcsw, before.nvcsw);
	assert_int_equal(same.nivcsw, before.nivcsw);
	assert_int_equal(same.runs, before.runs);
	assert_int_equal(kill(f.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(f.pid, NULL, WUNTRACED), f.pid);
	assert_int_equal(kill(f.pid, SIGCONT), 0);
	after = *wait_for(&f, counters, program_invocation_short_name, 'S');
	assert_true(after.nvcsw + after.nivcsw > before.nvcsw + before.nivcsw);
	assert_int_equal(after.has_runs, before.has_runs);
	if (after.has_runs)
		assert_true(after.runs > before.runs);
	finish(&f);
}

static int go[2];

/* Executes another program when told to. */
static void waits_and_executes(void)
{
	char byte;

	if (read(go[0], &byte, 1) == 1)
		execlp("sleep", "sleep", "1000", NULL);
	_exit(1);
}

static void check_generation(create_fn create)
{
	struct fixture f;
	uint64_t before;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	start(&f, create, waits_and_executes);
	wait_for(&f, (struct observe_request){0}, program_invocation_short_name, 'S');
	before = f.seen.generation;
	assert_int_not_equal(before, 0);
	wait_for(&f, (struct observe_request){.counters_only = true}, program_invocation_short_name, 'S');
	assert_int_equal(f.seen.generation, before);
	assert_int_equal(write(go[1], "g", 1), 1);
	wait_for(&f, (struct observe_request){0}, "sleep", 'S');
	assert_int_not_equal(f.seen.generation, 0);
	assert_int_not_equal(f.seen.generation, before);
	finish(&f);
	close(go[0]);
	close(go[1]);
}

static void check_gone(create_fn create)
{
	struct observe_request all = {0}, one = {0};
	struct err err = {0};
	struct fixture f;

	start(&f, create, child_sleeps);
	one.only_tid = f.pid;
	kill(f.pid, SIGKILL);
	waitpid(f.pid, NULL, 0);
	assert_int_equal(f.observer->observe(f.observer, &all, &err, &f.seen), -ESRCH);
	assert_int_equal(err.code, ESRCH);
	assert_true(err.msg[0]);
	assert_int_equal(f.observer->observe(f.observer, &one, &err, &f.seen), 0);
	assert_int_equal(f.seen.len, 0);
	finish(&f);
}

static void check_zombie(create_fn create)
{
	const struct observation *o;
	struct fixture f;

	start(&f, create, child_sleeps);
	kill(f.pid, SIGKILL);
	o = wait_for(&f, (struct observe_request){.kernel_stacks = true}, program_invocation_short_name, 'Z');
	assert_true(state_is_dead(o->state));
	assert_false(o->running);
	assert_int_equal(o->nkernel, 0);
	finish(&f);
}

/* Threads that were created at other times have other starts, and those do not change. */
static void check_starts(create_fn create)
{
	const struct timespec ticks = {.tv_nsec = 50 * 1000 * 1000}; /* /proc counts in hundredths of a second */
	struct fixture f, later;
	uint64_t start_of_first;

	start(&f, create, child_sleeps);
	start_of_first = wait_for(&f, (struct observe_request){0}, program_invocation_short_name, 'S')->start;
	assert_true(start_of_first);
	assert_int_equal(wait_for(&f, (struct observe_request){0}, program_invocation_short_name, 'S')->start, start_of_first);
	nanosleep(&ticks, NULL);
	start(&later, create, child_sleeps);
	assert_true(wait_for(&later, (struct observe_request){0}, program_invocation_short_name, 'S')->start > start_of_first);
	finish(&later);
	finish(&f);
}

/* What both tell of one thread is the same. */
static void test_agree(void **state)
{
	const struct arch *arch = arch_host();
	struct observation by_bpf, by_proc;
	struct observer *bpf;
	struct fixture f;

	start(&f, observer_bpf_create, sleeps_and_spins);
	bpf = f.observer;
	wait_for(&f, (struct observe_request){0}, "spins", 'R');
	by_bpf = *wait_for(&f, (struct observe_request){0}, "sleeps", 'S');
	assert_int_equal(observer_proc_create(&f.process, NULL, &f.observer), 0);
	by_proc = *wait_for(&f, (struct observe_request){0}, "sleeps", 'S');
	assert_int_equal(f.seen.len, 2);
	assert_non_null(find(&f, "spins"));
	assert_int_equal(by_bpf.tid, by_proc.tid);
	assert_int_equal(by_bpf.nvcsw, by_proc.nvcsw);
	assert_int_equal(by_bpf.nivcsw, by_proc.nivcsw);
	if (by_bpf.has_runs && by_proc.has_runs)
		assert_int_equal(by_bpf.runs, by_proc.runs);
	if (by_proc.has_runs)
		assert_int_equal(by_bpf.cpu_ns, by_proc.cpu_ns);
	assert_true(by_bpf.start && by_proc.start); /* each by its own clock */
	assert_int_equal(by_bpf.syscall.nr, by_proc.syscall.nr);
	assert_memory_equal(by_bpf.syscall.args, by_proc.syscall.args, sizeof(by_bpf.syscall.args));
	for (unsigned i = 0; i < arch->nuser_regs; i++)
		if (by_proc.regs.valid >> i & 1)
			assert_int_equal(by_bpf.regs.v[i], by_proc.regs.v[i]);
	/* Only the one knows these: all registers, how long it has slept, its alternate stack. */
	assert_true(by_bpf.regs.valid & ~by_proc.regs.valid);
	assert_false(by_proc.regs.valid & ~by_bpf.regs.valid);
	assert_true(by_bpf.altstack.known);
	assert_int_equal(by_proc.off_cpu_ns, -1);
	assert_false(by_proc.altstack.known);
	bpf->destroy(bpf);
	finish(&f);
}

#define EACH(name)                                                                                                     \
	static void test_##name##_bpf(void **state)                                                                    \
	{                                                                                                              \
		check_##name(observer_bpf_create);                                                                       \
	}                                                                                                              \
	static void test_##name##_libbpf(void **state)                                                                 \
	{                                                                                                              \
		check_##name(observer_libbpf_create);                                                                    \
	}                                                                                                              \
	static void test_##name##_proc(void **state)                                                                   \
	{                                                                                                              \
		check_##name(observer_proc_create);                                                                      \
	}

EACH(states)
EACH(kernel_stack)
EACH(requests)
EACH(counters)
EACH(generation)
EACH(gone)
EACH(zombie)
EACH(starts)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_starts_bpf),
		cmocka_unit_test(test_starts_libbpf),
		cmocka_unit_test(test_starts_proc),
		cmocka_unit_test(test_states_bpf),
		cmocka_unit_test(test_states_libbpf),
		cmocka_unit_test(test_states_proc),
		cmocka_unit_test(test_kernel_stack_bpf),
		cmocka_unit_test(test_kernel_stack_libbpf),
		cmocka_unit_test(test_kernel_stack_proc),
		cmocka_unit_test(test_requests_bpf),
		cmocka_unit_test(test_requests_libbpf),
		cmocka_unit_test(test_requests_proc),
		cmocka_unit_test(test_counters_bpf),
		cmocka_unit_test(test_counters_libbpf),
		cmocka_unit_test(test_counters_proc),
		cmocka_unit_test(test_generation_bpf),
		cmocka_unit_test(test_generation_libbpf),
		cmocka_unit_test(test_generation_proc),
		cmocka_unit_test(test_gone_bpf),
		cmocka_unit_test(test_gone_libbpf),
		cmocka_unit_test(test_gone_proc),
		cmocka_unit_test(test_zombie_bpf),
		cmocka_unit_test(test_zombie_libbpf),
		cmocka_unit_test(test_zombie_proc),
		cmocka_unit_test(test_agree),
	};

	return cmocka_run_group_tests_name("observer", tests, NULL, NULL);
}
