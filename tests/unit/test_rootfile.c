/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "target/rootfile.h"

struct fixture {
	struct scratch scratch;
	int root_fd;
};

/*
 * "secret" is outside of the root and, with other contents, at the place inside where the same path ends when it
 * cannot leave.
 */
static struct fixture start(void)
{
	struct fixture f;

	scratch_init(&f.scratch);
	scratch_run(&f.scratch, "mkdir -p root/sub/deep root/etc && printf outside > secret && "
				"printf inside > root/secret && printf inside > root/sub/file");
	f.root_fd = scratch_open(&f.scratch, "root", O_PATH | O_DIRECTORY);
	assert_true(f.root_fd >= 0);
	return f;
}

static void finish(struct fixture *f)
{
	close(f->root_fd);
	scratch_deinit(&f->scratch);
}

static void expect_text(int fd, const char *want)
{
	char text[32] = "";

	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text) - 1), strlen(want));
	assert_string_equal(text, want);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

static void test_paths(void **state)
{
	struct fixture f = start();

	expect_text(rootfile_open(f.root_fd, "/sub/file", NULL), "inside");
	expect_text(rootfile_open(f.root_fd, "sub/file", NULL), "inside");
	expect_text(rootfile_open(f.root_fd, "//sub/./file", NULL), "inside");
	assert_int_equal(rootfile_open(f.root_fd, "/nothing", NULL), -ENOENT);
	assert_int_equal(rootfile_open(f.root_fd, "/sub/file/x", NULL), -ENOTDIR);
	assert_int_equal(rootfile_open(f.root_fd, "", NULL), -ENOENT);
	finish(&f);
}

/* There is nothing above the root: whoever goes up stays in it. */
static void test_no_way_up(void **state)
{
	struct fixture f = start();

	scratch_run(&f.scratch,
		    "ln -s ../secret root/up && ln -s ../../../../../secret root/sub/deep/far-up && "
		    "ln -s %s/secret root/whole && ln -s /secret root/sub/absolute && ln -s .. root/parent && "
		    "ln -s up root/twice && ln -s loop root/loop",
		    f.scratch.dir);
	expect_text(rootfile_open(f.root_fd, "../secret", NULL), "inside");
	expect_text(rootfile_open(f.root_fd, "/sub/../../../secret", NULL), "inside");
	expect_text(rootfile_open(f.root_fd, "/up", NULL), "inside");
	expect_text(rootfile_open(f.root_fd, "/sub/deep/far-up", NULL), "inside");
	expect_text(rootfile_open(f.root_fd, "/sub/absolute", NULL), "inside");
	expect_text(rootfile_open(f.root_fd, "/parent/secret", NULL), "inside");
	expect_text(rootfile_open(f.root_fd, "/twice", NULL), "inside");
	assert_int_equal(rootfile_open(f.root_fd, "/whole", NULL), -ENOENT);
	assert_int_equal(rootfile_open(f.root_fd, "/loop", NULL), -ELOOP);
	/* The same way is open where there is no root to stay in. */
	scratch_run(&f.scratch, "ln -s secret link");
	{
		char path[128];

		snprintf(path, sizeof(path), "%s/link", f.scratch.dir);
		expect_text(rootfile_open(-1, path, NULL), "outside");
	}
	finish(&f);
}

/* The kernel's own links lead anywhere. */
static void test_magic_links(void **state)
{
	int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	assert_true(root_fd >= 0);
	assert_int_equal(rootfile_open(root_fd, "/proc/self/exe", NULL), -ELOOP);
	assert_int_equal(rootfile_open(root_fd, "/proc/self/root/etc/passwd", NULL), -ELOOP);
	fd = rootfile_open(-1, "/proc/self/exe", NULL);
	assert_true(fd >= 0);
	close(fd);
	close(root_fd);
}

static void make_socket(const struct scratch *s)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/root/socket", s->dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

/* None of these is opened, so none can block, and no device notices. */
static void test_only_regular_files(void **state)
{
	struct fixture f = start();

	make_socket(&f.scratch);
	scratch_run(&f.scratch, "mkfifo root/fifo && ln -s fifo root/link-to-fifo");
	assert_int_equal(rootfile_open(f.root_fd, "/fifo", NULL), -EINVAL);
	assert_int_equal(rootfile_open(f.root_fd, "/link-to-fifo", NULL), -EINVAL);
	assert_int_equal(rootfile_open(f.root_fd, "/socket", NULL), -EINVAL);
	assert_int_equal(rootfile_open(f.root_fd, "/sub", NULL), -EINVAL);
	assert_int_equal(rootfile_open(f.root_fd, "/", NULL), -EINVAL);
	assert_int_equal(rootfile_open(-1, "/dev/null", NULL), -EINVAL);
	assert_int_equal(rootfile_open(-1, "/", NULL), -EINVAL);
	assert_int_equal(rootfile_open(-1, "/nonexistent/file", NULL), -ENOENT);
	finish(&f);
}

static void test_reopen(void **state)
{
	struct fixture f = start();
	int path_fd = scratch_open(&f.scratch, "secret", O_PATH), dir_fd = scratch_open(&f.scratch, "root", O_PATH);

	expect_text(rootfile_reopen(path_fd, NULL), "outside");
	expect_text(rootfile_reopen(path_fd, NULL), "outside"); /* it stays open, and has no position */
	scratch_run(&f.scratch, "rm secret");
	expect_text(rootfile_reopen(path_fd, NULL), "outside");
	assert_int_equal(rootfile_reopen(dir_fd, NULL), -EINVAL);
	assert_int_equal(rootfile_reopen(-1, NULL), -EBADF);
	close(path_fd);
	close(dir_fd);
	finish(&f);
}

static void test_last_name_is_a_link(void **state)
{
	struct fixture f = start();
	char path[128];

	scratch_run(&f.scratch, "ln -s /sub root/way && ln -s file root/sub/link && ln -s nothing root/dangling");
	expect_text(rootfile_open_itself(f.root_fd, "/sub/file", NULL), "inside");
	expect_text(rootfile_open_itself(f.root_fd, "/way/file", NULL), "inside");
	assert_int_equal(rootfile_open_itself(f.root_fd, "/sub/link", NULL), -ELOOP);
	assert_int_equal(rootfile_open_itself(f.root_fd, "/dangling", NULL), -ELOOP);
	assert_int_equal(rootfile_open_itself(f.root_fd, "/nothing", NULL), -ENOENT);
	assert_int_equal(rootfile_open_itself(f.root_fd, "/sub", NULL), -EINVAL);
	snprintf(path, sizeof(path), "%s/root/sub/link", f.scratch.dir);
	assert_int_equal(rootfile_open_itself(-1, path, NULL), -ELOOP);
	snprintf(path, sizeof(path), "%s/root/sub/file", f.scratch.dir);
	expect_text(rootfile_open_itself(-1, path, NULL), "inside");
	finish(&f);
}

static void test_file_that_may_not_be_read(void **state)
{
	struct fixture f;

	if (geteuid() == 0) {
		print_message("skipped: root may read everything\n");
		skip();
	}
	f = start();
	scratch_run(&f.scratch, "chmod 0 root/secret");
	assert_int_equal(rootfile_open(f.root_fd, "/secret", NULL), -EACCES);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),       cmocka_unit_test(test_no_way_up),
		cmocka_unit_test(test_magic_links), cmocka_unit_test(test_only_regular_files),
		cmocka_unit_test(test_last_name_is_a_link),
		cmocka_unit_test(test_reopen),      cmocka_unit_test(test_file_that_may_not_be_read),
	};

	return cmocka_run_group_tests_name("rootfile", tests, NULL, NULL);
}
