/* SPDX-License-Identifier: MIT */
#include "target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "arch/arch.h"
#include "base/cleanup.h"
#include "base/debug.h"
#include "base/hash.h"
#include "target/ask.h"
#include "target/filesystems.h"

static const struct process no_process = {.pidfd = -1, .dir_fd = -1, .task_fd = -1, .mm_fd = -1};

static struct target *create(void)
{
	struct target *target = calloc(1, sizeof(*target));

	if (!target)
		return NULL;
	target->process = no_process;
	target->memory.mem_fd = target->memory.pagemap_fd = -1;
	target->root_fd = -1;
	return target;
}

/* Of a process by its directory. It changes with every exec, and when the number is given to another process. */
static uint64_t read_generation(const struct process *process)
{
	struct process_info info;

	return process_info(process, &info) < 0 ? 0 : hash_u64(process_generation(process), info.start_time);
}

void target_look(struct target *target)
{
	process_find_memory(&target->process);
	filesystems_learn(target->process.mm_fd);
	memory_deinit(&target->memory);
	memory_init(&target->memory, &target->process, target->memory.prefer_proc_mem);
	target->memory.maps = target->snap ? &target->snap->maps : NULL;
	cleanup_close(&target->root_fd);
	target->root_fd = openat(target->process.mm_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	target->generation = read_generation(&target->process);
}

int target_open(pid_t pid, struct err *err, struct target **out)
{
	_cleanup_(cleanup_target) struct target *target = create();
	struct process process = no_process;
	int rc;

	if (!target)
		return err_set(err, ENOMEM, "out of memory");
	rc = process_open(pid, err, &process);
	debug_say(rc, "opening process %d", (int)pid);
	if (rc < 0)
		return rc;
	target->process = process;
	target_look(target);
	debug_say(0, "its memory can%s be read, its root can%s be entered", target->memory.mem_fd < 0 ? "not" : "",
		  target->root_fd < 0 ? "not" : "");
	*out = steal_ptr(target);
	return 0;
}

int target_open_process(const struct process *process, struct err *err, struct target **out)
{
	_cleanup_(cleanup_target) struct target *target = create();
	int rc;

	if (!target)
		return err_set(err, ENOMEM, "out of memory");
	rc = process_dup(process, err, &target->process);
	if (rc < 0)
		return rc;
	target_look(target);
	*out = steal_ptr(target);
	return 0;
}

struct target *target_open_saved(struct snapshot *snap)
{
	struct target *target = create();

	if (target)
		target_set_snapshot(target, snap);
	return target;
}

void target_close(struct target *target)
{
	if (!target)
		return;
	target_set_snapshot(target, NULL);
	memory_deinit(&target->memory);
	cleanup_close(&target->root_fd);
	process_close(&target->process);
	free(target);
}

bool target_is_live(const struct target *target)
{
	return target->process.dir_fd >= 0;
}

int target_check(const struct target *target, struct err *err)
{
	if (!process_has_number(&target->process))
		return err_set(err, ESRCH, "process %d has ended", (int)target->process.pid);
	if (process_generation(&target->process) && read_generation(&target->process) != target->generation)
		return err_set(err, EAGAIN, "process %d has executed another program", (int)target->process.pid);
	return 0;
}

void target_set_snapshot(struct target *target, struct snapshot *snap)
{
	if (snap && snap == target->snap)
		return;
	target_forget_files(target);
	if (target->owns_snap)
		snapshot_destroy(target->snap);
	target->snap = snap;
	target->owns_snap = false;
	target->memory.maps = snap ? &snap->maps : NULL;
}

int target_read_map(struct target *target, struct err *err)
{
	const struct process *process = &target->process;
	struct process_info info;
	int rc;

	if (process_info(process, &info) < 0)
		return err_set(err, ESRCH, "process %d has ended", (int)process->pid);
	if (info.kernel_thread)
		return err_set(err, EINVAL, "process %d is a kernel thread: it has no memory map", (int)process->pid);
	target_set_snapshot(target, snapshot_create(process->pid, arch_host()));
	if (!target->snap)
		return err_set(err, ENOMEM, "out of memory");
	target->owns_snap = true;
	rc = process_maps(process, target->snap->arena, err, &target->snap->maps);
	if (rc < 0)
		return rc;
	if (!target->snap->maps.len)
		return err_set(err, ESRCH, "process %d has ended: it has no memory map", (int)process->pid);
	return ask_process(target, target->snap, &ask_vdso, NULL, err);
}

void target_forget_memory(struct target *target)
{
	memory_deinit(&target->memory);
}

void target_forget_files(struct target *target)
{
	modules_destroy(target->modules);
	target->modules = NULL;
}

int target_open_files(struct target *target, const struct modules_options *options, struct err *err)
{
	target_forget_files(target);
	return modules_create(target, options, err, &target->modules);
}

int target_open_whole(pid_t pid, const struct modules_options *options, struct err *err, struct target **out)
{
	_cleanup_(cleanup_target) struct target *target = NULL;
	int rc = target_open(pid, err, &target);

	if (rc == 0)
		rc = target_read_map(target, err);
	if (rc == 0)
		rc = target_open_files(target, options, err);
	if (rc == 0)
		*out = steal_ptr(target);
	return rc;
}
