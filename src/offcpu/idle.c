/* SPDX-License-Identifier: MIT */
#include "offcpu/idle.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"

/* What the name of a function says about it. */
enum name_kind {
	NAME_KERNEL_WORK = 1 << 0, /* in the kernel, waiting for something that is work for the thread */
	NAME_FUTEX = 1 << 1,       /* in the kernel: behind condition variables and behind locks */
	NAME_CALL = 1 << 2,        /* in the C library, a call that waits for work */
	NAME_PLUMBING = 1 << 3,    /* in the C library, between such a call and the system call */
	NAME_CONDITION = 1 << 4,   /* a condition variable, or how a runtime parks a thread */
	NAME_LOCK = 1 << 5,        /* something to do with a lock */
	NAME_KINDS = 8,            /* bits */
};

enum { CALL_FRAMES = 16 }; /* the innermost ones, where the waiting call is searched for */

/*
 * System calls that wait for work, and the C library's functions for them. Not reads: nobody knows what they read from.
 */
static const char *const calls[] = {
	"epoll_wait",      "epoll_pwait",     "epoll_pwait2",    "poll",   "ppoll",   "select",      "pselect",
	"pselect6",        "io_getevents",    "io_pgetevents",   "accept", "accept4", "msgrcv",      "mq_receive",
	"nanosleep",       "clock_nanosleep", "mq_timedreceive", "pause",  "sigwait", "sigwaitinfo", "sigtimedwait",
	"rt_sigtimedwait", "sigsuspend",      "rt_sigsuspend",   NULL,
};

/* The same deeper in the kernel, where the call itself left no frame; and reads from anything but sockets. */
static const char *const kernel_functions[] = {
	"ep_poll",
	"poll_schedule_timeout",
	"io_cqring_wait",
	"read_events",
	"inet_csk_accept",
	"unix_accept",
	"do_nanosleep",
	"sigsuspend",
	"do_sigtimedwait",
	"do_msgrcv",
	"pipe_read",
	"anon_pipe_read",
	"fifo_pipe_read",
	"n_tty_read",
	"do_mq_timedreceive",
	"eventfd_read",
	"signalfd_read",
	"timerfd_read",
	"inotify_read",
	"signalfd_read_iter",
	"timerfd_read_iter",
	"fanotify_read",
	NULL,
};

static const char *const kernel_futex[] = {"futex_wait", "futex_wait_requeue_pi", NULL};

static const char *const library_plumbing[] = {"syscall_c", "internal_syscall_c", "cp_", NULL};

static const char *const library_conditions[] = {
	"pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait", "cnd_wait", "cnd_timedwait", NULL,
};

/* Of Rust, where channels park the thread too, and of Go, whose threads without a goroutine sleep on a note. */
static const char *const runtime_conditions[] = {
	"Condvar::wait", "Condvar>::wait", "::park", "runtime.notesleep", "runtime.notetsleep", NULL,
};

/* Besides everything named lock: the interpreter locks of Python and Ruby, and the locks of Java's objects. */
static const char *const locks[] = {"mutex", "take_gil", "PyEval_RestoreThread", "gvl_acquire", "Monitor::enter", NULL};

static bool starts_with(const char *s, const char *start)
{
	return strncmp(s, start, strlen(start)) == 0;
}

/* "do_poll" or "do_poll.constprop.0". */
static bool is_kernel_function(const char *symbol, const char *name)
{
	size_t len = strlen(name);

	return starts_with(symbol, name) && (!symbol[len] || symbol[len] == '.');
}

/* "poll" is the call of "__x64_sys_poll". */
static bool is_system_call(const char *symbol, const char *name)
{
	const char *call = starts_with(symbol, "__") ? strstr(symbol, "_sys_") : NULL;

	return call && is_kernel_function(call + strlen("_sys_"), name);
}

/* "poll" of "__GI___poll", "accept" of "__libc_accept". */
static const char *library_name(const char *symbol)
{
	for (;;) {
		if (*symbol == '_')
			symbol++;
		else if (starts_with(symbol, "GI_"))
			symbol += strlen("GI_");
		else if (starts_with(symbol, "libc_"))
			symbol += strlen("libc_");
		else
			return symbol;
	}
}

/* "clock_nanosleep", "clock_nanosleep@@GLIBC_2.17", "__clock_nanosleep_time64". */
static bool is_library_function(const char *symbol, const char *name)
{
	symbol = library_name(symbol);
	if (!starts_with(symbol, name))
		return false;
	symbol += strlen(name);
	if (starts_with(symbol, "_time"))
		symbol += strlen("_time");
	if (starts_with(symbol, "64"))
		symbol += strlen("64");
	return !*symbol || *symbol == '@' || *symbol == '.';
}

static bool is_plumbing(const char *symbol, const char *name)
{
	return starts_with(library_name(symbol), name);
}

static bool contains(const char *symbol, const char *name)
{
	return strstr(symbol, name);
}

/* "lock" as a word: not in "clock" or "block". */
static bool is_lock_at(const char *name, size_t at)
{
	for (const char *const *lock = locks; *lock; lock++)
		if (strncasecmp(name + at, *lock, strlen(*lock)) == 0)
			return true;
	return strncasecmp(name + at, "lock", 4) == 0 && (!at || !strchr("bcBC", name[at - 1]));
}

/* Parameters and template arguments only say what a function is given: most condition variables are given a lock. */
static bool is_about_lock(const char *name)
{
	size_t depth = 0;

	name += *name == '<'; /* "<RwLock<T>>::read" in Rust: the type is part of the name */
	for (size_t i = 0; name[i]; i++) {
		if (strchr("<([{", name[i]))
			depth++;
		else if (strchr(">)]}", name[i]))
			depth -= depth > 0;
		else if (!depth && is_lock_at(name, i))
			return true;
	}
	return false;
}

static unsigned kind_if_any(unsigned kind, const char *symbol, const char *const *names,
			    bool (*match)(const char *symbol, const char *name))
{
	for (; *names; names++)
		if (match(symbol, *names))
			return kind;
	return 0;
}

static unsigned find_kinds(const char *symbol)
{
	return kind_if_any(NAME_KERNEL_WORK, symbol, kernel_functions, is_kernel_function) |
	       kind_if_any(NAME_KERNEL_WORK, symbol, calls, is_system_call) |
	       kind_if_any(NAME_FUTEX, symbol, kernel_futex, is_kernel_function) |
	       kind_if_any(NAME_CALL, symbol, calls, is_library_function) |
	       kind_if_any(NAME_PLUMBING, symbol, library_plumbing, is_plumbing) |
	       kind_if_any(NAME_CONDITION, symbol, library_conditions, is_library_function) |
	       kind_if_any(NAME_CONDITION, symbol, runtime_conditions, contains) |
	       (is_about_lock(symbol) ? NAME_LOCK : 0);
}

struct idle {
	struct offcpu_profile *profile;
	struct u64map names;   /* address of a symbol to a hash of it above its kinds: the same few are on all stacks */
	struct u64map threads; /* by number and start, to index + 1 */
	struct u64map times;   /* place to the time for which its thread waits there */
	VEC(uint64_t) places;  /* of each row; 0: the thread is not idle there */
};

static void idle_deinit(struct idle *idle)
{
	u64map_deinit(&idle->names);
	u64map_deinit(&idle->threads);
	u64map_deinit(&idle->times);
	vec_deinit(&idle->places);
}

/* The kinds of the frame's name, and a hash of it; without a name the address stands for it. */
static bool find_name(struct idle *idle, const struct frame *frame, unsigned *kinds, uint64_t *hash)
{
	uint64_t *name;
	bool created;

	*kinds = 0;
	*hash = frame->address;
	if (!frame->symbol)
		return true;
	name = u64map_put(&idle->names, (uintptr_t)frame->symbol, &created);
	if (!name)
		return false;
	if (created)
		*name = hash_bytes(HASH_SEED, frame->symbol, strlen(frame->symbol)) << NAME_KINDS |
			find_kinds(frame->symbol);
	*kinds = *name & ((1u << NAME_KINDS) - 1);
	*hash = *name >> NAME_KINDS;
	return true;
}

/* Python waits for its pools' queues with a lock that is not really one: adding to the queue releases it. */
static bool is_python_queue(const struct stack *stack, size_t i)
{
	const char *symbol = stack->data[i].symbol, *caller = i + 1 < stack->len ? stack->data[i + 1].symbol : NULL;

	return symbol && caller && strcmp(symbol, "PyThread_acquire_lock_timed") == 0 &&
	       starts_with(caller, "_queue_SimpleQueue_get");
}

/* What the names on a stack say about it. */
struct stack_traits {
	unsigned kinds;     /* of all names */
	bool named;         /* at least one frame has a name */
	size_t call;        /* number of innermost frames that belong to the waiting call */
	bool condition;     /* it waits for a condition variable */
	uint64_t functions; /* a hash of the other frames' names */
};

/* Only plumbing may come before the call; anything its library needs may come before a condition variable. */
static bool find_call(struct idle *idle, const struct stack *stack, struct stack_traits *traits)
{
	bool plumbing = true;
	unsigned kinds;
	uint64_t hash;

	for (size_t i = 0; i < stack->len && i < CALL_FRAMES; i++) {
		if (!find_name(idle, &stack->data[i], &kinds, &hash))
			return false;
		if (is_python_queue(stack, i))
			kinds = NAME_CONDITION;
		if ((plumbing && kinds & NAME_CALL) || kinds & NAME_CONDITION)
			traits->call = i + 1;
		else if (traits->condition)
			break;
		traits->condition |= (kinds & NAME_CONDITION) != 0;
		plumbing &= (kinds & NAME_PLUMBING) != 0;
	}
	return true;
}

static bool read_stack(struct idle *idle, const struct stack *stack, struct stack_traits *traits)
{
	*traits = (struct stack_traits){.functions = HASH_SEED};
	if (!stack)
		return true;
	if (!find_call(idle, stack, traits))
		return false;
	for (size_t i = 0; i < stack->len; i++) {
		unsigned kinds;
		uint64_t hash;

		if (!find_name(idle, &stack->data[i], &kinds, &hash))
			return false;
		traits->kinds |= is_python_queue(stack, i) ? 0 : kinds;
		traits->named |= stack->data[i].symbol != NULL;
		if (i >= traits->call)
			traits->functions = hash_u64(traits->functions, hash);
	}
	return true;
}

static bool is_for_work(const struct stack_traits *kernel, const struct stack_traits *user)
{
	if (user->kinds & NAME_LOCK)
		return false;
	if (!kernel->named)
		return user->call;
	return kernel->kinds & NAME_FUTEX ? user->condition : (kernel->kinds & NAME_KERNEL_WORK) != 0;
}

static uint64_t thread_key(pid_t pid, pid_t tid, uint64_t start_ns)
{
	return hash_u64(hash_u64(HASH_SEED, (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid), start_ns);
}

static uint64_t row_key(const struct offcpu_row *row)
{
	return thread_key(row->pid, row->tid, row->thread_start_ns);
}

static struct offcpu_thread *find_thread(const struct idle *idle, const struct offcpu_row *row)
{
	const uint64_t *index = u64map_find(&idle->threads, row_key(row));

	return index ? &idle->profile->threads.data[*index - 1] : NULL;
}

/* A thread that is awake has work, even if it gets no CPU for it. */
static uint64_t asleep_ns(const struct offcpu_sum *sum)
{
	return sum->total_ns > sum->runnable_ns ? sum->total_ns - sum->runnable_ns : 0;
}

/* A number for where a thread waits for work; 0: it does not, or is not idle there because it waits too little. */
static bool find_place(struct idle *idle, const struct offcpu_row *row, uint64_t *place)
{
	const struct offcpu_thread *thread = row->state == 'S' ? find_thread(idle, row) : NULL;
	struct stack_traits kernel, user;

	*place = 0;
	if (!thread || !offcpu_is_nearly_all(asleep_ns(&thread->sum), idle->profile->duration_ns))
		return true;
	if (!read_stack(idle, row->kernel, &kernel) || !read_stack(idle, row->user, &user))
		return false;
	if (is_for_work(&kernel, &user))
		*place = hash_u64(row->user ? user.functions : kernel.functions, row_key(row));
	return true;
}

static bool find_threads(struct idle *idle)
{
	for (size_t i = 0; i < idle->profile->threads.len; i++) {
		struct offcpu_thread *thread = &idle->profile->threads.data[i];
		uint64_t *index;
		bool created;

		thread->idle_ns = 0;
		index = u64map_put(&idle->threads, thread_key(thread->pid, thread->tid, thread->start_ns), &created);
		if (!index)
			return false;
		*index = i + 1;
	}
	return true;
}

static bool find_places(struct idle *idle)
{
	for (size_t i = 0; i < idle->profile->rows.len; i++) {
		const struct offcpu_row *row = &idle->profile->rows.data[i];
		uint64_t place, *ns;
		bool created;

		if (!find_place(idle, row, &place) || !vec_push(&idle->places, place))
			return false;
		ns = place ? u64map_put(&idle->times, place, &created) : NULL;
		if (ns)
			*ns += asleep_ns(&row->sum);
		else if (place)
			return false;
	}
	return true;
}

bool offcpu_mark_idle(struct offcpu_profile *profile)
{
	_cleanup_(idle_deinit) struct idle idle = {.profile = profile};

	if (!find_threads(&idle) || !find_places(&idle))
		return false;
	for (size_t i = 0; i < profile->rows.len; i++) {
		struct offcpu_row *row = &profile->rows.data[i];
		uint64_t place = idle.places.data[i];

		row->idle = place && offcpu_is_nearly_all(*u64map_find(&idle.times, place), profile->duration_ns);
		if (row->idle)
			find_thread(&idle, row)->idle_ns += row->sum.total_ns;
	}
	return true;
}
