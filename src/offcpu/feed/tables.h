/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_FEED_TABLES_H
#define STAKEOUT_OFFCPU_FEED_TABLES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "offcpu/watch.h"
#include "base/err.h"
#include "target/modules.h"
#include "kernel/offcpu_probe.h"
#include "model/stack.h"
#include "symbol/calls.h"

/*
 * What BPF needs to walk user stacks, and what is needed to name them when the process is gone: the executable mappings
 * of each process (mapping_sets.h), and each file with code once, however many processes have it (objects.h).
 */
struct tables;

/* Whatever exceeds these limits is counted. In BPF a row of unwind information takes 16 bytes, a mapping 40. */
enum {
	TABLES_MAX_FILES = 4096,
	TABLES_MAX_ROWS = 4 << 20,     /* of all files */
	TABLES_MAX_MAPPINGS = 1 << 18, /* of all processes: the probe needs room for as many */
};

/* `probe` must outlive it. NULL when memory is exhausted. */
struct tables *tables_create(struct offcpu_probe *probe);
void tables_destroy(struct tables *tables);

/* Tells these of each process that is read, and of its end; they must outlive it. */
struct runtime_processes;
void tables_set_runtimes(struct tables *tables, struct runtime_processes *runtimes);

/*
 * Reads the map of a process, for the first time or again, and gives BPF what is new. BPF has asked for it, so it is
 * told when nothing is new. Several threads may read at once, but not the same process.
 */
int tables_read_process(struct tables *tables, pid_t tgid, struct err *err);
void tables_refuse_process(struct tables *tables, pid_t tgid); /* nobody will: BPF may ask again after a while */

/* The same when BPF has not asked: if it asks later, it is not put off because nothing was new this time. */
int tables_reread_process(struct tables *tables, pid_t tgid, struct err *err);

/*
 * Either of these, if all its files are known already. Otherwise -EAGAIN, and nothing has been done: making the tables
 * of a large file takes half a second, and only one thread at a time may do that. *new_bytes is how much code the new
 * files have.
 */
int tables_read_known(struct tables *tables, pid_t tgid, bool asked, struct err *err, uint64_t *new_bytes);

/*
 * Makes the table of a new file that tables_read_known() has met, also if nobody has it any more: others will. False: there
 * are none. Likewise by one thread at a time, and not while that reads processes with new files. BPF has the tables when
 * they have been given to it, which takes long, however many they are, and can be done by another thread.
 */
bool tables_make_one(struct tables *tables);
void tables_give(struct tables *tables);

uint64_t tables_made(struct tables *tables); /* rises when a new file has become known */

/*
 * The process has ended. Its mappings are kept until their room is needed: stacks that were walked with them may still
 * come, and children that have not called exec keep using them. True: some ended process made code whose names have to
 * be read now.
 */
bool tables_forget_process(struct tables *tables, pid_t tgid);
void tables_read_names(struct tables *tables); /* may take long */

/* BPF has found out itself what a process has mapped: this record, as it comes from the ring, with a new set. Any thread. */
void tables_add_found(struct tables *tables, const void *record, size_t len);

/*
 * When nobody reads processes any more: opens the files that were still to get a table, as stacks may lead there that are yet to
 * be walked (stack_copies.h).
 */
void tables_open_rest(struct tables *tables);

/* Then: the number that places in a file have which BPF has seen mapped, or 0 if it is not known; and the file itself, or NULL. */
uint32_t tables_find_file(struct tables *tables, const struct offcpu_file *file);
struct module *tables_open_file(struct tables *tables, uint32_t number);

/*
 * An address in terms that outlive its process: a file with code and the address in it, or a process and its address in
 * code that is in no file. `set` is that of the stack record with the address. 0: the address is in no known mapping.
 * Any thread may ask, while others read processes.
 */
uint64_t tables_place(struct tables *tables, uint32_t set, uint64_t address);

/* The same for a frame; when there is none, the frame's address itself. */
uint64_t tables_place_frame(struct tables *tables, uint32_t set, const struct raw_frame *frame);

/* The set of mappings that a process has now, which may be that of its parent; 0: none is known. Any thread may ask. */
uint32_t tables_set_of(const struct tables *tables, pid_t tgid);

/* For struct native_names_options: the module of such a number, and what is known of code that is in no file. */
struct module *tables_module(void *tables, uint64_t place, uint64_t *vaddr);
bool tables_find_made(void *tables, uint64_t place, uint64_t *address, struct calls *out);

/* What exceeded the limits. To be called when nobody reads processes any more. */
struct tables_losses {
	uint64_t mappings;
	uint64_t objects;
	uint64_t jit_processes; /* processes whose code in no file has no names */
};

struct tables_losses tables_losses(const struct tables *tables);

/* Why code made at run time may lack names. To be called when everything that can be named has been. */
typedef void (*tables_note_fn)(void *arg, const char *note);
void tables_notes(const struct tables *tables, tables_note_fn fn, void *arg);

/* For struct watch_ops: see there. */
bool tables_prepare_names(struct tables *tables, struct watch_targets *out);
void tables_keep_names(struct tables *tables);

#endif
