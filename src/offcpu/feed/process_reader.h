/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_FEED_PROCESS_READER_H
#define STAKEOUT_OFFCPU_FEED_PROCESS_READER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "offcpu/feed/requests.h"
#include "offcpu/feed/tables.h"

/*
 * Reads processes into the tables as they are asked for. When all files are known that takes a tenth of a millisecond,
 * and one thread does nothing else; processes with new files wait for a second thread, which makes their tables.
 */
struct process_reader;

/* `tables` must outlive it. NULL when memory is exhausted. */
struct process_reader *process_reader_create(struct tables *tables);
void process_reader_destroy(struct process_reader *reader);

/*
 * Reads a process now. Before process_reader_start(). Without its maps its waits are still reported, with kernel
 * stacks: a process whose maps may not be read is not an error.
 */
int process_reader_read(struct process_reader *reader, pid_t tgid, struct err *err);

/* Starts the threads that work on requests, unless it was done. */
int process_reader_start(struct process_reader *reader, struct err *err);
void process_reader_ask(struct process_reader *reader, pid_t tgid, uint32_t what); /* enum request_flag; any thread */
bool process_reader_wait(struct process_reader *reader, uint64_t until_ns); /* as requests_wait() */
void process_reader_end(struct process_reader *reader);

/* Why the maps of a process may not be read, or NULL; lives as long as the reader. Any thread may ask. */
const char *process_reader_denied(struct process_reader *reader, pid_t tgid);

struct process_reader_counts {
	uint64_t denied; /* processes for which process_reader_denied() had a reason */
	uint64_t gone;   /* processes that had ended when a stack needed their maps */
	uint64_t lost;   /* requests for which there was no room */
};

struct process_reader_counts process_reader_counts(struct process_reader *reader);

#endif
