/* SPDX-License-Identifier: MIT */
#include "wait/rust_names.h"

#include <string.h>

enum {
	INNERMOST = 20, /* frames that are looked at: most of the library is inlined, and channels have many closures */
	NAME_LEN = 160, /* of what is compared */
};

/*
 * By the name of the function, without generic arguments, and the module in the library that it is of: where in that it is has changed
 * from version to version.
 */
struct rust_function {
	const char *module;
	const char *name;
	enum wait_kind kind;
};

/* The first one from the inside that is here. */
static const struct rust_function waits[] = {
	{"std::sys", "::Mutex::lock_contended", WAIT_MUTEX},
	{"std::sys", "::RwLock::read_contended", WAIT_READ_LOCK},
	{"std::sys", "::RwLock::write_contended", WAIT_WRITE_LOCK},
	{"std::sys", "::Condvar::wait", WAIT_CONDITION}, /* and wait_timeout(), wait_optional_timeout() */
	{"std::sync", "::Barrier::wait", WAIT_BARRIER},
	{"std::sys", "::Once::call", WAIT_ONCE},
	{"std::sys", "::Once::wait", WAIT_ONCE},
	{"std::sync::once", "::Once::call_inner", WAIT_ONCE}, /* before 1.65: what it waits for is not part of the object */
	{"std::sys", "::Parker::park", WAIT_PARKED}, /* and park_timeout(); all of it may be inlined */
	{"std::thread", "::park", WAIT_PARKED},
};

/* What consists of one of these: further out. None of them calls functions of the program. */
static const struct rust_outer {
	enum wait_kind inner;
	struct rust_function function;
} outer[] = {
	{WAIT_CONDITION, {"std::sync", "::Barrier::wait", WAIT_BARRIER}},
	{WAIT_PARKED, {"std::sync::mpmc", "::Channel::recv", WAIT_CHANNEL}},
	{WAIT_PARKED, {"std::sync::mpmc", "::Channel::send", WAIT_CHANNEL_ROOM}},
	{WAIT_PARKED, {"std::sync::mpsc", "::Packet::recv", WAIT_CHANNEL}}, /* before 1.67 */
	{WAIT_PARKED, {"std::sync::mpsc", "::Packet::send", WAIT_CHANNEL_ROOM}},
	{WAIT_PARKED, {"std::sync::once", "::wait", WAIT_ONCE}}, /* before 1.65 */
};

/*
 * "std::sync::mpmc::list::Channel::recv" of "<std::sync::mpmc::list::Channel<u64>>::recv", and of "std::sync::mpmc::list::Channel<T>::recv":
 * how the type of a method is written depends on how names were mangled, and generic arguments may name anything.
 */
static void simplify(const char *symbol, char out[static NAME_LEN])
{
	unsigned depth = 0, kept = *symbol == '<'; /* what the first one encloses is a type, and part of the name */
	size_t n = 0;

	for (const char *c = symbol; *c && n + 1 < NAME_LEN; c++) {
		if (*c == '<') {
			depth++;
		} else if (*c == '>' && depth && c[-1] != '-') {
			depth--;
			kept = kept && depth;
		} else if (depth <= kept) {
			out[n++] = *c;
		}
	}
	out[n] = '\0';
}

static bool is_function(const char *name, const struct rust_function *f)
{
	return strncmp(name, f->module, strlen(f->module)) == 0 && strstr(name + strlen(f->module), f->name);
}

static enum wait_kind find_wait(const char *name)
{
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		if (is_function(name, &waits[i]))
			return waits[i].kind;
	return WAIT_NOTHING;
}

static enum wait_kind find_outer(const char *name, enum wait_kind inner)
{
	for (size_t i = 0; i < sizeof(outer) / sizeof(outer[0]); i++)
		if (outer[i].inner == inner && is_function(name, &outer[i].function))
			return outer[i].function.kind;
	return inner;
}

static bool is_of_library(const char *name)
{
	return strncmp(name, "std::", 5) == 0 || strncmp(name, "core::", 6) == 0;
}

enum wait_kind rust_wait(const struct stack *user)
{
	enum wait_kind kind = WAIT_NOTHING;
	char name[NAME_LEN];

	for (size_t i = 0; user && i < user->len && i < INNERMOST; i++) {
		if (!user->data[i].symbol)
			break;
		simplify(user->data[i].symbol, name);
		if (i && !is_of_library(name))
			break;
		kind = kind ? find_outer(name, kind) : find_wait(name);
	}
	return kind;
}
