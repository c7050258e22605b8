/* SPDX-License-Identifier: MIT */
#include "base/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#ifdef STATIC_BUILD

bool library_loading_built_in(void)
{
	return false;
}

int library_load(const char *soname, struct err *err, void **out)
{
	return err_set(err, ENOSYS, "this stakeout is one static file, which cannot load %s", soname);
}

void *library_function(void *library, const char *name)
{
	return NULL;
}

#else

bool library_loading_built_in(void)
{
	return true;
}

int library_load(const char *soname, struct err *err, void **out)
{
	*out = dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	return *out ? 0 : err_set(err, ENOSYS, "%s", dlerror());
}

void *library_function(void *library, const char *name)
{
	return dlsym(library, name);
}

#endif
