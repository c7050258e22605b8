/* SPDX-License-Identifier: MIT */
/* Runs a fuzzer on inputs that are there already, without libFuzzer: PROGRAM DIRECTORY. It crashes, or all is well. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Cut short as well, which is the most usual damage: at this many places. */
enum { CUTS = 16 };

/* Each time in memory that ends where the input does, so that a sanitizer sees a read beyond it. */
static void run(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static int run_file(const char *path)
{
	FILE *f = fopen(path, "re");
	static uint8_t data[1 << 20];
	size_t size;

	if (!f) {
		perror(path);
		return 1;
	}
	size = fread(data, 1, sizeof(data), f);
	fclose(f);
	printf("%s\n", path);
	fflush(stdout);
	run(data, size);
	for (size_t i = 0; i < CUTS; i++)
		run(data, size * i / CUTS);
	return 0;
}

int main(int argc, char **argv)
{
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	int files = 0, status = 0;
	struct dirent *entry;
	char path[4096];

	if (!dir) {
		fprintf(stderr, "no inputs: %s DIRECTORY\n", argv[0]);
		return 1;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		status |= run_file(path);
		files++;
	}
	closedir(dir);
	return status || files == 0;
}
