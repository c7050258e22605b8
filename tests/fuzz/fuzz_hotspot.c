/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/snapfile.h"
#include "runtime/hotspot/hotspot.h"
#include "target/target.h"
#include "unwind/walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	MAX_STEPS = 64,
	MAX_STARTS = 24, /* words of a stack from which a walk is tried */
	MAX_FILE = 1 << 20,
};

/* Walks from here for as long as it is HotSpot's code. Nothing but the snapshot is read. */
static void walk_from(void *state, const struct snapshot *snap, const struct snap_thread *thread, const struct regs *regs,
		      bool exact, struct raw_stack *out)
{
	struct budget budget = {.left = 1 << 20};
	struct snapshot_mem mem;
	struct walk w = {
		.arch = snap->arch,
		.maps = &snap->maps,
		.mem = &mem.mem,
		.out = out,
		.budget = &budget,
		.regs = *regs,
		.exact = exact,
	};

	snapshot_mem_init(&mem, snap, thread);
	for (int i = 0; i < MAX_STEPS && hotspot_runtime.stepper->owns(state, w.regs.pc); i++) {
		struct caller caller = {0};

		if (!vec_push(out, ((struct raw_frame){.pc = w.regs.pc, .sp = w.regs.r[w.arch->dwarf_sp]})))
			abort();
		if (hotspot_runtime.stepper->step(state, &w, &caller) != STEP_FOUND)
			break;
		w.regs = caller.regs;
		w.exact = caller.exact;
		w.sp_is_bound = caller.sp_is_bound;
	}
}

/* Everything that a stack says must be there to be looked at. */
static void name(void *state, const struct raw_stack *raw)
{
	struct stack stack = {0};
	volatile size_t total = 0;

	for (size_t i = 0; i < raw->len; i++)
		if (!vec_push(&stack, ((struct frame){.raw = (uint32_t)i})))
			abort();
	if (!hotspot_runtime.merge(state, raw, false, &stack))
		abort();
	for (size_t i = 0; i < stack.len; i++) {
		total += stack.data[i].symbol ? strlen(stack.data[i].symbol) : 0;
		total += stack.data[i].file ? strlen(stack.data[i].file) : 0;
		if (stack.data[i].raw >= raw->len)
			abort();
	}
	vec_deinit(&stack);
}

static void look_at(void *state, const struct snapshot *snap, const struct snap_thread *thread)
{
	const struct mem_copy *stack = &thread->stack;
	struct thread_runtime runtime = {0};
	struct runtime_wait wait = {0};
	struct raw_stack out = {0};
	struct regs regs;

	hotspot_runtime.thread(state, snap, thread, &runtime);
	hotspot_runtime.waits(state, snap, thread, &wait);
	if (wait.holder >= HOLDER_COUNT || (wait.type && !wait.type[0]))
		abort();
	if (arch_to_dwarf(snap->arch, &thread->regs, &regs)) {
		walk_from(state, snap, thread, &regs, true, &out);
		name(state, &out);
		raw_stack_deinit(&out);
	}
	for (uint64_t at = 0, starts = 0; at + 16 <= stack->len && starts < MAX_STARTS; at += 8) {
		struct regs from = {0};

		memcpy(&from.pc, stack->data + at, sizeof(from.pc));
		if (!hotspot_runtime.stepper->owns(state, from.pc))
			continue;
		starts++;
		regs_put(&from, snap->arch->dwarf_sp, stack->start + at + 8);
		memcpy(&from.r[snap->arch->dwarf_fp], stack->data + (at >= 8 ? at - 8 : 0), 8); /* a record, perhaps */
		regs_put(&from, snap->arch->dwarf_fp, from.r[snap->arch->dwarf_fp]);
		out = (struct raw_stack){0};
		walk_from(state, snap, thread, &from, false, &out);
		name(state, &out);
		raw_stack_deinit(&out);
	}
}

/* The input is a saved snapshot. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *in = size && size <= MAX_FILE ? fmemopen((void *)data, size, "r") : NULL;
	struct snapshot *snap = NULL;
	struct target *target = NULL;
	void *state = NULL;
	struct err err;

	if (!in)
		return 0;
	if (snapfile_read(in, &err, &snap) == 0)
		target = target_open_saved(snap);
	if (target && hotspot_runtime.detect(target, &state)) {
		for (size_t i = 0; i < snap->threads.len && i < 8; i++)
			look_at(state, snap, &snap->threads.data[i]);
		hotspot_runtime.destroy(state);
	}
	target_close(target);
	snapshot_destroy(snap);
	fclose(in);
	return 0;
}
