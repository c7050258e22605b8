/* SPDX-License-Identifier: MIT */
#include "kernel/window_look.h"

#include <errno.h>
#include <stddef.h>

#ifdef HAVE_BPF

#include <bpf/bpf.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "kernel/loading.h"
#include "window.lskel.h"

struct window_look {
	struct window_light *light;
};

DEFINE_CLEANUP(window_look, struct window_look *, window_look_destroy)

int window_look_create(struct err *err, struct window_look **out)
{
	_cleanup_(cleanup_window_look) struct window_look *look = calloc(1, sizeof(*look));
	int rc;

	if (!look)
		return err_set(err, ENOMEM, "out of memory");
	look->light = window_light__open();
	if (!look->light)
		return err_set(err, ENOMEM, "out of memory");
	rc = window_light__load(look->light);
	if (rc < 0)
		return loading_explain(err, -rc, "loading the BPF program for running threads", "it needs Linux 5.17");
	*out = steal_ptr(look);
	return 0;
}

void window_look_destroy(struct window_look *look)
{
	if (!look)
		return;
	window_light__destroy(look->light);
	free(look);
}

struct window_request *window_look_request(struct window_look *look)
{
	return &look->light->bss->request;
}

int window_look_run(struct window_look *look, const struct window_range *range)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = range, .ctx_size_in = sizeof(*range));

	return bpf_prog_test_run_opts(look->light->progs.look_at_range.prog_fd, &run);
}

#else

int window_look_create(struct err *err, struct window_look **out)
{
	return err_set(err, ENOTSUP, "built without BPF");
}

void window_look_destroy(struct window_look *look)
{
}

struct window_request *window_look_request(struct window_look *look)
{
	return NULL;
}

int window_look_run(struct window_look *look, const struct window_range *range)
{
	return -ENOTSUP;
}

#endif
