/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_V8_TABLES_H
#define STAKEOUT_RUNTIME_V8_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/v8/layout.h"

/*
 * How a version of V8 keeps what it needs to leave compiled code, as far as its file does not tell: where a Code has its
 * fields, which tables there are, and how many operands what is in them has. All of it is checked by what is found there.
 */
struct v8_tables {
	uint16_t major, minor;

	/* fields of a Code */
	uint16_t code_data;      /* optimised: DeoptimizationData; baseline: the bytecode */
	uint16_t code_positions; /* baseline: how far the instructions of each bytecode go */
	uint16_t code_stream;
	uint16_t code_flags;
	uint16_t code_size;

	/* bytes of a table of safepoints before its length, and after what tells how its entries are made, in Maglev's code */
	uint8_t safepoint_skip;
	uint8_t maglev_skip;

	/* slots of a DeoptimizationData, and what their types are */
	uint8_t deopt_literals;
	uint8_t deopt_bytecodes; /* 0: functions tell their bytecode */
	uint8_t deopt_shared;
	uint8_t deopt_first; /* of the entries */
	enum v8_fact type_deopt;
	enum v8_fact type_literals;
	enum v8_fact type_translation;

	/* instructions of a translation: the number of operands of each, as a digit, and which is which */
	const char *operands;
	bool has_update_count; /* it begins with how many frames there are; otherwise with how far back the one is that it repeats */
	uint8_t begin[2];
	uint8_t interpreted[2];
	uint8_t builtin[2];
	uint8_t literal;
	uint8_t repeat; /* as the one it repeats; 0: there is none */

	/* bytecodes: bytes of operands that are the same at each scale, and operands that are as wide as the scale says */
	const char *bytes;
	const char *scaled;
};

/* NULL: nothing is known of this version. */
const struct v8_tables *v8_tables_find(const struct v8_layout *layout);

#endif
