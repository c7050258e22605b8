// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Which descriptors lead to what: writes a struct file_record for each that is wanted, of one thread or of all, in one read. /proc/PID/fd takes
 * a system call for each descriptor of each process of the machine. Numbers of processes are those of the first pid namespace: to name the types
 * that tell others would double the time that it takes to load this.
 */
#include "bpf/kernel_types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

#include "bpf/file_record.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set by the loader: sockets of TCP are told of. Else the kernel need not check that part. */
const volatile __u32 tells_tcp;

struct file_pass pass; /* set by the reader before each */

/* There is only one reader. */
static struct {
	struct file_record file;
	struct file_tcp tcp;
} shown;

enum {
	PF_KTHREAD = 0x00200000,
	FMODE_LSEEK = 1 << 2,
	FMODE_PATH = 1 << 14,
	TYPE_OF_INODE = 0170000, /* in its mode */
	OF_PIPE = 0010000,
	OF_SOCKET = 0140000,
};

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
	return !pass.passed_over && !(file->f_mode & FMODE_PATH) && (pass.target_tid ? file_wants_has(&pass.wants, fd) : !(file->f_mode & FMODE_LSEEK));
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

enum { OF_IPV4 = 2, OF_IPV6 = 10, OF_TCP = 6, STREAM = 1, LISTENS = 10 };

static void take_addresses(const struct sock_common *sk)
{
	__u32 *local = (__u32 *)shown.tcp.local, *remote = (__u32 *)shown.tcp.remote;

	__builtin_memset(shown.tcp.local, 0, sizeof(shown.tcp.local));
	__builtin_memset(shown.tcp.remote, 0, sizeof(shown.tcp.remote));
	if (shown.tcp.family == OF_IPV4) {
		local[0] = sk->skc_rcv_saddr;
		remote[0] = sk->skc_daddr;
	} else if (bpf_core_field_exists(sk->skc_v6_daddr)) {
		bpf_probe_read_kernel(local, sizeof(shown.tcp.local), &sk->skc_v6_rcv_saddr);
		bpf_probe_read_kernel(remote, sizeof(shown.tcp.remote), &sk->skc_v6_daddr);
	}
}

/* Bytes between two places of a stream, which are read at two moments. */
static __u32 between(__u32 first, __u32 last)
{
	return (__s32)(last - first) > 0 ? last - first : 0;
}

/*
 * Its offsets are those of tcp6_sock, which has it in front: when the kernel loads this by itself its cache of types has one place for tcp_sock and
 * dentry, and each search takes half a millisecond.
 */
static void take_queues(const struct sock *sk)
{
	const struct tcp6_sock *tcp = (const void *)bpf_skc_to_tcp_sock((void *)sk);

	shown.tcp.unread = shown.tcp.unsent = 0;
	if (!tcp)
		return;
	if (shown.tcp.state == LISTENS) {
		shown.tcp.unread = sk->sk_ack_backlog;
		shown.tcp.unsent = sk->sk_max_ack_backlog;
		return;
	}
	shown.tcp.unread = between(tcp->tcp.copied_seq, tcp->tcp.rcv_nxt);
	shown.tcp.unsent = between(tcp->tcp.snd_una, tcp->tcp.write_seq);
}

/* A socket of TCP, if it is one; in a pass over all processes only the other end of a connection, which is known by its ports. */
static void take_tcp(struct file *file)
{
	struct socket *socket = bpf_sock_from_file(file);
	struct sock *sk = socket ? socket->sk : 0;

	if (!sk || !bpf_core_field_exists(((struct tcp6_sock *)0)->tcp.rcv_nxt) || !bpf_core_field_exists(sk->__sk_common.skc_net.net))
		return; /* or a kernel without that type, or without namespaces */
	shown.tcp.family = (__u8)sk->__sk_common.skc_family;
	if (shown.tcp.family != OF_IPV4 && shown.tcp.family != OF_IPV6)
		return;
	shown.tcp.local_port = sk->__sk_common.skc_num;
	shown.tcp.remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
	if (!pass.target_tid && !(pass.wants.any_tcp && file_wants_has(&pass.wants, file_ports(shown.tcp.local_port, shown.tcp.remote_port))))
		return;
	if (sk->sk_protocol != OF_TCP || sk->sk_type != STREAM) /* last: they are elsewhere in memory */
		return;
	shown.file.kind = FILE_TCP;
	shown.tcp.state = sk->__sk_common.skc_state;
	shown.tcp.net = (__u64)sk->__sk_common.skc_net.net;
	take_addresses(&sk->__sk_common);
	take_queues(sk);
}

/* Of one thread: a fifo has a path, which /proc tells. */
static void take_kind(struct file *file)
{
	const struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	const struct eventfd_ctx *eventfd;

	if (shown.file.kind == FILE_PIPE && BPF_CORE_READ(dentry, d_parent) != dentry)
		shown.file.kind = FILE_OTHER;
	if (shown.file.kind || !bpf_core_field_exists(struct eventfd_ctx, count) || !is_eventfd(dentry))
		return;
	eventfd = BPF_CORE_READ(file, private_data);
	shown.file.kind = FILE_EVENTFD;
	shown.file.count = BPF_CORE_READ(eventfd, count);
}

/* True when it is to be shown. Of all that are not, as little as possible is read: that is what takes time. */
static __u32 take_file(struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	__u32 type;

	shown.file.inode = BPF_CORE_READ_BITFIELD_PROBED(inode, i_ino);
	if (!pass.target_tid && !pass.wants.any_fifo && !(tells_tcp && pass.wants.any_tcp) && !file_wants_has(&pass.wants, shown.file.inode))
		return 0;
	type = BPF_CORE_READ_BITFIELD_PROBED(inode, i_mode) & TYPE_OF_INODE;
	shown.file.kind = type == OF_PIPE ? FILE_PIPE : type == OF_SOCKET ? FILE_SOCKET : FILE_OTHER;
	shown.file.place = (__u64)inode;
	shown.file.count = 0;
	if (pass.target_tid)
		take_kind(file);
	if (tells_tcp && shown.file.kind == FILE_SOCKET)
		take_tcp(file);
	return shown.file.kind && (shown.file.kind == FILE_PIPE || shown.file.kind == FILE_TCP || pass.target_tid || file_wants_has(&pass.wants, shown.file.inode));
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
	shown.file.tgid = pass.tgid;
	shown.file.fd = ctx->fd;
	shown.file.mode = file->f_mode & (FILE_READS | FILE_WRITES);
	shown.file.flags = file->f_flags;
	__builtin_memcpy(shown.file.comm, pass.comm, sizeof(shown.file.comm));
	bpf_seq_write(ctx->meta->seq, &shown, tells_tcp && shown.file.kind == FILE_TCP ? sizeof(shown) : sizeof(shown.file));
	return 0;
}
