/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"
#include "fake_probe.h"

#include <sys/uio.h>
#include <ucontext.h>

#include "offcpu/place.h"
#include "offcpu/record/stack_copies.h"

enum { NUMBER = 7, PROCESS = 3, MAX_RECORD = sizeof(struct offcpu_copy) + OFFCPU_COPY_BYTES + OFFCPU_FOUND_MAPPINGS * sizeof(struct offcpu_code) };

struct fixture {
	struct offcpu_probe probe;
	struct tables *tables;
	struct waits *waits;
	struct stack_copies copies;
	struct wait_stack *stack;
	_Alignas(8) uint8_t record[MAX_RECORD];
	size_t len;
	uint32_t place; /* of frames of runtimes; 0: they have none */
};

static struct offcpu_copy *head(struct fixture *f)
{
	return (struct offcpu_copy *)f->record;
}

static struct offcpu_code *mappings(struct fixture *f)
{
	return (struct offcpu_code *)(f->record + sizeof(struct offcpu_copy) + head(f)->npieces * OFFCPU_COPY_PIECE);
}

static const struct offcpu_file *file_of(const struct fixture *f, uint32_t object)
{
	for (unsigned i = 0; i < f->probe.nfiles; i++)
		if (f->probe.codes[i].object == object)
			return &f->probe.files[i];
	return NULL;
}

static uint64_t read_registers(const ucontext_t *context, uint64_t *regs)
{
#if defined(__x86_64__)
	/* as the kernel has them: r15 first, ss last */
	static const int order[] = {REG_R15, REG_R14, REG_R13, REG_R12, REG_RBP, REG_RBX, REG_R11, REG_R10, REG_R9, REG_R8,
				    REG_RAX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, -1,	  REG_RIP, -1,	    REG_EFL, REG_RSP, -1};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		regs[i] = order[i] < 0 ? 0 : (uint64_t)context->uc_mcontext.gregs[order[i]];
	return (uint64_t)context->uc_mcontext.gregs[REG_RSP];
#else
	memcpy(regs, context->uc_mcontext.regs, 31 * sizeof(*regs));
	regs[31] = context->uc_mcontext.sp;
	regs[32] = context->uc_mcontext.pc;
	regs[33] = context->uc_mcontext.pstate;
	return context->uc_mcontext.sp;
#endif
}

/* As BPF copies it: this thread, with this function on top. */
__attribute__((noinline)) static void copy_own_stack(struct fixture *f)
{
	struct offcpu_copy *copy = head(f);
	ucontext_t context;
	uint64_t sp;

	assert_int_equal(getcontext(&context), 0);
	*copy = (struct offcpu_copy){.kind = OFFCPU_COPY, .tgid = (uint32_t)getpid(), .number = NUMBER};
	sp = read_registers(&context, (uint64_t *)copy->regs);
	copy->start = (sp - 128) & -(uint64_t)OFFCPU_COPY_PIECE;
	for (uint32_t i = 0; i < OFFCPU_COPY_BYTES / OFFCPU_COPY_PIECE; i++) {
		struct iovec local = {f->record + sizeof(*copy) + i * OFFCPU_COPY_PIECE, OFFCPU_COPY_PIECE};
		struct iovec remote = {(void *)(copy->start + i * OFFCPU_COPY_PIECE), OFFCPU_COPY_PIECE};

		if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != OFFCPU_COPY_PIECE)
			break;
		copy->npieces = i + 1;
		copy->present |= 1u << i;
	}
	for (uint32_t i = 0; i < f->probe.maps.count; i++) {
		const struct offcpu_mapping *m = &f->probe.mappings[f->probe.maps.first + i];
		const struct offcpu_file *file = m->nrows ? file_of(f, m->object) : NULL;

		if (file)
			mappings(f)[copy->count++] = (struct offcpu_code){.start = m->start, .end = m->end, .file = *file};
	}
	assert_true(copy->count > 1);
	f->len = sizeof(*copy) + copy->npieces * OFFCPU_COPY_PIECE + copy->count * sizeof(struct offcpu_code);
}

static int start(void **state)
{
	const struct waits_options options = {.max_rows = 100};
	const struct raw_frame frame = {.pc = 1};
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	fake_probe_init(&f.probe);
	f.probe.finds = true;
	f.tables = tables_create(&f.probe);
	f.waits = f.tables ? waits_create(f.tables, &options) : NULL;
	*state = &f;
	if (!f.waits || tables_read_process(f.tables, getpid(), NULL) < 0)
		return -1;
	f.stack = waits_put_stack(f.waits, &(struct stack_sample){.id.low = 1,
								  .user = &frame,
								  .nuser = 1,
								  .user_end = OFFCPU_END_NO_TABLES,
								  .copy = NUMBER});
	copy_own_stack(&f);
	return 0;
}

static int finish(void **state)
{
	struct fixture *f = *state;

	stack_copies_deinit(&f->copies);
	waits_destroy(f->waits);
	tables_destroy(f->tables);
	fake_probe_deinit(&f->probe);
	return 0;
}

static bool place(void *arg, uint32_t process, const struct raw_stack *native, struct raw_stack *told)
{
	struct fixture *f = arg;

	assert_int_equal(process, PROCESS);
	assert_true(native->len > 2 && native->end == STACK_COMPLETE);
	for (size_t i = 0; f->place && i < told->runtime.len; i++)
		told->runtime.data[i].raw = f->place;
	return f->place;
}

static void walk(struct fixture *f)
{
	stack_copies_add(&f->copies, f->record, f->len);
	stack_copies_walk(&f->copies, f->tables, f->waits, place, f);
}

static void assert_untouched(const struct fixture *f)
{
	assert_int_equal(f->stack->user_end, OFFCPU_END_NO_TABLES);
	assert_int_equal(f->stack->user.len, 1);
	assert_int_equal(f->stack->addresses[0], 1);
}

static void test_whole(void **state)
{
	struct fixture *f = *state;
	uint64_t vaddr, at = (uintptr_t)copy_own_stack;

	walk(f);
	assert_int_equal(f->stack->user_end, OFFCPU_END_COMPLETE);
	assert_true(f->stack->user.len > 2);
	assert_in_range(f->stack->addresses[0], at, at + 4096);
	assert_in_range(f->stack->addresses[1], (uintptr_t)start, (uintptr_t)start + 4096);
	assert_true(f->stack->user.data[1].flags & FRAME_RETURN_ADDRESS);
	for (size_t i = 0; i < f->stack->user.len; i++)
		assert_non_null(tables_module(f->tables, f->stack->user.data[i].pc, &vaddr));
}

/* The walk comes to a page that was not in memory. */
static void test_hole(void **state)
{
	struct fixture *f = *state;

	head(f)->present = 0;
	walk(f);
	assert_int_equal(f->stack->user_end, OFFCPU_END_NO_TABLES);
}

static void test_unknown_file(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < head(f)->count; i++)
		mappings(f)[i].file.inode++;
	walk(f);
	assert_untouched(f);
}

/* What comes from the ring is checked, and a stack whose copy is not there stays as it is. */
static void test_bad_records(void **state)
{
	struct fixture *f = *state;
	size_t len = f->len;

	f->len = sizeof(struct offcpu_copy) - 1;
	walk(f);
	f->len = len - 1;
	walk(f);
	f->len = len;
	head(f)->npieces = OFFCPU_COPY_BYTES / OFFCPU_COPY_PIECE + 1;
	walk(f);
	head(f)->npieces = UINT32_MAX;
	walk(f);
	head(f)->npieces = 1;
	head(f)->count = OFFCPU_FOUND_MAPPINGS + 1;
	walk(f);
	assert_int_equal(f->copies.all.len, 0);
	assert_untouched(f);
}

static void test_limit(void **state)
{
	struct fixture *f = *state;

	f->copies.bytes = OFFCPU_COPIES_BYTES + (1 << 20) - f->len;
	stack_copies_add(&f->copies, f->record, f->len);
	stack_copies_add(&f->copies, f->record, f->len);
	assert_int_equal(f->copies.all.len, 1);
}

/* A copy of a stack that needs none: another one of the same number would be wrong for it. */
static void test_whole_already(void **state)
{
	struct fixture *f = *state;

	f->stack->user_end = OFFCPU_END_COMPLETE;
	walk(f);
	assert_int_equal(f->stack->user.len, 1);
}

/* They were not reached by the walk that was cut, and so were said to be behind all frames. */
static void add_runtime_frames(struct fixture *f)
{
	f->stack->runtime_process = PROCESS;
	for (uint32_t i = 0; i < 2; i++)
		assert_true(vec_push(&f->stack->user.runtime, (struct runtime_frame){.code = 1, .raw = 1, .runtime = FRAME_KIND_PYTHON}));
}

static void test_frames_of_runtimes(void **state)
{
	struct fixture *f = *state;

	add_runtime_frames(f);
	f->place = 2;
	walk(f);
	assert_int_equal(f->stack->user_end, OFFCPU_END_COMPLETE);
	assert_true(f->stack->user.len > 2);
	assert_int_equal(f->stack->user.runtime.len, 2);
	assert_int_equal(f->stack->user.runtime.data[0].raw, 2);
	assert_int_equal(f->stack->user.runtime.data[1].raw, 2);
}

/* The native frames alone would put them behind the outermost. */
static void test_frames_without_places(void **state)
{
	struct fixture *f = *state;

	add_runtime_frames(f);
	walk(f);
	assert_untouched(f);
	assert_int_equal(f->stack->user.runtime.data[0].raw, 1);
	stack_copies_walk(&f->copies, f->tables, f->waits, NULL, NULL);
	assert_untouched(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_whole, start, finish),
		cmocka_unit_test_setup_teardown(test_hole, start, finish),
		cmocka_unit_test_setup_teardown(test_unknown_file, start, finish),
		cmocka_unit_test_setup_teardown(test_bad_records, start, finish),
		cmocka_unit_test_setup_teardown(test_limit, start, finish),
		cmocka_unit_test_setup_teardown(test_whole_already, start, finish),
		cmocka_unit_test_setup_teardown(test_frames_of_runtimes, start, finish),
		cmocka_unit_test_setup_teardown(test_frames_without_places, start, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
