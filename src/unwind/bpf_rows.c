/* SPDX-License-Identifier: MIT */
#include "unwind/bpf_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "unwind/cfi.h"
#include "unwind/codeinfo.h"
#include "unwind/go_rows.h"
#include "unwind/insn.h"

enum {
	WORD = 8,
	FUNCTION_ALIGN = 16,
	SMALL_CODE = 64 << 10, /* bytes: a vDSO has no more */
	MAX_SCAN = 8 << 20,    /* bytes of code that are searched at most */
	MAX_FOUND = 64,        /* in one file */
	ENTRY_SIZE = 128,      /* of the startup code at an ELF entry point */
	AARCH64_INSN = 4,      /* bytes of each instruction */
	SYSCALL_TAIL = 2,      /* the last bytes of a system call instruction, which tell it from most others */
};

/* A table being made, by rising address. */
struct table {
	const struct arch *arch;
	struct bpf_rows *rows;
	uint64_t limit; /* pcs end here */
	uint64_t end;   /* where the last row's code ends; what follows is not known */
	bool dense;     /* every gap counts, however small */
};

static const struct unwind_row none = {.kind = UNWIND_NONE};

void bpf_rows_deinit(struct bpf_rows *rows)
{
	vec_deinit(rows);
}

static bool is_same(const struct unwind_row *a, const struct unwind_row *b)
{
	return a->kind == b->kind && a->flags == b->flags && a->cfa == b->cfa && a->fp == b->fp && a->ra == b->ra;
}

/* From `pc` on the rule is `row`, whatever was there. -ENOMEM, or 1 when the table is full. */
static int append(struct bpf_rows *rows, uint32_t pc, struct unwind_row row)
{
	while (rows->len && rows->data[rows->len - 1].pc >= pc)
		rows->len--;
	if (!rows->len && pc && !vec_push(rows, none))
		return -ENOMEM;
	if (rows->len && is_same(&rows->data[rows->len - 1], &row))
		return 0;
	if (rows->len >= BPF_ROWS_MAX)
		return 1;
	row.pc = pc;
	return vec_push(rows, row) ? 0 : -ENOMEM;
}

/*
 * Padding between functions is counted to the function before it: no thread ever stands there, and a third of all rows
 * would be for that. No function fits in such a gap: an aligned one would make the gap larger.
 */
static bool is_padding(const struct table *t, uint64_t pc)
{
	return !t->dense && t->end && pc - t->end < FUNCTION_ALIGN && (t->rows->base + pc) % FUNCTION_ALIGN == 0;
}

/*
 * Adds the rule for a range of file addresses. The records come by rising address; of two that overlap the later one
 * counts, and hides the end of the earlier one, as in the search for a single address.
 */
static int put(struct table *t, uint64_t start, uint64_t end, struct unwind_row row)
{
	uint64_t base = t->rows->base;
	int ret = 0;

	start = start > base ? start - base : 0;
	end = end > base ? end - base : 0;
	if (end > t->limit)
		end = t->limit;
	if (start >= end)
		return 0;
	if (t->end < start && !is_padding(t, start))
		ret = append(t->rows, (uint32_t)t->end, none);
	if (ret == 0)
		ret = append(t->rows, (uint32_t)start, row);
	if (ret == 0)
		t->end = end;
	return ret;
}

/* Offsets are kept in words. */
static bool to_words(int64_t bytes, __s16 *out)
{
	if (bytes % WORD || bytes / WORD < INT16_MIN || bytes / WORD > INT16_MAX)
		return false;
	*out = (__s16)(bytes / WORD);
	return true;
}

/*
 * The stubs of x86_64's procedure linkage table push a word before they jump: rsp + 8 + ((rip & 15) >= N) << 3, with
 * N depending on the stubs' form.
 */
static bool read_plt(const struct arch *arch, const struct cfi_rule *cfa, struct unwind_row *out)
{
	enum { LIT0 = 0x30, LIT15 = 0x3f };
	static const uint8_t before[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a}, after[] = {0x2a, 0x33, 0x24, 0x22};
	uint8_t n;

	if (arch->id != ARCH_X86_64 || cfa->expr_len != sizeof(before) + 1 + sizeof(after))
		return false;
	n = cfa->expr[sizeof(before)];
	if (memcmp(cfa->expr, before, sizeof(before)) != 0 || n < LIT0 || n > LIT15 ||
	    memcmp(cfa->expr + sizeof(before) + 1, after, sizeof(after)) != 0)
		return false;
	out->kind = UNWIND_PLT;
	out->cfa = n - LIT0;
	return true;
}

/*
 * Functions that realign their frame keep the CFA in it: *(reg + a) + b, with the sum left out when b is 0 (as in gcc's
 * code; hand-written code has 8).
 */
static bool read_kept_cfa(const struct arch *arch, const struct cfi_rule *cfa, struct unwind_row *out)
{
	enum { BREG0 = 0x70, DEREF = 0x06, PLUS_UCONST = 0x23 };
	struct cursor c = cursor_init(cfa->expr, cfa->expr_len);
	uint8_t reg = cursor_u8(&c);
	int64_t offset = cursor_sleb(&c), added = 0;
	bool known = cursor_u8(&c) == DEREF;

	if (cursor_left(&c)) {
		known &= cursor_u8(&c) == PLUS_UCONST;
		added = (int64_t)cursor_uleb(&c);
	}
	if (arch->id != ARCH_X86_64 || !known || c.bad || cursor_left(&c))
		return false;
	if (reg != BREG0 + arch->dwarf_sp && reg != BREG0 + arch->dwarf_fp)
		return false;
	out->kind = reg == BREG0 + arch->dwarf_sp ? UNWIND_AT_SP : UNWIND_AT_FP;
	return to_words(offset, &out->cfa) && to_words(added, &out->ra);
}

static bool read_far_cfa(const struct arch *arch, const struct cfi_rule *cfa, struct unwind_row *out)
{
	int64_t words = cfa->offset / WORD;

	if (arch->id != ARCH_X86_64 || cfa->reg != arch->dwarf_sp || cfa->offset % WORD || words < 0 ||
	    words > INT32_MAX)
		return false;
	out->kind = UNWIND_FAR_FROM_SP;
	out->cfa = (__s16)(words & UINT16_MAX);
	out->ra = (__s16)(words >> 16);
	return true;
}

static bool read_cfa(const struct arch *arch, const struct cfi_rule *cfa, struct unwind_row *out)
{
	if (cfa->kind == CFI_EXPRESSION)
		return read_plt(arch, cfa, out) || read_kept_cfa(arch, cfa, out);
	if (cfa->kind != CFI_REGISTER_OFFSET || (cfa->reg != arch->dwarf_sp && cfa->reg != arch->dwarf_fp))
		return false;
	out->kind = cfa->reg == arch->dwarf_sp ? UNWIND_FROM_SP : UNWIND_FROM_FP;
	return to_words(cfa->offset, &out->cfa) || read_far_cfa(arch, cfa, out);
}

static bool read_return_address(const struct arch *arch, const struct cfi_rule *ra, struct unwind_row *out)
{
	if (ra->kind == CFI_UNSPECIFIED || ra->kind == CFI_SAME_VALUE)
		return arch->ra_in_register;
	if (ra->kind == CFI_REGISTER_OFFSET)
		return arch->id == ARCH_X86_64 && ra->reg == arch->dwarf_link && !ra->offset && out->kind < UNWIND_FAR_FROM_SP;
	if (ra->kind != CFI_AT_CFA_OFFSET)
		return false;
	if (out->kind >= UNWIND_FAR_FROM_SP)
		return ra->offset == -WORD;
	out->flags |= UNWIND_RA_AT_CFA;
	return to_words(ra->offset, &out->ra);
}

/* True for *(fp + 0), which gcc writes in frames that it realigned. */
static bool is_at_frame_pointer(const struct arch *arch, const struct cfi_rule *fp)
{
	enum { BREG0 = 0x70 };

	return fp->kind == CFI_AT_EXPRESSION && fp->expr_len == 2 && fp->expr[0] == BREG0 + arch->dwarf_fp &&
	       fp->expr[1] == 0;
}

/* A frame pointer saved where a row cannot express it is lost: most callers' rows do not need it. */
static void read_frame_pointer(const struct arch *arch, const struct cfi_rule *fp, struct unwind_row *out)
{
	if (fp->kind == CFI_UNSPECIFIED || fp->kind == CFI_SAME_VALUE)
		return;
	if (fp->kind == CFI_AT_CFA_OFFSET && to_words(fp->offset, &out->fp))
		out->flags |= UNWIND_FP_AT_CFA;
	else if (is_at_frame_pointer(arch, fp))
		out->flags |= UNWIND_FP_AT_FP;
	else
		out->flags |= UNWIND_FP_LOST;
}

/*
 * The caller's stack pointer is the CFA, but in switches between stacks, which have no row, and for a while behind the stubs
 * of aarch64's linkage table: there the row counts from where it is.
 */
static bool read_stack_pointer(const struct cfi_rule *sp, struct unwind_row *out)
{
	__s16 words;

	if (sp->kind == CFI_UNSPECIFIED || (sp->kind == CFI_CFA_OFFSET && sp->offset == 0))
		return true;
	if (sp->kind != CFI_CFA_OFFSET || out->kind != UNWIND_FROM_SP || !to_words(sp->offset, &words))
		return false;
	out->cfa = (__s16)(out->cfa + words);
	if (out->flags & UNWIND_RA_AT_CFA)
		out->ra = (__s16)(out->ra - words);
	if (out->flags & UNWIND_FP_AT_CFA)
		out->fp = (__s16)(out->fp - words);
	return true;
}

/* CFI that marks a signal frame gets no kind of its own: the kernel's trampolines are found by their code. */
static struct unwind_row read_row(const struct arch *arch, const struct cfi_row *row)
{
	const struct unwind_row unsupported = {.kind = UNWIND_UNSUPPORTED};
	const struct cfi_rule *ra = &row->regs[row->ra_reg];
	struct unwind_row out = {0};

	if (ra->kind == CFI_UNDEFINED)
		return (struct unwind_row){.kind = UNWIND_END};
	if (row->signal_frame || row->ra_reg != arch->dwarf_ra || !read_cfa(arch, &row->cfa, &out) ||
	    !read_return_address(arch, ra, &out))
		return unsupported;
	read_frame_pointer(arch, &row->regs[arch->dwarf_fp], &out);
	return read_stack_pointer(&row->regs[arch->dwarf_sp], &out) ? out : unsupported;
}

static int put_row(const struct cfi_row *row, void *arg)
{
	struct table *t = arg;

	return put(t, row->start, row->end, read_row(t->arch, row));
}

/* A full table ends where room ran out. */
static int close_full(struct bpf_rows *rows)
{
	struct unwind_row *last = &rows->data[rows->len - 1];

	*last = (struct unwind_row){.pc = last->pc};
	rows->cut = true;
	return 0;
}

/* Closes the table: behind the last row nothing is known. `ret` is the result of putting the last row. */
static int finish(struct table *t, int ret)
{
	if (ret == 0)
		ret = append(t->rows, (uint32_t)t->end, none);
	return ret == 1 ? close_full(t->rows) : ret;
}

/*
 * Replaces `rows` by the rows of `first`, and where that says nothing by those of `second`; one of the two is `rows`.
 */
static int merge(const struct bpf_rows *first, const struct bpf_rows *second, struct bpf_rows *rows)
{
	struct bpf_rows out = {.base = rows->base, .cut = first->cut || second->cut};
	size_t i = 0, j = 0;
	int ret = 0;

	while (ret == 0 && (i < first->len || j < second->len)) {
		uint32_t a = i < first->len ? first->data[i].pc : UINT32_MAX;
		uint32_t b = j < second->len ? second->data[j].pc : UINT32_MAX;
		uint32_t pc = a < b ? a : b;
		const struct unwind_row *row;

		i += i < first->len && a == pc;
		j += j < second->len && b == pc;
		row = first->data[i - 1].kind != UNWIND_NONE ? &first->data[i - 1] : &second->data[j - 1];
		ret = append(&out, pc, *row);
	}
	vec_deinit(rows);
	*rows = out;
	return ret == 1 ? close_full(rows) : ret;
}

static void rows_deinit(struct bpf_rows *rows)
{
	vec_deinit(rows);
}

static void section_deinit(struct cfi_section *section)
{
	cfi_section_deinit(section);
}

static int add_eh_frame(struct table *t, struct image *image)
{
	_cleanup_(section_deinit) struct cfi_section section;

	code_open_eh_frame(&section, t->arch, image);
	return finish(t, cfi_for_each_row(&section, put_row, t));
}

static struct unwind_row read_go_row(const struct arch *arch, const struct go_row *row)
{
	static const enum unwind_kind kinds[] = {
		[GO_ROW_FRAME] = UNWIND_GO_FRAME,
		[GO_ROW_SYSTEM] = UNWIND_GO_SYSTEM,
		[GO_ROW_C] = UNWIND_GO_C,
		[GO_ROW_MORESTACK] = UNWIND_GO_MORESTACK,
		[GO_ROW_CALLBACK] = UNWIND_GO_CALLBACK,
	};
	struct unwind_row out = read_row(arch, &row->row);

	if (row->kind == GO_ROW_PLAIN || out.kind == UNWIND_UNSUPPORTED)
		return out;
	if (row->kind == GO_ROW_UNSURE || out.kind != UNWIND_FROM_SP)
		return (struct unwind_row){.kind = UNWIND_UNSUPPORTED};
	out.kind = (__u8)kinds[row->kind];
	return out;
}

static int put_go_row(const struct go_row *row, void *arg)
{
	struct table *t = arg;

	return put(t, row->row.start, row->row.end, read_go_row(t->arch, row));
}

static void tables_deinit(struct go_tables *tables)
{
	go_tables_deinit(tables);
}

/* Before .debug_frame, as in the snapshot's unwinder. */
static int add_go(struct table *t, struct image *image, bool *has_some)
{
	_cleanup_(tables_deinit) struct go_tables tables = {0};
	_cleanup_(rows_deinit) struct bpf_rows rows = {.base = t->rows->base};
	struct table more = *t;
	int ret;

	*has_some = go_tables_init(&tables, image, NULL, NULL) == 0;
	if (!*has_some)
		return 0;
	more.rows = &rows;
	more.end = 0;
	ret = finish(&more, go_rows_for_each(&tables, t->arch, put_go_row, &more));
	return ret == 0 ? merge(t->rows, &rows, t->rows) : ret;
}

/* Go writes only this section, and C code linked into it only the other. */
static int add_debug_frame(struct table *t, struct image *image, bool *has_some)
{
	_cleanup_(section_deinit) struct cfi_section section = {0};
	_cleanup_(rows_deinit) struct bpf_rows rows = {.base = t->rows->base};
	struct table more = *t;
	int ret;

	*has_some = image_has_section(image, ".debug_frame") && image_is_unpackable(image);
	if (!*has_some)
		return 0;
	code_open_debug_frame(&section, t->arch, image);
	more.rows = &rows;
	more.end = 0;
	ret = finish(&more, cfi_for_each_row(&section, put_row, &more));
	return ret == 0 ? merge(t->rows, &rows, t->rows) : ret;
}

/* Code that the file's CFI does not describe, or describes wrongly. */
struct found_code {
	uint64_t start;
	uint64_t end;
	enum unwind_kind kind;
	enum unwind_flag flags;
};

struct scan {
	const struct image *image;
	const struct arch *arch;
	uint64_t left; /* bytes that may still be searched */
	struct found_code found[MAX_FOUND];
	size_t nfound;
};

static void note(struct scan *s, struct found_code code)
{
	s->found[s->nfound++] = code;
}

/* A handler returns to its first byte, and is looked up one byte before that, like every return address. */
static void scan_for(struct scan *s, struct span code, const uint8_t *what, size_t len)
{
	const uint8_t *at = code.data;
	uint64_t start;

	while (code.len && s->nfound < MAX_FOUND) {
		at = memmem(at, code.len - (size_t)(at - code.data), what, len);
		if (!at)
			break;
		start = code.vaddr + (uint64_t)(at - code.data);
		note(s, (struct found_code){start - 1, start + len, UNWIND_SIGNAL, 0});
		at += len;
	}
}

/* Marks code that is returned to and only ends the thread, with the system call that ends here. */
static void note_exit(struct scan *s, struct span code, size_t end)
{
	uint64_t target;

	for (size_t at = end - SYSCALL_TAIL; at >= INSN_MAX_CALL && end - at <= INSN_EXIT_BYTES; at--) {
		if (!insn_follows_call(s->arch, code.data + at - INSN_MAX_CALL, INSN_MAX_CALL, code.vaddr + at, &target) ||
		    !insn_is_exit(s->arch, code.data + at, end - at))
			continue;
		note(s, (struct found_code){code.vaddr + at - 1, code.vaddr + at, UNWIND_END, 0});
		return;
	}
}

/*
 * Where a new thread's function returns to: musl's clone(), which has no CFI. It is the outermost frame, but the frame
 * pointer may be that of the thread that created this one. System calls are rare, and found by the last bytes of a
 * trampoline.
 */
static void scan_for_exit(struct scan *s, struct span code)
{
	const uint8_t *call = s->arch->sigreturn_code[0] + s->arch->sigreturn_len[0] - SYSCALL_TAIL;
	const uint8_t *at = code.data;

	while (code.len && s->nfound < MAX_FOUND) {
		at = memmem(at, code.len - (size_t)(at - code.data), call, SYSCALL_TAIL);
		if (!at)
			break;
		at += SYSCALL_TAIL;
		note_exit(s, code, (size_t)(at - code.data));
	}
}

static struct span code_between(struct scan *s, uint64_t start, uint64_t end)
{
	struct span code = image_bytes_at(s->image, start);

	if (!code.data)
		return (struct span){0};
	if (code.len > end - start)
		code.len = (size_t)(end - start);
	if (code.len > s->left)
		code.len = (size_t)s->left;
	s->left -= code.len;
	return code;
}

static void scan_range(struct scan *s, uint64_t start, uint64_t end)
{
	struct span code = code_between(s, start, end);

	for (unsigned i = 0; code.data && s->arch->sigreturn_code[i]; i++)
		scan_for(s, code, s->arch->sigreturn_code[i], s->arch->sigreturn_len[i]);
}

static uint64_t row_end(const struct table *t, size_t i)
{
	return t->rows->base + (i + 1 < t->rows->len ? t->rows->data[i + 1].pc : t->limit);
}

/*
 * Searches all code, or only where the CFI says nothing usable: a libc's trampoline is marked as a signal frame, or has
 * no CFI.
 */
static void scan_code(struct scan *s, const struct table *t, bool all)
{
	const struct bpf_rows *rows = t->rows;

	s->left = MAX_SCAN;
	if (all) {
		scan_range(s, rows->base, rows->base + t->limit);
		return;
	}
	for (size_t i = 0; i < rows->len && s->left; i++)
		if (rows->data[i].kind == UNWIND_NONE || rows->data[i].kind == UNWIND_UNSUPPORTED)
			scan_range(s, rows->base + rows->data[i].pc, row_end(t, i));
}

static void scan_for_exits(struct scan *s, const struct table *t)
{
	s->left = MAX_SCAN;
	for (size_t i = 0; i < t->rows->len && s->left; i++)
		if (t->rows->data[i].kind == UNWIND_NONE)
			scan_for_exit(s, code_between(s, t->rows->base + t->rows->data[i].pc, row_end(t, i)));
}

/*
 * Where a function returns to that makecontext() was given. No call has left that address, and it is looked up one byte
 * before, in padding that counts to another function.
 */
static void scan_for_context_end(struct scan *s, const struct table *t)
{
	struct span code;
	size_t at;

	s->left = MAX_SCAN;
	code = code_between(s, t->rows->base, t->rows->base + t->limit);
	for (at = FUNCTION_ALIGN - code.vaddr % FUNCTION_ALIGN; at + INSN_CONTEXT_BYTES <= code.len; at += FUNCTION_ALIGN)
		if (s->nfound < MAX_FOUND && insn_is_context_end(s->arch, code.data + at) &&
		    !insn_ends_call(s->arch, code, code.vaddr + at))
			note(s, (struct found_code){code.vaddr + at - 1, code.vaddr + at, UNWIND_END, UNWIND_RESUMES});
}

static int compare_found(const void *a, const void *b)
{
	const struct found_code *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* The trampoline is known by its code, whatever CFI it has: that of aarch64's vDSO is for exceptions only, or absent. */
static int add_found(struct table *t, const struct image *image, bool all)
{
	_cleanup_(rows_deinit) struct bpf_rows rows = {.base = t->rows->base};
	struct scan s = {.image = image, .arch = t->arch};
	struct table more = *t;
	int ret = 0;

	scan_code(&s, t, all);
	scan_for_exits(&s, t);
	scan_for_context_end(&s, t);
	if (!s.nfound)
		return 0;
	qsort(s.found, s.nfound, sizeof(s.found[0]), compare_found);
	more.rows = &rows;
	more.end = 0;
	more.dense = true;
	for (size_t i = 0; i < s.nfound && ret == 0; i++)
		ret = put(&more, s.found[i].start, s.found[i].end,
			  (struct unwind_row){.kind = (__u8)s.found[i].kind, .flags = (__u8)s.found[i].flags});
	ret = finish(&more, ret);
	return ret == 0 ? merge(&rows, t->rows, t->rows) : ret;
}

/*
 * The vDSO of newer kernels has no CFI on aarch64, and its functions are where many a thread loses its CPU: their code tells
 * where the return address is at each instruction. Where it does not, nothing is said.
 */
static int add_code(struct table *t, const struct image *image)
{
	_cleanup_(rows_deinit) struct bpf_rows rows = {.base = t->rows->base};
	struct table more = *t;
	int ret = 0;

	if (image_identity(image) || t->limit > SMALL_CODE || t->arch->id != ARCH_AARCH64)
		return 0; /* a file, or more than a vDSO has */
	more.rows = &rows;
	more.end = 0;
	more.dense = true;
	for (size_t i = 0; i < t->rows->len; i++) {
		uint64_t at = t->rows->base + t->rows->data[i].pc, end = row_end(t, i);

		for (; ret == 0 && t->rows->data[i].kind == UNWIND_NONE && at < end; at += AARCH64_INSN) {
			struct cfi_row row;

			if (insn_read_row(image, t->arch, NULL, at, &row))
				ret = put(&more, at, at + AARCH64_INSN, read_row(t->arch, &row));
		}
	}
	ret = finish(&more, ret);
	return ret == 0 ? merge(t->rows, &rows, t->rows) : ret;
}

/* The row that holds for a file address; NULL before the first. */
static const struct unwind_row *find(const struct bpf_rows *rows, uint64_t address)
{
	size_t low = 0, high = rows->len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (rows->base + rows->data[mid].pc <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? &rows->data[low - 1] : NULL;
}

/* The startup code was not called by anything; in some libcs it has no CFI that says so. */
static int add_entry(struct table *t, const struct image *image)
{
	_cleanup_(rows_deinit) struct bpf_rows rows = {.base = t->rows->base};
	const struct unwind_row *row;
	struct table more = *t;
	uint64_t entry = image_entry(image);
	int ret;

	if (!entry || entry + ENTRY_SIZE < ENTRY_SIZE)
		return 0;
	row = find(t->rows, entry);
	if (!row || row->kind != UNWIND_NONE)
		return 0;
	more.rows = &rows;
	more.end = 0;
	ret = finish(&more, put(&more, entry, entry + ENTRY_SIZE, (struct unwind_row){.kind = UNWIND_END}));
	return ret == 0 ? merge(t->rows, &rows, t->rows) : ret;
}

int bpf_rows_build(struct image *image, const struct arch *arch, struct err *err, struct bpf_rows *out)
{
	struct table t = {.arch = arch, .rows = out};
	bool has_go, has_debug_frame;
	uint64_t end;
	int ret;

	*out = (struct bpf_rows){0};
	if (!code_is_walkable(image, arch))
		return err_set(err, ENOEXEC, "its code is not for %s", arch->name);
	image_code_bounds(image, &out->base, &end);
	if (end <= out->base)
		return err_set(err, ENOENT, "it has no code");
	t.limit = end - out->base < UINT32_MAX ? end - out->base : UINT32_MAX;
	t.dense = t.limit <= SMALL_CODE;
	ret = add_eh_frame(&t, image);
	if (ret == 0)
		ret = add_go(&t, image, &has_go);
	if (ret == 0)
		ret = add_debug_frame(&t, image, &has_debug_frame);
	if (ret == 0)
		ret = add_found(&t, image, has_go || has_debug_frame || t.limit <= SMALL_CODE);
	if (ret == 0)
		ret = add_code(&t, image);
	if (ret == 0)
		ret = add_entry(&t, image);
	if (ret != 0) {
		bpf_rows_deinit(out);
		return err_set(err, -ret, "out of memory");
	}
	out->cut |= t.limit < end - out->base;
	return 0;
}
