/* SPDX-License-Identifier: MIT */
/* What a thread waits for by the functions of the kernel that it is in: of what no test can bring about. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "wait/states.h"

enum { MOST_FRAMES = 8 };

struct scene {
	struct snapshot snap;
	struct snap_thread thread;
	struct frame frames[MOST_FRAMES];
	struct stack kernel;
	struct trace_thread t;
};

/* Innermost first, with commas between. */
static void set_scene(struct scene *s, char state, char *functions)
{
	*s = (struct scene){.thread = {.state = state, .still = STILL_THROUGHOUT, .still_besides = true, .facts = thread_facts_none}};
	s->snap.arch = &arch_x86_64;
	for (char *save = NULL, *name = strtok_r(functions, ", ", &save); name; name = strtok_r(NULL, ", ", &save))
		s->frames[s->kernel.len++] = (struct frame){.kind = FRAME_KIND_KERNEL, .symbol = name};
	s->kernel.data = s->frames;
	s->t = (struct trace_thread){.snap = &s->snap, .thread = &s->thread, .kernel = &s->kernel};
}

static void test_functions(void **unused)
{
	static const struct {
		char state;
		const char *functions;
		enum wait_kind kind;
		bool in_fault;
	} cases[] = {
		{'D', "io_schedule, folio_wait_bit_common, filemap_get_pages, filemap_read, vfs_read", WAIT_DISK, false},
		{'D', "io_schedule, folio_wait_bit_common, filemap_fault, __do_fault, handle_mm_fault, exc_page_fault", WAIT_DISK, true},
		{'D', "folio_wait_bit_common, __folio_lock_or_retry, do_swap_page, __handle_mm_fault, handle_mm_fault, do_mem_abort", WAIT_SWAP, true},
		{'D', "rpc_wait_bit_killable, __wait_on_bit, __rpc_execute, nfs4_call_sync, nfs_getattr", WAIT_NFS, false},
		{'D', "io_schedule, folio_wait_bit_common, filemap_get_pages, nfs_file_read", WAIT_NFS, false},
		{'D', "io_schedule, folio_wait_bit_common, filemap_fault, fuse_something, handle_mm_fault", WAIT_FUSE, true},
		{'D', "schedule_timeout, nfs_wait_on_request, nfs_updatepage", WAIT_NFS, false},
		{'S', "request_wait_answer, __fuse_simple_request, fuse_do_readfolio", WAIT_FUSE, false},
		{'D', "p9_client_rpc, p9_client_read_once, v9fs_issue_read", WAIT_REMOTE, false},
		{'D', "rwsem_down_read_slowpath, down_read, do_page_fault, do_mem_abort", WAIT_KERNEL_LOCK, true},
		{'D', "__mutex_lock.constprop.0, ext4_file_write_iter", WAIT_KERNEL_LOCK, false},
		{'D', "schedule, kernel_clone, __do_sys_vfork", WAIT_VFORK, false},
		{'D', "__mutex_lock, copy_process, kernel_clone", WAIT_KERNEL_LOCK, false},
		{'S', "handle_userfault, do_anonymous_page, handle_mm_fault", WAIT_USERFAULT, true},
		{'S', "seccomp_do_user_notification, __seccomp_filter", WAIT_SECCOMP, false},
		{'D', "filename_create, do_mkdirat, __arm64_sys_mkdirat", WAIT_KERNEL_LOCK, false},
		{'D', "lock_mm_and_find_vma, do_page_fault", WAIT_KERNEL_LOCK, true},
		{'D', "fuse_lookup_name, path_openat", WAIT_FUSE, false}, /* which is not the innermost */
		{'S', "filename_create, do_mkdirat", WAIT_NOTHING, false},
		{'D', "jbd2_log_wait_commit, ext4_sync_file, do_fsync", WAIT_DISK, false},
		{'D', "msleep, something_of_a_driver, exc_page_fault", WAIT_FAULT, true},
		/* Others wait there interruptibly, and for other things. */
		{'S', "io_schedule, something_else", WAIT_NOTHING, false},
		{'S', "fuse_dev_do_read, fuse_dev_read, vfs_read", WAIT_NOTHING, false},
		{'S', "do_nanosleep, hrtimer_nanosleep", WAIT_NOTHING, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char functions[256];
		struct scene s;

		snprintf(functions, sizeof(functions), "%s", cases[i].functions);
		set_scene(&s, cases[i].state, functions);
		assert_int_equal(state_wait_by_kernel(&s.t, &(struct kernel_wait){0}), cases[i].kind != WAIT_NOTHING);
		assert_int_equal(s.t.wait.kind, cases[i].kind);
		assert_int_equal(s.t.wait.state.in_fault, cases[i].in_fault);
		assert_int_equal(s.t.wait.certain, cases[i].kind != WAIT_NOTHING);
	}
}

/* Without the functions what the file is on tells, but not for certain. */
static void test_file_alone(void **unused)
{
	static const struct {
		const char *filesystem;
		enum wait_kind kind;
	} cases[] = {{"fuse.sshfs", WAIT_FUSE}, {"nfs4", WAIT_NFS}, {"ext4", WAIT_DISK}, {NULL, WAIT_NOTHING}};
	char none[1] = "";

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scene s;

		set_scene(&s, 'D', none);
		s.thread.facts.filesystem = cases[i].filesystem;
		s.thread.facts.place = "/mnt/file";
		state_wait_by_kernel(&s.t, &(struct kernel_wait){0});
		assert_int_equal(s.t.wait.kind, cases[i].kind);
		assert_false(s.t.wait.certain);
	}
}

/* A page of a file: what it is on tells, and if that is not known, what it may be on; not what the call is about that uses the memory. */
static void test_page_of_file(void **unused)
{
	static const struct {
		enum syscall_state syscall;
		const char *place, *filesystem;
		enum wait_kind kind;
		bool has_filesystem;
	} cases[] = {
		{SYSCALL_NONE, "/mnt/lib.so", "nfs4", WAIT_NFS, true},	   {SYSCALL_NONE, "/mnt/lib.so", "fuse.sshfs", WAIT_FUSE, true},
		{SYSCALL_NONE, "/mnt/lib.so", "cifs", WAIT_REMOTE, true},  {SYSCALL_NONE, "/lib/lib.so", "ext4", WAIT_DISK, true},
		{SYSCALL_NONE, NULL, "nfs", WAIT_FAULT, true},		   {SYSCALL_NONE, NULL, NULL, WAIT_DISK, false},
		{SYSCALL_IN, "/mnt/of-the-call", "nfs", WAIT_DISK, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char functions[] = "folio_wait_bit_common, filemap_fault, __do_fault, do_fault, handle_mm_fault, exc_page_fault";
		struct scene s;

		set_scene(&s, 'D', functions);
		s.thread.syscall.state = cases[i].syscall;
		s.thread.facts.place = cases[i].place;
		s.thread.facts.filesystem = cases[i].filesystem;
		assert_true(state_wait_by_kernel(&s.t, &(struct kernel_wait){0}));
		assert_int_equal(s.t.wait.kind, cases[i].kind);
		assert_true(s.t.wait.state.in_fault && s.t.wait.certain);
		assert_int_equal(s.t.wait.state.filesystem != NULL, cases[i].has_filesystem);
		assert_true(s.t.wait.state.place == (cases[i].has_filesystem ? cases[i].place : NULL));
	}
}

/* What was gathered is of another moment if the thread has run since; one that was woken does not wait any more. */
static void test_certainty(void **unused)
{
	static const struct wait_peer tracer = {.pid = 812, .comm = "gdb", .state = 'S'};
	char none[1] = "";
	struct scene s;

	set_scene(&s, 't', none);
	s.thread.facts.others = &tracer;
	s.thread.facts.nothers = 1;
	assert_true(state_wait_by_kernel(&s.t, &(struct kernel_wait){0}));
	assert_int_equal(s.t.wait.kind, WAIT_TRACED);
	assert_int_equal(s.t.wait.peers[0].pid, 812);
	assert_true(s.t.wait.certain);
	s.thread.still_besides = false;
	state_wait_by_kernel(&s.t, &(struct kernel_wait){0});
	assert_false(s.t.wait.certain);
	set_scene(&s, 'T', none);
	s.thread.woken = true;
	state_wait_by_kernel(&s.t, &(struct kernel_wait){0});
	assert_false(s.t.wait.certain);
}

static void test_frozen_first(void **unused)
{
	char functions[] = "io_schedule";
	struct scene s;

	set_scene(&s, 'D', functions);
	s.thread.facts.frozen = true;
	s.thread.facts.place = "/batch";
	assert_true(state_wait_by_kernel(&s.t, &(struct kernel_wait){0}));
	assert_int_equal(s.t.wait.kind, WAIT_FROZEN);
	assert_string_equal(s.t.wait.state.place, "/batch");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_file_alone),
		cmocka_unit_test(test_page_of_file),
		cmocka_unit_test(test_certainty),
		cmocka_unit_test(test_frozen_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
