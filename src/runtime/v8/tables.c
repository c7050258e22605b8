/* SPDX-License-Identifier: MIT */
#include "runtime/v8/tables.h"

#include <stddef.h>

static const struct v8_tables known[] = {
	{
		/* Node.js 18 */
		.major = 10,
		.minor = 2,
		.code_data = 16,
		.code_positions = 24,
		.code_flags = 48,
		.code_size = 40,
		.maglev_skip = 8,
		.deopt_literals = 2,
		.deopt_shared = 6,
		.deopt_first = 11,
		.type_deopt = V8_TYPE_ARRAY,
		.type_literals = V8_TYPE_WEAK_ARRAY,
		.type_translation = V8_TYPE_BYTES,
		.operands = "2103113131111111115334111112",
		.has_update_count = true,
		.begin = {3, 3},
		.interpreted = {18, 18},
		.builtin = {19, 20},
		.literal = 22,
		.bytes = "000000000220000000000000000000001000000000001000000000010000000000000000000000000000000000"
			 "000000000002211000000000000000110010101000000000000000000000000000000000000000000000000000"
			 "000000000000000000",
		.scaled = "000001234231010000013311121110000222311331331332223333331222222222222222222222222111100011"
			  "144345423442322442222222211110220120222122220002111111111111111111111131224100001001343301"
			  "100000000000000000",
	},
	{
		/* Node.js 20 */
		.major = 11,
		.minor = 3,
		.code_data = 16,
		.code_positions = 24,
		.code_stream = 32,
		.code_flags = 48,
		.code_size = 56,
		.maglev_skip = 8,
		.deopt_literals = 2,
		.deopt_shared = 6,
		.deopt_first = 11,
		.type_deopt = V8_TYPE_ARRAY,
		.type_literals = V8_TYPE_WEAK_ARRAY,
		.type_translation = V8_TYPE_BYTES,
		.operands = "103311313111112111111115333401111121",
		.begin = {2, 3},
		.interpreted = {23, 24},
		.builtin = {25, 26},
		.literal = 29,
		.repeat = 35,
		.bytes = "000000000220000000000000000000001000000000001000000001010000000000000000000000000000000000"
			 "000000000002211000000000000000210010101000000000000000000000000000000000000000000000000000"
			 "000000000000000000",
		.scaled = "000001234231010000013311121110000222311331331332223333332222222222222222222222221111000111"
			  "344345423442322442222222211110220120222122220003111111111111111111111131224100001001343301"
			  "100000000000000000",
	},
	{
		/* Node.js 22 */
		.major = 12,
		.minor = 4,
		.code_data = 8,
		.code_positions = 16,
		.code_stream = 32,
		.code_flags = 48,
		.code_size = 52,
		.maglev_skip = 8,
		.deopt_literals = 2,
		.deopt_shared = 6,
		.deopt_first = 11,
		.type_deopt = V8_TYPE_TRUSTED_ARRAY,
		.type_literals = V8_TYPE_WEAK_ARRAY,
		.type_translation = V8_TYPE_BYTES,
		.operands = "5333213432103311111111111111111101111121",
		.begin = {12, 13},
		.interpreted = {0, 1},
		.builtin = {2, 3},
		.literal = 33,
		.repeat = 39,
		.bytes = "000000000220000000000000000000001000000000000010000000001010000000000000000000000000000000"
			 "000000000000002211000000000000000002100101010000000000000000000000000000000000000000000000"
			 "00000000000000000000000",
		.scaled = "000001234231010000013311121110000222313113313313324223333332222222222222222222222221111000"
			  "111344345423442322442222222220111002201202221222200031111111111111111111111312241000010013"
			  "43301100000000000000000",
	},
	{
		/* Node.js 24 */
		.major = 13,
		.minor = 6,
		.code_data = 8,
		.code_positions = 16,
		.code_stream = 32,
		.code_flags = 52,
		.code_size = 56,
		.safepoint_skip = 4,
		.maglev_skip = 4,
		.deopt_literals = 3,
		.deopt_bytecodes = 2,
		.deopt_shared = 7,
		.deopt_first = 12,
		.type_deopt = V8_TYPE_PROTECTED_ARRAY,
		.type_literals = V8_TYPE_TRUSTED_WEAK_ARRAY,
		.type_translation = V8_TYPE_TRUSTED_BYTES,
		.operands = "643321343331003311101111111111111111101111121",
		.begin = {14, 15},
		.interpreted = {0, 1},
		.builtin = {2, 3},
		.literal = 38,
		.repeat = 44,
		.bytes = "000000000220000000000000000000000010000000000000001000000000101000000000000000000000000000"
			 "000000000000000000221100000000000000000210010101000000000000000000000000000000000000000000"
			 "0000000000000000000000000000",
		.scaled = "000001234231010000013331111211100002223131133313331332422333333222222222222222222222222111"
			  "100111134434542344232244222222222011100220120222122220003111111111131111111111113312410000"
			  "1001343301100000000000000000",
	},
};

const struct v8_tables *v8_tables_find(const struct v8_layout *layout)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (layout->facts[V8_MAJOR] == known[i].major && layout->facts[V8_MINOR] == known[i].minor)
			return &known[i];
	return NULL;
}
