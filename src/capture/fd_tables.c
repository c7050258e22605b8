/* SPDX-License-Identifier: MIT */
#include "capture/fd_tables.h"

#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/take.h"

struct fd_tables fd_tables_of(const struct besides *b)
{
	struct fd_tables tables = {.process = &b->capture->target->process, .can_compare = !b->capture->unstoppable};

	for (size_t i = 0; !tables.common && i < b->snap->threads.len; i++)
		if (b->snap->threads.data[i].tid == tables.process->mm_tid)
			tables.common = b->snap->threads.data[i].facts.files;
	return tables;
}

uint64_t fd_tables_own(const struct fd_tables *tables, const struct snap_thread *t)
{
	const pid_t main = tables->process->mm_tid;

	if (t->tid == main)
		return 0;
	if (tables->common && t->facts.files)
		return t->facts.files == tables->common ? 0 : t->facts.files;
	/* 1 and 2: one is before the other, in the order of the kernel; less than 0: it was refused */
	return tables->can_compare && syscall(SYS_kcmp, main, t->tid, KCMP_FILES, 0UL, 0UL) > 0 ? (uint64_t)t->tid : 0;
}
