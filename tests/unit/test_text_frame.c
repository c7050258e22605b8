/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdlib.h>

#include "report/text_frame.h"
#include "sample.h"

struct fixture {
	struct text text;
	char *got;
	size_t len;
};

static void begin(struct fixture *f, bool color)
{
	*f = (struct fixture){.text = {.color = color}};
	f->text.out = open_memstream(&f->got, &f->len);
	assert_non_null(f->text.out);
}

static void expect(struct fixture *f, const char *want)
{
	fclose(f->text.out);
	assert_string_equal(f->got, want);
	free(f->got);
}

static void test_note(void **state)
{
	struct fixture f;

	begin(&f, false);
	text_note(&f.text, "no names: ", "\033[31mhidden");
	expect(&f, "note: no names: \\x1b[31mhidden\n");
}

static void test_kernel_frames(void **state)
{
	struct fixture f;

	begin(&f, false);
	text_kernel_frame(&f.text, &sample_disk_kernel.data[0]);
	text_kernel_frame(&f.text, &sample_disk_kernel.data[1]);
	expect(&f, "  k   xfs_buf_lock+0x3a [xfs]\n  k   0xffffffff81234567\n");
	begin(&f, true);
	text_kernel_frame(&f.text, &sample_disk_kernel.data[1]);
	expect(&f, "  k   \033[33m0xffffffff81234567\033[0m\n");
}

static void test_user_frames(void **state)
{
	const struct frame_format verbose = {.verbose = true}, plain = {0};
	const struct frame by_code = {.address = 16, .flags = FRAME_BY_CODE};
	struct fixture f;

	begin(&f, false);
	text_user_frame(&f.text, &plain, &sample_epoll.data[0], 0);
	text_user_frame(&f.text, &verbose, &sample_epoll.data[0], 10);
	text_user_frame(&f.text, &plain, &by_code, 100);
	expect(&f, "  #0  0x00007f0000001056  __epoll_wait+0x56  in libc.so.6  at linux/epoll_wait.c:30\n"
		   "  #10 0x00007f0000001056  __epoll_wait+0x56  in /usr/lib/libc.so.6"
		   "  at ../sysdeps/unix/sysv/linux/epoll_wait.c:30\n"
		   "  #100 0x0000000000000010  ??  [by reading the code]\n");
}

static void test_stack_pointers(void **state)
{
	struct raw_stack raw = {0};
	const struct frame_format format = {.raw = &raw};
	struct fixture f;

	sample_raw(&raw, 1);
	begin(&f, false);
	text_user_frame(&f.text, &format, &sample_epoll.data[0], 0);
	text_user_frame(&f.text, &format, &sample_epoll.data[1], 1); /* beyond what was walked */
	expect(&f, "  #0  0x00007f0000001056  sp 0x00007ffc00000000  __epoll_wait+0x56  in libc.so.6"
		   "  at linux/epoll_wait.c:30\n"
		   "  #1  0x0000555500001234                         aeMain+0x34  in server\n");
	raw_stack_deinit(&raw);
}

static void test_lacking(void **state)
{
	struct lacking lacking = {0};
	struct fixture f;

	begin(&f, false);
	text_lacking(&f.text, &lacking);
	expect(&f, "");
	assert_true(lacking_add(&lacking, &sample_epoll));
	assert_true(lacking_add(&lacking, &sample_spin));
	begin(&f, false);
	text_lacking(&f.text, &lacking);
	expect(&f, "\nmodule /usr/bin/server: no debug information\n");
	lacking_deinit(&lacking);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_note),        cmocka_unit_test(test_kernel_frames),
		cmocka_unit_test(test_user_frames), cmocka_unit_test(test_stack_pointers),
		cmocka_unit_test(test_lacking),
	};

	return cmocka_run_group_tests_name("text_frame", tests, NULL, NULL);
}
