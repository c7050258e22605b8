/* SPDX-License-Identifier: MIT */
#include "base/vec.h"

#include <stdint.h>

bool vec_grow(void **data, size_t *cap, size_t want, size_t size)
{
	size_t next = *cap ? *cap + *cap / 2 : 8;
	void *grown;

	if (next < want)
		next = want;
	if (next > SIZE_MAX / size)
		return false;
	grown = realloc(*data, next * size);
	if (!grown)
		return false;
	*data = grown;
	*cap = next;
	return true;
}
