/* SPDX-License-Identifier: MIT */
#include "report/names.h"

#define LOOKUP(names, i) ((size_t)(i) < sizeof(names) / sizeof((names)[0]) && (names)[i] ? (names)[i] : "unknown")

const char *name_thread_status(enum thread_status status)
{
	static const char *const names[] = {
		[THREAD_CAPTURED] = "captured",
		[THREAD_RUNNING] = "running",
		[THREAD_TRACED] = "traced",
		[THREAD_STOP_TIMEOUT] = "stop_timeout",
		[THREAD_EXITED] = "exited",
		[THREAD_ZOMBIE] = "zombie",
		[THREAD_NOT_PERMITTED] = "not_permitted",
		[THREAD_KERNEL] = "kernel_thread",
		[THREAD_UNREADABLE] = "unreadable",
		[THREAD_32BIT] = "32bit",
	};

	return LOOKUP(names, status);
}

const char *name_thread_capture(enum thread_capture capture)
{
	static const char *const names[] = {
		[CAPTURE_NONE] = "none",
		[CAPTURE_ASLEEP] = "asleep",
		[CAPTURE_HELD] = "held",
		[CAPTURE_MOVED] = "moved",
		[CAPTURE_QUIET] = "quiet",
	};

	return LOOKUP(names, capture);
}

const char *name_thread_state(char state)
{
	static const char *const names[] = {
		['R'] = "running", ['S'] = "sleeping", ['D'] = "uninterruptible",
		['T'] = "stopped", ['t'] = "traced",   ['Z'] = "zombie",
		['X'] = "dead",    ['I'] = "idle",     ['P'] = "parked",
	};

	return LOOKUP(names, (unsigned char)state);
}

const char *name_found_by(const struct frame *frame)
{
	if (frame->kind == FRAME_KIND_KERNEL || frame->raw == 0)
		return NULL;
	if (frame->flags & FRAME_BY_FRAME_POINTER)
		return "frame_pointer";
	if (frame->flags & FRAME_BY_CODE)
		return "code";
	return frame->flags & FRAME_BY_SCAN ? "scan" : "cfi";
}

unsigned syscall_nargs(const struct syscall_info *info)
{
	unsigned n = 1;

	if (!info || !info->args)
		return 6;
	if (!*info->args)
		return 0;
	for (const char *p = info->args; *p; p++)
		n += *p == ',';
	return n;
}
