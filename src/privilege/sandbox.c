/* SPDX-License-Identifier: MIT */
#include "privilege/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "privilege/caller.h"
#include "privilege/capabilities.h"

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

/* When a call is let through. Only the lower half of an argument is looked at: all of these are ints, or flags there. */
enum condition { ALWAYS, IF_EQUAL, IF_ANY, UNLESS_ANY };

struct rule {
	unsigned short call;
	unsigned char condition;
	unsigned char argument;
	uint32_t value;
};

enum { OWN_PID = UINT16_MAX }; /* instead of a value: the number of this process */

/* What parsing takes: memory, threads, files that are open already, the socket to the broker. */
static const struct rule rules[] = {
	{.call = SYS_futex},
	{SYS_mmap, UNLESS_ANY, 2, PROT_EXEC},
	{.call = SYS_munmap},
	{SYS_mprotect, UNLESS_ANY, 2, PROT_EXEC},
	{.call = SYS_sendmsg},
	{.call = SYS_recvmsg},
	{.call = SYS_write},
	{.call = SYS_read},
	{.call = SYS_close},
	{.call = SYS_fstat},
	{SYS_newfstatat, IF_ANY, 3, AT_EMPTY_PATH}, /* as the C library's fstat() */
	{.call = SYS_pread64},
	{.call = SYS_pwrite64},
	{.call = SYS_readv},
	{.call = SYS_writev},
	{.call = SYS_lseek},
	{SYS_utimensat, IF_EQUAL, 1, 0}, /* as futimens() */
	{.call = SYS_brk},
	{.call = SYS_mremap},
	{.call = SYS_madvise},
	{.call = SYS_rt_sigprocmask},
	{.call = SYS_rt_sigaction},
	{.call = SYS_rt_sigreturn},
	{.call = SYS_sigaltstack},
	{SYS_clone, IF_ANY, 0, CLONE_THREAD},
	{.call = SYS_set_robust_list},
#ifdef SYS_rseq
	{.call = SYS_rseq},
#endif
	{.call = SYS_exit},
	{.call = SYS_exit_group},
	{.call = SYS_restart_syscall},
	{.call = SYS_clock_gettime},
	{.call = SYS_clock_nanosleep},
	{.call = SYS_nanosleep},
	{.call = SYS_gettimeofday},
	{.call = SYS_sched_yield},
	{.call = SYS_sched_getaffinity}, /* pthread_getattr_np() asks by number */
	{SYS_sched_setaffinity, IF_EQUAL, 0, 0},
	{SYS_sched_getscheduler, IF_EQUAL, 0, 0},
	{SYS_sched_setscheduler, IF_EQUAL, 0, 0},
	{SYS_getpriority, IF_EQUAL, 1, 0},
	{SYS_setpriority, IF_EQUAL, 1, 0},
	{SYS_prlimit64, IF_EQUAL, 0, 0},
	{SYS_prctl, IF_EQUAL, 0, PR_SET_NAME},
	{SYS_tgkill, IF_EQUAL, 0, OWN_PID}, /* as the C library's abort */
	{.call = SYS_getpid},
	{.call = SYS_getppid},
	{.call = SYS_gettid},
	{.call = SYS_getuid},
	{.call = SYS_geteuid},
	{.call = SYS_getrandom},
	{.call = SYS_membarrier},
	{.call = SYS_sysinfo},
	{.call = SYS_uname},
	{.call = SYS_dup},
	{.call = SYS_fcntl},
	{.call = SYS_ppoll},
#ifdef SYS_poll
	{.call = SYS_poll},
#endif
#ifdef SYS_time
	{.call = SYS_time},
#endif
};

enum {
	NRULES = sizeof(rules) / sizeof(rules[0]),
	MAX_STEPS = 5, /* for a rule */
	GROUP = 8,     /* rules that are passed over together: the kernel tries the filter with each call when it gets it */
	HEAD_STEPS = 6,
	MAX_PROGRAM = HEAD_STEPS + MAX_STEPS * NRULES + NRULES / GROUP + 2,
};

struct program {
	struct sock_filter steps[MAX_PROGRAM];
	unsigned short len;
};

static void add(struct program *p, struct sock_filter step)
{
	p->steps[p->len++] = step;
}

static void load(struct program *p, size_t offset)
{
	add(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void jump(struct program *p, uint16_t how, uint32_t value, uint8_t if_so, uint8_t if_not)
{
	add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_K | how, value, if_so, if_not));
}

static void end(struct program *p, uint32_t verdict)
{
	add(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict));
}

static void refuse(struct program *p, int code)
{
	end(p, SECCOMP_RET_ERRNO | (uint32_t)code);
}

static void add_rule(struct program *p, const struct rule *rule)
{
	const uint32_t value = rule->value == OWN_PID ? (uint32_t)getpid() : rule->value;

	if (rule->condition == ALWAYS) {
		jump(p, BPF_JEQ, rule->call, 0, 1);
		end(p, SECCOMP_RET_ALLOW);
		return;
	}
	jump(p, BPF_JEQ, rule->call, 0, 4);
	load(p, offsetof(struct seccomp_data, args) + rule->argument * sizeof(uint64_t)); /* little-endian, both of them */
	jump(p, rule->condition == IF_EQUAL ? BPF_JEQ : BPF_JSET, value, rule->condition == UNLESS_ANY ? 1 : 0,
	     rule->condition == UNLESS_ANY ? 0 : 1);
	end(p, SECCOMP_RET_ALLOW);
	refuse(p, EPERM);
}

static int by_call(const void *a, const void *b)
{
	return (int)((const struct rule *)a)->call - (int)((const struct rule *)b)->call;
}

static void add_group(struct program *p, const struct rule *group, size_t n)
{
	unsigned short at = p->len;

	jump(p, BPF_JGT, group[n - 1].call, 0, 0);
	for (size_t i = 0; i < n; i++)
		add_rule(p, &group[i]);
	p->steps[at].jt = (uint8_t)(p->len - at - 1);
}

/* Calls of x86_64's third ABI (x32) have the same architecture, but numbers that are none of these. */
static void make_program(struct program *p)
{
	struct rule sorted[NRULES];

	memcpy(sorted, rules, sizeof(sorted));
	qsort(sorted, NRULES, sizeof(sorted[0]), by_call);
	p->len = 0;
	load(p, offsetof(struct seccomp_data, arch));
	jump(p, BPF_JEQ, OWN_ARCH, 1, 0);
	refuse(p, EPERM);
	load(p, offsetof(struct seccomp_data, nr));
	/* Its flags are in memory, where a filter cannot look; the C library then does with clone(). */
	jump(p, BPF_JEQ, SYS_clone3, 0, 1);
	refuse(p, ENOSYS);
	for (size_t i = 0; i < NRULES; i += GROUP)
		add_group(p, &sorted[i], NRULES - i < GROUP ? NRULES - i : GROUP);
	refuse(p, EPERM);
}

/* Without the flag kernels before 5.16 slow down what is filtered, against an attack from within that is none here. */
static int install(const struct program *p)
{
	const struct sock_fprog program = {.len = p->len, .filter = (struct sock_filter *)p->steps};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) == 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0)
		return 0;
	return -errno;
}

int sandbox_become_caller(struct err *err)
{
	int rc = caller_become();

	if (rc < 0)
		err_set(err, -rc, "becoming the user who called sudo: %s", strerror(-rc));
	if (capabilities_drop_all() < 0 && rc == 0)
		rc = err_set(err, errno, "giving up capabilities: %s", strerror(errno));
	/* It holds memory of a process that may be another user's. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* a change of users has undone any earlier one */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 && rc == 0)
		rc = err_set(err, errno, "PR_SET_NO_NEW_PRIVS: %s", strerror(errno));
	return rc;
}

int sandbox_enter(struct err *err)
{
	struct program program;
	int rc = sandbox_become_caller(err), filter_rc;

	make_program(&program);
	filter_rc = install(&program);
	if (filter_rc < 0 && rc == 0)
		rc = err_set(err, -filter_rc, "a seccomp filter cannot be had: %s", strerror(-filter_rc));
	return rc;
}
