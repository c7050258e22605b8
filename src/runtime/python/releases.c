/* SPDX-License-Identifier: MIT */
#include "runtime/python/releases.h"

#include <string.h>

#include "runtime/python/strings.h"
#include "runtime/python/values.h"

enum {
	MAX_NAMES = 512, /* of a function */
	MAX_FUNCTIONS = 4096,
	OBJECT_SIZE = 16,
	UNIT_BYTES = 64, /* of the budget */
};

struct function {
	const char *name, *file;
	bool releases; /* it speaks of that, or what it speaks of is not known */
	bool is_wait;
	bool is_end; /* up to 3.12, where Thread.join() waits: it lets go of the Lock of that thread's end only */
};

static const char threading[] = "threading.py";

/* Who waits for conditions in the library, beside threading.py: those are of their own objects, too. */
static const char *const own_conditions[] = {"queue.py", "concurrent/futures/_base.py"};

void python_releases_deinit(struct python_releases *releases)
{
	u64map_deinit(&releases->functions);
}

static bool read_u64(struct mem *mem, uint64_t address, uint64_t *out)
{
	return mem_read_exact(mem, address, out, sizeof(*out));
}

static const char *read_string(const struct python_releases *releases, uint64_t object)
{
	const char *text = budget_take(releases->budget, 1) ? python_string(releases->layout, releases->mem, object, releases->arena) : NULL;

	return text && budget_take(releases->budget, strlen(text) / UNIT_BYTES) ? text : NULL;
}

static const char *read_text(const struct python_releases *releases, uint64_t code, enum python_word word)
{
	uint64_t object;

	if (!releases->layout->at[word] || !read_u64(releases->mem, code + releases->layout->at[word], &object))
		return NULL;
	return read_string(releases, object);
}

/* As names of methods and classes do that let go of a lock: unlock(), Unlocked, _release_save(). */
static bool speaks_of_release(const char *name)
{
	return strcasestr(name, "release") || strcasestr(name, "unlock") || strcmp(name, "__exit__") == 0;
}

/* Where the name of a file begins that is below some folder; 0: it is another one. */
static size_t find_tail(const char *path, const char *file)
{
	const size_t len = path ? strlen(path) : 0, tail = strlen(file);

	return len > tail && path[len - tail - 1] == '/' && strcmp(path + len - tail, file) == 0 ? len - tail : 0;
}

/* False: not all of them are known. */
static bool read_names(const struct python_releases *releases, uint64_t code, enum python_word word, struct function *function)
{
	const struct python_layout *layout = releases->layout;
	uint64_t tuple, count, names[MAX_NAMES];

	if (!read_u64(releases->mem, code + layout->at[word], &tuple) || !read_u64(releases->mem, tuple + OBJECT_SIZE, &count) ||
	    count > MAX_NAMES || python_tuple_items(layout, releases->mem, tuple, names, MAX_NAMES) != count)
		return false;
	for (uint64_t i = 0; i < count; i++) {
		const char *name = read_string(releases, names[i]);

		if (!name)
			return false;
		function->releases |= speaks_of_release(name);
		function->is_wait |= strcmp(name, "_release_save") == 0;
	}
	return true;
}

static void read_function(const struct python_releases *releases, uint64_t code, struct function *function)
{
	/* Attributes and global variables; its own variables, of which up to 3.10 those of closures are apart */
	static const enum python_word words[] = {PY_CODE_NAMES, PY_CODE_VARIABLES, PY_CODE_CELLS, PY_CODE_FREE};
	size_t known = 0;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!releases->layout->at[words[i]])
			continue;
		known++;
		function->releases |= !read_names(releases, code, words[i], function);
	}
	function->releases |= known < 2;
	function->name = read_text(releases, code, PY_CODE_NAME);
	function->file = read_text(releases, code, PY_CODE_FILENAME);
	function->releases |= function->name && speaks_of_release(function->name);
	function->is_end = function->name && strcmp(function->name, "_wait_for_tstate_lock") == 0 && find_tail(function->file, threading);
}

/* NULL: there are too many, or memory is exhausted. */
static const struct function *find(struct python_releases *releases, uint64_t code)
{
	const bool is_full = releases->functions.len == MAX_FUNCTIONS;
	bool created = false;
	uint64_t *slot = is_full ? u64map_find(&releases->functions, code) : u64map_put(&releases->functions, code, &created);
	struct function *function = created ? arena_alloc(releases->arena, sizeof(*function)) : NULL;

	if (!slot || !created)
		return slot ? (const struct function *)(uintptr_t)*slot : NULL;
	*slot = (uintptr_t)function;
	if (function)
		read_function(releases, code, function);
	return function;
}

/* The folder of the library, if the function is Condition.wait(); 0: it is not. */
static size_t folder_of_wait(const struct function *f)
{
	return f->is_wait ? find_tail(f->file, threading) : 0;
}

bool python_releases_is_wait(struct python_releases *releases, uint64_t code)
{
	const struct function *function = find(releases, code);

	return function && folder_of_wait(function);
}

static bool is_of_library(const struct function *f, const struct python_release_walk *walk)
{
	const char *file = f->file && walk->library && strncmp(f->file, walk->library, walk->library_len) == 0 ? f->file + walk->library_len : "";
	bool found = strcmp(file, threading) == 0;

	for (size_t i = 0; i < sizeof(own_conditions) / sizeof(own_conditions[0]); i++)
		found |= strcmp(file, own_conditions[i]) == 0;
	return found;
}

static bool is_wait_for(const struct function *f)
{
	return f->name && strcmp(f->name, "wait_for") == 0;
}

/* One function further out. */
static bool ask(struct python_release_walk *walk, const struct function *f)
{
	if (folder_of_wait(f)) {
		walk->library = f->file;
		walk->library_len = folder_of_wait(f);
		walk->waits = true;
		return true;
	}
	if (is_of_library(f, walk)) {
		walk->waits &= is_wait_for(f);
		return true;
	}
	return !walk->waits && (f->is_end || !f->releases);
}

bool python_releases_nothing(struct python_releases *releases, const struct python_chain *chain, size_t frame, struct python_release_walk *walk)
{
	for (; walk->asked <= frame; walk->asked++) {
		const struct function *function = find(releases, chain->frames[walk->asked].code);

		/* Where the block itself is the library's, what is let go of in it may be the same lock. */
		if (!function || !ask(walk, function) || (walk->asked == frame && is_of_library(function, walk)))
			return false;
	}
	return true;
}
