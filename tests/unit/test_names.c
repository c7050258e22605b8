/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "report/names.h"

/* The words are part of the JSON schema: they may be added to, never changed. */
static void test_status(void **state)
{
	static const char *const names[] = {"captured", "running",       "traced",        "stop_timeout", "exited",
					    "zombie",   "not_permitted", "kernel_thread", "unreadable",   "32bit"};
	const int n = sizeof(names) / sizeof(names[0]);

	assert_int_equal(THREAD_32BIT, n - 1);
	for (int i = 0; i < n; i++)
		assert_string_equal(name_thread_status((enum thread_status)i), names[i]);
	assert_string_equal(name_thread_status((enum thread_status)n), "unknown");
	assert_string_equal(name_thread_status((enum thread_status)UINT32_MAX), "unknown");
}

static void test_capture(void **state)
{
	assert_string_equal(name_thread_capture(CAPTURE_NONE), "none");
	assert_string_equal(name_thread_capture(CAPTURE_ASLEEP), "asleep");
	assert_string_equal(name_thread_capture(CAPTURE_HELD), "held");
	assert_string_equal(name_thread_capture(CAPTURE_MOVED), "moved");
	assert_string_equal(name_thread_capture(CAPTURE_QUIET), "quiet");
	assert_string_equal(name_thread_capture((enum thread_capture)(CAPTURE_QUIET + 1)), "unknown");
	assert_string_equal(name_thread_capture((enum thread_capture)UINT32_MAX), "unknown");
}

static void test_state(void **state)
{
	static const char letters[] = "RSDTtZXIP";
	static const char *const names[] = {"running", "sleeping", "uninterruptible", "stopped", "traced", "zombie",
					    "dead",    "idle",     "parked"};

	for (int i = 0; i < 256; i++) {
		const char *at = i ? strchr(letters, i) : NULL;

		assert_string_equal(name_thread_state((char)i), at ? names[at - letters] : "unknown");
	}
}

static void test_found_by(void **state)
{
	struct frame frame = {.raw = 1, .flags = FRAME_RETURN_ADDRESS};

	assert_string_equal(name_found_by(&frame), "cfi");
	frame.flags |= FRAME_BY_SCAN;
	assert_string_equal(name_found_by(&frame), "scan");
	frame.flags = FRAME_BY_CODE;
	assert_string_equal(name_found_by(&frame), "code");
	frame.flags = FRAME_BY_FRAME_POINTER;
	assert_string_equal(name_found_by(&frame), "frame_pointer");
	frame.raw = 0; /* the innermost one was not found: it is where the registers say */
	assert_null(name_found_by(&frame));
	frame.raw = 1;
	frame.kind = FRAME_KIND_KERNEL;
	assert_null(name_found_by(&frame));
}

static void test_number_of_arguments(void **state)
{
	assert_int_equal(syscall_nargs(NULL), 6);
	assert_int_equal(syscall_nargs(&(struct syscall_info){.name = "x"}), 6);
	assert_int_equal(syscall_nargs(&(struct syscall_info){.name = "x", .args = ""}), 0);
	assert_int_equal(syscall_nargs(&(struct syscall_info){.name = "x", .args = "fd"}), 1);
	assert_int_equal(syscall_nargs(&(struct syscall_info){.name = "x", .args = "fd,buf,count"}), 3);
}

/* More names than registers would be read past the arguments' end. */
static void test_no_call_has_too_many_arguments(void **state)
{
	const struct arch *const archs[] = {&arch_x86_64, &arch_aarch64};

	for (size_t i = 0; i < 2; i++)
		for (int64_t nr = 0; nr < archs[i]->nsyscalls; nr++)
			assert_true(syscall_nargs(arch_syscall(archs[i], nr)) <= 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_capture),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_found_by),
		cmocka_unit_test(test_number_of_arguments),
		cmocka_unit_test(test_no_call_has_too_many_arguments),
	};

	return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
