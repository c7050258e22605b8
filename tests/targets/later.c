/* SPDX-License-Identifier: MIT */
/*
 * later WHAT PATH: a thread, `waiter`, that is about to use a file, and does so once it is asked to "go": see the table at the end.
 * later mount DIRECTORY TYPE SOURCE OPTIONS: it mounts that.
 * later touch: it touches memory that "out" has put into swap, as far as there is some: the answer is how many pages are still in memory.
 */
#include "target.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

enum { SIZE = 4096, PAGES = 8 };

static const char *path, *type, *source, *options;
static int fd = -1;
static char data[SIZE]; /* whole pages are written without reading them first */
static volatile char *memory;
static atomic_int gone;

static void wait_for_go(void)
{
	target_arrived();
	while (!atomic_load(&gone))
		usleep(1000);
}

static void open_it(int flags)
{
	fd = open(path, flags);
	if (fd < 0)
		target_die(path);
}

static void read_it(void)
{
	open_it(O_RDONLY);
	wait_for_go();
	(void)!read(fd, data, sizeof(data));
}

static void map_it(void)
{
	open_it(O_RDONLY);
	memory = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		target_die("mmap");
	wait_for_go();
	data[0] = *memory;
}

static void stat_it(void)
{
	struct stat st;

	wait_for_go();
	stat(path, &st);
}

static void open_later(void)
{
	wait_for_go();
	fd = open(path, O_RDONLY);
}

static void write_it(void)
{
	open_it(O_WRONLY | O_SYNC);
	wait_for_go();
	(void)!write(fd, data, sizeof(data));
}

static void sync_it(void)
{
	open_it(O_WRONLY);
	wait_for_go();
	(void)!write(fd, data, sizeof(data));
	fsync(fd);
}

static void close_it(void)
{
	open_it(O_WRONLY);
	wait_for_go();
	(void)!write(fd, data, sizeof(data));
	close(fd);
}

static void mount_it(void)
{
	wait_for_go();
	mount(source, path, type, 0, options);
}

static void touch_it(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		target_die("mmap");
	for (size_t i = 0; i < PAGES * page; i++)
		memory[i] = (char)(i / page + 1); /* pages of zeros alone are not written */
	wait_for_go();
	data[0] = memory[0];
}

/* What is written stays in memory until it is asked for once more: it is put there again, and out again, as then it need not be written. */
static unsigned put_out(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char present[PAGES];
	unsigned left = 0;

	for (size_t i = 0; i < PAGES; i++)
		data[i] = memory[i * page];
	if (madvise((void *)memory, PAGES * page, 21 /* MADV_PAGEOUT */) || mincore((void *)memory, PAGES * page, present))
		return PAGES;
	for (size_t i = 0; i < PAGES; i++)
		left += present[i] & 1;
	return left;
}

static void answer(const char *question)
{
	if (!strcmp(question, "go")) {
		atomic_store(&gone, 1);
		puts("gone");
	} else if (!strcmp(question, "out")) {
		printf("%u\n", put_out());
	} else {
		puts("?");
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} kinds[] = {
	{"read", read_it}, {"map", map_it},	{"stat", stat_it},   {"open", open_later}, {"write", write_it},
	{"sync", sync_it}, {"close", close_it}, {"mount", mount_it}, {"touch", touch_it},
};

static void (*chosen)(void);

static void run_it(void)
{
	chosen();
	target_block();
}

int main(int argc, char **argv)
{
	target_init();
	path = argc > 2 ? argv[2] : NULL;
	if (argc > 5) {
		type = argv[3];
		source = argv[4];
		options = argv[5];
	}
	for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(argv[1], kinds[i].name))
			chosen = kinds[i].run;
	if (!chosen)
		return 2;
	target_start("waiter", run_it);
	target_ready();
	target_serve(answer);
}
