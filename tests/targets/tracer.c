/* SPDX-License-Identifier: MIT */
/* tracer run|hold PID: traces every thread of PID with PTRACE_SEIZE; "hold" also stops them all. */
#include "target.h"

#include <dirent.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static void seize(pid_t tid, int hold)
{
	int status;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		target_die("PTRACE_SEIZE");
	if (hold && (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) || waitpid(tid, &status, __WALL) != tid))
		target_die("PTRACE_INTERRUPT");
}

int main(int argc, char **argv)
{
	char path[64];
	struct dirent *entry;
	DIR *dir;

	target_init();
	if (argc != 3)
		return 2;
	snprintf(path, sizeof(path), "/proc/%s/task", argv[2]);
	dir = opendir(path);
	if (!dir)
		target_die(path);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			seize(atoi(entry->d_name), !strcmp(argv[1], "hold"));
	closedir(dir);
	target_ready();
	target_serve(NULL);
}
