/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <string.h>

#include "unwind/go_copies.h"

/* Where the memory has what the runtime knows, a goroutine's stack, and the thread's own. */
enum {
	G0 = 0x100, G = 0x300, M = 0x500, SIGNALS = 0x700,
	LOW = 0x10000, SAVED_SP = 0x18000, HIGH = 0x1c000,
	OWN = 0x40000, OWN_SP = 0x41000,
	SIZE = 0x60000,
};

/* Memory that knows which of its words were read. */
struct world {
	struct mem mem;
	const struct arch *arch;
	uint64_t base; /* where Go has its heap */
	struct map_entry map;
	struct maps maps;
	struct user_regs regs;
	uint64_t words[SIZE / 8];
	bool read[SIZE / 8];
};

static ssize_t read_world(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	struct world *w = (struct world *)mem;
	uint64_t at = address - w->base;

	if (at >= SIZE)
		return -EFAULT;
	if (len > SIZE - at)
		len = SIZE - at;
	memcpy(buf, (uint8_t *)w->words + at, len);
	for (uint64_t i = at / 8; i < (at + len + 7) / 8; i++)
		w->read[i] = true;
	return (ssize_t)len;
}

static uint64_t address(const struct world *w, size_t at)
{
	return w->base + at;
}

static void put(struct world *w, size_t at, uint64_t value)
{
	w->words[at / 8] = value;
}

static void put_reg(struct world *w, unsigned dwarf, uint64_t value)
{
	for (unsigned i = 0; i < w->arch->nuser_regs; i++)
		if (w->arch->user_to_dwarf[i] == (int)dwarf) {
			w->regs.v[i] = value;
			w->regs.valid |= UINT64_C(1) << i;
		}
}

static struct world *create(const struct arch *arch, bool old)
{
	static struct world w;

	w = (struct world){
		.mem.read = read_world,
		.arch = arch,
		.base = arch == &arch_x86_64 ? 0xc000000000 : 0x4000000000,
		.map = {.perms = MAP_PERM_READ | MAP_PERM_WRITE, .path = ""},
	};
	w.map.start = w.base;
	w.map.end = w.base + SIZE;
	w.maps.data = &w.map;
	w.maps.len = 1;
	put(&w, G0 + 48, address(&w, M));
	put(&w, G + 48, address(&w, M));
	put(&w, SIGNALS + 48, address(&w, M));
	put(&w, M, address(&w, G0));
	put(&w, M + (old ? 192 : 184), address(&w, G));
	put(&w, G, address(&w, LOW));
	put(&w, G + 8, address(&w, HIGH));
	put(&w, G + 56, address(&w, SAVED_SP));
	w.regs.valid = UINT64_C(1) << arch->user_pc;
	put_reg(&w, arch->dwarf_sp, address(&w, OWN_SP));
	return &w;
}

static void read_all(struct world *w)
{
	struct go_heap heap;

	assert_true(go_copies_are_likely(w->arch, &w->maps, &heap));
	go_copies_read(w->arch, &w->maps, &heap, &w->regs, &w->mem);
}

static size_t count_read(const struct world *w, size_t from, size_t to)
{
	size_t n = 0;

	for (size_t i = from / 8; i < to / 8; i++)
		n += w->read[i];
	return n * 8;
}

static void test_by_register(void **state)
{
	static const struct arch *const archs[] = {&arch_x86_64, &arch_aarch64};

	for (unsigned i = 0; i < 8; i++) {
		struct world *w = create(archs[i % 2], i / 2 % 2);

		put_reg(w, w->arch->dwarf_go, address(w, i / 4 ? SIGNALS : G0));
		read_all(w);
		assert_int_equal(count_read(w, LOW, HIGH), HIGH - SAVED_SP);
		assert_int_equal(count_read(w, SAVED_SP, HIGH), HIGH - SAVED_SP);
	}
}

/* Its own stack is copied anyway. */
static void test_on_the_goroutine(void **state)
{
	struct world *w = create(&arch_aarch64, true);

	put_reg(w, w->arch->dwarf_go, address(w, G));
	put_reg(w, w->arch->dwarf_sp, address(w, SAVED_SP));
	read_all(w);
	assert_int_equal(count_read(w, LOW, HIGH), 0);
}

static void expect_kept(const struct arch *arch, size_t goroutine, size_t depth, bool old)
{
	struct world *w = create(arch, old);

	put_reg(w, arch->dwarf_go, 0x1234); /* C has it for itself */
	put(w, OWN_SP + 0x80, address(w, G0));   /* and what only looks like it on its stack */
	put(w, OWN_SP + 0x88, 0x40);
	put(w, OWN_SP + 0x400 + goroutine, address(w, G));
	put(w, OWN_SP + 0x400 + depth, HIGH - SAVED_SP);
	read_all(w);
	assert_int_equal(count_read(w, LOW, HIGH), HIGH - SAVED_SP);
	assert_int_equal(count_read(w, SAVED_SP, HIGH), HIGH - SAVED_SP);
}

static void test_kept_by_a_call_of_c(void **state)
{
	for (unsigned old = 0; old < 2; old++) {
		expect_kept(&arch_x86_64, 48, 40, old);
		expect_kept(&arch_x86_64, 8, 0, old);
		expect_kept(&arch_aarch64, 0, 8, old);
	}
}

/* C that was called on the thread's own stack already: it has saved the register. */
static void expect_saved(const struct arch *arch, bool old)
{
	struct world *w = create(arch, old);

	put(w, G0, address(w, OWN));
	put(w, G0 + 8, address(w, OWN + 0x8000));
	put(w, OWN_SP + 0x40, address(w, SIGNALS)); /* not the one whose stack it is */
	put(w, OWN_SP + 0x80, address(w, G0));
	read_all(w);
	assert_int_equal(count_read(w, LOW, HIGH), HIGH - SAVED_SP);
	put(w, G0 + 8, address(w, OWN_SP));
	memset(w->read, 0, sizeof(w->read));
	read_all(w);
	assert_int_equal(count_read(w, LOW, HIGH), 0);
}

static void test_saved_by_c(void **state)
{
	for (unsigned old = 0; old < 2; old++) {
		expect_saved(&arch_x86_64, old);
		expect_saved(&arch_aarch64, old);
	}
}

/* C's frames are on the thread's own stack, above where it was when Go was called. */
static void expect_callback(const struct arch *arch, size_t saved)
{
	struct world *w = create(arch, true);

	put_reg(w, arch->dwarf_go, address(w, G));
	put_reg(w, arch->dwarf_sp, address(w, SAVED_SP));
	put(w, G0 + 56, address(w, OWN + 0x8000));
	put(w, OWN + 0x8000 + saved, address(w, OWN + 0xf000));
	read_all(w);
	assert_int_equal(count_read(w, OWN + 0x8000, OWN + 0xf000), 0x7000);
	assert_int_equal(count_read(w, LOW, HIGH), 0);
}

static void test_called_back(void **state)
{
	expect_callback(&arch_x86_64, 0);
	expect_callback(&arch_aarch64, 16);
}

static void expect_little(size_t at, uint64_t value)
{
	struct world *w = create(&arch_aarch64, true);

	put_reg(w, w->arch->dwarf_go, address(w, G0));
	put(w, at, value);
	read_all(w);
	assert_int_equal(count_read(w, LOW, HIGH), 0);
}

static void test_not_a_goroutine(void **state)
{
	const struct world *w = create(&arch_aarch64, true);

	expect_little(G0 + 48, 0);
	expect_little(G0 + 48, 1);
	expect_little(M, address(w, SIZE));
	expect_little(M + 192, 0);
	expect_little(G + 48, address(w, G0));
	expect_little(G + 56, address(w, HIGH));
	expect_little(G + 56, address(w, LOW - 8));
}

static void test_bounded(void **state)
{
	struct world *w = create(&arch_aarch64, true);

	put_reg(w, w->arch->dwarf_go, address(w, G0));
	put(w, G + 8, address(w, OWN));
	read_all(w);
	assert_int_equal(count_read(w, SAVED_SP, SIZE), 64 << 10);
	w = create(&arch_aarch64, true); /* C's stack, with nothing but what looks like a goroutine */
	for (size_t at = OWN_SP; at < SIZE; at += 16) {
		put(w, at, address(w, at));
		put(w, at + 8, 64);
	}
	read_all(w);
	assert_in_range(count_read(w, 0, SIZE), 1024, 48 << 10);
}

static void expect_likely(const struct arch *arch, uint64_t start, uint64_t inode, bool likely)
{
	struct map_entry map = {.start = start, .end = start + 4096, .inode = inode, .path = ""};
	struct maps maps = {.data = &map, .len = 1};

	struct go_heap heap;

	assert_int_equal(go_copies_are_likely(arch, &maps, &heap), likely);
}

static void test_likely(void **state)
{
	expect_likely(&arch_x86_64, 0xc000000000, 0, true);
	expect_likely(&arch_x86_64, 0x1c000000000, 0, true);
	expect_likely(&arch_x86_64, 0x4000000000, 0, false);
	expect_likely(&arch_aarch64, 0x4000000000, 0, true);
	expect_likely(&arch_aarch64, 0x4000000000, 7, false);
	expect_likely(&arch_aarch64, 0x4000001000, 0, false);
}

/* As of 1.26: not where it begins, but an arena after all can be written to. */
static void expect_random(const struct arch *arch, uint64_t start, uint64_t len, bool writes, bool likely)
{
	const uint64_t mib = 1 << 20;
	struct map_entry map[] = {
		{.start = start, .end = start + 8 * mib, .path = ""},
		{.start = start + 8 * mib, .end = start + 12 * mib, .perms = MAP_PERM_READ | (writes ? MAP_PERM_WRITE : 0), .path = ""},
		{.start = start + 12 * mib, .end = start + len, .path = ""},
		{.start = start + len + mib, .end = start + len + 2 * mib, .path = ""},
	};
	struct maps maps = {.data = map, .len = 4};
	struct go_heap heap;

	assert_int_equal(go_copies_are_likely(arch, &maps, &heap), likely);
	if (likely)
		assert_true(heap.start == start && heap.mask == UINT64_MAX);
}

static void test_random_heap(void **state)
{
	const uint64_t arena = 64 << 20;

	expect_random(&arch_aarch64, 0x3ad548000000, arena, true, true);
	expect_random(&arch_aarch64, 0x3ad548000000, 3 * arena, true, true);
	expect_random(&arch_aarch64, 0x7ad548000000, arena, true, true);
	expect_random(&arch_x86_64, 0x3ad548000000, arena, true, true);
	expect_random(&arch_x86_64, 0x7ad548000000, arena, true, false); /* the kernel may have placed it */
	expect_random(&arch_aarch64, 0x3ad548000000, arena, false, false);
	expect_random(&arch_aarch64, 0x3ad549000000, arena, true, false);
	expect_random(&arch_aarch64, 0x3ad548000000, arena - 4096, true, false);
	expect_random(&arch_aarch64, 0x700000000, arena, true, false); /* Java's, below 32 GiB */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_register),
		cmocka_unit_test(test_on_the_goroutine),
		cmocka_unit_test(test_kept_by_a_call_of_c),
		cmocka_unit_test(test_saved_by_c),
		cmocka_unit_test(test_called_back),
		cmocka_unit_test(test_not_a_goroutine),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_likely),
		cmocka_unit_test(test_random_heap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
