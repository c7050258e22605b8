/* SPDX-License-Identifier: MIT */
/*
 * waits_maps [COUNT]: a process with COUNT executable mappings more than it needs, whose thread "worker" sleeps again
 * and again. Question: any; the answer is how often.
 */
/* build: -fomit-frame-pointer */
#include "waits.h"

#include <fcntl.h>
#include <sys/mman.h>

enum { NAP_US = 4000 };

static atomic_ullong naps;

FRAME static void crowded_wait(void)
{
	NO_FRAME_POINTER();
	waits_nap(NAP_US);
	atomic_fetch_add(&naps, 1);
}

FRAME static void worker(void)
{
	target_arrived();
	for (;;)
		crowded_wait();
}

static void answer(const char *question)
{
	printf("%llu\n", atomic_load(&naps));
}

/* Of one page each, with a gap to the next: the kernel cannot make one of two. */
static void map_many(int count)
{
	long page = sysconf(_SC_PAGESIZE);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *room =
		mmap(NULL, (size_t)(2 * count * page), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (fd < 0 || room == MAP_FAILED)
		target_die("room for mappings");
	for (int i = 0; i < count; i++)
		if (mmap(room + 2 * i * page, (size_t)page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) ==
		    MAP_FAILED)
			target_die("mmap");
	close(fd);
}

int main(int argc, char **argv)
{
	target_init();
	map_many(argc > 1 ? atoi(argv[1]) : 1000);
	target_start("worker", worker);
	target_ready();
	target_serve(answer);
}
