/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "report/offcpu_made_code.h"

static const struct module_info module = {.path = "/lib/libc.so.6"};
static struct frame made[] = {{.address = 1, .module = &module}, {.address = 2}};
static struct frame named[] = {{.address = 1, .module = &module}, {.address = 2, .symbol = "jitted"}};
static struct frame handler[] = {{.address = 1, .module = &module}, {.address = 2, .kind = FRAME_KIND_SIGNAL}};

static const struct stack made_code = {.data = made, .len = 2};

/* The maker that is found in a process of this name, whose threads have another; OFFCPU_MAKERS: none. */
static enum offcpu_maker find(const char *name, const struct stack *stack, bool idle)
{
	struct offcpu_thread thread = {.pid = 7, .tid = 7, .name = name};
	struct offcpu_row row = {.pid = 7, .tid = 8, .thread_name = "worker", .user = stack, .idle = idle};
	struct offcpu_profile profile = {.threads = {&thread, 1, 1}, .rows = {&row, 1, 1}};
	enum offcpu_maker found = OFFCPU_MAKERS;
	bool makers[OFFCPU_MAKERS];

	assert_true(offcpu_find_makers(&profile, true, makers));
	for (int i = 0; i < OFFCPU_MAKERS; i++)
		if (makers[i]) {
			assert_int_equal(found, OFFCPU_MAKERS);
			found = i;
		}
	return found;
}

static void test_makers(void **state)
{
	assert_int_equal(find("java", &made_code, false), OFFCPU_MAKER_JAVA);
	assert_int_equal(find("node", &made_code, false), OFFCPU_MAKER_NODE);
	assert_int_equal(find("python3.12", &made_code, false), OFFCPU_MAKER_PYTHON);
	assert_int_equal(find("server", &made_code, false), OFFCPU_MAKER_OTHER);
	assert_int_equal(find(NULL, &made_code, false), OFFCPU_MAKER_OTHER);
	for (int i = 0; i < OFFCPU_MAKERS; i++)
		assert_non_null(offcpu_maker_help(i));
}

/* The main thread may not have waited. */
static void test_no_main_thread(void **state)
{
	struct offcpu_row row = {.pid = 7, .tid = 8, .thread_name = "node", .user = &made_code};
	struct offcpu_profile profile = {.rows = {&row, 1, 1}};
	bool makers[OFFCPU_MAKERS];

	assert_true(offcpu_find_makers(&profile, false, makers));
	assert_true(makers[OFFCPU_MAKER_NODE]);
}

static void test_none(void **state)
{
	const struct stack has_names = {.data = named, .len = 2}, no_maps = {.data = made + 1, .len = 1},
			   signal = {.data = handler, .len = 2};

	assert_int_equal(find("java", &made_code, true), OFFCPU_MAKERS);
	assert_int_equal(find("java", NULL, false), OFFCPU_MAKERS);
	assert_int_equal(find("java", &has_names, false), OFFCPU_MAKERS);
	assert_int_equal(find("java", &no_maps, false), OFFCPU_MAKERS);
	assert_int_equal(find("java", &signal, false), OFFCPU_MAKERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_makers),
		cmocka_unit_test(test_no_main_thread),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests_name("offcpu_made_code", tests, NULL, NULL);
}
