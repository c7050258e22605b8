/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_ELF_MINIDEBUG_H
#define STAKEOUT_ELF_MINIDEBUG_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "elf/image.h"

/*
 * Unpacks .gnu_debugdata: an xz-compressed ELF file that holds only the symbols that stripping removed. *data is for
 * free(). -ENOENT when the image has none.
 */
int minidebug_unpack(struct image *image, struct err *err, uint8_t **data, size_t *len);

#endif
