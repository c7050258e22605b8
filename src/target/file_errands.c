/* SPDX-License-Identifier: MIT */
#include "target/file_errands.h"

#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "target/rootfile.h"

/* The parser's side */

static int ask(enum errand_kind kind, int a, int b, const char *text, struct errand_reply *reply)
{
	struct errand errand;

	return errand_init(&errand, kind, a, b, text) ? broker_ask(&errand, reply) : -ENAMETOOLONG;
}

int file_errand_open(int root_fd, const char *path, bool itself, struct stat *st)
{
	struct errand_reply reply;
	int rc = ask(ERRAND_FILE, root_fd, itself, path, &reply);

	if (rc < 0)
		return rc;
	if (st)
		*st = reply.st;
	return reply.fd < 0 ? -EPIPE : reply.fd;
}

int file_errand_stat(int root_fd, const char *path, struct stat *st)
{
	struct errand_reply reply;
	int rc = ask(ERRAND_STAT, root_fd, 0, path, &reply);

	if (rc == 0)
		*st = reply.st;
	return rc;
}

char *file_errand_real_path(const char *path)
{
	struct errand_reply reply;

	return ask(ERRAND_REAL_PATH, 0, 0, path, &reply) < 0 ? NULL : strndup(reply.data, reply.len);
}

/* `number` of the reply: why it cannot be used, or 0; its data: the path, then the reason. */
static bool visit_jit(const struct errand_reply *reply, enum jit_file_kind kind, jit_file_fn fn, void *arg)
{
	size_t path_len = strnlen(reply->data, reply->len);
	struct err err = {0};
	struct jit_file file = {.kind = kind, .path = reply->data, .fd = reply->fd, .problem = &err};

	if (reply->number)
		err_set(&err, (int)reply->number, "%s", path_len < reply->len ? reply->data + path_len + 1 : "");
	return fn(arg, &file);
}

/* A kind and which of its files is one number. */
enum { MAX_JIT_FILES = 32 };

void file_errand_visit_jit(const struct target *target, jit_file_fn fn, void *arg)
{
	struct errand_reply reply;

	for (int kind = JIT_FILE_DUMP; kind <= JIT_FILE_PERF_MAP; kind++)
		for (int i = 0; i < MAX_JIT_FILES; i++)
			if (ask(ERRAND_JIT_FILE, target->process.dir_fd, kind * MAX_JIT_FILES + i, NULL, &reply) < 0 ||
			    visit_jit(&reply, (enum jit_file_kind)kind, fn, arg))
				break;
}

/* The broker's side */

static bool is_root(const struct file_scope *scope, int root_fd)
{
	for (size_t i = 0; i < scope->n; i++)
		if (scope->targets[i]->root_fd == root_fd)
			return true;
	return root_fd == -1 || (scope->roots && roots_have(scope->roots, root_fd));
}

static bool is_elf(int fd)
{
	char magic[4];

	return pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) && memcmp(magic, "\177ELF", sizeof(magic)) == 0;
}

/* Which distribution it is: everybody may know. */
static bool has_open_name(const char *path)
{
	return strcmp(path, "/etc/os-release") == 0 || strcmp(path, "/usr/lib/os-release") == 0;
}

/* ELF, but the kernel's own: /proc/kcore is one, too. */
static bool may_have(int fd, const char *path)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC)
		return false;
	return is_elf(fd) || has_open_name(path);
}

static void serve_file(void *ctx, const struct errand *errand, struct errand_reply *reply)
{
	int root_fd = errand->number[0];
	_cleanup_close_ int fd = -1;

	if (!is_root(ctx, root_fd))
		return;
	fd = errand->number[1] ? rootfile_open_itself(root_fd, errand->data, &reply->st)
			       : rootfile_open(root_fd, errand->data, &reply->st);
	reply->rc = fd < 0 ? fd : 0;
	if (fd >= 0 && !may_have(fd, errand->data))
		reply->rc = -ENOEXEC;
	reply->fd = reply->rc == 0 ? steal_fd(&fd) : -1;
}

static void serve_stat(void *ctx, const struct errand *errand, struct errand_reply *reply)
{
	if (is_root(ctx, errand->number[0]))
		reply->rc = rootfile_stat(errand->number[0], errand->data, &reply->st);
}

static void serve_real_path(void *ctx, const struct errand *errand, struct errand_reply *reply)
{
	_cleanup_free_ char *path = rootfile_real_path(errand->data);

	reply->rc = path ? 0 : -ENOENT;
	if (path)
		errand_answer(reply, path);
}

/* Which of the files of a kind is asked for. */
struct jit_choice {
	enum jit_file_kind kind;
	int left;
	struct errand_reply *reply;
};

static bool choose(void *arg, const struct jit_file *file)
{
	struct jit_choice *choice = arg;
	struct errand_reply *reply = choice->reply;
	size_t path_len = strlen(file->path), room = sizeof(reply->data) - 1;
	_cleanup_close_ int fd = file->fd;

	if (file->kind != choice->kind || choice->left-- != 0)
		return false;
	reply->rc = 0;
	reply->fd = steal_fd(&fd);
	reply->number = (uint32_t)file->problem->code;
	errand_answer(reply, file->path);
	if (file->problem->code && path_len + 1 + strlen(file->problem->msg) < room) {
		strcpy(reply->data + path_len + 1, file->problem->msg);
		reply->len = (uint32_t)(path_len + 1 + strlen(file->problem->msg));
	}
	return true;
}

static void serve_jit_file(void *ctx, const struct errand *errand, struct errand_reply *reply)
{
	const struct file_scope *scope = ctx;
	struct jit_choice choice = {
		.kind = (enum jit_file_kind)(errand->number[1] / MAX_JIT_FILES),
		.left = errand->number[1] % MAX_JIT_FILES,
		.reply = reply,
	};

	for (size_t i = 0; i < scope->n; i++)
		if (scope->targets[i]->process.dir_fd == errand->number[0] && target_is_live(scope->targets[i])) {
			reply->rc = -ENOENT;
			jit_files_visit(scope->targets[i], choose, &choice);
			return;
		}
}

void file_errands_add(struct parser_job *job, const struct file_scope *scope)
{
	job->services[ERRAND_FILE] = (struct service){serve_file, (void *)scope};
	job->services[ERRAND_STAT] = (struct service){serve_stat, (void *)scope};
	job->services[ERRAND_REAL_PATH] = (struct service){serve_real_path, NULL};
	job->services[ERRAND_JIT_FILE] = (struct service){serve_jit_file, (void *)scope};
}
