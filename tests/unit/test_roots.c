/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "target/roots.h"

static int open_dir(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void test_own(void **state)
{
	struct roots *roots = roots_create();
	_cleanup_close_ int fd = open_dir("/");

	assert_non_null(roots);
	assert_null(roots_take(roots, fd));
	assert_null(roots_take(roots, -1));
	assert_int_equal(root_fd(NULL), -1);
	assert_false(roots_have(roots, fd));
	roots_give(roots, NULL);
	roots_destroy(roots);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* Open as long as somebody has it, whatever becomes of the descriptor that it was found by. */
static void test_shared(void **state)
{
	struct roots *roots = roots_create();
	int fd = open_dir("/dev"), again = open_dir("/dev"), other = open_dir("/proc"), held;
	struct root *root, *same, *another;

	assert_non_null(roots);
	root = roots_take(roots, fd);
	same = roots_take(roots, again);
	another = roots_take(roots, other);
	close(fd);
	close(again);
	close(other);
	assert_non_null(root);
	assert_ptr_equal(root, same);
	assert_true(another && another != root);
	held = root_fd(root);
	assert_true(is_open(held) && roots_have(roots, held) && roots_have(roots, root_fd(another)));
	assert_false(roots_have(roots, 0));
	roots_give(roots, root);
	assert_true(is_open(held));
	roots_give(roots, same);
	assert_false(is_open(held) || roots_have(roots, held));
	roots_give(roots, another);
	roots_destroy(roots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
