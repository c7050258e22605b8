/* SPDX-License-Identifier: MIT */
#include "kernel/task_iter.h"

#include <errno.h>
#include <string.h>

#include "arch/arch.h"

char task_record_state(const struct task_record *record)
{
	/* The bits are part of the kernel's tracepoint and /proc interface. */
	static const char letters[] = "RSDTtXZPI";
	enum { REPORT = 0x7f, UNINTERRUPTIBLE = 0x02, NOLOAD = 0x400, IDLE = 0x80, RTLOCK_WAIT = 0x1000, FROZEN = 0x8000 };
	unsigned state = (record->state | record->exit_state) & REPORT;
	unsigned bit = 0;

	if ((record->state & (UNINTERRUPTIBLE | NOLOAD)) == (UNINTERRUPTIBLE | NOLOAD))
		state = IDLE;
	else if (record->state & (RTLOCK_WAIT | FROZEN))
		state = UNINTERRUPTIBLE;
	while (state >> bit)
		bit++;
	return letters[bit];
}

/* The kernel keeps the words in the order in which ptrace shows them; x86_64's segment bases are elsewhere. */
void task_record_registers(const struct task_record *record, struct user_regs *regs)
{
	const struct arch *arch = arch_host();
	unsigned n = arch->id == ARCH_X86_64 ? TASK_RECORD_REGS_X86_64 : TASK_RECORD_REGS_AARCH64;

	memcpy(regs->v, record->regs, n * sizeof(regs->v[0]));
	regs->valid = (UINT64_C(1) << n) - 1;
	if (arch->id == ARCH_X86_64) {
		regs->v[n] = record->fs_base;
		regs->v[n + 1] = record->gs_base;
		for (unsigned i = 0; i < TASK_RECORD_SEGMENTS; i++)
			regs->v[n + 2 + i] = record->segments[i];
		regs->valid = (UINT64_C(1) << (n + 2 + TASK_RECORD_SEGMENTS)) - 1;
	}
}

void task_record_syscall(const struct task_record *record, struct snap_syscall *out)
{
	const struct arch *arch = arch_of_mode(arch_host(), record->regs[arch_host()->user_mode]);

	out->nr = record->syscall_nr;
	out->state = record->syscall_nr >= 0 ? SYSCALL_IN : SYSCALL_NONE;
	if (out->state != SYSCALL_IN)
		return;
	for (unsigned i = 0; i < 6; i++) {
		unsigned reg = arch->user_syscall_args[i];

		out->args[i] = record->regs[arch->from_wide ? arch->from_wide[reg] : (int)reg];
	}
	if (arch->id != ARCH_I386) /* on arm the result may have taken its place; i386 has another first one than x86_64 */
		out->args[0] = record->syscall_arg0;
}

bool task_record_is_kernel_worker(const struct task_record *record)
{
	const struct arch *arch = arch_host();

	return record->flags & TASK_HAS_REGS && !record->regs[arch->user_pc] && !record->regs[arch->user_sp];
}

#ifdef HAVE_BPF

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/debug.h"
#include "base/vec.h"
#include "kernel/loading.h"
#include "task_iter.lskel.h"
#include "task_iter.skel.h"

#define DOUBT "task iterators that show registers need Linux 5.15"

/* What iterators share. */
struct program {
	unsigned users;
	struct task_iter_light *light; /* the kernel relocated the program, or */
	struct task_iter_bpf *skel;    /* libbpf did */
	struct err passed_over;	       /* why libbpf had to */
	struct task_pass *pass;
	int fd;
};

struct task_iter {
	struct program *program;
	pid_t pid;
	int link;
	struct words words; /* the last pass, */
	size_t record_words; /* and how much it shows of each record */
};

static void drop_program(struct program *p)
{
	if (!p || --p->users)
		return;
	task_iter_light__destroy(p->light);
	task_iter_bpf__destroy(p->skel);
	free(p);
}

DEFINE_CLEANUP(program, struct program *, drop_program)

bool task_iter_built_in(void)
{
	return true;
}

/* Linux 5.17 and later relocate a program by their own BTF, in a fraction of the time in which libbpf reads it. */
static int load_light(struct program *p)
{
	int rc;

	p->light = task_iter_light__open();
	if (!p->light)
		return -ENOMEM;
	p->light->rodata->ns_inum = loading_pid_namespace();
	p->light->rodata->has_loops = 1;
	rc = task_iter_light__load(p->light);
	if (rc < 0)
		return rc;
	p->pass = &p->light->bss->pass;
	p->fd = p->light->progs.dump_task.prog_fd;
	return 0;
}

static int load_by_libbpf(struct program *p, struct err *err)
{
	LOADING_QUIETLY;
	int rc;

	p->skel = task_iter_bpf__open();
	if (!p->skel)
		return loading_explain(err, errno, "opening the BPF task iterator", DOUBT);
	p->skel->rodata->ns_inum = loading_pid_namespace();
	rc = task_iter_bpf__load(p->skel);
	if (rc)
		return loading_explain(err, -rc, "loading the BPF task iterator", DOUBT);
	p->pass = &p->skel->bss->pass;
	p->fd = bpf_program__fd(p->skel->progs.dump_task);
	return 0;
}

static int load(struct program *p, struct err *err)
{
	int rc = load_light(p);

	debug_say(rc, "the kernel loads the BPF task iterator by itself");
	if (rc == 0)
		return 0;
	task_iter_light__destroy(steal_ptr(p->light));
	err_set(&p->passed_over, -rc, "the kernel did not load the program by itself, as Linux 5.17 and later can (%s)",
		strerror(-rc));
	rc = load_by_libbpf(p, err);
	debug_say(rc, "libbpf loads the BPF task iterator");
	return rc;
}

/* Kernels since 6.1 walk one process or one thread; older ones walk all tasks, and the program skips the others. */
static int attach(const struct task_iter *iter, pid_t pid, pid_t tid)
{
	union bpf_iter_link_info info = {.task = {.pid = tid ? 0 : (__u32)pid, .tid = (__u32)tid}};
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = &info, .iter_info_len = sizeof(info));
	int link = pid || tid ? bpf_link_create(iter->program->fd, 0, BPF_TRACE_ITER, &opts) : -1;

	return link >= 0 ? link : bpf_link_create(iter->program->fd, 0, BPF_TRACE_ITER, NULL);
}

static int create_with(struct program *program, pid_t pid, struct err *err, struct task_iter **out)
{
	struct task_iter *iter = calloc(1, sizeof(*iter));
	int rc;

	if (!iter)
		return err_set(err, ENOMEM, "out of memory");
	*iter = (struct task_iter){.program = program, .pid = pid};
	iter->link = attach(iter, pid, 0);
	if (iter->link < 0) {
		rc = loading_explain(err, errno, "attaching the BPF task iterator", DOUBT);
		free(iter);
		return rc;
	}
	program->users++;
	*out = iter;
	return 0;
}

static int create(pid_t pid, int (*load_program)(struct program *p, struct err *err), struct err *err, struct task_iter **out)
{
	_cleanup_(cleanup_program) struct program *program = calloc(1, sizeof(*program));
	int rc;

	if (!program)
		return err_set(err, ENOMEM, "out of memory");
	program->users = 1;
	rc = load_program(program, err);
	return rc < 0 ? rc : create_with(program, pid, err, out);
}

int task_iter_create_beside(const struct task_iter *other, pid_t pid, struct err *err, struct task_iter **out)
{
	return create_with(other->program, pid, err, out);
}

int task_iter_create(pid_t pid, struct err *err, struct task_iter **out)
{
	return create(pid, load, err, out);
}

int task_iter_create_by_libbpf(pid_t pid, struct err *err, struct task_iter **out)
{
	return create(pid, load_by_libbpf, err, out);
}

const char *task_iter_passed_over(const struct task_iter *iter)
{
	return iter->program->passed_over.code ? iter->program->passed_over.msg : NULL;
}

void task_iter_destroy(struct task_iter *iter)
{
	if (!iter)
		return;
	close(iter->link);
	drop_program(iter->program);
	vec_deinit(&iter->words);
	free(iter);
}

int task_iter_pass(struct task_iter *iter, const struct task_iter_request *request, struct err *err)
{
	_cleanup_close_ int one = -1;

	*iter->program->pass = (struct task_pass){
		.target_tgid = (__u32)iter->pid,
		.only_tid = (__u32)request->only_tid,
		.counters_only = request->counters_only,
		.want_kernel = request->kernel_stacks,
	};
	iter->record_words = (request->counters_only ? TASK_RECORD_COUNTERS : sizeof(struct task_record)) / sizeof(__u64);
	if (request->only_tid)
		one = attach(iter, 0, request->only_tid);
	return loading_read_iterator(one >= 0 ? one : iter->link, &iter->words, err);
}

const struct task_record *task_iter_next(const struct task_iter *iter, size_t *pos, const __u64 **kernel)
{
	const struct task_record *record;

	if (!iter->record_words || iter->words.len - *pos < iter->record_words)
		return NULL;
	record = (const struct task_record *)(iter->words.data + *pos);
	*pos += iter->record_words;
	if (record->nkernel > TASK_RECORD_KERNEL || record->nkernel > iter->words.len - *pos)
		return NULL;
	*kernel = iter->words.data + *pos;
	*pos += record->nkernel;
	return record;
}

#else

bool task_iter_built_in(void)
{
	return false;
}

int task_iter_create(pid_t pid, struct err *err, struct task_iter **out)
{
	return err_set(err, ENOTSUP, "this stakeout was built without BPF (clang, bpftool or libbpf was missing)");
}

int task_iter_create_by_libbpf(pid_t pid, struct err *err, struct task_iter **out)
{
	return task_iter_create(pid, err, out);
}

int task_iter_create_beside(const struct task_iter *other, pid_t pid, struct err *err, struct task_iter **out)
{
	return task_iter_create(pid, err, out);
}

const char *task_iter_passed_over(const struct task_iter *iter)
{
	return NULL;
}

void task_iter_destroy(struct task_iter *iter)
{
}

int task_iter_pass(struct task_iter *iter, const struct task_iter_request *request, struct err *err)
{
	return err_set(err, ENOTSUP, "built without BPF");
}

const struct task_record *task_iter_next(const struct task_iter *iter, size_t *pos, const __u64 **kernel)
{
	return NULL;
}

#endif
