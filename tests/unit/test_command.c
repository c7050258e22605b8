/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "offcpu/command.h"

/* How often code of a file, by the end of its path, is mapped in this process. */
static unsigned count_code(const char *end)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];
	unsigned n = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		line[strcspn(line, "\n")] = '\0';
		n += strchr(line, ' ')[3] == 'x' && strlen(line) > strlen(end) &&
		     strcmp(line + strlen(line) - strlen(end), end) == 0;
	}
	fclose(maps);
	return n;
}

/* A program that is found in PATH, with its loader and its libraries. */
static void test_program(void **state)
{
	unsigned libc = count_code("/libc.so.6");

	assert_int_equal(libc, 1);
	assert_int_equal(count_code("/tail"), 0);
	command_map_code("tail");
	assert_int_equal(count_code("/tail"), 1);
	assert_int_equal(count_code("/libc.so.6"), libc + 1);
}

static void test_script(void **state)
{
	struct scratch s;
	char path[128];

	scratch_init(&s);
	scratch_run(&s, "printf '#! /usr/bin/head -n1\\n' >script && chmod 700 script");
	snprintf(path, sizeof(path), "%s/script", s.dir);
	command_map_code(path);
	assert_int_equal(count_code("/head"), 1);
	assert_int_equal(count_code("/script"), 0);
	scratch_deinit(&s);
}

/* What is no program is left out: the command will say so itself. */
static void test_none(void **state)
{
	static const char *const names[] = {"", "/", "/dev/null", "/proc/self/maps", "no-such-program", "/no/such/program"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		command_map_code(names[i]);
	assert_int_equal(setenv("PATH", "", 1), 0);
	command_map_code("tac");
	assert_int_equal(setenv("PATH", "/no/such:/usr/bin", 1), 0);
	assert_int_equal(count_code("/tac"), 0);
	command_map_code("tac");
	assert_int_equal(count_code("/tac"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_program),
		cmocka_unit_test(test_script),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
