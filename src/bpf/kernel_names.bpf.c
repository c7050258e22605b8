// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Asks the kernel itself for the names of the few kernel addresses that are on stacks, instead of reading the whole of
 * /proc/kallsyms, which takes longer than everything else that a snapshot does.
 */
#include "bpf/kernel_types.h"

#include <bpf/bpf_helpers.h>

#include "bpf/name_request.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

__u32 count;
__u64 addresses[NAME_REQUEST_COUNT];
char texts[NAME_REQUEST_COUNT][NAME_REQUEST_TEXT];

/* "symbol+0x1/0x2 [module]"; the address is looked up as a return address. */
SEC("syscall")
int name_addresses(void *ctx)
{
	static const char format[] = "%pB";

	for (__u32 i = 0; i < NAME_REQUEST_COUNT; i++) {
		__u64 address = addresses[i];

		if (i >= count)
			break;
		bpf_snprintf(texts[i], NAME_REQUEST_TEXT, format, &address, sizeof(address));
	}
	return 0;
}
