/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_NAMING_H
#define STAKEOUT_OFFCPU_NAMING_H

#include <stdbool.h>

#include "model/offcpu.h"
#include "offcpu/waits.h"
#include "symbol/native_names.h"

/* From waits to a profile: names of kernel and user frames, errors in words, idle waits recognised. */
struct offcpu_naming;

struct offcpu_naming_options {
	struct native_names_options native;
	const char *no_user_stacks; /* why none are taken although they are wanted, or NULL */
	const char *no_kernel_stacks;
	bool hide_kernel_stacks; /* not wanted; wakers have them all the same, to recognise interrupts */
	bool hide_user_stacks;
	/* Puts the frames of a process's runtimes in their places: runtime_processes_merge(). May be NULL. */
	bool (*merge)(void *arg, uint32_t process, const struct raw_stack *raw, struct stack *stack);
	void *merge_arg;
	/* What the program calls a thread: runtime_processes_thread_name(), with the same argument. May be NULL; NULL: not known. */
	const char *(*thread_name)(void *arg, pid_t tgid, pid_t tid, uint64_t start_ns);
	const char *(*no_maps)(void *arg, pid_t tgid); /* why those of a process are missing, or NULL; may be NULL */
	void *no_maps_arg;
};

/* The options must outlive it. NULL when memory is exhausted. */
struct offcpu_naming *offcpu_naming_create(const struct offcpu_naming_options *options);
void offcpu_naming_destroy(struct offcpu_naming *naming);

/* Asks the kernel for names of its addresses, which takes rights. False when memory is exhausted. */
bool offcpu_naming_ask_kernel(struct offcpu_naming *naming, const struct waits *waits);

/* From now on no file is read: frames have modules and offsets only. */
void offcpu_naming_forgo(struct offcpu_naming *naming);

/* One row by itself; its sum is that of `from`. False when memory is exhausted. */
bool offcpu_naming_row(struct offcpu_naming *naming, const struct wait_row *from, struct offcpu_row *out);

/*
 * Fills total, threads and rows of the profile, whose duration is set. Strings and stacks belong to the naming and the
 * waits. False when memory is exhausted.
 */
bool offcpu_naming_fill(struct offcpu_naming *naming, const struct waits *waits, struct offcpu_profile *out);

#endif
