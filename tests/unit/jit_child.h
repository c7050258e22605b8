/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_JIT_CHILD_H
#define STAKEOUT_TESTS_JIT_CHILD_H

#include "child.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "target/target.h"

/* A child with the files that JIT compilers write for perf, which the test writes for it. */
enum { SOMEBODY = 54321 }; /* a user who owns nothing here */

struct jit_child {
	pid_t pid;
	char map[64];  /* /tmp/perf-PID.map of the child */
	char dump[64]; /* /tmp/jit-PID.dump, which it has mapped if it is there */
	struct target *target;
	struct snapshot *saved; /* what the target was opened from, or NULL */
};

static inline void jit_child_write(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	close(fd);
}

static inline void jit_child_write_map(const struct jit_child *c, const char *text)
{
	jit_child_write(c->map, text, strlen(text));
}

/* A header and the record of one function at [0x1000, 0x1100). */
static inline void jit_child_write_dump(const struct jit_child *c)
{
	static const char name[] = "dumped";
	const struct {
		uint32_t magic, version, size, machine, pad, pid;
		uint64_t time, flags;
		uint32_t id, record_size;
		uint64_t record_time;
		uint32_t record_pid, tid;
		uint64_t vma, address, code_size, index;
		char name[8];
	} dump = {
		.magic = 0x4a695444,
		.version = 1,
		.size = 40,
		.record_size = 16 + 40 + 8,
		.vma = 0x1000,
		.address = 0x1000,
		.code_size = 0x100,
		.name = "dumped",
	};

	assert_true(sizeof(name) <= sizeof(dump.name) && sizeof(dump) == 40 + 16 + 40 + 8);
	jit_child_write(c->dump, &dump, sizeof(dump));
}

static int jit_child_go[2], jit_child_done[2];

/* Maps the dump, if there is one, when it is told to, and tells when that is done. */
static inline void jit_child_body(void)
{
	char path[64], byte;
	int fd;

	if (read(jit_child_go[0], &byte, 1) != 1)
		_exit(1);
	snprintf(path, sizeof(path), "/tmp/jit-%d.dump", (int)getpid());
	fd = open(path, O_RDONLY);
	if (fd >= 0 && mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		_exit(1);
	if (write(jit_child_done[1], "", 1) != 1)
		_exit(1);
	child_sleeps();
}

static inline void jit_child_prepare(struct jit_child *c, void (*body)(void))
{
	*c = (struct jit_child){0};
	assert_int_equal(pipe(jit_child_go), 0);
	assert_int_equal(pipe(jit_child_done), 0);
	c->pid = child_start(body);
	snprintf(c->map, sizeof(c->map), "/tmp/perf-%d.map", (int)c->pid);
	snprintf(c->dump, sizeof(c->dump), "/tmp/jit-%d.dump", (int)c->pid);
	unlink(c->map); /* an earlier process may have left one */
	unlink(c->dump);
}

/* A live process, or what a saved snapshot tells of it. */
static inline void jit_child_open(struct jit_child *c, bool saved)
{
	struct process process;
	char byte;

	assert_int_equal(write(jit_child_go[1], "", 1), 1);
	assert_int_equal(read(jit_child_done[0], &byte, 1), 1);
	if (!saved) {
		assert_int_equal(target_open_whole(c->pid, NULL, NULL, &c->target), 0);
		return;
	}
	c->saved = snapshot_create(c->pid, arch_host());
	assert_int_equal(process_open(c->pid, NULL, &process), 0);
	assert_int_equal(process_maps(&process, c->saved->arena, NULL, &c->saved->maps), 0);
	process_close(&process);
	c->saved->replayed = true;
	c->target = target_open_saved(c->saved);
	assert_non_null(c->target);
}

static inline void jit_child_finish(struct jit_child *c)
{
	target_close(c->target);
	snapshot_destroy(c->saved);
	if (c->pid) /* 0: the test has ended it */
		child_end(c->pid);
	unlink(c->map);
	unlink(c->dump);
	for (int i = 0; i < 2; i++) {
		close(jit_child_go[i]);
		close(jit_child_done[i]);
	}
}

/* Ends the test as skipped unless files can be given away. */
static inline void jit_child_needs_root(void)
{
	if (getuid() != 0) {
		print_message("skipped: only root can give files away\n");
		skip();
	}
}

/* The child belongs to somebody, not to us. */
static inline void jit_child_of_somebody(void)
{
	if (setresgid(SOMEBODY, SOMEBODY, SOMEBODY) < 0 || setresuid(SOMEBODY, SOMEBODY, SOMEBODY) < 0)
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* which a change of user undoes */
	jit_child_body();
}

#endif
