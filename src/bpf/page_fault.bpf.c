// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * For which pages of memory the threads of a process wait: writes a struct page_fault for each that waits uninterruptibly and has one on its
 * kernel stack. The register that had the address is gone by then, but whoever handles the fault has it there. Of a thread that is in a system
 * call it may be what is left of an old one: only those that are in none are to be believed. This is no part of task_iter.bpf.c, since hardly
 * ever anybody waits so, and the types that it names take the kernel half a millisecond to find.
 */
#include "bpf/kernel_types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "bpf/kernel_sp.bpf.h"
#include "bpf/page_fault.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

__u32 target_tgid; /* set by the reader before each pass */

/* The innermost part of the memory that is the thread's kernel stack; there is only one reader. */
enum { INNERMOST_WORDS = 256, UNINTERRUPTIBLE = 2 /* a state */ };
static __u64 innermost[INNERMOST_WORDS];
static volatile __u64 user_regs; /* as a number: pointers must not be subtracted */

struct search {
	__u64 mm;
	__u64 sp;
	__u64 found;
};

/* By the bits that all its addresses have, with page tables of five levels, too. */
static __u32 is_kernels(__u64 address)
{
	return address >> 56 == 0xff;
}

/* Whatever the size of pages is. */
static __u32 are_pages(__u64 bytes, __u64 pages)
{
	return bytes >> 12 == pages || bytes >> 14 == pages || bytes >> 16 == pages;
}

/*
 * A fault names the mapping, which has to be of this process, the page's address and its place in the file, which have to fit it. Further inside
 * there may be what is left of an earlier one, so the outermost counts.
 */
static long look_at_word(__u32 i, struct search *s)
{
	const struct vm_area_struct *vma;
	const struct vm_fault *fault;
	__u64 address, start;

	if (i >= INNERMOST_WORDS || !is_kernels(innermost[i]))
		return 0;
	vma = (void *)innermost[i];
	fault = (void *)(s->sp + i * sizeof(__u64) - bpf_core_field_offset(struct vm_fault, vma));
	if ((__u64)BPF_CORE_READ(vma, vm_mm) != s->mm)
		return 0;
	address = BPF_CORE_READ(fault, address);
	start = BPF_CORE_READ(vma, vm_start);
	if (address >= start && address < BPF_CORE_READ(vma, vm_end) &&
	    are_pages(address - start, BPF_CORE_READ(fault, pgoff) - BPF_CORE_READ(vma, vm_pgoff)))
		s->found = address;
	return 0;
}

SEC("iter/task")
int dump_fault(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct page_fault fault = {0};
	struct search s = {0};
	__u64 size;

	if (!task || task->tgid != target_tgid || !(task->__state & UNINTERRUPTIBLE))
		return 0;
	user_regs = (__u64)bpf_task_pt_regs(task);
	s.sp = kernel_sp(task);
	s.mm = (__u64)BPF_CORE_READ(task, mm);
	size = user_regs - s.sp; /* the stack ends with the user's registers */
	if (!s.mm)
		return 0;
	if (size > sizeof(innermost))
		size = sizeof(innermost);
	if (bpf_probe_read_kernel(innermost, size, (void *)s.sp))
		return 0;
	bpf_loop(size / sizeof(__u64), look_at_word, &s, 0);
	fault.tid = task->pid;
	fault.address = s.found;
	if (s.found)
		bpf_seq_write(ctx->meta->seq, &fault, sizeof(fault));
	return 0;
}
