/* SPDX-License-Identifier: MIT */
#include "offcpu/naming.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "kernel/address_names.h"
#include "offcpu/profile.h"
#include "runtime/made_code.h"
#include "runtime/runtime.h"
#include "symbol/symbolizer.h"

enum {
	OWN_FRAMES = 12, /* where our own programs and the scheduler may be on top of a kernel stack */
};

/* The named forms of a stack. */
struct named_stack {
	const struct stack *kernel;
	const struct stack *user;
	struct stack cut;   /* `kernel` without what is on top of every stack; borrowed */
	bool interrupt;     /* the waker is an interrupt, not a thread */
	struct stack named; /* `user`, with the addresses of this process */
};

struct offcpu_naming {
	const struct offcpu_naming_options *options;
	struct runtimes runtimes;
	struct symbolizer_options symbolizing;
	struct symbolizer *symbolizer;
	struct arena *arena;
	struct u64map texts; /* kernel address to its text */
	struct u64map named; /* address of a struct wait_stack, plus one for a waker's, to struct named_stack */
	VEC(struct named_stack *) all;
	VEC(uint64_t) addresses; /* of the kernel, each once */
	struct u64map newest; /* by pid and tid: when the last thread of that number began */
	size_t asked;            /* so many of them the kernel was asked for */
};

DEFINE_CLEANUP(offcpu_naming, struct offcpu_naming *, offcpu_naming_destroy)

struct offcpu_naming *offcpu_naming_create(const struct offcpu_naming_options *options)
{
	_cleanup_(cleanup_offcpu_naming) struct offcpu_naming *naming = calloc(1, sizeof(*naming));

	if (!naming)
		return NULL;
	naming->options = options;
	if (!runtimes_init(&naming->runtimes, NULL))
		return NULL;
	naming->symbolizing = (struct symbolizer_options){
		.native = options->native,
		.kernel_addresses = true,
		.merge = runtimes_merge,
		.merge_ctx = &naming->runtimes,
	};
	naming->arena = arena_create();
	naming->symbolizer = symbolizer_create(NULL, &naming->symbolizing);
	return naming->arena && naming->symbolizer ? steal_ptr(naming) : NULL;
}

void offcpu_naming_destroy(struct offcpu_naming *naming)
{
	if (!naming)
		return;
	for (size_t i = 0; i < naming->all.len; i++) {
		vec_deinit(&naming->all.data[i]->named);
		free(naming->all.data[i]);
	}
	vec_deinit(&naming->all);
	vec_deinit(&naming->addresses);
	u64map_deinit(&naming->texts);
	u64map_deinit(&naming->named);
	u64map_deinit(&naming->newest);
	symbolizer_destroy(naming->symbolizer);
	runtimes_deinit(&naming->runtimes);
	arena_destroy(naming->arena);
	free(naming);
}

static bool want_stack(struct offcpu_naming *naming, const struct wait_stack *stack, struct u64map *seen,
		       const struct raw_stack ***users, size_t *n)
{
	bool created;

	if (!stack)
		return true;
	if (!u64map_put(seen, (uintptr_t)stack, &created))
		return false;
	if (!created)
		return true;
	for (uint32_t i = 0; !stack->kernel_text && i < stack->nkernel; i++) {
		if (!u64map_put(&naming->texts, stack->kernel[i], &created) ||
		    (created && !vec_push(&naming->addresses, stack->kernel[i])))
			return false;
	}
	(*users)[(*n)++] = &stack->user;
	return true;
}

static void keep_text(void *arg, size_t index, const char *text)
{
	struct offcpu_naming *naming = arg;
	uint64_t *slot = u64map_find(&naming->texts, naming->addresses.data[naming->asked + index]);

	if (slot)
		*slot = (uintptr_t)arena_intern(naming->arena, text);
}

/* All names at once: kernel addresses in one question to the kernel, user addresses on all cores. */
static bool list_stacks(struct offcpu_naming *naming, const struct waits *waits, const struct raw_stack ***users, size_t *n)
{
	struct u64map seen = {0};
	bool ok = true;

	*users = calloc(2 * waits_nrows(waits) + 1, sizeof(**users));
	*n = 0;
	ok = *users;

	for (size_t i = 0; ok && i < waits_nrows(waits); i++) {
		const struct wait_row *row = waits_row(waits, i);

		ok = want_stack(naming, row->stack, &seen, users, n) && want_stack(naming, row->waker_stack, &seen, users, n);
	}
	u64map_deinit(&seen);
	if (ok && naming->addresses.len > naming->asked)
		address_names_ask(naming->addresses.data + naming->asked, naming->addresses.len - naming->asked, keep_text,
				  naming, NULL);
	naming->asked = naming->addresses.len;
	return ok;
}

bool offcpu_naming_ask_kernel(struct offcpu_naming *naming, const struct waits *waits)
{
	_cleanup_free_ const struct raw_stack **users = NULL;
	size_t n;

	return list_stacks(naming, waits, &users, &n);
}

void offcpu_naming_forgo(struct offcpu_naming *naming)
{
	naming->symbolizing.native.bare = true;
	naming->symbolizing.merge = NULL;
}

static bool prepare(struct offcpu_naming *naming, const struct waits *waits)
{
	_cleanup_free_ const struct raw_stack **users = NULL;
	size_t n;

	return list_stacks(naming, waits, &users, &n) && symbolizer_prepare(naming->symbolizer, users, n);
}

static bool is_scheduler(const char *name)
{
	static const char *const names[] = {"__schedule",
					    "schedule",
					    "preempt_schedule_irq",
					    "preempt_schedule_common",
					    "preempt_schedule_notrace",
					    "preempt_schedule",
					    "__cond_resched",
					    "preempt_schedule_thunk"};

	for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static bool is_ours(const char *name)
{
	static const char *const starts[] = {"bpf_prog_", "bpf_trace_run", "__traceiter_", "__bpf_trace_"};

	for (size_t i = 0; name && i < sizeof(starts) / sizeof(starts[0]); i++)
		if (strncmp(name, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

/*
 * Our own programs are on top of every stack, and the scheduler on top of a waiting thread's, with more of ours in
 * between on some rungs: none of that is of interest. A waker may have been in the scheduler, or in our programs, when
 * an interrupt hit it: then the interrupt is what matters.
 */
static struct stack without_own_frames(const struct stack *stack, bool waker)
{
	size_t skip = 0;

	if (waker)
		while (skip < stack->len && is_ours(stack->data[skip].symbol))
			skip++;
	for (size_t i = 0; !waker && i < stack->len && i < OWN_FRAMES; i++)
		if (is_scheduler(stack->data[i].symbol) || is_ours(stack->data[i].symbol))
			skip = i + 1;
	if (skip == stack->len && skip)
		skip--;
	return (struct stack){.data = stack->data + skip, .len = stack->len - skip};
}

static const struct stack *name_kernel(struct offcpu_naming *naming, const struct wait_stack *stack)
{
	struct snap_thread thread = {.kernel_text = stack->kernel_text, .nkernel = stack->nkernel};
	const char **texts;

	if (stack->kernel_text)
		return symbolizer_name_kernel(naming->symbolizer, &thread);
	texts = arena_alloc(naming->arena, (stack->nkernel + 1) * sizeof(*texts));
	if (!texts)
		return NULL;
	for (uint32_t i = 0; i < stack->nkernel; i++) {
		const uint64_t *slot = u64map_find(&naming->texts, stack->kernel[i]);

		texts[i] = slot ? (const char *)(uintptr_t)*slot : NULL;
	}
	thread.kernel_pcs = stack->kernel;
	thread.kernel_text = texts;
	return symbolizer_name_kernel(naming->symbolizer, &thread);
}

/* Says why frames of a runtime are not there. */
static bool add_runtime_marker(const struct wait_stack *stack, struct stack *out)
{
	static const char *const words[] = {
		[OFFCPU_RUNTIME_FAULT] = "frames of Python are missing: a page of them is not in memory",
		[OFFCPU_RUNTIME_MISMATCH] = "frames of Python are missing: they do not match the native ones",
	};
	struct frame marker = {.kind = FRAME_KIND_MARKER, .symbol_source = SYMBOL_RUNTIME};

	if (stack->runtime_end >= sizeof(words) / sizeof(words[0]) || !words[stack->runtime_end])
		return true;
	marker.symbol = words[stack->runtime_end];
	if (!vec_push(out, marker))
		return false;
	memmove(out->data + 1, out->data, (out->len - 1) * sizeof(*out->data));
	out->data[0] = marker;
	return true;
}

/* Where a stack was cut that led to what was not known to be mapped: that may be a file as well as code made at run time. */
static void mark_unmapped(const struct wait_stack *stack, struct stack *out)
{
	for (size_t i = 0; stack->user_end == OFFCPU_END_NO_TABLES && i < out->len; i++) {
		const uint32_t raw = out->data[i].raw;

		if (raw < stack->user.len && stack->user.data[raw].pc == stack->addresses[raw])
			out->data[i].flags |= FRAME_UNMAPPED;
	}
}

/* Processes share files, but map them at different addresses. */
static bool name_user(struct offcpu_naming *naming, const struct wait_stack *stack, struct stack *out)
{
	const struct offcpu_naming_options *options = naming->options;
	const struct stack *shared = symbolizer_name(naming->symbolizer, &stack->user);

	if (shared && !vec_reserve(out, shared->len))
		return false;
	for (size_t i = 0; shared && i < shared->len; i++)
		vec_push(out, shared->data[i]);
	mark_unmapped(stack, out);
	if (shared && stack->runtime_process && !naming->symbolizing.native.bare &&
	    !options->merge(options->merge_arg, stack->runtime_process, &stack->user, out))
		return false;
	for (size_t i = 0; i < out->len; i++) {
		out->data[i].address = out->data[i].raw < stack->user.len ? stack->addresses[out->data[i].raw] : 0;
		out->data[i].flags &= ~(uint32_t)FRAME_UNMAPPED;
	}
	return shared && add_runtime_marker(stack, out);
}

/* Where an interrupt begins: the frames outside of it belong to the thread that it hit, which is not involved. */
static bool is_interrupt_entry(const char *name)
{
	static const char *const starts[] = {"asm_sysvec_", "asm_common_interrupt", "asm_exc_nmi", "el1h_64_irq", "el0t_64_irq",
					     "el1h_64_fiq", "el0t_64_fiq", "el0t_32_irq", "asm_fred_entrypoint_"};

	for (size_t i = 0; name && i < sizeof(starts) / sizeof(starts[0]); i++)
		if (strncmp(name, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

/* Cuts the stack of an interrupt off from that of the thread it hit. False when it is not an interrupt's. */
static bool cut_interrupt(struct stack *kernel)
{
	for (size_t i = 0; i < kernel->len; i++)
		if (is_interrupt_entry(kernel->data[i].symbol)) {
			kernel->len = i + 1;
			return true;
		}
	return false;
}

static struct named_stack *name_stack(struct offcpu_naming *naming, const struct wait_stack *stack, bool waker)
{
	bool created;
	uint64_t *slot = u64map_put(&naming->named, (uintptr_t)stack + waker, &created);
	struct named_stack *named;

	if (!slot || *slot)
		return slot ? (struct named_stack *)(uintptr_t)*slot : NULL;
	named = calloc(1, sizeof(*named));
	if (!named || !vec_push(&naming->all, named)) {
		free(named);
		return NULL;
	}
	*slot = (uintptr_t)named;
	if (stack->user.len && !name_user(naming, stack, &named->named))
		return NULL;
	named->user = stack->user.len ? &named->named : NULL;
	named->kernel = stack->nkernel ? name_kernel(naming, stack) : NULL;
	if (named->kernel) {
		named->cut = without_own_frames(named->kernel, waker);
		named->kernel = &named->cut;
		named->interrupt = waker && cut_interrupt(&named->cut);
	}
	return named;
}

#define LOST "the stack was lost: the ring buffer was full"

static const char *user_error(const struct offcpu_naming *naming, pid_t tgid, const struct wait_stack *stack,
			      const struct stack *named)
{
	static const char *const words[] = {
		[OFFCPU_END_NO_TABLES] = "its maps were not known yet when the stack was taken",
		[OFFCPU_END_NO_UNWIND] = "no unwind information, and no frame pointer to follow",
		[OFFCPU_END_UNSUPPORTED] = "unwind information that BPF cannot follow",
		[OFFCPU_END_FAULT] = "EFAULT: stack page not resident",
		[OFFCPU_END_DEPTH] = "more frames than are walked",
		[OFFCPU_END_NO_PROGRESS] = "the stack does not lead any further",
		[OFFCPU_END_32BIT] = "it is a 32-bit program, which is not walked",
		[OFFCPU_END_NOT_CODE] = "the return address is not in executable memory",
		[OFFCPU_END_MANY_MAPPINGS] = "the process has more executable mappings than are kept per process",
		[OFFCPU_END_SWITCHED] = "the Go runtime has switched stacks here",
	};
	const char *why = NULL;

	if (naming->options->hide_user_stacks)
		return NULL;
	if (!stack)
		return LOST;
	if (stack->user_error)
		return stack->user_error;
	if (naming->options->no_user_stacks)
		return naming->options->no_user_stacks;
	if (stack->user_end == OFFCPU_END_NO_TABLES && !tgid)
		return "its maps cannot be read: it is " OFFCPU_OUTSIDE_NAME;
	if (stack->user_end == OFFCPU_END_NO_TABLES && naming->options->no_maps)
		why = naming->options->no_maps(naming->options->no_maps_arg, tgid);
	if (!why && named && stack->user_end == OFFCPU_END_COMPLETE)
		why = made_code_doubt(named);
	if (why)
		return why;
	return stack->user_end < sizeof(words) / sizeof(words[0]) ? words[stack->user_end] : NULL;
}

static const char *kernel_error(struct offcpu_naming *naming, const struct wait_stack *stack)
{
	const char *name;

	if (naming->options->hide_kernel_stacks)
		return NULL;
	if (naming->options->no_kernel_stacks)
		return naming->options->no_kernel_stacks;
	if (!stack)
		return LOST;
	if (stack->kernel_error_words)
		return stack->kernel_error_words;
	if (!stack->kernel_error)
		return NULL;
	name = strerrorname_np(-stack->kernel_error);
	if (!name) /* one of the kernel's internal errors, above those that programs see */
		return arena_printf(naming->arena, "kernel error %d", -stack->kernel_error);
	return arena_printf(naming->arena, "%s: %s", name, strerrordesc_np(-stack->kernel_error));
}

static uint64_t number_key(pid_t pid, pid_t tid)
{
	return (uint64_t)pid << 32 | (uint32_t)tid;
}

/* Of several threads that had a number one after the other, a name is the last one's. */
static bool find_newest(struct offcpu_naming *naming, const struct waits *waits)
{
	for (size_t i = 0; i < waits_nthreads(waits); i++) {
		const struct offcpu_thread *thread = waits_thread(waits, i);
		bool created;
		uint64_t *start_ns = u64map_put(&naming->newest, number_key(thread->pid, thread->tid), &created);

		if (!start_ns)
			return false;
		if (created || thread->start_ns > *start_ns)
			*start_ns = thread->start_ns;
	}
	return true;
}

/* What the program calls it, or else the kernel. A main thread's is the name of the process. A start of 0 is not known. */
static const char *name_thread(struct offcpu_naming *naming, pid_t pid, pid_t tid, uint64_t start_ns, const char *comm)
{
	const struct offcpu_naming_options *options = naming->options;
	const uint64_t *newest = u64map_find(&naming->newest, number_key(pid, tid));
	const char *name = NULL;

	if (options->thread_name && tid != pid && (!start_ns || !newest || *newest <= start_ns))
		name = options->thread_name(options->merge_arg, pid, tid, start_ns);
	return name ? name : comm;
}

/* An interrupt has nothing but its kernel stack. */
static struct offcpu_waker name_waker(struct offcpu_naming *naming, const struct wait_row *from,
				      const struct named_stack *named)
{
	const bool interrupt = from->interrupt || (named && named->interrupt);
	struct offcpu_waker waker = {.interrupt = interrupt,
				     .name = interrupt ? OFFCPU_INTERRUPT_NAME : from->waker_name};

	if (!naming->options->hide_kernel_stacks)
		waker.kernel = named ? named->kernel : NULL;
	waker.kernel_error = kernel_error(naming, from->waker_stack);
	if (interrupt)
		return waker;
	waker.pid = from->waker_tgid;
	waker.tid = from->waker_tid;
	if (waker.tid)
		waker.name = name_thread(naming, waker.pid, waker.tid, 0, from->waker_name);
	waker.user = named ? named->user : NULL;
	waker.user_error = user_error(naming, from->waker_tgid, from->waker_stack, waker.user);
	return waker;
}

bool offcpu_naming_row(struct offcpu_naming *naming, const struct wait_row *from, struct offcpu_row *out)
{
	const struct named_stack *named = from->stack ? name_stack(naming, from->stack, false) : NULL;
	const struct named_stack *waker = from->waker_stack ? name_stack(naming, from->waker_stack, true) : NULL;

	*out = (struct offcpu_row){
		.pid = from->tgid,
		.tid = from->tid,
		.process_start_ns = from->process_start_ns,
		.thread_start_ns = from->thread_start_ns,
		.thread_name = name_thread(naming, from->tgid, from->tid, from->thread_start_ns, from->name),
		.state = from->state,
		.sum = from->sum,
		.kernel = named ? named->kernel : NULL,
		.user = named ? named->user : NULL,
		.kernel_error = kernel_error(naming, from->stack),
		.user_error = user_error(naming, from->tgid, from->stack, named ? named->user : NULL),
		.has_waker = from->has_waker,
	};

	if ((from->stack && !named) || (from->waker_stack && !waker))
		return false;
	if (out->has_waker)
		out->waker = name_waker(naming, from, waker);
	return true;
}

static bool add_row(struct offcpu_naming *naming, const struct waits *waits, size_t index, struct offcpu_profile *out)
{
	struct offcpu_row row;

	if (!offcpu_naming_row(naming, waits_row(waits, index), &row))
		return false;
	row.lengths = offcpu_profile_add_lengths(out, waits_lengths(waits, index));
	return row.lengths && offcpu_profile_add_row(out, row);
}

bool offcpu_naming_fill(struct offcpu_naming *naming, const struct waits *waits, struct offcpu_profile *out)
{
	if (!prepare(naming, waits) || !find_newest(naming, waits))
		return false;
	for (size_t i = 0; i < waits_nthreads(waits); i++) {
		struct offcpu_thread thread = *waits_thread(waits, i);

		thread.name = name_thread(naming, thread.pid, thread.tid, thread.start_ns, thread.name);
		if (!offcpu_profile_add_thread(out, &thread))
			return false;
	}
	for (size_t i = 0; i < waits_nrows(waits); i++)
		if (!add_row(naming, waits, i, out))
			return false;
	return offcpu_profile_finish(out);
}
