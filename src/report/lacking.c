/* SPDX-License-Identifier: MIT */
#include "report/lacking.h"

#include "base/map.h"

static bool add(struct lacking *lacking, struct u64map *seen, const struct module_info *module)
{
	bool created;

	if (!module || !module->problem)
		return true;
	return u64map_put(seen, (uintptr_t)module, &created) && (!created || vec_push(lacking, module));
}

bool lacking_find(struct lacking *lacking, const struct trace *trace)
{
	struct u64map seen = {0};
	bool ok = true;

	for (size_t i = 0; ok && i < trace->threads.len; i++) {
		const struct stack *user = trace->threads.data[i].user;

		for (size_t f = 0; ok && user && f < user->len; f++)
			ok = add(lacking, &seen, user->data[f].module);
	}
	u64map_deinit(&seen);
	return ok;
}
