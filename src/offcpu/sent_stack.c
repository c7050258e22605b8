/* SPDX-License-Identifier: MIT */
#include "offcpu/sent_stack.h"

#include <stdlib.h>

static void convert_user(const uint64_t *from, uint32_t n, struct raw_frame *out)
{
	for (uint32_t i = 0; i < n; i++) {
		out[i] = (struct raw_frame){.pc = from[i] & ~OFFCPU_MARKS};
		if (from[i] & OFFCPU_INTERRUPTED && i)
			out[i - 1].flags = (out[i - 1].flags | FRAME_SIGNAL) & ~(uint32_t)FRAME_RETURN_ADDRESS;
		else if (i && !(from[i] & OFFCPU_RESUMES))
			out[i].flags |= FRAME_RETURN_ADDRESS;
		if (from[i] & OFFCPU_BY_FRAME_POINTER)
			out[i].flags |= FRAME_BY_FRAME_POINTER;
		if (from[i] & OFFCPU_BY_CODE)
			out[i].flags |= FRAME_BY_CODE;
	}
}

/* By the native frames that they stand for, and else as they came, which `call` has until they are in order. */
static int compare_places(const void *a, const void *b)
{
	const struct runtime_frame *x = a, *y = b;

	if (x->raw != y->raw)
		return x->raw < y->raw ? -1 : 1;
	return (x->call > y->call) - (x->call < y->call);
}

/* Puts them in order; what ends an activation of Python says where all of its frames are. Returns how many there are. */
static uint32_t convert_runtime(const struct offcpu_stack *head, const struct offcpu_runtime_frame *from,
				struct runtime_frame *out)
{
	static const uint32_t kinds[] = {
		[OFFCPU_PYTHON] = FRAME_KIND_PYTHON, [OFFCPU_JAVA] = FRAME_KIND_JAVA, [OFFCPU_JS] = FRAME_KIND_JS,
		[OFFCPU_PYTHON_OBJECT] = FRAME_KIND_PYTHON};
	uint32_t n = 0, first = 0;

	for (uint32_t i = 0; i < head->nruntime; i++) {
		if (from[i].runtime == 0 || from[i].runtime >= sizeof(kinds) / sizeof(kinds[0]))
			continue;
		out[n] = (struct runtime_frame){.code = from[i].code,
						.place = from[i].place,
						.more = from[i].more,
						.raw = from[i].raw,
						.version = from[i].version,
						.call = i,
						.runtime = kinds[from[i].runtime]};
		if (from[i].runtime != OFFCPU_PYTHON) {
			first = ++n;
			continue;
		}
		if (from[i].code) {
			n++;
			continue;
		}
		for (; first < n; first++) {
			out[first].raw = from[i].raw;
			out[first].more = from[i].place;
		}
	}
	if (head->runtime_end == OFFCPU_RUNTIME_DEPTH && n && n < OFFCPU_RUNTIME_FRAMES && out[n - 1].runtime == FRAME_KIND_PYTHON) {
		out[n] = (struct runtime_frame){.raw = out[n - 1].raw, .more = out[n - 1].more, .call = n, .runtime = FRAME_KIND_PYTHON}; /* there are more */
		n++;
	}
	if (n)
		qsort(out, n, sizeof(*out), compare_places);
	for (uint32_t i = 0; i < n; i++)
		out[i].call = 0;
	return n;
}

bool sent_stack_read(const void *record, size_t len, struct sent_stack *out)
{
	const struct offcpu_stack *head = record;
	const uint64_t *frames = (const uint64_t *)(head + 1);

	if (len < sizeof(*head) || head->nkernel > OFFCPU_KERNEL_FRAMES || head->nuser > OFFCPU_USER_FRAMES ||
	    head->nruntime > OFFCPU_RUNTIME_FRAMES ||
	    len < sizeof(*head) + (head->nkernel + head->nuser) * sizeof(uint64_t) +
			    head->nruntime * sizeof(struct offcpu_runtime_frame))
		return false;
	out->head = head;
	out->kernel = frames;
	frames += head->nkernel;
	convert_user(frames, head->nuser, out->user);
	frames += head->nuser;
	out->nruntime = convert_runtime(head, (const struct offcpu_runtime_frame *)frames, out->runtime);
	return true;
}
