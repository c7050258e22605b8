/* SPDX-License-Identifier: MIT */
/*
 * waits_fleet LIBRARY DIRECTORY PROCESSES IMAGES MAPS apart|alike: many processes with many mappings. Question "go":
 * forks the processes; the answer is their numbers. Each maps the code of MAPS files, DIRECTORY/I/0 to
 * DIRECTORY/I/(MAPS - 1), where I is its index modulo IMAGES, which are copies of LIBRARY (plugin.c), and then waits
 * again and again in a callback from the last of them; without MAPS once, in one from LIBRARY. Those that are "alike"
 * have the same files at the same addresses. "end": they end.
 */
/* build: -fomit-frame-pointer -ldl */
#include "waits.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { NAP_MS = 250 };

typedef int (*enter_fn)(int (*callback)(int), int n);

struct code {
	const char *library;
	char *start;  /* of its code, here */
	off_t offset; /* in the file */
	size_t len;
	size_t enter; /* from its start */
};

static const char *directory;
static int processes, images, maps;
static bool apart;
static struct code code;
static int mapped[2], over[2]; /* a byte for each process that has mapped all; closed when all shall end */

FRAME static bool fleet_wait(void)
{
	struct pollfd fd = {.fd = over[0], .events = POLLIN};

	NO_FRAME_POINTER();
	return poll(&fd, 1, maps ? NAP_MS : -1) != 0;
}

FRAME static int callback(int n)
{
	while (!fleet_wait())
		;
	return n;
}

static char *map_file(int image, int number)
{
	char path[4096];
	char *start;
	int fd;

	snprintf(path, sizeof(path), "%s/%d/%d", directory, image, number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	start = fd < 0 ? MAP_FAILED : mmap(NULL, code.len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, code.offset);
	if (start == MAP_FAILED)
		target_die(path);
	close(fd);
	return start;
}

FRAME static void member(int number)
{
	long page = sysconf(_SC_PAGESIZE);
	char *last = code.start;

	close(over[1]);
	if (apart && mmap(NULL, (size_t)(number + 1) * (size_t)page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			     MAP_FAILED)
		target_die("mmap");
	for (int i = 0; i < maps; i++)
		last = map_file(number % images, i);
	if (write(mapped[1], "", 1) != 1)
		target_die("write");
	((enter_fn)(uintptr_t)(last + code.enter))(callback, 1);
}

static void go(void)
{
	char byte;

	for (int i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			target_die("fork");
		if (pid == 0) { /* it prints nothing, and leaves what is not yet written to its parent */
			target_init();
			member(i);
			_exit(0);
		}
		printf("%d ", (int)pid);
	}
	for (int i = 0; i < processes; i++)
		if (read(mapped[0], &byte, 1) != 1)
			target_die("read");
}

static void answer(const char *question)
{
	if (strcmp(question, "go") == 0) {
		go();
	} else {
		close(over[1]);
		while (wait(NULL) > 0)
			;
	}
	printf("\n");
}

static int find_code(struct dl_phdr_info *info, size_t size, void *arg)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];

		if (strcmp(info->dlpi_name, code.library) != 0 || phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X))
			continue;
		code.offset = (off_t)(phdr->p_offset & -page);
		code.len = phdr->p_offset + phdr->p_filesz - (size_t)code.offset;
		code.start = (char *)(info->dlpi_addr + (phdr->p_vaddr & -page));
		code.enter = (size_t)((char *)arg - code.start);
	}
	return 0;
}

int main(int argc, char **argv)
{
	void *plugin, *enter;

	target_init();
	if (argc != 7)
		return 2;
	code.library = argv[1];
	directory = argv[2];
	processes = atoi(argv[3]);
	images = atoi(argv[4]);
	maps = atoi(argv[5]);
	apart = strcmp(argv[6], "apart") == 0;
	plugin = dlopen(code.library, RTLD_NOW);
	enter = plugin ? dlsym(plugin, "plugin_enter") : NULL;
	if (!enter || pipe(mapped) || pipe(over))
		target_die("starting");
	dl_iterate_phdr(find_code, enter);
	target_ready();
	target_serve(answer);
}
