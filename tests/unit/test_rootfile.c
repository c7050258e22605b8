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

	expect_text(rootfile_open(f.root_fd, "/sub/file"), "inside");
	expect_text(rootfile_open(f.root_fd, "sub/file"), "inside");
	expect_text(rootfile_open(f.root_fd, "//sub/./file"), "inside");
	assert_int_equal(rootfile_open(f.root_fd, "/nothing"), -ENOENT);
	assert_int_equal(rootfile_open(f.root_fd, "/sub/file/x"), -ENOTDIR);
	assert_int_equal(rootfile_open(f.root_fd, ""), -ENOENT);
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
	expect_text(rootfile_open(f.root_fd, "../secret"), "inside");
	expect_text(rootfile_open(f.root_fd, "/sub/../../../secret"), "inside");
	expect_text(rootfile_open(f.root_fd, "/up"), "inside");
	expect_text(rootfile_open(f.root_fd, "/sub/deep/far-up"), "inside");
	expect_text(rootfile_open(f.root_fd, "/sub/absolute"), "inside");
	expect_text(rootfile_open(f.root_fd, "/parent/secret"), "inside");
	expect_text(rootfile_open(f.root_fd, "/twice"), "inside");
	assert_int_equal(rootfile_open(f.root_fd, "/whole"), -ENOENT);
	assert_int_equal(rootfile_open(f.root_fd, "/loop"), -ELOOP);
	/* The same way is open where there is no root to stay in. */
	scratch_run(&f.scratch, "ln -s secret link");
	{
		char path[128];

		snprintf(path, sizeof(path), "%s/link", f.scratch.dir);
		expect_text(rootfile_open(-1, path), "outside");
	}
	finish(&f);
}

/* The kernel's own links lead anywhere. */
static void test_magic_links(void **state)
{
	int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	assert_true(root_fd >= 0);
	assert_int_equal(rootfile_open(root_fd, "/proc/self/exe"), -ELOOP);
	assert_int_equal(rootfile_open(root_fd, "/proc/self/root/etc/passwd"), -ELOOP);
	fd = rootfile_open(-1, "/proc/self/exe");
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
	assert_int_equal(rootfile_open(f.root_fd, "/fifo"), -EINVAL);
	assert_int_equal(rootfile_open(f.root_fd, "/link-to-fifo"), -EINVAL);
	assert_int_equal(rootfile_open(f.root_fd, "/socket"), -EINVAL);
	assert_int_equal(rootfile_open(f.root_fd, "/sub"), -EINVAL);
	assert_int_equal(rootfile_open(f.root_fd, "/"), -EINVAL);
	assert_int_equal(rootfile_open(-1, "/dev/null"), -EINVAL);
	assert_int_equal(rootfile_open(-1, "/"), -EINVAL);
	assert_int_equal(rootfile_open(-1, "/nonexistent/file"), -ENOENT);
	finish(&f);
}

static void test_reopen(void **state)
{
	struct fixture f = start();
	int path_fd = scratch_open(&f.scratch, "secret", O_PATH), dir_fd = scratch_open(&f.scratch, "root", O_PATH);

	expect_text(rootfile_reopen(path_fd), "outside");
	expect_text(rootfile_reopen(path_fd), "outside"); /* it stays open, and has no position */
	scratch_run(&f.scratch, "rm secret");
	expect_text(rootfile_reopen(path_fd), "outside");
	assert_int_equal(rootfile_reopen(dir_fd), -EINVAL);
	assert_int_equal(rootfile_reopen(-1), -EBADF);
	close(path_fd);
	close(dir_fd);
	finish(&f);
}

static void test_last_name_is_a_link(void **state)
{
	struct fixture f = start();
	char path[128];

	scratch_run(&f.scratch, "ln -s /sub root/way && ln -s file root/sub/link && ln -s nothing root/dangling");
	expect_text(rootfile_open_itself(f.root_fd, "/sub/file"), "inside");
	expect_text(rootfile_open_itself(f.root_fd, "/way/file"), "inside");
	assert_int_equal(rootfile_open_itself(f.root_fd, "/sub/link"), -ELOOP);
	assert_int_equal(rootfile_open_itself(f.root_fd, "/dangling"), -ELOOP);
	assert_int_equal(rootfile_open_itself(f.root_fd, "/nothing"), -ENOENT);
	assert_int_equal(rootfile_open_itself(f.root_fd, "/sub"), -EINVAL);
	snprintf(path, sizeof(path), "%s/root/sub/link", f.scratch.dir);
	assert_int_equal(rootfile_open_itself(-1, path), -ELOOP);
	snprintf(path, sizeof(path), "%s/root/sub/file", f.scratch.dir);
	expect_text(rootfile_open_itself(-1, path), "inside");
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
	assert_int_equal(rootfile_open(f.root_fd, "/secret"), -EACCES);
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
