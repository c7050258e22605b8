/* SPDX-License-Identifier: MIT */
#include "runtime/python/names.h"

#include "runtime/python/dict.h"

enum {
	MODULE_DICT = 16,    /* PyModuleObject */
	INT_DIGIT = 24,
	SPARE = 64, /* entries of threads that are not listed: they have begun or ended since */
};

struct reading {
	const struct python_layout *layout;
	struct mem *mem;
	struct python_threads *threads;
	uint64_t interp;
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

static bool take_thread(void *ctx, uint64_t key, uint64_t object)
{
	struct reading *r = ctx;
	uint64_t own = read_int(r->mem, python_attribute(r->layout, r->mem, object, "_native_id"));
	uint64_t name = own ? python_attribute(r->layout, r->mem, object, "_name") : 0;
	uint64_t daemon = own ? python_attribute(r->layout, r->mem, object, "_daemonic") : 0;
	bool is_daemon = daemon && read_int(r->mem, daemon) == 1;

	for (size_t i = 0; own && i < r->threads->len; i++) {
		struct python_thread *thread = &r->threads->data[i];

		if ((uint64_t)thread->own != own || thread->interp != r->interp)
			continue;
		thread->name = name;
		thread->is_daemon = is_daemon;
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

	for (size_t i = 0; reading.left && i < threads->len; i++) {
		uint64_t dict, active;

		if (threads->data[i].interp == last)
			continue;
		last = reading.interp = threads->data[i].interp;
		dict = python_module_dict(layout, mem, last, "threading");
		active = dict ? python_dict_get(layout, mem, dict, "_active") : 0;
		if (active)
			python_dict_visit(layout, mem, active, take_thread, &reading);
	}
}
