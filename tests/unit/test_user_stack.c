/* SPDX-License-Identifier: MIT */
/* What the walk in BPF makes of memory that looks like that of Go's runtime, and of some that does not. */
#include "child.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "bpf/go_layout.h"
#include "kernel/offcpu_probe.h"

enum { NAP_NS = 2000000, MIN_NS = 1000000, POLL_MS = 10, PATIENCE = 3000, WORDS = 32, AROUND = 1 << 16 };

/* A thread on its own stack: its goroutine, itself, and a goroutine of another thread. */
static uint64_t g0[WORDS], m[WORDS], others[WORDS];

/* Sleeps with the register in which Go keeps the goroutine pointing at g0. */
__attribute__((noinline)) static void nap(void)
{
	const struct timespec t = {.tv_nsec = NAP_NS};
#if defined(__x86_64__)
	register uint64_t *go __asm__("r14") = g0;
	long rc = SYS_nanosleep;

	__asm__ volatile("syscall" : "+a"(rc) : "D"(&t), "S"(NULL), "r"(go) : "rcx", "r11", "memory");
#else
	register uint64_t *go __asm__("x28") = g0;
	register long rc __asm__("x0") = (long)&t;
	register long rest __asm__("x1") = 0;
	register long number __asm__("x8") = SYS_nanosleep;

	__asm__ volatile("svc #0" : "+r"(rc) : "r"(rest), "r"(number), "r"(go) : "memory");
#endif
}

static void (*const a_function)(void) = nap;

static uint64_t word(const void *pointer)
{
	return (uintptr_t)pointer;
}

static void naps(void)
{
	g0[GO_G_M / sizeof(g0[0])] = word(m);
	m[GO_M_G0 / sizeof(m[0])] = word(g0);
	for (;;)
		nap();
}

struct seen {
	bool any;
	uint32_t end;
};

static void take(void *arg, const void *record, size_t len)
{
	const struct offcpu_stack *stack = record;
	struct seen *seen = arg;

	if (*(const uint32_t *)record != OFFCPU_STACK || !stack->set)
		return;
	seen->any = true;
	seen->end = stack->user_end;
}

/* All code around here is that of a function which has changed to the thread's stack. */
static void describe(struct offcpu_probe *probe, pid_t pid)
{
	const struct unwind_row row = {.kind = UNWIND_GO_SYSTEM};
	const struct offcpu_maps maps = {.count = 1, .set = 1};
	const uint64_t here = (uintptr_t)nap;
	const struct offcpu_mapping mapping = {
		.start = here - AROUND, .end = here + AROUND, .bias = here - AROUND, .nrows = 1, .set = 1};
	const uint32_t object = 0;
	int table = offcpu_probe_create_table(probe, &row, 1, 0);

	assert_true(table >= 0);
	assert_int_equal(offcpu_probe_set_objects(probe, &object, &table, 1), 0);
	assert_int_equal(offcpu_probe_set_mapping(probe, 0, &mapping), 0);
	assert_int_equal(offcpu_probe_set_process(probe, pid, &maps), 0);
	close(table);
}

static const struct offcpu_probe_options options = {
	.rung = OFFCPU_RUNG_AUTO,
	.filter = {.min_ns = MIN_NS, .max_ns = UINT64_MAX, .sleeping = true},
	.user_stacks = true,
	.ring_bytes = 1 << 20,
	.max_mappings = 1,
};

static struct offcpu_probe *start(pid_t pid)
{
	struct offcpu_probe *probe = NULL;
	struct err err = {0};
	int rc = offcpu_probe_create(&options, &err, &probe);

	if (rc == 0)
		describe(probe, pid);
	if (rc == 0)
		rc = offcpu_probe_watch(probe, pid, &err);
	if (rc == 0)
		rc = offcpu_probe_start(probe, &err);
	if (rc < 0) {
		print_message("skipped: %s\n", err.msg);
		offcpu_probe_destroy(probe);
		child_end(pid);
		skip();
	}
	return probe;
}

/* How the stack ends when the thread has these words where its goroutine may be noted. */
static uint32_t end_with(uint64_t old_word, uint64_t new_word)
{
	struct offcpu_probe *probe;
	struct seen seen = {0};
	pid_t pid;

	m[GO_M_CURG_OLD / sizeof(m[0])] = old_word;
	m[GO_M_CURG / sizeof(m[0])] = new_word;
	pid = child_start(naps);
	probe = start(pid);
	for (int i = 0; i < PATIENCE && !seen.any; i++)
		assert_int_equal(offcpu_probe_poll(probe, POLL_MS, take, &seen), 0);
	assert_true(seen.any);
	offcpu_probe_destroy(probe);
	child_end(pid);
	return seen.end;
}

static void test_no_goroutine(void **state)
{
	assert_int_equal(end_with(0, 0), OFFCPU_END_COMPLETE);
	assert_int_equal(end_with(0, word(&a_function)), OFFCPU_END_COMPLETE); /* what old releases have there */
}

/* What is no goroutine of this thread, nor a function, says nothing: there may be one elsewhere. */
static void test_not_its_goroutine(void **state)
{
	others[GO_G_M / sizeof(others[0])] = word(others);
	assert_int_equal(end_with(0, word(others)), OFFCPU_END_SWITCHED);
	assert_int_equal(end_with(0, sizeof(uint64_t)), OFFCPU_END_SWITCHED);
	assert_int_equal(end_with(word(others), 0), OFFCPU_END_SWITCHED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_goroutine),
		cmocka_unit_test(test_not_its_goroutine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
