/* SPDX-License-Identifier: MIT */
#include "unwind/go_copies.h"

#include <endian.h>

#include "bpf/go_layout.h"

enum {
	WORD = 8,
	CHUNK = 8 << 10,      /* bytes that are read at once */
	MAX_STACK = 64 << 10, /* bytes of a stack that are read: the thread may be held */
	MAX_SEARCH = 32 << 10, /* bytes of its own stack that are searched for where C was called, */
	MAX_TRIES = 16,        /* and how many places there are looked at closely */
	MAX_CALLBACK = 8 << 20, /* C between two callbacks takes no more of the stack */
};

/* The registers of a thread, and what is found of the runtime's own. */
struct thread {
	const struct arch *arch;
	const struct maps *maps;
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

/* The runtime asks for 0x00c000000000 on x86_64 and 0x004000000000 on aarch64, and where that is taken for N << 40 more. */
bool go_copies_are_likely(const struct arch *arch, const struct maps *maps)
{
	const uint64_t hint = arch->id == ARCH_X86_64 ? 0xc000000000 : 0x4000000000, high = UINT64_C(0x7f) << 40;

	for (size_t i = 0; i < maps->len; i++)
		if (!maps->data[i].inode && (maps->data[i].start & ~high) == hint)
			return true;
	return false;
}

static bool is_run_by(struct mem *mem, uint64_t goroutine, uint64_t m)
{
	uint64_t runs;

	return read_at(mem, goroutine, GO_G_M, &runs) && runs == m;
}

/* By the register that Go keeps its goroutine in: that of the thread's own stack, of its signals, or that it works for. */
static bool find_by_register(struct thread *t)
{
	static const uint16_t places[] = {GO_M_CURG_OLD, GO_M_CURG};
	uint64_t value;

	if (!regs_has(&t->regs, t->arch->dwarf_go) || !read_at(t->mem, t->regs.r[t->arch->dwarf_go], GO_G_M, &t->m) ||
	    !read_at(t->mem, t->m, GO_M_G0, &t->g0) || !is_run_by(t->mem, t->g0, t->m))
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

/* `goroutine` was left at sp. */
static bool read_goroutine(struct thread *t, uint64_t goroutine, uint64_t sp)
{
	uint64_t low, high;

	if (!read_at(t->mem, goroutine, GO_G_STACK_LOW, &low) || !read_at(t->mem, goroutine, GO_G_STACK_HIGH, &high) || sp < low ||
	    sp >= high)
		return false;
	read_stack(t, sp, high);
	return true;
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

/* Whether asmcgocall has put these two words on the stack: a goroutine, and how deep in its stack it was. */
static bool read_kept(struct thread *t, uint64_t goroutine, uint64_t depth)
{
	uint64_t m, curg, high;

	return read_at(t->mem, goroutine, GO_G_M, &m) &&
	       ((read_at(t->mem, m, GO_M_CURG_OLD, &curg) && curg == goroutine) ||
		(read_at(t->mem, m, GO_M_CURG, &curg) && curg == goroutine)) &&
	       read_at(t->mem, m, GO_M_G0, &t->g0) && read_at(t->mem, goroutine, GO_G_STACK_HIGH, &high) &&
	       read_goroutine(t, goroutine, high - depth);
}

static bool may_be_kept(const struct thread *t, uint64_t goroutine, uint64_t depth)
{
	const struct map_entry *map;

	if (!depth || depth % WORD || depth > GO_C_DEPTH_MAX || goroutine % WORD || goroutine <= GO_C_DEPTH_MAX)
		return false;
	map = maps_find(t->maps, goroutine);
	return map && (map->perms & MAP_PERM_WRITE) && !map->inode;
}

/* C code has the register for itself. What asmcgocall kept is above C's frames: the first that proves right is the innermost. */
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
		}
		if (got < (ssize_t)sizeof(words))
			return;
	}
}

void go_copies_read(const struct arch *arch, const struct maps *maps, const struct user_regs *regs, struct mem *mem)
{
	struct thread t = {.arch = arch, .maps = maps, .mem = mem};
	uint64_t sp;

	if (!arch_to_dwarf(arch, regs, &t.regs))
		return;
	if (!find_by_register(&t)) {
		find_on_stack(&t);
		return;
	}
	if (t.goroutine && t.goroutine != t.regs.r[arch->dwarf_go] && read_at(mem, t.goroutine, GO_G_SP, &sp))
		read_goroutine(&t, t.goroutine, sp);
	if (t.goroutine)
		read_callback(&t);
}
