/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_VMSTRUCTS_H
#define STAKEOUT_RUNTIME_HOTSPOT_VMSTRUCTS_H

#include "runtime/hotspot/layout.h"
#include "target/target.h"

enum { VMSTRUCTS_VERSION = 64 };

/*
 * Reads the layout of the virtual machine of a live process, whose libjvm.so is `module`, loaded at `bias`. `version` is
 * that of the release: "17.0.15", "8u432", or "". Why it cannot be read; NULL: it is.
 */
const char *vmstructs_read(struct target *target, const struct module *module, uint64_t bias, struct layout *out,
			   char version[VMSTRUCTS_VERSION]);

#endif
