/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_FEED_FILE_PIN_H
#define STAKEOUT_OFFCPU_FEED_FILE_PIN_H

#include <stdbool.h>
#include <stdint.h>

#include "elf/image.h"
#include "kernel/offcpu_probe.h"
#include "model/maps.h"

/*
 * How BPF knows a file that processes have mapped, and what keeps that true: a page of it that is mapped here, too. Only the
 * kernel can tell: what stat() says of a file is not what the kernel has where it is mapped, on overlayfs or btrfs.
 */
struct file_pin {
	void *page; /* NULL: none is needed */
	struct offcpu_file file;
	bool known; /* false: BPF cannot find this one */
};

/* `image` was read from that descriptor; -1: from the memory of a process, at the entry. */
void file_pin_init(struct file_pin *pin, struct offcpu_probe *probe, int fd, const struct image *image,
		   const struct map_entry *entry);
void file_pin_deinit(struct file_pin *pin); /* after it was forgotten everywhere */

bool file_pin_is_of(const struct file_pin *pin, const struct offcpu_file *file); /* wherever that is mapped from */

/* What there is to know of it where it is mapped from this offset. */
void file_pin_tell(const struct file_pin *pin, struct offcpu_probe *probe, uint64_t offset,
		   const struct offcpu_file_code *code);
void file_pin_forget(const struct file_pin *pin, struct offcpu_probe *probe, uint64_t offset);

#endif
