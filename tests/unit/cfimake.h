/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_CFIMAKE_H
#define STAKEOUT_TESTS_CFIMAKE_H

#include "cmocka_all.h"

#include <string.h>

#include "unwind/cfi.h"

/* Bytes of a section in the making, which is loaded at `vaddr`. */
struct cfimake {
	uint64_t vaddr;
	size_t len;
	uint8_t data[1024];
};

static inline void cfimake_put(struct cfimake *m, const void *data, size_t len)
{
	assert_true(m->len + len <= sizeof(m->data));
	memcpy(m->data + m->len, data, len);
	m->len += len;
}

/* Little-endian, as both architectures are. */
static inline void cfimake_uint(struct cfimake *m, uint64_t value, size_t size)
{
	cfimake_put(m, &value, size);
}

#define CFIMAKE(m, ...) cfimake_put(m, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* Begins a record; cfimake_end() fills its length in. */
static inline size_t cfimake_begin(struct cfimake *m)
{
	size_t at = m->len;

	cfimake_uint(m, 0, 4);
	return at;
}

static inline void cfimake_end(struct cfimake *m, size_t at)
{
	uint32_t len = (uint32_t)(m->len - at - 4);

	memcpy(m->data + at, &len, sizeof(len));
}

/* A CIE of .eh_frame: version 1, "zR", code alignment 1, data alignment -8, no instructions. */
static inline size_t cfimake_cie(struct cfimake *m, uint8_t ra_reg, uint8_t encoding)
{
	size_t at = cfimake_begin(m);

	cfimake_uint(m, 0, 4);
	CFIMAKE(m, 1, 'z', 'R', 0, 1, 0x78, ra_reg, 1, encoding);
	cfimake_end(m, at);
	return at;
}

/* An FDE of such a CIE whose encoding is DW_EH_PE_pcrel | DW_EH_PE_sdata4; where it is. */
static inline size_t cfimake_fde(struct cfimake *m, size_t cie, uint64_t start, uint32_t len, const uint8_t *program,
				 size_t program_len)
{
	size_t at = cfimake_begin(m);

	cfimake_uint(m, m->len - cie, 4);
	cfimake_uint(m, start - (m->vaddr + m->len), 4);
	cfimake_uint(m, len, 4);
	CFIMAKE(m, 0);
	cfimake_put(m, program, program_len);
	cfimake_end(m, at);
	return at;
}

#define CFIMAKE_FDE(m, cie, start, len, ...)                                                                           \
	cfimake_fde(m, cie, start, len, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static inline struct span cfimake_span(const struct cfimake *m)
{
	return (struct span){.data = m->data, .len = m->len, .vaddr = m->vaddr};
}

#endif
