/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "target/script.h"

static const char *name_of(const char *program, const char *const *args)
{
	size_t n = 0;

	while (args[n])
		n++;
	return script_name(program, args, n);
}

#define NAME(program, ...) name_of((program), (const char *const[]){"argv0", __VA_ARGS__, NULL})

static void test_interpreters(void **state)
{
	static const char *const are[] = {"python", "python3", "python3.11", "python3.13t", "python3d", "bash", "sh", "perl", "java", "node"};
	static const char *const are_not[] = {"", "nginx", "shutdown", "nodeexporter", "node-exporter", "javac", "pythond", "python3.11-config"};

	for (size_t i = 0; i < sizeof(are) / sizeof(are[0]); i++)
		assert_true(script_has_interpreter(are[i]));
	for (size_t i = 0; i < sizeof(are_not) / sizeof(are_not[0]); i++)
		assert_false(script_has_interpreter(are_not[i]));
}

static void test_scripts(void **state)
{
	assert_string_equal(NAME("python3.11", "/srv/app/manage.py", "runserver"), "manage.py");
	assert_string_equal(NAME("python3", "-u", "-X", "dev", "-Wignore", "manage.py"), "manage.py");
	assert_string_equal(NAME("python3", "-m", "http.server", "80"), "http.server");
	assert_string_equal(NAME("bash", "-x", "-o", "pipefail", "./backup.sh"), "backup.sh");
	assert_string_equal(NAME("bash", "--rcfile", "rc", "backup.sh"), "backup.sh");
	assert_string_equal(NAME("node", "--require", "./hook.js", "--max-old-space-size=64", "server.js"), "server.js");
	assert_string_equal(NAME("node", "--", "server.js"), "server.js");
	assert_string_equal(NAME("php8.2", "-f", "/srv/worker.php"), "worker.php");
	assert_string_equal(NAME("perl", "-w", "spamd"), "spamd");
}

static void test_java(void **state)
{
	assert_string_equal(NAME("java", "-Xmx1g", "-jar", "/opt/app.jar", "serve"), "app.jar");
	assert_string_equal(NAME("java", "-cp", "a:b", "-Dx=y", "org.example.Main", "x"), "Main");
	assert_string_equal(NAME("java", "-m", "app/org.example.Main"), "Main");
	assert_string_equal(NAME("java", "Hello.java"), "Hello.java");
	assert_null(NAME("java", "-version"));
	assert_null(NAME("java", "-jar"));
}

static void test_no_script(void **state)
{
	static const char *const nothing[] = {NULL};

	assert_null(NAME("python3", "-c", "print(1)", "manage.py"));
	assert_null(NAME("bash", "-lc", "sleep 1"));
	assert_null(NAME("python3", "-"));
	assert_null(NAME("python3", "-W"));
	assert_null(NAME("python3", "-m"));
	assert_null(NAME("bash", "-i"));
	assert_null(NAME("grep", "nginx"));
	assert_null(script_name("python3", nothing, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interpreters),
		cmocka_unit_test(test_scripts),
		cmocka_unit_test(test_java),
		cmocka_unit_test(test_no_script),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
