/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_ELF_IMAGE_H
#define STAKEOUT_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

/*
 * One ELF file: on disk, or in memory only (the vDSO). Nothing in it is trusted: headers are read once, when it is
 * opened, but the bytes of a file on disk may change at any time. See base/filemap.h for what that asks of readers.
 */
struct image;

/* A run of the image's bytes and the address at which the file says it is loaded. data == NULL: not there. */
struct span {
	const uint8_t *data;
	size_t len;
	uint64_t vaddr;
};

/* Takes the descriptor over, also on failure. Only regular files are read. */
int image_open_fd(int fd, struct err *err, struct image **out);

/* Borrows `data`, which must outlive the image and be a loaded image (addresses, not file offsets, count). */
int image_open_memory(const void *data, size_t len, struct err *err, struct image **out);

void image_destroy(struct image *image);

/*
 * A number that identifies this very file, whatever others claim to be: made of device, inode, size and times. 0 for an
 * image in memory.
 */
uint64_t image_identity(const struct image *image);
uint64_t image_identity_of(const struct stat *st); /* of a file */
void image_set_identity(struct image *image, const struct stat *st); /* it was read from a copy of that file */

/* The file was found only below the target's root, whose owner can put anything there; false until noted. */
bool image_is_foreign(const struct image *image);
void image_set_foreign(struct image *image);

/* Where the file was found, for links relative to it; NULL until noted. */
const char *image_path(const struct image *image);
void image_set_path(struct image *image, const char *path);

/* The file was changed, or cut short, while it was read: what was read of it may be wrong, and is not to be kept. */
bool image_has_changed(const struct image *image);

uint16_t image_type(const struct image *image); /* ET_* */
uint16_t image_machine(const struct image *image);
uint64_t image_entry(const struct image *image); /* the address at which a program starts; 0: none */
bool image_is_64bit(const struct image *image);
bool image_is_big_endian(const struct image *image);
const char *image_build_id(const struct image *image); /* hex; NULL when it has none */

/* All bytes of the file, or of the image in memory. */
struct span image_raw(const struct image *image);

/* Program headers, in the order of the file. */
size_t image_nsegments(const struct image *image);
const Elf64_Phdr *image_segment(const struct image *image, size_t index);

/* The first of a type; NULL: there is none. */
const Elf64_Phdr *image_segment_of(const struct image *image, uint32_t type);

/*
 * Section headers by number, where 0 stands for no section, as other headers refer to them. NULL, or no bytes, for a
 * number that does not exist, and for a section without bytes in the file (SHT_NOBITS, outside of the file).
 */
size_t image_nsections(const struct image *image);
const Elf64_Shdr *image_shdr(const struct image *image, size_t index);
struct span image_shdr_bytes(const struct image *image, size_t index);
const Elf64_Shdr *image_find_shdr(const struct image *image, const char *name);

/* File offset (of a mapping) to the file's virtual address, through the loadable segments. */
bool image_offset_to_vaddr(const struct image *image, uint64_t offset, uint64_t *vaddr);

/* Section by name, decompressed when needed; the bytes live as long as the image. */
struct span image_section(struct image *image, const char *name);

bool image_has_section(const struct image *image, const char *name); /* with bytes */

/* Unpacks those of these sections that are compressed, in parallel on all cores. */
void image_unpack(struct image *image, const char *const *names, size_t n);

/* False when the compressed sections would take more memory than any real ones do. */
bool image_is_unpackable(const struct image *image);

/* The first section header that is executable code and contains vaddr: its name, or NULL. */
const char *image_section_name_at(struct image *image, uint64_t vaddr);

/* File bytes from vaddr to the end of the loadable segment that holds it. */
struct span image_bytes_at(const struct image *image, uint64_t vaddr);

/* The addresses between which all of its code lies, from its segments, else from its sections; 0, 0: it has none. */
void image_code_bounds(const struct image *image, uint64_t *start, uint64_t *end);

/* PT_GNU_EH_FRAME, which survives when section headers are stripped. */
struct span image_eh_frame_hdr(const struct image *image);

#endif
