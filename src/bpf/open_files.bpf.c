// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Which descriptors lead to what: writes a struct file_record for each that is wanted, of one thread or of all, in one read. /proc/PID/fd takes
 * a system call for each descriptor of each process of the machine. Numbers of processes are those of the first pid namespace: to name the types
 * that tell others would double the time that it takes to load this.
 */
#include "bpf/kernel_types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "bpf/file_record.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct file_pass pass; /* set by the reader before each */

static struct file_record record; /* there is only one reader */

enum {
	PF_KTHREAD = 0x00200000,
	FMODE_LSEEK = 1 << 2,
	FMODE_PATH = 1 << 14,
	TYPE_OF_INODE = 0170000, /* in its mode */
	OF_PIPE = 0010000,
	OF_SOCKET = 0140000,
};

static __u32 is_wanted(__u64 number)
{
	return pass.wanted[number / 64 % FILE_PASS_WORDS] >> number % 64 & 1;
}

/*
 * The kernel shows descriptors that threads have in common with their main thread once. If that one has ended it shows them for each of the others:
 * here once.
 */
static void begin_thread(struct task_struct *task)
{
	__u64 table = (__u64)BPF_CORE_READ(task, files);
	__u32 is_again = pass.tgid == task->tgid && pass.table == table;

	pass.thread = task->pid;
	pass.tgid = task->tgid;
	pass.table = table;
	pass.passed_over = task->flags & PF_KTHREAD || is_again || (pass.target_tid && pass.thread != pass.target_tid);
	BPF_CORE_READ_STR_INTO(&pass.comm, task, group_leader, comm);
}

/*
 * What can seek is neither a pipe nor a socket: most files, and there is no need to look at their inodes. Nor is what was opened for no more than
 * its place.
 */
static __u32 may_be_wanted(__u32 fd, struct file *file)
{
	return !pass.passed_over && !(file->f_mode & FMODE_PATH) && (pass.target_tid ? is_wanted(fd) : !(file->f_mode & FMODE_LSEEK));
}

/* All eventfds have the same name. A file may have it, too, but in a directory: what has no path is its own parent. */
static __u32 is_eventfd(const struct dentry *dentry)
{
	union {
		char text[10];
		struct {
			__u64 first;
			__u16 rest;
		};
	} name = {0}, all = {.text = "[eventfd]"};

	bpf_probe_read_kernel_str(name.text, sizeof(name.text), BPF_CORE_READ(dentry, d_name.name));
	return name.first == all.first && name.rest == all.rest && BPF_CORE_READ(dentry, d_parent) == dentry;
}

/* Of one thread: a fifo has a path, which /proc tells. */
static void take_kind(struct file *file)
{
	const struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	const struct eventfd_ctx *eventfd;

	if (record.kind == FILE_PIPE && BPF_CORE_READ(dentry, d_parent) != dentry)
		record.kind = FILE_OTHER;
	if (record.kind || !bpf_core_field_exists(struct eventfd_ctx, count) || !is_eventfd(dentry))
		return;
	eventfd = BPF_CORE_READ(file, private_data);
	record.kind = FILE_EVENTFD;
	record.count = BPF_CORE_READ(eventfd, count);
}

/* True when it is to be shown. Of all that are not, as little as possible is read: that is what takes time. */
static __u32 take_file(struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	__u32 type;

	record.inode = BPF_CORE_READ_BITFIELD_PROBED(inode, i_ino);
	if (!pass.target_tid && !pass.any_fifo && !is_wanted(record.inode))
		return 0;
	type = BPF_CORE_READ_BITFIELD_PROBED(inode, i_mode) & TYPE_OF_INODE;
	record.kind = type == OF_PIPE ? FILE_PIPE : type == OF_SOCKET ? FILE_SOCKET : FILE_OTHER;
	record.place = (__u64)inode;
	record.count = 0;
	if (pass.target_tid)
		take_kind(file);
	return record.kind && (record.kind == FILE_PIPE || pass.target_tid || is_wanted(record.inode));
}

SEC("iter/task_file")
int dump_file(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;

	if (!task || !file)
		return 0;
	if (task->pid != pass.thread)
		begin_thread(task);
	if (!may_be_wanted(ctx->fd, file) || !take_file(file))
		return 0;
	record.tgid = pass.tgid;
	record.fd = ctx->fd;
	record.mode = file->f_mode & (FILE_READS | FILE_WRITES);
	record.flags = file->f_flags;
	__builtin_memcpy(record.comm, pass.comm, sizeof(record.comm));
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}
