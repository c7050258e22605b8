/* SPDX-License-Identifier: MIT */
/*
 * For LD_PRELOAD: a kernel that refuses to load some BPF programs. REFUSE_BPF="NAME COUNT" refuses the first COUNT loads of
 * programs with that name; REFUSE_LOADER, whatever it is, all programs that would load others. REFUSE_HELPER=NUMBER is a
 * kernel without that helper: it is called by a number that no kernel has, so that the verifier refuses programs which may
 * come to it, and no others. REFUSE_BPF_GROWING, whatever it is: a kernel whose BPF has no allocator of its own, and that
 * refuses hash tables which grow. REFUSE_MAP=NUMBER: a kernel without maps of that type.
 */
/* build: -shared -fPIC -ldl */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static bool is_refused(const union bpf_attr *attr)
{
	static int attempts;
	const char *what = getenv("REFUSE_BPF");
	char name[sizeof(attr->prog_name) + 1] = "";
	int count = 0;

	if (!what || sscanf(what, "%16s %d", name, &count) != 2 ||
	    strncmp(attr->prog_name, name, sizeof(attr->prog_name) - 1) != 0) /* longer names are cut off */
		return false;
	attempts += attr->log_level == 0; /* libbpf tries again for the log */
	return attempts <= count;
}

static bool is_growing_table(const union bpf_attr *attr)
{
	return getenv("REFUSE_BPF_GROWING") && attr->map_type == BPF_MAP_TYPE_HASH &&
	       attr->map_flags & BPF_F_NO_PREALLOC;
}

static bool is_map_refused(const union bpf_attr *attr)
{
	const char *what = getenv("REFUSE_MAP");

	return is_growing_table(attr) || (what && attr->map_type == (uint32_t)atoi(what));
}

struct btf;

int btf__find_by_name_kind(const struct btf *btf, const char *name, unsigned kind)
{
	int (*next)(const struct btf *, const char *, unsigned);

	if (getenv("REFUSE_BPF_GROWING") && strcmp(name, "bpf_mem_alloc") == 0)
		return -ENOENT;
	next = (int (*)(const struct btf *, const char *, unsigned))dlsym(RTLD_NEXT, "btf__find_by_name_kind");
	return next ? next(btf, name, kind) : -ENOENT;
}

/* Calls to the helper are changed in a copy. False: there is no memory for it. */
static bool take_helper_away(union bpf_attr *attr)
{
	enum { NO_HELPER = 0x7fffff };
	const char *what = getenv("REFUSE_HELPER");
	const size_t size = attr->insn_cnt * sizeof(struct bpf_insn);
	static struct bpf_insn *copy; /* the last one */

	if (!what || attr->insns == (uintptr_t)copy) /* libbpf tries again for the log */
		return true;
	free(copy);
	copy = malloc(size);
	if (!copy)
		return false;
	memcpy(copy, (const void *)(uintptr_t)attr->insns, size);
	for (uint32_t i = 0; i < attr->insn_cnt; i++)
		if (copy[i].code == (BPF_JMP | BPF_CALL) && copy[i].src_reg == 0 && copy[i].imm == atoi(what))
			copy[i].imm = NO_HELPER;
	attr->insns = (uintptr_t)copy;
	return true;
}

static bool is_loader(const union bpf_attr *attr)
{
	return getenv("REFUSE_LOADER") && strcmp(attr->prog_name, "__loader.prog") == 0;
}

static bool is_load_refused(union bpf_attr *attr)
{
	return is_loader(attr) || is_refused(attr) || !take_helper_away(attr);
}

long syscall(long nr, ...)
{
	static long (*next)(long, ...);
	long a[6];
	va_list ap;

	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (nr == SYS_bpf && ((a[0] == BPF_PROG_LOAD && is_load_refused((union bpf_attr *)a[1])) ||
			      (a[0] == BPF_MAP_CREATE && is_map_refused((const union bpf_attr *)a[1])))) {
		errno = EINVAL;
		return -1;
	}
	return next(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}
