/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/stub.h"

#include <string.h>

#include "unwind/insn.h"

enum {
	WINDOW = 64,  /* bytes of code that are read at once, */
	AHEAD = 2048, /* and that are asked for at once: a loop, and what comes behind it */
};

struct routine {
	struct code_cache *cache;
	const struct blob *blob;
	uint8_t bytes[WINDOW];
};

/* Those of virtual threads exchange the stack below them. */
bool stub_is_routine(const struct blob *blob)
{
	static const char start[] = "StubRoutines (", other[] = "StubRoutines (continuation";

	return blob->kind == BLOB_STUB && !blob->frame_size && strncmp(blob->name, start, sizeof(start) - 1) == 0 &&
	       strncmp(blob->name, other, sizeof(other) - 1) != 0;
}

static struct span read_code(void *ctx, uint64_t address)
{
	struct routine *r = ctx;
	uint64_t end = r->blob->code_end, len = address < end ? end - address : 0;

	if (address < r->blob->code_begin || !len)
		return (struct span){0};
	if (!pages_read(r->cache->pages, address, r->bytes, len < WINDOW ? len : WINDOW)) {
		pages_foresee(r->cache->pages, address, len < AHEAD ? len : AHEAD);
		return (struct span){0};
	}
	return (struct span){.data = r->bytes, .len = len < WINDOW ? len : WINDOW, .vaddr = address};
}

bool stub_read_row(struct code_cache *cache, const struct arch *arch, const struct blob *blob, uint64_t pc, bool is_exact,
		   struct cfi_row *out)
{
	struct routine routine = {.cache = cache, .blob = blob};
	struct insn_source source = {.at = read_code, .ctx = &routine};

	return insn_read_source(&source, arch, NULL, pc, !is_exact, out);
}
