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
	const struct frame_format plain = {0}, indented = {.indent = "  "};
	struct fixture f;

	begin(&f, false);
	text_kernel_stack(&f.text, &indented, &sample_disk_kernel);
	text_kernel_stack(&f.text, &plain, NULL);
	expect(&f, "    k   xfs_buf_lock+0x3a [xfs]\n    k   0xffffffff81234567\n");
	begin(&f, true);
	text_kernel_stack(&f.text, &plain, &sample_disk_kernel);
	expect(&f, "  k   \033[33mxfs_buf_lock\033[0m+0x3a [xfs]\n  k   \033[33m0xffffffff81234567\033[0m\n");
}

static void expect_kernel(const struct stack *stack, const char *want)
{
	struct fixture f;

	begin(&f, false);
	text_kernel_stack(&f.text, &(struct frame_format){0}, stack);
	expect(&f, want);
}

/* Also that of an interrupt, but not what it did, and not one that came when the thread was in the kernel. */
static void test_interrupts(void **state)
{
	expect_kernel(&(const struct stack)SAMPLE_STACK(
			      SAMPLE_KERNEL("exit_to_user_mode_loop", 1), SAMPLE_KERNEL("el0_interrupt", 2),
			      SAMPLE_KERNEL("__el0_irq_handler_common", 3), SAMPLE_KERNEL("el0t_64_irq_handler", 4),
			      SAMPLE_KERNEL("el0t_64_irq", 5)),
		      "  k   exit_to_user_mode_loop+0x1\n");
	expect_kernel(&(const struct stack)SAMPLE_STACK(SAMPLE_KERNEL("exit_to_user_mode_loop", 1),
							SAMPLE_KERNEL("irqentry_exit_to_user_mode", 2),
							SAMPLE_KERNEL("sysvec_apic_timer_interrupt", 3),
							SAMPLE_KERNEL("asm_sysvec_apic_timer_interrupt", 4)),
		      "  k   exit_to_user_mode_loop+0x1\n");
	expect_kernel(
		&(const struct stack)SAMPLE_STACK(SAMPLE_KERNEL("preempt_schedule_irq", 1),
						  SAMPLE_KERNEL("asm_sysvec_apic_timer_interrupt", 2),
						  SAMPLE_KERNEL("vfs_read", 3), SAMPLE_KERNEL("do_syscall_64", 4)),
		"  k   preempt_schedule_irq+0x1\n  k   asm_sysvec_apic_timer_interrupt+0x2\n  k   vfs_read+0x3\n");
}

/* The way into the kernel is shown with -v, or where there is nothing else. */
static void test_entry_frames(void **state)
{
	const struct frame_format plain = {0}, verbose = {.verbose = true};
	const struct stack entry = SAMPLE_STACK(SAMPLE_KERNEL("do_nanosleep", 1), SAMPLE_KERNEL("__x64_sys_nanosleep", 2),
						SAMPLE_KERNEL("do_syscall_64", 3), SAMPLE_KERNEL("entry_SYSCALL_64_after_hwframe", 4));
	const struct stack arm = SAMPLE_STACK(SAMPLE_KERNEL("__arm64_sys_pause", 1), SAMPLE_KERNEL("invoke_syscall", 2),
					      SAMPLE_KERNEL("el0_svc_common.constprop.0", 3), SAMPLE_KERNEL("do_el0_svc", 4),
					      SAMPLE_KERNEL("el0_svc", 5), SAMPLE_KERNEL("el0t_64_sync_handler", 6),
					      SAMPLE_KERNEL("el0t_64_sync", 7));
	const struct stack fault = SAMPLE_STACK(SAMPLE_KERNEL("do_syscall_64", 1), SAMPLE_KERNEL("asm_exc_page_fault", 2));
	struct fixture f;

	begin(&f, false);
	text_kernel_stack(&f.text, &plain, &entry);
	text_kernel_stack(&f.text, &plain, &arm);
	text_kernel_stack(&f.text, &plain, &fault);
	expect(&f, "  k   do_nanosleep+0x1\n"
		   "  k   __arm64_sys_pause+0x1\n"
		   "  k   do_syscall_64+0x1\n  k   asm_exc_page_fault+0x2\n");
	begin(&f, false);
	text_kernel_stack(&f.text, &verbose, &entry);
	expect(&f, "  k   do_nanosleep+0x1\n  k   __x64_sys_nanosleep+0x2\n  k   do_syscall_64+0x3\n"
		   "  k   entry_SYSCALL_64_after_hwframe+0x4\n");
}

static void test_user_frames(void **state)
{
	const struct frame_format verbose = {.verbose = true}, plain = {0}, no_addresses = {.no_addresses = true};
	const struct stack one = {.data = sample_epoll.data, .len = 1};
	const struct stack by_code = SAMPLE_STACK({.address = 16, .flags = FRAME_BY_CODE});
	const struct stack module_only = SAMPLE_STACK({.address = 16, .module = &sample_exe, .module_offset = 0x64af,
						       .flags = FRAME_BY_FRAME_POINTER});
	struct fixture f;

	begin(&f, false);
	text_user_stack(&f.text, &plain, &one);
	text_user_stack(&f.text, &verbose, &one);
	text_user_stack(&f.text, &no_addresses, &one);
	text_user_stack(&f.text, &plain, &by_code);
	text_user_stack(&f.text, &verbose, &by_code);
	text_user_stack(&f.text, &plain, &module_only);
	text_user_stack(&f.text, &verbose, &module_only);
	expect(&f, "  #0  0x00007f0000001056  __epoll_wait+0x56  in libc.so.6  at linux/epoll_wait.c:30\n"
		   "  #0  0x00007f0000001056  __epoll_wait+0x56  in /usr/lib/libc.so.6"
		   "  at ../sysdeps/unix/sysv/linux/epoll_wait.c:30\n"
		   "  #0  __epoll_wait+0x56  in libc.so.6  at linux/epoll_wait.c:30\n"
		   "  #0  0x0000000000000010  ??\n"
		   "  #0  0x0000000000000010  ??  [by reading the code]\n"
		   "  #0  0x0000000000000010  ??  in server+0x64af\n"
		   "  #0  0x0000000000000010  ??  in /usr/bin/server+0x64af  [by frame pointer]\n");
}

static void test_runtime_frames(void **state)
{
	const struct frame_format plain = {0}, no_addresses = {.no_addresses = true};
	const struct stack stack = SAMPLE_STACK(
		{.kind = FRAME_KIND_PYTHON, .symbol = "Handler.get", .file = "/srv/app.py", .line = 41},
		{.kind = FRAME_KIND_JAVA, .symbol = "LockSupport.park", .file = "LockSupport.java", .line = 376, .tier = "C2",
		 .line_kind = LINE_APPROXIMATE},
		{.kind = FRAME_KIND_JS, .symbol = "onRequest", .file = "node:internal/app", .line = 12, .line_kind = LINE_DEFINITION},
		{.kind = FRAME_KIND_MARKER, .symbol = "the rest is on the heap"});
	struct fixture f;

	begin(&f, false);
	text_user_stack(&f.text, &plain, &stack);
	text_user_stack(&f.text, &no_addresses, &stack);
	expect(&f, "  #0  py                  Handler.get  at srv/app.py:41\n"
		   "  #1  java                LockSupport.park  at LockSupport.java:376 or close to it  [C2]\n"
		   "  #2  js                  onRequest  at node:internal/app:12 (where it begins)\n"
		   "  #3  --                  the rest is on the heap\n"
		   "  #0  py  Handler.get  at srv/app.py:41\n"
		   "  #1  java  LockSupport.park  at LockSupport.java:376 or close to it  [C2]\n"
		   "  #2  js  onRequest  at node:internal/app:12 (where it begins)\n"
		   "  #3  --  the rest is on the heap\n");
}

static struct frame named(const char *symbol)
{
	return (struct frame){.address = 16, .symbol = symbol, .offset = 1, .has_offset = true};
}

static void test_recursion(void **state)
{
	const struct frame_format plain = {.no_addresses = true}, verbose = {.verbose = true, .no_addresses = true};
	const char *odd = "odd", *even = "even", *deep = "deep";
	const struct stack stack = SAMPLE_STACK(named("leaf"), named(deep), named(deep), named(deep), named(deep), named(odd),
						named(even), named(odd), named(even), named(odd), named(even), named("main"),
						named("start"), named("start"));
	struct fixture f;

	begin(&f, false);
	text_user_stack(&f.text, &plain, &stack);
	expect(&f, "  #0  leaf+0x1\n"
		   "  #1  deep+0x1\n  …   3 more times\n"
		   "  #5  odd+0x1\n  #6  even+0x1\n  …   these 2 frames 2 more times\n"
		   "  #11 main+0x1\n  #12 start+0x1\n  #13 start+0x1\n");
	begin(&f, false);
	text_user_stack(&f.text, &verbose, &stack);
	fflush(f.text.out);
	assert_null(strstr(f.got, "more times"));
	assert_non_null(strstr(f.got, "  #4  deep+0x1\n  #5  odd+0x1\n  #6  even+0x1\n  #7  odd+0x1\n"));
	fclose(f.text.out);
	free(f.got);
}

/* Colours are for what is there. */
static void test_no_empty_colours(void **state)
{
	const struct stack stack = SAMPLE_STACK({.symbol = "work"});
	struct fixture f;

	begin(&f, true);
	text_user_stack(&f.text, &(struct frame_format){.no_addresses = true}, &stack);
	expect(&f, "  #0  \033[1mwork\033[0m\n");
}

/* Of a method of Java the class is left to the last: the package, the file that is named so, and the compiler go
 * before. */
static void test_java_width(void **state)
{
	const struct stack stack =
		SAMPLE_STACK({.symbol = "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await",
			      .kind = FRAME_KIND_JAVA,
			      .file = "AbstractQueuedSynchronizer.java",
			      .line = 1630,
			      .tier = "interpreted"});
	struct frame_format format = {.no_addresses = true};
	struct fixture f;

	begin(&f, false);
	for (format.width = 120; format.width >= 60; format.width -= 20)
		text_user_stack(&f.text, &format, &stack);
	expect(&f, "  #0  java  AbstractQueuedSynchronizer$ConditionObject.await  at "
		   "AbstractQueuedSynchronizer.java:1630  [interpreted]\n"
		   "  #0  java  AbstractQueuedSynchronizer$ConditionObject.await  at line 1630  [interpreted]\n"
		   "  #0  java  AbstractQueuedSynchronizer$ConditionObject.await  at line 1630\n"
		   "  #0  java  AbstractQue…$ConditionObject.await  at line 1630\n");
}

static void test_width(void **state)
{
	const struct stack stack = SAMPLE_STACK(
		{.symbol = "std::vector<std::pair<int, std::string>, std::allocator<x> >::push_back(int const&)", .offset = 1,
		 .has_offset = true, .module = &sample_libc, .file = "/a/b/c.cc", .line = 7},
		{.symbol = "short", .offset = 1, .has_offset = true, .module = &sample_libc});
	struct frame_format format = {.no_addresses = true};
	struct fixture f;

	begin(&f, false);
	text_user_stack(&f.text, &format, &stack);
	format.width = 80;
	text_user_stack(&f.text, &format, &stack);
	format.width = 50;
	text_user_stack(&f.text, &format, &stack);
	expect(&f, "  #0  std::vector<std::pair<int, std::string>, std::allocator<x> >::push_back(int const&)+0x1"
		   "  in libc.so.6  at b/c.cc:7\n"
		   "  #1  short+0x1  in libc.so.6\n"
		   "  #0  std::vector<…>::push_back(int const&)+0x1  in libc.so.6  at b/c.cc:7\n"
		   "  #1  short+0x1  in libc.so.6\n"
		   "  #0  std::vector<…>::push_back(…)  at b/c.cc:7\n"
		   "  #1  short+0x1  in libc.so.6\n");
}

static void test_stack_pointers(void **state)
{
	struct raw_stack raw = {0};
	const struct frame_format format = {.raw = &raw};
	struct fixture f;

	sample_raw(&raw, 1); /* the second is beyond what was walked */
	begin(&f, false);
	text_user_stack(&f.text, &format, &sample_epoll);
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
		cmocka_unit_test(test_note),           cmocka_unit_test(test_kernel_frames),
		cmocka_unit_test(test_entry_frames),   cmocka_unit_test(test_interrupts),
		cmocka_unit_test(test_recursion),      cmocka_unit_test(test_width),
		cmocka_unit_test(test_java_width),     cmocka_unit_test(test_no_empty_colours),
		cmocka_unit_test(test_user_frames),    cmocka_unit_test(test_runtime_frames),
		cmocka_unit_test(test_stack_pointers), cmocka_unit_test(test_lacking),
	};

	return cmocka_run_group_tests_name("text_frame", tests, NULL, NULL);
}
