/* SPDX-License-Identifier: MIT */
#include "cmd/offcpu_look.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "proc/family.h"
#include "wait/waits.h"

enum { MOST = 64 }; /* processes: more are not looked at in one instant */
enum { STACK_BYTES = 1 << 20, STOP_TIMEOUT_MS = 100 };

void offcpu_look_take(struct offcpu_look *look, const struct tid_list *pids, bool children)
{
	/* Whoever runs does not wait: it is left alone. */
	const struct tracing_options options = {
		.capture = {.stop = STOP_NONE, .kernel_stacks = true, .stack_size = STACK_BYTES, .stop_timeout_ms = STOP_TIMEOUT_MS},
	};
	struct process_ids ids = {0};
	struct tracing_job *jobs;
	struct err err = {0};
	bool ok = true;

	look->stopped_ns = monotonic_ns();
	for (size_t i = 0; ok && i < pids->len; i++)
		ok = vec_push(&ids, (struct process_id){.pid = pids->data[i]});
	if (ok && children)
		ok = process_ids_add_descendants(&ids, &err) == 0;
	jobs = ok && ids.len && ids.len <= MOST ? calloc(ids.len, sizeof(*jobs)) : NULL;
	if (jobs && vec_reserve(&look->tracings, ids.len)) {
		for (size_t i = 0; i < ids.len; i++)
			jobs[i].id = ids.data[i];
		tracing_capture_all(jobs, ids.len, &options, monotonic_ns());
		for (size_t i = 0; i < ids.len; i++)
			if (jobs[i].rc == 0)
				vec_push(&look->tracings, jobs[i].tracing); /* there is room */
	}
	free(jobs);
	vec_deinit(&ids);
}

void offcpu_look_deinit(struct offcpu_look *look)
{
	for (size_t i = 0; i < look->tracings.len; i++)
		tracing_destroy(look->tracings.data[i]);
	vec_deinit(&look->tracings);
}

bool offcpu_look_prepare(struct offcpu_look *look, struct watch_targets *targets)
{
	for (size_t i = 0; i < look->tracings.len; i++) {
		tracing_rest(look->tracings.data[i]);
		tracing_go_on(look->tracings.data[i]);
		if (!vec_push(targets, tracing_target(look->tracings.data[i])))
			return false;
	}
	return true;
}

int offcpu_look_tell(struct offcpu_look *look, const struct native_names_options *names, struct offcpu_profile *profile, struct err *err)
{
	look->names = (struct tracing_names){.native = *names, .kernel = true};
	profile->stopped_ns = look->stopped_ns;
	for (size_t i = 0; i < look->tracings.len; i++) {
		struct trace *trace;
		int rc = tracing_name(look->tracings.data[i], &look->names, err, &trace);

		if (rc == 0 && !vec_push(&profile->looks, trace))
			rc = err_set(err, ENOMEM, "out of memory");
		if (rc < 0)
			return rc;
	}
	waits_find_among(profile->looks.data, profile->looks.len);
	return 0;
}
