/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "report/text_table.h"
#include "sample.h"

static const char *where(const struct stack *user, const struct stack *kernel)
{
	const struct trace_thread thread = {.user = user, .kernel = kernel};
	const struct frame *frame = text_table_frame(&thread);

	return frame ? frame->symbol : NULL;
}

static void test_outside_of_the_c_library(void **state)
{
	assert_string_equal(where(&sample_epoll, &sample_epoll_kernel), "aeMain");
	assert_string_equal(where(&sample_spin, NULL), "mix");
	assert_string_equal(where(&sample_futex, NULL), "__futex_abstimed_wait_common"); /* there is nothing else */
	assert_string_equal(where(NULL, &sample_disk_kernel), "xfs_buf_lock");
	assert_null(where(NULL, NULL));
}

/* Where the C library is part of the program, its functions are known by their names, and innermost only. */
static void test_static_program(void **state)
{
	static const struct module_info program = {.path = "/srv/server"};
	const struct stack lock = SAMPLE_STACK({.symbol = "__lll_lock_wait", .module = &program}, {.symbol = "__pthread_mutex_lock", .module = &program},
					       {.symbol = "update", .module = &program}, {.symbol = "read", .module = &program});
	const struct stack sleep = SAMPLE_STACK({.symbol = "clock_nanosleep", .module = &program}, {.symbol = "__nanosleep", .module = &program},
						{.symbol = "sleep", .module = &program}, {.symbol = "sleeper", .module = &program});
	const struct stack nothing = SAMPLE_STACK({.symbol = "pause", .module = &program}, {.symbol = "_start", .module = &program});

	assert_string_equal(where(&lock, NULL), "update");
	assert_string_equal(where(&sleep, NULL), "sleeper");
	assert_string_equal(where(&nothing, NULL), "pause");
}

/* What C++ brings: in headers, with and without debug info, and below its library. */
static void test_cxx(void **state)
{
	static const struct module_info program = {.path = "/srv/server"}, cxx = {.path = "/usr/lib/libstdc++.so.6"};
	const struct stack lock = SAMPLE_STACK(
		{.symbol = "__gthread_mutex_lock", .module = &program, .file = "/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h"},
		{.symbol = "lock", .module = &program, .file = "/usr/include/c++/12/bits/std_mutex.h"}, {.symbol = "Cache::get", .module = &program});
	const struct stack bare = SAMPLE_STACK({.symbol = "__gthread_mutex_lock(pthread_mutex_t*)", .module = &program},
					       {.symbol = "std::mutex::lock()", .module = &program}, {.symbol = "Cache::get()", .module = &program});
	const struct stack guard = SAMPLE_STACK({.symbol = "syscall", .module = &sample_libc}, {.symbol = "__cxa_guard_acquire", .module = &cxx},
						{.symbol = "Slow::instance()", .module = &program});

	assert_string_equal(where(&lock, NULL), "Cache::get");
	assert_string_equal(where(&bare, NULL), "Cache::get()");
	assert_string_equal(where(&guard, NULL), "Slow::instance()");
}

static void test_names_before_places(void **state)
{
	static const struct module_info jemalloc = {.path = "/usr/lib/libjemalloc.so.2"}, musl = {.path = "/lib/ld-musl-x86_64.so.1"};
	const struct stack both = SAMPLE_STACK({.symbol = "poll", .module = &musl}, {.module = &jemalloc}, {.symbol = "run"});
	const struct stack one = SAMPLE_STACK({.symbol = "poll", .module = &musl}, {.module = &jemalloc}, {.symbol = "_start"});
	const struct trace_thread thread = {.user = &one};

	assert_string_equal(where(&both, NULL), "run");
	assert_ptr_equal(text_table_frame(&thread)->module, &jemalloc);
}

/* Of a program that a runtime executes neither that nor what comes with the language, unless there is nothing else. */
static void test_programs(void **state)
{
	const struct stack python = SAMPLE_STACK(
		{.symbol = "PyObject_Vectorcall", .module = &sample_exe},
		{.symbol = "Condition.wait", .kind = FRAME_KIND_PYTHON, .file = "/usr/lib/python3.11/threading.py"},
		{.symbol = "Model.save", .kind = FRAME_KIND_PYTHON, .file = "/usr/lib/python3.11/site-packages/orm.py"},
		{.symbol = "main", .kind = FRAME_KIND_PYTHON, .file = "/srv/app.py"});
	const struct stack java = SAMPLE_STACK({.symbol = "jdk.internal.misc.Unsafe.park", .kind = FRAME_KIND_JAVA},
					       {.symbol = "java.lang.Thread.run", .kind = FRAME_KIND_JAVA});
	const struct stack js = SAMPLE_STACK({.symbol = "wait", .kind = FRAME_KIND_JS, .tier = "builtin"},
					     {.symbol = "Module._load", .kind = FRAME_KIND_JS, .file = "node:internal/loader"},
					     {.symbol = "onRequest", .kind = FRAME_KIND_JS, .file = "/srv/app.js"});

	const struct stack text = SAMPLE_STACK(
		{.symbol = "_find_and_load", .kind = FRAME_KIND_PYTHON, .file = "<frozen importlib._bootstrap>"},
		{.symbol = "deep", .kind = FRAME_KIND_PYTHON, .file = "<string>"},
		{.symbol = "main", .kind = FRAME_KIND_PYTHON, .file = "/srv/app.py"});

	assert_string_equal(where(&text, NULL), "deep");
	assert_string_equal(where(&python, NULL), "Model.save");
	assert_string_equal(where(&java, NULL), "jdk.internal.misc.Unsafe.park");
	assert_string_equal(where(&js, NULL), "onRequest");
}

/* A thread that only a library has: what it waits for, and not how. */
static void test_waits_of_libraries(void **state)
{
	const struct stack pool = SAMPLE_STACK(
		{.symbol = "jdk.internal.misc.Unsafe.park", .kind = FRAME_KIND_JAVA},
		{.symbol = "java.util.concurrent.locks.LockSupport.park", .kind = FRAME_KIND_JAVA},
		{.symbol = "java.util.concurrent.LinkedBlockingQueue.take", .kind = FRAME_KIND_JAVA},
		{.symbol = "java.util.concurrent.ThreadPoolExecutor.getTask", .kind = FRAME_KIND_JAVA},
		{.symbol = "java.lang.Thread.run", .kind = FRAME_KIND_JAVA});
	const struct stack server = SAMPLE_STACK(
		{.symbol = "_PollLikeSelector.select", .kind = FRAME_KIND_PYTHON, .file = "/usr/lib/python3.11/selectors.py"},
		{.symbol = "BaseServer.serve_forever", .kind = FRAME_KIND_PYTHON, .file = "/usr/lib/python3.11/socketserver.py"},
		{.symbol = "Thread.run", .kind = FRAME_KIND_PYTHON, .file = "/usr/lib/python3.11/threading.py"});

	assert_string_equal(where(&pool, NULL), "java.util.concurrent.LinkedBlockingQueue.take");
	assert_string_equal(where(&server, NULL), "BaseServer.serve_forever");
}

/* The table's line of a thread with this frame, on a terminal of that width. */
static char *line_of(const struct frame *frame, unsigned width)
{
	const struct stack stack = {.data = (struct frame *)frame, .len = 1};
	struct snapshot *snap = snapshot_create(7, arch_host());
	const struct snap_thread thread = {.tid = 7, .state = 'S', .off_cpu_ns = -1, .cpu_ns = -1};
	const struct trace_thread traced = {.snap = snap, .thread = &thread, .user = &stack};
	const struct trace_thread *member = &traced;
	struct group group = {.first = 0, .count = 1};
	const struct groups groups = {.data = &group, .len = 1, .members = &member};
	char *text = NULL;
	size_t len;
	const struct text t = {.out = open_memstream(&text, &len)};

	text_table(&t, &groups, width);
	fclose(t.out);
	snapshot_destroy(snap);
	return text;
}

/* A function without a name is told by its place, where there is room for that. */
static void test_places_of_nameless(void **state)
{
	const struct frame nameless = {.symbol = "<anonymous>", .kind = FRAME_KIND_JS, .file = "/srv/app.js", .line = 4};
	const struct frame named = {.symbol = "serve", .kind = FRAME_KIND_JS, .file = "/srv/app.js", .line = 4};
	char *line = line_of(&nameless, 0);

	assert_non_null(strstr(line, "  <anonymous> app.js:4\n"));
	free(line);
	line = line_of(&nameless, 76);
	assert_non_null(strstr(line, "  <anonymous>\n"));
	free(line);
	line = line_of(&named, 0);
	assert_non_null(strstr(line, "  serve\n"));
	free(line);
}

#define NAMES(...) (&(const struct stack)SAMPLE_STACK(__VA_ARGS__))

/* What comes with the language says as little as the C library. */
static void test_languages(void **state)
{
	const struct frame futex = {.symbol = "runtime.futex"}, sleep = {.symbol = "runtime.notesleep"},
			   stop = {.symbol = "runtime.stopm"}, call = {.symbol = "internal/runtime/syscall.Syscall6"},
			   read = {.symbol = "syscall.read"}, go = {.symbol = "main.serve"};
	const struct frame cxx = {
		.symbol = "void std::this_thread::sleep_for<long, std::ratio<1l, 1000l> >(long const&)"};
	const struct frame rust = {.symbol = "<std::sync::mpsc::Receiver<T>>::recv"}, run = {.symbol = "server::run"};
	const struct frame lambda = {.symbol = "pool(std::vector<int>)::{lambda()#1}::operator()() const"};
	const struct frame inlined = {
		.symbol = "wait<x>", .file = "/usr/include/c++/12/condition_variable", .inlined = true};
	const struct frame returns = {.symbol = "std::string format<std::string>(std::string const&)"};

	assert_string_equal(where(NAMES(call, read, go), NULL), "main.serve");
	assert_string_equal(where(NAMES(futex, sleep, stop), NULL), "runtime.stopm"); /* it has nothing to do */
	assert_string_equal(where(NAMES(futex), NULL), "runtime.futex");
	assert_string_equal(where(NAMES(cxx, lambda), NULL), lambda.symbol);
	assert_string_equal(where(NAMES(inlined, lambda), NULL), lambda.symbol);
	assert_string_equal(where(NAMES(cxx, returns), NULL), returns.symbol);
	assert_string_equal(where(NAMES(rust, run), NULL), "server::run");
	assert_string_equal(where(NAMES(rust), NULL), rust.symbol);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outside_of_the_c_library),
		cmocka_unit_test(test_static_program),
		cmocka_unit_test(test_cxx),
		cmocka_unit_test(test_names_before_places),
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_waits_of_libraries),
		cmocka_unit_test(test_places_of_nameless),
		cmocka_unit_test(test_languages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
