/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_FAKE_ITER_H
#define STAKEOUT_TESTS_FAKE_ITER_H

#include "kernel/task_iter.h"

/* In place of kernel/task_iter.c, for tests of what is made of its records: it shows those that it is given, all asleep. */
enum { FAKE_RECORDS = 4 };

struct task_iter {
	struct task_record records[FAKE_RECORDS];
	size_t n;
};

static struct task_iter fake_iter;

int task_iter_create(pid_t pid, struct err *err, struct task_iter **out)
{
	*out = &fake_iter;
	return 0;
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
	return 0;
}

const struct task_record *task_iter_next(const struct task_iter *iter, size_t *pos, const __u64 **kernel)
{
	static const __u64 addresses[TASK_RECORD_KERNEL];

	*kernel = addresses;
	return *pos < iter->n ? &iter->records[(*pos)++] : NULL;
}

char task_record_state(const struct task_record *record)
{
	return 'S';
}

void task_record_registers(const struct task_record *record, struct user_regs *regs)
{
}

void task_record_syscall(const struct task_record *record, struct snap_syscall *out)
{
}

bool task_record_is_kernel_worker(const struct task_record *record)
{
	return false;
}

#endif
