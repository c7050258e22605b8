/* SPDX-License-Identifier: MIT */
/*
 * The row decoder against libdw's own, for every row of real libraries: where rows start, the CFA, the rule of every
 * register.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/arch.h"
#include "elf/image.h"
#include "libelf_of.h"
#include "unwind/cfi.h"
#include "cmocka_all.h"

enum { MAX_REPORTED = 20 };

struct comparison {
	const struct arch *arch;
	struct cfi_section *section;
	const char *path;
	Dwarf_CFI *cfi;
	size_t rows;
	size_t differences;
	uint64_t covered; /* bytes of code */
};

static void report(struct comparison *cmp, const struct cfi_row *row, int reg, const char *what)
{
	if (cmp->differences++ < MAX_REPORTED)
		print_error("%s: row 0x%" PRIx64 ": register %d: %s\n", cmp->path, row->start, reg, what);
}

/* libdw gives the same bytes decoded, each operation with its offset in them; the first `skip_first` are its own. */
static bool same_expression(const struct cfi_rule *rule, const Dwarf_Op *ops, size_t nops, size_t skip_first)
{
	if (nops <= skip_first || rule->expr_len == 0)
		return false;
	for (size_t i = skip_first; i < nops; i++) {
		const Dwarf_Op *op = &ops[i];

		/* libdw adds the final stack_value itself. */
		if (i == nops - 1 && op->atom == DW_OP_stack_value)
			break;
		if (op->offset >= rule->expr_len || rule->expr[op->offset] != op->atom)
			return false;
	}
	return true;
}

static void compare_cfa(struct comparison *cmp, const struct cfi_row *row, Dwarf_Frame *frame)
{
	const struct cfi_rule *rule = &row->cfa;
	Dwarf_Op *ops;
	size_t nops;

	if (dwarf_frame_cfa(frame, &ops, &nops) != 0) {
		if (rule->kind != CFI_UNSPECIFIED)
			report(cmp, row, -1, "libdw has no CFA");
		return;
	}
	switch (rule->kind) {
	case CFI_REGISTER_OFFSET: {
		bool in_op = nops == 1 && rule->reg < 32 && ops[0].atom == DW_OP_breg0 + rule->reg &&
			     (int64_t)ops[0].number == rule->offset;
		bool extended = nops == 1 && ops[0].atom == DW_OP_bregx && ops[0].number == rule->reg &&
				(int64_t)ops[0].number2 == rule->offset;

		if (!in_op && !extended)
			report(cmp, row, -1, "CFA differs");
		break;
	}
	case CFI_EXPRESSION:
		if (!same_expression(rule, ops, nops, 0))
			report(cmp, row, -1, "CFA expression differs");
		break;
	default:
		if (nops != 0)
			report(cmp, row, -1, "libdw has a CFA");
	}
}

/*
 * libdw starts from the ABI's defaults, which we leave to the step: made explicit here. Its table for x86_64 names
 * register 0 where rbx is meant, which is 3 (System V ABI, figure 3.36): rax is not preserved by calls, rbx is.
 */
static bool is_preserved_in_libdw(const struct arch *arch, unsigned reg)
{
	enum { RAX = 0, RBX = 3 };

	if (arch->id == ARCH_X86_64 && (reg == RAX || reg == RBX))
		return reg == RAX;
	return arch->callee_saved >> reg & 1 || reg == arch->dwarf_ra;
}

static struct cfi_rule with_default(const struct comparison *cmp, const struct cfi_row *row, unsigned reg)
{
	struct cfi_rule rule = row->regs[reg];

	if (rule.kind != CFI_UNSPECIFIED)
		return rule;
	if (reg == cmp->arch->dwarf_sp)
		rule.kind = CFI_CFA_OFFSET;
	else if (is_preserved_in_libdw(cmp->arch, reg))
		rule.kind = CFI_SAME_VALUE;
	else
		rule.kind = CFI_UNDEFINED;
	return rule;
}

static bool is_cfa_plus(const Dwarf_Op *ops, size_t nops, int64_t offset)
{
	if (nops == 0 || ops[0].atom != DW_OP_call_frame_cfa)
		return false;
	if (nops == 1)
		return offset == 0;
	return nops == 2 && ops[1].atom == DW_OP_plus_uconst && (int64_t)ops[1].number == offset;
}

static bool is_register(const Dwarf_Op *ops, size_t nops, uint32_t reg)
{
	return nops == 1 &&
	       ((reg < 32 && ops[0].atom == DW_OP_reg0 + reg) || (ops[0].atom == DW_OP_regx && ops[0].number == reg));
}

static void compare_register(struct comparison *cmp, const struct cfi_row *row, Dwarf_Frame *frame, unsigned reg)
{
	struct cfi_rule rule = with_default(cmp, row, reg);
	Dwarf_Op mem[3], *ops;
	size_t nops;
	bool value, same = false;

	if (dwarf_frame_register(frame, (int)reg, mem, &ops, &nops) != 0) {
		report(cmp, row, (int)reg, dwarf_errmsg(-1));
		return;
	}
	value = nops && ops[nops - 1].atom == DW_OP_stack_value;
	switch (rule.kind) {
	case CFI_UNSPECIFIED:
	case CFI_UNDEFINED:
		same = nops == 0 && ops == mem;
		break;
	case CFI_SAME_VALUE:
		same = nops == 0 && ops == NULL;
		break;
	case CFI_AT_CFA_OFFSET:
		same = !value && is_cfa_plus(ops, nops, rule.offset);
		break;
	case CFI_CFA_OFFSET:
		same = value && is_cfa_plus(ops, nops - 1, rule.offset);
		break;
	case CFI_REGISTER_OFFSET:
		same = is_register(ops, nops, rule.reg);
		break;
	case CFI_AT_EXPRESSION: /* libdw puts the CFA on the stack by an operation of its own, as we do by hand */
		same = !value && nops && ops[0].atom == DW_OP_call_frame_cfa && same_expression(&rule, ops, nops, 1);
		break;
	case CFI_EXPRESSION:
		same = value && ops[0].atom == DW_OP_call_frame_cfa && same_expression(&rule, ops, nops, 1);
		break;
	}
	if (!same)
		report(cmp, row, (int)reg, "rule differs");
}

/* The search for an address leads to the row that the iteration gave. */
static void compare_search(struct comparison *cmp, const struct cfi_row *row)
{
	struct cfi_row found;

	if (cfi_find_row(cmp->section, NULL, row->end - 1, &found) != 0 || found.start != row->start ||
	    found.end != row->end || memcmp(&found.cfa, &row->cfa, sizeof(found.cfa)) != 0 ||
	    memcmp(found.regs, row->regs, sizeof(found.regs)) != 0)
		report(cmp, row, -1, "the search finds another row");
}

static int compare_row(const struct cfi_row *row, void *arg)
{
	struct comparison *cmp = arg;
	Dwarf_Frame *frame;
	Dwarf_Addr start, end;
	bool signal_frame;
	int ra;

	cmp->rows++;
	cmp->covered += row->end - row->start;
	if (dwarf_cfi_addrframe(cmp->cfi, row->start, &frame) != 0) {
		report(cmp, row, -1, dwarf_errmsg(-1));
		return 0;
	}
	ra = dwarf_frame_info(frame, &start, &end, &signal_frame);
	if (ra != (int)row->ra_reg || signal_frame != row->signal_frame)
		report(cmp, row, ra, "return address column or signal flag differs");
	/*
	 * libdw takes the start back, too, when it restores a remembered state, and so reports one before the address
	 * asked for. The ends are exact, and each is the start of our next row.
	 */
	if (start > row->start || end != row->end)
		report(cmp, row, -1, "range differs");
	compare_search(cmp, row);
	compare_cfa(cmp, row, frame);
	for (unsigned reg = 0; reg < cmp->arch->ndwarf_regs; reg++)
		compare_register(cmp, row, frame, reg);
	free(frame);
	return 0;
}

/* Code covered by the FDEs that libdw's own iteration over the section finds: nothing may be left out. */
static size_t count_fdes(Elf *elf, struct image *image)
{
	struct span bytes = image_section(image, ".eh_frame");
	Elf_Data data = {.d_buf = (void *)bytes.data, .d_size = bytes.len, .d_type = ELF_T_BYTE};
	Dwarf_Off offset = 0, next;
	Dwarf_CFI_Entry entry;
	size_t n = 0;

	while (dwarf_next_cfi((const unsigned char *)elf_getident(elf, NULL), &data, true, offset, &next, &entry) ==
	       0) {
		n += entry.CIE_id != DW_CIE_ID_64;
		offset = next;
	}
	return n;
}

static int count_function(const struct cfi_row *row, void *arg)
{
	size_t *state = arg; /* end of the last row, number of functions' first rows */

	state[1] += row->start != state[0];
	state[0] = row->end;
	return 0;
}

static void init_section(struct cfi_section *section, const struct arch *arch, struct image *image, bool with_hdr)
{
	struct span hdr = with_hdr ? image_eh_frame_hdr(image) : (struct span){0};

	cfi_section_init(section, CFI_EH_FRAME, arch, image_section(image, ".eh_frame"), hdr);
}

static void compare_file(const char *path, const struct arch *arch, struct comparison *cmp)
{
	struct cfi_section section, scanned;
	struct image *image;
	struct err err;
	size_t with_hdr[2] = {0}, without_hdr[2] = {0};
	Elf *elf;

	if (image_open_fd(open(path, O_RDONLY | O_CLOEXEC), &err, &image) != 0)
		fail_msg("%s: %s", path, err.msg);
	assert_int_equal(image_machine(image), arch->elf_machine);
	elf = libelf_of(image);
	*cmp = (struct comparison){.arch = arch, .path = path, .cfi = dwarf_getcfi_elf(elf)};
	assert_non_null(cmp->cfi);

	init_section(&section, arch, image, true);
	cmp->section = &section;
	assert_true(section.table.len > 0);
	assert_int_equal(section.table.len, count_fdes(elf, image));
	assert_int_equal(cfi_for_each_row(&section, compare_row, cmp), 0);
	assert_int_equal(cfi_for_each_row(&section, count_function, with_hdr), 0);

	/* The index made by reading the section leads to the same rows as the table in the file. */
	init_section(&scanned, arch, image, false);
	assert_int_equal(cfi_for_each_row(&scanned, count_function, without_hdr), 0);
	assert_int_equal(scanned.index.len, section.table.len);
	assert_memory_equal(with_hdr, without_hdr, sizeof(with_hdr));

	cfi_section_deinit(&scanned);
	cfi_section_deinit(&section);
	dwarf_cfi_end(cmp->cfi);
	elf_end(elf);
	image_destroy(image);
	print_message("%s: %zu rows, %" PRIu64 " bytes of code, %zu differences\n", path, cmp->rows, cmp->covered,
		      cmp->differences);
}

/* The first of the paths that exists; NULL ends the list. */
static const char *first_of(const char *const *paths)
{
	for (; *paths; paths++)
		if (access(*paths, R_OK) == 0)
			return *paths;
	return NULL;
}

struct subject {
	const char *name;
	const struct arch *arch; /* NULL: the host's */
	const char *paths[8];
};

static const struct subject libc = {"libc",
				    NULL,
				    {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6",
				     "/lib64/libc.so.6", "/usr/lib/libc.so.6"}};
static const struct subject libstdcxx = {"libstdc++",
					 NULL,
					 {"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
					  "/usr/lib/aarch64-linux-gnu/libstdc++.so.6", "/usr/lib64/libstdc++.so.6",
					  "/usr/lib/libstdc++.so.6"}};
static const struct subject libcrypto = {
	"libcrypto",
	NULL,
	{"/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/lib/x86_64-linux-gnu/libcrypto.so.3",
	 "/usr/lib/aarch64-linux-gnu/libcrypto.so.3", "/lib/aarch64-linux-gnu/libcrypto.so.3",
	 "/usr/lib64/libcrypto.so.3", "/usr/lib/libcrypto.so.3"}};
static const struct subject python = {"python3", NULL, {"/usr/bin/python3"}};
static const struct subject cross_libc = {"libc of the other architecture (libc6-arm64-cross, libc6-amd64-cross)",
#ifdef __x86_64__
					  &arch_aarch64,
					  {"/usr/aarch64-linux-gnu/lib/libc.so.6"}};
#else
					  &arch_x86_64,
					  {"/usr/x86_64-linux-gnu/lib/libc.so.6"}};
#endif

static void test_subject(void **state)
{
	const struct subject *subject = *state;
	const char *path = first_of(subject->paths);
	struct comparison cmp;

	if (!path) {
		print_message("skipped: %s is not installed\n", subject->name);
		skip();
	}
	compare_file(path, subject->arch ? subject->arch : arch_host(), &cmp);
	assert_true(cmp.rows > 1000);
	assert_int_equal(cmp.differences, 0);
}

#define SUBJECT(s)                                                                                                     \
	{                                                                                                              \
		"test_" #s, test_subject, NULL, NULL, (void *)&(s)                                                     \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SUBJECT(libc), SUBJECT(libstdcxx), SUBJECT(libcrypto), SUBJECT(python), SUBJECT(cross_libc),
	};

	return cmocka_run_group_tests_name("cfi against libdw", tests, NULL, NULL);
}
