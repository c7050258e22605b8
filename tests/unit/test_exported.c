/* SPDX-License-Identifier: MIT */
/* The C library exports what is looked for; where it is, the dynamic linker knows as well. */
#include "cmocka_all.h"

#include <dlfcn.h>
#include <fcntl.h>

#include "elf/exported.h"

static struct image *open_libc(uint64_t *bias)
{
	struct image *image = NULL;
	Dl_info info;
	int fd;

	assert_true(dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &info));
	*bias = (uintptr_t)info.dli_fbase;
	fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(image_open_fd(fd, NULL, &image), 0);
	return image;
}

static void test_found(void **state)
{
	static const char *const names[] = {"gnu_get_libc_version", "gnu_get_libc_release", "getauxval", "stdout"};
	uint64_t bias;
	struct image *image = open_libc(&bias);
	Elf64_Sym sym;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_true(exported_find(image, names[i], &sym));
		if (i < 3)
			assert_int_equal(bias + sym.st_value, (uintptr_t)dlsym(RTLD_DEFAULT, names[i]));
		assert_true(sym.st_size);
	}
	image_destroy(image);
}

static void test_not_found(void **state)
{
	uint64_t bias;
	struct image *image = open_libc(&bias);
	Elf64_Sym sym;

	assert_false(exported_find(image, "_PyRuntime", &sym));
	assert_false(exported_find(image, "", &sym));
	assert_false(exported_find(image, "getauxva", &sym));
	image_destroy(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_found), cmocka_unit_test(test_not_found)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
