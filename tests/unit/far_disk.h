/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_FAR_DISK_H
#define STAKEOUT_TESTS_FAR_DISK_H

#include <dlfcn.h>
#include <libelf.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

/* elf_begin() in place of libelf's: a file that is far away is asked for, and takes until the test answers. */
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

Elf *elf_begin(int fd, Elf_Cmd command, Elf *elf)
{
	Elf *(*begin)(int, Elf_Cmd, Elf *) = (Elf * (*)(int, Elf_Cmd, Elf *)) dlsym(RTLD_NEXT, "elf_begin");

	if (atomic_exchange(&far_disk.far, false)) {
		sem_post(&far_disk.asked);
		sem_wait(&far_disk.answered);
	}
	return begin(fd, command, elf);
}

#endif
