/* SPDX-License-Identifier: MIT */
#include "target/script.h"

#include <string.h>

/* Letters may share a word ("-Wu"); words are options by themselves, a value may follow "=". */
struct interpreter {
	const char *name;     /* may be followed by a version */
	const char *no_file;  /* letters: what is run is the value, or comes from the standard input */
	const char *script;   /* their value is what is run: the rest of the word, else the next one */
	const char *valued;   /* their value is likewise */
	const char *attached; /* their value is the rest of the word, or nothing */
	const char *detached; /* their value is the next word, though letters may follow */
	const char *const *no_file_words;
	const char *const *script_words;
	const char *const *valued_words;
	bool plus;    /* options may begin with '+' */
	bool classes; /* what is run is called as Java calls classes; '@' begins a file of options */
};

#define WORDS (const char *const[])

/* All that `node --help` shows with a value. */
static const char *const node_valued[] = {
	"-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "--env-file",
	"--env-file-if-exists", "--title", "--input-type", "--experimental-default-type", "--debug-port",
	"--inspect-port", "--inspect-publish-uid", "--watch-path", "--allow-fs-read", "--allow-fs-write",
	"--build-snapshot-config", "--cpu-prof-dir", "--cpu-prof-interval", "--cpu-prof-name",
	"--heap-prof-dir", "--heap-prof-interval", "--heap-prof-name", "--heapsnapshot-near-heap-limit",
	"--heapsnapshot-signal", "--diagnostic-dir", "--disable-proto", "--disable-warning",
	"--dns-result-order", "--experimental-policy", "--policy-integrity", "--experimental-sea-config",
	"--icu-data-dir", "--max-http-header-size", "--network-family-autoselection-attempt-timeout",
	"--openssl-config", "--redirect-warnings", "--report-dir", "--report-directory", "--report-filename",
	"--report-signal", "--secure-heap", "--secure-heap-min", "--snapshot-blob", "--test-concurrency",
	"--test-name-pattern", "--test-reporter", "--test-reporter-destination", "--test-shard",
	"--test-timeout", "--tls-cipher-list", "--tls-keylog", "--trace-event-categories",
	"--trace-event-file-pattern", "--trace-require-module", "--unhandled-rejections", "--use-largepages",
	"--v8-pool-size", NULL
};

static const char *const node_code[] = {"-e", "--eval", "-p", "--print", "-pe", NULL};

static const struct interpreter interpreters[] = {
	{.name = "python",
	 .no_file = "c",
	 .script = "m",
	 .valued = "WX",
	 .valued_words = WORDS{"--check-hash-based-pycs", NULL}},
	{.name = "pypy", .no_file = "c", .script = "m", .valued = "WX", .valued_words = WORDS{"--jit", NULL}},
	/* ':' and '=' as in "-d:Module", which "-de CODE" is not */
	{.name = "perl", .no_file = "eE", .valued = "I", .attached = "CDFMVimx:="},
	{.name = "ruby",
	 .no_file = "e",
	 .valued = "CEIXr",
	 .attached = "FKTWix",
	 .valued_words = WORDS{"--enable", "--disable", "--encoding", "--external-encoding", "--internal-encoding",
			       "--dump", "--parser", "--backtrace-limit", "--crash-report", NULL}},
	{.name = "php",
	 .no_file = "rR",
	 .script = "fF",
	 .valued = "BEScdtz",
	 .no_file_words = WORDS{"--run", "--process-code", NULL},
	 .script_words = WORDS{"--file", "--process-file", NULL},
	 .valued_words = WORDS{"--php-ini", "--define", "--process-begin", "--process-end", "--server", "--docroot",
			       "--zend-extension", NULL}},
	{.name = "node", .no_file_words = node_code, .valued_words = node_valued},
	{.name = "nodejs", .no_file_words = node_code, .valued_words = node_valued},
	{.name = "lua", .valued = "el"}, /* a script may follow the code */
	{.name = "sh", .no_file = "cs", .detached = "oO", .plus = true},
	{.name = "bash",
	 .no_file = "cs",
	 .detached = "oO",
	 .valued_words = WORDS{"--rcfile", "--init-file", NULL},
	 .plus = true},
	{.name = "dash", .no_file = "cs", .detached = "o", .plus = true},
	{.name = "zsh", .no_file = "cs", .valued = "o", .valued_words = WORDS{"--emulate", NULL}, .plus = true},
	{.name = "ksh", .no_file = "cs", .valued = "o", .plus = true},
	{.name = "tclsh", .valued_words = WORDS{"-encoding", NULL}},
	{.name = "guile",
	 .no_file_words = WORDS{"-c", NULL},
	 .script_words = WORDS{"-s", NULL},
	 .valued_words = WORDS{"-L", "-C", "-x", "-l", "-e", NULL}},
	{.name = "java",
	 .script_words = WORDS{"-jar", "-m", "--module", NULL},
	 .valued_words = WORDS{"-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path",
			       "--add-modules", "--limit-modules", "--add-opens", "--add-exports", "--add-reads",
			       "--patch-module", "--enable-native-access", "--source", NULL},
	 .classes = true},
};

static bool has_letter(const char *letters, char letter)
{
	return letters && strchr(letters, letter);
}

/* Its value behind "=", if it has one there, goes to *value. */
static bool is_among(const char *option, const char *const *words, const char **value)
{
	size_t len = strcspn(option, "=");

	for (size_t i = 0; words && words[i]; i++)
		if (strlen(words[i]) == len && strncmp(option, words[i], len) == 0) {
			*value = option[len] ? option + len + 1 : NULL;
			return true;
		}
	return false;
}

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
	return find_interpreter(program) != NULL;
}

/* "org.example.Main" or "module/org.example.Main": what jps shows. */
static const char *class_name(const char *name)
{
	const char *dot;

	name = base_name(name);
	dot = strrchr(name, '.');
	return dot && strcmp(dot, ".jar") != 0 && strcmp(dot, ".java") != 0 ? dot + 1 : name;
}

enum meaning { MEANS_NOTHING, MEANS_NO_FILE, MEANS_VALUE, MEANS_SCRIPT };

static enum meaning meaning_of_letters(const struct interpreter *interpreter, const char *letter, const char **value)
{
	enum meaning meaning = MEANS_NOTHING;

	for (; *letter; letter++) {
		if (has_letter(interpreter->no_file, *letter))
			return MEANS_NO_FILE;
		if (has_letter(interpreter->attached, *letter))
			return MEANS_NOTHING;
		if (has_letter(interpreter->detached, *letter))
			meaning = MEANS_VALUE;
		if (has_letter(interpreter->script, *letter) || has_letter(interpreter->valued, *letter)) {
			*value = letter[1] ? letter + 1 : NULL;
			return has_letter(interpreter->script, *letter) ? MEANS_SCRIPT : MEANS_VALUE;
		}
	}
	return meaning;
}

/* *value stays NULL when the value, if there is one, is the next word. */
static enum meaning meaning_of(const struct interpreter *interpreter, const char *option, const char **value)
{
	*value = NULL;
	if (strcmp(option, "--") == 0)
		return MEANS_SCRIPT;
	if (is_among(option, interpreter->no_file_words, value))
		return MEANS_NO_FILE;
	if (is_among(option, interpreter->script_words, value))
		return MEANS_SCRIPT;
	if (is_among(option, interpreter->valued_words, value))
		return MEANS_VALUE;
	return option[1] == '-' ? MEANS_NOTHING : meaning_of_letters(interpreter, option + 1, value);
}

static bool is_option(const struct interpreter *interpreter, const char *word)
{
	return word[0] == '-' || (word[0] == '+' && interpreter->plus) || (word[0] == '@' && interpreter->classes);
}

static const char *find_script(const struct interpreter *interpreter, const char *const *args, size_t nargs)
{
	for (size_t i = 1; i < nargs; i++) {
		enum meaning meaning;
		const char *value;

		if (!is_option(interpreter, args[i]))
			return args[i];
		if (strcmp(args[i], "-") == 0)
			return NULL; /* the standard input */
		meaning = meaning_of(interpreter, args[i], &value);
		if (meaning == MEANS_NO_FILE)
			return NULL;
		if (meaning == MEANS_SCRIPT)
			return value ? value : i + 1 < nargs ? args[i + 1] : NULL;
		if (meaning == MEANS_VALUE && !value)
			i++;
	}
	return NULL;
}

const char *script_name(const char *program, const char *const *args, size_t nargs)
{
	const struct interpreter *interpreter = find_interpreter(program);
	const char *script = interpreter ? find_script(interpreter, args, nargs) : NULL;

	if (!script)
		return NULL;
	return interpreter->classes ? class_name(script) : base_name(script);
}
