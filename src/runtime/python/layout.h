/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_RUNTIME_PYTHON_LAYOUT_H
#define STAKEOUT_RUNTIME_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "bpf/runtime_layout.h"
#include "model/mem.h"

/*
 * Where things are in a CPython process: addresses, and offsets in its structures. They come from the target itself where it
 * tells them (PyCode_Type.tp_members; _Py_DebugOffsets from 3.13 on), else from a table by version; all are checked against
 * what is in memory before anything is read with them (threads.h). Words, so that a snapshot keeps them as they are.
 */
enum python_word {
	PY_FORMAT,  /* how many words these are: a snapshot may be of another version of ours */
	PY_THREADS, /* how many threads are told behind them; code objects and tasks follow */
	PY_SIGHTINGS, /* how many code objects are told behind the threads */
	PY_PLACES,    /* and how many activations of the interpreter behind these */
	PY_TASKS_CUT, /* not 0: there are more than these */
	PY_LOCALS,  /* not 0: variables were read, too */
	PY_VERSION, /* as Py_Version: 0x030b02f0 is 3.11.2; without the last three parts where these are not known */
	PY_FRAMES,  /* enum python_frames */
	PY_RUNTIME, /* addresses: _PyRuntime, */
	PY_CODE_TYPE,  /* PyCode_Type, */
	PY_CORO_TYPE,  /* PyCoro_Type, PyGen_Type, PyAsyncGen_Type; 0: not exported, */
	PY_GEN_TYPE,
	PY_ASYNC_GEN_TYPE,
	PY_EVAL_START, /* _PyEval_EvalFrameDefault, and its end */
	PY_EVAL_END,
	PY_RUNTIME_INTERPRETERS, /* offsets in _PyRuntimeState: the first interpreter; */
	PY_RUNTIME_GIL,          /* the GIL, up to 3.11; 0: in the interpreter */
	PY_RUNTIME_CURRENT,      /* the thread state that has it; 0: not known there */
	PY_INTERP_NEXT,          /* in PyInterpreterState */
	PY_INTERP_THREADS,
	PY_INTERP_MODULES,
	PY_INTERP_GIL,    /* a pointer to the GIL; 0: it is in the runtime */
	PY_TSTATE_NEXT,   /* in PyThreadState */
	PY_TSTATE_INTERP,
	PY_TSTATE_FRAME,  /* the innermost frame; PY_FRAMES_CFRAME: the innermost cframe */
	PY_TSTATE_THREAD, /* what pthread_self() is */
	PY_TSTATE_NATIVE, /* the tid; 0: not there */
	PY_PTHREAD_TID,   /* in the C library's struct: the tid; 0: not known, and since 3.11 seldom needed */
	PY_CFRAME_FRAME,  /* in _PyCFrame: the innermost frame of an activation of the interpreter */
	PY_CFRAME_PREVIOUS,
	PY_FRAME_CODE, /* in a frame */
	PY_FRAME_PREVIOUS,
	PY_FRAME_INSTR, /* a pointer to an instruction; PY_FRAMES_OBJECTS: an int, the number of one */
	PY_FRAME_OWNER, /* a byte: see PY_FRAMES_SHIM and PY_FRAMES_CFRAME */
	PY_FRAME_LOCALS,
	PY_FRAME_STACK, /* where the values that it works with end: see coroutine.c */
	PY_GEN_FRAME, /* in a generator: its frame; PY_FRAMES_OBJECTS: a pointer to that */
	PY_GEN_STATE, /* a byte; PY_FRAMES_OBJECTS: in the frame, or 0: there is none */
	PY_INTERP_TASKS, /* the heads of lists of tasks, since 3.14, in an interpreter's and a thread's state, */
	PY_TSTATE_TASKS,
	PY_TASK_NODE, /* and where in a task its link is; 0: there are no such lists */
	PY_CODE_FILENAME, /* in a code object */
	PY_CODE_NAME,
	PY_CODE_QUALNAME, /* 0: it has none */
	PY_CODE_FIRSTLINE,
	PY_CODE_LINES,
	PY_CODE_VARIABLES, /* tuples of names: of all variables; up to 3.10 of those that are the function's alone, */
	PY_CODE_CELLS,     /* that functions in it share, */
	PY_CODE_FREE,      /* and that it shares with the one around it */
	PY_CODE_BYTES, /* the instructions; PY_FRAMES_OBJECTS: a pointer to a bytes object of them */
	PY_STR_ASCII,  /* where the characters of an ASCII string begin */
	PY_STR_OTHER,  /* and those of any other */
	PY_GIL_HOLDER, /* in the GIL: the thread state that has or had it, */
	PY_GIL_LOCKED, /* and whether it has */
	PY_GIL_MUTEX,  /* and what is locked while these two change */
	PY_RLOCK_OWNER, /* in an RLock: what pthread_self() is of whoever has it, */
	PY_RLOCK_COUNT, /* and how often */
	PY_WORDS,

	/* Of use while the process is there, and not kept; 0: there is no such thing. */
	PY_CODE_EXCEPTIONS = PY_WORDS, /* in a code object: where its handlers of exceptions are, */
	PY_CODE_NAMES,		       /* and a tuple of the attributes and global variables that it uses */
	PY_ALL_WORDS,
};

struct python_layout {
	uint64_t at[PY_ALL_WORDS];
};

static inline unsigned python_minor(const struct python_layout *layout)
{
	return layout->at[PY_VERSION] >> 16 & 0xff;
}

/* What is found in the file before any memory is read: addresses in the process, 0: not exported. */
struct python_symbols {
	uint64_t runtime;
	uint64_t code_type;
	uint64_t coro_type;
	uint64_t gen_type;
	uint64_t async_gen_type;
	uint64_t version; /* of Py_Version */
	uint64_t eval;
	uint64_t eval_end;
	unsigned minor; /* by a file's name; 0: not known */
	uint64_t interp_tasks; /* as PY_INTERP_TASKS and so on, which the module that has the tasks tells */
	uint64_t tstate_tasks;
	uint64_t task_node;
};

/* Fills it in for the process that `mem` reads. The sentence says why it cannot be read. */
int python_layout_read(const struct python_symbols *symbols, struct mem *mem, struct err *err, struct python_layout *out);

/* Whether the offsets are ones that a structure can have: words of a snapshot that is read from a file may be anything. */
bool python_layout_is_sane(const struct python_layout *layout);

#endif
