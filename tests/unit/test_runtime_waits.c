/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "offcpu/runtime_waits.h"

enum { MOST_FRAMES = 8 };

struct expected {
	struct frame frames[MOST_FRAMES]; /* innermost first; kind tells where they end */
	enum frame_wait wait;
	size_t calls; /* frames that belong to the wait */
};

#define NATIVE(name)                                                                                                   \
	{                                                                                                              \
		.symbol = (name), .kind = FRAME_KIND_NATIVE, .raw = 1                                                  \
	}
#define NAMELESS(file)                                                                                                 \
	{                                                                                                              \
		.module = &(struct module_info){.path = (file)}, .kind = FRAME_KIND_NATIVE, .raw = 1                   \
	}
#define EXPORTED(name, file)                                                                                           \
	{                                                                                                              \
		.symbol = (name), .module = &(struct module_info){.path = (file)}, .raw = 1                            \
	}
#define JAVA(name)                                                                                                     \
	{                                                                                                              \
		.symbol = (name), .kind = FRAME_KIND_JAVA, .raw = 1                                                    \
	}
#define PYTHON(name, path)                                                                                             \
	{                                                                                                              \
		.symbol = (name), .kind = FRAME_KIND_PYTHON, .file = (path), .raw = 1                                  \
	}

#define PARKER  NATIVE("pthread_cond_wait"), NATIVE("Parker::park(bool, long)"), JAVA("jdk.internal.misc.Unsafe.park")
#define LOCKS   "java.util.concurrent.locks."
#define LIBRARY "/usr/lib/python3.11/"
#define PROGRAM "/usr/bin/python3.11"
#define JVM     "/usr/lib/jvm/java-8-openjdk/jre/lib/server/libjvm.so"
#define METHOD(name, how)                                                                                              \
	{                                                                                                              \
		.symbol = (name), .kind = FRAME_KIND_JAVA, .tier = (how), .raw = 1                                      \
	}

static void check(const struct expected *expected, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct stack user = {.data = (struct frame *)expected[i].frames};
		enum frame_wait wait;
		size_t calls;

		while (user.len < MOST_FRAMES && user.data[user.len].raw)
			user.len++;
		wait = offcpu_runtime_wait(&user, &calls);
		if (wait != expected[i].wait || calls != expected[i].calls)
			fail_msg("%zu: %d, %zu frames", i, wait, calls);
	}
}

#define CHECK(expected) check(expected, sizeof(expected) / sizeof((expected)[0]))

static void test_java(void **state)
{
	const struct expected expected[] = {
		{{NATIVE("JVM_Sleep"), JAVA("java.lang.Thread.sleep"), JAVA("W.main")}, RUNTIME_WAIT_SLEEP, 2},
		{{NATIVE("JVM_MonitorWait"), JAVA("java.lang.Object.wait0"), JAVA("W.main")},
		 RUNTIME_WAIT_CONDITION,
		 2},
		{{NATIVE("JVM_MonitorWait"), JAVA("java.lang.Object.wait"), JAVA("java.lang.Thread.join"),
		  JAVA("W.main")},
		 RUNTIME_WAIT_OTHERS,
		 3},
		{{PARKER, JAVA(LOCKS "LockSupport.park"), JAVA(LOCKS "AbstractQueuedSynchronizer.acquire"),
		  JAVA(LOCKS "ReentrantLock$Sync.lock"), JAVA("W.main")},
		 RUNTIME_WAIT_LOCK,
		 6},
		{{PARKER, JAVA(LOCKS "LockSupport.park"), JAVA(LOCKS "AbstractQueuedSynchronizer$ConditionNode.block"),
		  JAVA("java.util.concurrent.ForkJoinPool.managedBlock"),
		  JAVA(LOCKS "AbstractQueuedSynchronizer$ConditionObject.await"),
		  JAVA("java.util.concurrent.LinkedBlockingQueue.take")},
		 RUNTIME_WAIT_CONDITION,
		 7},
		{{PARKER, JAVA(LOCKS "LockSupport.parkNanos"), JAVA("java.util.concurrent.ForkJoinPool.awaitWork")},
		 RUNTIME_WAIT_CONDITION,
		 4},
		{{PARKER, JAVA(LOCKS "AbstractQueuedSynchronizer.acquire"),
		  JAVA("java.util.concurrent.Semaphore.acquire")},
		 RUNTIME_WAIT_SEMAPHORE,
		 5},
		{{PARKER, JAVA(LOCKS "LockSupport.park"), JAVA("org.example.locks.Inbox.receive")},
		 RUNTIME_WAIT_CONDITION,
		 4},
		{{PARKER, JAVA(LOCKS "LockSupport.park"), JAVA("org.example.SpinLock.enter")}, RUNTIME_WAIT_LOCK, 4},
		/* Another thread has the monitor, also when it is to be had again after Object.wait(). */
		{{NATIVE("pthread_cond_wait"), NATIVE("ObjectMonitor::enter(JavaThread*)"), JAVA("W.main")},
		 RUNTIME_WAIT_LOCK,
		 1},
		{{NATIVE("pthread_cond_wait"), NATIVE("ObjectMonitor::ReenterI(JavaThread*, ObjectWaiter*)"),
		  JAVA("java.lang.Object.wait")},
		 RUNTIME_WAIT_LOCK,
		 1},
		{{NATIVE("read"), JAVA("sun.nio.ch.FileDispatcherImpl.read0")}, RUNTIME_WAIT_UNKNOWN, 0},
		/* 8, whose file has no names: of a method that is native it could be anything */
		{{NATIVE("pthread_cond_wait"), NAMELESS(JVM), METHOD("W.enter", "interpreted")}, RUNTIME_WAIT_LOCK, 2},
		{{NATIVE("pthread_cond_wait"), NAMELESS(JVM), METHOD("W.own", "native")}, RUNTIME_WAIT_UNKNOWN, 0},
		{{NATIVE("read"), NAMELESS(JVM), METHOD("W.enter", "interpreted")}, RUNTIME_WAIT_UNKNOWN, 0},
		{{NATIVE("futex"), JAVA("W.main"), JAVA("java.lang.Thread.sleep")}, RUNTIME_WAIT_UNKNOWN, 0},
	};

	CHECK(expected);
}

static void test_python(void **state)
{
	const struct expected expected[] = {
		{{EXPORTED("PyThread_acquire_lock_timed", PROGRAM), NAMELESS(PROGRAM),
		  PYTHON("Condition.wait", LIBRARY "threading.py"), PYTHON("Queue.get", LIBRARY "queue.py")},
		 RUNTIME_WAIT_CONDITION,
		 3},
		{{PYTHON("wait", LIBRARY "threading.py"), PYTHON("put", LIBRARY "queue.py")}, RUNTIME_WAIT_OTHERS, 2},
		{{PYTHON("wait", "/home/me/program.py")}, RUNTIME_WAIT_UNKNOWN, 0},
		{{PYTHON("Thread._wait_for_tstate_lock", LIBRARY "threading.py"),
		  PYTHON("Thread.join", LIBRARY "threading.py")},
		 RUNTIME_WAIT_OTHERS,
		 1},
		{{PYTHON("Condition.wait", LIBRARY "threading.py"),
		  PYTHON("Semaphore.acquire", LIBRARY "threading.py")},
		 RUNTIME_WAIT_SEMAPHORE,
		 2},
		{{NATIVE("PyThread_acquire_lock_timed"), PYTHON("_worker", LIBRARY "concurrent/futures/thread.py")},
		 RUNTIME_WAIT_CONDITION,
		 2},
		{{NATIVE("PyThread_acquire_lock_timed"), NAMELESS(LIBRARY "lib-dynload/_queue.cpython-311.so"),
		  PYTHON("main", "/program.py")},
		 RUNTIME_WAIT_CONDITION,
		 1},
		{{NATIVE("PyThread_acquire_lock_timed"), NAMELESS(PROGRAM), PYTHON("main", "/program.py")},
		 RUNTIME_WAIT_LOCK,
		 2},
		/* 3.13 */
		{{NATIVE("_PyParkingLot_Park"), NAMELESS(PROGRAM), PYTHON("main", "/program.py")},
		 RUNTIME_WAIT_LOCK,
		 2},
		{{NATIVE("_PyParkingLot_Park"), NAMELESS(PROGRAM), PYTHON("Condition.wait", LIBRARY "threading.py")},
		 RUNTIME_WAIT_CONDITION,
		 3},
		{{NATIVE("_PyParkingLot_Park"), NAMELESS(LIBRARY "lib-dynload/_queue.cpython-313.so"),
		  PYTHON("main", "/program.py")},
		 RUNTIME_WAIT_CONDITION,
		 1},
		{{NATIVE("_PyParkingLot_Park"), EXPORTED("PyEvent_WaitTimed", PROGRAM), PYTHON("main", "/program.py")},
		 RUNTIME_WAIT_UNKNOWN,
		 0},
		/* 3.14 */
		{{NATIVE("_PySemaphore_Wait"), NAMELESS(PROGRAM), PYTHON("main", "/program.py")}, RUNTIME_WAIT_LOCK, 2},
		{{NATIVE("_PySemaphore_Wait"), NATIVE("_PyParkingLot_Park"), NAMELESS(PROGRAM), PYTHON("main", "/program.py")},
		 RUNTIME_WAIT_LOCK,
		 3},
		{{NATIVE("_PySemaphore_Wait"), EXPORTED("PyEvent_WaitTimed", PROGRAM), PYTHON("main", "/program.py")},
		 RUNTIME_WAIT_UNKNOWN,
		 0},
	};

	CHECK(expected);
}

/* The interpreter's own lock, with and without a name for who takes it; a module of an extension has its own
 * conditions. */
static void test_gil(void **state)
{
	const struct expected expected[] = {
		{{NATIVE("pthread_cond_timedwait"), NATIVE("take_gil"), PYTHON("wait", LIBRARY "threading.py")},
		 RUNTIME_WAIT_LOCK,
		 1},
		{{NATIVE("pthread_cond_timedwait"), NAMELESS(PROGRAM), PYTHON("burn", "/program.py")},
		 RUNTIME_WAIT_LOCK,
		 0},
		{{NATIVE("pthread_cond_timedwait"), NAMELESS("/usr/lib/libpython3.11.so.1.0"),
		  PYTHON("burn", "/program.py")},
		 RUNTIME_WAIT_LOCK,
		 0},
		{{NATIVE("pthread_cond_timedwait"), NAMELESS("/usr/lib/module.so"), PYTHON("burn", "/program.py")},
		 RUNTIME_WAIT_UNKNOWN,
		 0},
	};

	CHECK(expected);
}

static void test_others(void **state)
{
	size_t frames = 1;

	assert_int_equal(offcpu_runtime_wait(NULL, &frames), RUNTIME_WAIT_UNKNOWN);
	assert_int_equal(frames, 0);
	check(&(const struct expected){{NATIVE("pthread_cond_wait"), NATIVE("main")}, RUNTIME_WAIT_UNKNOWN, 0}, 1);
	check(&(const struct expected){{{.symbol = "wait", .kind = FRAME_KIND_JS, .raw = 1}}, RUNTIME_WAIT_UNKNOWN, 0},
	      1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_java),
		cmocka_unit_test(test_python),
		cmocka_unit_test(test_gil),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests_name("runtime_waits", tests, NULL, NULL);
}
