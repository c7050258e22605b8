// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Asks the kernel itself for the names of the few kernel addresses that are on stacks, instead of reading the whole of
 * /proc/kallsyms, which takes longer than everything else that a snapshot does. One address in each run: the kernel
 * takes a millisecond to check a loop, and a microsecond to run the program once more.
 */
#include "bpf/kernel_types.h"

#include <bpf/bpf_helpers.h>

#include "bpf/name_request.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct name_request request;

/* "symbol+0x1/0x2 [module]"; the address is looked up as a return address. */
SEC("syscall")
int name_address(void *ctx)
{
	static const char format[] = "%pB";
	__u64 address = request.address;

	bpf_snprintf(request.text, sizeof(request.text), format, &address, sizeof(address));
	return 0;
}
