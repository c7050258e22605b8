/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_KERNEL_OPEN_FILES_H
#define STAKEOUT_KERNEL_OPEN_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "bpf/file_record.h"
#include "kernel/words.h"

/* The BPF iterator over open files: descriptors of one thread, or of all processes, in one read. */
struct open_files;

/*
 * `tells_tcp`: of sockets of TCP their records tell more, which takes longer to load. The error message says what is missing. Only in the first
 * pid namespace, and where the kernel loads it by itself (Linux 5.17): elsewhere /proc is as fast.
 */
int open_files_create(bool tells_tcp, struct err *err, struct open_files **out);
void open_files_destroy(struct open_files *files);

/* What a look has shown. */
struct file_records {
	struct words words;
};

/*
 * Pipes, sockets and eventfds of a thread that have wanted numbers, and maybe others. Kernels from 6.1 to 6.12 show none but those of main threads.
 * With 0 in place of the thread, pipes and sockets of all processes that have wanted inodes, and maybe others.
 */
int open_files_look(struct open_files *files, pid_t tid, const struct file_wants *wants, struct err *err, struct file_records *out);

/* The next record, NULL at the end; file_tcp_of() is for one of the kind FILE_TCP. `pos` starts at 0. */
const struct file_record *file_records_next(const struct file_records *records, size_t *pos);
void file_records_deinit(struct file_records *records);

#endif
