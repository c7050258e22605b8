/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_CODE_H
#define STAKEOUT_RUNTIME_PYTHON_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "bpf/runtime_layout.h"
#include "model/mem.h"
#include "model/stack.h"
#include "runtime/python/layout.h"

/* Code objects: the functions of the program. They do not change, so that they can be read when nobody is held. */

struct python_code {
	bool confirmed;   /* it was the same after it was read (python_codes_confirm) */
	bool gone;        /* it was freed before it was read: it had another version; */
	bool valid;       /* it is a code object; else nothing below is set */
	const char *name; /* qualified where the version has that; NULL: it cannot be read */
	const char *file;
	uint32_t first_line;
	const uint8_t *lines; /* the table, or NULL */
	size_t nlines;
	uint64_t start; /* of its instructions; 0: they are elsewhere (PY_FRAMES_OBJECTS) */
	uint64_t size;  /* of these, in bytes */
};

struct python_codes {
	const struct python_layout *layout;
	struct mem *mem;
	struct arena *arena;
	struct u64map by_address; /* struct python_code */
	uint64_t lines_bytes;     /* of their line tables */
};

void python_codes_deinit(struct python_codes *codes);

/*
 * The code object at an address, read once. NULL when memory is exhausted. `version`: as it was when its frame was seen, or
 * 0: not known; if it is another by the time it is read, it is gone.
 */
const struct python_code *python_codes_find(struct python_codes *codes, uint64_t address, uint32_t version);
bool python_codes_knows(const struct python_codes *codes, uint64_t address, uint32_t version); /* it was read */

/*
 * Of one that was just read while the process ran on, through memory that is read anew: if another has taken its place
 * meanwhile, what was read may be of both, and it is gone, which false says.
 */
bool python_codes_confirm(struct python_codes *codes, struct mem *fresh, uint64_t address, uint32_t version);

/* Of one that is known to be gone; nothing is read. False when memory is exhausted. */
bool python_codes_give_up(struct python_codes *codes, uint64_t address, uint32_t version);

/* The version of what is at an address now, as BPF tells it, and what BPF needs for that. 0: there is no code object. */
uint32_t python_code_version(const struct python_layout *layout, struct mem *mem, uint64_t address);
void python_code_describe(const struct python_layout *layout, struct offcpu_python *out);

/* Where in its instructions a frame is, in bytes; -1: before the first. False: outside of them, so it is another's. */
bool python_code_offset(const struct python_layout *layout, const struct python_code *code, uint64_t instr, int64_t *offset);

/* What is known of a frame that is there: function, file and line. `code` may be one that is not valid. */
void python_code_name(const struct python_layout *layout, const struct python_code *code, uint64_t instr, struct frame *frame);

/* 0: not known. */
uint32_t python_code_line(const struct python_layout *layout, const struct python_code *code, int64_t offset);

#endif
