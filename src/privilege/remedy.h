/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PRIVILEGE_REMEDY_H
#define STAKEOUT_PRIVILEGE_REMEDY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What helps where something is refused or missing: this is the one place of these words, so that errors of all commands say
 * what `stakeout doctor` says. To add something: a value here, and its line in remedy.c.
 */
enum refused {
	REFUSED_NOTHING,
	REFUSED_PTRACE,       /* holding threads, reading registers and memory */
	REFUSED_BPF,
	REFUSED_KPROBE,
	REFUSED_STACKS,       /* both kinds, by BPF */
	REFUSED_PROC_STACKS,  /* both kinds, by /proc */
	REFUSED_KERNEL_STACK, /* /proc/PID/stack */
	REFUSED_MAP_FILES,
	REFUSED_MMAP_WATCH,   /* perf_event_open() for all processes */
	REFUSED_KALLSYMS,
	REFUSED_REALTIME,
	REFUSED_WINDOW,       /* real-time scheduling, and BPF to look at threads */
};

/* Who is refused it. */
struct standing {
	uint64_t capabilities; /* the effective ones: bit N is number N */
	bool is_root;          /* its user, that is, with whatever rights a container left it */
	bool is_filtered;      /* by seccomp */
	bool in_user_namespace; /* not the first one, where capabilities are worth less */
	int ptrace_scope;      /* of the kernel; -1: it has no such setting */
	int perf_paranoid;     /* likewise */
};

#define REMEDY_BTF "use a kernel with CONFIG_DEBUG_INFO_BTF=y, as those of all large distributions are"
#define HIDEPID_HIDES "/proc hides the processes of other users (hidepid)"
#define REMEDY_HIDEPID "sudo mount -o remount,hidepid=0 /proc, or run it as root"

/* The capabilities that it takes. */
uint64_t remedy_needs(enum refused what);

/* What else may be in the way, and helps: "where …: …"; NULL: nothing is known. */
const char *remedy_besides(enum refused what);

/* True when a setting of the kernel refuses it, whatever of these capabilities one has. */
bool remedy_is_forbidden(enum refused what, const struct standing *standing);

/*
 * How to get what is lacking of these capabilities: "sudo stakeout …, or once: sudo stakeout setup (cap_bpf)", or how to start
 * the container; then what else helps.
 */
enum { REMEDY_SIZE = 300 };
const char *remedy_for(enum refused what, const struct standing *standing, char buf[static REMEDY_SIZE]);

/* The standing of the calling process. */
void standing_read(struct standing *out);

/* The same for the calling process. In a parser, which has given up its rights, for a process without any. */
const char *remedy(enum refused what, char buf[static REMEDY_SIZE]);

#endif
