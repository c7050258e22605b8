/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "wait/library_frames.h"
#include "wait/runtime_locks.h"
#include "wait/waits.h"

enum { WAITER = 0, OWNER = 1, OTHER = 2, THREADS = 3 };

/* A process with three threads in futexes, which were read in pass 1, and seen for the last time in pass 3. */
struct fixture {
	struct snapshot *snap;
	struct trace trace;
	struct stack stack;
	struct frame frames[8];
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){.snap = snapshot_create(100, arch_host())};
	f->trace.snap = f->snap;
	for (int i = 0; i < THREADS; i++) {
		struct snap_thread thread = {
			.tid = 100 + i,
			.state = 'S',
			.status = THREAD_CAPTURED,
			.capture = CAPTURE_ASLEEP,
			.still = STILL_THROUGHOUT,
			.read_in = 1,
			.still_in = 3,
			.syscall = {.state = SYSCALL_IN, .args = {0x1000 * (uint64_t)(i + 1), 0x80}},
		};

		while (!arch_is_futex(f->snap->arch, thread.syscall.nr))
			thread.syscall.nr++;
		assert_true(vec_push(&f->snap->threads, thread));
	}
	f->stack.data = f->frames;
	for (int i = 0; i < THREADS; i++)
		assert_true(vec_push(&f->trace.threads, (struct trace_thread){.snap = f->snap, .thread = &f->snap->threads.data[i], .user = &f->stack}));
}

static void end(struct fixture *f)
{
	vec_deinit(&f->trace.threads);
	snapshot_destroy(f->snap);
}

static void add_frame(struct fixture *f, enum frame_kind kind, const char *symbol, const char *file)
{
	f->frames[f->stack.len++] = (struct frame){.kind = kind, .symbol = symbol, .file = file};
}

static struct runtime_wait *told(struct fixture *f, int thread)
{
	return &f->trace.threads.data[thread].told;
}

static struct snap_thread *thread(struct fixture *f, int i)
{
	return &f->snap->threads.data[i];
}

static const struct wait *look(struct fixture *f)
{
	assert_true(waits_find(&f->trace));
	return &f->trace.threads.data[WAITER].wait;
}

static const struct runtime_wait monitor = {
	.kind = WAIT_MONITOR, .address = 0x77, .type = "Account", .holder = HOLDER_THREAD, .owner = 101, .count = 2, .later = true, .endless = true};

static void test_told(void **state)
{
	const struct wait *w;
	struct fixture f;

	begin(&f);
	*told(&f, WAITER) = monitor;
	thread(&f, WAITER)->syscall.args[3] = 0x5000; /* a time limit, which ends nothing */
	w = look(&f);
	assert_int_equal(w->kind, WAIT_MONITOR);
	assert_int_equal(w->address, 0x77);
	assert_string_equal(w->type, "Account");
	assert_int_equal(w->owner, 101);
	assert_int_equal(w->owner_pid, 100);
	assert_int_equal(w->count, 2);
	assert_false(w->timed);
	assert_true(w->certain);
	end(&f);
}

/* What makes it doubtful, one at a time. */
static void test_doubts(void **state)
{
	enum { OWNER_RAN, WOKEN, NEVER_STILL, MOVED_OBJECTS, RUNNING_OWNER, DOUBTS };

	for (int doubt = 0; doubt < DOUBTS; doubt++) {
		struct fixture f;

		begin(&f);
		*told(&f, WAITER) = monitor;
		if (doubt == OWNER_RAN)
			thread(&f, OWNER)->still_in = 2;
		if (doubt == WOKEN)
			thread(&f, WAITER)->woken = true;
		if (doubt == NEVER_STILL)
			thread(&f, OWNER)->still = STILL_NEVER;
		if (doubt == MOVED_OBJECTS)
			told(&f, WAITER)->doubtful = true;
		if (doubt == RUNNING_OWNER)
			told(&f, WAITER)->owner = 500; /* no thread of the snapshot */
		assert_int_equal(look(&f)->kind, WAIT_MONITOR);
		assert_false(look(&f)->certain);
		end(&f);
	}
}

/* By what the owner does: as long as both were seen not to have run since, and never for certain. */
static void test_inferred(void **state)
{
	const struct runtime_wait lock = {.kind = WAIT_PYTHON_LOCK, .address = 0x77, .holder = HOLDER_INFERRED, .owner = 101, .later = true};
	struct fixture f;

	begin(&f);
	*told(&f, WAITER) = lock;
	add_frame(&f, FRAME_KIND_PYTHON, "Semaphore.acquire", "/lib/threading.py"); /* whatever it is called by: it is that lock */
	assert_int_equal(look(&f)->kind, WAIT_PYTHON_LOCK);
	assert_int_equal(look(&f)->holder, HOLDER_INFERRED);
	assert_int_equal(look(&f)->owner, 101);
	assert_int_equal(look(&f)->owner_pid, 100);
	assert_false(look(&f)->certain);
	thread(&f, OWNER)->still_in = 2;
	assert_int_equal(look(&f)->holder, HOLDER_NOT_RECORDED);
	assert_int_equal(look(&f)->owner, 0);
	assert_int_equal(look(&f)->owner_pid, 0);
	assert_int_equal(look(&f)->kind, WAIT_PYTHON_SEMAPHORE);
	thread(&f, OWNER)->still_in = 3;
	told(&f, WAITER)->owner = 500; /* no thread of the snapshot */
	assert_int_equal(look(&f)->holder, HOLDER_NOT_RECORDED);
	end(&f);
}

/* It has run before it was read: what was read is of something else. */
static void test_late(void **state)
{
	struct fixture f;

	begin(&f);
	*told(&f, WAITER) = monitor;
	thread(&f, WAITER)->still_in = 2;
	assert_int_equal(look(&f)->kind, WAIT_FUTEX);
	f.trace.threads.data[WAITER].runtime.state = "BLOCKED";
	assert_int_equal(look(&f)->kind, WAIT_MONITOR);
	assert_int_equal(look(&f)->holder, HOLDER_NOT_RECORDED);
	assert_int_equal(look(&f)->address, 0);
	end(&f);
}

/* A lock of java.util.concurrent is waited for by parking, and by nothing else. */
static void test_parking(void **state)
{
	struct fixture f;

	begin(&f);
	*told(&f, WAITER) = monitor;
	told(&f, WAITER)->kind = WAIT_JAVA_LOCK;
	assert_false(look(&f)->certain);
	add_frame(&f, FRAME_KIND_NATIVE, "Unsafe_Park", NULL);
	add_frame(&f, FRAME_KIND_JAVA, "jdk.internal.misc.Unsafe.park", NULL);
	assert_true(look(&f)->certain);
	end(&f);
}

static void test_join(void **state)
{
	struct fixture f;

	begin(&f);
	*told(&f, WAITER) = (struct runtime_wait){.kind = WAIT_NOTIFICATION, .address = 0x77, .subject = 102, .later = true};
	add_frame(&f, FRAME_KIND_JAVA, "java.lang.Object.wait", NULL);
	add_frame(&f, FRAME_KIND_JAVA, "Program.run", NULL);
	assert_int_equal(look(&f)->kind, WAIT_NOTIFICATION);
	assert_int_equal(look(&f)->owner, 0);
	f.frames[1].symbol = "java.lang.Thread.join";
	assert_int_equal(look(&f)->kind, WAIT_JAVA_JOIN);
	assert_int_equal(look(&f)->owner, 102);
	assert_true(look(&f)->certain);
	told(&f, WAITER)->subject = 100; /* itself: how a main thread is kept from ending */
	assert_int_equal(look(&f)->kind, WAIT_NOTIFICATION);
	assert_int_equal(look(&f)->owner, 0);
	assert_false(look(&f)->certain);
	end(&f);
}

static void add_copy(struct fixture *f, pid_t tid, const uint32_t *words)
{
	const struct snap_copy copy = {.tid = tid, .copy = {.start = 0x2000, .len = WAIT_BYTES, .data = (uint8_t *)words}};

	assert_true(vec_push(&f->snap->copies, copy));
}

/*
 * The owner has the GIL and waits for a mutex of the waiter's, which gets up every few milliseconds: it has run at the last look, but what the owner
 * waits for was read again, and the owner has stood still.
 */
static void begin_gil(struct fixture *f, const uint32_t *words)
{
	begin(f);
	*told(f, WAITER) = (struct runtime_wait){.kind = WAIT_GIL, .address = 0x99, .holder = HOLDER_THREAD, .owner = 101, .endless = true};
	thread(f, WAITER)->still_in = 2;
	thread(f, WAITER)->read_in = 2;
	thread(f, WAITER)->still = STILL_IN_WINDOW;
	thread(f, OWNER)->syscall.args[2] = 2;
	add_frame(f, FRAME_KIND_NATIVE, "pthread_mutex_lock", NULL);
	add_copy(f, 101, words);
	add_copy(f, 0, words);
}

static bool mutex_is_certain(struct fixture *f)
{
	const struct wait *w = &f->trace.threads.data[OWNER].wait;

	assert_true(waits_find(&f->trace));
	assert_int_equal(w->kind, WAIT_MUTEX);
	assert_int_equal(w->owner, 100);
	return w->certain;
}

static void test_gil(void **state)
{
	static const uint32_t words[WAIT_BYTES / 4] = {2, 0, 100, 1};
	struct fixture f;

	begin_gil(&f, words);
	assert_true(mutex_is_certain(&f));
	assert_int_equal(look(&f)->kind, WAIT_GIL);
	assert_true(look(&f)->certain && !look(&f)->timed);
	told(&f, WAITER)->doubtful = true;
	assert_false(mutex_is_certain(&f));
	told(&f, WAITER)->doubtful = false;
	told(&f, WAITER)->owner = 102; /* another has the GIL, */
	assert_true(mutex_is_certain(&f));
	thread(&f, OTHER)->still_in = 2; /* and has let go of it, perhaps */
	assert_false(mutex_is_certain(&f));
	told(&f, WAITER)->owner = 101;
	f.snap->copies.len = 1; /* it was not read again */
	assert_false(mutex_is_certain(&f));
	end(&f);
}

/* A function of the program's own that is called like one of the library, and waits in an extension for a mutex. */
static void test_mutex_below_frames(void **state)
{
	static const uint32_t words[WAIT_BYTES / 4] = {2, 0, 100, 1};
	struct fixture f;

	begin(&f);
	thread(&f, OWNER)->syscall.args[2] = 2;
	add_frame(&f, FRAME_KIND_NATIVE, "pthread_mutex_lock", NULL);
	add_frame(&f, FRAME_KIND_PYTHON, "get", "/srv/myapp/queue.py");
	add_copy(&f, 101, words);
	assert_true(mutex_is_certain(&f));
	assert_int_equal(look(&f)->kind, WAIT_PYTHON_ITEM); /* of this one no owner is known */
	end(&f);
}

/* A thread waits for a mutex that processes share, in a process that has numbers of its own. */
static void test_numbers_of_a_namespace(void **state)
{
	static const uint32_t words[WAIT_BYTES / 4] = {2, 0, 1, 1, 128};
	const struct map_entry map = {.start = 0x2000, .end = 0x3000, .inode = 7, .perms = MAP_PERM_WRITE | MAP_PERM_SHARED, .path = "/memory"};
	const struct map_entry above = {.start = 1ull << 40, .end = (1ull << 40) + 0x1000, .path = ""}; /* a program of 64 bits */
	struct fixture f;

	begin(&f);
	f.snap->inner_pid = 1;
	for (int i = 0; i < THREADS; i++)
		thread(&f, i)->inner_tid = 1 + i;
	thread(&f, OWNER)->syscall.args[1] = 0; /* no private futex */
	thread(&f, OWNER)->syscall.args[2] = 2;
	add_frame(&f, FRAME_KIND_NATIVE, "pthread_mutex_lock", NULL);
	add_copy(&f, 101, words);
	assert_true(vec_push(&f.snap->maps, map) && vec_push(&f.snap->maps, above));
	assert_true(mutex_is_certain(&f));
	f.snap->has_doubtful_numbers = true; /* a process of another namespace has that memory */
	assert_false(mutex_is_certain(&f));
	f.snap->has_doubtful_numbers = false;
	f.snap->maps.data[0].perms = MAP_PERM_WRITE; /* nobody has looked for one */
	assert_false(mutex_is_certain(&f));
	end(&f);
}

static const char threading[] = "/usr/lib/python3.9/threading.py", queue_py[] = "/usr/lib/python3.9/queue.py";

static enum wait_kind by_frames(const char *const *symbols, const char *const *files)
{
	struct fixture f = {0};

	f.stack.data = f.frames;
	add_frame(&f, FRAME_KIND_NATIVE, "sem_wait", NULL);
	for (size_t i = 0; symbols[i]; i++)
		add_frame(&f, FRAME_KIND_PYTHON, symbols[i], files[i]);
	return library_wait_python(&f.stack);
}

#define BY_FRAMES(files, ...) by_frames((const char *const[]){__VA_ARGS__, NULL}, files)

/* With the names of before 3.11, and with later ones. */
static void test_library(void **state)
{
	static const char *const all[] = {threading, threading, threading, threading};
	static const char *const queues[] = {threading, queue_py, "/srv/app.py"};
	static const char *const other[] = {"/srv/threading.pyc", NULL};
	static const char *const program[] = {"/srv/app.py", threading};

	assert_int_equal(BY_FRAMES(all, "wait"), WAIT_PYTHON_CONDITION);
	assert_int_equal(BY_FRAMES(all, "Condition.wait", "Condition.wait_for"), WAIT_PYTHON_CONDITION);
	assert_int_equal(BY_FRAMES(all, "wait", "wait"), WAIT_PYTHON_EVENT);
	assert_int_equal(BY_FRAMES(all, "Condition.wait", "Event.wait"), WAIT_PYTHON_EVENT);
	assert_int_equal(BY_FRAMES(all, "wait", "wait_for", "_wait", "wait"), WAIT_PYTHON_BARRIER);
	assert_int_equal(BY_FRAMES(all, "wait", "acquire"), WAIT_PYTHON_SEMAPHORE);
	assert_int_equal(BY_FRAMES(all, "_wait_for_tstate_lock", "join"), WAIT_PYTHON_JOIN);
	assert_int_equal(BY_FRAMES(queues, "Condition.wait", "Queue.get", "handle"), WAIT_PYTHON_ITEM);
	assert_int_equal(BY_FRAMES(queues, "wait", "put"), WAIT_PYTHON_ROOM);
	assert_int_equal(BY_FRAMES(queues, "wait", "join"), WAIT_PYTHON_DONE);
	assert_int_equal(BY_FRAMES(other, "wait"), WAIT_NOTHING);
	assert_int_equal(BY_FRAMES(program, "wait", "wait"), WAIT_NOTHING); /* a function of the program's own */
}

static enum wait_kind in_extension(const char *inner, const char *path, const char *function, const char *file)
{
	const struct module_info module = {.path = path};
	struct fixture f = {0};

	f.stack.data = f.frames;
	add_frame(&f, FRAME_KIND_NATIVE, inner, NULL);
	add_frame(&f, FRAME_KIND_NATIVE, NULL, NULL);
	f.frames[1].module = &module;
	if (function)
		add_frame(&f, FRAME_KIND_PYTHON, function, file);
	return library_wait_python(&f.stack);
}

/* Modules that are not written in Python, below a function that is. */
static void test_extensions(void **state)
{
	static const char queue[] = "/usr/lib/python3.11/lib-dynload/_queue.cpython-311.so", processes[] = "/lib/_multiprocessing.cpython-313.so";
	static const char acquire[] = "PyThread_acquire_lock_timed", synchronize[] = "/usr/lib/python3.11/multiprocessing/synchronize.py";

	assert_int_equal(in_extension(acquire, queue, "work", "/srv/app.py"), WAIT_PYTHON_ITEM);
	assert_int_equal(in_extension("sem_wait", processes, "work", "/srv/app.py"), WAIT_SEMAPHORE);
	assert_int_equal(in_extension("sem_wait", processes, "Condition.wait", synchronize), WAIT_PYTHON_CONDITION);
	assert_int_equal(in_extension(acquire, "/lib/_queues.so", "work", "/srv/app.py"), WAIT_NOTHING);
	assert_int_equal(in_extension("PyEval_RestoreThread", queue, "work", "/srv/app.py"), WAIT_NOTHING); /* it has got the item */
	assert_int_equal(in_extension(acquire, queue, NULL, NULL), WAIT_NOTHING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told),	cmocka_unit_test(test_doubts), cmocka_unit_test(test_late), cmocka_unit_test(test_parking),
		cmocka_unit_test(test_inferred),
		cmocka_unit_test(test_join),	cmocka_unit_test(test_gil),
		cmocka_unit_test(test_numbers_of_a_namespace), cmocka_unit_test(test_mutex_below_frames),    cmocka_unit_test(test_library), cmocka_unit_test(test_extensions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
