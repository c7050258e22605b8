/* SPDX-License-Identifier: MIT */
#include "runtime/python/tasks.h"

#include "base/map.h"
#include "runtime/python/coroutine.h"
#include "runtime/python/dict.h"
#include "runtime/python/names.h"
#include "runtime/python/types.h"
#include "runtime/python/values.h"

enum {
	REF_OBJECT = 16, /* PyWeakReference */
	FUTURE_LOOP = 16, /* the first word of a future that is implemented in C */
	SMALL = 64, /* a task that is implemented in Python is smaller: it has its attributes elsewhere */
	LARGE = 512,
	MAX_NODES = PYTHON_MAX_TASKS * 4, /* of all lists */
};

struct listing {
	const struct python_layout *layout;
	struct mem *mem;
	const struct python_threads *threads;
	struct python_task_list *out;
	struct u64map seen;  /* tasks */
	struct u64map loops; /* to the thread that runs one */
	uint64_t hint;
	unsigned nodes; /* that may still be followed */
	pid_t tid;      /* whose list it is; 0: not one thread's */
	bool ok;
};

static bool read_u64(struct mem *mem, uint64_t address, uint64_t *out)
{
	return mem_read_exact(mem, address, out, sizeof(*out));
}

static bool is_name(struct mem *mem, uint64_t object)
{
	return object % 8 == 0 && (python_is_a(mem, object, "str") || python_is_a(mem, object, "int"));
}

/* Beside the coroutine are what the task waits for and its name, in all versions. */
static void take_parts(const uint64_t *words, uint64_t at, struct python_task_parts *out)
{
	uint64_t index = at / 8;

	*out = (struct python_task_parts){
		.coroutine = words[index],
		.waiter = words[index - 1],
		.name = words[index + 1],
		.loop = words[FUTURE_LOOP / 8],
	};
}

/*
 * The word that leads to a coroutine is the task's. Where another task has its own there may be what acts like a coroutine: it
 * counts while the task waits, since nothing else tells whether it has ended.
 */
static bool find_parts(const struct python_layout *layout, struct mem *mem, uint64_t object, uint64_t size, uint64_t *hint,
		       struct python_task_parts *out)
{
	uint64_t words[LARGE / 8], known = *hint;

	size = size < LARGE ? size & ~UINT64_C(7) : LARGE;
	if (!mem_read_exact(mem, object, words, size))
		return false;
	known = known <= size - 16 ? known : 0;
	if (known && python_is_coroutine(layout, mem, words[known / 8])) {
		take_parts(words, known, out);
		return true;
	}
	for (uint64_t at = FUTURE_LOOP + 16; at + 16 <= size; at += 8)
		if (python_is_coroutine(layout, mem, words[at / 8])) {
			take_parts(words, at, out);
			*hint = at;
			return true;
		}
	if (!known)
		return false;
	take_parts(words, known, out);
	return out->coroutine && out->waiter && is_name(mem, out->name);
}

bool python_task_parts(const struct python_layout *layout, struct mem *mem, uint64_t object, uint64_t *hint,
		       struct python_task_parts *out)
{
	struct python_type type;

	if (object % 8 || !python_type_read(mem, object, &type))
		return false;
	if (type.basic_size > SMALL)
		return find_parts(layout, mem, object, type.basic_size, hint, out);
	*out = (struct python_task_parts){
		.coroutine = python_attribute(layout, mem, object, "_coro"),
		.name = python_attribute(layout, mem, object, "_name"),
		.waiter = python_attribute(layout, mem, object, "_fut_waiter"),
		.loop = python_attribute(layout, mem, object, "_loop"),
	};
	if (python_is_a(mem, out->waiter, "NoneType"))
		out->waiter = 0;
	return python_is_coroutine(layout, mem, out->coroutine) || (out->coroutine && out->waiter && is_name(mem, out->name));
}

static bool has_ended(const struct python_layout *layout, struct mem *mem, uint64_t coroutine)
{
	return python_is_coroutine(layout, mem, coroutine) && !python_coroutine_is_alive(layout, mem, coroutine);
}

/* A loop that runs says in which thread; one that is not written in Python does not. False: it does not say. */
static bool ask_loop(struct listing *l, uint64_t loop, pid_t *tid)
{
	uint64_t number = python_attribute(l->layout, l->mem, loop, "_thread_id"), ident;

	*tid = 0;
	if (!number)
		return false;
	for (size_t i = 0; python_int(l->layout, l->mem, number, &ident) && i < l->threads->len; i++)
		if (l->threads->data[i].thread == ident)
			*tid = l->threads->data[i].tid;
	return true;
}

/* Else the thread that created it is the likeliest. */
static pid_t find_thread(struct listing *l, uint64_t loop)
{
	bool created;
	uint64_t *slot = u64map_put(&l->loops, loop, &created);
	pid_t tid;

	if (slot && created)
		*slot = ask_loop(l, loop, &tid) ? (uint64_t)tid : UINT64_MAX;
	return slot && *slot != UINT64_MAX ? (pid_t)*slot : l->tid;
}

static bool add_task(struct listing *l, uint64_t object)
{
	struct python_task_parts parts;
	bool created;

	if (!u64map_put(&l->seen, object, &created))
		return l->ok = false;
	if (!created || !python_task_parts(l->layout, l->mem, object, &l->hint, &parts) ||
	    has_ended(l->layout, l->mem, parts.coroutine))
		return true;
	l->out->cut |= l->out->len == PYTHON_MAX_TASKS;
	if (l->out->cut)
		return false;
	return l->ok = vec_push(l->out, (struct python_task_entry){.object = object, .tid = find_thread(l, parts.loop)});
}

static bool visit_task(void *ctx, uint64_t object)
{
	return add_task(ctx, object);
}

static bool visit_reference(void *ctx, uint64_t reference)
{
	struct listing *l = ctx;
	uint64_t object;

	return !read_u64(l->mem, reference + REF_OBJECT, &object) || add_task(l, object);
}

static void visit_set(struct listing *l, uint64_t set, python_visit_member visit)
{
	if (l->ok && !l->out->cut && python_is_a(l->mem, set, "set"))
		python_set_visit(l->mem, set, visit, l);
}

/* Up to 3.11 there is one set; then one of those whose loop has yet to begin with them, and one of those that began at once. */
static void list_sets(struct listing *l, uint64_t interp)
{
	static const char *const weak[] = {"_all_tasks", "_scheduled_tasks"};
	uint64_t names = python_module_dict(l->layout, l->mem, interp, "asyncio.tasks");

	for (size_t i = 0; names && i < sizeof(weak) / sizeof(weak[0]); i++) {
		uint64_t set = python_dict_get(l->layout, l->mem, names, weak[i]);

		if (set)
			visit_set(l, python_attribute(l->layout, l->mem, set, "data"), visit_reference);
	}
	if (names)
		visit_set(l, python_dict_get(l->layout, l->mem, names, "_eager_tasks"), visit_task);
}

/* A ring, in which the head stands for no task. */
static void list_nodes(struct listing *l, uint64_t head, pid_t tid)
{
	uint64_t node;

	l->tid = tid;
	if (!read_u64(l->mem, head, &node))
		return;
	for (; node && node != head && l->nodes && l->ok; l->nodes--)
		if (!add_task(l, node - l->layout->at[PY_TASK_NODE]) || !read_u64(l->mem, node, &node))
			break;
	l->out->cut |= !l->nodes;
	l->tid = 0;
}

static void list_interpreter(struct listing *l, uint64_t interp)
{
	const uint64_t *at = l->layout->at;

	for (size_t i = 0; at[PY_TASK_NODE] && i < l->threads->len; i++)
		if (l->threads->data[i].interp == interp)
			list_nodes(l, l->threads->data[i].tstate + at[PY_TSTATE_TASKS], l->threads->data[i].tid);
	if (at[PY_TASK_NODE])
		list_nodes(l, interp + at[PY_INTERP_TASKS], 0); /* of threads that have ended */
	list_sets(l, interp);
}

bool python_tasks_list(const struct python_layout *layout, struct mem *mem, const struct python_threads *threads,
		       struct python_task_list *out)
{
	struct listing l = {.layout = layout, .mem = mem, .threads = threads, .out = out, .nodes = MAX_NODES, .ok = true};
	struct u64map interps = {0};
	bool created;

	out->len = 0;
	out->cut = false;
	for (size_t i = 0; l.ok && layout->at[PY_CORO_TYPE] && i < threads->len; i++) {
		l.ok = u64map_put(&interps, threads->data[i].interp, &created);
		if (l.ok && created)
			list_interpreter(&l, threads->data[i].interp);
	}
	u64map_deinit(&interps);
	u64map_deinit(&l.seen);
	u64map_deinit(&l.loops);
	return l.ok;
}
