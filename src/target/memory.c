/* SPDX-License-Identifier: MIT */
#include "target/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
	BATCH = 256,
	BATCH_BYTES = 1 << 30, /* the system call gives up short of 2 GiB */
};

static int copy_proc_mem(struct memory *vm, struct memory_job *job);

static ssize_t read_live(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	struct memory *vm = (struct memory *)mem;
	struct memory_job job = {.address = address, .len = len, .dst = buf};
	int rc = vm->mem_fd >= 0 ? copy_proc_mem(vm, &job) : memory_copy(vm, &job, 1);

	return job.done ? (ssize_t)job.done : rc;
}

void memory_init(struct memory *vm, const struct process *process, bool prefer_proc_mem)
{
	*vm = (struct memory){
		.mem = {.read = read_live},
		.process = process,
		.mem_fd = openat(process->mm_fd, "mem", O_RDONLY | O_CLOEXEC),
		.prefer_proc_mem = prefer_proc_mem,
		.use_proc_mem = prefer_proc_mem || process_check_numbers(NULL) < 0,
	};
}

void memory_deinit(struct memory *vm)
{
	cleanup_close(&vm->mem_fd);
	vm->mem_fd = -1;
}

static int copy_proc_mem(struct memory *vm, struct memory_job *job)
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
 * One system call for up to BATCH jobs. It stops at the first byte that cannot be read, which may be inside a job:
 * that job stays short. Returns how many jobs were dealt with, or -errno when none of them got a byte.
 */
static int copy_batch(struct memory *vm, struct memory_job *jobs, size_t njobs)
{
	struct iovec local[BATCH], remote[BATCH];
	uint64_t total = 0;
	size_t n = 0;
	ssize_t got;

	for (; n < njobs && n < BATCH && (n == 0 || total + jobs[n].len <= BATCH_BYTES); n++) {
		local[n] = (struct iovec){.iov_base = jobs[n].dst, .iov_len = jobs[n].len};
		remote[n] = (struct iovec){.iov_base = (void *)(uintptr_t)jobs[n].address, .iov_len = jobs[n].len};
		total += jobs[n].len;
	}
	got = process_vm_readv(vm->process->mm_tid, local, n, remote, n, 0);
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

/* The main thread's number is the process's own; that of another thread may be given away while the process lives. */
static bool has_number(const struct process *process)
{
	char first[2];

	return process->mm_tid == process->pid ? process_has_number(process)
					       : process_read_file(process->mm_fd, "statm", first, sizeof(first)) > 0;
}

static int copy_all(struct memory *vm, struct memory_job *jobs, size_t njobs)
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

int memory_copy(struct memory *vm, struct memory_job *jobs, size_t njobs)
{
	int rc = copy_all(vm, jobs, njobs);

	if (vm->use_proc_mem || has_number(vm->process))
		return rc;
	for (size_t i = 0; i < njobs; i++)
		jobs[i].done = 0;
	return -ESRCH;
}
