/* SPDX-License-Identifier: MIT */
#include "kernel/address_names.h"

#include <errno.h>

#ifdef HAVE_BPF

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "base/cleanup.h"
#include "bpf/name_request.h"
#include "kernel/loading.h"
#include "kernel_names.skel.h"

DEFINE_CLEANUP(skeleton, struct kernel_names_bpf *, kernel_names_bpf__destroy)

int address_names_ask(const uint64_t *addresses, size_t count, void (*found)(void *arg, size_t index, const char *text),
		     void *arg, struct err *err)
{
	_cleanup_(cleanup_skeleton) struct kernel_names_bpf *skel = NULL;
	LIBBPF_OPTS(bpf_test_run_opts, run);
	struct name_request *request;
	LOADING_QUIETLY;

	skel = kernel_names_bpf__open_and_load();
	if (!skel)
		return err_set(err, errno, "naming kernel addresses with BPF: %s", strerror(errno));
	request = &skel->bss->request;
	for (size_t i = 0; i < count; i++) {
		request->address = addresses[i];
		request->text[0] = '\0';
		if (bpf_prog_test_run_opts(bpf_program__fd(skel->progs.name_address), &run) < 0)
			return err_set(err, errno, "naming kernel addresses with BPF: %s", strerror(errno));
		if (memchr(request->text, '\0', sizeof(request->text) - 1) && strchr(request->text, '+'))
			found(arg, i, request->text);
	}
	return 0;
}

#else

int address_names_ask(const uint64_t *addresses, size_t count, void (*found)(void *arg, size_t index, const char *text),
		     void *arg, struct err *err)
{
	return err_set(err, ENOTSUP, "built without BPF");
}

#endif
