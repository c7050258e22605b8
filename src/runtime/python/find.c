/* SPDX-License-Identifier: MIT */
#include "runtime/python/find.h"

#include <stdlib.h>
#include <string.h>

#include "elf/exported.h"
#include "target/exports.h"
#include "target/modules.h"

/* The program itself comes first in the map, and libraries are called so. */
static bool may_be_interpreter(const struct maps *maps, size_t i)
{
	const struct map_entry *entry = &maps->data[i];
	const char *slash = strrchr(entry->path, '/');

	return entry->inode && !entry->offset && (i == 0 || (slash && strncmp(slash + 1, "lib", 3) == 0));
}

bool python_is_likely(const struct maps *maps, struct mem *mem)
{
	for (size_t i = 0; i < maps->len; i++)
		if (strstr(maps->data[i].path, "python"))
			return true;
	for (size_t i = 0; mem && i < maps->len; i++)
		if (may_be_interpreter(maps, i) && exports_may_have(mem, maps->data[i].start, "_PyRuntime"))
			return true;
	return false;
}

/* The N of "python3.N" in a path; 0: none. */
static unsigned minor_in(const char *path)
{
	const char *at = strstr(path, "python3.");
	unsigned long minor = at ? strtoul(at + strlen("python3."), NULL, 10) : 0;

	return minor < 100 ? (unsigned)minor : 0;
}

/* By the interpreter's own file, else by any that it has mapped: the modules of its library are in a folder of that name. */
static unsigned find_minor(const struct maps *maps, const char *path)
{
	const char *name = strrchr(path, '/');
	unsigned minor = minor_in(name ? name : path);

	for (size_t i = 0; !minor && i < maps->len; i++)
		minor = minor_in(maps->data[i].path);
	return minor;
}

static uint64_t find_symbol(struct image *image, const char *name, uint64_t bias, uint64_t *end)
{
	Elf64_Sym sym;

	if (!exported_find(image, name, &sym))
		return 0;
	if (end)
		*end = bias + sym.st_value + sym.st_size;
	return bias + sym.st_value;
}

/*
 * Since 3.14 the module that has the tasks of asyncio tells where they are in a section of its own: 13 words, each group
 * of them preceded by the size of what it is about.
 */
static void find_tasks(struct target *target, struct python_symbols *out)
{
	enum { TASK_NODE = 6, INTERP_TASKS = 8, TSTATE_TASKS = 12, WORDS };
	const struct map_entry *entry;
	struct module *module;
	uint64_t bias, words[WORDS];
	size_t at = 0;

	while ((module = modules_next(target->modules, &at, &entry, &bias))) {
		struct span span = {0};

		if (module->image)
			span = image_section(module->image, ".AsyncioDebug");
		if (span.len != sizeof(words))
			continue;
		memcpy(words, span.data, sizeof(words));
		out->task_node = words[TASK_NODE];
		out->interp_tasks = words[INTERP_TASKS];
		out->tstate_tasks = words[TSTATE_TASKS];
		return;
	}
}

bool python_find(struct target *target, struct python_symbols *out)
{
	const struct map_entry *entry;
	struct module *module;
	uint64_t bias;
	size_t at = 0;

	while ((module = modules_next(target->modules, &at, &entry, &bias))) {
		*out = (struct python_symbols){.runtime = find_symbol(module->image, "_PyRuntime", bias, NULL)};
		if (!out->runtime)
			continue;
		out->code_type = find_symbol(module->image, "PyCode_Type", bias, NULL);
		out->coro_type = find_symbol(module->image, "PyCoro_Type", bias, NULL);
		out->gen_type = find_symbol(module->image, "PyGen_Type", bias, NULL);
		out->async_gen_type = find_symbol(module->image, "PyAsyncGen_Type", bias, NULL);
		out->version = find_symbol(module->image, "Py_Version", bias, NULL);
		out->eval = find_symbol(module->image, "_PyEval_EvalFrameDefault", bias, &out->eval_end);
		out->minor = find_minor(&target->snap->maps, module->info.path);
		find_tasks(target, out);
		return true;
	}
	return false;
}
