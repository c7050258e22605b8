/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdlib.h>

#include "report/json_frame.h"
#include "sample.h"

static const char kernel_frame[] =
	"{\"address\":\"0xffffffffc0001000\",\"kind\":\"kernel\",\"symbol\":\"xfs_buf_lock\","
	"\"symbol_source\":null,\"offset\":58,\"module\":\"xfs\",\"build_id\":null,"
	"\"module_offset\":null,\"source\":null,\"inlined\":false,\"found_by\":null}";

/* The array, written by itself. */
static char *write_stack(const struct stack *stack, const struct raw_stack *raw)
{
	struct json j = {0};
	char *text;
	size_t len;

	j.out = open_memstream(&text, &len);
	assert_non_null(j.out);
	json_stack(&j, NULL, stack, raw);
	fclose(j.out);
	return text;
}

static void test_frames(void **state)
{
	const struct stack stack = {.data = sample_disk_kernel.data, .len = 1};
	char *text = write_stack(&stack, NULL);

	assert_int_equal(text[0], '[');
	assert_memory_equal(text + 1, kernel_frame, sizeof(kernel_frame) - 1);
	assert_string_equal(text + sizeof(kernel_frame), "]");
	free(text);
}

static void test_no_stack(void **state)
{
	char *text = write_stack(NULL, NULL);

	assert_string_equal(text, "[]");
	free(text);
}

/* As native methods of Java have none. */
static void test_no_line(void **state)
{
	struct frame frames[] = {{.kind = FRAME_KIND_JAVA, .symbol = "Thread.sleep", .file = "Thread.java"},
				 {.kind = FRAME_KIND_JAVA, .symbol = "Main.run", .file = "Main.java", .line = 7}};
	const struct stack stack = {.data = frames, .len = 2};
	char *text = write_stack(&stack, NULL);

	assert_non_null(strstr(text, "\"source\":{\"file\":\"Thread.java\",\"line\":null,\"column\":0},\"inlined\":false,\"tier\":null,"
				     "\"line_kind\":null"));
	assert_non_null(strstr(text, "\"source\":{\"file\":\"Main.java\",\"line\":7,\"column\":0},\"inlined\":false,\"tier\":null,"
				     "\"line_kind\":\"current\""));
	free(text);
}

/* A frame without a raw one has no stack pointer. */
static void test_stack_pointers(void **state)
{
	struct raw_stack raw = {0};
	char *text;

	sample_raw(&raw, 1);
	text = write_stack(&sample_epoll, &raw);
	assert_non_null(strstr(text, "\"found_by\":null,\"sp\":\"0x7ffc00000000\"},{"));
	assert_non_null(strstr(text, "\"found_by\":\"cfi\"}]"));
	free(text);
	raw_stack_deinit(&raw);
}

static void test_lacking(void **state)
{
	static const struct module_info bad = {
		.path = "/a", .build_id = "ab", .problem = "no symbols", .help = "install them"};
	struct frame frame = {.module = &bad};
	const struct stack stack = {.data = &frame, .len = 1};
	struct lacking lacking = {0};
	struct json j = {0};
	char *text;
	size_t len;

	assert_true(lacking_add(&lacking, &stack));
	assert_true(lacking_add(&lacking, NULL));
	j.out = open_memstream(&text, &len);
	json_lacking(&j, &lacking);
	fclose(j.out);
	assert_string_equal(text, "\"lacking\":[{\"module\":\"/a\",\"build_id\":\"ab\",\"problem\":\"no symbols\","
				  "\"help\":\"install them\"}]");
	free(text);
	lacking_deinit(&lacking);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_no_stack),
		cmocka_unit_test(test_no_line),
		cmocka_unit_test(test_stack_pointers),
		cmocka_unit_test(test_lacking),
	};

	return cmocka_run_group_tests_name("json_frame", tests, NULL, NULL);
}
