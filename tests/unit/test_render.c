/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/render.h"

static void test_names(void **state)
{
	assert_true(render_is_wanted("graph.svg"));
	assert_true(render_is_wanted("/tmp/a b/.x.svg"));
	assert_false(render_is_wanted(".svg"));
	assert_false(render_is_wanted("graph.svgz"));
	assert_false(render_is_wanted("svg"));
	assert_false(render_is_wanted("-"));
	assert_false(render_is_wanted(NULL));
}

/* A program in the place of graphviz's, and a file for what it writes. */
struct place {
	char dir[32], program[48], path[64];
	FILE *in, *out;
};

static void make(struct place *p, const char *script)
{
	FILE *file;

	strcpy(p->dir, "/tmp/render.XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	snprintf(p->program, sizeof(p->program), "%s/dot", p->dir);
	file = fopen(p->program, "w");
	assert_non_null(file);
	fprintf(file, "#!/bin/sh\n%s\n", script);
	assert_int_equal(fchmod(fileno(file), 0755), 0);
	fclose(file);
	snprintf(p->path, sizeof(p->path), "/nonexistent:%s:/usr/bin:/bin", p->dir);
	setenv("PATH", p->path, 1);
	p->in = tmpfile();
	p->out = tmpfile();
	assert_true(p->in && p->out);
	fputs("digraph", p->in);
	rewind(p->in);
}

static void drop(struct place *p)
{
	unlink(p->program);
	rmdir(p->dir);
	fclose(p->in);
	fclose(p->out);
}

static void test_missing(void **state)
{
	struct err err = {0};

	setenv("PATH", "/nonexistent::/also", 1);
	assert_int_equal(render_check(&err), -ENOENT);
	assert_non_null(strstr(err.msg, "install the package graphviz"));
	unsetenv("PATH");
	assert_int_equal(render_check(&err), -ENOENT);
}

static void test_picture(void **state)
{
	struct place p;
	struct err err = {0};
	char text[32] = "";

	make(&p, "echo \"$@\"; cat");
	assert_int_equal(render_check(&err), 0);
	assert_int_equal(render_svg(fileno(p.in), fileno(p.out), &err), 0);
	rewind(p.out);
	assert_int_equal(fread(text, 1, sizeof(text) - 1, p.out), strlen("-Tsvg\ndigraph"));
	assert_string_equal(text, "-Tsvg\ndigraph");
	drop(&p);
}

static void test_failures(void **state)
{
	struct place p;
	struct err err = {0};

	make(&p, "exit 3");
	assert_int_equal(render_svg(fileno(p.in), fileno(p.out), &err), -EIO);
	assert_non_null(strstr(err.msg, "exit status 3"));
	drop(&p);
	make(&p, "kill -9 $$");
	assert_int_equal(render_svg(fileno(p.in), fileno(p.out), &err), -EIO);
	assert_non_null(strstr(err.msg, "signal 9"));
	drop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_picture),
		cmocka_unit_test(test_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
