/* SPDX-License-Identifier: MIT */
/* memfd PROGRAM [ARG…]: runs the program from memory, so that it has no path. */
#include "target.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
	int in = open(argv[1], O_RDONLY | O_CLOEXEC);
	int fd = memfd_create("stakeout-test", MFD_CLOEXEC);
	struct stat st;

	if (in < 0 || fd < 0 || fstat(in, &st))
		target_die("memfd");
	for (off_t done = 0; done < st.st_size;)
		if (sendfile(fd, in, &done, (size_t)(st.st_size - done)) <= 0)
			target_die("sendfile");
	fexecve(fd, argv + 1, environ);
	target_die("fexecve");
}
