/* SPDX-License-Identifier: MIT */
/* What addresses belong to: a file, one of its sections, this very process. */
#include "scratch.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <sys/auxv.h>

#include "symbol/subject.h"

static void open_in(const struct scratch *s, const char *name, struct subject **out)
{
	char path[128];
	struct err err = {0};

	snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	if (subject_open_file(path, &err, out) != 0)
		fail_msg("%s: %s", path, err.msg);
}

static void expect_refused(const struct scratch *s, const char *name, int code, const char *why)
{
	struct subject *subject = NULL;
	struct err err = {0};
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	assert_int_equal(subject_open_file(path, &err, &subject), -code);
	assert_null(subject);
	if (!strstr(err.msg, why) || !strstr(err.msg, path))
		fail_msg("'%s' and the path are not in '%s'", why, err.msg);
}

static void test_file(void **state)
{
	struct subject *subject = NULL;
	struct module *module;
	struct scratch s;
	uint64_t vaddr = 0;

	scratch_init(&s);
	scratch_run(&s, "echo 'int f(int x) { return x * 3; }' | cc -x c -g -shared -fPIC -o l.so - && mkdir d && "
			"ln -s ../l.so d/link");
	open_in(&s, "d/link", &subject);
	module = subject_find(subject, 0x1234, &vaddr);
	assert_non_null(module);
	assert_int_equal(vaddr, 0x1234);
	assert_string_equal(strrchr(module->info.path, '/'), "/l.so"); /* debug files lie beside the file itself */
	assert_int_equal(subject_digits(subject), 16);
	assert_int_equal(subject_clip(subject, UINT64_MAX), UINT64_MAX);
	subject_destroy(subject);
	scratch_deinit(&s);
}

static void test_what_is_no_file(void **state)
{
	struct scratch s;

	scratch_init(&s);
	scratch_text(&s, "text", "#!/bin/sh\n");
	scratch_text(&s, "empty", "");
	scratch_run(&s, "mkfifo fifo && echo 'int f;' | cc -x c -c -o object.o -");
	expect_refused(&s, "text", ENOEXEC, "not an ELF file");
	expect_refused(&s, "empty", ENOEXEC, "not an ELF file");
	expect_refused(&s, "fifo", ENOEXEC, "not a regular file");
	expect_refused(&s, ".", ENOEXEC, "not a regular file");
	expect_refused(&s, "object.o", ENOEXEC, "relocatable");
	expect_refused(&s, "nothing", ENOENT, "No such file");
	scratch_deinit(&s);
}

static void test_section(void **state)
{
	struct subject *subject = NULL;
	struct module *module;
	struct err err = {0};
	struct scratch s;
	struct span text;
	uint64_t vaddr = 0;

	scratch_init(&s);
	scratch_run(&s, "echo 'int f(int x) { return x * 3; }' | cc -x c -shared -fPIC -o l.so -");
	open_in(&s, "l.so", &subject);
	module = subject_find(subject, 0, &vaddr);
	text = image_section(module->image, ".text");
	assert_int_equal(subject_use_section(subject, ".nothing", &err), -ENOENT);
	assert_non_null(strstr(err.msg, ".nothing"));
	assert_int_equal(subject_use_section(subject, ".text", &err), 0);
	assert_ptr_equal(subject_find(subject, text.len - 1, &vaddr), module);
	assert_int_equal(vaddr, text.vaddr + text.len - 1);
	assert_null(subject_find(subject, text.len, &vaddr));
	assert_int_equal(subject_use_section(subject, ".comment", &err), 0);
	assert_null(subject_find(subject, 0, &vaddr)); /* it is not loaded */
	subject_destroy(subject);
	scratch_deinit(&s);
}

static void test_32_bits(void **state)
{
	const Elf32_Ehdr ehdr = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_386,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(ehdr),
	};
	struct subject *subject = NULL;
	struct scratch s;

	scratch_init(&s);
	scratch_write(&s, "program", &ehdr, sizeof(ehdr));
	open_in(&s, "program", &subject);
	assert_int_equal(subject_digits(subject), 8);
	assert_int_equal(subject_clip(subject, 0x123456789abcdef0), 0x9abcdef0);
	subject_destroy(subject);
	scratch_deinit(&s);
}

static void test_build_id(void **state)
{
	struct subject *subject = NULL;
	struct err err = {0};

	assert_int_equal(subject_open_build_id("00000000000000000000", NULL, &err, &subject), -ENOENT);
	assert_null(subject);
	assert_non_null(strstr(err.msg, "00000000000000000000"));
}

static void test_process(void **state)
{
	uint64_t here = (uintptr_t)test_process, vdso = getauxval(AT_SYSINFO_EHDR), vaddr = 0;
	struct subject *subject = NULL;
	struct module *module;
	struct err err = {0};
	char self[PATH_MAX] = "";

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	assert_int_equal(subject_open_process((struct process_id){.pid = getpid()}, &err, &subject), 0);
	module = subject_find(subject, here, &vaddr);
	assert_non_null(module);
	assert_string_equal(module->info.path, self);
	assert_true(vaddr < here);
	assert_null(subject_find(subject, (uintptr_t)&here, &vaddr)); /* the stack */
	assert_int_equal(subject_digits(subject), 16);
	if (vdso) {
		module = subject_find(subject, vdso, &vaddr);
		assert_non_null(module);
		assert_string_equal(module->info.path, "[vdso]");
		assert_non_null(module->image); /* from the process's memory */
	}
	subject_destroy(subject);
}

static void test_process_that_is_not_there(void **state)
{
	struct subject *subject = NULL;
	struct err err = {0};

	assert_int_equal(subject_open_process((struct process_id){.pid = INT_MAX}, &err, &subject), -ESRCH);
	assert_null(subject);
	assert_true(err.msg[0] != '\0');
	subject_destroy(NULL);
}

static void test_number_used_again(void **state)
{
	struct subject *subject = NULL;
	struct err err = {0};

	assert_int_equal(subject_open_process((struct process_id){.pid = getpid(), .start_time = 1}, &err, &subject), -ESRCH);
	assert_null(subject);
	assert_non_null(strstr(err.msg, "has ended"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_what_is_no_file),
		cmocka_unit_test(test_section),
		cmocka_unit_test(test_32_bits),
		cmocka_unit_test(test_build_id),
		cmocka_unit_test(test_process),
		cmocka_unit_test(test_number_used_again),
		cmocka_unit_test(test_process_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
