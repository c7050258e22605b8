/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "capture/freeze.h"
#include "proc/task.h"

enum { THREADS = 3, BUFFER = 1 << 20, PATIENCE_MS = 5000 };

#define MARK UINT64_C(0x5ca1ab1e00c0ffee)

/* What the child tells: shared memory, made anew for each test. */
struct report {
	volatile uint64_t turns[THREADS]; /* of each thread's loop */
	volatile uint64_t mark_at;        /* a word of the main thread's stack that is MARK */
	volatile uint64_t sent, received, lost;
};

static struct report *told;

struct fixture {
	pid_t pid;
	struct process *process;
	struct memory vm;
	struct arena *arena;
	struct maps maps;
	struct held_list list;
	uint8_t *buffer;
};

/* Ends the test as skipped, with its reason, unless this user may trace its own children. */
static void needs_ptrace(void)
{
	pid_t pid = child_start(child_sleeps);
	bool may = ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;

	child_end(pid);
	if (!may) {
		print_message("skipped: this user may not trace its own child\n");
		skip();
	}
}

static struct fixture start(void (*body)(void))
{
	static struct process process; /* stays where it is, for the memory */
	struct fixture f = {0};

	needs_ptrace();
	f.arena = arena_create();
	f.buffer = calloc(1, BUFFER);
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(told != MAP_FAILED);
	f.pid = child_start(body);
	assert_int_equal(process_open(f.pid, NULL, &process), 0);
	f.process = &process;
	memory_init(&f.vm, &process, false);
	return f;
}

static void finish(struct fixture *f)
{
	child_end(f->pid);
	memory_deinit(&f->vm);
	process_close(f->process);
	vec_deinit(&f->maps);
	vec_deinit(&f->list);
	arena_destroy(f->arena);
	free(f->buffer);
	munmap(told, sizeof(*told));
}

/* Waits until the number has risen above `than`. */
static void wait_above(const volatile uint64_t *number, uint64_t than)
{
	for (int i = 0; i < PATIENCE_MS && *number <= than; i++)
		usleep(1000);
	assert_true(*number > than);
}

static void wait_for_state(const struct fixture *f, char want)
{
	char state = 0;

	for (int i = 0; i < PATIENCE_MS && state != want; i++, usleep(1000))
		assert_int_equal(task_state(f->process, f->pid, &state), 0);
	assert_int_equal(state, want);
}

static struct freeze_request request_for(struct fixture *f)
{
	f->maps.len = 0;
	assert_int_equal(process_maps(f->process, f->arena, NULL, &f->maps), 0);
	return (struct freeze_request){
		.process = f->process,
		.arch = arch_host(),
		.maps = &f->maps,
		.vm = &f->vm,
		.stack_size = BUFFER,
		.buffer = {.data = f->buffer, .size = BUFFER},
		.wait_ns = UINT64_C(5000000000),
	};
}

static struct held_thread *freeze_one(struct fixture *f, const struct freeze_request *request, struct held_thread want)
{
	f->list.len = 0;
	assert_true(vec_push(&f->list, want));
	assert_int_equal(freeze_threads(request, NULL, &f->list), 0);
	return &f->list.data[0];
}

static struct held_thread *freeze_main_thread(struct fixture *f, const struct freeze_request *request)
{
	return freeze_one(f, request, (struct held_thread){.tid = f->pid});
}

/* Nothing is left of the hold: the child is nobody's tracee. A thread that was joined may still be on its way out. */
static void assert_let_go(const struct fixture *f)
{
	struct task_status status;

	for (int i = 0; i < PATIENCE_MS; i++, usleep(1000)) {
		assert_int_equal(task_status(f->process, f->pid, &status), 0);
		if (!status.tracer)
			break;
	}
	assert_int_equal(status.tracer, 0);
}

static __attribute__((noinline)) void *spin_thread(void *arg)
{
	volatile uint64_t *turns = arg;

	for (;;)
		*turns = *turns + 1;
	return NULL;
}

/* The mark must lie on the stack that sp points into, where a sanitizer does not leave all locals. */
static __attribute__((noinline, no_sanitize("address"))) void spin_with_mark(void)
{
	volatile uint64_t mark = MARK;

	told->mark_at = (uintptr_t)&mark;
	spin_thread((void *)&told->turns[0]);
}

static void test_spinner(void **state)
{
	struct fixture f = start(spin_with_mark);
	struct freeze_request request = request_for(&f);
	const struct arch *arch = arch_host();
	const struct map_entry *map;
	const struct held_thread *h;
	uint64_t mark, turns;

	wait_above(&told->turns[0], 0);
	h = freeze_main_thread(&f, &request);
	turns = told->turns[0];
	assert_int_equal(h->result, HELD_STOPPED);
	assert_false(h->seized);
	assert_true(h->pause_ns > 0);
	assert_int_equal(h->signal, 0);
	assert_int_equal(h->regs.valid, (UINT64_C(1) << arch->nuser_regs) - 1);
	map = maps_find(&f.maps, h->regs.v[arch->user_pc]);
	assert_non_null(map);
	assert_true(map->perms & MAP_PERM_EXEC);

	assert_int_equal(h->stack.start, h->regs.v[arch->user_sp]);
	assert_int_equal(h->stack.start + h->stack.len, h->stack.region_end);
	assert_int_equal(h->stack.region_end, maps_find(&f.maps, h->stack.start)->end);
	assert_in_range(told->mark_at, h->stack.start, h->stack.start + h->stack.len - 8);
	memcpy(&mark, h->stack.data + (told->mark_at - h->stack.start), 8);
	assert_int_equal(mark, MARK);
	assert_int_equal(h->interrupted.len, 0);
	wait_above(&told->turns[0], turns);
	assert_let_go(&f);
	finish(&f);
}

/* What limits a copy: --stack-size, the next thread's stack, the room in the buffer. */
static void test_extent_of_the_copy(void **state)
{
	struct fixture f = start(spin_with_mark);
	struct freeze_request request = request_for(&f);
	const struct held_thread *h;
	uint64_t sp, end;

	wait_above(&told->turns[0], 0);
	request.stack_size = 256;
	h = freeze_main_thread(&f, &request);
	sp = h->stack.start;
	end = maps_find(&f.maps, sp)->end;
	assert_int_equal(h->stack.len, 256);
	assert_int_equal(h->stack.region_end, end);

	request.stack_size = BUFFER;
	h = freeze_one(&f, &request, (struct held_thread){.tid = f.pid, .stack_end = sp + 512});
	assert_int_equal(h->stack.start, sp); /* the loop does not move it */
	assert_int_equal(h->stack.len, 512);
	assert_int_equal(h->stack.region_end, sp + 512);
	h = freeze_one(&f, &request, (struct held_thread){.tid = f.pid, .stack_end = sp - 512}); /* below: not its neighbour */
	assert_int_equal(h->stack.region_end, end);
	h = freeze_one(&f, &request, (struct held_thread){.tid = f.pid, .stack_end = end + 4096});
	assert_int_equal(h->stack.region_end, end);

	request.buffer.size = 100;
	h = freeze_main_thread(&f, &request);
	assert_int_equal(h->stack.len, 100);
	assert_int_equal(h->stack.region_end, end);
	f.maps.len = 0; /* sp in no mapping */
	h = freeze_main_thread(&f, &request);
	assert_int_equal(h->result, HELD_STOPPED);
	assert_int_equal(h->stack.len, 0);
	finish(&f);
}

static void spin_in_threads(void)
{
	pthread_t thread;

	for (int i = 1; i < THREADS; i++)
		pthread_create(&thread, NULL, spin_thread, (void *)&told->turns[i]);
	spin_thread((void *)&told->turns[0]);
}

/* Listed or not, all threads are held together; their copies do not overlap; all of them run on. */
static void test_whole_process(void **state)
{
	struct fixture f = start(spin_in_threads);
	struct freeze_request request;
	uint64_t turns[THREADS], used = 0;

	for (int i = 0; i < THREADS; i++)
		wait_above(&told->turns[i], 0);
	request = request_for(&f);
	request.whole_process = true;
	request.stack_size = 4096;
	freeze_main_thread(&f, &request);
	for (int i = 0; i < THREADS; i++)
		turns[i] = told->turns[i];
	assert_int_equal(f.list.len, THREADS);
	for (int i = 0; i < THREADS; i++) {
		const struct held_thread *h = &f.list.data[i];

		assert_int_equal(h->result, HELD_STOPPED);
		assert_true(h->pause_ns > 0);
		assert_int_equal(h->stack.start, h->regs.v[arch_host()->user_sp]);
		assert_in_range(h->stack.len, 1, 4096);
		assert_true(h->stack.data >= f.buffer + used);
		used = (uint64_t)(h->stack.data - f.buffer) + h->stack.len;
		for (int j = 0; j < i; j++) {
			assert_int_not_equal(h->tid, f.list.data[j].tid);
			assert_int_not_equal(h->stack.start, f.list.data[j].stack.start);
			/* No one was let go before the last had stopped. */
			assert_true(f.list.data[j].asked_ns <= h->asked_ns + h->pause_ns);
		}
	}
	for (int i = 0; i < THREADS; i++)
		wait_above(&told->turns[i], turns[i]);
	assert_let_go(&f);
	finish(&f);
}

static void test_looks_before_it_interrupts(void **state)
{
	struct fixture f = start(child_sleeps);
	struct freeze_request request = request_for(&f);
	struct task_status before, after;
	const struct held_thread *h;

	wait_for_state(&f, 'S');
	assert_int_equal(task_status(f.process, f.pid, &before), 0);
	request.look_first = true;
	h = freeze_main_thread(&f, &request);
	assert_int_equal(h->result, HELD_ASLEEP);
	assert_int_equal(h->pause_ns, 0);
	assert_int_equal(h->regs.valid, 0);
	assert_int_equal(task_status(f.process, f.pid, &after), 0);
	assert_int_equal(after.state, 'S');
	assert_int_equal(after.nvcsw, before.nvcsw); /* it was not even woken */
	assert_int_equal(after.nivcsw, before.nivcsw);
	assert_let_go(&f);

	request.look_first = false;
	h = freeze_main_thread(&f, &request);
	assert_int_equal(h->result, HELD_STOPPED);
	assert_true(h->pause_ns > 0);
	assert_true(h->stack.len > 0);
	wait_for_state(&f, 'S');
	assert_let_go(&f);
	finish(&f);
}

static void test_gone(void **state)
{
	struct fixture f = start(child_sleeps);
	struct freeze_request request = request_for(&f);

	child_end(f.pid);
	assert_int_equal(freeze_main_thread(&f, &request)->result, HELD_GONE);
	assert_int_equal(f.list.data[0].pause_ns, 0);
	finish(&f);
}

/* It has ended, but nobody has waited for it. */
static void test_zombie(void **state)
{
	struct fixture f = start(child_sleeps);
	struct freeze_request request = request_for(&f);

	kill(f.pid, SIGKILL);
	wait_for_state(&f, 'Z');
	assert_int_equal(freeze_main_thread(&f, &request)->result, HELD_GONE);
	finish(&f);
}

/* A tracer is a thread: to the one that freezes this one is another. */
static void test_traced_by_another(void **state)
{
	struct fixture f = start(child_sleeps);
	struct freeze_request request = request_for(&f);

	assert_int_equal(ptrace(PTRACE_SEIZE, f.pid, NULL, NULL), 0);
	assert_int_equal(freeze_main_thread(&f, &request)->result, HELD_TRACED);
	finish(&f);
}

static void sleeps_hidden(void)
{
	prctl(PR_SET_DUMPABLE, 0);
	told->sent = 1;
	child_sleeps();
}

/* In a process of its own, since there is no way back from another user: ends with the result. */
static void freeze_as_nobody(void)
{
	struct held_list list = {0};
	struct maps none = {0};
	struct process process;
	struct memory vm;
	struct freeze_request request = {
		.process = &process, .arch = arch_host(), .maps = &none, .vm = &vm, .wait_ns = UINT64_C(1000000000)};
	pid_t pid;

	if (getuid() == 0 && (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
		_exit(99);
	pid = child_start(sleeps_hidden);
	wait_above(&told->sent, 0);
	if (process_open(pid, NULL, &process) < 0)
		_exit(99);
	memory_init(&vm, &process, false);
	if (!vec_push(&list, (struct held_thread){.tid = pid}) || freeze_threads(&request, NULL, &list) < 0)
		_exit(99);
	child_end(pid);
	_exit(list.data[0].result);
}

static void test_denied(void **state)
{
	int status;
	pid_t pid;

	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(told != MAP_FAILED);
	pid = fork();
	if (pid == 0)
		freeze_as_nobody();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), HELD_DENIED);
	munmap(told, sizeof(*told));
}

static int sleep_as_clone(void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != *(const pid_t *)arg) /* it has ended before that */
		_exit(0);
	child_sleeps();
	return 0;
}

/* As after vfork(): the parent waits in state D, where nothing but SIGKILL reaches it. */
static void waits_for_clone(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t self = getpid();

	clone(sleep_as_clone, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &self);
}

static void test_timeout(void **state)
{
	struct fixture f = start(waits_for_clone);
	struct freeze_request request = request_for(&f);
	const struct held_thread *h;

	wait_for_state(&f, 'D');
	request.wait_ns = 2000000;
	h = freeze_main_thread(&f, &request);
	assert_int_equal(h->result, HELD_TIMEOUT);
	assert_int_equal(h->regs.valid, 0);
	assert_int_equal(h->stack.len, 0);
	wait_for_state(&f, 'D');
	assert_let_go(&f); /* though it could not be detached */
	finish(&f);
}

static void count_signal(int signal)
{
	told->received = told->received + 1;
}

/* A signal that a thread sends to itself has been handled when raise() returns, unless it was lost. */
static void raises(void)
{
	signal(SIGUSR1, count_signal);
	for (;;) {
		told->sent = told->sent + 1;
		raise(SIGUSR1);
		if (told->received != told->sent)
			told->lost = told->lost + 1;
	}
}

/* A thread that stood on its way to a signal gets it when it is let go. */
static void test_signal_is_delivered(void **state)
{
	struct fixture f = start(raises);
	struct freeze_request request = request_for(&f);
	unsigned stood = 0;
	uint64_t sent;

	wait_above(&told->received, 0);
	for (int i = 0; i < 200 && stood < 3; i++) {
		const struct held_thread *h = freeze_main_thread(&f, &request);

		assert_int_equal(h->result, HELD_STOPPED);
		assert_true(h->signal == 0 || h->signal == SIGUSR1);
		stood += h->signal == SIGUSR1;
		sent = told->sent;
		wait_above(&told->sent, sent + 1);
		assert_int_equal(told->lost, 0);
	}
	finish(&f);
	if (!stood) {
		print_message("skipped: the child was never found on its way to a signal (one CPU?)\n");
		skip();
	}
}

/* A process that job control has stopped stays so, and what is pending comes when it goes on. */
static void test_stopped_process_stays_stopped(void **state)
{
	struct fixture f = start(raises);
	struct freeze_request request = request_for(&f);
	uint64_t sent;
	int status;

	wait_above(&told->received, 0);
	kill(f.pid, SIGSTOP);
	assert_int_equal(waitpid(f.pid, &status, WUNTRACED), f.pid);
	assert_true(WIFSTOPPED(status));
	sent = told->sent;
	assert_int_equal(freeze_main_thread(&f, &request)->result, HELD_STOPPED);
	assert_true(f.list.data[0].stack.len > 0);
	wait_for_state(&f, 'T');
	assert_int_equal(told->sent, sent);
	kill(f.pid, SIGCONT);
	wait_above(&told->sent, sent + 1);
	assert_int_equal(told->lost, 0);
	finish(&f);
}

struct shown {
	unsigned calls;
	uint64_t mark, shifted;
	bool beyond;
};

static void show(void *arg, const struct held_thread *held, struct mem *peek)
{
	struct shown *shown = arg;

	shown->calls++;
	if (!mem_read_exact(peek, told->mark_at, &shown->mark, 8) ||
	    !mem_read_exact(peek, told->mark_at + 3, &shown->shifted, 5))
		shown->mark = 0;
	shown->beyond = peek->read(peek, 8, &(uint64_t){0}, 8) >= 0;
}

static void test_word_by_word(void **state)
{
	struct fixture f = start(spin_with_mark);
	struct freeze_request request = request_for(&f);
	struct shown shown = {0};

	wait_above(&told->turns[0], 0);
	request.on_held = show;
	request.on_held_arg = &shown;
	assert_int_equal(freeze_main_thread(&f, &request)->result, HELD_STOPPED);
	assert_int_equal(shown.calls, 1);
	assert_int_equal(shown.mark, MARK);
	assert_int_equal(shown.shifted, MARK >> 24); /* across no word's start, and little-endian */
	assert_false(shown.beyond);
	finish(&f);
}

/* Takes what is told of any child, as programs that start many do. */
struct taker {
	atomic_bool ended;
	atomic_uint stops;
};

static void *take_all_children(void *arg)
{
	struct taker *taker = arg;
	int status;

	while (!atomic_load(&taker->ended))
		if (waitpid(-1, &status, __WALL) > 0 && WIFSTOPPED(status))
			atomic_fetch_add(&taker->stops, 1);
	return NULL;
}

/* Another thread may be told of a stop in place of the one that holds: the thread is captured all the same. */
static void test_others_wait(void **state)
{
	struct fixture f = start(spin_with_mark);
	struct freeze_request request = request_for(&f);
	struct taker taker = {0};
	pthread_t thread;
	pid_t brief;

	wait_above(&told->turns[0], 0);
	assert_int_equal(pthread_create(&thread, NULL, take_all_children, &taker), 0);
	while (atomic_load(&taker.stops) < 3)
		assert_int_equal(freeze_main_thread(&f, &request)->result, HELD_STOPPED);
	atomic_store(&taker.ended, true);
	brief = fork(); /* something to be told */
	if (brief == 0)
		_exit(0);
	pthread_join(thread, NULL);
	finish(&f);
}

/* The caller's signal mask and its handling of SIGCHLD are as before. */
static void test_leaves_signals_as_they_were(void **state)
{
	struct fixture f = start(child_sleeps);
	struct freeze_request request = request_for(&f);
	struct sigaction ignore = {.sa_handler = SIG_IGN}, old, now;
	sigset_t before, after;

	assert_int_equal(sigaction(SIGCHLD, &ignore, &old), 0);
	sigemptyset(&before);
	sigaddset(&before, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	assert_int_equal(freeze_main_thread(&f, &request)->result, HELD_STOPPED);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(sigaction(SIGCHLD, &old, &now), 0);
	assert_ptr_equal(now.sa_handler, SIG_IGN);
	for (int i = 1; i < SIGRTMIN; i++)
		assert_int_equal(sigismember(&after, i), sigismember(&before, i));
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spinner),
		cmocka_unit_test(test_extent_of_the_copy),
		cmocka_unit_test(test_whole_process),
		cmocka_unit_test(test_looks_before_it_interrupts),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_zombie),
		cmocka_unit_test(test_traced_by_another),
		cmocka_unit_test(test_denied),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_signal_is_delivered),
		cmocka_unit_test(test_stopped_process_stays_stopped),
		cmocka_unit_test(test_word_by_word),
		cmocka_unit_test(test_others_wait),
		cmocka_unit_test(test_leaves_signals_as_they_were),
	};

	return cmocka_run_group_tests_name("freeze", tests, NULL, NULL);
}
