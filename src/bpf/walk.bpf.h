/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_WALK_H
#define STAKEOUT_BPF_WALK_H

/* What a walk of a user stack goes by: where it is, what is mapped, the tables of that code, and the thread's memory. */

#if defined(__TARGET_ARCH_x86)

struct pt_regs___user {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
} __attribute__((preserve_access_index));

#define user_registers pt_regs___user

/* x86_64 has no link register: rdi takes its place, see unwind_row.h. */
enum { CODE_BITS = 64, HAS_LINK = 0, FP_GIVES_SP = 1 };

#define V8_STATE v8_state_x86_64

#elif defined(__TARGET_ARCH_arm64)

struct user_pt_regs___user {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
} __attribute__((preserve_access_index));

#define user_registers user_pt_regs___user

enum {
	CODE_BITS = 48, /* the bits of an address: pointer authentication signs the high ones */
	HAS_LINK = 1,
	FP_GIVES_SP = 0,
};

#define V8_STATE v8_state_aarch64

#endif

/* Set by the loader. */
const volatile bool want_user = true;
const volatile struct offcpu_signal_frame signal_frame = {};

enum { VM_EXEC = 4 };

enum { MAPPING_STEPS = 13, ROW_STEPS = 23 }; /* halvings needed to search OFFCPU_MAX_MAPPINGS, and BPF_ROWS_MAX */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32); /* tgid */
	__type(value, struct offcpu_maps);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, __u32);
	__type(value, struct offcpu_mapping);
} mappings SEC(".maps");

struct rows_table {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_INNER_MAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct unwind_row));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__array(values, struct rows_table);
} objects SEC(".maps");

enum exactness { RETURN_ADDRESS = 0, INTERRUPTED = 1, RESUMES = 2 };

struct walk {
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__u64 lr;
	__u64 go; /* the register that Go keeps its goroutine in, as it was where the walk began, or stacks were changed */
	__u64 go_outer; /* where the thread's own stack was left by the call from C outside of the last one; 0: there was none */
	__u64 bytecode; /* the register that HotSpot's interpreter keeps its place in, likewise */
	__u64 copied; /* the address that the scratch's copy was taken from; 0: none */
	__u64 found; /* OFFCPU_BY_*: how the frame at pc was found; 0: by its table */
	__u32 first; /* where its frames start in the scratch */
	__u32 n;
	__u32 which; /* scratch, which it is in */
	__u32 end;   /* enum offcpu_end */
	__u32 exact; /* enum exactness: pc is not a return address */
	__u32 has_fp;
	__u32 has_lr;
	__u32 only_innermost;
	__u32 sp_is_bound; /* after a step by frame pointer on aarch64: sp is at least this */
	__u32 has_runtimes; /* the process has some, of which BPF knows */
	__u32 has_java;
	__u32 looked_at_top; /* how much of its frame an interrupted method of Java has was found out, which takes long */
	__u32 zero;
	struct offcpu_maps maps;
	__u64 v8_start; /* V8's own code, which keeps frame pointers where it has no unwind information */
	__u64 v8_end;
	__u32 v8_object; /* that has it elsewhere, too; OFFCPU_NO_OBJECT: none has */
	__u32 zero2;
	__u64 r10; /* of x86_64, as it was where the walk began */
};

enum { OFFCPU_FRAMES = OFFCPU_KERNEL_FRAMES + OFFCPU_USER_FRAMES };

enum { COPY_WORDS = 128 };

/* Python's frames while they are read: see python_stack.bpf.h. */
struct python_walk {
	struct offcpu_python at;
	__u64 interp;
	__u64 tstate;
	__u64 frame;  /* the next one */
	__u64 code;   /* of the one that was read, and where that is in it */
	__u64 instr;
	__u64 cframe; /* 3.11: of the activation that has it */
	__u64 anchor; /* what the activation that was read last has on the C stack */
	struct offcpu_stack_id before; /* the hash of other runtimes' frames, */
	__u32 first;  /* and how many there are */
	__u32 own;    /* the thread's number for itself */
	__u32 cursor; /* native frames before this one are those of activations further in */
	__u32 placing;  /* the native frame of an activation is being looked for */
	__u32 unplaced; /* frames were read of which the activation has not been reached */
	__u32 ending;   /* all were read */
	__u8 bytes[OFFCPU_PYTHON_HEAD];
};

/* V8's frames while they are read: see v8_stack.bpf.h. */
struct v8_walk {
	struct offcpu_v8 at;
	__u64 shared_map; /* maps of this type that were seen in this stack: few objects have others */
	__u64 function_map;
	__u64 bytecode_map;
	__u64 pc; /* of the frame that is looked at */
	__u64 fp;
	__u64 place; /* that will be told */
	__u32 raw;
	__u32 zero;
	__u64 frame[OFFCPU_V8_WORDS];  /* what is below the frame pointer */
	__u64 object[OFFCPU_V8_WORDS]; /* the beginning of an object */
};

enum { JAVA_FRAME_WORDS = 11, JAVA_NAME = 32 };

/* HotSpot's code while it is stepped through: see hotspot_stack.bpf.h. */
struct java_walk {
	struct offcpu_hotspot at;
	__u64 start; /* of the blob */
	__u64 heap_end;
	__u64 frame[JAVA_FRAME_WORDS]; /* an interpreted one */
	char name[JAVA_NAME]; /* of the blob */
	struct top_code code; /* of the blob */
	struct top_scan scan;
	__u8 head[OFFCPU_HOTSPOT_HEAD];
};

/* A stack while it is taken. */
struct stack_scratch {
	struct offcpu_stack head;
	__u64 frames[OFFCPU_FRAMES + OFFCPU_RUNTIME_FRAMES * sizeof(struct offcpu_runtime_frame) / sizeof(__u64)];
	__u64 sps[OFFCPU_USER_FRAMES]; /* where the stack pointer was, in the user frames */
	struct offcpu_runtime_frame runtime[OFFCPU_RUNTIME_FRAMES]; /* behind the others when it is sent */
	struct offcpu_stack_id runtime_id; /* a hash of those */
	struct python_walk python;
	struct v8_walk v8;
	struct java_walk java;
	__u64 copy[COPY_WORDS]; /* a copy of the stack from where the walk starts: one read instead of many */
	struct offcpu_wait wait; /* here because the programs' own stack is small */
	struct walk walk;
};

/* One for the thread that resumed, one for the waker, which may be an interrupt that comes between. */
enum { SCRATCH_WAITER, SCRATCH_WAKER, SCRATCHES };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCHES);
	__type(key, __u32);
	__type(value, struct stack_scratch);
} scratches SEC(".maps");

static struct stack_scratch *get_scratch(__u32 which)
{
	return bpf_map_lookup_elem(&scratches, &which);
}

/*
 * Rows found lately, by address: most frames occur again and again, and a search takes some thirty look-ups. A set of
 * mappings never changes, so what was found in it stays true until the loader drops it.
 */
enum { CACHED_ROWS = 1024 };

volatile __u32 nforgotten; /* how many mappings the loader has dropped so far */

struct cached_row {
	__u64 at;
	__u32 set;
	__u32 nforgotten; /* when it was found */
	struct unwind_row row;
};

struct row_cache {
	struct cached_row rows[CACHED_ROWS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCHES);
	__type(key, __u32);
	__type(value, struct row_cache);
} row_caches SEC(".maps");

static __u64 mix(__u64 hash, __u64 value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ (hash >> 29);
}

static void mix_frame(struct offcpu_stack_id *id, __u64 frame)
{
	id->low = mix(id->low, frame);
	id->high = mix(id->high, frame + 0x7f4a7c15);
}

static __u64 strip_code(__u64 pc)
{
	return pc & (~0ull >> (64 - CODE_BITS));
}

/*
 * One halving of a search for the last entry at or before a key. Without branches: each would double what the verifier
 * has to look at.
 */
static void halve(__u32 *low, __u32 *high, __u32 mid, bool is_before)
{
	__u32 yes = is_before;

	asm volatile("" : "+r"(yes)); /* keeps the compiler from making it a branch again */
	*low += yes * (mid + 1 - *low);
	*high -= (1 - yes) * (*high - mid);
}

/*
 * The mapping of an address. A global function, like those below, so that the verifier checks it once and not for each
 * path that leads here.
 */
__attribute__((noinline)) int find_mapping(struct walk *w, __u64 pc, struct offcpu_mapping *out)
{
	struct offcpu_mapping *m;
	__u32 low = 0, high, key;

	if (!w || !out)
		return 0;
	high = w->maps.count;
	for (int i = 0; i < MAPPING_STEPS && low < high; i++) {
		__u32 mid = (low + high) / 2;

		key = w->maps.first + mid;
		m = bpf_map_lookup_elem(&mappings, &key);
		if (!m || m->set != w->maps.set)
			return 0;
		halve(&low, &high, mid, m->start <= pc);
	}
	key = w->maps.first + low - 1;
	m = low ? bpf_map_lookup_elem(&mappings, &key) : 0;
	if (!m)
		return 0;
	*out = *m;
	asm volatile("" ::: "memory");
	/* Its place may have been given to another set before, or meanwhile. */
	return out->set == w->maps.set && m->set == w->maps.set && out->start <= pc && pc < out->end;
}

/* The number of the table of the file that is there; OFFCPU_NO_OBJECT: it has none, or none is known. */
static __u32 object_at(struct walk *w, __u64 pc)
{
	struct offcpu_mapping mapping = {};

	return find_mapping(w, pc, &mapping) ? mapping.object : OFFCPU_NO_OBJECT;
}

/* V8's own code, also where V8 has mapped its file once more. */
static bool is_v8_file(struct walk *w, __u64 pc)
{
	if (pc >= w->v8_start && pc < w->v8_end)
		return true;
	return w->v8_object != OFFCPU_NO_OBJECT && object_at(w, pc) == w->v8_object;
}

enum { ROW_NONE, ROW_FOUND, ROW_OF_OTHERS /* the table is another file's by now */ };

/* The last row that starts at or before the address. The one behind the last says which table it is. */
__attribute__((noinline)) int find_row(struct offcpu_mapping *mapping, __u32 at, struct unwind_row *out)
{
	__u32 low = 0, high, object, nrows;
	struct unwind_row *row;
	void *table;

	if (!out || !mapping)
		return ROW_NONE;
	object = mapping->object;
	high = nrows = mapping->nrows;
	table = bpf_map_lookup_elem(&objects, &object);
	row = table ? bpf_map_lookup_elem(table, &nrows) : 0;
	if (!row || row->pc != mapping->serial)
		return ROW_OF_OTHERS;
	for (int i = 0; i < ROW_STEPS && low < high; i++) {
		__u32 mid = (low + high) / 2;

		row = bpf_map_lookup_elem(table, &mid);
		if (!row)
			return ROW_NONE;
		halve(&low, &high, mid, row->pc <= at);
	}
	low--;
	row = bpf_map_lookup_elem(table, &low); /* nothing comes before the first */
	if (!row)
		return ROW_NONE;
	*out = *row;
	return ROW_FOUND;
}

static bool read_word(struct walk *w, __u64 address, __u64 *out)
{
	__u64 offset = address - w->copied, word = offset / 8;
	struct stack_scratch *scratch;

	if (w->copied && offset < COPY_WORDS * sizeof(__u64) && !(offset & 7)) {
		scratch = get_scratch(w->which);
		if (!scratch)
			return false;
		asm volatile("" : "+r"(word)); /* shows the verifier a bound that the compiler already knows */
		*out = scratch->copy[word % COPY_WORDS];
		return true;
	}
	return bpf_probe_read_user(out, sizeof(*out), (void *)address) == 0;
}

static bool end(struct walk *w, __u32 why)
{
	w->end = why;
	return false;
}

#endif
