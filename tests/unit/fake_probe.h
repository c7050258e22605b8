/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_FAKE_PROBE_H
#define STAKEOUT_TESTS_FAKE_PROBE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "kernel/offcpu_probe.h"

/* In place of kernel/offcpu_probe.c, for tests of what is given to BPF: it keeps that, and asks no kernel. */
enum { FAKE_SLOTS = 1 << 18, FAKE_OBJECTS = 4096, FAKE_FILES = 64 };

struct offcpu_probe {
	struct offcpu_mapping *mappings;
	struct offcpu_maps maps; /* of `tgid`; set 0: none */
	pid_t tgid;
	unsigned objects;            /* how often one was set */
	uint32_t rows[FAKE_OBJECTS]; /* of each */
	unsigned batches;            /* in how many goes */
	bool full;                   /* tables are refused */
	bool refuses;                /* objects are */
	bool crowded;                /* processes are */
	unsigned answers;
	bool news; /* of the last answer */
	bool finds; /* what processes have mapped, by these files */
	bool one_file; /* which are all the same */
	unsigned nfiles;
	struct offcpu_file files[FAKE_FILES];
	struct offcpu_file_code codes[FAKE_FILES];
};

static inline void fake_probe_init(struct offcpu_probe *probe)
{
	*probe = (struct offcpu_probe){.mappings = calloc(FAKE_SLOTS, sizeof(*probe->mappings))};
}

static inline void fake_probe_deinit(struct offcpu_probe *probe)
{
	free(probe->mappings);
}

/* A table is a file with its number of rows. */
int offcpu_probe_create_table(struct offcpu_probe *probe, const struct unwind_row *rows, size_t n, uint32_t serial)
{
	uint64_t count = n;
	int fd = n && !probe->full ? memfd_create("rows", MFD_CLOEXEC) : -1;

	return fd >= 0 && pwrite(fd, &count, sizeof(count), 0) == sizeof(count) ? fd : -1;
}

int offcpu_probe_set_objects(struct offcpu_probe *probe, const uint32_t *objects, const int *tables, size_t n)
{
	uint64_t count;

	if (probe->refuses)
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (objects[i] >= FAKE_OBJECTS || pread(tables[i], &count, sizeof(count), 0) != sizeof(count))
			return -1;
		probe->rows[objects[i]] = (uint32_t)count;
	}
	probe->objects += (unsigned)n;
	probe->batches += n != 0;
	return 0;
}

int offcpu_probe_set_mapping(struct offcpu_probe *probe, uint32_t index, const struct offcpu_mapping *mapping)
{
	if (index >= FAKE_SLOTS)
		return -1;
	probe->mappings[index] = *mapping;
	return 0;
}

void offcpu_probe_forget_mapping(struct offcpu_probe *probe, uint32_t index, uint32_t set)
{
	if (index < FAKE_SLOTS && probe->mappings[index].set == set)
		probe->mappings[index] = (struct offcpu_mapping){0};
}

int offcpu_probe_set_runtime(struct offcpu_probe *probe, pid_t tgid, const struct offcpu_runtime *runtime)
{
	return 0;
}

int offcpu_probe_set_stubs(struct offcpu_probe *probe, const struct offcpu_stub_key *key, const struct offcpu_stub_rows *rows)
{
	return 0;
}

int offcpu_probe_set_process(struct offcpu_probe *probe, pid_t tgid, const struct offcpu_maps *maps)
{
	if (probe->crowded)
		return -ENOSPC;
	probe->maps = *maps;
	__atomic_store_n(&probe->tgid, tgid, __ATOMIC_RELEASE); /* for tests that wait for it */
	return 0;
}

uint32_t offcpu_probe_set_of(const struct offcpu_probe *probe, pid_t tgid)
{
	return probe->tgid == tgid ? probe->maps.set : 0;
}

void offcpu_probe_forget_process(struct offcpu_probe *probe, pid_t tgid, uint32_t set)
{
	if (offcpu_probe_set_of(probe, tgid) == set)
		probe->maps = (struct offcpu_maps){0};
}

bool offcpu_probe_finds_code(const struct offcpu_probe *probe)
{
	return probe->finds;
}

/* Each address is another file's. */
int offcpu_probe_identify(struct offcpu_probe *probe, const void *address, struct offcpu_file *out)
{
	*out = (struct offcpu_file){.inode = probe->one_file ? 1 : (uintptr_t)address};
	return 0;
}

void offcpu_probe_forget_file(struct offcpu_probe *probe, const struct offcpu_file *file)
{
	for (unsigned i = 0; i < probe->nfiles; i++)
		if (memcmp(&probe->files[i], file, sizeof(*file)) == 0) {
			probe->files[i] = probe->files[--probe->nfiles];
			probe->codes[i] = probe->codes[probe->nfiles];
			return;
		}
}

int offcpu_probe_set_file(struct offcpu_probe *probe, const struct offcpu_file *file, const struct offcpu_file_code *code)
{
	offcpu_probe_forget_file(probe, file);
	if (probe->nfiles == FAKE_FILES)
		return -ENOSPC;
	probe->files[probe->nfiles] = *file;
	probe->codes[probe->nfiles++] = *code;
	return 0;
}

void offcpu_probe_answered(struct offcpu_probe *probe, pid_t tgid, bool news)
{
	probe->answers++;
	probe->news = news;
}

#endif
