/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_ELF_HEADERS_H
#define STAKEOUT_ELF_HEADERS_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The headers of an ELF file of either word size and byte order, all of them in the 64-bit form. They are read once,
 * into our own memory: what was checked stays as it is, whatever happens to the file.
 */
struct headers {
	Elf64_Ehdr ehdr; /* its counts are as the file has them: use those below */
	bool wide;       /* 64-bit */
	bool big_endian;
	Elf64_Phdr *phdrs;
	size_t nphdrs;
	Elf64_Shdr *shdrs; /* the first one stands for no section */
	size_t nshdrs;
	char *names; /* of sections */
	size_t names_len;
};

/* The bytes at the start of a file that tell whether it is an ELF file. */
enum { HEADERS_FIRST = sizeof(Elf64_Ehdr) };

/* Reads the ELF header. False when it is not one that can be read. */
bool headers_init(struct headers *headers, const void *first, size_t len);

/*
 * Reads the tables that the header points to, from the bytes of the whole file. A table that is missing, or not all
 * inside the file, has fewer entries, or none. False when memory is exhausted; headers_deinit() is needed in any case.
 */
bool headers_read_tables(struct headers *headers, const void *data, size_t len);

void headers_deinit(struct headers *headers);

/* NULL when the name is outside of the string table, has no end, or is absurdly long. */
const char *headers_name(const struct headers *headers, const Elf64_Shdr *shdr);

#endif
