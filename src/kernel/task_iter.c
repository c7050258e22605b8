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
		regs->valid |= UINT64_C(3) << n;
	}
}

void task_record_syscall(const struct task_record *record, struct snap_syscall *out)
{
	const struct arch *arch = arch_of_mode(arch_host(), record->regs[arch_host()->user_mode]);

	out->nr = record->syscall_nr;
	out->state = record->syscall_nr >= 0 ? SYSCALL_IN : SYSCALL_NONE;
	if (out->state != SYSCALL_IN)
		return;
	for (unsigned i = 0; i < 6; i++)
		out->args[i] = record->regs[arch->user_syscall_args[i]];
	if (arch->user_syscall_args[0] == arch_host()->user_syscall_args[0]) /* the result may have taken its place */
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
#include "base/vec.h"
#include "kernel/loading.h"
#include "task_iter.skel.h"

#define DOUBT "this kernel may lack bpf_task_pt_regs or task iterators"

struct task_iter {
	struct task_iter_bpf *skel;
	struct bpf_link *link;
	struct words words; /* the last pass */
};

bool task_iter_built_in(void)
{
	return true;
}

/* Kernels since 6.1 walk one process or one thread; older ones walk all tasks, and the program skips the others. */
static struct bpf_link *attach(struct task_iter_bpf *skel, pid_t pid, pid_t tid)
{
	union bpf_iter_link_info info = {.task = {.pid = tid ? 0 : (__u32)pid, .tid = (__u32)tid}};
	DECLARE_LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));
	struct bpf_link *link = pid || tid ? bpf_program__attach_iter(skel->progs.dump_task, &opts) : NULL;

	return link ? link : bpf_program__attach_iter(skel->progs.dump_task, NULL);
}

int task_iter_create(pid_t pid, struct err *err, struct task_iter **out)
{
	struct task_iter *iter = calloc(1, sizeof(*iter));
	int rc;

	if (!iter)
		return err_set(err, ENOMEM, "out of memory");
	libbpf_set_print(loading_quiet);
	iter->skel = task_iter_bpf__open();
	if (!iter->skel) {
		rc = loading_explain(err, errno, "opening the BPF task iterator", DOUBT);
		task_iter_destroy(iter);
		return rc;
	}
	iter->skel->rodata->ns_inum = loading_pid_namespace();
	rc = task_iter_bpf__load(iter->skel);
	if (rc) {
		rc = loading_explain(err, -rc, "loading the BPF task iterator", DOUBT);
		task_iter_destroy(iter);
		return rc;
	}
	iter->skel->bss->target_tgid = (__u32)pid;
	iter->link = attach(iter->skel, pid, 0);
	if (!iter->link) {
		rc = loading_explain(err, errno, "attaching the BPF task iterator", DOUBT);
		task_iter_destroy(iter);
		return rc;
	}
	*out = iter;
	return 0;
}

void task_iter_destroy(struct task_iter *iter)
{
	if (!iter)
		return;
	bpf_link__destroy(iter->link);
	task_iter_bpf__destroy(iter->skel);
	vec_deinit(&iter->words);
	free(iter);
}

static void cleanup_link(struct bpf_link **link)
{
	bpf_link__destroy(*link);
}

int task_iter_pass(struct task_iter *iter, const struct task_iter_request *request, struct err *err)
{
	_cleanup_(cleanup_link) struct bpf_link *one = NULL;

	iter->skel->bss->only_tid = (__u32)request->only_tid;
	iter->skel->bss->counters_only = request->counters_only;
	iter->skel->bss->want_kernel = request->kernel_stacks;
	if (request->only_tid)
		one = attach(iter->skel, 0, request->only_tid);
	return loading_read_iterator(one ? one : iter->link, &iter->words, err);
}

const struct task_record *task_iter_next(const struct task_iter *iter, size_t *pos, const __u64 **kernel)
{
	enum { RECORD_WORDS = sizeof(struct task_record) / 8 };
	const struct task_record *record;

	if (iter->words.len - *pos < RECORD_WORDS)
		return NULL;
	record = (const struct task_record *)(iter->words.data + *pos);
	*pos += RECORD_WORDS;
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
