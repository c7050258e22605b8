/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_MODULES_H
#define STAKEOUT_TARGET_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "elf/image.h"
#include "model/snapshot.h"
#include "model/stack.h"

/*
 * The files behind a snapshot's executable mappings, opened as the target sees them (mapped_file.h). A replayed
 * snapshot's files are looked up by path and must have the recorded build-id. Shared by unwinding and symbolization.
 */
struct modules;

struct module {
	struct module_info info; /* path, build-id; `problem` when the file could not be opened */
	struct image *image;     /* NULL when it could not be opened: info.problem says why */
	int root_fd;             /* the target's root directory (for its debug files), or -1; not owned */
	bool jit;                /* made at run time and announced to debuggers: see jit_images.h */
	void *unwind;            /* belongs to the unwinder, freed by unwind_free */
	void (*unwind_free)(void *);
	void *symbol; /* belongs to the symbolizer, freed by symbol_free */
	void (*symbol_free)(void *);
	void (*symbol_keep)(void *); /* puts what was learnt into the cache, as symbol_free does first */
};

/* The module of a file that no process need have mapped. `image` is taken over, also on failure. */
int module_create(struct image *image, const char *path, struct err *err, struct module **out);
void module_destroy(struct module *module);

struct target;

struct modules_options {
	bool ignore_deleted; /* of a deleted file whatever has its path now */

	/*
	 * Files that the caller has already, of all that code is mapped from, are not opened: their mappings have no
	 * module. `identity` is that of image.h, 0 when it may not be asked for. NULL: there are none.
	 */
	bool (*is_known)(void *arg, const struct map_entry *entry, uint64_t identity);
	void *arg;
};

/*
 * Opens every file behind target->snap->maps now, while the process is there; fills map_entry.build_id. What exists of
 * its code in memory only goes into the snapshot, which is not changed afterwards. `options` may be NULL. Belongs to the
 * target: see target_open_files().
 */
int modules_create(struct target *target, const struct modules_options *options, struct err *err, struct modules **out);
/*
 * The same of a map whose files the caller has: `lend` gives the module of an entry of the map, or NULL, when it is first needed.
 * Everything must outlive this. NULL when memory is exhausted.
 */
typedef struct module *(*module_lender)(void *ctx, size_t entry);
struct modules *modules_lend(struct snapshot *snap, module_lender lend, void *ctx);
void modules_destroy(struct modules *modules);

/* What was learnt of them goes to the cache: for a process that then ends, without freeing what the kernel frees anyway. */
void modules_keep_symbols(struct modules *modules);
void module_keep_symbols(struct module *module);

/*
 * The module mapped at an address of the target, and the address in the file's own terms. NULL: no file is mapped there, or
 * one in memory (memfd) that is no object, as compilers use for what they make. Several mappings of one file give one
 * module. Code that a JIT compiler announced to debuggers is a module too.
 */
struct module *modules_find(struct modules *modules, uint64_t address, uint64_t *vaddr);

/*
 * Each file with code that could be opened, one after the other: *at is 0 before the first. NULL: there are no more. *entry is
 * a mapping of its code, and *bias what an address in it is above the file's own.
 */
struct module *modules_next(struct modules *modules, size_t *at, const struct map_entry **entry, uint64_t *bias);

/* The module's image now belongs to the caller, and the module has none. */
struct image *module_take_image(struct module *module);

struct target *modules_target(const struct modules *modules);

/* Notes of everybody who reads the files. */
struct notes *modules_notes(struct modules *modules);

#endif
