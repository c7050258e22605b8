/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_CLEANUP_H
#define STAKEOUT_BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A variable declared with _cleanup_(f) has f(&variable) called when it leaves scope. */
#define _cleanup_(f) __attribute__((cleanup(f)))

/* Defines cleanup_NAME(type *), which calls destroy(type): that must accept NULL. */
#define DEFINE_CLEANUP(name, type, destroy) \
	static inline void cleanup_##name(type *p) { destroy(*p); }

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void cleanup_closedir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)
#define _cleanup_fclose_ _cleanup_(cleanup_fclose)
#define _cleanup_closedir_ _cleanup_(cleanup_closedir)

/* Hands a pointer on and empties the variable, so that its cleanup does nothing. */
#define steal_ptr(p)                      \
	({                                \
		__typeof__(p) stolen = (p); \
		(p) = NULL;               \
		stolen;                   \
	})

static inline int steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

#endif
