/* SPDX-License-Identifier: MIT */
#include "symbol/symbolizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"
#include "symbol/kernel_names.h"
#include "symbol/native_names.h"

/* What makes two stacks equal: for each frame its pc and flags, or the kernel's text, or what a runtime says of it. */
struct stack_key {
	uint64_t value;
	uint64_t flags;
};

struct shared_stack {
	struct stack stack;
	struct shared_stack *next; /* with the same hash */
	size_t nkeys;
	struct stack_key keys[];
};

struct keys {
	VEC_FIELDS(struct stack_key);
};

struct symbolizer {
	struct arena *arena;
	struct native_names *native;
	struct kernel_names *kernel;
	const struct symbolizer_options *options;
	struct keys keys;     /* of the stack being named */
	struct u64map stacks; /* hash of the keys to struct shared_stack; of user and kernel stacks alike */
	VEC(struct shared_stack *) owned;
};

DEFINE_CLEANUP(symbolizer, struct symbolizer *, symbolizer_destroy)

struct symbolizer *symbolizer_create(struct modules *modules, const struct symbolizer_options *options)
{
	_cleanup_(cleanup_symbolizer) struct symbolizer *sym = calloc(1, sizeof(*sym));

	if (!sym)
		return NULL;
	sym->options = options;
	sym->arena = arena_create();
	if (!sym->arena)
		return NULL;
	sym->native = native_names_create(modules, sym->arena, &options->native);
	sym->kernel = kernel_names_create(sym->arena, options->kernel_addresses ? KERNEL_NAMES_PATH : NULL);
	return sym->native && sym->kernel ? steal_ptr(sym) : NULL;
}

void symbolizer_destroy(struct symbolizer *sym)
{
	if (!sym)
		return;
	for (size_t i = 0; i < sym->owned.len; i++) {
		vec_deinit(&sym->owned.data[i]->stack);
		free(sym->owned.data[i]);
	}
	vec_deinit(&sym->owned);
	vec_deinit(&sym->keys);
	u64map_deinit(&sym->stacks);
	native_names_destroy(sym->native);
	kernel_names_destroy(sym->kernel);
	arena_destroy(sym->arena);
	free(sym);
}

static bool has_keys(const struct shared_stack *shared, const struct keys *keys)
{
	return shared->nkeys == keys->len &&
	       (keys->len == 0 || memcmp(shared->keys, keys->data, keys->len * sizeof(*keys->data)) == 0);
}

/* The stack with the keys in sym->keys; *created when it is new, and then empty. NULL when memory is exhausted. */
static struct stack *share(struct symbolizer *sym, bool *created)
{
	const struct keys *keys = &sym->keys;
	uint64_t hash = HASH_SEED;
	struct shared_stack *shared;
	uint64_t *slot;

	*created = false;
	for (size_t i = 0; i < keys->len; i++)
		hash = hash_u64(hash_u64(hash, keys->data[i].value), keys->data[i].flags);
	slot = u64map_put(&sym->stacks, hash, created);
	if (!slot)
		return NULL;
	*created = false;
	for (shared = (struct shared_stack *)(uintptr_t)*slot; shared; shared = shared->next)
		if (has_keys(shared, keys))
			return &shared->stack;
	shared = calloc(1, sizeof(*shared) + keys->len * sizeof(*keys->data));
	if (!shared || !vec_push(&sym->owned, shared)) {
		free(shared);
		return NULL;
	}
	shared->nkeys = keys->len;
	if (keys->len)
		memcpy(shared->keys, keys->data, keys->len * sizeof(*keys->data));
	shared->next = (struct shared_stack *)(uintptr_t)*slot;
	*slot = (uintptr_t)shared;
	*created = true;
	return &shared->stack;
}

bool symbolizer_prepare(struct symbolizer *sym, const struct raw_stack *const *stacks, size_t n)
{
	return native_names_prepare(sym->native, stacks, n);
}

/* Flags that no raw frame has, to keep kernel stacks and frames of runtimes apart from native frames. */
#define KERNEL_KEY (UINT64_C(1) << 63)
#define RUNTIME_KEY (UINT64_C(1) << 62)

static bool add_keys(struct keys *keys, const struct raw_stack *raw)
{
	bool ok = true;

	keys->len = 0;
	for (size_t i = 0; ok && i < raw->len; i++)
		ok = vec_push(keys, (struct stack_key){.value = raw->data[i].pc, .flags = raw->data[i].flags});
	for (size_t i = 0; ok && i < raw->runtime.len; i++) {
		const struct runtime_frame *frame = &raw->runtime.data[i];
		uint64_t where = RUNTIME_KEY | (uint64_t)frame->runtime << 32 | frame->raw;

		ok = vec_push(keys, (struct stack_key){.value = frame->code, .flags = where}) &&
		     vec_push(keys, (struct stack_key){.value = frame->place, .flags = where}) &&
		     (!frame->call || vec_push(keys, (struct stack_key){.value = frame->call, .flags = where}));
	}
	return ok;
}

const struct stack *symbolizer_name(struct symbolizer *sym, const struct raw_stack *raw)
{
	struct stack *stack;
	bool created;

	if (!add_keys(&sym->keys, raw))
		return NULL;
	stack = share(sym, &created);
	for (size_t i = 0; stack && created && i < raw->len; i++)
		if (!native_names_add(sym->native, &raw->data[i], (uint32_t)i, stack))
			return NULL;
	if (stack && created && sym->options->merge && !sym->options->merge(sym->options->merge_ctx, raw, stack))
		return NULL;
	return stack;
}

const struct stack *symbolizer_name_kernel(struct symbolizer *sym, const struct snap_thread *thread)
{
	struct stack *stack;
	bool created;

	sym->keys.len = 0;
	for (uint32_t i = 0; i < thread->nkernel; i++) {
		struct stack_key key = {.flags = KERNEL_KEY};

		/* Texts of one snapshot are interned, so comparing addresses is enough. */
		key.value = thread->kernel_pcs ? thread->kernel_pcs[i] : (uintptr_t)thread->kernel_text[i];
		if (!vec_push(&sym->keys, key))
			return NULL;
	}
	stack = share(sym, &created);
	for (uint32_t i = 0; stack && created && i < thread->nkernel; i++)
		if (!kernel_names_add(sym->kernel, thread, i, stack))
			return NULL;
	return stack;
}

const char *symbolizer_kernel_error(const struct symbolizer *sym)
{
	return kernel_names_error(sym->kernel);
}
