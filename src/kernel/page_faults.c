/* SPDX-License-Identifier: MIT */
#include "kernel/page_faults.h"

#include <errno.h>

#ifdef HAVE_BPF

#include <bpf/bpf.h>

#include "base/debug.h"
#include "kernel/loading.h"
#include "page_fault.lskel.h"

static int take(const struct words *words, struct page_faults *out)
{
	enum { RECORD_WORDS = sizeof(struct page_fault) / sizeof(__u64) };

	for (size_t i = 0; i + RECORD_WORDS <= words->len; i += RECORD_WORDS)
		if (!vec_push(out, *(const struct page_fault *)(words->data + i)))
			return -ENOMEM;
	return 0;
}

static int run(struct page_fault_light *light, pid_t pid, struct err *err, struct page_faults *out)
{
	_cleanup_close_ int link = bpf_link_create(light->progs.dump_fault.prog_fd, 0, BPF_TRACE_ITER, NULL);
	struct words words = {0};
	int rc;

	if (link < 0)
		return loading_explain(err, errno, "attaching the BPF iterator over page faults", NULL);
	light->bss->target_tgid = (__u32)pid;
	rc = loading_read_iterator(link, &words, err);
	if (rc == 0 && take(&words, out) < 0)
		rc = err_set(err, ENOMEM, "out of memory");
	debug_say(rc, "the BPF iterator over page faults shows %zu threads", out->len);
	vec_deinit(&words);
	return rc;
}

int page_faults_of(pid_t pid, struct err *err, struct page_faults *out)
{
	struct page_fault_light *light;
	int rc;

	if (loading_pid_namespace())
		return err_set(err, ENOTSUP, "the BPF iterator over page faults is for the first pid namespace");
	light = page_fault_light__open();
	if (!light)
		return err_set(err, ENOMEM, "out of memory");
	rc = page_fault_light__load(light);
	debug_say(rc, "the kernel loads the BPF iterator over page faults by itself");
	rc = rc < 0 ? loading_explain(err, -rc, "loading the BPF iterator over page faults", "it needs Linux 5.17") : run(light, pid, err, out);
	page_fault_light__destroy(light);
	return rc;
}

#else

int page_faults_of(pid_t pid, struct err *err, struct page_faults *out)
{
	return err_set(err, ENOTSUP, "built without BPF");
}

#endif
