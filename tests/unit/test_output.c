/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <errno.h>
#include <sys/stat.h>

#include "cmd/output.h"

struct fixture {
	struct scratch scratch;
	char path[128];
	mode_t umask;
};

static struct fixture start(void)
{
	struct fixture f;

	scratch_init(&f.scratch);
	snprintf(f.path, sizeof(f.path), "%s/file", f.scratch.dir);
	f.umask = umask(022);
	return f;
}

static void finish(struct fixture *f)
{
	umask(f->umask);
	scratch_deinit(&f->scratch);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static void expect_text(const struct fixture *f, const char *want)
{
	size_t len;
	char *text = scratch_read(&f->scratch, "file", &len);

	text[len] = '\0';
	assert_string_equal(text, want);
	free(text);
}

/* Writes "new"; what was there goes. */
static void write_new(const char *path, enum output_kind kind)
{
	struct output output;

	assert_int_equal(output_open(&output, path, kind, NULL), 0);
	assert_int_equal(output_empty(&output, NULL), 0);
	assert_true(fputs("new", output.file) >= 0);
	assert_int_equal(output_close(&output, NULL), 0);
	assert_null(output.file);
}

static void refuse(const char *path, enum output_kind kind, int code, const char *words)
{
	struct output output;
	struct err err = {0};

	assert_int_equal(output_open(&output, path, kind, &err), -code);
	assert_null(output.file);
	if (!strstr(err.msg, words) || !strstr(err.msg, path))
		fail_msg("no '%s' in '%s'", words, err.msg);
}

static void test_new_file(void **state)
{
	struct fixture f = start();

	write_new(f.path, OUTPUT_REPORT);
	expect_text(&f, "new");
	assert_int_equal(mode_of(f.path), geteuid() == 0 ? 0600 : 0644);
	unlink(f.path);
	write_new(f.path, OUTPUT_SNAPSHOT);
	assert_int_equal(mode_of(f.path), 0600);
	finish(&f);
}

static void test_own_file(void **state)
{
	struct fixture f = start();
	struct output output;

	scratch_text(&f.scratch, "file", "older and longer");
	assert_int_equal(output_open(&output, f.path, OUTPUT_REPORT, NULL), 0);
	expect_text(&f, "older and longer"); /* until there is something to write */
	assert_int_equal(output_close(&output, NULL), 0);
	chmod(f.path, 0644);
	write_new(f.path, OUTPUT_REPORT);
	expect_text(&f, "new");
	assert_int_equal(mode_of(f.path), 0644); /* as somebody wanted it */
	write_new(f.path, OUTPUT_SNAPSHOT);
	assert_int_equal(mode_of(f.path), 0600);
	finish(&f);
}

static void test_links(void **state)
{
	struct fixture f = start();
	char link[160];

	scratch_text(&f.scratch, "file", "old");
	scratch_run(&f.scratch, "ln -s file link && ln -s nothing dangling && ln file hard");
	snprintf(link, sizeof(link), "%s/link", f.scratch.dir);
	refuse(link, OUTPUT_REPORT, ELOOP, "symbolic link");
	refuse(link, OUTPUT_SNAPSHOT, ELOOP, "symbolic link");
	snprintf(link, sizeof(link), "%s/dangling", f.scratch.dir);
	refuse(link, OUTPUT_REPORT, ELOOP, "symbolic link");
	refuse(f.path, OUTPUT_REPORT, EPERM, "2 names");
	scratch_run(&f.scratch, "test ! -e nothing");
	expect_text(&f, "old");
	finish(&f);
}

static void test_somebody_elses(void **state)
{
	struct fixture f;

	if (geteuid() != 0) {
		print_message("skipped: only root can give files away\n");
		skip();
	}
	f = start();
	scratch_text(&f.scratch, "file", "old");
	assert_int_equal(chown(f.path, 54321, 0), 0);
	refuse(f.path, OUTPUT_REPORT, EPERM, "another user (uid 54321)");
	refuse(f.path, OUTPUT_SNAPSHOT, EPERM, "another user (uid 54321)");
	expect_text(&f, "old");
	finish(&f);
}

/* What is no file is opened as it is, and so are names of open files, whatever they are links to. */
static void test_no_files(void **state)
{
	struct fixture f = start();
	char path[160], text[8] = "";
	int fifo, fd;

	write_new("/dev/null", OUTPUT_REPORT);
	scratch_run(&f.scratch, "mkfifo fifo");
	snprintf(path, sizeof(path), "%s/fifo", f.scratch.dir);
	fifo = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	write_new(path, OUTPUT_SNAPSHOT);
	assert_int_equal(read(fifo, text, sizeof(text)), 3);
	assert_string_equal(text, "new");
	close(fifo);
	scratch_text(&f.scratch, "file", "old");
	scratch_run(&f.scratch, "ln file hard");
	fd = scratch_open(&f.scratch, "file", O_WRONLY);
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	write_new(path, OUTPUT_REPORT);
	expect_text(&f, "new");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	write_new(path, OUTPUT_REPORT);
	close(fd);
	refuse(f.scratch.dir, OUTPUT_REPORT, EISDIR, "directory");
	refuse("/no/such/directory/file", OUTPUT_REPORT, ENOENT, "No such file");
	finish(&f);
}

static void test_standard_output(void **state)
{
	struct output output;

	assert_int_equal(output_open(&output, "-", OUTPUT_REPORT, NULL), 0);
	assert_ptr_equal(output.file, stdout);
	assert_int_equal(output_empty(&output, NULL), 0);
	assert_int_equal(output_close(&output, NULL), 0);
	assert_int_equal(output_open(&output, NULL, OUTPUT_REPORT, NULL), 0);
	output_withdraw(&output);
	assert_true(fputs("", stdout) >= 0);
}

/* Also what is in the stream only. */
static void test_withdraw(void **state)
{
	struct fixture f = start();
	struct output output;

	for (int flushed = 0; flushed < 2; flushed++) {
		assert_int_equal(output_open(&output, f.path, OUTPUT_SNAPSHOT, NULL), 0);
		assert_true(fputs("half", output.file) >= 0);
		if (flushed)
			fflush(output.file);
		output_withdraw(&output);
		assert_int_equal(access(f.path, F_OK), -1);
	}
	scratch_text(&f.scratch, "file", "old");
	assert_int_equal(output_open(&output, f.path, OUTPUT_SNAPSHOT, NULL), 0);
	assert_true(fputs("half", output.file) >= 0);
	output_withdraw(&output);
	output_withdraw(&output);
	expect_text(&f, "");
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_file), cmocka_unit_test(test_own_file),
		cmocka_unit_test(test_links),	 cmocka_unit_test(test_somebody_elses),
		cmocka_unit_test(test_no_files), cmocka_unit_test(test_standard_output),
		cmocka_unit_test(test_withdraw),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
