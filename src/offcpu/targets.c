/* SPDX-License-Identifier: MIT */
#include "offcpu/targets.h"

#include <errno.h>

#include "base/cleanup.h"
#include "proc/process.h"

static int note(struct offcpu_targets *targets, const char *text)
{
	return text && vec_push(&targets->notes, text) ? 0 : -ENOMEM;
}

/* It is there: whether it can be recorded, and whether something is odd about it. */
static int look_at(struct offcpu_targets *targets, const struct process *process, struct err *err)
{
	int pid = (int)process->pid;
	struct process_info info;

	if (process_info(process, &info) < 0)
		return err_set(err, ESRCH, "process %d has ended", pid);
	if (info.kernel_thread)
		return err_set(err, EINVAL, "process %d (%s) is a thread of the kernel: these are not recorded", pid, info.comm);
	if (process_has_ended(process))
		return err_set(err, ESRCH, "process %d (%s) has ended: it is only not yet waited for", pid, info.comm);
	if (!vec_push(&targets->pids, process->pid))
		return -ENOMEM;
	if (info.state == 'T' || info.state == 't')
		return note(targets, arena_printf(targets->arena, "process %d (%s) was stopped %s when the recording began: such time is no wait",
						  pid, info.comm, info.state == 'T' ? "by a signal" : "by a debugger"));
	return 0;
}

static int take(struct offcpu_targets *targets, struct process_id id, struct err *err)
{
	struct process process;
	int rc = process_open(id.pid, err, &process);

	if (rc == -EINVAL)
		return err_set(err, EINVAL, "%d is a thread of process %d: use `-p %d`", (int)id.pid, (int)process.pid,
			       (int)process.pid);
	if (rc < 0)
		return rc;
	rc = process_check_id(&process, id, err);
	if (rc == 0)
		rc = look_at(targets, &process, err);
	process_close(&process);
	return rc;
}

/* It stays in `err`, too. */
static int add_missing(struct offcpu_targets *targets, const struct err *err)
{
	targets->missing = true;
	return note(targets, arena_intern(targets->arena, err->msg));
}

static int take_all(struct offcpu_targets *targets, const struct process_ids *ids, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < ids->len && rc != -ENOMEM; i++) {
		rc = take(targets, ids->data[i], err);
		if (rc < 0 && rc != -ENOMEM)
			rc = add_missing(targets, err);
	}
	return rc;
}

int offcpu_targets_take(struct offcpu_targets *targets, const struct process_ids *ids, const struct notes *missing,
			struct err *err)
{
	int rc;

	targets->arena = arena_create();
	rc = targets->arena ? 0 : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < missing->len; i++) {
		err_set(err, ESRCH, "%s", missing->data[i]);
		rc = add_missing(targets, err);
	}
	if (rc == 0)
		rc = take_all(targets, ids, err);
	if (rc == -ENOMEM)
		return err_set(err, ENOMEM, "out of memory");
	return rc == 0 && targets->missing && !targets->pids.len ? -err->code : rc;
}

void offcpu_targets_deinit(struct offcpu_targets *targets)
{
	vec_deinit(&targets->pids);
	vec_deinit(&targets->notes);
	arena_destroy(targets->arena);
}
