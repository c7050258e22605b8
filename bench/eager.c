/* SPDX-License-Identifier: MIT */
/* For LD_PRELOAD: the program's threads keep the priority and the CPUs that they have. Real-time priority is not refused. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int sched_setscheduler(pid_t pid, int policy, const struct sched_param *param)
{
	return policy == SCHED_BATCH ? 0 : (int)syscall(SYS_sched_setscheduler, pid, policy, param);
}

int setpriority(__priority_which_t which, id_t who, int priority)
{
	(void)which, (void)who, (void)priority;
	return 0;
}

int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
	(void)pid, (void)size, (void)set;
	return 0;
}
