/* SPDX-License-Identifier: MIT */
#include "privilege/capabilities.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What root's process keeps. The first ones are those that `stakeout setup` gives, which says what each is for. */
static const uint64_t needed =
	RIGHT(CAP_SYS_PTRACE) | RIGHT(CAP_BPF) | RIGHT(CAP_PERFMON) | RIGHT(CAP_SYS_NICE) | RIGHT(CAP_SYSLOG) |
	RIGHT(CAP_CHECKPOINT_RESTORE) | RIGHT(CAP_DAC_READ_SEARCH) |
	RIGHT(CAP_SYS_ADMIN) |    /* BPF before Linux 5.8; /proc/PID/stack */
	RIGHT(CAP_SYS_RESOURCE) | /* memory that BPF may lock, before Linux 5.11 */
	RIGHT(CAP_DAC_OVERRIDE) | RIGHT(CAP_CHOWN) | RIGHT(CAP_FOWNER) | /* output in directories of others */
	RIGHT(CAP_SETUID) | RIGHT(CAP_SETGID) |                          /* to become the caller */
	RIGHT(CAP_KILL);                                                 /* to end what runs as the caller */

enum { LOW_BITS = 32 };

bool capabilities_read(struct capabilities *out)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	*out = (struct capabilities){0};
	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	out->effective = data[0].effective | (uint64_t)data[1].effective << LOW_BITS;
	out->permitted = data[0].permitted | (uint64_t)data[1].permitted << LOW_BITS;
	out->inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << LOW_BITS;
	return true;
}

int capabilities_write(const struct capabilities *capabilities)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
		{
			.effective = (uint32_t)capabilities->effective,
			.permitted = (uint32_t)capabilities->permitted,
			.inheritable = (uint32_t)capabilities->inheritable,
		},
		{
			.effective = (uint32_t)(capabilities->effective >> LOW_BITS),
			.permitted = (uint32_t)(capabilities->permitted >> LOW_BITS),
			.inheritable = (uint32_t)(capabilities->inheritable >> LOW_BITS),
		},
	};

	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int capabilities_last(void)
{
	int number = CAP_LAST_CAP;

	/* The kernel may know more than the headers, or less. */
	while (prctl(PR_CAPBSET_READ, number + 1, 0, 0, 0) >= 0)
		number++;
	while (number >= 0 && prctl(PR_CAPBSET_READ, number, 0, 0, 0) < 0)
		number--;
	return number;
}

/* What may ever be had, also by what is executed. It takes a capability (CAP_SETPCAP) which is among those to go. */
static void limit(uint64_t kept)
{
	for (int i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if (!(kept & RIGHT(i)) && prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0)
			return;
}

static int keep(uint64_t kept)
{
	struct capabilities own;

	if (!capabilities_read(&own))
		return -errno;
	if (!own.permitted && !own.inheritable)
		return 0;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	own.effective &= kept;
	own.permitted &= kept;
	own.inheritable = 0;
	return capabilities_write(&own);
}

/* Without CAP_SYS_PTRACE, as in a container, the kernel lets one read only who has no capability that oneself lacks. */
void capabilities_drop_needless(void)
{
	struct capabilities own;

	if (!capabilities_read(&own) || !(own.effective & RIGHT(CAP_SYS_PTRACE)))
		return;
	limit(needed);
	keep(needed);
}

int capabilities_drop_all(void)
{
	return keep(0);
}
