/* SPDX-License-Identifier: MIT */
#include "runtime/python/names.h"

#include "runtime/python/dict.h"

enum {
	MODULE_DICT = 16,    /* PyModuleObject */
	INT_SIZE = 16,       /* how many digits: shifted by 3 since 3.12 */
	FIRST_WITH_SHIFTED_SIZE = 12,
	INT_DIGIT = 24,
	DIGIT_BITS = 30,
	MAX_DIGITS = 2, /* of an address */
	SPARE = 64, /* entries of threads that are not listed: they have begun or ended since */
};

/* How an object of threading.Thread is known to be a thread's, the worst first. */
enum match {
	NO_MATCH,
	SEVERAL,	 /* more than one has its native id: green threads share that of the thread that runs them in turns */
	BY_NATIVE_ID,
	BY_MAIN_THREAD, /* likewise, and it is the main one, in which green threads are */
	BY_IDENT,
};

struct reading {
	const struct python_layout *layout;
	struct mem *mem;
	struct python_threads *threads;
	uint64_t interp;
	uint64_t main; /* threading._main_thread */
	unsigned left; /* objects that may still be looked at */
};

static bool read_u64(struct mem *mem, uint64_t address, uint64_t *out)
{
	return mem_read_exact(mem, address, out, sizeof(*out));
}

/* An int of one digit, which has 30 bits: tids and truth values are such. */
static uint64_t read_int(struct mem *mem, uint64_t object)
{
	uint32_t digit = 0;

	return object && mem_read_exact(mem, object + INT_DIGIT, &digit, sizeof(digit)) ? digit : 0;
}

/* What pthread_self() is. 0: it is no such int. */
static uint64_t read_ident(const struct reading *r, uint64_t object)
{
	uint32_t digits[MAX_DIGITS] = {0};
	uint64_t n;

	if (!object || !read_u64(r->mem, object + INT_SIZE, &n))
		return 0;
	if (python_minor(r->layout) >= FIRST_WITH_SHIFTED_SIZE)
		n >>= 3;
	if (n < 1 || n > MAX_DIGITS || !mem_read_exact(r->mem, object + INT_DIGIT, digits, n * sizeof(digits[0])))
		return 0;
	return (uint64_t)digits[1] << DIGIT_BITS | digits[0];
}

static enum match match_thread(const struct reading *r, const struct python_thread *thread, uint64_t ident, uint64_t own, uint64_t object)
{
	if (thread->interp != r->interp)
		return NO_MATCH;
	if (ident && thread->thread == ident)
		return BY_IDENT;
	if (!own || (uint64_t)thread->own != own)
		return NO_MATCH;
	if (object == r->main)
		return BY_MAIN_THREAD;
	return thread->match == BY_NATIVE_ID || thread->match == SEVERAL ? SEVERAL : BY_NATIVE_ID;
}

static bool take_thread(void *ctx, uint64_t key, uint64_t object)
{
	struct reading *r = ctx;
	uint64_t ident = read_ident(r, key), own = read_int(r->mem, python_attribute(r->layout, r->mem, object, "_native_id"));

	for (size_t i = 0; i < r->threads->len; i++) {
		struct python_thread *thread = &r->threads->data[i];
		enum match match = match_thread(r, thread, ident, own, object);

		if (match == SEVERAL ? thread->match > BY_NATIVE_ID : match <= thread->match)
			continue;
		thread->match = match;
		thread->name = match == SEVERAL ? 0 : python_attribute(r->layout, r->mem, object, "_name");
		thread->is_daemon =
			match != SEVERAL && read_int(r->mem, python_attribute(r->layout, r->mem, object, "_daemonic")) == 1;
	}
	return --r->left;
}

uint64_t python_module_dict(const struct python_layout *layout, struct mem *mem, uint64_t interp, const char *module)
{
	uint64_t modules, object, dict;

	if (!layout->at[PY_INTERP_MODULES] || !read_u64(mem, interp + layout->at[PY_INTERP_MODULES], &modules) || !modules)
		return 0;
	object = python_dict_get(layout, mem, modules, module);
	return object && read_u64(mem, object + MODULE_DICT, &dict) ? dict : 0;
}

/* Each interpreter has modules of its own. */
void python_names_read(const struct python_layout *layout, struct mem *mem, struct python_threads *threads)
{
	struct reading reading = {.layout = layout, .mem = mem, .threads = threads, .left = (unsigned)threads->len + SPARE};
	uint64_t last = 0;

	for (size_t i = 0; i < threads->len; i++)
		threads->data[i].match = NO_MATCH;
	for (size_t i = 0; reading.left && i < threads->len; i++) {
		uint64_t dict, active;

		if (threads->data[i].interp == last)
			continue;
		last = reading.interp = threads->data[i].interp;
		dict = python_module_dict(layout, mem, last, "threading");
		active = dict ? python_dict_get(layout, mem, dict, "_active") : 0;
		reading.main = active ? python_dict_get(layout, mem, dict, "_main_thread") : 0;
		if (active)
			python_dict_visit(layout, mem, active, take_thread, &reading);
	}
}
