/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_USER_STACK_H
#define STAKEOUT_BPF_USER_STACK_H

/*
 * Walks the user stack of the current thread by the tables of unwind_row.h. Only for programs that run in that thread's
 * own context: its memory is the one that is mapped.
 */

#if defined(__TARGET_ARCH_x86)

struct pt_regs___user {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
} __attribute__((preserve_access_index));

#define user_registers pt_regs___user

/* x86_64 has no link register: rdi takes its place, see unwind_row.h. */
enum { CODE_BITS = 64, HAS_LINK = 0, FP_GIVES_SP = 1 };

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
	__u64 go; /* the register that Go keeps its goroutine in, as it was where the walk began */
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
	struct offcpu_maps maps;
};

enum { OFFCPU_FRAMES = OFFCPU_KERNEL_FRAMES + OFFCPU_USER_FRAMES };

enum { COPY_WORDS = 128 };

/* A stack while it is taken. */
struct stack_scratch {
	struct offcpu_stack head;
	__u64 frames[OFFCPU_FRAMES];
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
 * mappings never changes, so what was found in it stays true.
 */
enum { CACHED_ROWS = 1024 };

struct cached_row {
	__u64 at;
	__u32 set;
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

/* Steps to the frame record that the frame pointer leads to. One without a return address is the end of the stack. */
static bool step_by_frame_pointer(struct walk *w)
{
	__u64 fp, pc;

	if (!w->has_fp || w->fp < w->sp || (w->fp & 7) || !w->fp)
		return end(w, OFFCPU_END_NO_UNWIND);
	if (!read_word(w, w->fp, &fp) || !read_word(w, w->fp + 8, &pc))
		return end(w, OFFCPU_END_FAULT);
	pc = strip_code(pc);
	if (!pc)
		return end(w, OFFCPU_END_COMPLETE);
	w->sp = w->fp + 16; /* sp rises, whatever the caller had in its frame pointer */
	w->sp_is_bound = !FP_GIVES_SP;
	w->fp = fp;
	w->pc = pc;
	w->found = OFFCPU_BY_FRAME_POINTER;
	w->exact = w->has_lr = 0;
	return true;
}

/* What code still takes off the stack before it returns. */
struct epilogue {
	__u64 frame; /* bytes from sp to above the return address */
	__u64 ra;    /* from sp to the return address */
	__u64 fp;    /* and to the caller's frame pointer, */
	bool has_fp; /* if it is restored */
};

#if defined(__TARGET_ARCH_x86)

/* "add $N,%rsp; pop %rbp; ret", each but the last optional */
static bool read_epilogue(__u64 pc, struct epilogue *out)
{
	__u64 code;

	if (bpf_probe_read_user(&code, sizeof(code), (void *)pc))
		return false;
	out->ra = 0;
	if ((code & 0x80ffffff) == 0xc48348) {
		out->ra = code >> 24 & 0x7f;
		code >>= 32;
	}
	out->fp = out->ra;
	out->has_fp = (code & 0xff) == 0x5d;
	if (out->has_fp) {
		out->ra += 8;
		code >>= 8;
	}
	out->frame = out->ra + 8;
	return (code & 0xff) == 0xc3;
}

#else

/* "ldp x29,x30,[sp],#N; ret" or "ldr x30,[sp,#M]; add sp,sp,#N; ret" */
static bool read_epilogue(__u64 pc, struct epilogue *out)
{
	enum { LDP = 0xa8c07bfd, LDR = 0xf94003fe, ADD = 0x910003ff, RET = 0xd65f03c0 };
	__u32 code[3];

	if (bpf_probe_read_user(code, sizeof(code), (void *)pc))
		return false;
	out->has_fp = (code[0] & 0xffe07fff) == LDP;
	if (out->has_fp) {
		out->fp = 0;
		out->ra = 8;
		out->frame = (code[0] >> 15 & 0x3f) * 8;
		return code[1] == RET;
	}
	out->ra = (code[0] >> 10 & 0xfff) * 8;
	out->frame = code[1] >> 10 & 0xfff;
	return (code[0] & 0xffc003ff) == LDR && (code[1] & 0xffc003ff) == ADD && code[2] == RET && out->ra < out->frame;
}

#endif

static bool step_over_signal(struct walk *w)
{
	__u64 sp = w->sp;

	if (!read_word(w, sp + signal_frame.pc, &w->pc) || !read_word(w, sp + signal_frame.sp, &w->sp) ||
	    !read_word(w, sp + signal_frame.fp, &w->fp) || !read_word(w, sp + signal_frame.link, &w->lr))
		return end(w, OFFCPU_END_FAULT);
	w->exact = INTERRUPTED;
	w->has_fp = w->has_lr = 1;
	w->found = w->sp_is_bound = 0;
	return true;
}

static bool find_cfa(struct walk *w, const struct unwind_row *row, __u64 *cfa)
{
	const __u32 record = UNWIND_FP_AT_CFA | UNWIND_RA_AT_CFA;
	__u64 offset = 8 * (__s64)row->cfa;

	if ((row->kind == UNWIND_FROM_FP || row->kind == UNWIND_AT_FP) && !w->has_fp)
		return end(w, OFFCPU_END_NO_UNWIND);
	if (w->sp_is_bound && row->kind != UNWIND_FROM_FP) {
		/* The frame record is at fp, and the row says how far that is from the CFA. */
		if ((row->flags & record) != record || row->ra != row->fp + 1 || !w->has_fp)
			return end(w, OFFCPU_END_NO_UNWIND);
		*cfa = w->fp - 8 * (__s64)row->fp;
		return true;
	}
	if (row->kind == UNWIND_FROM_FP) {
		*cfa = w->fp + offset;
	} else if (row->kind == UNWIND_PLT) {
		*cfa = w->sp + 8 + ((w->pc & 15) >= (__u64)row->cfa ? 8 : 0);
	} else if (row->kind == UNWIND_FAR_FROM_SP) {
		*cfa = w->sp + 8 * ((__u64)row->ra << 16 | (__u16)row->cfa);
	} else if (row->kind == UNWIND_AT_SP || row->kind == UNWIND_AT_FP) {
		if (!read_word(w, (row->kind == UNWIND_AT_SP ? w->sp : w->fp) + offset, cfa))
			return end(w, OFFCPU_END_FAULT);
		*cfa += 8 * (__s64)row->ra;
	} else {
		*cfa = w->sp + offset;
	}
	return true;
}

__attribute__((noinline)) int step_by_row(struct walk *w, struct unwind_row *row)
{
	__u64 cfa = 0, pc, fp;
	bool second_number;

	if (!w || !row)
		return 0;
	second_number = row->kind >= UNWIND_FAR_FROM_SP;
	pc = w->lr;
	fp = w->fp;
	if (!find_cfa(w, row, &cfa))
		return false;
	if (second_number || row->flags & UNWIND_RA_AT_CFA) {
		if (!read_word(w, cfa + 8 * (second_number ? -1 : (__s64)row->ra), &pc))
			return end(w, OFFCPU_END_FAULT);
	} else if (!w->has_lr) { /* a later call has overwritten it */
		return end(w, OFFCPU_END_NO_PROGRESS);
	}
	if ((row->flags & UNWIND_FP_AT_CFA) && !read_word(w, cfa + 8 * (__s64)row->fp, &fp))
		return end(w, OFFCPU_END_FAULT);
	if ((row->flags & UNWIND_FP_AT_FP) && !read_word(w, w->fp, &fp))
		return end(w, OFFCPU_END_FAULT);
	pc = strip_code(pc);
	if (!pc)
		return end(w, OFFCPU_END_COMPLETE);
	/* Only a leaf may leave the stack pointer where it is. */
	if (cfa < w->sp || (cfa == w->sp && (!w->exact || pc == w->pc)))
		return end(w, OFFCPU_END_NO_PROGRESS);
	if (row->flags & (UNWIND_FP_AT_CFA | UNWIND_FP_AT_FP))
		w->has_fp = 1;
	if (row->flags & UNWIND_FP_LOST)
		w->has_fp = 0;
	w->sp = cfa;
	w->fp = fp;
	w->pc = pc;
	w->found = w->has_lr = w->sp_is_bound = 0;
	w->exact = row->flags & UNWIND_RESUMES ? RESUMES : RETURN_ADDRESS;
	return true;
}

static bool read_user(__u64 address, __u64 *out)
{
	return !(address & 7) && bpf_probe_read_user(out, sizeof(*out), (void *)address) == 0;
}

static bool is_on_stack(__u64 goroutine, __u64 sp)
{
	__u64 low, high;

	return read_user(goroutine + GO_G_STACK_LOW, &low) && read_user(goroutine + GO_G_STACK_HIGH, &high) && sp >= low &&
	       sp < high && !(sp & 7);
}

static bool is_run_by(__u64 goroutine, __u64 m)
{
	__u64 runs;

	return read_user(goroutine + GO_G_M, &runs) && runs == m;
}

/* A function as a value: a pointer to a pointer to its code. */
static __attribute__((noinline)) bool is_function(struct walk *w, __u64 value)
{
	struct offcpu_mapping mapping = {};
	__u64 code;

	return read_user(value, &code) && find_mapping(w, code, &mapping);
}

enum { GO_LOST, GO_FOUND, GO_LEFT };

/* The goroutine that the thread works for. GO_LEFT: it has left that for good, if *g is 0 or a function. */
static int find_goroutine(struct walk *w, __u64 *g, bool *old)
{
	__u64 m, g0, first, second;

	if (!w->go || !read_user(w->go + GO_G_M, &m) || !read_user(m + GO_M_G0, &g0) || g0 != w->go ||
	    !read_user(m + GO_M_CURG_OLD, &first) || !read_user(m + GO_M_CURG, &second))
		return GO_LOST;
	*old = first && first != g0 && is_run_by(first, m);
	*g = *old ? first : second;
	if (*old || (second && second != g0 && is_run_by(second, m)))
		return GO_FOUND;
	/* In both layouts the first is 0 when there is none; in the old one the other is a function. */
	return first ? GO_LOST : GO_LEFT;
}

/*
 * Goes to where the goroutine was left; with pc and link register for `morestack`. GO_LEFT: fp is what may be a
 * function, for the caller to find out, as functions that call each other share a small stack.
 */
__attribute__((noinline)) int go_to_saved(struct walk *w, int morestack)
{
	__u64 g = 0, sp, pc, lr = 0, fp = 0;
	bool old = false;
	int found = w ? find_goroutine(w, &g, &old) : GO_LOST;

	if (!w || found == GO_LOST)
		return w ? end(w, OFFCPU_END_SWITCHED) : GO_LOST;
	if (found == GO_LEFT) {
		w->fp = g;
		return GO_LEFT;
	}
	if (!read_user(g + GO_G_SP, &sp) || !is_on_stack(g, sp) || !read_user(g + (old ? GO_G_FP_OLD : GO_G_FP), &fp) ||
	    !read_user(g + (old ? GO_G_LR_OLD : GO_G_LR), &lr) || !read_user(g + GO_G_PC, &pc))
		return end(w, OFFCPU_END_SWITCHED);
	w->sp = sp;
	w->fp = fp;
	w->has_fp = 1;
	w->found = w->sp_is_bound = 0;
	if (!morestack)
		return GO_FOUND;
	w->pc = pc;
	w->lr = lr;
	w->has_lr = 1;
	w->exact = RESUMES;
	return GO_FOUND;
}

static bool step_to_saved(struct walk *w, bool morestack)
{
	int found = go_to_saved(w, morestack);

	if (found == GO_LEFT)
		return end(w, !w->fp || is_function(w, w->fp) ? OFFCPU_END_COMPLETE : OFFCPU_END_SWITCHED);
	return found == GO_FOUND;
}

static bool is_goroutine(__u64 g)
{
	__u64 m, curg;

	if (!read_user(g + GO_G_M, &m))
		return false;
	return (read_user(m + GO_M_CURG_OLD, &curg) && curg == g) || (read_user(m + GO_M_CURG, &curg) && curg == g);
}

/* Goes to where asmcgocall was called, which keeps the goroutine and its depth at these offsets. */
__attribute__((noinline)) int go_to_kept(struct walk *w, __u32 goroutine, __u32 depth)
{
	__u64 g, below, high, sp;

	if (!w || !read_user(w->sp + goroutine, &g) || !read_user(w->sp + depth, &below))
		return 0;
	sp = below;
	if (!g) {
		if (sp <= w->sp || sp - w->sp > GO_C_NEAR)
			return 0;
	} else {
		if (!is_goroutine(g) || !read_user(g + GO_G_STACK_HIGH, &high) || !is_on_stack(g, high - below))
			return 0;
		sp = high - below;
	}
	w->sp = sp;
	w->has_fp = w->found = w->sp_is_bound = 0;
	return 1;
}

static bool go_to_caller_of_c(struct walk *w)
{
#if defined(__TARGET_ARCH_x86)
	return go_to_kept(w, GO_X86_C_GOROUTINE_OLD, GO_X86_C_DEPTH_OLD) || go_to_kept(w, GO_X86_C_GOROUTINE, GO_X86_C_DEPTH);
#else
	return go_to_kept(w, GO_ARM_C_GOROUTINE, GO_ARM_C_DEPTH);
#endif
}

static bool step_to_goroutine(struct walk *w, struct unwind_row *row)
{
	if (row->kind == UNWIND_GO_MORESTACK)
		return step_to_saved(w, true);
	if (row->kind == UNWIND_GO_SYSTEM) {
		if (!step_to_saved(w, false))
			return false;
	} else if (row->kind == UNWIND_GO_C) {
		if (!go_to_caller_of_c(w))
			return end(w, OFFCPU_END_SWITCHED);
	} else {
		if (!w->has_fp)
			return end(w, OFFCPU_END_SWITCHED);
		w->sp = w->fp - 8 * ((__s64)row->fp + row->cfa);
		w->sp_is_bound = 0;
	}
	row->kind = UNWIND_FROM_SP;
	return step_by_row(w, row);
}

/*
 * Code without CFI at the top of the stack makes a system call, as in glibc's clone: it has pushed nothing, so its
 * return address is still where the call put it. It must point into known code.
 */
static bool step_from_stub(struct walk *w)
{
	struct offcpu_mapping mapping = {};
	const bool linked = HAS_LINK && w->has_lr;
	__u64 pc = w->lr;

	if (!linked && !read_word(w, w->sp, &pc))
		return false;
	pc = strip_code(pc);
	if (!find_mapping(w, pc - 1, &mapping))
		return false;
	w->sp += linked ? 0 : 8;
	w->pc = pc;
	w->found = OFFCPU_BY_FRAME_POINTER;
	w->exact = w->has_lr = 0;
	return true;
}

/* Code without a table that goes straight to its return: that leaves no doubt, whatever is in its frame pointer. */
static bool step_by_code(struct walk *w)
{
	struct epilogue code = {};
	struct offcpu_mapping mapping = {};
	__u64 pc, fp = w->fp;

	if (w->sp_is_bound || !read_epilogue(w->pc, &code) || !read_word(w, w->sp + code.ra, &pc) ||
	    (code.has_fp && !read_word(w, w->sp + code.fp, &fp)))
		return false;
	pc = strip_code(pc);
	if (!find_mapping(w, pc - 1, &mapping))
		return false;
	w->has_fp |= code.has_fp;
	w->pc = pc;
	w->sp += code.frame;
	w->fp = fp;
	w->found = OFFCPU_BY_CODE;
	w->exact = w->has_lr = 0;
	return true;
}

/* The row of an address, from the tables. False when it is in no known mapping. */
static bool search_row(struct walk *w, __u64 at, struct unwind_row *out)
{
	struct offcpu_mapping mapping = {};
	int found = ROW_NONE;
	__u64 offset;

	if (!find_mapping(w, at, &mapping))
		return false;
	offset = at - mapping.bias;
	if (mapping.object == OFFCPU_NO_OBJECT || !mapping.nrows) {
		out->kind = UNWIND_NO_TABLE;
		return true;
	}
	if (offset <= 0xffffffff)
		found = find_row(&mapping, (__u32)offset, out);
	if (found == ROW_NONE)
		out->kind = UNWIND_NONE;
	return found != ROW_OF_OTHERS;
}

__attribute__((noinline)) int look_up_row(struct walk *w, struct unwind_row *out)
{
	struct row_cache *cache;
	struct cached_row *c;
	__u64 at, hash;
	__u32 which;

	if (!w || !out)
		return 0;
	which = w->which;
	cache = bpf_map_lookup_elem(&row_caches, &which);
	if (!cache)
		return 0;
	at = w->pc - !w->exact;
	hash = (at ^ w->maps.set) * 0x9e3779b97f4a7c15ull;
	c = &cache->rows[(hash >> 40) % CACHED_ROWS];
	if (c->at != at || c->set != w->maps.set) {
		if (!search_row(w, at, out))
			return 0;
		c->at = at;
		c->set = w->maps.set;
		c->row = *out;
	} else {
		*out = c->row;
	}
	return 1;
}

static bool step(struct walk *w)
{
	struct unwind_row row = {};

	if (!look_up_row(w, &row))
		return end(w, OFFCPU_END_NO_TABLES);
	switch (row.kind) {
	case UNWIND_FROM_SP:
	case UNWIND_FROM_FP:
	case UNWIND_PLT:
	case UNWIND_FAR_FROM_SP:
	case UNWIND_AT_SP:
	case UNWIND_AT_FP:
		return step_by_row(w, &row);
	case UNWIND_GO_FRAME:
	case UNWIND_GO_SYSTEM:
	case UNWIND_GO_C:
	case UNWIND_GO_MORESTACK:
		return step_to_goroutine(w, &row);
	case UNWIND_SIGNAL:
		return step_over_signal(w);
	case UNWIND_END:
		if (row.flags & UNWIND_RESUMES)
			w->exact = RESUMES;
		return end(w, OFFCPU_END_COMPLETE);
	case UNWIND_NONE:
		return (w->n == 1 && step_from_stub(w)) || step_by_frame_pointer(w);
	case UNWIND_NO_TABLE:
		return step_by_code(w) || step_by_frame_pointer(w);
	default:
		return end(w, OFFCPU_END_UNSUPPORTED);
	}
}

static long walk_frame(__u32 index, void *ctx)
{
	struct stack_scratch *scratch = get_scratch(*(__u32 *)ctx);
	struct walk *w;
	__u64 mark;
	__u32 at;

	if (!scratch)
		return 1;
	w = &scratch->walk;
	at = w->first + w->n;
	if (w->n >= OFFCPU_USER_FRAMES || at >= OFFCPU_FRAMES) {
		w->end = OFFCPU_END_DEPTH;
		return 1;
	}
	mark = w->exact == RESUMES ? OFFCPU_RESUMES : OFFCPU_INTERRUPTED;
	scratch->frames[at] = w->pc | w->found | (w->exact && w->n ? mark : 0);
	w->n++;
	if (w->only_innermost)
		w->end = OFFCPU_END_32BIT;
	if (!w->only_innermost && step(w))
		return 0;
	if (w->end == OFFCPU_END_COMPLETE && w->exact == RESUMES)
		scratch->frames[at] |= OFFCPU_RESUMES;
	return 1;
}

/* True when the thread is in 32-bit code, whose stack has words of another size. */
static bool is_32bit(const struct user_registers *regs)
{
#if defined(__TARGET_ARCH_x86)
	enum { USER32_CS = 0x23, XEN_USER32_CS = 0xe023 };
	__u16 cs = (__u16)regs->cs;

	return cs == USER32_CS || cs == XEN_USER32_CS;
#else
	enum { PSTATE_32BIT = 0x10 };

	return regs->pstate & PSTATE_32BIT;
#endif
}

/* Where the walk came to code that is not known. */
static __u64 missed_by(const struct walk *w)
{
	return w->pc - !w->exact;
}

static long note_code(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	bool *is_code = ctx;

	*is_code = vma->vm_flags & VM_EXEC;
	return 0;
}

/* Why the walk came to an address in no known mapping: some stacks lead to where there is no code. */
static __u32 why_unknown(struct task_struct *task, const struct walk *w)
{
	enum { ENOENT = 2 };
	bool is_code = false;
	long rc = bpf_find_vma(task, missed_by(w), note_code, &is_code, 0);

	if (rc == -ENOENT || (rc == 0 && !is_code))
		return OFFCPU_END_NOT_CODE;
	return w->maps.count < OFFCPU_MAX_MAPPINGS ? OFFCPU_END_NO_TABLES : OFFCPU_END_MANY_MAPPINGS;
}

/*
 * Puts the frames behind those of the kernel. A global function, as it may have to be done twice: with the maps that were
 * known, and with those that were then found. The walk is in the scratch as there is little room on the programs' own stack.
 */
__attribute__((noinline)) int walk_user(__u32 tgid, __u32 which)
{
	struct stack_scratch *scratch = get_scratch(which);
	struct user_registers *regs;
	struct offcpu_maps *maps;
	struct walk *w;

	/* Older kernels look at every global function, and some do not have what this one needs. */
	if (!want_user || !scratch)
		return 0;
	regs = (struct user_registers *)bpf_task_pt_regs((struct task_struct *)bpf_get_current_task_btf());
	maps = bpf_map_lookup_elem(&processes, &tgid);
	w = &scratch->walk;
	*w = (struct walk){
		.exact = INTERRUPTED, .has_fp = 1, .has_lr = 1, .which = which, .first = scratch->head.nkernel};
	if (maps)
		w->maps = *maps;
	scratch->head.set = w->maps.set;
#if defined(__TARGET_ARCH_x86)
	w->pc = regs->ip;
	w->sp = regs->sp;
	w->fp = regs->bp;
	w->lr = regs->di;
	w->go = regs->r14;
#else
	w->pc = regs->pc;
	w->sp = regs->sp;
	w->fp = regs->regs[29];
	w->lr = strip_code(regs->regs[30]);
	w->go = regs->regs[28];
#endif
	if (bpf_probe_read_user(scratch->copy, sizeof(scratch->copy), (void *)w->sp) == 0)
		w->copied = w->sp;
	if (!w->pc)
		return 0; /* a thread that the kernel runs in this process, such as io_uring's */
	w->only_innermost = is_32bit(regs);
	bpf_loop(OFFCPU_USER_FRAMES + 1, walk_frame, &which, 0);
	scratch->head.nuser = w->n;
	scratch->head.user_end = w->end;
	return 0;
}

#endif
