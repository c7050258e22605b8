/* SPDX-License-Identifier: MIT */
#include "capture/altstack.h"

#include <string.h>

enum {
	WORD = sizeof(uint64_t),
	/* struct ucontext, alike on all architectures: flags, link, then the stack's address, its flags and its size */
	UC_STACK_START = 16,
	UC_STACK_LEN = 32,
};

static uint64_t word_at(const struct mem_copy *copy, uint64_t offset)
{
	uint64_t word = 0;

	if (offset <= copy->len && copy->len - offset >= WORD)
		memcpy(&word, copy->data + offset, WORD);
	return word;
}

bool altstack_interrupted(const struct arch *arch, const struct maps *maps, const struct altstack *alt,
			  const struct mem_copy *stack, uint64_t limit, struct mem_copy *out)
{
	uint64_t sp_in_context = (uint64_t)(arch->sigframe_offset[arch->dwarf_sp] - arch->sigframe_context_offset);

	if (arch->word != WORD || !alt->known || stack->start - alt->start >= alt->len)
		return false;
	for (uint64_t at = 0; at + UC_STACK_LEN + WORD <= stack->len; at += WORD) {
		const struct map_entry *map;
		uint64_t sp;

		if (word_at(stack, at + UC_STACK_START) != alt->start || word_at(stack, at + UC_STACK_LEN) != alt->len)
			continue;
		sp = word_at(stack, at + sp_in_context);
		map = maps_find(maps, sp);
		if (!map || sp - alt->start < alt->len)
			continue;
		*out = (struct mem_copy){.start = sp, .len = map->end - sp, .region_end = map->end};
		if (out->len > limit)
			out->len = limit;
		return true;
	}
	return false;
}
