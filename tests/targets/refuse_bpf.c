/* SPDX-License-Identifier: MIT */
/*
 * For LD_PRELOAD: a kernel that refuses to load some BPF programs. REFUSE_BPF="NAME COUNT" refuses the first COUNT loads of
 * programs with that name, as a kernel without a helper would.
 */
/* build: -shared -fPIC -ldl */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdbool.h>
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
	    strncmp(attr->prog_name, name, sizeof(attr->prog_name)) != 0)
		return false;
	attempts += attr->log_level == 0; /* libbpf tries again for the log */
	return attempts <= count;
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
	if (nr == SYS_bpf && a[0] == BPF_PROG_LOAD && is_refused((const union bpf_attr *)a[1])) {
		errno = EINVAL;
		return -1;
	}
	return next(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}
