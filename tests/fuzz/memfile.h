/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_MEMFILE_H
#define STAKEOUT_TESTS_MEMFILE_H

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A file with these bytes that is nowhere on disk. The descriptor is the caller's. */
static inline int memfile_create(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	return fd;
}

#endif
