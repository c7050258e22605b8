/* SPDX-License-Identifier: MIT */
/*
 * flipper FILE [SEED]: changes an ELF file in place, without pause, and changes it back: bytes of its ELF header,
 * program headers, section headers and of random places, whole fields of headers, and its length.
 * Question: any; the answer is how often it has done so.
 */
#include "target.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

static unsigned char *original;
static size_t size;
static Elf64_Ehdr header;
static int fd;
static uint64_t seed = 1;
static atomic_ullong changes;

static uint64_t draw(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return below ? (seed >> 8) % below : 0;
}

/* How long a change stays: mostly too short for a reader to see nothing else, sometimes for several of its reads. */
static void linger(void)
{
	static const useconds_t at_most[] = {20, 200, 2000};

	usleep((useconds_t)draw(at_most[draw(3)]));
}

static void put(size_t at, const void *data, size_t len)
{
	if (at < size && pwrite(fd, data, len < size - at ? len : size - at, (off_t)at) < 0)
		target_die("pwrite");
}

static void put_back(size_t at, size_t len)
{
	if (at < size)
		put(at, original + at, len);
}

static void flip_bytes(size_t start, size_t len)
{
	size_t at[8], count = 1 + draw(8);

	for (size_t i = 0; i < count; i++) {
		unsigned char byte;

		at[i] = start + draw(len);
		byte = at[i] < size ? original[at[i]] ^ (unsigned char)(1 + draw(255)) : 0;
		put(at[i], &byte, 1);
	}
	linger();
	for (size_t i = 0; i < count; i++)
		put_back(at[i], 1);
}

/* An offset, a size, an address: values at which sums wrap around and that are just within the file or just not. */
static void change_field(size_t start, size_t len)
{
	uint64_t values[] = {0,         1,    size - 1, size,      size + 1,  1UL << 31,
			     1UL << 32, ~0UL, ~0UL - 7, 1UL << 63, draw(size)};
	size_t at = start + draw(len) / 8 * 8;

	put(at, &values[draw(sizeof(values) / sizeof(values[0]))], 8);
	linger();
	put_back(at, 8);
}

static void change_length(size_t len)
{
	if (ftruncate(fd, (off_t)len))
		target_die("ftruncate");
	linger();
	if (draw(2) && ftruncate(fd, (off_t)size)) /* at times it has its length back first, with nothing in it */
		target_die("ftruncate");
	put_back(len, size - len);
}

static void flipper(void)
{
	size_t sections = (size_t)header.e_shnum * header.e_shentsize;
	size_t segments = (size_t)header.e_phnum * header.e_phentsize;

	target_arrived();
	for (;; atomic_fetch_add(&changes, 1)) {
		switch (draw(12)) {
		case 0:
			flip_bytes(0, sizeof(header));
			break;
		case 1:
			change_field(0, sizeof(header));
			break;
		case 2:
			flip_bytes(header.e_phoff, segments);
			break;
		case 3:
			change_field(header.e_phoff, segments);
			break;
		case 4:
		case 5:
			flip_bytes(header.e_shoff, sections);
			break;
		case 6:
		case 7:
			change_field(header.e_shoff, sections);
			break;
		case 8:
			flip_bytes(0, size);
			break;
		case 9:
			flip_bytes(draw(size), 4096);
			break;
		case 10:
			change_length(draw(size));
			break;
		default:
			change_length(draw(2) ? draw(4096) : size - draw(4096));
		}
	}
}

static void answer(const char *question)
{
	printf("%llu\n", atomic_load(&changes));
}

int main(int argc, char **argv)
{
	struct stat st;

	if (argc < 2)
		return 2;
	target_init();
	if (argc > 2)
		seed += strtoul(argv[2], NULL, 0) * 0x9e3779b97f4a7c15UL;
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		target_die(argv[1]);
	size = (size_t)st.st_size;
	original = malloc(size);
	if (!original || pread(fd, original, size, 0) != (ssize_t)size || size < 8192)
		target_die("reading the file");
	memcpy(&header, original, sizeof(header));
	target_start("flipper", flipper);
	target_ready();
	target_serve(answer);
}
