/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <errno.h>
#include <sys/stat.h>

#include "target/debugfile.h"
#include "target/rootfile.h"

/* a.so: with a build-id; b.so: without; each stripped, with its debug file and a debuglink to it. */
static struct scratch make_files(void)
{
	struct scratch s;

	scratch_init(&s);
	scratch_text(&s, "a.c",
		     "static __attribute__((noinline, used)) int hidden(int x) { return x * 7; }\n"
		     "int shown(int x) { return hidden(x) + 1; }\n");
	scratch_run(&s, "cc -g -shared -fPIC -Wl,--build-id=sha1 -o a-full.so a.c");
	scratch_run(&s, "cc -g -shared -fPIC -Wl,--build-id=none -o b-full.so a.c");
	for (char c = 'a'; c <= 'b'; c++)
		scratch_run(&s,
			    "objcopy --only-keep-debug %c-full.so %c.debug && strip -o %c.so %c-full.so && "
			    "objcopy --add-gnu-debuglink=%c.debug %c.so",
			    c, c, c, c, c, c);
	scratch_run(&s, "mkdir root && mv a.debug b.debug root/");
	return s;
}

static int find(const struct scratch *s, const char *file, int root_fd)
{
	struct image *image = scratch_image(s, file), *debug = NULL;
	char path[256];
	struct debugfile_query query = {.image = image, .path = path, .root_fd = root_fd};
	struct err err = {0};
	int ret;

	snprintf(path, sizeof(path), "%s/%s", s->dir, file);
	ret = debugfile_find(&query, &err, &debug);
	if (ret == 0)
		assert_non_null(image_section(debug, ".debug_info").data);
	else
		assert_true(err.code == -ret && err.msg[0]);
	image_destroy(debug);
	image_destroy(image);
	return ret;
}

static void test_debuglink_next_to_the_file(void **state)
{
	struct scratch s = make_files();

	assert_int_equal(find(&s, "a.so", -1), -ENOENT);
	assert_int_equal(find(&s, "b.so", -1), -ENOENT);
	scratch_run(&s, "cp root/*.debug .");
	assert_int_equal(find(&s, "a.so", -1), 0);
	assert_int_equal(find(&s, "b.so", -1), 0);
	scratch_deinit(&s);
}

static void test_debuglink_in_debug_directory(void **state)
{
	struct scratch s = make_files();

	scratch_run(&s, "mkdir .debug && cp root/*.debug .debug");
	assert_int_equal(find(&s, "a.so", -1), 0);
	assert_int_equal(find(&s, "b.so", -1), 0);
	scratch_deinit(&s);
}

static void test_below_the_targets_root(void **state)
{
	struct scratch s = make_files();
	int root_fd = scratch_open(&s, "root", O_PATH | O_DIRECTORY);

	scratch_run(&s, "mkdir -p root/usr/lib/debug%s && mv root/*.debug root/usr/lib/debug%s", s.dir, s.dir);
	assert_int_equal(find(&s, "a.so", root_fd), 0);
	assert_int_equal(find(&s, "b.so", root_fd), 0);
	assert_int_equal(find(&s, "b.so", -1), -ENOENT);
	close(root_fd);
	scratch_deinit(&s);
}

static void test_build_id_directory(void **state)
{
	struct scratch s = make_files();
	int root_fd = scratch_open(&s, "root", O_PATH | O_DIRECTORY);
	struct image *image = scratch_image(&s, "a.so"), *debug = NULL;
	const char *id = image_build_id(image);

	/* A link that is absolute in the target's root, as some distributions have it. */
	scratch_run(&s, "mkdir -p root/usr/lib/debug/.build-id/%.2s && mv root/a.debug root/usr/lib/debug/real", id);
	scratch_run(&s, "ln -s /usr/lib/debug/real root/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
	assert_int_equal(debugfile_find(&(struct debugfile_query){.image = image, .root_fd = root_fd}, NULL, &debug), 0);
	assert_string_equal(image_build_id(debug), id);
	image_destroy(debug);
	assert_int_equal(debugfile_find(&(struct debugfile_query){.image = image, .root_fd = -1}, NULL, &debug), -ENOENT);
	image_destroy(image);
	close(root_fd);
	scratch_deinit(&s);
}

static void test_wrong_files_are_refused(void **state)
{
	struct scratch s = make_files();

	/* The build-id differs, the CRC differs, it is no ELF file, it would block for ever. */
	scratch_run(&s, "cc -g -shared -fPIC -DOTHER -Dhidden=concealed -Wl,--build-id=sha1 -o a.debug a.c");
	assert_int_equal(find(&s, "a.so", -1), -ENOENT);
	scratch_run(&s, "cp root/b.debug . && printf x >> b.debug");
	assert_int_equal(find(&s, "b.so", -1), -ENOENT);
	scratch_run(&s, "echo text > a.debug");
	assert_int_equal(find(&s, "a.so", -1), -ENOENT);
	scratch_run(&s, "rm a.debug && mkfifo a.debug");
	assert_int_equal(find(&s, "a.so", -1), -ENOENT);
	scratch_deinit(&s);
}

static void test_link_to_itself(void **state)
{
	struct scratch s = make_files();

	/* The stripped file under the name that its own debuglink has: it would prove itself by its build-id. */
	scratch_run(&s, "cp a.so a.debug");
	assert_int_equal(find(&s, "a.debug", -1), -ENOENT);
	scratch_deinit(&s);
}

static void test_shared_debug_file(void **state)
{
	struct scratch s = make_files();
	int root_fd = scratch_open(&s, "root", O_PATH | O_DIRECTORY);
	struct image *full = scratch_image(&s, "a-full.so"), *linked, *none, *alt = NULL;
	const char *id = image_build_id(full);
	char link[64] = "/shared/common.debug";
	size_t len = strlen(link) + 1;
	struct err err = {0};

	for (size_t i = 0; i < strlen(id); i += 2, len++)
		assert_int_equal(sscanf(id + i, "%2hhx", (unsigned char *)&link[len]), 1);
	scratch_write(&s, "link", link, len);
	scratch_run(&s, "objcopy --add-section .gnu_debugaltlink=link b-full.so linked.so");
	linked = scratch_image(&s, "linked.so");
	none = scratch_image(&s, "b-full.so");

	assert_int_equal(debugfile_open_alt(none, NULL, root_fd, &err, &alt), -ENOENT);
	assert_int_equal(debugfile_open_alt(linked, NULL, root_fd, &err, &alt), -ENOENT);
	assert_non_null(strstr(err.msg, "/shared/common.debug"));
	scratch_run(&s, "mkdir root/shared && cp root/b.debug root/shared/common.debug"); /* another build-id: none */
	assert_int_equal(debugfile_open_alt(linked, NULL, root_fd, &err, &alt), -ENOENT);
	scratch_run(&s, "cp root/a.debug root/shared/common.debug");
	assert_int_equal(debugfile_open_alt(linked, NULL, root_fd, &err, &alt), 0);
	image_destroy(alt);
	image_destroy(none);
	image_destroy(linked);
	image_destroy(full);
	close(root_fd);
	scratch_deinit(&s);
}

/* Where the DWARF says, below the target's root or our own; else beside the program: builds get moved. */
static void test_split_files(void **state)
{
	struct scratch s = make_files();
	int root_fd = scratch_open(&s, "root", O_PATH | O_DIRECTORY);
	char dir[128], path[160], absolute[160];
	struct image *found = NULL;

	snprintf(dir, sizeof(dir), "%s/obj", s.dir);
	snprintf(path, sizeof(path), "%s/program", s.dir);
	snprintf(absolute, sizeof(absolute), "%s/obj/sub/x.dwo", s.dir);
	assert_int_equal(debugfile_open_dwo(dir, "sub/x.dwo", path, -1, &found), -ENOENT);
	assert_int_equal(debugfile_open_dwo(NULL, "sub/x.dwo", NULL, -1, &found), -ENOENT);
	scratch_run(&s, "mkdir -p obj/sub && cp a-full.so obj/sub/x.dwo");
	assert_int_equal(debugfile_open_dwo(dir, "sub/x.dwo", NULL, -1, &found), 0);
	assert_string_equal(image_path(found), absolute);
	image_destroy(found);
	assert_int_equal(debugfile_open_dwo("relative", absolute, NULL, root_fd, &found), 0);
	image_destroy(found);
	/* The target's own comes first. */
	scratch_run(&s, "mkdir -p root%s/obj/sub && cp b-full.so root%s/obj/sub/x.dwo", s.dir, s.dir);
	assert_int_equal(debugfile_open_dwo(dir, "sub/x.dwo", NULL, root_fd, &found), 0);
	assert_null(image_build_id(found));
	image_destroy(found);
	/* Moved. */
	scratch_run(&s, "rm -r obj && mkdir sub && cp a-full.so sub/x.dwo");
	assert_int_equal(debugfile_open_dwo(dir, "sub/x.dwo", path, -1, &found), 0);
	image_destroy(found);
	scratch_run(&s, "mv sub/x.dwo .");
	assert_int_equal(debugfile_open_dwo(dir, "sub/x.dwo", path, -1, &found), 0);
	image_destroy(found);
	scratch_run(&s, "echo no ELF file > x.dwo");
	assert_true(debugfile_open_dwo(dir, "sub/x.dwo", path, -1, &found) < 0);

	assert_int_equal(debugfile_open_dwp(path, -1, &found), -ENOENT);
	scratch_run(&s, "cp a-full.so program.dwp");
	assert_int_equal(debugfile_open_dwp(path, -1, &found), 0);
	image_destroy(found);
	close(root_fd);
	scratch_deinit(&s);
}

static void test_links_stay_in_the_root(void **state)
{
	struct scratch s;
	int root_fd, fd;

	scratch_init(&s);
	scratch_run(&s,
		    "mkdir -p root/sub && echo secret > outside && ln -s ../../outside root/sub/up && "
		    "ln -s %s/outside root/absolute && echo inside > root/file && ln -s /file root/link && "
		    "ln -s /proc/self/exe root/magic",
		    s.dir);
	root_fd = scratch_open(&s, "root", O_PATH | O_DIRECTORY);
	assert_int_equal(rootfile_open(root_fd, "/sub/up", NULL), -ENOENT);
	assert_int_equal(rootfile_open(root_fd, "/absolute", NULL), -ENOENT);
	assert_int_equal(rootfile_open(root_fd, "/magic", NULL), -ENOENT);
	assert_int_equal(rootfile_open(root_fd, "/sub", NULL), -EINVAL);
	fd = rootfile_open(root_fd, "/link", NULL);
	assert_true(fd >= 0);
	close(fd);
	close(root_fd);
	scratch_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_debuglink_next_to_the_file), cmocka_unit_test(test_debuglink_in_debug_directory),
		cmocka_unit_test(test_below_the_targets_root),     cmocka_unit_test(test_build_id_directory),
		cmocka_unit_test(test_wrong_files_are_refused),    cmocka_unit_test(test_link_to_itself),
		cmocka_unit_test(test_shared_debug_file),          cmocka_unit_test(test_links_stay_in_the_root),
		cmocka_unit_test(test_split_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
