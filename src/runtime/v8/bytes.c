/* SPDX-License-Identifier: MIT */
#include "runtime/v8/bytes.h"

enum {
	TAG = 1,
	MORE = 0x80,  /* of a byte: another follows */
	AHEAD = 2048, /* that most readers take */
};

bool v8_bytes_begin(const struct heap *heap, uint64_t object, enum v8_fact data, uint32_t at, struct v8_bytes *out)
{
	uint32_t len;

	if (!heap_length(heap, object, &len) || at > len)
		return false;
	*out = (struct v8_bytes){.heap = heap, .start = object - TAG + heap->layout->facts[data], .at = at, .len = len};
	pages_foresee(heap->pages, out->start + at, len - at < AHEAD ? len - at : AHEAD);
	return true;
}

uint8_t v8_bytes_take(struct v8_bytes *bytes)
{
	uint8_t byte = 0;

	if (bytes->bad || bytes->at >= bytes->len || !pages_read(bytes->heap->pages, bytes->start + bytes->at, &byte, 1))
		bytes->bad = true;
	else
		bytes->at++;
	return byte;
}

uint32_t v8_bytes_number(struct v8_bytes *bytes)
{
	uint32_t bits = 0;

	for (unsigned shift = 0; shift < 32; shift += 7) {
		uint8_t byte = v8_bytes_take(bytes);

		bits |= (uint32_t)(byte & ~MORE) << shift;
		if (!(byte & MORE))
			return bits;
	}
	bytes->bad = true;
	return 0;
}
