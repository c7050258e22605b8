/* SPDX-License-Identifier: MIT */
#include "kernel/task_iter.h"

#include <errno.h>

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

#ifdef HAVE_BPF

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "kernel/quiet.h"
#include "task_iter.skel.h"

struct task_iter {
	struct task_iter_bpf *skel;
	struct bpf_link *link;
	VEC(__u64) words; /* the last pass, 8-byte aligned as every record is */
	size_t nwords;
};

bool task_iter_built_in(void)
{
	return true;
}

/* What a refused load or attach means for the person who reads it. */
static int explain(struct err *err, int code, const char *step)
{
	if (code == EPERM || code == EACCES)
		return err_set(err, code, "%s was refused (%s): it needs root, or CAP_BPF and CAP_PERFMON", step, strerror(code));
	if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
		return err_set(err, code, "%s failed: this kernel has no BTF (/sys/kernel/btf/vmlinux)", step);
	return err_set(err, code, "%s failed: %s: this kernel may lack bpf_task_pt_regs or task iterators", step, strerror(code));
}

/* Kernels since 6.1 walk one process or one thread; older ones walk all tasks, and the program skips the others. */
static struct bpf_link *attach(struct task_iter_bpf *skel, pid_t pid, pid_t tid)
{
	union bpf_iter_link_info info = {.task = {.pid = tid ? 0 : (__u32)pid, .tid = (__u32)tid}};
	DECLARE_LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));
	struct bpf_link *link = bpf_program__attach_iter(skel->progs.dump_task, &opts);

	return link ? link : bpf_program__attach_iter(skel->progs.dump_task, NULL);
}

int task_iter_create(pid_t pid, struct err *err, struct task_iter **out)
{
	struct task_iter *iter = calloc(1, sizeof(*iter));
	int rc;

	if (!iter)
		return err_set(err, ENOMEM, "out of memory");
	libbpf_set_print(quiet_libbpf);
	iter->skel = task_iter_bpf__open();
	if (!iter->skel) {
		rc = explain(err, errno, "opening the BPF task iterator");
		task_iter_destroy(iter);
		return rc;
	}
	rc = task_iter_bpf__load(iter->skel);
	if (rc) {
		rc = explain(err, -rc, "loading the BPF task iterator");
		task_iter_destroy(iter);
		return rc;
	}
	iter->skel->bss->target_tgid = (__u32)pid;
	iter->link = attach(iter->skel, pid, 0);
	if (!iter->link) {
		rc = explain(err, errno, "attaching the BPF task iterator");
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
	_cleanup_close_ int fd = -1;
	size_t len = 0;

	iter->skel->bss->only_tid = (__u32)request->only_tid;
	iter->skel->bss->counters_only = request->counters_only;
	iter->skel->bss->want_kernel = request->kernel_stacks;
	iter->nwords = 0;
	if (request->only_tid)
		one = attach(iter->skel, 0, request->only_tid);
	fd = bpf_iter_create(bpf_link__fd(one ? one : iter->link));
	if (fd < 0)
		return explain(err, errno, "creating the BPF task iterator");
	for (;;) {
		ssize_t n;

		if (!vec_reserve(&iter->words, len / 8 + 8192))
			return err_set(err, ENOMEM, "out of memory");
		n = read(fd, (char *)iter->words.data + len, iter->words.cap * 8 - len);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return err_set(err, errno, "reading the BPF task iterator: %s", strerror(errno));
		if (n == 0)
			break;
		len += (size_t)n;
	}
	iter->nwords = len / 8;
	return 0;
}

const struct task_record *task_iter_next(const struct task_iter *iter, size_t *pos, const __u64 **kernel)
{
	enum { RECORD_WORDS = sizeof(struct task_record) / 8 };
	const struct task_record *record;

	if (iter->nwords - *pos < RECORD_WORDS)
		return NULL;
	record = (const struct task_record *)(iter->words.data + *pos);
	*pos += RECORD_WORDS;
	if (record->nkernel > TASK_RECORD_KERNEL || record->nkernel > iter->nwords - *pos)
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
	return err_set(err, ENOTSUP, "this stakeout was built without BPF (clang, bpftool and libbpf were not there)");
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
