/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TARGET_ROOTS_H
#define STAKEOUT_TARGET_ROOTS_H

#include <stdbool.h>

/*
 * Root directories of processes, each once, kept open while somebody uses it: debug files of a container are found below
 * its root also when its processes have ended. Any thread may use them.
 */
struct roots;
struct root;

struct roots *roots_create(void); /* NULL when memory is exhausted */
void roots_destroy(struct roots *roots); /* NULL is legal; all that were taken have been given back */

/*
 * The root that the descriptor is of; it is given back as often as it was taken. NULL, which need not be given back: it
 * is our own, or there is none, or too many are in use.
 */
struct root *roots_take(struct roots *roots, int root_fd);
void roots_give(struct roots *roots, struct root *root);

/* Its descriptor; -1 for NULL, as functions that take a root have it. */
int root_fd(const struct root *root);

/* Whether a descriptor is that of a root which is in use. */
bool roots_have(struct roots *roots, int fd);

#endif
