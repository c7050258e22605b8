/* SPDX-License-Identifier: MIT */
/*
 * jit_files perf_map|jitdump|swapped|both DIR: code made at run time, which keeps frame pointers, and what tells its
 * names: /tmp/perf-PID.map, DIR/jit-PID.dump in this machine's byte order or in the other, or both files with different
 * names. The code's names are jit_inner and jit_outer; another was at their place before, and in the jitdump file
 * jit_outer has been moved there.
 */
#include "jit_code.h"

#include <byteswap.h>
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>

static jit_function made_inner, made_outer;

FRAME static void between(void)
{
	made_inner(target_block);
}

FRAME static void worker(void)
{
	made_outer(between);
}

static void write_perf_map(const char *prefix)
{
	unsigned len = sizeof(jit_framed);
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	f = fopen(path, "w");
	if (!f)
		target_die(path);
	fprintf(f, "%lx %x %sjit_before\n", (unsigned long)made_inner, 4096, prefix);
	fprintf(f, "this line is damaged\n%lx\n\n", (unsigned long)made_inner);
	fprintf(f, "%lx %x %sjit_inner with spaces\n", (unsigned long)made_inner, len, prefix);
	fprintf(f, "%lX %X %sjit_outer\n", (unsigned long)made_outer, len, prefix);
	fprintf(f, "%lx %x %sjit_half", (unsigned long)made_inner, len, prefix); /* as if just being written */
	if (fclose(f) != 0)
		target_die(path);
}

struct dump {
	FILE *file;
	bool swapped;
};

static void put_u32(struct dump *d, uint32_t value)
{
	value = d->swapped ? bswap_32(value) : value;
	fwrite(&value, sizeof(value), 1, d->file);
}

static void put_u64(struct dump *d, uint64_t value)
{
	value = d->swapped ? bswap_64(value) : value;
	fwrite(&value, sizeof(value), 1, d->file);
}

static void put_prefix(struct dump *d, uint32_t id, size_t payload)
{
	put_u32(d, id);
	put_u32(d, (uint32_t)(16 + payload));
	put_u64(d, 1);
}

static void put_load(struct dump *d, jit_function code, uint64_t index, const char *name)
{
	put_prefix(d, 0, 40 + strlen(name) + 1 + sizeof(jit_framed));
	put_u32(d, (uint32_t)getpid());
	put_u32(d, (uint32_t)getpid());
	put_u64(d, (uintptr_t)code);
	put_u64(d, (uintptr_t)code);
	put_u64(d, sizeof(jit_framed));
	put_u64(d, index);
	fwrite(name, strlen(name) + 1, 1, d->file);
	fwrite(jit_framed, sizeof(jit_framed), 1, d->file);
}

static void put_move(struct dump *d, uint64_t from, jit_function to, uint64_t index)
{
	put_prefix(d, 1, 48);
	put_u32(d, (uint32_t)getpid());
	put_u32(d, (uint32_t)getpid());
	put_u64(d, (uintptr_t)to);
	put_u64(d, from);
	put_u64(d, (uintptr_t)to);
	put_u64(d, sizeof(jit_framed));
	put_u64(d, index);
}

/* Line 10 from the start, line 20 from the second half on. */
static void put_lines(struct dump *d, jit_function code, const char *file)
{
	put_prefix(d, 2, 16 + 2 * (16 + strlen(file) + 1));
	put_u64(d, (uintptr_t)code);
	put_u64(d, 2);
	put_u64(d, (uintptr_t)code);
	put_u32(d, 10);
	put_u32(d, 1);
	fwrite(file, strlen(file) + 1, 1, d->file);
	put_u64(d, (uintptr_t)code + sizeof(jit_framed) - 1);
	put_u32(d, 20);
	put_u32(d, 2);
	fwrite(file, strlen(file) + 1, 1, d->file);
}

static void write_jitdump(const char *dir, bool swapped, const char *outer_name)
{
	struct dump d = {.swapped = swapped};
	char path[4096];

	snprintf(path, sizeof(path), "%s/jit-%d.dump", dir, (int)getpid());
	d.file = fopen(path, "w+");
	if (!d.file)
		target_die(path);
	put_u32(&d, 0x4a695444);
	put_u32(&d, 1);
	put_u32(&d, 40);
	put_u32(&d, EM_X86_64);
	put_u32(&d, 0);
	put_u32(&d, (uint32_t)getpid());
	put_u64(&d, 1);
	put_u64(&d, 0);
	put_load(&d, made_inner, 1, "jit_before");
	put_lines(&d, made_inner, "/src/made.up");
	put_load(&d, made_inner, 2, "jit_inner");
	put_load(&d, (jit_function)(uintptr_t)0x1000, 3, outer_name);
	put_move(&d, 0x1000, made_outer, 3);
	fflush(d.file);
	/* The mark by which the file is found. */
	if (ferror(d.file) || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(d.file), 0) == MAP_FAILED)
		target_die(path);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";

	target_init();
	made_inner = (jit_function)(uintptr_t)jit_place(jit_framed, sizeof(jit_framed));
	made_outer = (jit_function)(uintptr_t)jit_place(jit_framed, sizeof(jit_framed));
	if (strcmp(mode, "perf_map") == 0)
		write_perf_map("");
	else if (strcmp(mode, "both") == 0)
		write_perf_map("map_");
	if (strcmp(mode, "perf_map") != 0)
		write_jitdump(argv[2], strcmp(mode, "swapped") == 0, "jit_outer");
	target_start("worker", worker);
	target_ready();
	target_serve(NULL);
}
