/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "capture/take.h"
#include "kernel/kallsyms.h"
#include "kernel/address_names.h"

static void ignore(void *arg, size_t index, const char *text)
{
}

static struct snap_thread *add_thread(struct snapshot *snap, const uint64_t *pcs, uint32_t n)
{
	struct snap_thread t = {.tid = (pid_t)snap->threads.len + 1, .nkernel = n};

	if (pcs) {
		t.kernel_pcs = arena_alloc(snap->arena, n * sizeof(*pcs));
		memcpy(t.kernel_pcs, pcs, n * sizeof(*pcs));
	}
	assert_true(vec_push(&snap->threads, t));
	return &snap->threads.data[snap->threads.len - 1];
}

static void expect_name(const struct snap_thread *t, uint32_t index, const char *name, uint64_t offset)
{
	struct kernel_text text;

	assert_non_null(t->kernel_text[index]);
	assert_true(kernel_text_parse(t->kernel_text[index], &text));
	assert_int_equal(text.name_len, strlen(name));
	assert_memory_equal(text.name, name, text.name_len);
	assert_int_equal(text.offset, offset);
}

/* Two functions that every kernel has once; false when their addresses are hidden. */
static bool find_functions(uint64_t *schedule, uint64_t *do_exit)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	unsigned long address;
	char type, name[256];

	*schedule = *do_exit = 0;
	while (f && fscanf(f, "%lx %c %255s%*[^\n]", &address, &type, name) == 3) {
		if (strcmp(name, "schedule") == 0)
			*schedule = address;
		else if (strcmp(name, "do_exit") == 0)
			*do_exit = address;
		if (*schedule && *do_exit)
			break;
	}
	if (f)
		fclose(f);
	return *schedule && *do_exit;
}

static void test_names(void **state)
{
	struct snapshot *snap = snapshot_create(1, arch_host());
	const char *old_text[] = {"text_of_proc+0x1/0x2"};
	uint64_t schedule, do_exit;
	struct snap_thread *t;
	struct err err = {0};

	if (!find_functions(&schedule, &do_exit)) {
		print_message("skipped: /proc/kallsyms hides the addresses\n");
		snapshot_destroy(snap);
		skip();
	}
	if (address_names_ask(&schedule, 1, ignore, NULL, &err) < 0) {
		print_message("skipped: %s\n", err.msg);
		snapshot_destroy(snap);
		skip();
	}
	add_thread(snap, (const uint64_t[]){schedule + 1, do_exit + 2, schedule + 1}, 3);
	add_thread(snap, (const uint64_t[]){1, schedule + 1}, 2); /* the first is no address of the kernel's */
	add_thread(snap, NULL, 0);
	add_thread(snap, NULL, 1)->kernel_text = old_text;
	take_kernel_text(snap);

	t = snap->threads.data;
	expect_name(&t[0], 0, "schedule", 1);
	expect_name(&t[0], 1, "do_exit", 2);
	assert_ptr_equal(t[0].kernel_text[2], t[0].kernel_text[0]);
	assert_null(t[1].kernel_text[0]);
	assert_ptr_equal(t[1].kernel_text[1], t[0].kernel_text[0]);
	assert_null(t[2].kernel_text);
	assert_ptr_equal(t[3].kernel_text, old_text);
	snapshot_destroy(snap);
}

/* Without addresses nothing is asked; what /proc told stays. */
static void test_nothing_to_name(void **state)
{
	struct snapshot *snap = snapshot_create(1, arch_host());
	const char *text[] = {"futex_wait+0x1/0x2"};

	take_kernel_text(snap);
	add_thread(snap, NULL, 0);
	add_thread(snap, NULL, 1)->kernel_text = text;
	take_kernel_text(snap);
	assert_null(snap->threads.data[0].kernel_text);
	assert_ptr_equal(snap->threads.data[1].kernel_text, text);
	snapshot_destroy(snap);
}

/* Where the kernel does not answer the addresses are kept, for /proc/kallsyms to name. */
static void test_not_permitted(void **state)
{
	struct snapshot *snap = snapshot_create(1, arch_host());
	const uint64_t pcs[] = {UINT64_C(0xffffffff81000000)};
	bool asks = address_names_ask(pcs, 1, ignore, NULL, NULL) == 0;
	const struct snap_thread *t = add_thread(snap, pcs, 1);

	take_kernel_text(snap);
	assert_int_equal(t->kernel_text != NULL, asks);
	assert_int_equal(t->nkernel, 1);
	assert_int_equal(t->kernel_pcs[0], pcs[0]);
	snapshot_destroy(snap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_nothing_to_name),
		cmocka_unit_test(test_not_permitted),
	};

	return cmocka_run_group_tests_name("kernel_text", tests, NULL, NULL);
}
