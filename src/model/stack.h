/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_STACK_H
#define STAKEOUT_MODEL_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/* Why a walk ended. Everything but STACK_COMPLETE is an incomplete stack, and says so in every report. */
enum stack_end {
	STACK_COMPLETE,         /* the outermost frame was reached */
	STACK_NO_UNWIND_INFO,   /* no CFI for the pc, and no frame pointer to follow */
	STACK_COPY_LIMIT,       /* the walk left the part of the stack that was copied (--stack-size) */
	STACK_UNREADABLE,       /* a word that the step needs cannot be read */
	STACK_NO_PROGRESS,      /* the step would not move towards the stack's base */
	STACK_DEPTH_LIMIT,      /* --depth */
	STACK_MISSING_REGISTER, /* the step needs a register that was not captured (/proc knows only pc and sp) */
	STACK_NOT_CAPTURED,     /* there was nothing to walk: see the thread's status */
	STACK_DOUBTFUL,         /* the outermost frame was reached, but frames may be missing in between, or have lost their names */
	STACK_END_COUNT,
};

/* The name in JSON: "complete", "no_unwind_info", "stack_copy_limit", "unreadable_memory"… */
const char *stack_end_name(enum stack_end end);

enum frame_flag {
	FRAME_RETURN_ADDRESS = 1 << 0,   /* pc follows a call: look names up at pc - 1 */
	FRAME_SIGNAL = 1 << 1,           /* the signal trampoline; the frame above it was interrupted */
	FRAME_BY_FRAME_POINTER = 1 << 2, /* found without CFI, by following the frame pointer */
	FRAME_BY_SCAN = 1 << 3,          /* found without CFI, by searching the stack for a call's return address */
	FRAME_BY_CODE = 1 << 4,          /* found without CFI, by following the function's code to its return */
	FRAME_UNREAD = 1 << 5,           /* its code was made at run time, and is not among what was captured */
	FRAME_UNMAPPED = 1 << 6,         /* whether its code is of a file is not known: for runtimes, while they put theirs in places */
};

/* A frame before it has names. */
struct raw_frame {
	uint64_t pc;
	uint64_t sp;
	uint32_t flags; /* enum frame_flag; BY_* tell how this frame was found from the one below it */
};

/* A frame that a language runtime tells of, before it has names. */
struct runtime_frame {
	uint64_t code;    /* which function, in the runtime's own terms, */
	uint64_t place;   /* and where in it; */
	uint64_t more;    /* and what else it takes to name it, of frames that BPF told; Python: where it is on the stack, or 0 */
	uint32_t raw;     /* index of the raw frame whose place it takes */
	uint32_t runtime; /* which runtime's: the enum frame_kind of its frames */
	uint64_t call;    /* which call of the function it is, where its variables are shown; else 0 */
	uint32_t version; /* of the function, where other code may get its address while it is recorded; else 0 */
};

/* Innermost frame first. */
struct raw_stack {
	VEC_FIELDS(struct raw_frame);
	VEC(struct runtime_frame) runtime; /* innermost first */
	enum stack_end end;
	uint64_t end_pc;       /* where an incomplete walk stopped */
	uint64_t missing;      /* an address that an incomplete walk could not read; 0: there is none */
	char error[320];       /* a sentence for an incomplete stack, "" otherwise */
};

static inline void raw_stack_deinit(struct raw_stack *stack)
{
	vec_deinit(stack);
	vec_deinit(&stack->runtime);
}

enum frame_kind {
	FRAME_KIND_NATIVE,
	FRAME_KIND_KERNEL,
	FRAME_KIND_SIGNAL,
	FRAME_KIND_PYTHON,
	FRAME_KIND_JAVA,
	FRAME_KIND_JS,
	FRAME_KIND_STUB,   /* code of a runtime that is no function of the program */
	FRAME_KIND_MARKER, /* no frame: says what is not shown here */
	FRAME_KIND_COUNT,
};

const char *frame_kind_name(enum frame_kind kind);

/* The same in front of a line of text: "py"; NULL for what the processor itself runs. */
const char *frame_kind_mark(enum frame_kind kind);

/* What the line of a frame is. */
enum line_kind {
	LINE_CURRENT,     /* where it is */
	LINE_APPROXIMATE, /* or close to that */
	LINE_DEFINITION,  /* where the function begins */
	LINE_KIND_COUNT,
};

const char *line_kind_name(enum line_kind kind);

/* Where the name of a function came from. */
enum symbol_source {
	SYMBOL_UNKNOWN,   /* there is no name */
	SYMBOL_SYMTAB,    /* .symtab of the file or of its debug file */
	SYMBOL_DYNSYM,    /* .dynsym, what the file exports */
	SYMBOL_MINIDEBUG, /* .gnu_debugdata */
	SYMBOL_PLT,       /* a stub of the procedure linkage table, by its relocation */
	SYMBOL_DWARF,
	SYMBOL_GO,       /* Go's .gopclntab */
	SYMBOL_GDB_JIT,  /* an object that a JIT compiler announced through __jit_debug_descriptor */
	SYMBOL_JITDUMP,  /* jit-PID.dump */
	SYMBOL_PERF_MAP, /* perf-PID.map */
	SYMBOL_KERNEL,   /* the kernel was asked at capture */
	SYMBOL_KALLSYMS, /* /proc/kallsyms */
	SYMBOL_RUNTIME,  /* what a language runtime keeps of its functions */
	SYMBOL_SOURCE_COUNT,
};

/* The name in JSON: "symtab", "dynsym", "gnu_debugdata"…; NULL for SYMBOL_UNKNOWN. */
const char *symbol_source_name(enum symbol_source source);

/* A file with code, as named in reports. */
struct module_info {
	const char *path;     /* as the target sees it, or "[vdso]"; kernel modules: their bare name */
	const char *build_id; /* hex, or NULL */
	const char *problem;  /* why there are no symbols or no debug info, or NULL */
	const char *help;     /* what would help against the problem, or NULL */
};

/* A variable of a frame, as text. */
struct frame_local {
	const char *name;
	const char *value;
};

/* A frame with all that is known of it; what is not known is NULL or 0. Strings outlive the stack. */
struct frame {
	uint64_t address;
	enum frame_kind kind;
	bool inlined;    /* a call that the compiler inlined into the next frame that is not */
	bool has_offset; /* `offset` from the start of `symbol` is known */
	uint32_t raw;    /* index of the raw frame it came from */
	uint32_t flags;  /* of the raw frame */
	const char *symbol;
	enum symbol_source symbol_source;
	uint64_t offset;
	const struct module_info *module;
	uint64_t module_offset; /* the address in the file's own terms: what addr2line -e takes */
	const char *file;
	uint32_t line;
	uint32_t column;
	enum line_kind line_kind;
	const char *tier;  /* how a runtime executes it: "interpreted", "C2"; NULL: nothing to tell */
	const struct frame_local *locals; /* NULL: not asked for, or not known */
	uint32_t nlocals;
	uint32_t replaces; /* native frames that it and those behind it stand for; on the first of them */
};

/* A named stack, innermost frame first; shared by all threads whose raw stacks are equal. */
struct stack {
	VEC_FIELDS(struct frame);
};

/* Whether they are of the same functions, wherever in these they are: what was inlined there does not count. */
bool stack_same_functions(const struct stack *a, const struct stack *b);
uint64_t stack_hash_functions(const struct stack *stack);

/* "Thread.sleep" of Java's "java.lang.Thread.sleep". */
const char *name_without_package(const char *name);

/* "ep_poll" is also "ep_poll.constprop.0" and, as the kernel writes it, "ep_poll+0x2c/0x400"; "n_tty_*" is all that begin so. */
bool name_is_kernel_function(const char *symbol, const char *name);

/* Functions of the C library. "poll" of "__GI___poll", "accept" of "__libc_accept". */
const char *name_in_library(const char *symbol);

/* "clock_nanosleep" is also "clock_nanosleep@@GLIBC_2.17" and "__clock_nanosleep_time64". */
bool name_is_library_function(const char *symbol, const char *name);

/* Between a function of the C library that can be cancelled and the system call: "__syscall_cancel", "__cp_end". */
bool name_is_library_plumbing(const char *symbol);

#endif
