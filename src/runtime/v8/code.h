/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_V8_CODE_H
#define STAKEOUT_RUNTIME_V8_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/v8/heap.h"
#include "runtime/v8/tables.h"

enum v8_tier { V8_BASELINE, V8_MAGLEV, V8_TURBOFAN };

/* A Code: instructions that V8 compiled from a function, and what it keeps of them. */
struct v8_code {
	const struct v8_tables *tables;
	uint64_t stream; /* the object that has the instructions */
	uint64_t object; /* the Code, which may be the same */
	enum v8_tier tier;
	uint64_t start; /* of the instructions; behind them is a table of safepoints */
	uint32_t size;
	uint64_t data;
	uint64_t positions;
};

/* The one whose instructions an address is among, or just behind. False: there is none of a function, or it cannot be read. */
bool v8_code_find(const struct heap *heap, uint64_t pc, struct v8_code *out);

/* The bytecode of a function, by its SharedFunctionInfo, and that of baseline code. */
bool v8_code_of_shared(const struct heap *heap, uint64_t shared, uint64_t *bytecode);
bool v8_code_bytecode(const struct heap *heap, const struct v8_code *code, uint64_t *bytecode);

#endif
