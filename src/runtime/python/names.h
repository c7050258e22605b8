/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_NAMES_H
#define STAKEOUT_RUNTIME_PYTHON_NAMES_H

#include "model/mem.h"
#include "runtime/python/threads.h"

/* The names of a module that an interpreter has loaded: a dictionary; 0: it has not. */
uint64_t python_module_dict(const struct python_layout *layout, struct mem *mem, uint64_t interp, const char *module);

/*
 * What the module `threading` knows of the listed threads: fills in `name`, the address of a str, and `is_daemon`. A program
 * that has not imported it has no such names. What changes meanwhile is left out.
 */
void python_names_read(const struct python_layout *layout, struct mem *mem, struct python_threads *threads);

#endif
