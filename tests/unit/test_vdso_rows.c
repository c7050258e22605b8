/* SPDX-License-Identifier: MIT */
/*
 * The rows for BPF of this kernel's vDSO, against the truth: a process that calls its functions is single-stepped, and at
 * each of their instructions the row must lead to the caller as it was when the function was entered.
 */
#include "cmocka_all.h"

#include <elf.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bpf_walk.h"

enum { MAX_STEPS = 100000, MAX_REPORTED = 10 };

struct registers {
	uint64_t pc, sp, fp, lr;
};

struct stepping {
	const struct arch *arch;
	pid_t pid;
	uint64_t start, end; /* of the vDSO */
	struct bpf_rows rows;
	bool inside;
	struct registers caller; /* when the call returns */
	unsigned checked, missing, wrong;
};

static void find_vdso(struct stepping *s)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "[vdso]"))
			assert_int_equal(sscanf(line, "%" SCNx64 "-%" SCNx64, &s->start, &s->end), 2);
	fclose(maps);
}

static uint64_t peek(const struct stepping *s, uint64_t address)
{
	return (uint64_t)ptrace(PTRACE_PEEKDATA, s->pid, address, NULL);
}

static struct registers read_registers(const struct stepping *s)
{
	struct user_regs_struct regs;
	struct iovec iov = {.iov_base = &regs, .iov_len = sizeof(regs)};

	assert_int_equal(ptrace(PTRACE_GETREGSET, s->pid, NT_PRSTATUS, &iov), 0);
#if defined(__x86_64__)
	return (struct registers){.pc = regs.rip, .sp = regs.rsp, .fp = regs.rbp};
#else
	return (struct registers){.pc = regs.pc, .sp = regs.sp, .fp = regs.regs[29], .lr = regs.regs[30]};
#endif
}

/* What it will be when the function that was just entered has returned. */
static struct registers find_caller(const struct stepping *s, const struct registers *now)
{
	if (s->arch->ra_in_register)
		return (struct registers){.pc = now->lr, .sp = now->sp, .fp = now->fp};
	return (struct registers){.pc = peek(s, now->sp), .sp = now->sp + 8, .fp = now->fp};
}

/* The caller by the row. False: it does not tell. */
static bool step_by_row(const struct stepping *s, const struct registers *now, struct registers *out)
{
	const struct unwind_row *row = bpf_walk_search(&s->rows, now->pc - s->start);

	if (!row || (row->kind != UNWIND_FROM_SP && row->kind != UNWIND_FROM_FP))
		return false;
	out->sp = (row->kind == UNWIND_FROM_SP ? now->sp : now->fp) + (uint64_t)(8 * (int64_t)row->cfa);
	out->pc = row->flags & UNWIND_RA_AT_CFA ? peek(s, out->sp + (uint64_t)(8 * (int64_t)row->ra)) : now->lr;
	out->pc = arch_strip_code_pointer(s->arch, out->pc);
	out->fp = row->flags & UNWIND_FP_AT_CFA ? peek(s, out->sp + (uint64_t)(8 * (int64_t)row->fp)) : now->fp;
	return true;
}

static void check(struct stepping *s, const struct registers *now)
{
	struct registers found;

	s->checked++;
	if (!step_by_row(s, now, &found)) {
		if (s->missing++ < MAX_REPORTED)
			print_error("no row at %#" PRIx64 "\n", now->pc - s->start);
	} else if (found.pc != s->caller.pc || found.sp != s->caller.sp || found.fp != s->caller.fp) {
		if (s->wrong++ < MAX_REPORTED)
			print_error("at %#" PRIx64 ": pc %#" PRIx64 ", not %#" PRIx64 "; sp %+" PRId64 "; fp %+" PRId64 "\n",
				    now->pc - s->start, found.pc, s->caller.pc, (int64_t)(found.sp - s->caller.sp),
				    (int64_t)(found.fp - s->caller.fp));
	}
}

static void call_functions(void)
{
	struct timespec ts;
	struct timeval tv;

	for (clockid_t clock = CLOCK_REALTIME; clock <= CLOCK_TAI; clock++) {
		clock_gettime(clock, &ts);
		clock_getres(clock, &ts);
	}
	gettimeofday(&tv, NULL);
	time(NULL);
}

static void run_child(void)
{
	call_functions(); /* they are bound when it counts */
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0) {
		raise(SIGSTOP);
		call_functions();
	}
	_exit(0);
}

static void step_through(struct stepping *s)
{
	int status;

	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	for (unsigned i = 0; WIFSTOPPED(status) && i < MAX_STEPS; i++) {
		struct registers now = read_registers(s);
		bool is_inside = now.pc >= s->start && now.pc < s->end;

		if (is_inside && !s->inside)
			s->caller = find_caller(s, &now);
		s->inside = is_inside;
		if (is_inside)
			check(s, &now);
		if (ptrace(PTRACE_SINGLESTEP, s->pid, NULL, NULL) < 0 || waitpid(s->pid, &status, 0) != s->pid)
			break;
	}
	if (!WIFEXITED(status)) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, &status, 0);
	}
}

static void test_each_instruction(void **state)
{
	struct stepping s = {.arch = arch_host()};
	struct image *image;
	struct err err = {0};

	find_vdso(&s);
	if (!s.start)
		skip();
	assert_int_equal(image_open_memory((const void *)(uintptr_t)s.start, s.end - s.start, &err, &image), 0);
	assert_int_equal(bpf_rows_build(image, s.arch, &err, &s.rows), 0);
	s.pid = fork();
	if (s.pid == 0)
		run_child();
	step_through(&s);
	bpf_rows_deinit(&s.rows);
	image_destroy(image);
	if (!s.checked)
		skip(); /* ptrace is refused, or the C library calls the kernel instead */
	print_message("%u instructions, no row for %u\n", s.checked, s.missing);
	assert_int_equal(s.wrong, 0);
	assert_int_equal(s.missing, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_instruction)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
