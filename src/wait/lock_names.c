/* SPDX-License-Identifier: MIT */
#include "wait/lock_names.h"

#include <string.h>

#include "wait/rust_names.h"

enum { INNERMOST = 8 }; /* frames that are looked at for the function that waits */

/* Functions of C libraries that wait, also inner ones: those that are exported may have jumped to them. */
static const struct {
	const char *name;
	enum wait_kind kind;
} functions[] = {
	{"pthread_mutex_lock", WAIT_MUTEX},
	{"pthread_mutex_lock_full", WAIT_MUTEX},
	{"pthread_mutex_timedlock", WAIT_MUTEX},
	{"pthread_mutex_clocklock", WAIT_MUTEX},
	{"pthread_mutex_clocklock_common", WAIT_MUTEX},
	{"pthread_mutex_cond_lock", WAIT_MUTEX}, /* behind a condition variable */
	{"pthread_mutex_cond_lock_full", WAIT_MUTEX},
	{"mtx_lock", WAIT_MUTEX},
	{"mtx_timedlock", WAIT_MUTEX},
	{"pthread_rwlock_rdlock", WAIT_READ_LOCK},
	{"pthread_rwlock_rdlock_full", WAIT_READ_LOCK},
	{"pthread_rwlock_timedrdlock", WAIT_READ_LOCK},
	{"pthread_rwlock_clockrdlock", WAIT_READ_LOCK},
	{"pthread_rwlock_wrlock", WAIT_WRITE_LOCK},
	{"pthread_rwlock_wrlock_full", WAIT_WRITE_LOCK},
	{"pthread_rwlock_timedwrlock", WAIT_WRITE_LOCK},
	{"pthread_rwlock_clockwrlock", WAIT_WRITE_LOCK},
	{"pthread_cond_wait", WAIT_CONDITION},
	{"pthread_cond_wait_common", WAIT_CONDITION},
	{"pthread_cond_timedwait", WAIT_CONDITION},
	{"pthread_cond_clockwait", WAIT_CONDITION},
	{"cnd_wait", WAIT_CONDITION},
	{"cnd_timedwait", WAIT_CONDITION},
	{"sem_wait", WAIT_SEMAPHORE},
	{"sem_timedwait", WAIT_SEMAPHORE},
	{"sem_clockwait", WAIT_SEMAPHORE},
	{"new_sem_wait", WAIT_SEMAPHORE},
	{"new_sem_wait_slow", WAIT_SEMAPHORE},
	{"pthread_barrier_wait", WAIT_BARRIER},
	{"pthread_once", WAIT_ONCE},
	{"pthread_once_slow", WAIT_ONCE},
	{"pthread_once_full", WAIT_ONCE},
	{"pthread_join", WAIT_JOIN},
	{"pthread_timedjoin_np", WAIT_JOIN},
	{"pthread_timedjoin_ex", WAIT_JOIN},
	{"pthread_clockjoin_np", WAIT_JOIN},
	{"pthread_clockjoin_ex", WAIT_JOIN},
	{"thrd_join", WAIT_JOIN},
	{"flockfile", WAIT_STREAM},
	{"lockfile", WAIT_STREAM},
};

/*
 * Functions of C++'s library, by a part of their names: std::future, a static variable that is initialized, and std::counting_semaphore.
 * They call the kernel by themselves, and none records an owner.
 */
static const struct {
	const char *part;
	enum wait_kind kind;
} cxx[] = {
	{"std::__atomic_futex_unsigned_base::_M_futex_wait", WAIT_FUTURE},
	{"__cxa_guard_acquire", WAIT_ONCE},
	{"std::__atomic_semaphore::_M_acquire", WAIT_SEMAPHORE},
};

static bool starts_with(const char *s, const char *start)
{
	return strncmp(s, start, strlen(start)) == 0;
}

static enum wait_kind kind_of_function(const char *symbol)
{
	const char *inner = name_in_library(symbol);

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (inner[0] == functions[i].name[0] && name_is_library_function(inner, functions[i].name))
			return functions[i].kind;
	return WAIT_NOTHING;
}

static enum wait_kind kind_of_cxx(const char *symbol)
{
	for (size_t i = 0; i < sizeof(cxx) / sizeof(cxx[0]); i++)
		if (strstr(symbol, cxx[i].part))
			return cxx[i].kind;
	return WAIT_NOTHING;
}

/*
 * What those functions call to wait, by the beginning of the name: "__futex_abstimed_wait_common", "__lll_lock_wait", "do_futex_wait";
 * musl's are "__futexwait", "__wait" and "__timedwait_cp".
 */
static bool is_inner_function(const char *symbol)
{
	static const char *const starts[] = {"futex", "lll_", "do_futex_wait", "timedwait", "syscall"};
	const char *inner = name_in_library(symbol);

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (starts_with(inner, starts[i]))
			return true;
	return name_is_library_function(inner, "wait") || name_is_library_plumbing(symbol);
}

static enum wait_kind find_kind(const struct stack *user, const struct lock_names *names)
{
	enum wait_kind kind = names->own ? rust_wait(user) : WAIT_NOTHING;

	for (size_t i = 0; kind == WAIT_NOTHING && i < user->len && i < INNERMOST; i++) {
		const struct frame *frame = &user->data[i];

		if (frame->module != user->data[0].module && !names->own)
			break;
		if (frame->symbol)
			kind = names->own ? kind_of_cxx(frame->symbol) : kind_of_function(frame->symbol);
		/* In a static program all is one module: further out a library's function may be one that has called the program's. */
		if (frame->symbol && !names->own && !names->glibc && !names->musl && !is_inner_function(frame->symbol))
			break;
	}
	return kind;
}

/* The name of the file whose code has called the kernel; "": it is not known. */
static const char *caller_file(const struct frame *innermost)
{
	const struct module_info *module = innermost->module;
	const char *slash = module && module->path ? strrchr(module->path, '/') : NULL;

	return slash ? slash + 1 : "";
}

static bool is_glibc(const char *file)
{
	return starts_with(file, "libc.so.6") || starts_with(file, "libc-2.") || starts_with(file, "libpthread");
}

static bool is_musl(const char *file)
{
	return starts_with(file, "ld-musl-") || starts_with(file, "libc.musl-") || strcmp(file, "libc.so") == 0;
}

struct lock_names lock_names_of(const struct stack *user)
{
	struct lock_names names = {.kind = WAIT_NOTHING};
	const char *file;

	if (!user || !user->len)
		return names;
	names.own = user->data[0].symbol && strcmp(user->data[0].symbol, "syscall") == 0;
	file = names.own ? "" : caller_file(&user->data[0]);
	names.glibc = is_glibc(file);
	names.musl = is_musl(file);
	names.kind = find_kind(user, &names);
	return names;
}
