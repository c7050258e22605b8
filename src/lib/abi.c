/* SPDX-License-Identifier: MIT */
#include "lib/abi.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static size_t size_of(const void *theirs)
{
	size_t size;

	memcpy(&size, theirs, sizeof(size));
	return size;
}

static bool is_zero(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i])
			return false;
	return true;
}

int abi_read_options(const void *theirs, void *own, size_t size, uint64_t known_flags, struct err *err)
{
	size_t given = theirs ? size_of(theirs) : 0;
	uint64_t flags = 0;

	memset(own, 0, size);
	if (!theirs)
		return 0;
	if (given < sizeof(size_t) + sizeof(flags))
		return err_set(err, EINVAL, "the size of the options is not set");
	if (given > size && !is_zero((const char *)theirs + size, given - size))
		return err_set(err, E2BIG, "the options have something that this version of the library does not know");
	memcpy(own, theirs, given < size ? given : size);
	memcpy(&flags, (const char *)own + sizeof(size_t), sizeof(flags));
	if (flags & ~known_flags)
		return err_set(err, EINVAL, "the options have flags that this version of the library does not know");
	return 0;
}

int abi_write(void *theirs, const void *own, size_t size)
{
	size_t room = size_of(theirs), used = room < size ? room : size;

	if (room < sizeof(size_t))
		return -EINVAL;
	memcpy((char *)theirs + sizeof(size_t), (const char *)own + sizeof(size_t), used - sizeof(size_t));
	memset((char *)theirs + used, 0, room - used);
	return 0;
}
