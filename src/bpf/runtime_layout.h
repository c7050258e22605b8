/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_RUNTIME_LAYOUT_H
#define STAKEOUT_BPF_RUNTIME_LAYOUT_H

/* What the off-CPU programs know of the language runtimes of a process, and what they tell of a stack's frames. */

#ifndef __bpf__
#include <assert.h>
#include <linux/types.h>
#endif

enum { OFFCPU_RUNTIME_FRAMES = 256 };

enum offcpu_runtime_kind {
	OFFCPU_PYTHON = 1,
	OFFCPU_JAVA = 2,
	OFFCPU_JS = 3,
	OFFCPU_PYTHON_OBJECT = 4, /* up to 3.10, where each frame has an activation of its own */
};

/* A frame of a runtime, in its own terms: struct runtime_frame (model/stack.h). */
struct offcpu_runtime_frame {
	__u64 code;
	__u64 place;
	__u32 version; /* of the code, by what it consists of: it may be given up, and other code get its address; or 0 */
	__u16 raw;     /* index of the user frame whose place it takes; the number of those: of one that was not reached */
	__u16 runtime; /* enum offcpu_runtime_kind */
};

/*
 * Since 3.11 Python's frames come without `raw`, an activation of the interpreter at a time. What ends each has no code, and tells the
 * user frame of them all.
 */

/* Where CPython has what: struct python_layout (runtime/python/layout.h), as far as it is needed to find frames. */
enum { OFFCPU_PYTHON_WORDS = 4, OFFCPU_PYTHON_STR_HASH = 24 };

struct offcpu_python {
	__u64 interpreters; /* address of the pointer to the first; 0: the process has no Python */
	__u64 eval_start;
	__u64 eval_end;
	__u32 frames; /* enum python_frames */
	__u32 head;   /* how much of a frame is read */
	__u32 interp_next;
	__u32 interp_threads;
	__u32 tstate_next;
	__u32 tstate_frame;
	__u32 tstate_thread;
	__u32 tstate_native;
	__u32 pthread_tid;
	__u32 cframe_frame;
	__u32 cframe_previous;
	__u32 frame_code;
	__u32 frame_previous;
	__u32 frame_instr;
	__u32 frame_owner;
	__u32 code_from; /* the part of a code object that tells it from others, */
	__u32 code_size; /* at most OFFCPU_PYTHON_HEAD - 1 bytes, */
	__u32 code_words[OFFCPU_PYTHON_WORDS]; /* and what counts of it: offsets in that part, of the name first */
	__u32 zero;
};

/*
 * Both sides must come to the same: by the hash of the name, which Python keeps in the string, and by the other words. What a
 * code object points to often gets the address of what its predecessor pointed to. Never 0.
 */
static inline __u32 offcpu_python_version(__u64 version, __u64 word)
{
	version = (version ^ word) * 0x9e3779b97f4a7c15ull;
	return (__u32)(version >> 32) | 1;
}

enum { OFFCPU_PYTHON_HEAD = 128 }; /* most of it */

struct offcpu_runtime {
	struct offcpu_python python;
};

/* What became of the runtime's frames of a stack. */
enum offcpu_runtime_end {
	OFFCPU_RUNTIME_NONE = 0,     /* there are none, or they are all there */
	OFFCPU_RUNTIME_DEPTH = 1,    /* there are more than OFFCPU_RUNTIME_FRAMES */
	OFFCPU_RUNTIME_FAULT = 2,    /* a page is not resident */
	OFFCPU_RUNTIME_MISMATCH = 3, /* they do not fit together, or not to the native ones */
};

static_assert(sizeof(struct offcpu_runtime_frame) == 24, "offcpu_runtime_frame has no hidden padding");
static_assert(sizeof(struct offcpu_python) == 112, "offcpu_python has no hidden padding");

#endif
