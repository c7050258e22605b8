/* SPDX-License-Identifier: MIT */
#include "kernel/open_files.h"

#include <errno.h>

#ifdef HAVE_BPF

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/debug.h"
#include "kernel/loading.h"
#include "open_files.lskel.h"

struct open_files {
	struct open_files_light *light;
	struct words words; /* the last pass */
};

DEFINE_CLEANUP(open_files, struct open_files *, open_files_destroy)

int open_files_create(bool tells_tcp, struct err *err, struct open_files **out)
{
	_cleanup_(cleanup_open_files) struct open_files *files = calloc(1, sizeof(*files));
	int rc;

	if (!files)
		return err_set(err, ENOMEM, "out of memory");
	if (loading_pid_namespace())
		return err_set(err, ENOTSUP, "the BPF iterator over open files is for the first pid namespace");
	files->light = open_files_light__open();
	if (!files->light)
		return err_set(err, ENOMEM, "out of memory");
	files->light->rodata->tells_tcp = tells_tcp;
	rc = open_files_light__load(files->light);
	debug_say(rc, "the kernel loads the BPF iterator over open files by itself");
	if (rc < 0)
		return loading_explain(err, -rc, "loading the BPF iterator over open files", "it needs Linux 5.17");
	*out = steal_ptr(files);
	return 0;
}

void open_files_destroy(struct open_files *files)
{
	if (!files)
		return;
	open_files_light__destroy(files->light);
	vec_deinit(&files->words);
	free(files);
}

void open_files_want(struct open_files *files, uint64_t number)
{
	files->light->bss->pass.wanted[number / 64 % FILE_PASS_WORDS] |= UINT64_C(1) << number % 64;
}

void open_files_want_tcp(struct open_files *files, uint16_t local_port, uint16_t remote_port)
{
	files->light->bss->pass.any_tcp = 1;
	open_files_want(files, file_ports(local_port, remote_port));
}

/* Kernels since 6.1 walk one thread; older ones walk all, and the program passes the others over. */
static int attach(const struct open_files *files, pid_t tid)
{
	const int fd = files->light->progs.dump_file.prog_fd;
	union bpf_iter_link_info info = {.task = {.tid = (__u32)tid}};
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = &info, .iter_info_len = sizeof(info));
	int link = tid ? bpf_link_create(fd, 0, BPF_TRACE_ITER, &opts) : -1;

	return link >= 0 ? link : bpf_link_create(fd, 0, BPF_TRACE_ITER, NULL);
}

static size_t count(const struct open_files *files)
{
	size_t n = 0, pos = 0;

	while (open_files_next(files, &pos))
		n++;
	return n;
}

static int run(struct open_files *files, pid_t tid, bool any_fifo, struct err *err)
{
	struct file_pass *pass = &files->light->bss->pass;
	_cleanup_close_ int link = attach(files, tid);
	int rc;

	if (link < 0) {
		rc = loading_explain(err, errno, "attaching the BPF iterator over open files", NULL);
		memset(pass, 0, sizeof(*pass));
		return rc;
	}
	pass->target_tid = (__u32)tid;
	pass->any_fifo = any_fifo;
	rc = loading_read_iterator(link, &files->words, err);
	debug_say(rc, "the BPF iterator over open files shows %zu descriptors", count(files));
	memset(pass, 0, sizeof(*pass));
	return rc;
}

int open_files_of(struct open_files *files, pid_t tid, struct err *err)
{
	return run(files, tid, false, err);
}

int open_files_of_all(struct open_files *files, bool any_fifo, struct err *err)
{
	return run(files, 0, any_fifo, err);
}

const struct file_record *open_files_next(const struct open_files *files, size_t *pos)
{
	enum { RECORD_WORDS = sizeof(struct file_record) / sizeof(__u64), TCP_WORDS = sizeof(struct file_tcp) / sizeof(__u64) };
	const struct file_record *record = (const struct file_record *)(files->words.data + *pos);

	if (files->words.len - *pos < RECORD_WORDS)
		return NULL;
	*pos += RECORD_WORDS;
	if (record->kind != FILE_TCP)
		return record;
	if (files->words.len - *pos < TCP_WORDS)
		return NULL;
	*pos += TCP_WORDS;
	return record;
}

#else

int open_files_create(bool tells_tcp, struct err *err, struct open_files **out)
{
	return err_set(err, ENOTSUP, "built without BPF");
}

void open_files_destroy(struct open_files *files)
{
}

void open_files_want(struct open_files *files, uint64_t number)
{
}

void open_files_want_tcp(struct open_files *files, uint16_t local_port, uint16_t remote_port)
{
}

int open_files_of(struct open_files *files, pid_t tid, struct err *err)
{
	return err_set(err, ENOTSUP, "built without BPF");
}

int open_files_of_all(struct open_files *files, bool any_fifo, struct err *err)
{
	return err_set(err, ENOTSUP, "built without BPF");
}

const struct file_record *open_files_next(const struct open_files *files, size_t *pos)
{
	return NULL;
}

#endif
