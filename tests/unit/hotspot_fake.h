/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_HOTSPOT_FAKE_H
#define STAKEOUT_TESTS_HOTSPOT_FAKE_H

#include <string.h>

#include "runtime/hotspot/layout.h"
#include "runtime/pages.h"

/* A virtual machine in a few pages: one code heap, and room for all that describes its code. */
enum {
	FAKE_BASE = 0x100000, /* everything lies from here on */
	FAKE_SIZE = 0x10000,
	FAKE_HEAP = FAKE_BASE, /* of 32 KiB, in segments of 128 bytes */
	FAKE_HEAP_END = FAKE_BASE + 0x8000,
	FAKE_SEGMAP = FAKE_BASE + 0x8000,
	FAKE_SEGMAP_END = FAKE_SEGMAP + 0x100,
	FAKE_DATA = FAKE_BASE + 0x9000, /* to be used freely */
	FAKE_LOG2_SEGMENT = 7,
	FAKE_BLOCK = 16, /* sizeof(HeapBlock) */
	FAKE_CALL_RETURN = FAKE_HEAP + 0x40,

	/* offsets of fields */
	FAKE_BLOB_CODE_BEGIN = 0,
	FAKE_BLOB_CODE_END = 8,
	FAKE_BLOB_NAME = 16,
	FAKE_BLOB_SIZE = 24,
	FAKE_BLOB_FRAME_SIZE = 28,
	FAKE_BLOB_FRAME_COMPLETE = 32,
	FAKE_NM_METHOD = 40,
	FAKE_NM_LEVEL = 48,
	FAKE_NM_ORIG_PC = 52,
	FAKE_NM_METADATA = 56,
	FAKE_NM_PCS = 60,
	FAKE_NM_DEPENDENCIES = 64,
	FAKE_NM_SCOPES = 72,
	FAKE_NM_DEOPT = 80,
	FAKE_CODE = 128, /* where the code of a blob begins */
	FAKE_PC_DESC = 16,
	FAKE_CONST_METHOD = 32,
	FAKE_POOL = 32,
};

struct fake {
	struct layout layout;
	struct pages pages;
	uint8_t bytes[FAKE_SIZE];
};

static inline void fake_put(struct fake *fake, uint64_t address, uint64_t value, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		fake->bytes[address - FAKE_BASE + i] = (uint8_t)(value >> 8 * i);
}

static inline void fake_field(struct fake *fake, enum hotspot_fact fact, uint64_t offset, unsigned size, bool is_signed)
{
	fake->layout.facts[fact] = layout_pack_field(offset, size, is_signed);
}

static inline void fake_init(struct fake *fake)
{
	uint64_t *facts = fake->layout.facts;

	memset(fake, 0, sizeof(*fake));
	memset(facts, 0xff, sizeof(fake->layout.facts));
	pages_init(&fake->pages, 1 << 20);
	memset(fake->bytes + (FAKE_SEGMAP - FAKE_BASE), 0xff, FAKE_SEGMAP_END - FAKE_SEGMAP);
	facts[HS_FEATURE] = 17;
	facts[HS_CALL_RETURN] = FAKE_CALL_RETURN;
	facts[HS_NHEAPS] = 1;
	facts[HS_HEAPS] = FAKE_HEAP;
	facts[HS_HEAPS + 1] = FAKE_HEAP_END;
	facts[HS_HEAPS + 2] = FAKE_SEGMAP;
	facts[HS_HEAPS + 3] = FAKE_SEGMAP_END;
	facts[HS_HEAPS + 4] = FAKE_LOG2_SEGMENT;
	facts[HS_SIZE_HEAP_BLOCK] = FAKE_BLOCK;
	facts[HS_SIZE_CONST_METHOD] = FAKE_CONST_METHOD;
	facts[HS_SIZE_CONSTANT_POOL] = FAKE_POOL;
	facts[HS_SIZE_PC_DESC] = FAKE_PC_DESC;
	fake_field(fake, HS_BLOB_CODE_BEGIN, FAKE_BLOB_CODE_BEGIN, 8, false);
	fake_field(fake, HS_BLOB_CODE_END, FAKE_BLOB_CODE_END, 8, false);
	fake_field(fake, HS_BLOB_NAME, FAKE_BLOB_NAME, 8, false);
	fake_field(fake, HS_BLOB_SIZE, FAKE_BLOB_SIZE, 4, true);
	fake_field(fake, HS_BLOB_FRAME_SIZE, FAKE_BLOB_FRAME_SIZE, 4, true);
	fake_field(fake, HS_BLOB_FRAME_COMPLETE, FAKE_BLOB_FRAME_COMPLETE, 4, true);
	fake_field(fake, HS_NM_METHOD, FAKE_NM_METHOD, 8, false);
	fake_field(fake, HS_NM_COMP_LEVEL, FAKE_NM_LEVEL, 1, true);
	fake_field(fake, HS_NM_ORIG_PC_OFFSET, FAKE_NM_ORIG_PC, 4, true);
	fake_field(fake, HS_NM_METADATA_OFFSET, FAKE_NM_METADATA, 4, true);
	fake_field(fake, HS_NM_SCOPES_PCS_OFFSET, FAKE_NM_PCS, 4, true);
	fake_field(fake, HS_NM_DEPENDENCIES_OFFSET, FAKE_NM_DEPENDENCIES, 4, true);
	fake_field(fake, HS_NM_SCOPES_DATA_BEGIN, FAKE_NM_SCOPES, 8, false);
	fake_field(fake, HS_NM_DEOPT_HANDLER, FAKE_NM_DEOPT, 8, false);
	fake_field(fake, HS_PC_DESC_PC_OFFSET, 0, 4, true);
	fake_field(fake, HS_PC_DESC_SCOPE_OFFSET, 4, 4, true);
	fake_field(fake, HS_METHOD_CONST, 8, 8, false);
	fake_field(fake, HS_METHOD_ACCESS_FLAGS, 16, 4, true);
	fake_field(fake, HS_CONST_CONSTANTS, 0, 8, false);
	fake_field(fake, HS_CONST_FLAGS, 8, 2, false);
	fake_field(fake, HS_CONST_CODE_SIZE, 10, 2, false);
	fake_field(fake, HS_CONST_NAME_INDEX, 12, 2, false);
	fake_field(fake, HS_POOL_HOLDER, 0, 8, false);
	fake_field(fake, HS_POOL_LENGTH, 8, 4, true);
	fake_field(fake, HS_POOL_SOURCE_FILE, 12, 2, false);
	fake_field(fake, HS_KLASS_NAME, 0, 8, false);
	fake_field(fake, HS_SYMBOL_LENGTH, 0, 2, false);
	fake_field(fake, HS_SYMBOL_BODY, 2, 8, false);
}

/* Everything is known now. */
static inline void fake_load(struct fake *fake)
{
	struct ask_range range = {.address = FAKE_BASE, .len = FAKE_SIZE, .got = FAKE_SIZE, .data = fake->bytes};
	struct ask answers = {.data = &range, .len = 1};

	pages_take(&fake->pages, &answers);
}

static inline void fake_deinit(struct fake *fake)
{
	pages_deinit(&fake->pages);
}

/* A blob from a segment on; its start. Its name is put behind it. */
static inline uint64_t fake_blob(struct fake *fake, unsigned segment, unsigned segments, const char *name, int frame_size)
{
	uint64_t start = FAKE_HEAP + ((uint64_t)segment << FAKE_LOG2_SEGMENT) + FAKE_BLOCK;
	uint64_t size = ((uint64_t)segments << FAKE_LOG2_SEGMENT) - FAKE_BLOCK, at = FAKE_DATA + 0x40 * segment;

	for (unsigned i = 0; i < segments; i++)
		fake_put(fake, FAKE_SEGMAP + segment + i, i < 255 ? i : 254, 1);
	memcpy(fake->bytes + (at - FAKE_BASE), name, strlen(name) + 1);
	fake_put(fake, start + FAKE_BLOB_CODE_BEGIN, start + FAKE_CODE, 8);
	fake_put(fake, start + FAKE_BLOB_CODE_END, start + size - 64, 8);
	fake_put(fake, start + FAKE_BLOB_NAME, at, 8);
	fake_put(fake, start + FAKE_BLOB_SIZE, size, 4);
	fake_put(fake, start + FAKE_BLOB_FRAME_SIZE, (uint64_t)(int64_t)frame_size, 4);
	fake_put(fake, start + FAKE_BLOB_FRAME_COMPLETE, 16, 4);
	return start;
}

/* A symbol at an address. */
static inline void fake_symbol(struct fake *fake, uint64_t at, const char *text)
{
	fake_put(fake, at, strlen(text), 2);
	memcpy(fake->bytes + (at + 2 - FAKE_BASE), text, strlen(text));
}

#endif
