/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_KERNEL_PAGE_FAULTS_H
#define STAKEOUT_KERNEL_PAGE_FAULTS_H

#include <sys/types.h>

#include "base/err.h"
#include "base/vec.h"
#include "bpf/page_fault.h"

struct page_faults {
	VEC_FIELDS(struct page_fault);
};

/*
 * For which pages of memory threads of the process wait now, if they are in no system call. Only in the first pid namespace, and where the kernel loads
 * the BPF program by itself (Linux 5.17). 0, or -errno with a sentence.
 */
int page_faults_of(pid_t pid, struct err *err, struct page_faults *out);

#endif
