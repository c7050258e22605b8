/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/vec.h"
#include "lib/abi.h"
#include "lib/handle.h"
#include "lib/stack.h"
#include "symbol/subject.h"

struct stakeout_symbols {
	struct stakeout *owner;
	struct subject *subject;
	struct native_names_options options;
	struct arena *arena;
	struct native_names *names;
	struct u64map by_address; /* to struct stack */
	VEC(struct stack *) stacks; /* these */
};

DEFINE_CLEANUP(symbols, struct stakeout_symbols *, stakeout_symbols_free)

void stakeout_symbols_free(struct stakeout_symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->stacks.len; i++) {
		vec_deinit(symbols->stacks.data[i]);
		free(symbols->stacks.data[i]);
	}
	vec_deinit(&symbols->stacks);
	u64map_deinit(&symbols->by_address);
	native_names_destroy(symbols->names);
	arena_destroy(symbols->arena);
	subject_destroy(symbols->subject);
	handle_leave(symbols->owner);
	free(symbols);
}

static struct module *find_module(void *ctx, uint64_t address, uint64_t *vaddr)
{
	struct subject *subject = ctx;

	return subject_find(subject, subject_clip(subject, address), vaddr);
}

static bool find_made(void *ctx, uint64_t address, uint64_t *at, struct calls *out)
{
	struct jit_names *jit = subject_jit_names(ctx);

	return jit && jit_names_find(jit, address, out);
}

/* Takes the subject over, also on failure. */
static int make_symbols(struct stakeout *s, struct subject *subject, struct stakeout_symbols **out)
{
	_cleanup_(cleanup_symbols) struct stakeout_symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols) {
		subject_destroy(subject);
		return err_set(&s->err, ENOMEM, "out of memory");
	}
	symbols->owner = handle_use(s);
	symbols->subject = subject;
	symbols->options = s->names;
	symbols->options.find = find_module;
	symbols->options.find_made = find_made;
	symbols->options.find_ctx = subject;
	symbols->arena = arena_create();
	symbols->names = symbols->arena ? native_names_create(NULL, symbols->arena, &symbols->options) : NULL;
	if (!symbols->names)
		return err_set(&s->err, ENOMEM, "out of memory");
	*out = steal_ptr(symbols);
	return 0;
}

int stakeout_symbols_of_file(struct stakeout *s, const char *path, struct stakeout_symbols **out)
{
	struct subject *subject;
	int rc;

	*out = NULL;
	handle_begin(s);
	rc = subject_open_file(path, &s->err, &subject);
	if (rc == 0)
		rc = make_symbols(s, subject, out);
	handle_end();
	return rc;
}

int stakeout_symbols_of_build_id(struct stakeout *s, const char *build_id, struct stakeout_symbols **out)
{
	char id[SUBJECT_MAX_BUILD_ID + 1];
	struct subject *subject;
	int rc;

	*out = NULL;
	handle_begin(s);
	rc = subject_parse_build_id(build_id, id, &s->err);
	if (rc == 0)
		rc = subject_open_build_id(id, s->names.symbols.debuginfod, &s->err, &subject);
	if (rc == 0)
		rc = make_symbols(s, subject, out);
	handle_end();
	return rc;
}

int stakeout_symbols_of_process(struct stakeout *s, pid_t pid, struct stakeout_symbols **out)
{
	struct subject *subject;
	int rc;

	*out = NULL;
	handle_begin(s);
	rc = process_check_mounted(&s->err);
	if (rc == 0)
		rc = subject_open_process((struct process_id){.pid = pid}, &s->err, &subject);
	if (rc == 0)
		rc = make_symbols(s, subject, out);
	handle_end();
	return rc;
}

/* What the addresses need is read beforehand, on all cores. */
static bool prepare(struct stakeout_symbols *symbols, const uint64_t *addresses, size_t n)
{
	struct raw_stack all = {0};
	const struct raw_stack *list = &all;
	bool ok = true;

	for (size_t i = 0; ok && i < n; i++)
		ok = vec_push(&all, (struct raw_frame){.pc = addresses[i]});
	ok = ok && native_names_prepare(symbols->names, &list, 1);
	raw_stack_deinit(&all);
	return ok;
}

static struct stack *make_stack(struct stakeout_symbols *symbols, uint64_t address)
{
	const struct raw_frame raw = {.pc = address};
	struct stack *stack = calloc(1, sizeof(*stack));

	if (!stack)
		return NULL;
	if (native_names_add(symbols->names, &raw, 0, stack) && vec_push(&symbols->stacks, stack))
		return stack;
	vec_deinit(stack);
	free(stack);
	return NULL;
}

static const struct stack *find(struct stakeout_symbols *symbols, uint64_t address)
{
	bool created;
	uint64_t *slot = u64map_put(&symbols->by_address, address, &created);

	if (slot && !*slot)
		*slot = (uintptr_t)make_stack(symbols, address);
	return slot ? (const struct stack *)(uintptr_t)*slot : NULL;
}

int stakeout_symbols_find(struct stakeout_symbols *symbols, const uint64_t *addresses, size_t n,
			  const struct stakeout_stack **stacks)
{
	bool ok;

	handle_begin(symbols->owner);
	ok = prepare(symbols, addresses, n);
	for (size_t i = 0; ok && i < n; i++) {
		stacks[i] = stack_public(find(symbols, addresses[i]));
		ok = stacks[i];
	}
	handle_end();
	return ok ? 0 : err_set(&symbols->owner->err, ENOMEM, "out of memory");
}
