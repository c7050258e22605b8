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

/* Values of options: in the same word, in the next one, behind "="; letters that share a word. */
static void test_values(void **state)
{
	assert_string_equal(NAME("python3", "-mhttp.server", "80"), "http.server");
	assert_string_equal(NAME("python3", "-Bum", "http.server", "80"), "http.server");
	assert_string_equal(NAME("python3", "-uXdev", "--check-hash-based-pycs", "never", "manage.py"), "manage.py");
	assert_string_equal(NAME("perl", "-MData::Dumper", "-Mre=debug", "-wT", "-I", "lib", "-Ilib", "spamd"), "spamd");
	assert_string_equal(NAME("perl", "-d:Devel::Cover", "-i.orig", "-Fe", "-CSDE", "spamd"), "spamd");
	assert_string_equal(NAME("ruby", "-rbundler/setup", "-r", "set", "-W:no-experimental", "-Eutf-8:", "puma"), "puma");
	assert_string_equal(NAME("ruby", "--disable", "gems", "--enable=yjit", "-S", "/usr/bin/rails", "s"), "rails");
	assert_string_equal(NAME("php", "-derror_log=e", "-d", "x=y", "--define", "x=r", "worker.php"), "worker.php");
	assert_string_equal(NAME("php", "-S", "localhost:80", "-t", "www", "router.php"), "router.php");
	assert_string_equal(NAME("php", "--file=/srv/worker.php", "x"), "worker.php");
	assert_string_equal(NAME("node", "-r", "ts-node/register", "server.js"), "server.js");
	assert_string_equal(NAME("node", "--inspect", "--experimental-repl-await", "server.js", "x"), "server.js");
	assert_string_equal(NAME("node", "--title", "x", "--env-file=.env", "server.js"), "server.js");
	assert_string_equal(NAME("lua5.4", "-e", "x = 1", "-lposix", "main.lua"), "main.lua");
	assert_string_equal(NAME("bash", "-oe", "pipefail", "+x", "+o", "posix", "backup.sh"), "backup.sh");
	assert_string_equal(NAME("zsh", "-opipefail", "--emulate", "sh", "backup.sh"), "backup.sh");
	assert_string_equal(NAME("tclsh8.6", "-encoding", "utf-8", "main.tcl"), "main.tcl");
	assert_string_equal(NAME("guile", "-L", "lib", "-e", "main", "-s", "main.scm"), "main.scm");
	assert_string_equal(NAME("java", "--module-path=mods", "--module=app/org.example.Main"), "Main");
	assert_string_equal(NAME("java", "@class.path", "--patch-module", "a=b", "org.example.Main"), "Main");
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
	assert_null(NAME("bash", "-s", "--", "install"));
	assert_null(NAME("bash", "-oc", "pipefail", "sleep 1"));
	assert_null(NAME("node", "--eval", "run()", "server.js"));
	assert_null(NAME("node", "--eval=run()", "server.js"));
	assert_null(NAME("node", "-pe", "run()"));
	assert_null(NAME("perl", "-de", "0"));
	assert_null(NAME("perl", "-0777ne", "print", "text"));
	assert_null(NAME("perl", "-MData::Dumper", "-erun()", "text"));
	assert_null(NAME("ruby", "-rset", "-ne", "print", "text"));
	assert_null(NAME("php", "--run", "run();"));
	assert_null(NAME("grep", "nginx"));
	assert_null(script_name("python3", nothing, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interpreters),
		cmocka_unit_test(test_scripts),
		cmocka_unit_test(test_java),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_no_script),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
