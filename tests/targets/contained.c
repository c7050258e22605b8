/* SPDX-License-Identifier: MIT */
/*
 * contained ENGINE CAPABILITIES [-u UID] COMMAND…: runs a command as a container engine would: with its default
 * capabilities and those that are added ("19,39", or "-"), and a seccomp filter that refuses what its default profile refuses.
 *
 * docker: as Docker, and as containerd with Kubernetes' RuntimeDefault; docker-old: before 4.8 and in old profiles, where ptrace
 * and process_vm_readv take a capability; fixed: as that, and capabilities open nothing; cri-o: with fewer capabilities; unconfined: without a filter, which is what
 * Kubernetes does unless it is told otherwise.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(capability) (UINT64_C(1) << (capability))

#define CRI_O (BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FSETID) | BIT(CAP_FOWNER) | BIT(CAP_SETGID) | BIT(CAP_SETUID) | \
	       BIT(CAP_SETPCAP) | BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_KILL))
#define DOCKER (CRI_O | BIT(CAP_NET_RAW) | BIT(CAP_SYS_CHROOT) | BIT(CAP_MKNOD) | BIT(CAP_AUDIT_WRITE) | BIT(CAP_SETFCAP))

static const struct engine {
	const char *name;
	uint64_t capabilities;
	bool filters;
	bool traces; /* without a capability */
	bool is_fixed; /* a profile that opens nothing with capabilities */
} engines[] = {
	{"docker", DOCKER, true, true, false},
	{"docker-old", DOCKER, true, false, false},
	{"fixed", DOCKER, true, false, true},
	{"cri-o", CRI_O, true, true, false},
	{"unconfined", DOCKER, false, true, false},
};

/* What profiles refuse, but for who has one of these capabilities. All else that there is they allow. */
static const struct {
	long nr;
	uint64_t allowing;
} refused[] = {
	{SYS_bpf, BIT(CAP_SYS_ADMIN) | BIT(CAP_BPF)},
	{SYS_perf_event_open, BIT(CAP_SYS_ADMIN) | BIT(CAP_PERFMON)},
	{SYS_syslog, BIT(CAP_SYS_ADMIN) | BIT(CAP_SYSLOG)},
	{SYS_kcmp, BIT(CAP_SYS_PTRACE)},
	{SYS_pidfd_getfd, BIT(CAP_SYS_PTRACE)},
	{SYS_process_madvise, BIT(CAP_SYS_PTRACE)},
	{SYS_open_by_handle_at, BIT(CAP_DAC_READ_SEARCH)},
	{SYS_fanotify_init, BIT(CAP_SYS_ADMIN)},
	{SYS_fsconfig, BIT(CAP_SYS_ADMIN)},
	{SYS_fsmount, BIT(CAP_SYS_ADMIN)},
	{SYS_fsopen, BIT(CAP_SYS_ADMIN)},
	{SYS_fspick, BIT(CAP_SYS_ADMIN)},
	{SYS_mount, BIT(CAP_SYS_ADMIN)},
	{SYS_move_mount, BIT(CAP_SYS_ADMIN)},
	{SYS_open_tree, BIT(CAP_SYS_ADMIN)},
	{SYS_pivot_root, 0},
	{SYS_quotactl, BIT(CAP_SYS_ADMIN)},
	{SYS_setdomainname, BIT(CAP_SYS_ADMIN)},
	{SYS_sethostname, BIT(CAP_SYS_ADMIN)},
	{SYS_setns, BIT(CAP_SYS_ADMIN)},
	{SYS_umount2, BIT(CAP_SYS_ADMIN)},
	{SYS_unshare, BIT(CAP_SYS_ADMIN)},
	{SYS_reboot, BIT(CAP_SYS_BOOT)},
	{SYS_chroot, BIT(CAP_SYS_CHROOT)},
	{SYS_delete_module, BIT(CAP_SYS_MODULE)},
	{SYS_init_module, BIT(CAP_SYS_MODULE)},
	{SYS_finit_module, BIT(CAP_SYS_MODULE)},
	{SYS_acct, BIT(CAP_SYS_PACCT)},
	{SYS_settimeofday, BIT(CAP_SYS_TIME)},
	{SYS_clock_settime, BIT(CAP_SYS_TIME)},
	{SYS_vhangup, BIT(CAP_SYS_TTY_CONFIG)},
	{SYS_get_mempolicy, BIT(CAP_SYS_NICE)},
	{SYS_mbind, BIT(CAP_SYS_NICE)},
	{SYS_set_mempolicy, BIT(CAP_SYS_NICE)},
	{SYS_move_pages, 0},
	{SYS_migrate_pages, 0},
	{SYS_add_key, 0},
	{SYS_keyctl, 0},
	{SYS_request_key, 0},
	{SYS_kexec_load, 0},
	{SYS_swapon, 0},
	{SYS_swapoff, 0},
	{SYS_userfaultfd, 0},
	{SYS_io_uring_setup, 0},
	{SYS_io_uring_enter, 0},
	{SYS_io_uring_register, 0},
};

static const long tracing[] = {SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev};

static void die(const char *what)
{
	fprintf(stderr, "contained: %s: %s\n", what, strerror(errno));
	exit(77);
}

enum { MAX_FILTER = 256 };

struct filter {
	struct sock_filter code[MAX_FILTER];
	unsigned short len;
};

static void add(struct filter *filter, struct sock_filter instruction)
{
	filter->code[filter->len++] = instruction;
}

static void load(struct filter *filter, size_t offset)
{
	add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void refuse(struct filter *filter, long nr, int code)
{
	add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1));
	add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)code));
}

/* No new namespaces; the flags of clone3 are in memory, which no filter sees. */
static void refuse_namespaces(struct filter *filter)
{
	const uint32_t flags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

	refuse(filter, SYS_clone3, ENOSYS);
	add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3));
	load(filter, offsetof(struct seccomp_data, args));
	add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flags, 0, 1));
	add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
}

static void install_filter(const struct engine *engine, uint64_t capabilities)
{
	struct filter filter = {.len = 0};
	struct sock_fprog program = {.filter = filter.code};

	load(&filter, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (!(refused[i].allowing & capabilities))
			refuse(&filter, refused[i].nr, EPERM);
	for (size_t i = 0; i < sizeof(tracing) / sizeof(tracing[0]); i++)
		if (!engine->traces && !(capabilities & BIT(CAP_SYS_PTRACE)))
			refuse(&filter, tracing[i], EPERM);
	if (!(capabilities & BIT(CAP_SYS_ADMIN)))
		refuse_namespaces(&filter);
	add(&filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	program.len = filter.len;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		die("seccomp");
}

static void limit_capabilities(uint64_t capabilities)
{
	for (int i = 0; i < 64; i++)
		if (!(capabilities >> i & 1) && prctl(PR_CAPBSET_READ, i) == 1 && prctl(PR_CAPBSET_DROP, i) < 0)
			die("capabilities");
}

static void set_capabilities(uint64_t capabilities)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
		{.effective = (uint32_t)capabilities, .permitted = (uint32_t)capabilities},
		{.effective = (uint32_t)(capabilities >> 32), .permitted = (uint32_t)(capabilities >> 32)},
	};

	if (syscall(SYS_capset, &header, data) < 0)
		die("capset");
}

int main(int argc, char **argv)
{
	const struct engine *engine = NULL;
	uint64_t capabilities;
	int command = 3;
	uid_t uid = 0;

	for (size_t i = 0; argc > 3 && i < sizeof(engines) / sizeof(engines[0]); i++)
		if (strcmp(argv[1], engines[i].name) == 0)
			engine = &engines[i];
	if (!engine)
		return 2;
	capabilities = engine->capabilities;
	for (char *p = argv[2]; *p && *p != '-'; p += *p == ',')
		capabilities |= BIT(strtoul(p, &p, 10));
	if (strcmp(argv[3], "-u") == 0 && argc > 5) {
		uid = (uid_t)atoi(argv[4]);
		command = 5;
	}
	if (engine->filters)
		install_filter(engine, engine->is_fixed ? 0 : capabilities);
	limit_capabilities(capabilities);
	if (uid && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
		die("setresuid");
	if (!uid)
		set_capabilities(capabilities);
	execvp(argv[command], argv + command);
	die(argv[command]);
}
