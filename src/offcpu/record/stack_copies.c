/* SPDX-License-Identifier: MIT */
#include "offcpu/record/stack_copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/cleanup.h"
#include "model/snapshot.h"
#include "offcpu/place.h"
#include "unwind/unwind.h"

enum {
	WALK_BUDGET = 1 << 20, /* for each walk, on average: some ten times what a deep stack takes */
	MAX_MAPPINGS = OFFCPU_FOUND_MAPPINGS + 1, /* and the stack itself */
	MAX_BYTES = OFFCPU_COPIES_BYTES + (1 << 20), /* several CPUs may have come to the limit at once */
};

void stack_copies_deinit(struct stack_copies *copies)
{
	for (size_t i = 0; i < copies->all.len; i++)
		free(copies->all.data[i]);
	vec_deinit(&copies->all);
	u64map_deinit(&copies->by_number);
	*copies = (struct stack_copies){0};
}

static uint64_t bytes_of(const struct offcpu_copy *copy)
{
	return (uint64_t)copy->npieces * OFFCPU_COPY_PIECE;
}

static bool is_sound(const struct offcpu_copy *head, size_t len)
{
	return head->count <= OFFCPU_FOUND_MAPPINGS && bytes_of(head) <= OFFCPU_COPY_BYTES &&
	       len >= sizeof(*head) + bytes_of(head) + head->count * sizeof(struct offcpu_code);
}

void stack_copies_add(struct stack_copies *copies, const void *record, size_t len)
{
	struct offcpu_copy *copy;
	uint64_t *slot;
	bool created;

	if (len < sizeof(*copy) || copies->bytes + len > MAX_BYTES || !is_sound(record, len))
		return;
	copy = malloc(len);
	if (!copy || !vec_reserve(&copies->all, copies->all.len + 1)) {
		free(copy);
		return;
	}
	memcpy(copy, record, len);
	vec_push(&copies->all, copy);
	copies->bytes += len;
	slot = u64map_put(&copies->by_number, copy->number, &created);
	if (slot)
		*slot = copies->all.len;
}

static struct offcpu_copy *find(const struct stack_copies *copies, uint32_t number)
{
	const uint64_t *slot = number ? u64map_find(&copies->by_number, number) : NULL;

	return slot ? copies->all.data[*slot - 1] : NULL;
}

/* What all walks need. */
struct walks {
	struct tables *tables;
	struct waits *waits;
	stack_place_fn place;
	void *place_arg;
	struct budget budget;
};

/* The code of one process, as far as its files are known. */
struct code {
	struct tables *tables;
	struct snapshot *snap;
	uint32_t files[MAX_MAPPINGS]; /* of the entries of its map: the numbers of places in them, or 0 */
};

static void code_deinit(struct code *code)
{
	snapshot_destroy(code->snap);
}

/* Entries come by rising address. */
static bool add_entry(struct code *code, struct map_entry entry, uint32_t file)
{
	size_t n = code->snap->maps.len;

	if (!vec_push(&code->snap->maps, entry))
		return false;
	code->files[n] = file;
	return true;
}

/* A file that is not known is left out: the walk ends where it comes to that. */
static bool add_code(struct code *code, const struct offcpu_code *mapping)
{
	const uint32_t file = tables_find_file(code->tables, &mapping->file);
	const struct map_entry entry = {
		.start = mapping->start,
		.end = mapping->end,
		.offset = mapping->file.page * (uint64_t)sysconf(_SC_PAGESIZE),
		.perms = MAP_PERM_READ | MAP_PERM_EXEC,
		.path = "",
	};

	return !file || add_entry(code, entry, file);
}

static bool add_stack(struct code *code, const struct offcpu_copy *copy)
{
	const struct map_entry entry = {
		.start = copy->start,
		.end = copy->start + bytes_of(copy),
		.perms = MAP_PERM_READ | MAP_PERM_WRITE,
		.path = "[stack]",
	};

	return add_entry(code, entry, 0);
}

static bool code_init(struct code *code, struct tables *tables, const struct offcpu_copy *copy)
{
	const struct offcpu_code *mappings = (const void *)((const uint8_t *)(copy + 1) + bytes_of(copy));
	bool ok, is_stack_in = false;

	*code = (struct code){.tables = tables, .snap = snapshot_create((pid_t)copy->tgid, arch_host())};
	ok = code->snap;
	for (uint32_t i = 0; ok && i < copy->count; i++) {
		if (!is_stack_in && mappings[i].start > copy->start) {
			ok = add_stack(code, copy);
			is_stack_in = true;
		}
		ok = ok && add_code(code, &mappings[i]);
	}
	return ok && (is_stack_in || add_stack(code, copy));
}

/* Only files that a walk comes to are opened: a process may have many. */
static struct module *lend_module(void *ctx, size_t entry)
{
	const struct code *code = ctx;

	return code->files[entry] ? tables_open_file(code->tables, code->files[entry]) : NULL;
}

static uint64_t find_place(void *ctx, uint64_t address)
{
	const struct code *code = ctx;
	const struct map_entry *entry = maps_find(&code->snap->maps, address);
	const size_t i = entry ? (size_t)(entry - code->snap->maps.data) : 0;
	const struct module *module = entry ? lend_module(ctx, i) : NULL;
	uint64_t vaddr;

	if (!module || !module->image ||
	    !image_offset_to_vaddr(module->image, address - entry->start + entry->offset, &vaddr))
		return 0;
	return place_make(code->files[i], vaddr);
}

/* What there is of the thread's memory. */
struct copied_mem {
	struct mem mem;
	const struct offcpu_copy *copy;
};

static ssize_t read_piece(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	const struct offcpu_copy *copy = ((const struct copied_mem *)mem)->copy;
	uint64_t offset = address - copy->start, piece = offset / OFFCPU_COPY_PIECE;
	size_t left = OFFCPU_COPY_PIECE - offset % OFFCPU_COPY_PIECE;

	if (address < copy->start || piece >= copy->npieces || !(copy->present >> piece & 1))
		return -EFAULT;
	if (len > left)
		len = left;
	memcpy(buf, (const uint8_t *)(copy + 1) + offset, len);
	return (ssize_t)len;
}

/* The thread as it was; false: it stands in code that is not known. */
static bool make_thread(const struct offcpu_copy *copy, const struct code *code, struct snap_thread *out)
{
	const struct arch *arch = code->snap->arch;
	const unsigned n = arch->id == ARCH_X86_64 ? TASK_RECORD_REGS_X86_64 : TASK_RECORD_REGS_AARCH64;
	const struct map_entry *entry;

	*out = (struct snap_thread){.status = THREAD_CAPTURED, .capture = CAPTURE_ASLEEP};
	memcpy(out->regs.v, copy->regs, n * sizeof(out->regs.v[0]));
	out->regs.valid = (UINT64_C(1) << n) - 1;
	entry = maps_find(&code->snap->maps, out->regs.v[arch->user_pc]);
	return entry && code->files[entry - code->snap->maps.data];
}

/* Frames that were found by searching are not for sure, and BPF has none of these. */
static bool is_certain(const struct raw_stack *frames)
{
	for (size_t i = 0; i < frames->len; i++)
		if (frames->data[i].flags & FRAME_BY_SCAN)
			return false;
	return true;
}

/* Frames of runtimes have their places among those of the stack that was cut. False: it is not known where else. */
static bool place_runtime(const struct walks *walks, const struct raw_stack *frames, struct wait_stack *stack)
{
	return !stack->user.runtime.len ||
	       (walks->place && walks->place(walks->place_arg, stack->runtime_process, frames, &stack->user));
}

static void replace_frames(struct walks *walks, struct code *code, const struct raw_stack *frames, struct wait_stack *stack)
{
	const bool is_whole = frames->end == STACK_COMPLETE;
	uint64_t *places;

	if (!is_certain(frames) || (!is_whole && frames->len <= stack->user.len))
		return;
	places = calloc(frames->len + 1, sizeof(*places));
	for (size_t i = 0; places && i < frames->len; i++)
		places[i] = place_of_frame(&frames->data[i], find_place, code);
	if (places && place_runtime(walks, frames, stack))
		waits_replace_user(walks->waits, stack,
				   &(struct stack_sample){
					   .user = frames->data,
					   .nuser = (uint32_t)frames->len,
					   .places = places,
					   .user_end = is_whole ? OFFCPU_END_COMPLETE : OFFCPU_END_NO_TABLES,
				   });
	free(places);
}

static void walk(struct walks *walks, const struct offcpu_copy *copy, struct wait_stack *stack)
{
	struct copied_mem mem = {.mem = {.read = read_piece}, .copy = copy};
	struct unwind_options options = {.depth = OFFCPU_USER_FRAMES, .live = &mem.mem, .budget = &walks->budget};
	_cleanup_(code_deinit) struct code code;
	struct modules *modules = NULL;
	struct snap_thread thread;
	struct raw_stack frames;

	if (!code_init(&code, walks->tables, copy) || !make_thread(copy, &code, &thread))
		return;
	modules = modules_lend(code.snap, lend_module, &code);
	if (!modules)
		return;
	budget_add(&walks->budget, WALK_BUDGET, UNWIND_BUDGET / 16);
	unwind_thread(code.snap, modules, &thread, &options, &frames);
	replace_frames(walks, &code, &frames, stack);
	raw_stack_deinit(&frames);
	modules_destroy(modules);
}

void stack_copies_walk(const struct stack_copies *copies, struct tables *tables, struct waits *waits, stack_place_fn place, void *arg)
{
	struct walks walks = {.tables = tables, .waits = waits, .place = place, .place_arg = arg};

	if (!copies->all.len)
		return;
	tables_open_rest(tables);
	for (size_t i = 0; i < waits_nstacks(waits); i++) {
		struct wait_stack *stack = waits_stack(waits, i);
		const struct offcpu_copy *copy = find(copies, stack->copy);

		if (copy && stack->user_end == OFFCPU_END_NO_TABLES)
			walk(&walks, copy, stack);
	}
}
