/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_JIT_IMAGES_H
#define STAKEOUT_TARGET_JIT_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "target/modules.h"
#include "model/snapshot.h"

struct target;

/*
 * Code that a JIT compiler made and announced to debuggers: the GDB JIT interface. A program or library that has the
 * symbol __jit_debug_descriptor keeps a list of ELF objects there, in the target's memory. They are copied into the
 * snapshot while the process lives; each then is a module, with symbols, lines and unwind tables.
 */

/* The address that the file gives to __jit_debug_descriptor; false when it defines none. */
bool jit_images_find_descriptor(struct image *image, uint64_t *vaddr);

/*
 * Appends the objects of one list to snap->jit_images, by asking for them (ask.h). The process runs on meanwhile, so the
 * list may change under our eyes: what cannot be read, or is no ELF object, is left out. Notes tell what was lost.
 */
int jit_images_copy(struct target *target, struct snapshot *snap, uint64_t descriptor, struct err *err);

/* The modules of the objects in snap->jit_images, which must outlive it. Problems with one go into `notes`. */
struct jit_images;

/* NULL when memory is exhausted. */
struct jit_images *jit_images_create(const struct snapshot *snap, int root_fd, struct notes *notes);
void jit_images_destroy(struct jit_images *images);

/*
 * The module of the code at an address of the target, which is also the address in the module's own terms. Opens it on
 * the first call. Of several objects that claim an address the one announced last counts. NULL: there is none.
 */
struct module *jit_images_find(struct jit_images *images, uint64_t address);

#endif
