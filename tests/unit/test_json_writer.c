/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "report/json_writer.h"

struct capture {
	struct json json;
	char *text;
	size_t len;
};

static void begin(struct capture *c)
{
	*c = (struct capture){0};
	c->json.out = open_memstream(&c->text, &c->len);
	assert_non_null(c->json.out);
}

static void expect(struct capture *c, const char *want)
{
	fclose(c->json.out);
	assert_string_equal(c->text, want);
	free(c->text);
}

static void test_structure(void **state)
{
	struct capture c;

	begin(&c);
	json_object(&c.json, NULL);
	json_int(&c.json, "a", -1);
	json_array(&c.json, "b");
	json_array_end(&c.json);
	json_array(&c.json, "c");
	json_uint(&c.json, NULL, UINT64_MAX);
	json_object(&c.json, NULL);
	json_object_end(&c.json);
	json_null(&c.json, NULL);
	json_array_end(&c.json);
	json_bool(&c.json, "d", true);
	json_bool(&c.json, "e", false);
	json_object_end(&c.json);
	expect(&c, "{\"a\":-1,\"b\":[],\"c\":[18446744073709551615,{},null],\"d\":true,\"e\":false}");
}

static void test_numbers(void **state)
{
	struct capture c;

	begin(&c);
	json_array(&c.json, NULL);
	json_hex(&c.json, NULL, 0);
	json_hex(&c.json, NULL, UINT64_MAX);
	json_thousandths(&c.json, NULL, 0);
	json_thousandths(&c.json, NULL, 1);
	json_thousandths(&c.json, NULL, 23417);
	json_array_end(&c.json);
	expect(&c, "[\"0x0\",\"0xffffffffffffffff\",0.000,0.001,23.417]");
}

static void test_strings(void **state)
{
	struct capture c;

	begin(&c);
	json_array(&c.json, NULL);
	json_string(&c.json, NULL, NULL);
	json_string(&c.json, NULL, "");
	json_string(&c.json, NULL, "say \"hi\" \\ /");
	json_string(&c.json, NULL, "a\tb\nc\033[0m\177");
	json_string(&c.json, NULL, "\xc2\xb5s \xf0\x9f\x90\x9b");
	json_string(&c.json, NULL, "bad \xff\xc3(");
	json_string(&c.json, NULL, "\xe2\x80\xae");
	json_array_end(&c.json);
	expect(&c, "[null,\"\",\"say \\\"hi\\\" \\\\ /\",\"a\\u0009b\\u000ac\\u001b[0m\\u007f\","
		   "\"\xc2\xb5s \xf0\x9f\x90\x9b\",\"bad \\ufffd\\ufffd(\",\"\\u202e\"]");
}

/* Every character at every place among others, which are looked at eight at a time. */
static void test_each_character(void **state)
{
	enum { LEN = 19 };
	char text[LEN + 1], want[LEN + 16];
	struct capture c;

	for (int at = 0; at < LEN; at++)
		for (int code = 1; code < 0x80; code++) {
			const bool is_control = code < ' ' || code == 0x7f, is_quoted = code == '"' || code == '\\';

			for (int i = 0; i < LEN; i++)
				text[i] = "~ !az#[]"[i % 8];
			text[LEN] = '\0';
			snprintf(want, sizeof(want), is_control ? "\"%.*s\\u%04x%s\"" : is_quoted ? "\"%.*s\\%c%s\"" : "\"%.*s%c%s\"", at, text, code, text + at + 1);
			text[at] = (char)code;
			begin(&c);
			json_array(&c.json, NULL);
			json_string(&c.json, NULL, text);
			json_array_end(&c.json);
			fclose(c.json.out);
			assert_memory_equal(c.text + 1, want, strlen(want));
			assert_int_equal(c.len, strlen(want) + 2);
			free(c.text);
		}
}

static void test_times(void **state)
{
	struct capture c;

	begin(&c);
	json_object(&c.json, NULL);
	json_time(&c.json, "a", INT64_C(1700000000000000042));
	json_time(&c.json, "b", -1);
	json_time(&c.json, "c", INT64_MIN);
	json_time(&c.json, "d", INT64_MAX);
	json_object_end(&c.json);
	expect(&c, "{\"a\":\"2023-11-14T22:13:20.000000042Z\",\"b\":\"1969-12-31T23:59:59.999999999Z\","
		   "\"c\":\"1677-09-21T00:12:43.145224192Z\",\"d\":\"2262-04-11T23:47:16.854775807Z\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_structure),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_each_character),
		cmocka_unit_test(test_times),
	};

	return cmocka_run_group_tests_name("json_writer", tests, NULL, NULL);
}
