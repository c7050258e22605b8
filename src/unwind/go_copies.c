/* SPDX-License-Identifier: MIT */
#include "unwind/go_copies.h"

#include <endian.h>

#include "bpf/go_layout.h"

enum {
	WORD = 8,
	CHUNK = 8 << 10,      /* bytes that are read at once */
	MAX_STACK = 64 << 10, /* bytes of a stack that are read: the thread may be held */
	MAX_SEARCH = 32 << 10, /* bytes of its own stack that are searched for what C has left there, */
	MAX_TRIES = 32,        /* and how many words there are looked at closely */
	STATIC_ALIGN = 32,     /* of large variables of a Go program */
	MAX_CALLBACK = 8 << 20, /* C between two callbacks takes no more of the stack */
};

static const uint64_t heap_size = UINT64_C(1) << 36; /* farther from where the heap begins no goroutine is looked for */

/* The registers of a thread, and what is found of the runtime's own. */
struct thread {
	const struct arch *arch;
	const struct maps *maps;
	const struct go_heap *heap;
	struct mem *mem;
	struct regs regs;
	uint64_t m;
	uint64_t g0;
	uint64_t goroutine; /* that it works for; 0: none */
};

static bool read_at(struct mem *mem, uint64_t base, unsigned offset, uint64_t *out)
{
	uint64_t word;

	if (!base || base % WORD || !mem_read_exact(mem, base + offset, &word, sizeof(word)))
		return false;
	*out = le64toh(word);
	return true;
}

static bool is_in_heap(const struct go_heap *heap, uint64_t address)
{
	return (address & heap->mask) - heap->start < heap_size;
}

/* The runtime asks for 0x00c000000000 on x86_64 and 0x004000000000 on aarch64, and where that is taken for N << 40 more. */
static struct go_heap preferred_heap(const struct arch *arch)
{
	return (struct go_heap){.start = arch->id == ARCH_X86_64 ? 0xc000000000 : 0x4000000000, .mask = ~(UINT64_C(0x7f) << 40)};
}

/*
 * Since 1.26 the heap is anywhere below one or two bits less than programs can have: far from what the kernel places, and above what is there by choice,
 * such as Java's heap. It is reserved in arenas, of which only a part can be written to.
 */
static bool is_random_heap(const struct arch *arch, const struct maps *maps, size_t first)
{
	const uint64_t arena = UINT64_C(64) << 20, least = UINT64_C(1) << 36, most = UINT64_C(1) << (arch->id == ARCH_X86_64 ? 46 : 47);
	const uint64_t start = maps->data[first].start;
	uint64_t end = start;
	bool writes = false;

	if (start % arena || start < least)
		return false;
	for (size_t i = first; i < maps->len && !maps->data[i].inode && maps->data[i].start == end; i++) {
		end = maps->data[i].end;
		writes |= maps->data[i].perms & MAP_PERM_WRITE;
	}
	return writes && end <= most && end % arena == 0;
}

bool go_copies_are_likely(const struct arch *arch, const struct maps *maps, struct go_heap *heap)
{
	*heap = preferred_heap(arch);
	for (size_t i = 0; i < maps->len; i++)
		if (!maps->data[i].inode && (maps->data[i].start & heap->mask) == heap->start)
			return true;
	for (size_t i = 0; i < maps->len; i++)
		if (!maps->data[i].inode && is_random_heap(arch, maps, i)) {
			*heap = (struct go_heap){.start = maps->data[i].start, .mask = UINT64_MAX};
			return true;
		}
	return false;
}

static bool is_run_by(struct mem *mem, uint64_t goroutine, uint64_t m)
{
	uint64_t runs;

	return read_at(mem, goroutine, GO_G_M, &runs) && runs == m;
}

/* By a goroutine of the thread: that of its own stack, of its signals, or that it works for. */
static bool find_by(struct thread *t, uint64_t any)
{
	static const uint16_t places[] = {GO_M_CURG_OLD, GO_M_CURG};
	uint64_t value;

	if (!read_at(t->mem, any, GO_G_M, &t->m) || !read_at(t->mem, t->m, GO_M_G0, &t->g0) || !is_run_by(t->mem, t->g0, t->m))
		return false;
	for (size_t i = 0; !t->goroutine && i < sizeof(places) / sizeof(places[0]); i++)
		if (read_at(t->mem, t->m, places[i], &value) && value != t->g0 && is_run_by(t->mem, value, t->m))
			t->goroutine = value;
	return true;
}

/* Reads a stack from sp on, as far as it goes and may be read. */
static void read_stack(struct thread *t, uint64_t sp, uint64_t end)
{
	uint8_t bytes[CHUNK];

	if (end - sp > MAX_STACK)
		end = sp + MAX_STACK;
	while (sp < end) {
		size_t len = end - sp < CHUNK ? end - sp : CHUNK;

		if (!mem_read_exact(t->mem, sp, bytes, len))
			return;
		sp += len;
	}
}

static bool is_on_stack(struct thread *t, uint64_t goroutine, uint64_t sp, uint64_t *high)
{
	uint64_t low;

	return read_at(t->mem, goroutine, GO_G_STACK_LOW, &low) && read_at(t->mem, goroutine, GO_G_STACK_HIGH, high) && sp >= low &&
	       sp < *high;
}

/* Go that was called by C runs on a goroutine's stack; C's frames are on the thread's own. */
static void read_callback(struct thread *t)
{
	unsigned saved = t->arch->id == ARCH_X86_64 ? GO_X86_CALLBACK_SAVED : GO_ARM_CALLBACK_SAVED;
	const struct map_entry *map;
	uint64_t sp, outer;

	if (!read_at(t->mem, t->g0, GO_G_SP, &sp) || !read_at(t->mem, sp, saved, &outer) || outer < sp || outer - sp > MAX_CALLBACK)
		return;
	map = maps_find(t->maps, sp);
	if (map)
		read_stack(t, sp, map->end);
}

/* The stack on which the thread is not: where the goroutine was left, and where C is that has called Go. */
static void read_others(struct thread *t)
{
	uint64_t sp, high;

	if (!t->goroutine)
		return;
	if (!is_on_stack(t, t->goroutine, t->regs.r[t->arch->dwarf_sp], &high) && read_at(t->mem, t->goroutine, GO_G_SP, &sp) &&
	    is_on_stack(t, t->goroutine, sp, &high))
		read_stack(t, sp, high);
	read_callback(t);
}

/* Whether asmcgocall has put these two words on the stack: a goroutine, and how deep in its stack it was. */
static bool read_kept(struct thread *t, uint64_t goroutine, uint64_t depth)
{
	uint64_t high;

	t->goroutine = 0;
	if (!find_by(t, goroutine) || t->goroutine != goroutine || !read_at(t->mem, goroutine, GO_G_STACK_HIGH, &high) ||
	    !is_on_stack(t, goroutine, high - depth, &high))
		return false;
	read_stack(t, high - depth, high);
	return true;
}

static bool may_be_kept(const struct thread *t, uint64_t goroutine, uint64_t depth)
{
	return depth && depth % WORD == 0 && depth <= GO_C_DEPTH_MAX && goroutine % WORD == 0 &&
	       is_in_heap(t->heap, goroutine);
}

/* The goroutine of the thread's own stack, which C has put there when it took the register. */
static bool read_saved(struct thread *t, uint64_t g0)
{
	uint64_t high;

	t->goroutine = 0;
	if (!is_on_stack(t, g0, t->regs.r[t->arch->dwarf_sp], &high) || !find_by(t, g0) || t->g0 != g0)
		return false;
	read_others(t);
	return true;
}

/* On the heap, or, of the first thread, a variable of the program. */
static bool may_be_saved(const struct thread *t, uint64_t g0)
{
	const struct map_entry *map;

	if (!g0 || g0 % WORD)
		return false;
	if (is_in_heap(t->heap, g0))
		return true;
	map = g0 % STATIC_ALIGN ? NULL : maps_find(t->maps, g0);
	return map && (map->perms & MAP_PERM_WRITE) && map != maps_find(t->maps, t->regs.r[t->arch->dwarf_sp]);
}

/*
 * C code has the register for itself: what it was is saved in its frames, or asmcgocall has kept the goroutine above them.
 * The first that proves right is the innermost.
 */
static void find_on_stack(struct thread *t)
{
	bool depth_first = t->arch->id == ARCH_X86_64;
	uint64_t words[CHUNK / WORD], before = 0, sp = t->regs.r[t->arch->dwarf_sp];
	unsigned tries = MAX_TRIES;

	for (uint64_t done = 0; done < MAX_SEARCH; done += CHUNK) {
		ssize_t got = t->mem->read(t->mem, sp + done, words, sizeof(words));

		for (ssize_t i = 0; i < got / WORD; i++) {
			uint64_t word = le64toh(words[i]), goroutine = depth_first ? word : before, depth = depth_first ? before : word;

			before = word;
			if (may_be_kept(t, goroutine, depth) && (read_kept(t, goroutine, depth) || !--tries))
				return;
			if (may_be_saved(t, word) && (read_saved(t, word) || !--tries))
				return;
		}
		if (got < (ssize_t)sizeof(words))
			return;
	}
}

void go_copies_read(const struct arch *arch, const struct maps *maps, const struct go_heap *heap, const struct user_regs *regs, struct mem *mem)
{
	struct thread t = {.arch = arch, .maps = maps, .heap = heap, .mem = mem};

	if (!arch_to_dwarf(arch, regs, &t.regs))
		return;
	if (regs_has(&t.regs, arch->dwarf_go) && find_by(&t, t.regs.r[arch->dwarf_go]))
		read_others(&t);
	else
		find_on_stack(&t);
}
