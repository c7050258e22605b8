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
	__u64 more;    /* what else it takes to name it, or 0 */
	__u32 version; /* of the code, by what it consists of: it may be given up, and other code get its address; or 0 */
	__u16 raw;     /* index of the user frame whose place it takes; the number of those: of one that was not reached */
	__u16 runtime; /* enum offcpu_runtime_kind */
};

/*
 * Since 3.11 Python's frames come without `raw`, an activation of the interpreter at a time. What ends each has no code, and tells the
 * user frame of them all; as its place, if there is a copy of the stack, where the activation is on that.
 */

/* How CPython keeps the frames of a thread. */
enum python_frames {
	PY_FRAMES_OBJECTS = 1, /* up to 3.10: each call is a frame object and an activation of the interpreter */
	PY_FRAMES_CFRAME = 2,  /* 3.11: an activation has a struct on the C stack, whose innermost frame is known */
	PY_FRAMES_SHIM = 3,    /* since 3.12 an activation has a frame on the C stack, which stands behind its last */
};

enum { PY_OWNED_BY_C_STACK = 3 }; /* and above, since 3.14: the owner of a frame that is on the C stack */

/* Where CPython has what: struct python_layout (runtime/python/layout.h), as far as it is needed to find frames. */
enum { OFFCPU_PYTHON_WORDS = 5, OFFCPU_PYTHON_STR_HASH = 24 };

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
	__u32 by_name; /* the hash of its name is needed, too */
	__u32 zero;
};

/*
 * Both sides must come to the same, by the words of the code object. Since 3.12 one of them is a number that no other has. Before,
 * the hash of the name comes first, which Python keeps in the string: what a code object points to often gets the address of
 * what its predecessor pointed to. Never 0.
 */
static inline __u32 offcpu_python_version(__u64 version, __u64 word)
{
	version = (version ^ word) * 0x9e3779b97f4a7c15ull;
	return (__u32)(version >> 32) | 1;
}

enum { OFFCPU_PYTHON_HEAD = 128 }; /* most of it */

/*
 * Where V8 has what: struct v8_layout (runtime/v8/layout.h), as far as it is needed to find the SharedFunctionInfo of a
 * frame's function. Numbers of words: those of a frame are counted from OFFCPU_V8_WORDS words below its frame pointer, those
 * of an object from its start.
 */
struct offcpu_v8 {
	__u64 code_start; /* its file's code; 0: the process has no V8 */
	__u64 code_end;	  /* of what is there for V8 itself, see has_copies */
	__u32 frame_context;
	__u32 frame_function;
	__u32 frame_bytecode;
	__u32 frame_offset;
	__u32 function_shared;
	__u32 shared_name;
	__u32 shared_script;
	__u32 map_type; /* in bytes */
	__u32 type_function_first;
	__u32 type_function_last;
	__u32 type_shared;
	__u32 type_bytecode;
	__u32 kind_builtin_exit;
	__u32 kind_continuation;
	__u32 kind_catching_continuation;
	__u32 has_copies; /* builtins of the file are mapped elsewhere, too: near what V8 makes */
};

enum { OFFCPU_V8_WORDS = 8 };

/*
 * A frame of V8: `code` is its function's SharedFunctionInfo, or 0, and `more` the bytecode that the interpreter executes
 * there, or 0. `place` has, from the lowest bit on: where in that bytecode, plus 1, or 0; a bit that the code is V8's own;
 * what kind of frame it is; and a hash of what the SharedFunctionInfo says of name and script, by which it is known again.
 */
enum {
	OFFCPU_V8_OFFSET_BITS = 24,
	OFFCPU_V8_BUILTIN_BIT = 24,
	OFFCPU_V8_KIND_BIT = 25,
	OFFCPU_V8_PROOF_BIT = 32,
	OFFCPU_V8_MAX_KIND = 64,
	OFFCPU_V8_AT_EDGE = 126,  /* it has just begun, or returns: there is no frame that tells of it */
	OFFCPU_V8_FUNCTION = 127, /* of a function */
};

/* A field of a structure. */
struct offcpu_field {
	__u16 offset;
	__u8 size; /* 1, 2, 4 or 8; 0: there is none */
	__u8 is_signed;
};

/* A part of HotSpot's memory for code, as far as it may grow. */
struct offcpu_code_heap {
	__u64 low;
	__u64 high;
	__u64 map; /* of its segments: a byte for each */
	__u64 log2_segment;
};

enum { OFFCPU_CODE_HEAPS = 8 };

/* Where HotSpot has what: struct layout (runtime/hotspot/layout.h), as far as it is needed to step through its code. */
struct offcpu_hotspot {
	__u64 low; /* all heaps are from here */
	__u64 high; /* to here; 0: the process has no Java */
	__u64 call_return;
	__u64 interpreter;
	__u64 interpreter_end;
	struct offcpu_code_heap heaps[OFFCPU_CODE_HEAPS];
	__u32 nheaps;
	__u32 block;	    /* bytes from the start of a blob's first segment to the blob */
	__u32 head;	    /* how much of a blob is read */
	__s32 bytecode;	    /* from the frame pointer of an interpreted frame to where it has what it executes */
	__u32 method_const; /* of Method: its ConstMethod, */
	__u32 const_size;   /* the size of that, behind which the bytecode is, */
	struct offcpu_field const_code_size; /* and how much there is */
	struct offcpu_field blob_name;
	struct offcpu_field blob_size;
	struct offcpu_field frame_size;
	struct offcpu_field frame_complete;
	struct offcpu_field code_begin; /* pointers, */
	struct offcpu_field code_end;
	struct offcpu_field code_offset; /* or offsets from the blob */
	struct offcpu_field data_offset;
	struct offcpu_field compile_id;
	struct offcpu_field orig_pc_offset;
	struct offcpu_field deopt_handler; /* a pointer, */
	struct offcpu_field deopt_offset;  /* or an offset from the blob */
	__u32 id; /* of the virtual machine, which no other has */
};

enum { OFFCPU_HOTSPOT_HEAD = 512 }; /* most of it */

/*
 * Routines of HotSpot have frames of any kind (runtime/hotspot/stub.h): how to get to the caller, for each address in a block of
 * code where one may be interrupted. In the low bits a kind, then a number of words.
 */
enum { OFFCPU_STUB_BLOCK = 512, OFFCPU_STUB_SHIFT = 2, OFFCPU_STUB_WORDS = 1 << 14 };

enum offcpu_stub_kind {
	OFFCPU_STUB_UNKNOWN = 0,
	OFFCPU_STUB_LINK = 1, /* the return address is in its register, or so far above sp; the frame pointer is the caller's */
	OFFCPU_STUB_FROM_SP = 2, /* frame pointer and return address end so far above sp, where the caller's frame begins, */
	OFFCPU_STUB_FROM_FP = 3, /* or above the frame pointer */
};

struct offcpu_stub_key {
	__u64 block; /* address / OFFCPU_STUB_BLOCK */
	__u32 id;
	__u32 zero;
};

struct offcpu_stub_rows {
	__u16 rows[OFFCPU_STUB_BLOCK];
};

struct offcpu_runtime {
	struct offcpu_python python;
	struct offcpu_hotspot hotspot;
	struct offcpu_v8 v8;
};

/* What became of the runtime's frames of a stack. */
enum offcpu_runtime_end {
	OFFCPU_RUNTIME_NONE = 0,     /* there are none, or they are all there */
	OFFCPU_RUNTIME_DEPTH = 1,    /* there are more than OFFCPU_RUNTIME_FRAMES */
	OFFCPU_RUNTIME_FAULT = 2,    /* a page is not resident */
	OFFCPU_RUNTIME_MISMATCH = 3, /* they do not fit together, or not to the native ones */
};

static_assert(sizeof(struct offcpu_runtime_frame) == 32, "offcpu_runtime_frame has no hidden padding");
static_assert(sizeof(struct offcpu_python) == 120, "offcpu_python has no hidden padding");
static_assert(sizeof(struct offcpu_hotspot) == 376, "offcpu_hotspot has no hidden padding");
static_assert(sizeof(struct offcpu_v8) == 80, "offcpu_v8 has no hidden padding");

/* By what a SharedFunctionInfo is known again: its words for name and script. */
static inline __u32 offcpu_v8_proof(__u64 name, __u64 script)
{
	__u64 hash = (name * 0x9e3779b97f4a7c15ull) ^ script;

	hash *= 0xff51afd7ed558ccdull;
	return (__u32)(hash >> 32);
}

#endif
