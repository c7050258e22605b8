/* SPDX-License-Identifier: MIT */
#include "report/lacking.h"

#include <string.h>

#include "base/order.h"

/* Each process has its own account of a file that it shares with others. */
static bool is_there(const struct lacking *lacking, const struct module_info *module)
{
	if (u64map_find(&lacking->seen, (uintptr_t)module))
		return true;
	for (size_t i = 0; i < lacking->len; i++) {
		const struct module_info *other = lacking->data[i];

		if (strcmp(other->path, module->path) == 0 && same_text(other->build_id, module->build_id) &&
		    strcmp(other->problem, module->problem) == 0)
			return true;
	}
	return false;
}

static bool add(struct lacking *lacking, const struct module_info *module)
{
	bool created;

	if (!module || !module->problem || is_there(lacking, module))
		return true;
	return u64map_put(&lacking->seen, (uintptr_t)module, &created) && (!created || vec_push(lacking, module));
}

bool lacking_add(struct lacking *lacking, const struct stack *stack)
{
	bool ok = true;

	for (size_t i = 0; ok && stack && i < stack->len; i++)
		ok = add(lacking, stack->data[i].module);
	return ok;
}

bool lacking_find(struct lacking *lacking, const struct trace *trace)
{
	bool ok = true;

	for (size_t i = 0; ok && i < trace->threads.len; i++)
		ok = lacking_add(lacking, trace->threads.data[i].user);
	return ok;
}

bool lacking_find_offcpu(struct lacking *lacking, const struct offcpu_profile *profile, bool skip_idle)
{
	bool ok = true;

	for (size_t i = 0; ok && i < profile->rows.len; i++) {
		const struct offcpu_row *row = &profile->rows.data[i];

		if (row->idle && skip_idle)
			continue;
		ok = lacking_add(lacking, row->user) && (!row->has_waker || lacking_add(lacking, row->waker.user));
	}
	return ok;
}
