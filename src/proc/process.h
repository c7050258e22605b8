/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PROC_PROCESS_H
#define STAKEOUT_PROC_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/maps.h"
#include "proc/task_status.h"

/*
 * A process as /proc shows it. Its directory is kept open, so every read is of this process: if its pid is given to
 * another one later, reads fail with ESRCH.
 */
struct process {
	pid_t pid;
	int pidfd;   /* -1: the kernel has none (before 5.3), or /proc is of another pid namespace */
	int dir_fd;  /* /proc/PID */
	int task_fd; /* /proc/PID/task */
	int mm_fd;   /* /proc/TID of a thread that has the address space: a main thread that has ended has none */
	pid_t mm_tid;
};

/*
 * Fails with a sentence when there is no such process. When `pid` is a thread of another process: -EINVAL, and out->pid
 * is that process.
 */
int process_open(pid_t pid, struct err *err, struct process *out);
void process_close(struct process *process);

/*
 * Whether /proc has the pids of our own pid namespace. If not, ptrace, process_vm_readv and BPF take them for other
 * processes, or none: then -EXDEV with a sentence, and only what is read below /proc/PID belongs to that process.
 * Checked only once.
 */
int process_check_numbers(struct err *err);

/* No process is hidden from us (hidepid), nor what the first one has. */
bool process_sees_all(void);

/* Fails with a sentence when /proc is missing, or something else is in its place: then no process can be found. */
int process_check_mounted(struct err *err);

/* Our own pid in /proc; 0: we have none there. */
pid_t process_self(void);

/* The path of this program; false, with errno, when that cannot be told. */
bool process_own_program(char *buf, size_t size);

/* What /proc/PID/status tells. 0 or -errno. */
int process_status(const struct process *process, struct task_status *out);

/* The same process again, with its own descriptors. */
int process_dup(const struct process *process, struct err *err, struct process *out);

/*
 * True while the pid still belongs to this process, ended or not. Whatever was learnt by pid before is then about this
 * process.
 */
bool process_has_number(const struct process *process);

/* The process that a thread belongs to; 0: there is no such thread. */
pid_t process_of_thread(pid_t tid);

/* False when none of its threads is left, or there is no such process. */
bool process_lives(pid_t pid);

/* Chooses mm_tid anew; to be called again when threads may have ended. */
void process_find_memory(struct process *process);

/* How many threads there are now, or -errno. */
int process_count_threads(const struct process *process);

/* Reads a small file below the directory `fd` whole, NUL-terminated; its length, or -errno. Cut at size - 1. */
ssize_t process_read_file(int fd, const char *path, char *buf, size_t size);

/* The arguments of a process, each with its NUL, likewise. It may block, as long as somebody has its memory map locked. */
ssize_t process_read_arguments(pid_t pid, char *buf, size_t size);

struct tid_list {
	VEC_FIELDS(pid_t);
};

static inline bool tid_list_has(const struct tid_list *list, pid_t tid)
{
	for (size_t i = 0; i < list->len; i++)
		if (list->data[i] == tid)
			return true;
	return false;
}

/* Thread ids in the order of the directory. -ESRCH when the process is gone. */
int process_list_tids(const struct process *process, struct tid_list *out);

/* From /proc/PID/stat. */
struct process_info {
	char comm[17];
	char state;
	bool kernel_thread;
	uint64_t start_time;  /* in clock ticks since boot */
};

int process_info(const struct process *process, struct process_info *out);

/* Its number in its own pid namespace; 0: that is the one of /proc, or it has ended. */
pid_t process_inner_pid(const struct process *process);

/* A process that was found, and is opened later: by then its number may be another one's. */
struct process_id {
	pid_t pid;
	uint64_t start_time; /* as above; 0: whoever has the number is meant */
};

struct process_ids {
	VEC_FIELDS(struct process_id);
};

static inline bool process_ids_have(const struct process_ids *ids, pid_t pid)
{
	for (size_t i = 0; i < ids->len; i++)
		if (ids->data[i].pid == pid)
			return true;
	return false;
}

/* -ESRCH with a sentence: the process that was found has ended, and this is another one. */
int process_check_id(const struct process *process, struct process_id id, struct err *err);

/* True when none of its threads lives, even if it is still a zombie: the main thread may end before the others. */
bool process_has_ended(const struct process *process);

/* A number that changes with every exec: where the stack starts. 0 when not permitted. */
uint64_t process_generation(const struct process *process);

/* What /proc says that a descriptor of a thread is, such as "socket:[1234]", NUL-terminated; its length, or -errno. */
ssize_t process_fd_link(const struct process *process, pid_t tid, int fd, char *buf, size_t size);

/* The target of /proc/PID/exe without " (deleted)"; NULL when there is none or it is not permitted. */
const char *process_exe(const struct process *process, struct arena *arena);

/* Appends the memory map to `out`; strings go to the arena. */
int process_maps(const struct process *process, struct arena *arena, struct err *err, struct maps *out);

/*
 * Says why `what` of this process was refused, and the three ways to get permission: root, CAP_SYS_PTRACE,
 * ptrace_scope. Names the process's owner and the obstacle, if it can be told. Returns -code.
 */
int process_explain_denied(const struct process *process, int code, const char *what, struct err *err);

#endif
