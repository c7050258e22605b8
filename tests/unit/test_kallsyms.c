/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <errno.h>

#include "base/err.h"
#include "kernel/kallsyms.h"

static int load(const char *text, struct err *err, struct kallsyms **out)
{
	struct scratch s;
	char path[128];
	int ret;

	scratch_init(&s);
	scratch_text(&s, "kallsyms", text);
	snprintf(path, sizeof(path), "%s/kallsyms", s.dir);
	ret = kallsyms_load(path, err, out);
	scratch_deinit(&s);
	return ret;
}

static void expect(const struct kallsyms *ks, uint64_t address, const char *name, uint64_t start, const char *module)
{
	struct kernel_symbol symbol;

	assert_true(kallsyms_find(ks, address, &symbol));
	assert_string_equal(symbol.name, name);
	assert_int_equal(symbol.start, start);
	if (module)
		assert_string_equal(symbol.module, module);
	else
		assert_null(symbol.module);
}

static void test_find(void **state)
{
	struct kallsyms *ks;
	struct kernel_symbol symbol;

	assert_int_equal(load("ffffffff81000000 T _stext\n"
			      "ffffffff81000000 T _text\n"
			      "ffffffff81000100 t helper\n"
			      "ffffffff81000180 d table\n"
			      "ffffffff81000200 W weak_one\n"
			      "ffffffffc0002000 t mod_b_init\t[mod_b]\n"
			      "ffffffffc0000000 t mod_a_read\t[mod_a]\n"
			      "ffffffffc0000080 t mod_a_write\t[mod_a]\n"
			      "0000000000000000 A absolute\n",
			      NULL, &ks),
			 0);
	assert_int_equal(kallsyms_len(ks), 7);
	assert_false(kallsyms_find(ks, 0xffffffff80ffffff, &symbol));
	expect(ks, 0xffffffff81000000, "_stext", 0xffffffff81000000,
	       NULL); /* the first of the aliases, as the kernel */
	expect(ks, 0xffffffff810000ff, "_stext", 0xffffffff81000000, NULL);
	expect(ks, 0xffffffff81000190, "helper", 0xffffffff81000100, NULL); /* data does not end code */
	expect(ks, 0xffffffff81000200, "weak_one", 0xffffffff81000200, NULL);
	expect(ks, 0xffffffffc0000010, "mod_a_read", 0xffffffffc0000000, "mod_a"); /* sorted */
	expect(ks, 0xffffffffc0000080, "mod_a_write", 0xffffffffc0000080, "mod_a");
	expect(ks, 0xffffffffc0002001, "mod_b_init", 0xffffffffc0002000, "mod_b");
	kallsyms_destroy(ks);
}

static void test_hidden(void **state)
{
	struct kallsyms *ks = NULL;
	struct err err = {0};

	assert_int_equal(load("0000000000000000 T _text\n0000000000000000 t helper\n", &err, &ks), -EPERM);
	assert_null(ks);
	assert_non_null(strstr(err.msg, "kptr_restrict"));
	assert_non_null(strstr(err.msg, "CAP_SYSLOG"));
	assert_int_equal(load("", &err, &ks), -EPERM);
}

static void test_missing(void **state)
{
	struct kallsyms *ks;
	struct err err = {0};

	assert_int_equal(kallsyms_load("/nonexistent/kallsyms", &err, &ks), -ENOENT);
	assert_non_null(strstr(err.msg, "/nonexistent/kallsyms"));
}

static void test_damaged_lines_are_skipped(void **state)
{
	struct kallsyms *ks;

	assert_int_equal(load("ffffffff81000000 T good\n"
			      "garbage\n"
			      "\n"
			      "ffffffff81000010\n"
			      "ffffffff81000020 T\n"
			      "ffffffff81000030 T \n"
			      "ffffffff81000040 t mod\t[\n"
			      "ffffffff81000050 T cut off",
			      NULL, &ks),
			 0);
	expect(ks, 0xffffffff81000035, "good", 0xffffffff81000000, NULL);
	assert_int_equal(kallsyms_len(ks), 2);
	kallsyms_destroy(ks);
}

static void test_own_kernel(void **state)
{
	struct kallsyms *ks;
	struct err err;

	if (kallsyms_load("/proc/kallsyms", &err, &ks) < 0) {
		print_message("skipped: %s\n", err.msg);
		skip();
	}
	assert_true(kallsyms_len(ks) > 1000);
	kallsyms_destroy(ks);
}

static void expect_text(const char *text, const char *name, const char *module, bool has_offset, uint64_t offset)
{
	struct kernel_text parsed;

	assert_true(kernel_text_parse(text, &parsed));
	assert_int_equal(parsed.name_len, strlen(name));
	assert_memory_equal(parsed.name, name, parsed.name_len);
	assert_int_equal(parsed.module_len, module ? strlen(module) : 0);
	if (module)
		assert_memory_equal(parsed.module, module, parsed.module_len);
	assert_int_equal(parsed.has_offset, has_offset);
	assert_int_equal(parsed.offset, offset);
}

static void test_text(void **state)
{
	struct kernel_text parsed;

	expect_text("futex_wait+0x1/0x2", "futex_wait", NULL, true, 1);
	expect_text("xfs_read+0xabc/0x1000 [xfs]", "xfs_read", "xfs", true, 0xabc);
	expect_text("do_exit", "do_exit", NULL, false, 0);
	expect_text("name+0x", "name", NULL, false, 0);
	expect_text("name [", "name", NULL, false, 0);
	assert_false(kernel_text_parse("", &parsed));
	assert_false(kernel_text_parse("0xffffffffffffffff", &parsed));
	assert_false(kernel_text_parse("+0x1", &parsed));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),       cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_missing),    cmocka_unit_test(test_damaged_lines_are_skipped),
		cmocka_unit_test(test_own_kernel), cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
