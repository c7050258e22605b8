/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_KERNEL_ADDRESS_NAMES_H
#define STAKEOUT_KERNEL_ADDRESS_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Names kernel addresses by asking the running kernel, with a BPF program. Fails where that is not permitted or the
 * kernel cannot do it (before 5.14): then use /proc/kallsyms.
 *
 * Calls `found` for each address that has a name, with "symbol+0x1/0x2 [module]".
 */
int address_names_ask(const uint64_t *addresses, size_t count, void (*found)(void *arg, size_t index, const char *text),
		     void *arg, struct err *err);

#endif
