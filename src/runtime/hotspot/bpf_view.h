/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_HOTSPOT_BPF_VIEW_H
#define STAKEOUT_RUNTIME_HOTSPOT_BPF_VIEW_H

#include <stdbool.h>

#include "arch/arch.h"
#include "bpf/runtime_layout.h"
#include "runtime/hotspot/layout.h"

/*
 * What BPF needs to step through the code of a virtual machine, as java_step() does (bpf/hotspot_stack.bpf.h). False: this release does
 * not tell enough.
 */
bool bpf_view_of(const struct layout *layout, const struct arch *arch, struct offcpu_hotspot *out);

#endif
