/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "capture/altstack.h"

enum { ALT = 0x10000, ALT_LEN = 0x4000, HOME = 0x700000, HOME_LEN = 0x8000 };

static struct map_entry entries[] = {
	{.start = ALT, .end = ALT + ALT_LEN, .perms = MAP_PERM_READ | MAP_PERM_WRITE, .path = ""},
	{.start = HOME, .end = HOME + HOME_LEN, .perms = MAP_PERM_READ | MAP_PERM_WRITE, .path = ""},
};
static const struct maps maps = {.data = entries, .len = 2};
static const struct altstack alt = {.known = true, .start = ALT, .len = ALT_LEN};

/* A stack copy with a ucontext of the host at `at`, whose interrupted sp is `sp`. */
static struct mem_copy make_stack(uint8_t *room, size_t at, uint64_t sp)
{
	ucontext_t context = {.uc_stack = {.ss_sp = (void *)ALT, .ss_size = ALT_LEN}};

#ifdef __x86_64__
	context.uc_mcontext.gregs[REG_RSP] = (greg_t)sp;
#else
	context.uc_mcontext.sp = sp;
#endif
	memset(room, 0xa5, ALT_LEN);
	memcpy(room + at, &context, sizeof(context) < 512 ? sizeof(context) : 512);
	return (struct mem_copy){.start = ALT + 0x100, .len = ALT_LEN - 0x100, .region_end = ALT + ALT_LEN, .data = room};
}

static void test_finds_the_interrupted_stack(void **state)
{
	uint8_t room[ALT_LEN];
	struct mem_copy stack = make_stack(room, 0x800, HOME + 0x4560), out = {0};

	assert_true(altstack_interrupted(arch_host(), &maps, &alt, &stack, 1 << 20, &out));
	assert_int_equal(out.start, HOME + 0x4560);
	assert_int_equal(out.len, HOME_LEN - 0x4560);
	assert_int_equal(out.region_end, HOME + HOME_LEN);
	assert_true(altstack_interrupted(arch_host(), &maps, &alt, &stack, 256, &out));
	assert_int_equal(out.len, 256);
}

static void test_not_on_it(void **state)
{
	uint8_t room[ALT_LEN];
	struct mem_copy stack = make_stack(room, 0x800, HOME + 0x4560), out;
	struct altstack unknown = {0}, none = {.known = true};

	assert_false(altstack_interrupted(arch_host(), &maps, &unknown, &stack, 1 << 20, &out));
	assert_false(altstack_interrupted(arch_host(), &maps, &none, &stack, 1 << 20, &out));
	stack.start = HOME;
	assert_false(altstack_interrupted(arch_host(), &maps, &alt, &stack, 1 << 20, &out));
}

static void test_hostile_frame(void **state)
{
	uint8_t room[ALT_LEN];
	struct mem_copy stack = make_stack(room, 0x800, 0xdead0000), out;

	assert_false(altstack_interrupted(arch_host(), &maps, &alt, &stack, 1 << 20, &out));
	stack = make_stack(room, 0x800, ALT + 0x200); /* on the alternate stack itself: a handler in a handler */
	assert_false(altstack_interrupted(arch_host(), &maps, &alt, &stack, 1 << 20, &out));
	for (stack.len = 0; stack.len < 0x900; stack.len += 8) /* cut off anywhere */
		altstack_interrupted(arch_host(), &maps, &alt, &stack, 1 << 20, &out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_the_interrupted_stack),
		cmocka_unit_test(test_not_on_it),
		cmocka_unit_test(test_hostile_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
