/* SPDX-License-Identifier: MIT */
#include "proc/sysvipc.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sem.h>
#include <unistd.h>

#include "base/cleanup.h"

static bool has_our_namespace(const struct process *process)
{
	char its[64], ours[64];
	const ssize_t len = readlinkat(process->dir_fd, "ns/ipc", its, sizeof(its));

	return len > 0 && readlink("/proc/self/ns/ipc", ours, sizeof(ours)) == len && memcmp(its, ours, (size_t)len) == 0;
}

/* Lines of numbers, the key and the number of the object first; lspid and lrpid are the sixth and the seventh of a queue. */
static bool find(const char *path, int id, struct sysv_object *out, int *sender, int *receiver)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char line[512];
	int key, number;

	while (f && fgets(line, sizeof(line), f)) {
		*sender = *receiver = 0;
		if (sscanf(line, "%d %d %*s %*s %*s %d %d", &key, &number, sender, receiver) < 2 || number != id)
			continue;
		*out = (struct sysv_object){.key = (uint32_t)key};
		return true;
	}
	return false;
}

bool sysv_semaphore_read(const struct process *process, int id, int index, struct sysv_object *out)
{
	int unused[2], pid;

	if (!has_our_namespace(process) || !find("/proc/sysvipc/sem", id, out, &unused[0], &unused[1]))
		return false;
	pid = index >= 0 ? semctl(id, index, GETPID) : 0;
	out->last = pid > 0 ? pid : 0;
	return true;
}

bool sysv_queue_read(const struct process *process, int id, bool sender, struct sysv_object *out)
{
	int sent, received;

	if (!has_our_namespace(process) || !find("/proc/sysvipc/msg", id, out, &sent, &received))
		return false;
	out->last = sender ? sent : received;
	return true;
}
