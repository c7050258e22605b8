/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_PYMEM_H
#define STAKEOUT_TESTS_PYMEM_H

#include "cmocka_all.h"

#include <errno.h>
#include <string.h>

#include "model/mem.h"
#include "runtime/python/layout.h"

/* The memory of a made-up process, from PYMEM_BASE on. */
enum { PYMEM_BASE = 0x100000, PYMEM_SIZE = 1 << 20 };

struct pymem {
	struct mem mem;
	unsigned reads;
	uint8_t bytes[PYMEM_SIZE];
};

static inline ssize_t pymem_read(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	struct pymem *m = (struct pymem *)mem;
	uint64_t offset = address - PYMEM_BASE;

	m->reads++;
	if (offset >= PYMEM_SIZE)
		return -EFAULT;
	if (len > PYMEM_SIZE - offset)
		len = PYMEM_SIZE - offset;
	memcpy(buf, m->bytes + offset, len);
	return (ssize_t)len;
}

static inline void pymem_put(struct pymem *m, uint64_t address, const void *data, size_t len)
{
	assert_true(address >= PYMEM_BASE && address - PYMEM_BASE + len <= PYMEM_SIZE);
	memcpy(m->bytes + (address - PYMEM_BASE), data, len);
}

static inline void pymem_put64(struct pymem *m, uint64_t address, uint64_t value)
{
	pymem_put(m, address, &value, sizeof(value));
}

static inline void pymem_put8(struct pymem *m, uint64_t address, uint8_t value)
{
	pymem_put(m, address, &value, sizeof(value));
}

/* A str of ASCII, up to 3.13. */
static inline uint64_t pymem_put_str(struct pymem *m, uint64_t address, const char *text)
{
	pymem_put64(m, address + 16, strlen(text));
	pymem_put64(m, address + 32, 1 << 2 | 1 << 5 | 1 << 6);
	pymem_put(m, address + 40, text, strlen(text) + 1);
	return address;
}

/* As 3.13 on a 64-bit machine. */
static inline struct python_layout pymem_layout(void)
{
	struct python_layout layout = {.at = {
		[PY_FORMAT] = PY_WORDS,
		[PY_VERSION] = 0x030d05f0,
		[PY_FRAMES] = PY_FRAMES_SHIM,
		[PY_RUNTIME] = PYMEM_BASE,
		[PY_CODE_TYPE] = PYMEM_BASE + 0x8000,
		[PY_CORO_TYPE] = PYMEM_BASE + 0x8400,
		[PY_GEN_TYPE] = PYMEM_BASE + 0x8800,
		[PY_ASYNC_GEN_TYPE] = PYMEM_BASE + 0x8c00,
		[PY_EVAL_START] = 0x400000,
		[PY_EVAL_END] = 0x410000,
		[PY_RUNTIME_INTERPRETERS] = 632,
		[PY_INTERP_NEXT] = 7264,
		[PY_INTERP_THREADS] = 7344,
		[PY_INTERP_MODULES] = 7656,
		[PY_INTERP_GIL] = 16,
		[PY_TSTATE_NEXT] = 8,
		[PY_TSTATE_INTERP] = 16,
		[PY_TSTATE_FRAME] = 72,
		[PY_TSTATE_THREAD] = 152,
		[PY_TSTATE_NATIVE] = 160,
		[PY_FRAME_PREVIOUS] = 8,
		[PY_FRAME_INSTR] = 56,
		[PY_FRAME_OWNER] = 70,
		[PY_FRAME_LOCALS] = 72,
		[PY_FRAME_STACK] = 64,
		[PY_GEN_FRAME] = 72,
		[PY_GEN_STATE] = 67,
		[PY_CODE_FILENAME] = 112,
		[PY_CODE_NAME] = 120,
		[PY_CODE_QUALNAME] = 128,
		[PY_CODE_FIRSTLINE] = 68,
		[PY_CODE_LINES] = 136,
		[PY_CODE_VARIABLES] = 96,
		[PY_CODE_BYTES] = 208,
		[PY_STR_ASCII] = 40,
		[PY_STR_OTHER] = 56,
		[PY_GIL_HOLDER] = 8,
		[PY_GIL_LOCKED] = 16,
		[PY_GIL_MUTEX] = 80,
		[PY_RLOCK_OWNER] = 24,
		[PY_RLOCK_COUNT] = 32,
	}};

	return layout;
}

#endif
