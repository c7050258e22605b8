/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_KERNEL_KALLSYMS_H
#define STAKEOUT_KERNEL_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "privilege/broker.h"

/* The kernel's own names of its code, from /proc/kallsyms: a file of megabytes, read whole and kept compact. */
struct kallsyms;

struct kernel_symbol {
	uint64_t start;
	const char *name;   /* lives as long as the table */
	const char *module; /* NULL for the kernel proper; likewise */
};

/* -EPERM, and how to get permission, when the kernel hides its addresses: then all of them are zero. */
int kallsyms_load(const char *path, struct err *err, struct kallsyms **out);
void kallsyms_destroy(struct kallsyms *ks);

/* The symbol at or before an address of kernel code. */
bool kallsyms_find(const struct kallsyms *ks, uint64_t address, struct kernel_symbol *out);

size_t kallsyms_len(const struct kallsyms *ks);

/* A broker opens the file for its parser. */
void kallsyms_errand_add(struct parser_job *job);

/* A line of /proc/PID/task/TID/stack without its address: "symbol+0x1/0x2 [module]". */
struct kernel_text {
	const char *name; /* name_len bytes inside the text */
	size_t name_len;
	const char *module; /* likewise; NULL for the kernel proper */
	size_t module_len;
	uint64_t offset;
	bool has_offset;
};

/* False when there is no name in it (a bare address, an empty line). */
bool kernel_text_parse(const char *text, struct kernel_text *out);

#endif
