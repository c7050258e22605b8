/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_STACK_COPY_H
#define STAKEOUT_BPF_STACK_COPY_H

/*
 * The table of a large file takes longer to make than its first waits take to come. A stack that leads there is sent as it
 * is: registers, memory and what is mapped. Only so many, as a file may never get a table.
 */

#include "bpf/found_code.bpf.h"
#include "bpf/ring.bpf.h"

#ifdef FINDS_CODE

enum {
	MAX_COPIES = 64, /* of one process */
	RED_ZONE = 128, /* below the stack pointer */
#if defined(__TARGET_ARCH_x86)
	COPIED_REGS = TASK_RECORD_REGS_X86_64,
#else
	COPIED_REGS = TASK_RECORD_REGS_AARCH64,
#endif
};

struct copy_scratch {
	struct offcpu_copy head;
	__u8 bytes[OFFCPU_COPY_BYTES + OFFCPU_FOUND_MAPPINGS * sizeof(struct offcpu_code)];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct copy_scratch);
} copy_scratches SEC(".maps");

/* All that were made. */
struct copies {
	__u64 count;
	__u64 bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct copies);
} copies SEC(".maps");

/* Where the walk ended is code of a file. */
static bool is_in_file(struct found *f, __u64 address)
{
	for (__u32 i = 0; i < OFFCPU_FOUND_MAPPINGS && i < f->nlisted; i++) {
		const struct offcpu_code *code = listed_at(f, i);

		if (code->start <= address && address < code->end)
			return true;
	}
	return false;
}

static void copy_memory(struct copy_scratch *c, __u64 sp)
{
	c->head.start = (sp - RED_ZONE) & -(__u64)OFFCPU_COPY_PIECE; /* no piece is on two pages */
	c->head.npieces = c->head.present = 0;
	for (__u32 i = 0; i < OFFCPU_COPY_BYTES / OFFCPU_COPY_PIECE; i++) {
		__u32 at = i * OFFCPU_COPY_PIECE;

		if (bpf_probe_read_user(&c->bytes[at], OFFCPU_COPY_PIECE, (void *)(c->head.start + at)))
			continue;
		c->head.npieces = i + 1;
		c->head.present |= 1u << i;
	}
}

/* Sends it; false: there is no room. */
static bool send_copy(struct copy_scratch *c, struct found *f, struct user_registers *regs, struct copies *all)
{
	__u32 len, size = f->nlisted * sizeof(f->listed[0]);

	if (f->nlisted > OFFCPU_FOUND_MAPPINGS || bpf_probe_read_kernel(c->head.regs, COPIED_REGS * sizeof(__u64), regs))
		return false;
	copy_memory(c, regs->sp);
	len = c->head.npieces * OFFCPU_COPY_PIECE;
	if (!len || len > OFFCPU_COPY_BYTES || bpf_probe_read_kernel(&c->bytes[len], size, f->listed))
		return false;
	size += sizeof(c->head) + len;
	__sync_fetch_and_add(&all->bytes, size);
	return bpf_ringbuf_output(&ring, c, size, BPF_RB_NO_WAKEUP) == 0;
}

/* Copies the current thread's stack, of which a walk got as far as `missed`. Returns the copy's number, or 0. */
__attribute__((noinline)) int copy_stack(__u32 tgid, __u32 which, __u64 missed)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct found *f = bpf_map_lookup_elem(&found_scratches, &which);
	struct look *look = bpf_map_lookup_elem(&looks, &tgid);
	__u32 key = 0;
	struct copy_scratch *c = bpf_map_lookup_elem(&copy_scratches, &key);
	struct copies *all = bpf_map_lookup_elem(&copies, &key);

	if (!f || !look || !c || !all || look->ncopies >= MAX_COPIES || all->bytes >= OFFCPU_COPIES_BYTES)
		return 0;
	if (!f->is_listed)
		visit_all(f, task);
	if (!f->is_listed || !is_in_file(f, missed))
		return 0;
	__sync_fetch_and_add(&look->ncopies, 1);
	c->head.kind = OFFCPU_COPY;
	c->head.tgid = tgid;
	c->head.number = (__u32)__sync_fetch_and_add(&all->count, 1) + 1;
	c->head.count = f->nlisted;
	return send_copy(c, f, (struct user_registers *)bpf_task_pt_regs(task), all) ? c->head.number : 0;
}

#else

static int copy_stack(__u32 tgid, __u32 which, __u64 missed)
{
	return 0;
}

#endif

#endif
