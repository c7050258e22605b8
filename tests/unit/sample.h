/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_SAMPLE_H
#define STAKEOUT_TESTS_SAMPLE_H

#include <string.h>

#include "model/snapshot.h"
#include "model/trace.h"

/*
 * A made-up server with something of everything: a main loop, a pool of three, a thread that was held, one in D, one
 * whose stack is incomplete, a zombie and names that try to fool a terminal.
 */

#define SAMPLE_EVIL "evil\033[31m\"\\\xff"

enum { SAMPLE_PID = 4711, SAMPLE_THREADS = 8 };

static const struct module_info sample_libc = {.path = "/usr/lib/libc.so.6", .build_id = "ab12"};
static const struct module_info sample_exe = {.path = "/usr/bin/server", .problem = "no debug information"};
static const struct module_info sample_kmod = {.path = "xfs"};

#define SAMPLE_STACK(...)                                                   \
	{                                                                   \
		.data = (struct frame[]){__VA_ARGS__},                      \
		.len = sizeof((struct frame[]){__VA_ARGS__}) / sizeof(struct frame), \
	}

#define SAMPLE_KERNEL(sym, off) \
	{.address = 0xffffffff81000000, .kind = FRAME_KIND_KERNEL, .symbol = (sym), .offset = (off), .has_offset = true}

static const struct stack sample_epoll_kernel = SAMPLE_STACK(SAMPLE_KERNEL("ep_poll", 0x2d1),
							     SAMPLE_KERNEL("do_epoll_wait", 0x8c),
							     SAMPLE_KERNEL("__x64_sys_epoll_wait", 0x6f));
static const struct stack sample_futex_kernel = SAMPLE_STACK(SAMPLE_KERNEL("futex_wait_queue", 0x60),
							     SAMPLE_KERNEL("futex_wait", 0x15e));
static const struct stack sample_disk_kernel = SAMPLE_STACK(
	{.address = 0xffffffffc0001000, .kind = FRAME_KIND_KERNEL, .symbol = "xfs_buf_lock", .offset = 0x3a,
	 .has_offset = true, .module = &sample_kmod},
	{.address = 0xffffffff81234567, .kind = FRAME_KIND_KERNEL});
static const struct stack sample_epoll = SAMPLE_STACK(
	{.address = 0x7f0000001056, .symbol = "__epoll_wait", .offset = 0x56, .has_offset = true,
	 .module = &sample_libc, .module_offset = 0x1056,
	 .file = "../sysdeps/unix/sysv/linux/epoll_wait.c", .line = 30, .column = 10},
	{.address = 0x555500001234, .raw = 1, .flags = FRAME_RETURN_ADDRESS, .symbol = "aeMain", .offset = 0x34,
	 .has_offset = true, .module = &sample_exe, .module_offset = 0x1234});
static const struct stack sample_futex = SAMPLE_STACK(
	{.address = 0x7f0000002000, .symbol = "__futex_abstimed_wait_common", .offset = 0xc4, .has_offset = true,
	 .module = &sample_libc, .module_offset = 0x2000});
static const struct stack sample_spin = SAMPLE_STACK(
	{.address = 0x555500004000, .symbol = "mix", .inlined = true, .module = &sample_exe, .module_offset = 0x4000,
	 .file = "/src/server/hash.h", .line = 12},
	{.address = 0x555500004000, .symbol = "hash_all", .offset = 0x40, .has_offset = true, .module = &sample_exe,
	 .module_offset = 0x4000, .file = "/src/server/hash.c", .line = 80, .column = 3},
	{.address = 0x7f0000003000, .kind = FRAME_KIND_SIGNAL, .raw = 1, .flags = FRAME_SIGNAL, .module = &sample_libc,
	 .module_offset = 0x3000},
	{.address = 0x555500005000, .raw = 2, .flags = FRAME_BY_FRAME_POINTER, .module = &sample_exe,
	 .module_offset = 0x5000},
	{.address = 0x12345678, .raw = 3, .flags = FRAME_BY_SCAN | FRAME_RETURN_ADDRESS});

static inline struct snap_thread sample_thread(pid_t tid, const char *name, char state)
{
	struct snap_thread t = {.tid = tid, .state = state, .capture = CAPTURE_ASLEEP, .off_cpu_ns = -1, .cpu_ns = -1};

	memcpy(t.name, name, strlen(name) + 1);
	return t;
}

static inline void sample_threads(struct snapshot *snap)
{
	static const char *const pool[] = {"worker", "worker", "flusher"};
	struct snap_thread t = sample_thread(SAMPLE_PID, "server", 'S');
	uint64_t *pcs = arena_alloc(snap->arena, 3 * sizeof(*pcs));
	const char **text = arena_alloc(snap->arena, 2 * sizeof(*text));
	uint8_t *stack = arena_alloc(snap->arena, 64);

	for (unsigned i = 0; i < 3; i++)
		pcs[i] = 0xffffffff81000000 + i;
	text[0] = "xfs_buf_lock+0x3a/0x50 [xfs]";
	text[1] = "0xffffffff81234567";
	for (unsigned i = 0; i < 64; i++)
		stack[i] = (uint8_t)i;
	t.off_cpu_ns = 34000000;
	t.cpu_ns = INT64_C(1520000000);
	t.syscall = (struct snap_syscall){SYSCALL_IN, 232, {5, 0x7ffc00001000, 10128, 100, 8, 0xdead}};
	t.kernel_pcs = pcs;
	t.nkernel = 3;
	t.stack = (struct mem_copy){.start = 0x7ffc00000000, .len = 64, .region_end = 0x7ffc00001000, .data = stack};
	t.regs.v[16] = 0x7f0000001056;
	t.regs.v[19] = 0x7ffc00000000;
	t.regs.valid = UINT64_C(1) << 16 | UINT64_C(1) << 19;
	t.nvcsw = 12;
	t.nivcsw = 3;
	vec_push(&snap->threads, t);
	for (int i = 0; i < 3; i++) {
		t = sample_thread(SAMPLE_PID + 1 + i, pool[i], 'S');
		t.off_cpu_ns = INT64_C(12300000000) + i * INT64_C(1000000000);
		t.syscall = (struct snap_syscall){SYSCALL_IN, 202, {0, 0x189, 0, 0, 0, 0xffffffff}};
		t.syscall.args[0] = 0x7f0000100000 + (uint64_t)i;
		vec_push(&snap->threads, t);
	}
	t = sample_thread(SAMPLE_PID + 4, "hasher", 'R');
	t.capture = CAPTURE_HELD;
	t.pause_ns = 23417;
	t.syscall.state = SYSCALL_NONE;
	vec_push(&snap->threads, t);
	t = sample_thread(SAMPLE_PID + 5, "disk", 'D');
	t.status = THREAD_STOP_TIMEOUT;
	t.capture = CAPTURE_NONE;
	t.why = "it did not stop within 1000 ms";
	t.kernel_text = text;
	t.nkernel = 2;
	vec_push(&snap->threads, t);
	t = sample_thread(SAMPLE_PID + 6, SAMPLE_EVIL, 'S');
	t.capture = CAPTURE_MOVED;
	t.retakes = 3;
	t.syscall = (struct snap_syscall){SYSCALL_IN, 9999, {1, 2, 3, 4, 5, 6}};
	vec_push(&snap->threads, t);
	t = sample_thread(SAMPLE_PID + 7, "gone", 'Z');
	t.status = THREAD_ZOMBIE;
	t.capture = CAPTURE_NONE;
	t.tracer = 99;
	t.why = "it has ended and waits to be reaped";
	vec_push(&snap->threads, t);
}

/* A thread that waits for a set of descriptors, and one that writes to a socket whose other end two processes have. */
static inline void sample_waits(struct snapshot *snap)
{
	struct wait_peer *peers = arena_alloc(snap->arena, 2 * sizeof(*peers));
	struct descriptor *set = arena_alloc(snap->arena, 2 * sizeof(*set));
	struct snap_wait w = {
		.tid = SAMPLE_PID, .kind = WAIT_EVENTS, .guessed = true, .on = {.fd = 5, .kind = DESCRIPTOR_EPOLL, .name = "anon_inode:[eventpoll]", .offset = -1, .left_ns = -1}};

	peers[0] = (struct wait_peer){.pid = 12, .comm = "reader"};
	peers[1] = (struct wait_peer){.pid = 13, .comm = SAMPLE_EVIL};
	set[0] = (struct descriptor){.fd = 6, .kind = DESCRIPTOR_TIMERFD, .name = "anon_inode:[timerfd]", .events = 1, .offset = -1, .left_ns = INT64_C(1500000000)};
	set[1] = (struct descriptor){.fd = 7, .kind = DESCRIPTOR_FILE, .name = "/a/file", .events = 4, .flags = 02, .offset = 4096, .left_ns = -1};
	w.set = (struct descriptor_set){.data = set, .len = 2, .total = 9, .listeners = 1};
	w.set.counts[DESCRIPTOR_TIMERFD] = 1;
	w.set.counts[DESCRIPTOR_FILE] = 8;
	vec_push(&snap->waits, w);
	w = (struct snap_wait){
		.tid = SAMPLE_PID + 6, .kind = WAIT_WRITE, .path = "/a/path", .address = "10.0.0.9:5432",
		.on = {.fd = 8, .kind = DESCRIPTOR_SOCKET, .name = "socket:[99]", .inode = 99, .offset = -1, .left_ns = -1, .count = 3, .pid = 4,
		       .socket = {"tcp", "established", "10.0.0.5:41022", "10.0.0.9:5432", 100, 1, 2, false, true}, .peers = peers, .npeers = 2, .peers_known = true}};
	vec_push(&snap->waits, w);
	snap->threads.data[0].still_besides = true;
}

static inline struct snapshot *sample_snapshot(void)
{
	struct snapshot *snap = snapshot_create(SAMPLE_PID, &arch_x86_64);
	uint8_t *vdso = arena_alloc(snap->arena, 16);

	snap->comm = "server";
	snap->exe = "/usr/bin/server";
	snap->taken_at_ns = INT64_C(1700000000000000042);
	snap->taken_at_monotonic_ns = INT64_C(123456789);
	snap->capture = (struct capture_info){
		.method = "bpf", .stop_mode = "auto", .stopped_threads = 1, .retaken_threads = 2, .max_pause_ns = 23417,
		.windows = 3, .cpus_taken = 2, .window_ns = 61250, .instant_ns = INT64_C(1700000000000000077),
		.capture_ns = 1900000, .inconsistent_why = "1 thread moved",
	};
	memcpy(vdso, "\177ELF", 4);
	vec_push(&snap->images, (struct mem_copy){.start = 0x7ffd00000000, .len = 16, .region_end = 0x7ffd00000010,
						  .data = vdso});
	vec_push(&snap->jit_images, (struct mem_copy){.start = 0x7f1234500000, .len = 8, .region_end = 0x7f1234500008,
						      .data = vdso});
	vec_push(&snap->copies, (struct snap_copy){.tid = SAMPLE_PID + 1,
						   .copy = {.start = 0x7f1234600000, .len = 12,
							    .region_end = 0x7f123460000c, .data = vdso}});
	vec_push(&snap->copies, (struct snap_copy){.copy = {.start = 0x7f1234700000, .len = 16,
							    .region_end = 0x7f1234700010, .data = vdso}});
	vec_push(&snap->maps, (struct map_entry){.start = 0x555500000000, .end = 0x555500010000, .inode = 7,
						 .dev_major = 8, .dev_minor = 1, .perms = MAP_PERM_READ | MAP_PERM_EXEC,
						 .path = "/usr/bin/server", .build_id = "cd34"});
	vec_push(&snap->maps, (struct map_entry){.start = 0x7ffc00000000, .end = 0x7ffc00001000, .offset = 4096,
						 .deleted = 1, .perms = MAP_PERM_READ | MAP_PERM_WRITE,
						 .path = "[stack]"});
	notes_add(&snap->notes, "BPF is not permitted: registers come from /proc");
	sample_threads(snap);
	sample_waits(snap);
	return snap;
}

static inline void sample_raw(struct raw_stack *raw, size_t nframes)
{
	for (size_t i = 0; i < nframes; i++)
		vec_push(raw, (struct raw_frame){.pc = 0x1000 + i, .sp = 0x7ffc00000000 + 16 * i});
}

static inline void sample_trace(struct trace *trace, const struct snapshot *snap)
{
	static const struct {
		const struct stack *user, *kernel;
	} stacks[SAMPLE_THREADS] = {
		{&sample_epoll, &sample_epoll_kernel}, {&sample_futex, &sample_futex_kernel},
		{&sample_futex, &sample_futex_kernel}, {&sample_futex, &sample_futex_kernel},
		{&sample_spin, NULL}, {NULL, &sample_disk_kernel}, {&sample_futex, NULL}, {NULL, NULL},
	};

	*trace = (struct trace){
		.snap = snap, .timings = {500000, 1900000, 400000, 100000, 3100000, 6000000},
	};
	for (size_t i = 0; i < snap->threads.len; i++) {
		struct trace_thread t = {
			.snap = snap, .thread = &snap->threads.data[i], .user = stacks[i].user, .kernel = stacks[i].kernel,
		};

		sample_raw(&t.raw, t.user ? t.user->data[t.user->len - 1].raw + 1 : 0);
		if (!t.user)
			t.raw.end = STACK_NOT_CAPTURED;
		vec_push(&trace->threads, t);
	}
	trace->threads.data[6].raw.end = STACK_NO_UNWIND_INFO;
	trace->threads.data[6].raw.end_pc = 0x7f0000009999;
	strcpy(trace->threads.data[6].raw.error, "libc.so.6 has no CFI for this address");
}

static const struct stack sample_sleep = SAMPLE_STACK(
	{.kind = FRAME_KIND_PYTHON, .symbol = "sleep", .file = "/usr/lib/python3.13/asyncio/tasks.py", .line = 718},
	{.kind = FRAME_KIND_PYTHON, .symbol = "Worker.run", .file = "/srv/app.py", .line = 12});
static const struct stack sample_join = SAMPLE_STACK(
	{.kind = FRAME_KIND_PYTHON, .symbol = "main", .file = "/srv/app.py", .line = 30});

/* Eleven that sleep, one that awaits one of these, one that runs, one that has not begun, and one whose turn it is. */
static inline void sample_tasks(struct trace *trace)
{
	static const char *const names[] = {"Task-10", "Task-2", "Task-3", "Task-4", "Task-5", "Task-6",
					    "Task-7", "Task-8", "Task-9", "Task-11", SAMPLE_EVIL};
	struct trace_task task = {
		.snap = trace->snap, .runtime = "python", .library = "asyncio", .tid = 4711, .stack = &sample_sleep, .awaits = "Future"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		task.name = names[i];
		vec_push(&trace->tasks, task);
	}
	task.stack = &sample_join;
	task.name = "Task-1";
	task.awaits = "Task";
	task.awaits_task = "Task-2";
	vec_push(&trace->tasks, task);
	task.name = "through";
	task.awaits = "Future";
	task.awaits_task = NULL;
	task.through = "Reader";
	vec_push(&trace->tasks, task);
	task.name = "ready";
	task.awaits = task.through = NULL;
	task.problem = "a coroutine could not be read";
	vec_push(&trace->tasks, task);
	task.name = "busy";
	task.state = TASK_RUNNING;
	task.problem = NULL;
	vec_push(&trace->tasks, task);
	task.name = NULL;
	task.state = TASK_CREATED;
	task.tid = 0;
	vec_push(&trace->tasks, task);
}

#endif
