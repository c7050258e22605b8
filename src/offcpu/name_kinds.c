/* SPDX-License-Identifier: MIT */
#include "offcpu/name_kinds.h"

#include <string.h>
#include <strings.h>

/*
 * System calls that wait for work, and the C library's functions for them. Not reads: nobody knows what they read from.
 * Nor sleeps: who sleeps again and again looks for something that could have woken it.
 */
static const char *const calls[] = {
	"epoll_wait",   "epoll_pwait",     "epoll_pwait2",    "poll",          "ppoll",   "select",
	"pselect",      "pselect6",        "io_getevents",    "io_pgetevents", "accept",  "accept4",
	"msgrcv",       "mq_receive",      "mq_timedreceive", "pause",         "sigwait", "sigwaitinfo",
	"sigtimedwait", "rt_sigtimedwait", "sigsuspend",      "rt_sigsuspend", NULL,
};

/* The same deeper in the kernel, where the call itself left no frame; and reads from anything but sockets. */
static const char *const kernel_functions[] = {
	"ep_poll",
	"poll_schedule_timeout",
	"io_cqring_wait",
	"read_events",
	"inet_csk_accept",
	"unix_accept",
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

static const char *const library_conditions[] = {
	"pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait", "cnd_wait", "cnd_timedwait", NULL,
};

/*
 * Of Rust, where channels park the thread too; of Go, whose threads without a goroutine sleep on a note; and of Java,
 * where this is how threads of the garbage collector and the one for signals wait.
 */
static const char *const runtime_conditions[] = {
	"Condvar::wait",      "Condvar>::wait",       "::park", "runtime.notesleep",
	"runtime.notetsleep", "PosixSemaphore::wait", NULL,
};

static const char *const library_semaphores[] = {
	"sem_wait",          "sem_timedwait",     "sem_clockwait",       "new_sem_wait",
	"new_sem_wait_fast", "new_sem_wait_slow", "new_sem_wait_common", NULL,
};

/* Of Python, which may call select(), and of Java, which waits for a condition that never comes. */
static const char *const runtime_sleeps[] = {"time_sleep", "pysleep", "JVM_Sleep", "JavaThread::sleep", NULL};

static const char *const library_others[] = {
	"pthread_join",         "pthread_clockjoin_ex",
	"pthread_timedjoin_ex", "pthread_timedjoin_np",
	"pthread_clockjoin_np", "thrd_join",
	"pthread_barrier_wait", NULL,
};

/* Of C++, for std::future. */
static const char *const runtime_others[] = {"atomic_futex_unsigned_base::_M_futex_wait", NULL};

/* The interpreter locks of Python and Ruby, and the locks of Java's objects. */
static const char *const runtime_locks[] = {
	"take_gil",        "PyEval_RestoreThread", "gvl_acquire",       "Monitor::enter",
	"Monitor::EnterI", "Monitor::reenter",     "Monitor::ReenterI", NULL,
};

static bool starts_with(const char *s, const char *start)
{
	return strncmp(s, start, strlen(start)) == 0;
}

/* "poll" is the call of "__x64_sys_poll". */
static bool is_system_call(const char *symbol, const char *name)
{
	const char *call = starts_with(symbol, "__") ? strstr(symbol, "_sys_") : NULL;

	return call && name_is_kernel_function(call + strlen("_sys_"), name);
}

static bool contains(const char *symbol, const char *name)
{
	return strstr(symbol, name);
}

/* "lock" as a word: not in "clock" or "block". */
static bool is_lock_at(const char *name, size_t at)
{
	return strncasecmp(name + at, "mutex", 5) == 0 ||
	       (strncasecmp(name + at, "lock", 4) == 0 && (!at || !strchr("bcBC", name[at - 1])));
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

bool offcpu_is_runtime_lock(const char *symbol)
{
	return kind_if_any(NAME_LOCK, symbol, runtime_locks, contains);
}

unsigned offcpu_name_kinds(const char *symbol)
{
	return kind_if_any(NAME_KERNEL_WORK, symbol, kernel_functions, name_is_kernel_function) |
	       kind_if_any(NAME_KERNEL_WORK, symbol, calls, is_system_call) |
	       kind_if_any(NAME_FUTEX, symbol, kernel_futex, name_is_kernel_function) |
	       kind_if_any(NAME_CALL, symbol, calls, name_is_library_function) |
	       (name_is_library_plumbing(symbol) ? NAME_PLUMBING : 0) |
	       kind_if_any(NAME_CONDITION, symbol, library_conditions, name_is_library_function) |
	       kind_if_any(NAME_CONDITION, symbol, runtime_conditions, contains) |
	       kind_if_any(NAME_SEMAPHORE, symbol, library_semaphores, name_is_library_function) |
	       kind_if_any(NAME_OTHERS, symbol, library_others, name_is_library_function) |
	       kind_if_any(NAME_OTHERS, symbol, runtime_others, contains) |
	       kind_if_any(NAME_SLEEP, symbol, runtime_sleeps, contains) |
	       (is_about_lock(symbol) || offcpu_is_runtime_lock(symbol) ? NAME_LOCK : 0);
}

static unsigned java_kinds(const char *symbol)
{
	static const char *const libraries[] = {"java.", "jdk.", "sun.", NULL};

	return !kind_if_any(NAME_LOCK, symbol, libraries, starts_with) && is_about_lock(name_without_package(symbol))
		       ? NAME_LOCK
		       : 0;
}

unsigned offcpu_frame_kinds(const struct frame *frame)
{
	if (!frame->symbol)
		return 0;
	if (frame->kind == FRAME_KIND_JAVA)
		return java_kinds(frame->symbol);
	if (frame->kind == FRAME_KIND_PYTHON || frame->kind == FRAME_KIND_JS)
		return is_about_lock(frame->symbol) ? NAME_LOCK : 0;
	return offcpu_name_kinds(frame->symbol);
}
