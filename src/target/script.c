/* SPDX-License-Identifier: MIT */
#include "target/script.h"

#include <string.h>

/* Options are single letters, but for those in `words`. */
struct interpreter {
	const char *name;     /* may be followed by a version */
	const char *code;     /* behind these there is code in place of a file */
	const char *valued;   /* these take the next word, if they are the last letter of their own */
	const char *script;   /* so does this one, and that is what is run */
	const char *words[8]; /* long options that take the next word */
};

static const struct interpreter interpreters[] = {
	{.name = "python", .code = "c", .valued = "WX", .script = "m"},
	{.name = "pypy", .code = "c", .valued = "WX", .script = "m"},
	{.name = "perl", .code = "eE", .valued = "I", .script = ""},
	{.name = "ruby", .code = "e", .valued = "IrCEF", .script = ""},
	{.name = "php", .code = "rBRE", .valued = "dcz", .script = "f"},
	{.name = "node", .code = "ep", .valued = "rC", .script = "", .words = {"--require", "--import", "--loader"}},
	{.name = "nodejs", .code = "ep", .valued = "rC", .script = "", .words = {"--require", "--import", "--loader"}},
	{.name = "lua", .code = "e", .valued = "l", .script = ""},
	{.name = "sh", .code = "c", .valued = "oO", .script = ""},
	{.name = "bash", .code = "c", .valued = "oO", .script = "", .words = {"--rcfile", "--init-file"}},
	{.name = "dash", .code = "c", .valued = "o", .script = ""},
	{.name = "zsh", .code = "c", .valued = "o", .script = ""},
	{.name = "ksh", .code = "c", .valued = "o", .script = ""},
	{.name = "tclsh", .code = "", .valued = "", .script = ""},
	{.name = "guile", .code = "c", .valued = "Lle", .script = "s"},
};

/* Java has words in place of letters. */
static const char *const java_valued[] = {
	"-cp",
	"-classpath",
	"--class-path",
	"-p",
	"--module-path",
	"--upgrade-module-path",
	"--add-modules",
	"--add-opens",
	"--add-exports",
	"--add-reads",
	"--enable-native-access",
	"--source",
};
static const char *const java_script[] = {"-jar", "-m", "--module"};

static bool is_among(const char *word, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n && words[i]; i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return false;
}

#define IS_AMONG(word, words) is_among((word), (words), sizeof(words) / sizeof((words)[0]))

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "python3.11", and with a debug or free-threaded build's letter. */
static bool is_version_of(const char *program, const char *name)
{
	size_t len = strlen(name);
	const char *version = program + len;

	if (strncmp(program, name, len) != 0)
		return false;
	version += strspn(version, "0123456789.");
	return !*version || ((*version == 'd' || *version == 't') && version > program + len && !version[1]);
}

static const struct interpreter *find_interpreter(const char *program)
{
	for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++)
		if (is_version_of(program, interpreters[i].name))
			return &interpreters[i];
	return NULL;
}

bool script_has_interpreter(const char *program)
{
	return find_interpreter(program) || strcmp(program, "java") == 0;
}

/* "org.example.Main" or "module/org.example.Main": what jps shows. */
static const char *java_class(const char *name)
{
	const char *dot;

	name = base_name(name);
	dot = strrchr(name, '.');
	return dot && strcmp(dot, ".jar") != 0 && strcmp(dot, ".java") != 0 ? dot + 1 : name;
}

static const char *java_name(const char *const *args, size_t nargs)
{
	for (size_t i = 1; i < nargs; i++) {
		if (args[i][0] != '-')
			return java_class(args[i]);
		if (IS_AMONG(args[i], java_script))
			return i + 1 < nargs ? java_class(args[i + 1]) : NULL;
		if (IS_AMONG(args[i], java_valued))
			i++;
	}
	return NULL;
}

/* What a word of options means for those behind it. */
enum meaning { MEANS_NOTHING, MEANS_CODE, MEANS_VALUE, MEANS_SCRIPT };

static enum meaning meaning_of(const struct interpreter *interpreter, const char *word)
{
	if (word[1] == '-')
		return IS_AMONG(word, interpreter->words) ? MEANS_VALUE : MEANS_NOTHING;
	for (const char *letter = word + 1; *letter; letter++) {
		if (strchr(interpreter->code, *letter))
			return MEANS_CODE;
		if (strchr(interpreter->script, *letter))
			return letter[1] ? MEANS_NOTHING : MEANS_SCRIPT;
		if (strchr(interpreter->valued, *letter))
			return letter[1] ? MEANS_NOTHING : MEANS_VALUE;
	}
	return MEANS_NOTHING;
}

const char *script_name(const char *program, const char *const *args, size_t nargs)
{
	const struct interpreter *interpreter = find_interpreter(program);

	if (!interpreter)
		return strcmp(program, "java") == 0 ? java_name(args, nargs) : NULL;
	for (size_t i = 1; i < nargs; i++) {
		enum meaning meaning = MEANS_SCRIPT;

		if (args[i][0] != '-')
			return base_name(args[i]);
		if (!args[i][1])
			return NULL; /* the standard input */
		if (strcmp(args[i], "--") != 0)
			meaning = meaning_of(interpreter, args[i]);
		if (meaning == MEANS_CODE)
			return NULL;
		if (meaning == MEANS_SCRIPT)
			return i + 1 < nargs ? base_name(args[i + 1]) : NULL;
		if (meaning == MEANS_VALUE)
			i++;
	}
	return NULL;
}
