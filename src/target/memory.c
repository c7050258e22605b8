/* SPDX-License-Identifier: MIT */
#include "target/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "target/filesystems.h"
#include "target/helper.h"
#include "target/patience.h"

enum {
	BATCH = 256,
	BATCH_BYTES = 1 << 30, /* the system call gives up short of 2 GiB */
};

static ssize_t read_live(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	struct memory_job job = {.address = address, .len = len, .dst = buf};
	int rc = memory_copy((struct memory *)mem, &job, 1);

	return job.done ? (ssize_t)job.done : rc < 0 ? rc : -EFAULT;
}

void memory_init(struct memory *vm, const struct process *process, bool prefer_proc_mem)
{
	*vm = (struct memory){
		.mem = {.read = read_live},
		.process = process,
		.mem_fd = openat(process->mm_fd, "mem", O_RDONLY | O_CLOEXEC),
		.pagemap_fd = -1,
		.prefer_proc_mem = prefer_proc_mem,
		.use_proc_mem = prefer_proc_mem || process_check_numbers(NULL) < 0,
	};
}

void memory_deinit(struct memory *vm)
{
	cleanup_close(&vm->mem_fd);
	cleanup_close(&vm->pagemap_fd);
	vm->mem_fd = vm->pagemap_fd = -1;
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
 * One system call for up to BATCH jobs, of which there is at least one. It stops at the first byte that cannot be read, which may be inside a job:
 * that job stays short. Returns how many jobs were dealt with, or -errno when none of them got a byte.
 */
static int copy_batch(struct memory *vm, struct memory_job *jobs, size_t njobs)
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

static int copy_directly(struct memory *vm, struct memory_job *jobs, size_t njobs)
{
	/* One read alone is as quick through /proc/PID/mem, and that descriptor stays with the address space. */
	bool by_file = vm->use_proc_mem || (njobs == 1 && vm->mem_fd >= 0);
	int rc = by_file && !vm->use_proc_mem ? copy_proc_mem(vm, jobs) : copy_all(vm, jobs, njobs);

	if (by_file || has_number(vm->process))
		return rc;
	for (size_t i = 0; i < njobs; i++)
		jobs[i].done = 0;
	return -ESRCH;
}

/* Finds out all that a read has to know beforehand. */
static void memory_prepare(struct memory *vm)
{
	if (vm->userfaults != USERFAULTS_UNKNOWN)
		return;
	vm->userfaults = process_may_have_userfaults(vm->process) ? USERFAULTS_POSSIBLE : USERFAULTS_NONE;
	if (vm->pagemap_fd < 0)
		vm->pagemap_fd = openat(vm->process->mm_fd, "pagemap", O_RDONLY | O_CLOEXEC);
}

/* How many bytes from `start` on are in pages that exist: present or swapped out. */
static uint64_t count_existing(const struct memory *vm, uint64_t start, uint64_t end)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), exists = UINT64_C(3) << 62;
	uint64_t pages[512], at = start / page * page;

	while (at < end) {
		ssize_t got = pread(vm->pagemap_fd, pages, sizeof(pages), (off_t)(at / page * sizeof(pages[0])));

		if (got <= 0)
			break;
		for (size_t i = 0; i < (size_t)got / sizeof(pages[0]) && at < end; i++, at += page)
			if (!(pages[i] & exists))
				return at > start ? at - start : 0;
	}
	return at < end ? at > start ? at - start : 0 : end - start;
}

/* The kernel's own pages, which nobody else delivers. */
static bool is_kernels(const struct map_entry *entry)
{
	return strncmp(entry->path, "[v", 2) == 0;
}

/* How many bytes from `start` on, in one mapping, can be read without waiting for anybody. */
static uint64_t count_prompt(const struct memory *vm, const struct map_entry *entry, uint64_t start, uint64_t end)
{
	bool is_file = entry->inode != 0;

	if (is_file && !filesystems_is_local(entry->dev_major, entry->dev_minor))
		return 0;
	if (vm->userfaults == USERFAULTS_NONE || vm->pagemap_fd < 0 || is_kernels(entry) ||
	    (is_file && !(entry->perms & MAP_PERM_WRITE)))
		return end - start;
	return count_existing(vm, start, end);
}

/*
 * Likewise of a job, which may go through several mappings. `slow` is the first mapping that may make us wait; NULL: there
 * is none, or nobody knows what is there.
 */
static uint64_t count_prompt_bytes(const struct memory *vm, const struct memory_job *job, const struct map_entry **slow)
{
	uint64_t end = job->len > UINT64_MAX - job->address ? UINT64_MAX : job->address + job->len, at = job->address;

	*slow = NULL;
	if (!vm->maps || !vm->maps->len)
		return job->len;
	while (at < end) {
		const struct map_entry *entry = maps_find(vm->maps, at);
		uint64_t stop, prompt;

		if (!entry && at > job->address) /* the end of all that is mapped */
			return at - job->address;
		if (!entry) /* it was mapped since, or is not at all */
			return count_existing(vm, at, end);
		stop = entry->end < end ? entry->end : end;
		prompt = count_prompt(vm, entry, at, stop);
		at += prompt;
		if (at < stop) {
			*slow = entry;
			break;
		}
	}
	return at - job->address;
}

struct read_task {
	struct memory *vm;
	uint64_t address;
	uint64_t len;
};

static void run_read(void *arg, uint8_t *window, struct helper_reply *reply)
{
	const struct read_task *task = arg;
	struct memory_job job = {.address = task->address, .len = task->len, .dst = window};
	/* Not through /proc/PID/mem, where it can be helped: that waits with the target's memory map locked. */
	int rc = copy_all(task->vm, &job, 1);

	reply->len = job.done;
	reply->rc = job.done ? 0 : rc;
}

static void describe(const struct map_entry *slow, uint64_t address, char *out, size_t size)
{
	snprintf(out, size, "memory at 0x%llx%s%s", (unsigned long long)address, slow && slow->path[0] ? " of " : "",
		 slow ? slow->path : "");
}

static void complain(const struct memory_job *job, const struct map_entry *slow)
{
	char what[512];

	describe(slow, job->address + job->done, what, sizeof(what));
	if (slow && slow->inode)
		filesystems_give_up(slow->dev_major, slow->dev_minor, what);
	else
		patience_complain("%s did not answer in time: somebody else delivers it (userfaultfd); what is there is left "
				  "out (--patience gives it longer)",
				  what);
}

/* The rest of a job. A mapping that did not answer once is not asked again. */
static int read_by_helper(struct memory *vm, struct memory_job *job, const struct map_entry *slow)
{
	struct read_task rest = {.vm = vm, .address = job->address + job->done, .len = job->len - job->done};
	const struct helper_task task = {
		.run = run_read,
		.arg = &rest,
		.window = rest.len,
		.keep = {vm->mem_fd, -1, -1, -1},
	};
	_cleanup_free_ uint8_t *bytes = NULL;
	struct helper_reply reply;
	int rc;

	if (vm->held) {
		vm->refused = slow;
		job->unanswered = true;
		return -ETIMEDOUT;
	}
	if ((slow && slow->start == vm->dead_start) ||
	    (slow && slow->inode && filesystems_is_dead(slow->dev_major, slow->dev_minor))) {
		job->unanswered = true;
		return -ETIMEDOUT;
	}
	rc = helper_run(&task, &reply, &bytes);
	if (bytes && reply.len <= rest.len && has_number(vm->process)) {
		memcpy(job->dst + job->done, bytes, reply.len);
		job->done += reply.len;
	}
	/* Through /proc/PID/mem the kernel does not wait for who has to deliver a page: it says that there is none. */
	job->unanswered = rc == -ETIMEDOUT || (rc < 0 && slow && !slow->inode);
	if (job->unanswered && slow)
		vm->dead_start = slow->start;
	if (job->unanswered)
		complain(job, slow);
	return rc;
}

/* What can be had at once, then the rest by a helper. */
static int copy_slowly(struct memory *vm, struct memory_job *job, uint64_t prompt, const struct map_entry *slow)
{
	struct memory_job first = {.address = job->address, .len = prompt, .dst = job->dst};
	int rc = prompt ? copy_directly(vm, &first, 1) : 0;

	job->done = first.done;
	if (rc < 0 || first.done < prompt || (prompt && !slow))
		return rc;
	return read_by_helper(vm, job, slow);
}

bool memory_is_prompt(struct memory *vm, uint64_t address, uint64_t len)
{
	const struct memory_job job = {.address = address, .len = len};
	const struct map_entry *slow;
	bool prompt = count_prompt_bytes(vm, &job, &slow) == len;

	if (!prompt && slow)
		vm->refused = slow;
	return prompt;
}

void memory_hold(struct memory *vm)
{
	memory_prepare(vm);
	vm->refused = NULL;
	vm->held = true;
}

void memory_release(struct memory *vm)
{
	char what[512];

	vm->held = false;
	if (!vm->refused)
		return;
	describe(vm->refused, vm->refused->start, what, sizeof(what));
	patience_complain("%s: whoever has to deliver it may not answer, and nobody waits for that while threads are held; "
			  "it is left out",
			  what);
}

int memory_copy(struct memory *vm, struct memory_job *jobs, size_t njobs)
{
	int first_error = 0;

	if (!vm->held)
		memory_prepare(vm);
	for (size_t i = 0; i < njobs;) {
		const struct map_entry *slow = NULL;
		uint64_t prompt = 0;
		size_t run = i;
		int rc = 0;

		/* As many as can be read directly, then one that cannot. */
		for (; run < njobs; run++) {
			prompt = count_prompt_bytes(vm, &jobs[run], &slow);
			if (prompt < jobs[run].len)
				break;
		}
		if (run > i)
			rc = copy_directly(vm, jobs + i, run - i);
		if (run < njobs && rc != -ESRCH) {
			int slow_rc = copy_slowly(vm, &jobs[run], prompt, slow);

			rc = rc < 0 ? rc : slow_rc;
			run++;
		}
		if (rc < 0 && !first_error)
			first_error = rc;
		if (rc == -ESRCH)
			break;
		i = run;
	}
	return first_error;
}
