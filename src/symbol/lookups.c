/* SPDX-License-Identifier: MIT */
#include "symbol/lookups.h"

#include "base/parallel.h"

void lookups_deinit(struct lookups *lookups)
{
	for (size_t i = 0; i < lookups->len; i++)
		vec_deinit(&lookups->data[i].vaddrs);
	u64map_deinit(&lookups->by_module);
	vec_deinit(lookups);
}

bool lookups_add(struct lookups *lookups, struct module *module, uint64_t vaddr)
{
	bool created;
	uint64_t *slot = u64map_put(&lookups->by_module, (uintptr_t)module, &created);

	if (!slot)
		return false;
	if (created) {
		*slot = lookups->len;
		if (!vec_push(lookups, (struct module_lookups){.module = module}))
			return false;
	}
	return vec_push(&lookups->data[*slot].vaddrs, vaddr);
}

struct job {
	struct lookups *lookups;
	const struct symbol_options *options;
};

static void open_module(void *ctx, size_t i)
{
	const struct job *job = ctx;
	struct module_lookups *m = &job->lookups->data[i];

	m->symbols = module_symbols(m->module, job->options);
	m->wanted = m->symbols ? module_symbols_want(m->symbols, m->vaddrs.data, m->vaddrs.len) : 0;
}

/* Reads unit number i of all that are wanted. */
static void read_unit(void *ctx, size_t i)
{
	struct module_lookups *m = ((const struct job *)ctx)->lookups->data;

	for (; i >= m->wanted; m++)
		i -= m->wanted;
	module_symbols_read(m->symbols, i);
}

void lookups_prepare(struct lookups *lookups, const struct symbol_options *options)
{
	struct job job = {.lookups = lookups, .options = options};
	size_t units = 0;

	parallel_for(lookups->len, open_module, &job);
	for (size_t i = 0; i < lookups->len; i++)
		units += lookups->data[i].wanted;
	parallel_for(units, read_unit, &job);
}
