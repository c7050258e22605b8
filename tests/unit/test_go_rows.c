/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gomake.h"
#include "elf/go_funcs.h"
#include "unwind/codeinfo.h"
#include "unwind/go_rows.h"

enum { RBX = 3, RBP = 6, RSP = 7, R14 = 14, RIP = 16, X19 = 19, X28 = 28, FP = 29, LR = 30, SP = 31 };

struct program {
	struct gomake file;
	struct image *image;
	struct go_tables tables;
};

static struct program *load(struct gomake how)
{
	struct program *p = calloc(1, sizeof(*p));
	struct err err;

	assert_non_null(p);
	p->file = how;
	p->file.release = how.release ? how.release : 20;
	p->file.quantum = how.quantum ? how.quantum : 1;
	p->file.ptr_size = 8;
	gomake(&p->file);
	assert_int_equal(image_open_memory(p->file.data, sizeof(p->file.data), NULL, &p->image), 0);
	if (go_tables_init(&p->tables, p->image, NULL, &err) != 0)
		fail_msg("%s", err.msg);
	return p;
}

static void unload(struct program *p)
{
	go_tables_deinit(&p->tables);
	image_destroy(p->image);
	free(p);
}

static struct go_row find(const struct program *p, const struct arch *arch, uint64_t offset, bool exact)
{
	struct go_row row;

	assert_true(go_rows_find(&p->tables, arch, NULL, GOMAKE_TEXT + offset, exact, &row));
	return row;
}

static void expect_rule(const struct cfi_row *row, unsigned reg, enum cfi_rule_kind kind, int64_t offset)
{
	assert_int_equal(row->regs[reg].kind, kind);
	if (kind == CFI_AT_CFA_OFFSET)
		assert_int_equal(row->regs[reg].offset, offset);
}

static void expect_cfa(const struct cfi_row *row, unsigned reg, int64_t offset)
{
	assert_int_equal(row->cfa.kind, CFI_REGISTER_OFFSET);
	assert_int_equal(row->cfa.reg, reg);
	assert_int_equal(row->cfa.offset, offset);
}

static void test_frames_x86_64(void **state)
{
	static const unsigned releases[] = {9, 12, 13, 16, 18, 20, 26};

	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
		struct program *p = load((struct gomake){.release = releases[i], .pie = i % 2});
		struct go_row before = find(p, &arch_x86_64, GOMAKE_FRAME_START - 1, true);
		struct go_row inside = find(p, &arch_x86_64, GOMAKE_FRAME_START, false);
		struct go_row behind = find(p, &arch_x86_64, GOMAKE_FRAME_END, true);

		assert_int_equal(before.kind, GO_ROW_PLAIN);
		assert_int_equal(before.row.start, GOMAKE_TEXT);
		assert_int_equal(before.row.end, GOMAKE_TEXT + GOMAKE_FRAME_START);
		assert_int_equal(before.row.ra_reg, RIP);
		expect_cfa(&before.row, RSP, 8);
		expect_rule(&before.row, RIP, CFI_AT_CFA_OFFSET, -8);
		expect_rule(&before.row, RBP, CFI_UNSPECIFIED, 0);

		assert_int_equal(inside.kind, GO_ROW_PLAIN);
		assert_int_equal(inside.row.end, GOMAKE_TEXT + GOMAKE_FRAME_END);
		expect_cfa(&inside.row, RSP, GOMAKE_FRAME + 8);
		expect_rule(&inside.row, RIP, CFI_AT_CFA_OFFSET, -8);
		expect_rule(&inside.row, RBP, CFI_AT_CFA_OFFSET, -16);
		/* What C code preserves Go does not, but for the goroutine. */
		expect_rule(&inside.row, RBX, CFI_UNDEFINED, 0);
		expect_rule(&inside.row, R14, CFI_UNSPECIFIED, 0);
		expect_cfa(&behind.row, RSP, 8);
		unload(p);
	}
}

static void test_frames_aarch64(void **state)
{
	struct program *p = load((struct gomake){.machine = EM_AARCH64, .quantum = 4});
	struct go_row before = find(p, &arch_aarch64, 0, true),
		      inside = find(p, &arch_aarch64, GOMAKE_FRAME_START, true);

	expect_cfa(&before.row, SP, 0);
	assert_int_equal(before.row.ra_reg, LR);
	expect_rule(&before.row, LR, CFI_UNSPECIFIED, 0);
	expect_cfa(&inside.row, SP, GOMAKE_FRAME);
	expect_rule(&inside.row, LR, CFI_AT_CFA_OFFSET, -GOMAKE_FRAME);
	expect_rule(&inside.row, FP, CFI_AT_CFA_OFFSET, -GOMAKE_FRAME - 8);
	expect_rule(&inside.row, X19, CFI_UNDEFINED, 0);
	expect_rule(&inside.row, X28, CFI_UNSPECIFIED, 0);
	unload(p);
}

static struct go_row find_role_in(unsigned release, const char *name, uint8_t flags, int32_t frame, bool exact)
{
	struct program *p =
		load((struct gomake){.release = release, .leaf = name, .leaf_flags = flags, .leaf_frame = frame});
	struct go_row row = find(p, &arch_x86_64, GOMAKE_LEAF + 16, exact);

	unload(p);
	return row;
}

/* The second function, as of this name and with these flags, 16 bytes behind its start. */
static struct go_row find_role(const char *name, uint8_t flags, int32_t frame, bool exact)
{
	return find_role_in(20, name, flags, frame, exact);
}

static bool ends(struct go_row row)
{
	return row.kind == GO_ROW_PLAIN && row.row.regs[RIP].kind == CFI_UNDEFINED;
}

static void test_outermost(void **state)
{
	assert_true(ends(find_role("runtime.goexit", GO_FUNC_TOP, 0, false)));
	assert_true(ends(find_role("runtime.goexit.abi0", GO_FUNC_TOP, 0, false)));
	assert_true(ends(find_role("runtime.rt0_go", GO_FUNC_TOP | GO_FUNC_WRITES_SP, 0, false)));
	assert_true(ends(find_role("runtime.other", GO_FUNC_TOP, 0, true)));
	assert_false(ends(find_role("runtime.goexit0", 0, 0, false)));
	assert_false(ends(find_role("main.goexit", 0, 0, false)));
	/* To Go it is outermost. */
	assert_false(ends(find_role("runtime.sigtramp", GO_FUNC_TOP, 0x60, false)));
	/* The goroutine is left for good, once another function was called. */
	assert_true(ends(find_role("runtime.mcall", GO_FUNC_WRITES_SP, 0, false)));
	assert_int_equal(find_role("runtime.mcall", GO_FUNC_WRITES_SP, 0, true).kind, GO_ROW_UNSURE);
}

static void test_switches(void **state)
{
	struct go_row row = find_role("runtime.systemstack.abi0", GO_FUNC_WRITES_SP, 8, false);

	assert_int_equal(row.kind, GO_ROW_SYSTEM);
	expect_cfa(&row.row, RSP, 16);
	assert_int_equal(find_role("runtime.asmcgocall", GO_FUNC_WRITES_SP, 0, false).kind, GO_ROW_C);
	assert_int_equal(find_role("runtime.morestack", GO_FUNC_WRITES_SP, 0, false).kind, GO_ROW_MORESTACK);
	/* Whether it has done so yet is not known. */
	assert_int_equal(find_role("runtime.systemstack", GO_FUNC_WRITES_SP, 0, true).kind, GO_ROW_UNSURE);
	assert_int_equal(find_role("runtime.systemstack_switch", 0, 0, false).kind, GO_ROW_PLAIN);
	assert_int_equal(find_role("runtime.gogo", GO_FUNC_WRITES_SP, 0, true).kind, GO_ROW_UNSURE);
	row = find_role("runtime.cgocallback", GO_FUNC_WRITES_SP, 0x20, false);
	assert_int_equal(row.kind, GO_ROW_CALLBACK);
	expect_cfa(&row.row, RSP, 0x28);
	assert_int_equal(find_role("runtime.cgocallback", GO_FUNC_WRITES_SP, 0x20, true).kind, GO_ROW_PLAIN);
}

/* The wrapper of a function only calls it; releases that have wrappers have flags. */
static void test_wrappers(void **state)
{
	assert_int_equal(find_role("runtime.asmcgocall", 0, 0x18, false).kind, GO_ROW_PLAIN);
	assert_false(ends(find_role("runtime.goexit", 0, 0x18, false)));
	for (unsigned release = 9; release <= 16; release += 7) {
		assert_int_equal(find_role_in(release, "runtime.asmcgocall", 0, 0, false).kind, GO_ROW_C);
		assert_true(ends(find_role_in(release, "runtime.goexit", 0, 0, false)));
		assert_true(ends(find_role_in(release, "runtime.mstart", 0, 0, false)));
	}
}

/* nanotime1 calls the vDSO on another stack, and has its frame pointer on the first. */
static void test_frame_pointer_stays(void **state)
{
	struct go_row row = find_role("runtime.nanotime1", GO_FUNC_WRITES_SP, 0x18, false);

	assert_int_equal(row.kind, GO_ROW_FRAME);
	expect_cfa(&row.row, RSP, 0x20);
	expect_rule(&row.row, RBP, CFI_AT_CFA_OFFSET, -16);
	expect_rule(&row.row, RIP, CFI_AT_CFA_OFFSET, -8);
	assert_int_equal(find_role("runtime.systemstack", GO_FUNC_WRITES_SP, 8, true).kind, GO_ROW_FRAME);
}

static void test_not_known(void **state)
{
	struct program *p = load((struct gomake){.leaf_frame = -8});
	struct budget poor = {.left = 1};
	struct go_row row;

	assert_false(go_rows_find(&p->tables, &arch_x86_64, NULL, GOMAKE_TEXT - 1, true, &row));
	assert_false(go_rows_find(&p->tables, &arch_x86_64, NULL, GOMAKE_TEXT + 0xf0, true, &row)); /* padding */
	assert_false(go_rows_find(&p->tables, &arch_x86_64, NULL, GOMAKE_TEXT + GOMAKE_CODE_SIZE, true, &row));
	assert_false(go_rows_find(&p->tables, &arch_x86_64, NULL, GOMAKE_TEXT + GOMAKE_LEAF + 16, true, &row));
	assert_false(go_rows_find(&p->tables, &arch_x86_64, &poor, GOMAKE_TEXT, true, &row));
	assert_true(poor.refused);
	unload(p);
}

struct seen {
	const struct program *p;
	uint64_t end;
	unsigned count;
	unsigned stop; /* after so many */
};

static int see(const struct go_row *row, void *arg)
{
	struct seen *seen = arg;
	struct go_row same = find(seen->p, &arch_x86_64, row->row.start - GOMAKE_TEXT, true);

	assert_true(row->row.start >= seen->end && row->row.end > row->row.start);
	assert_memory_equal(row, &same, sizeof(same));
	seen->end = row->row.end;
	return ++seen->count == seen->stop ? 7 : 0;
}

static void test_all_rows(void **state)
{
	struct program *p = load((struct gomake){.leaf_frame = 0x10});
	struct seen all = {.p = p}, two = {.p = p, .stop = 2};

	assert_int_equal(go_rows_for_each(&p->tables, &arch_x86_64, see, &all), 0);
	assert_int_equal(all.count, 5);
	assert_int_equal(all.end, GOMAKE_TEXT + GOMAKE_LEAF + 0x80);
	assert_int_equal(go_rows_for_each(&p->tables, &arch_x86_64, see, &two), 7);
	assert_int_equal(two.count, 2);
	unload(p);
}

/* Searching a file without section headers is paid for; what was given up is not taken for an answer. */
static void test_search_is_paid_for(void **state)
{
	const struct gomake ways[] = {{.release = 20}, {.release = 20, .pie = true}, {.release = 16, .pie = true}};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct program *p = load(ways[i]);
		const uint64_t all = 1 << 20;
		struct budget budget = {.left = all};
		struct go_tables tables;
		uint64_t needed;

		assert_int_equal(go_tables_init(&tables, p->image, &budget, NULL), 0);
		needed = all - budget.left;
		assert_true(needed > sizeof(p->file.data) / 128);
		go_tables_deinit(&tables);
		for (uint64_t left = 0; left < needed; left++) {
			budget = (struct budget){.left = left};
			assert_int_equal(go_tables_init(&tables, p->image, &budget, NULL), -EBUSY);
			assert_true(budget.refused);
		}
		unload(p);
	}
}

static void test_search_given_up(void **state)
{
	struct program *p = load((struct gomake){0});
	struct module module = {.image = p->image};
	struct budget budget = {.left = 1};
	const uint64_t vaddr = GOMAKE_TEXT + GOMAKE_FRAME_START;

	assert_int_equal(code_info_find(&module, &arch_x86_64, &budget, vaddr, true)->kind, CODE_UNKNOWN);
	assert_true(budget.refused);
	budget = (struct budget){.left = 1 << 20};
	assert_int_equal(code_info_find(&module, &arch_x86_64, &budget, vaddr, true)->kind, CODE_GO);
	assert_false(budget.refused);
	module.unwind_free(module.unwind);
	unload(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_x86_64), cmocka_unit_test(test_frames_aarch64),
		cmocka_unit_test(test_outermost),     cmocka_unit_test(test_switches),
		cmocka_unit_test(test_wrappers),      cmocka_unit_test(test_frame_pointer_stays),
		cmocka_unit_test(test_not_known),     cmocka_unit_test(test_all_rows),
		cmocka_unit_test(test_search_is_paid_for),
		cmocka_unit_test(test_search_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
