/* SPDX-License-Identifier: MIT */
/* Beside what test_text_syscall.c shows. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "report/syscall_words.h"

static void check(const char *call, const char *param, uint64_t value, const char *want)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	bool written;

	assert_non_null(out);
	written = syscall_word(out, call, param, strcspn(param, ","), value);
	fclose(out);
	assert_string_equal(text, want ? want : "");
	assert_int_equal(written, want != NULL);
	free(text);
}

static void test_words(void **state)
{
	check("flock", "cmd", 2, "LOCK_EX");
	check("flock", "cmd,more", 6, "LOCK_EX|LOCK_NB");
	check("flock", "cmd", 0, NULL);
	check("flock", "cmd", 0x102, NULL); /* a bit that nobody knows: the number is better */
	check("ioctl", "cmd", 2, NULL);
	check("wait4", "options", 0xc0000001, "WNOHANG|__WALL|__WCLONE");
	check("timer_create", "which_clock", 7, "CLOCK_BOOTTIME");
	check("timer_create", "which_clock", 10, NULL);
	check("clock_nanosleep", "flags", 1, "TIMER_ABSTIME");
	check("futex", "op", 128, "FUTEX_WAIT|PRIVATE");
	check("futex", "op", 0x7f, NULL);
	check("futex", "o", 128, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_words)};

	return cmocka_run_group_tests_name("syscall_words", tests, NULL, NULL);
}
