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
 * The files behind a snapshot's executable mappings, opened as the target sees them: through
 * /proc/PID/map_files, then /proc/PID/root, checked by device and inode, so that another mount namespace, a chroot,
 * a deleted file or a memfd are found. A replayed snapshot's files are looked up by path and must have the
 * recorded build-id. Shared by unwinding and symbolization.
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
};

/* The module of a file that no process need have mapped. `image` is taken over, also on failure. */
int module_create(struct image *image, const char *path, struct err *err, struct module **out);
void module_destroy(struct module *module);

/* Opens every file now, while the process is there; fills map_entry.build_id. Keeps a pointer to the snapshot. */
int modules_create(struct snapshot *snap, bool ignore_deleted, struct err *err, struct modules **out);
void modules_destroy(struct modules *modules);

/*
 * The module mapped at an address of the target, and the address in the file's own terms. NULL: no file is mapped
 * there. Several mappings of one file give one module. Code that a JIT compiler announced to debuggers is a module too.
 */
struct module *modules_find(struct modules *modules, uint64_t address, uint64_t *vaddr);

/* The module's image now belongs to the caller, and the module has none. */
struct image *module_take_image(struct module *module);

struct snapshot *modules_snapshot(const struct modules *modules);

/* /proc/PID and the target's root directory; -1 for a replayed snapshot, or when it cannot be had. Not to be closed. */
int modules_proc_fd(const struct modules *modules);
int modules_root_fd(const struct modules *modules);

/* Opens the file behind a mapping for reading, as the target sees it. A descriptor for close(), or -errno. */
int modules_open_mapped(const struct modules *modules, const struct map_entry *entry, struct err *err);

#endif
