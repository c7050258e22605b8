/* SPDX-License-Identifier: MIT */
#include "capture/capture.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "capture/take.h"

enum {
	MAX_EXECS = 3, /* starts from the beginning after an exec */
	MAX_VDSO = 256 * 1024,
};

static int choose_observer(struct capture *c, struct err *err)
{
	struct err why = {0};
	int rc;

	if (c->options.source != SOURCE_PROC) {
		rc = process_check_numbers(&why);
		if (rc == 0)
			rc = observer_bpf_create(&c->process, &why, &c->observer);
		if (rc == 0)
			return 0;
		if (c->options.source == SOURCE_BPF)
			return err_set(err, -rc, "%s", why.msg);
		snprintf(c->observer_note, sizeof(c->observer_note),
			 "threads are read through /proc, which shows only pc and sp: %s", why.msg);
	}
	return observer_proc_create(&c->process, err, &c->observer);
}

/* A number that means another process must not stop that one. */
static int choose_stop(struct capture *c, struct err *err)
{
	if (c->options.stop == STOP_NONE || process_check_numbers(NULL) == 0)
		return 0;
	if (c->options.stop == STOP_ALL)
		return process_check_numbers(err);
	c->unstoppable = true;
	c->options.stop = STOP_NONE;
	return 0;
}

int capture_open(pid_t pid, const struct capture_options *options, struct err *err, struct capture **out)
{
	struct capture *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return err_set(err, ENOMEM, "out of memory");
	c->options = *options;
	c->process = (struct process){.dir_fd = -1, .task_fd = -1, .mm_fd = -1};
	c->vm.mem_fd = -1;
	rc = process_open(pid, err, &c->process);
	if (rc == -EINVAL)
		err_set(err, EINVAL, "%d is a thread of process %d: use `stakeout %d -t %d`", (int)pid,
			(int)c->process.pid, (int)c->process.pid, (int)pid);
	if (rc == 0)
		rc = choose_stop(c, err);
	if (rc == 0)
		rc = choose_observer(c, err);
	if (rc < 0) {
		capture_close(c);
		return rc;
	}
	*out = c;
	return 0;
}

void capture_close(struct capture *c)
{
	if (!c)
		return;
	if (c->observer)
		c->observer->destroy(c->observer);
	vmread_deinit(&c->vm);
	process_close(&c->process);
	vec_deinit(&c->seen);
	u64map_deinit(&c->seen_index);
	free(c);
}

struct mem *capture_live_memory(struct capture *c)
{
	return &c->vm.mem;
}

/* Removes the threads that ended meanwhile, and counts what was done. */
static void finish(struct take *take)
{
	struct snapshot *snap = take->snap;
	struct capture_info *info = &snap->capture;
	size_t kept = 0;

	for (size_t i = 0; i < snap->threads.len; i++) {
		struct snap_thread *t = &snap->threads.data[i];

		if (take->work.data[i] == WORK_DROP)
			continue;
		info->stopped_threads += t->pause_ns > 0;
		info->retaken_threads += t->retakes > 0;
		if (!info->inconsistent_why && t->capture == CAPTURE_MOVED)
			info->inconsistent_why = "a thread ran while it was read";
		if (!info->inconsistent_why && t->status != THREAD_CAPTURED && t->status != THREAD_ZOMBIE &&
		    t->status != THREAD_KERNEL)
			info->inconsistent_why = "not every thread could be captured";
		snap->threads.data[kept++] = *t;
	}
	snap->threads.len = kept;
	info->consistent = !info->inconsistent_why;
}

static void copy_vdso(struct capture *c, struct snapshot *snap)
{
	for (size_t i = 0; i < snap->maps.len; i++) {
		const struct map_entry *e = &snap->maps.data[i];
		struct mem_copy image = {.start = e->start, .len = e->end - e->start, .region_end = e->end};
		struct vmread_job job = {.address = image.start, .len = image.len};
		struct bulk *bulk;

		if (strcmp(e->path, "[vdso]") != 0 || image.len > MAX_VDSO)
			continue;
		bulk = take_add_bulk(snap, image.len, 0);
		if (!bulk)
			return;
		job.dst = image.data = bulk->data;
		vmread_copy(&c->vm, &job, 1);
		if (job.done == job.len && !vec_push(&snap->images, image))
			return;
	}
}

/* True when the program is a 32-bit one. */
static bool is_32bit(const struct process *process)
{
	_cleanup_close_ int fd = openat(process->mm_fd, "exe", O_RDONLY | O_CLOEXEC);
	unsigned char ident[EI_NIDENT];

	return fd >= 0 && read(fd, ident, sizeof(ident)) == sizeof(ident) && memcmp(ident, ELFMAG, SELFMAG) == 0 &&
	       ident[EI_CLASS] == ELFCLASS32;
}

/* The process as a whole: names, map, vDSO. */
static int describe(struct capture *c, struct snapshot *snap, struct err *err)
{
	struct process_info info;
	int rc = process_info(&c->process, &info);

	if (rc < 0)
		return err_set(err, ESRCH, "process %d has ended", (int)c->process.pid);
	process_find_memory(&c->process);
	vmread_deinit(&c->vm);
	vmread_init(&c->vm, &c->process, c->options.proc_mem);
	snap->comm = arena_intern(snap->arena, info.comm);
	snap->exe = process_exe(&c->process, snap->arena);
	snap->kernel_thread = info.kernel_thread;
	snap->mm_tid = c->process.mm_tid;
	snap->taken_at_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	snap->capture.method = c->options.stop == STOP_ALL ? "ptrace" : c->observer->name;
	snap->capture.stop_mode = c->options.stop == STOP_ALL ? "all" : c->options.stop == STOP_NONE ? "none" : "auto";
	if (c->observer_note[0] && c->options.stop != STOP_ALL)
		snapshot_note(snap, "%s", c->observer_note);
	if (info.kernel_thread)
		return 0;
	rc = process_maps(&c->process, snap->arena, err, &snap->maps);
	if (rc == 0)
		copy_vdso(c, snap);
	return rc;
}

/* All threads of a 32-bit process are listed, with their kernel stacks, but not walked. */
static void settle_32bit(struct take *take)
{
	for (size_t i = 0; i < take->snap->threads.len; i++)
		if (take->work.data[i] == WORK_TAKE) {
			take_set_status(take->snap, &take->snap->threads.data[i], THREAD_32BIT, "it is a 32-bit program, which is not walked");
			take->work.data[i] = WORK_SETTLED;
		}
}

/* The first pass comes before the memory map: an exec after it is noticed by the next pass. */
static int take_once(struct take *take)
{
	struct capture *c = take->capture;
	int rc = take_observe(take, 0, false);

	if (rc == 0)
		rc = describe(c, take->snap, take->err);
	if (rc == 0)
		rc = take_store_pass(take);
	if (rc < 0)
		return rc;
	if (!take->snap->threads.len)
		return c->options.tids ? err_set(take->err, ESRCH, "process %d has no thread %d", (int)c->process.pid,
						 (int)c->options.tids[0])
				       : err_set(take->err, ESRCH, "process %d has ended", (int)c->process.pid);
	if (is_32bit(&c->process))
		settle_32bit(take);
	return c->options.stop == STOP_ALL ? take_stopped(take) : take_passive(take);
}

int capture_take(struct capture *c, struct err *err, struct snapshot **out)
{
	int rc = -EAGAIN;

	for (int tries = 0; rc == -EAGAIN && tries < MAX_EXECS; tries++) {
		struct take take = {.capture = c, .err = err, .snap = snapshot_create(c->process.pid, arch_host())};
		uint64_t start = monotonic_ns();

		if (!take.snap)
			return err_set(err, ENOMEM, "out of memory");
		rc = take_once(&take);
		if (rc >= 0) {
			finish(&take);
			take_kernel_text(take.snap);
			take.snap->capture.capture_ns = monotonic_ns() - start;
			*out = steal_ptr(take.snap);
			rc = 0;
		} else {
			take_forget_held(&take);
		}
		vec_deinit(&take.work);
		vec_deinit(&take.sps);
		u64map_deinit(&take.index);
		snapshot_destroy(take.snap);
	}
	if (rc == -EAGAIN)
		return err_set(err, EAGAIN, "process %d executes new programs faster than it can be read", (int)c->process.pid);
	return rc;
}

int capture_look_again(struct capture *c)
{
	return take_look(c);
}

bool capture_unmoved(const struct capture *c, const struct snap_thread *t)
{
	const struct observed *o = take_find_observed(c, t->tid);

	return t->capture == CAPTURE_ASLEEP && o && take_unmoved(o, t);
}
