/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "privilege/capabilities.h"
#include "privilege/sandbox.h"

/* What a process in the sandbox tries; the errno that it got, 0 when it could do it. */
typedef int (*attempt)(void);

static int zero_fd; /* opened before */

static int outcome(long rc)
{
	return rc < 0 ? errno : 0;
}

static int open_a_file(void)
{
	return outcome(open("/etc/passwd", O_RDONLY));
}

static int open_another_way(void)
{
#ifdef SYS_open
	if (syscall(SYS_open, "/etc/passwd", O_RDONLY) >= 0 || errno != EPERM)
		return 0;
#endif
	return outcome(syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", NULL, 0));
}

static int create_a_file(void)
{
	return outcome(mkdir("/tmp/stakeout-must-not-exist", 0700));
}

static int look_at_a_path(void)
{
	return outcome(access("/etc/passwd", R_OK));
}

static int make_a_socket(void)
{
	return outcome(socket(AF_INET, SOCK_STREAM, 0));
}

/* Even with a socket that was left open. */
static int spare_socket;

static int connect_a_socket(void)
{
	const struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(1), .sin_addr = {htonl(INADDR_LOOPBACK)}};

	return outcome(connect(spare_socket, (const struct sockaddr *)&to, sizeof(to)));
}

static int trace_the_parent(void)
{
	return outcome(ptrace(PTRACE_SEIZE, getppid(), NULL, NULL));
}

static int read_the_parent(void)
{
	char byte;
	struct iovec here = {&byte, 1}, there = {(void *)&spare_socket, 1};

	return outcome(process_vm_readv(getppid(), &here, 1, &there, 1, 0));
}

static int signal_the_parent(void)
{
	return outcome(kill(getppid(), 0));
}

static int execute(void)
{
	return outcome(execl("/bin/true", "true", NULL));
}

static int make_a_process(void)
{
	return outcome(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL));
}

static int make_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno : 0;
}

static int load_bpf(void)
{
	return outcome(syscall(SYS_bpf, 0, NULL, 0));
}

/* Allowed */

/* What sanitizers and others ask at the start of a thread. */
static void *find_own_stack(void *arg)
{
	pthread_attr_t own;
	int error = pthread_getattr_np(pthread_self(), &own);

	return (void *)(intptr_t)error;
}

static int use_threads_and_memory(void)
{
	pthread_t thread;
	void *memory = malloc(64 << 20);
	int error = pthread_create(&thread, NULL, find_own_stack, NULL);
	void *found;

	if (!memory || error)
		return error ? error : ENOMEM;
	memset(memory, 1, 64 << 20);
	free(memory);
	error = pthread_join(thread, &found);
	return error ? error : (int)(intptr_t)found;
}

static int read_what_is_open(void)
{
	struct stat st;
	char byte;

	if (fstat(zero_fd, &st) < 0)
		return errno;
	return outcome(read(zero_fd, &byte, 1));
}

static int map_what_is_open(void)
{
	return mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, zero_fd, 0) == MAP_FAILED ? errno : 0;
}

enum { BROKEN = 255 };

/* In a process of its own, since there is no way back. */
static int try_in_sandbox(attempt try)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(sandbox_enter(NULL) < 0 ? BROKEN : try());
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_not_equal(WEXITSTATUS(status), BROKEN);
	return WEXITSTATUS(status);
}

static void test_refused(void **state)
{
	static const struct {
		const char *what;
		attempt try;
	} tries[] = {
		{"open", open_a_file},
		{"openat2", open_another_way},
		{"mkdir", create_a_file},
		{"access", look_at_a_path},
		{"socket", make_a_socket},
		{"connect", connect_a_socket},
		{"ptrace", trace_the_parent},
		{"process_vm_readv", read_the_parent},
		{"kill", signal_the_parent},
		{"execve", execute},
		{"fork", make_a_process},
		{"executable memory", make_code},
		{"bpf", load_bpf},
	};

	spare_socket = socket(AF_INET, SOCK_STREAM, 0);
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		int got = try_in_sandbox(tries[i].try);

		if (got != EPERM)
			fail_msg("%s: %s", tries[i].what, got ? strerror(got) : "allowed");
	}
	close(spare_socket);
}

static void test_allowed(void **state)
{
	zero_fd = open("/proc/self/exe", O_RDONLY);
	assert_true(zero_fd >= 0);
	assert_int_equal(try_in_sandbox(use_threads_and_memory), 0);
	assert_int_equal(try_in_sandbox(read_what_is_open), 0);
	assert_int_equal(try_in_sandbox(map_what_is_open), 0);
	close(zero_fd);
}

static int has_rights(void)
{
	struct capabilities own;

	if (!capabilities_read(&own) && errno != EPERM) /* capget is not among what is allowed */
		return errno;
	return own.permitted || own.effective ? EEXIST : 0;
}

static void test_no_capability_is_left(void **state)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(sandbox_become_caller(NULL) < 0 ? BROKEN
		      : prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0 ? 1
														 : has_rights());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_abort_ends_it(void **state)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		sandbox_enter(NULL);
		abort();
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_allowed),
		cmocka_unit_test(test_no_capability_is_left),
		cmocka_unit_test(test_abort_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
