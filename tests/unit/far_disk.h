/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_FAR_DISK_H
#define STAKEOUT_TESTS_FAR_DISK_H

#include <dlfcn.h>
#include <elf.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

/* pread() in place of libc's: an ELF file that is far away is asked for its header, and takes until the test answers. */
static struct {
	atomic_bool far; /* the next one is */
	sem_t asked, answered;
} far_disk;

static inline void far_disk_init(void)
{
	sem_init(&far_disk.asked, 0, 0);
	sem_init(&far_disk.answered, 0, 0);
	atomic_store(&far_disk.far, true);
}

ssize_t pread(int fd, void *buf, size_t len, off_t offset)
{
	ssize_t (*next)(int, void *, size_t, off_t) = (ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");

	if (len == sizeof(Elf64_Ehdr) && offset == 0 && atomic_exchange(&far_disk.far, false)) {
		sem_post(&far_disk.asked);
		sem_wait(&far_disk.answered);
	}
	return next(fd, buf, len, offset);
}

#endif
