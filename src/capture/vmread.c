/* SPDX-License-Identifier: MIT */
#include "capture/vmread.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
	BATCH = 256,
	BATCH_BYTES = 1 << 30, /* the system call gives up short of 2 GiB */
};

static ssize_t read_live(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	struct vmread_job job = {.address = address, .len = len, .dst = buf};
	int rc = vmread_copy((struct vmread *)mem, &job, 1);

	return job.done ? (ssize_t)job.done : rc;
}

void vmread_init(struct vmread *vm, const struct process *process, bool use_proc_mem)
{
	*vm = (struct vmread){
		.mem = {.read = read_live},
		.pid = process->mm_tid,
		.mem_fd = openat(process->mm_fd, "mem", O_RDONLY | O_CLOEXEC),
		.use_proc_mem = use_proc_mem || process_check_numbers(NULL) < 0,
	};
}

void vmread_deinit(struct vmread *vm)
{
	cleanup_close(&vm->mem_fd);
	vm->mem_fd = -1;
}

static int copy_proc_mem(struct vmread *vm, struct vmread_job *job)
{
	if (vm->mem_fd < 0)
		return -EACCES;
	while (job->done < job->len) {
		ssize_t n = pread(vm->mem_fd, job->dst + job->done, job->len - job->done, (off_t)(job->address + job->done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0) /* the address space is gone */
			return -ESRCH;
		job->done += (uint64_t)n;
	}
	return 0;
}

/*
 * One system call for up to BATCH jobs, of which there is at least one. It stops at the first byte that cannot be read,
 * which may be inside a job: that job stays short. Returns how many jobs were dealt with, or -errno when none of them
 * got a byte.
 */
static int copy_batch(struct vmread *vm, struct vmread_job *jobs, size_t njobs)
{
	struct iovec local[BATCH], remote[BATCH];
	uint64_t total = 0;
	size_t n = 0;
	ssize_t got;

	do {
		local[n] = (struct iovec){.iov_base = jobs[n].dst, .iov_len = jobs[n].len};
		remote[n] = (struct iovec){.iov_base = (void *)(uintptr_t)jobs[n].address, .iov_len = jobs[n].len};
		total += jobs[n++].len;
	} while (n < njobs && n < BATCH && total + jobs[n].len <= BATCH_BYTES);
	got = process_vm_readv(vm->pid, local, n, remote, n, 0);
	if (got < 0)
		return -errno;
	for (size_t i = 0; i < n; i++) {
		jobs[i].done = (uint64_t)got < jobs[i].len ? (uint64_t)got : jobs[i].len;
		got -= (ssize_t)jobs[i].done;
		if (jobs[i].done < jobs[i].len)
			return (int)i + 1;
	}
	return (int)n;
}

int vmread_copy(struct vmread *vm, struct vmread_job *jobs, size_t njobs)
{
	int first_error = 0;

	for (size_t i = 0; i < njobs;) {
		int rc;

		if (!vm->use_proc_mem) {
			rc = copy_batch(vm, jobs + i, njobs - i);
			if (rc == -ENOSYS || rc == -EPERM) {
				vm->use_proc_mem = true;
				continue;
			}
		} else {
			rc = copy_proc_mem(vm, &jobs[i]);
			rc = rc < 0 ? rc : 1;
		}
		if (rc < 0 && !first_error)
			first_error = rc;
		i += rc < 0 ? 1 : (size_t)rc;
	}
	return first_error;
}
