/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "model/notes.h"

static void test_each_text_is_there_once(void **state)
{
	struct notes notes = {0};
	char text[] = "no BPF: not permitted";

	notes_add(&notes, "no BPF: %s", "not permitted");
	notes_add(&notes, "%s", text);
	notes_add(&notes, "another %d%%", 5);
	memset(text, 'x', sizeof(text) - 1); /* it was copied */
	assert_int_equal(notes.len, 2);
	assert_string_equal(notes.data[0], "no BPF: not permitted");
	assert_string_equal(notes.data[1], "another 5%");
	notes_add(&notes, "another 6%%");
	notes_add(&notes, "%s", "");
	assert_int_equal(notes.len, 4);
	notes_deinit(&notes);
	assert_int_equal(notes.len, 0);
}

static void test_long_text(void **state)
{
	enum { LEN = 100000 };
	char *text = calloc(1, LEN + 1);
	struct notes notes = {0};

	memset(text, 'a', LEN);
	notes_add(&notes, "%s", text);
	assert_int_equal(notes.len, 1);
	assert_string_equal(notes.data[0], text);
	notes_deinit(&notes);
	free(text);
}

static void test_add_all(void **state)
{
	struct notes notes = {0}, more = {0}, none = {0};

	notes_add(&notes, "first");
	notes_add(&notes, "second");
	notes_add(&more, "second");
	notes_add(&more, "third");
	notes_add_all(&notes, &more);
	notes_add_all(&notes, &none);
	notes_deinit(&more); /* what was added does not need it */
	assert_int_equal(notes.len, 3);
	assert_string_equal(notes.data[0], "first");
	assert_string_equal(notes.data[1], "second");
	assert_string_equal(notes.data[2], "third");
	notes_add_all(&none, &notes);
	assert_int_equal(none.len, 3);
	notes_deinit(&none);
	notes_deinit(&notes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_text_is_there_once),
		cmocka_unit_test(test_long_text),
		cmocka_unit_test(test_add_all),
	};

	return cmocka_run_group_tests_name("notes", tests, NULL, NULL);
}
