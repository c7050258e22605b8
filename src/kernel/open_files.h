/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_KERNEL_OPEN_FILES_H
#define STAKEOUT_KERNEL_OPEN_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "bpf/file_record.h"

/* The BPF iterator over open files: descriptors of one thread, or of all processes, in one read. */
struct open_files;

/*
 * `tells_tcp`: of sockets of TCP their records tell more, which takes longer to load. The error message says what is missing. Only in the first pid namespace, and where the kernel loads it by itself (Linux 5.17): elsewhere /proc is
 * as fast.
 */
int open_files_create(bool tells_tcp, struct err *err, struct open_files **out);
void open_files_destroy(struct open_files *files);

/* What the next pass is to show: numbers of descriptors for that over one thread, inodes for that over all. */
void open_files_want(struct open_files *files, uint64_t number);

/* In a pass over all also sockets of TCP with these ports: those of other connections, too. */
void open_files_want_tcp(struct open_files *files, uint16_t local_port, uint16_t remote_port);

/*
 * Pipes, sockets and eventfds of a thread that have wanted numbers, and maybe others. Kernels from 6.1 to 6.12 show none but those of main threads.
 */
int open_files_of(struct open_files *files, pid_t tid, struct err *err);

/* Pipes and sockets of all processes that have wanted inodes, and maybe others; `any_fifo`: all pipes and fifos. */
int open_files_of_all(struct open_files *files, bool any_fifo, struct err *err);

/* The next record of the last pass, NULL at the end; file_tcp_of() is for one of the kind FILE_TCP. `pos` starts at 0. */
const struct file_record *open_files_next(const struct open_files *files, size_t *pos);

#endif
