/* SPDX-License-Identifier: MIT */
#include "target/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "model/snapshot.h"
#include "target/filesystems.h"
#include "target/helper.h"
#include "target/patience.h"

enum {
	BATCH = 256,
	BATCH_BYTES = 1 << 30, /* the system call gives up short of 2 GiB */
	MAX_SEARCHES = 64,     /* of a map that may be long */
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
 * One system call for up to BATCH jobs, of which there is at least one. It stops at the first byte that cannot be read,
 * which may be inside a job:
 * that job stays short. Returns how many jobs were dealt with, or -errno when none of them got a byte.
 */
static int copy_batch(pid_t mm_tid, struct memory_job *jobs, size_t njobs)
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
	got = process_vm_readv(mm_tid, local, n, remote, n, 0);
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

void memory_job_finish(const struct memory_job *job, struct mem_copy *copy)
{
	copy->len = job->done;
	copy->unanswered = job->unanswered;
	if (job->done < job->len)
		copy->region_end = job->address + job->done; /* the rest is unreadable, not left out */
}

uint64_t memory_copy_now(pid_t mm_tid, struct memory_job *jobs, size_t njobs)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < njobs;) {
		int rc = copy_batch(mm_tid, jobs + i, njobs - i);

		i += rc < 0 ? 1 : (size_t)rc;
	}
	for (size_t i = 0; i < njobs; i++)
		bytes += jobs[i].done;
	return bytes;
}

/* The main thread's number is the process's own; that of another thread may be given away while the process lives. */
bool memory_has_number(const struct process *process)
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
			rc = copy_batch(vm->process->mm_tid, jobs + i, njobs - i);
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

	if (by_file || memory_has_number(vm->process))
		return rc;
	for (size_t i = 0; i < njobs; i++)
		jobs[i].done = 0;
	return -ESRCH;
}

/* Who has to deliver a page that is not there. */
enum delivery {
	BY_KERNEL, /* from this machine's disks, or out of nothing */
	BY_FAULT,  /* likewise, unless the memory is registered with a userfaultfd, which any process may hold */
	FROM_AFAR, /* the server of a file system */
};

static enum delivery find_delivery(const struct map_entry *entry)
{
	if (!entry->inode)
		return strncmp(entry->path, "[v", 2) == 0 ? BY_KERNEL : BY_FAULT; /* [vdso], [vvar]: the kernel's own */
	if (!filesystems_is_local(entry->dev_major, entry->dev_minor))
		return FROM_AFAR;
	return filesystems_is_memory(entry->dev_major, entry->dev_minor) ? BY_FAULT : BY_KERNEL;
}

static void open_pagemap(struct memory *vm)
{
	if (vm->pagemap_fd < 0)
		vm->pagemap_fd = openat(vm->process->mm_fd, "pagemap", O_RDONLY | O_CLOEXEC);
}

/*
 * A page that nobody can read although its mapping may be (MADV_GUARD_INSTALL): the C library ends stacks so since glibc 2.42.
 * Told since Linux 6.15; before that, it looks like memory that was not delivered.
 */
static bool is_guard(const struct memory *vm, uint64_t address)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), guard = UINT64_C(1) << 58;
	uint64_t entry;

	return pread(vm->pagemap_fd, &entry, sizeof(entry), (off_t)(address / page * sizeof(entry))) == sizeof(entry) &&
	       entry & guard;
}

/* How many bytes from `start` on are in pages that exist: present or swapped out. */
static uint64_t count_existing(struct memory *vm, uint64_t start, uint64_t end)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), exists = UINT64_C(3) << 62;
	uint64_t pages[512], at = start / page * page;
	bool absent = false;

	open_pagemap(vm);
	while (at < end && !absent) {
		uint64_t left = (end - at + page - 1) / page;
		size_t n = left < 512 ? (size_t)left : 512;
		ssize_t got = pread(vm->pagemap_fd, pages, n * sizeof(pages[0]), (off_t)(at / page * sizeof(pages[0])));

		absent = got <= 0;
		for (size_t i = 0; !absent && i < (size_t)got / sizeof(pages[0]); i++) {
			absent = !(pages[i] & exists);
			at += absent ? 0 : page;
		}
	}
	return at >= end ? end - start : at > start ? at - start : 0;
}

/* The part of [start, end) that is in the mapping at its start. */
static uint64_t end_in(const struct map_entry *entry, uint64_t end)
{
	return entry->end < end ? entry->end : end;
}

/*
 * True when all of it can be read at once by process_vm_readv, which would wait for whoever has to deliver a page. While
 * threads are held nothing is left to chance: a page that exists may be gone when it is read.
 */
static bool is_prompt(struct memory *vm, uint64_t start, uint64_t end)
{
	while (start < end) {
		const struct map_entry *entry = maps_find(vm->maps, start);
		enum delivery delivery = entry ? find_delivery(entry) : BY_FAULT;
		uint64_t stop = entry ? end_in(entry, end) : end;

		if (delivery == FROM_AFAR || (delivery == BY_FAULT && (vm->held || count_existing(vm, start, stop) < stop - start)))
			return false;
		start = stop;
	}
	return true;
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
	int rc = copy_batch(task->vm->process->mm_tid, &job, 1);

	reply->len = job.done;
	reply->rc = job.done ? 0 : rc;
}

static void describe(const struct map_entry *entry, uint64_t address, char *out, size_t size)
{
	snprintf(out, size, "memory at 0x%llx%s%s", (unsigned long long)address, entry->path[0] ? " of " : "", entry->path);
}

/*
 * Of a mapping of a file that may never answer. Not through /proc/PID/mem: that waits with the target's memory map locked,
 * which stops the target and every tool that looks at it.
 */
static int read_from_afar(struct memory *vm, const struct map_entry *entry, uint64_t len, struct memory_job *job)
{
	struct read_task rest = {.vm = vm, .address = job->address + job->done, .len = len};
	const struct helper_task task = {.run = run_read, .arg = &rest, .window = len, .keep = {-1, -1, -1, -1}};
	_cleanup_free_ uint8_t *bytes = NULL;
	struct helper_reply reply;
	char what[512];
	int rc;

	if (vm->held || vm->use_proc_mem) {
		vm->refused = entry;
		return -ETIMEDOUT;
	}
	if (filesystems_is_dead(entry->dev_major, entry->dev_minor))
		return -ETIMEDOUT;
	rc = helper_run(&task, &reply, &bytes);
	if (bytes && reply.len <= len && memory_has_number(vm->process)) {
		memcpy(job->dst + job->done, bytes, reply.len);
		job->done += reply.len;
	}
	describe(entry, rest.address, what, sizeof(what));
	if (rc == -ETIMEDOUT)
		filesystems_give_up(entry->dev_major, entry->dev_minor, what);
	return rc;
}

/* /proc/PID/mem does not wait for the handler of a userfaultfd: it fails at once. */
static int read_by_fault(struct memory *vm, const struct map_entry *entry, uint64_t len, struct memory_job *job)
{
	struct memory_job part = {.address = job->address + job->done, .len = len, .dst = job->dst + job->done};
	int rc = copy_proc_mem(vm, &part);

	job->done += part.done;
	if (rc < 0 && !vm->held)
		open_pagemap(vm);
	if (rc < 0 && is_guard(vm, part.address + part.done))
		return -EFAULT;
	if (vm->is_old && rc < 0 && rc != -ESRCH)
		return -EFAULT;
	if (rc == -EIO || rc == -EFAULT || rc == -EAGAIN) {
		vm->refused = entry;
		vm->refused_at = part.address + part.done;
		return -ETIMEDOUT;
	}
	return rc;
}

/*
 * Memory that is owed to nobody's userfaultfd, but was unmapped after the map was read, as collectors of garbage do all the time; it may even
 * be mapped again by now. To /proc/PID/mem it looks the same.
 */
static bool was_unmapped(struct memory *vm)
{
	struct arena *arena = ++vm->searched <= MAX_SEARCHES ? arena_create() : NULL;
	struct maps now = {0};
	struct err unused = {0};
	uint8_t byte;
	bool gone = !arena;

	if (arena && process_maps(vm->process, arena, &unused, &now) == 0)
		gone = !maps_find(&now, vm->refused_at) || pread(vm->mem_fd, &byte, 1, (off_t)vm->refused_at) == 1;
	vec_deinit(&now);
	arena_destroy(arena);
	return gone;
}

/* Memory that was set aside: for what cannot be read, or for what is put there later. */
static bool is_closed(const struct map_entry *entry)
{
	return !(entry->perms & MAP_PERM_READ) && find_delivery(entry) == BY_FAULT;
}

/* What process_vm_readv may wait for, mapping by mapping. */
static int copy_slowly(struct memory *vm, struct memory_job *job)
{
	uint64_t end = job->len > UINT64_MAX - job->address ? UINT64_MAX : job->address + job->len;
	int rc = 0;

	while (rc == 0 && job->done < job->len) {
		uint64_t at = job->address + job->done, before = job->done;
		const struct map_entry *entry = maps_find(vm->maps, at);
		struct memory_job part = {.address = at, .dst = job->dst + job->done};

		if (!entry || is_closed(entry)) { /* or was when the map was read: of that the pages that are there */
			part.len = job->done ? 0 : count_existing(vm, at, end);
			if (part.len && copy_proc_mem(vm, &part) == 0)
				job->done += part.done;
			return job->done ? 0 : -EFAULT;
		}
		part.len = end_in(entry, end) - at;
		switch (find_delivery(entry)) {
		case FROM_AFAR:
			rc = read_from_afar(vm, entry, part.len, job);
			break;
		case BY_FAULT:
			rc = read_by_fault(vm, entry, part.len, job);
			break;
		default:
			rc = copy_directly(vm, &part, 1);
			job->done += part.done;
		}
		if (job->done == before && rc == 0)
			rc = -EFAULT;
	}
	job->unanswered = rc == -ETIMEDOUT;
	return job->done && rc != -ESRCH ? 0 : rc;
}

/* Complains of what was left out without waiting for it. Not while threads are held. */
static void tell_refused(struct memory *vm)
{
	char what[512];

	if (!vm->refused)
		return;
	describe(vm->refused, vm->refused->start, what, sizeof(what));
	if (find_delivery(vm->refused) == FROM_AFAR)
		patience_complain("%s: its file system may not answer, and nobody waits for it while threads are held, or "
				  "through /proc/PID/mem; it is left out",
				  what);
	else if (!was_unmapped(vm))
		patience_complain("%s: some of it did not answer: nobody has delivered it to its userfaultfd yet; it is left out",
				  what);
	vm->refused = NULL;
}

void memory_hold(struct memory *vm)
{
	open_pagemap(vm); /* no file is opened while threads are held */
	vm->held = true;
}

void memory_release(struct memory *vm)
{
	vm->held = false;
	tell_refused(vm);
}

/* The first mapping that a server has to deliver; NULL: none. What lies behind a gap is not reached. */
static const struct map_entry *find_far(const struct memory *vm, uint64_t address, uint64_t len)
{
	uint64_t end = address + len;

	while (vm->maps && address < end) {
		const struct map_entry *entry = maps_find(vm->maps, address);

		if (!entry || find_delivery(entry) == FROM_AFAR)
			return entry;
		address = end_in(entry, end);
	}
	return NULL;
}

bool memory_is_local(const struct memory *vm, uint64_t address, uint64_t len)
{
	return !find_far(vm, address, len);
}

bool memory_is_prompt(struct memory *vm, uint64_t address, uint64_t len)
{
	const struct map_entry *far = find_far(vm, address, len);

	if (far)
		vm->refused = far;
	return !far;
}

int memory_copy(struct memory *vm, struct memory_job *jobs, size_t njobs)
{
	int first_error = 0;

	if (!vm->maps || !vm->maps->len)
		return copy_directly(vm, jobs, njobs);
	for (size_t i = 0; i < njobs;) {
		size_t run = i;
		int rc = 0;

		/* As many as can be read at once, then one that cannot; one alone takes the way that does not wait anyhow. */
		while (run < njobs && (njobs > 1 || vm->mem_fd < 0) && is_prompt(vm, jobs[run].address, jobs[run].address + jobs[run].len))
			run++;
		if (run > i)
			rc = copy_directly(vm, jobs + i, run - i);
		if (run < njobs && rc != -ESRCH) {
			int slow_rc = copy_slowly(vm, &jobs[run++]);

			rc = rc < 0 ? rc : slow_rc;
		}
		if (rc < 0 && !first_error)
			first_error = rc;
		if (rc == -ESRCH)
			break;
		i = run;
	}
	if (!vm->held)
		tell_refused(vm);
	return first_error;
}
