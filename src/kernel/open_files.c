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
	debug_say(rc, "the kernel loads the BPF iterator over open files by itself%s", tells_tcp ? ", with what it tells of sockets of TCP" : "");
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
	free(files);
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

static size_t count(const struct file_records *records)
{
	size_t n = 0, pos = 0;

	while (file_records_next(records, &pos))
		n++;
	return n;
}

int open_files_look(struct open_files *files, pid_t tid, const struct file_wants *wants, struct err *err, struct file_records *out)
{
	_cleanup_close_ int link = attach(files, tid);
	int rc;

	if (link < 0)
		return loading_explain(err, errno, "attaching the BPF iterator over open files", NULL);
	files->light->bss->pass = (struct file_pass){.wants = *wants, .target_tid = (__u32)tid};
	rc = loading_read_iterator(link, &out->words, err);
	debug_say(rc, "the BPF iterator over open files shows %zu descriptors", count(out));
	return rc;
}

#else

int open_files_create(bool tells_tcp, struct err *err, struct open_files **out)
{
	return err_set(err, ENOTSUP, "built without BPF");
}

void open_files_destroy(struct open_files *files)
{
}

int open_files_look(struct open_files *files, pid_t tid, const struct file_wants *wants, struct err *err, struct file_records *out)
{
	return err_set(err, ENOTSUP, "built without BPF");
}

#endif

const struct file_record *file_records_next(const struct file_records *records, size_t *pos)
{
	enum { RECORD_WORDS = sizeof(struct file_record) / sizeof(__u64), TCP_WORDS = sizeof(struct file_tcp) / sizeof(__u64) };
	const struct file_record *record = (const struct file_record *)(records->words.data + *pos);

	if (records->words.len - *pos < RECORD_WORDS)
		return NULL;
	*pos += RECORD_WORDS;
	if (record->kind != FILE_TCP)
		return record;
	if (records->words.len - *pos < TCP_WORDS)
		return NULL;
	*pos += TCP_WORDS;
	return record;
}

void file_records_deinit(struct file_records *records)
{
	vec_deinit(&records->words);
}
