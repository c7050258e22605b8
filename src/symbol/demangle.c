/* SPDX-License-Identifier: MIT */
#include "symbol/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/signals.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "symbol/demangle_d.h"

/*
 * Parameters tell overloads apart. libiberty's own limit on recursion refuses C++ names of more than 1,024 bytes, which
 * templates easily have: these are demangled without it, on a stack that is large enough. Rust's names need the limit:
 * in them a reference may lead back to itself, and there it counts depth, not length.
 */
enum {
	OPTIONS = DMGL_PARAMS | DMGL_ANSI,
	MAX_LIMITED = 1 << 10, /* bytes of a C++ name that the limit permits */
	MAX_MANGLED = 8 << 10,
	MAX_DEMANGLED = 64 << 10,
	MAX_UNLIMITED_STACK = 2 << 20, /* of a thread, when the stack limit does not say */
};

struct output {
	VEC_FIELDS(char);
	jmp_buf stop;
};

/*
 * A name of a hundred bytes can stand for gigabytes, and this is the only way to make libiberty stop printing early. It
 * prints from memory on its stack, so the jump leaks nothing but a Rust identifier being decoded.
 */
static void append(const char *text, size_t len, void *opaque)
{
	struct output *out = opaque;

	if (!len)
		return; /* text may be NULL then */
	if (out->len + len > MAX_DEMANGLED || !vec_reserve(out, out->len + len + 1))
		longjmp(out->stop, 1);
	memcpy(out->data + out->len, text, len);
	out->len += len;
}

typedef int (*print_fn)(const char *mangled, int options, demangle_callbackref callback, void *opaque);

static bool print_to(struct output *out, print_fn print, const char *name, int options)
{
	if (setjmp(out->stop) != 0)
		return false;
	return print(name, options, append, out) && out->len > 0;
}

static char *run(print_fn print, const char *name, int options)
{
	struct output out = {0};

	if (!print_to(&out, print, name, options)) {
		vec_deinit(&out);
		return NULL;
	}
	out.data[out.len] = '\0';
	return out.data;
}

/* The character of an escape like "$uf6$", and where the text goes on; 0 when it should not be shown. */
static uint32_t read_escape(const char *text, const char **after)
{
	char *end;
	unsigned long c;

	if (text[0] != '$' || text[1] != 'u' || !isxdigit((unsigned char)text[2]))
		return 0;
	c = strtoul(text + 2, &end, 16);
	*after = end + 1;
	return *end != '$' || c < 0xa0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : (uint32_t)c;
}

/* The old Rust scheme has no letters beyond ASCII; libiberty leaves them escaped. The text does not grow. */
static char *decode_letters(char *text)
{
	const char *from = text, *after;
	char *to = text;

	if (!text || !strstr(text, "$u"))
		return text;
	while (*from) {
		uint32_t c = read_escape(from, &after);

		if (c) {
			to += utf8_put(to, c);
			from = after;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
	return text;
}

struct request {
	const char *name;
	size_t len;
	int options;
	char *text; /* NULL: it has no other form */
};

static void *answer(void *arg)
{
	struct request *request = arg;
	int options = request->options | (request->len > MAX_LIMITED ? DMGL_NO_RECURSE_LIMIT : 0);

	/* The old Rust scheme looks like C++ and ends in a hash: the C++ demangler would accept it too. */
	request->text = decode_letters(run(rust_demangle_callback, request->name, request->options));
	if (!request->text && request->name[1] == 'Z')
		request->text = run(cplus_demangle_v3_callback, request->name, options);
	return NULL;
}

/*
 * The most stack that libiberty may need for a name: what it keeps of each byte, a few frames for each, and for C++
 * room for the template arguments of each scope, as many as the product of the two. The worst known names need half of
 * it.
 */
static size_t stack_for(size_t len)
{
	return (64 << 10) + 512 * len + 3 * len * len / 2;
}

/* Whether this thread surely has enough stack: all of ours have as much as the limit says. */
static bool fits_here(size_t size)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return size <= MAX_UNLIMITED_STACK / 2;
	return size <= limit.rlim_cur / 2;
}

/*
 * Runs in a thread with a large enough stack, which takes memory only as it is used; without one the name stays as it
 * is.
 */
static void answer_apart(struct request *request, size_t size)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t before;
	int error;

	if (pthread_attr_init(&attr) != 0)
		return;
	signals_block_for_worker(&before);
	error = pthread_attr_setstacksize(&attr, size);
	if (!error)
		error = pthread_create(&thread, &attr, answer, request);
	signals_restore(&before);
	pthread_attr_destroy(&attr);
	if (!error)
		pthread_join(thread, NULL);
}

static char *demangle_as(const char *name, int options)
{
	struct request request = {.name = name, .len = strnlen(name, MAX_MANGLED), .options = options};
	size_t stack = stack_for(request.len);

	if (name[0] != '_' || request.len == MAX_MANGLED)
		return NULL;
	if (name[1] == 'D')
		return demangle_d(name, MAX_DEMANGLED);
	if (name[1] != 'R' && name[1] != 'Z')
		return NULL;
	if (fits_here(stack))
		answer(&request);
	else
		answer_apart(&request, stack);
	return request.text;
}

char *demangle(const char *name)
{
	return demangle_as(name, OPTIONS | DMGL_RET_DROP);
}

char *demangle_with_return_type(const char *name)
{
	return demangle_as(name, OPTIONS);
}
