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

	libbpf_set_print(loading_quiet);
	skel = kernel_names_bpf__open_and_load();
	if (!skel)
		return err_set(err, errno, "naming kernel addresses with BPF: %s", strerror(errno));
	for (size_t from = 0; from < count; from += NAME_REQUEST_COUNT) {
		size_t n = count - from < NAME_REQUEST_COUNT ? count - from : NAME_REQUEST_COUNT;

		skel->bss->count = (__u32)n;
		memcpy(skel->bss->addresses, addresses + from, n * sizeof(*addresses));
		if (bpf_prog_test_run_opts(bpf_program__fd(skel->progs.name_addresses), &run) < 0)
			return err_set(err, errno, "naming kernel addresses with BPF: %s", strerror(errno));
		for (size_t i = 0; i < n; i++) {
			const char *text = skel->bss->texts[i];

			if (memchr(text, '\0', NAME_REQUEST_TEXT - 1) && strchr(text, '+'))
				found(arg, from + i, text);
		}
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
