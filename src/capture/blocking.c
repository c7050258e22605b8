/* SPDX-License-Identifier: MIT */
#include "capture/blocking.h"

#include <stdlib.h>
#include <string.h>

#define READS(call)	   {.name = #call, .kind = WAIT_READ}
#define WRITES(call)	   {.name = #call, .kind = WAIT_WRITE}
#define SYNCS(call)	   {.name = #call, .kind = WAIT_SYNC}
#define MOVES(call, in, out) {.name = #call, .kind = WAIT_READ, .form = BLOCKING_TWO_FDS, .arg = (in), .other = (out)}
#define LOOKS_UP(call)	   {.name = #call, .kind = WAIT_OPEN, .form = BLOCKING_PATH}
#define LOOKS_UP_AT(call)  {.name = #call, .kind = WAIT_OPEN, .form = BLOCKING_PATH, .arg = 1, .has_directory = true}
#define WAITS(call, how, first, which, where) \
	{.name = #call, .kind = WAIT_EVENTS, .form = (how), .arg = (first), .limit = (which), .limit_arg = (where)}

/* By name, for bsearch(). */
static const struct blocking_call calls[] = {
	WAITS(_newselect, BLOCKING_SELECT, 0, LIMIT_POINTER, 4),
	{.name = "accept", .kind = WAIT_ACCEPT},
	{.name = "accept4", .kind = WAIT_ACCEPT},
	LOOKS_UP(access),
	LOOKS_UP(chdir),
	{.name = "connect", .kind = WAIT_CONNECT},
	MOVES(copy_file_range, 0, 2),
	LOOKS_UP(creat),
	WAITS(epoll_pwait, BLOCKING_EPOLL, 0, LIMIT_MILLISECONDS, 3),
	WAITS(epoll_pwait2, BLOCKING_EPOLL, 0, LIMIT_POINTER, 3),
	WAITS(epoll_wait, BLOCKING_EPOLL, 0, LIMIT_MILLISECONDS, 3),
	LOOKS_UP_AT(faccessat),
	LOOKS_UP_AT(faccessat2),
	SYNCS(fallocate),
	LOOKS_UP_AT(fchmodat),
	LOOKS_UP_AT(fchownat),
	SYNCS(fdatasync),
	READS(fgetxattr),
	READS(fstat),
	READS(fstat64),
	LOOKS_UP_AT(fstatat64),
	READS(fstatfs),
	SYNCS(fsync),
	SYNCS(ftruncate),
	READS(getdents),
	READS(getdents64),
	LOOKS_UP(getxattr),
	WAITS(io_uring_enter, BLOCKING_FD, 0, LIMIT_NONE, 0),
	{.name = "ioctl", .kind = WAIT_CONTROL},
	LOOKS_UP(lstat),
	LOOKS_UP(lstat64),
	LOOKS_UP(mkdir),
	LOOKS_UP_AT(mkdirat),
	{.name = "mq_timedreceive", .kind = WAIT_READ, .limit = LIMIT_POINTER, .limit_arg = 4},
	{.name = "mq_timedsend", .kind = WAIT_WRITE, .limit = LIMIT_POINTER, .limit_arg = 4},
	LOOKS_UP_AT(newfstatat),
	LOOKS_UP(open),
	LOOKS_UP_AT(openat),
	LOOKS_UP_AT(openat2),
	WAITS(poll, BLOCKING_POLL, 0, LIMIT_MILLISECONDS, 2),
	WAITS(ppoll, BLOCKING_POLL, 0, LIMIT_POINTER, 2),
	WAITS(ppoll_time64, BLOCKING_POLL, 0, LIMIT_POINTER, 2),
	READS(pread64),
	READS(preadv),
	READS(preadv2),
	WAITS(pselect6, BLOCKING_SELECT, 0, LIMIT_POINTER, 4),
	WAITS(pselect6_time64, BLOCKING_SELECT, 0, LIMIT_POINTER, 4),
	WRITES(pwrite64),
	WRITES(pwritev),
	WRITES(pwritev2),
	READS(read),
	LOOKS_UP(readlink),
	LOOKS_UP_AT(readlinkat),
	READS(readv),
	READS(recv),
	READS(recvfrom),
	{.name = "recvmmsg", .kind = WAIT_READ, .limit = LIMIT_POINTER, .limit_arg = 4},
	READS(recvmsg),
	LOOKS_UP(rename),
	LOOKS_UP_AT(renameat),
	LOOKS_UP_AT(renameat2),
	LOOKS_UP(rmdir),
	WAITS(select, BLOCKING_SELECT, 0, LIMIT_POINTER, 4),
	WRITES(send),
	MOVES(sendfile, 1, 0),
	MOVES(sendfile64, 1, 0),
	WRITES(sendmmsg),
	WRITES(sendmsg),
	WRITES(sendto),
	MOVES(splice, 0, 2),
	LOOKS_UP(stat),
	LOOKS_UP(stat64),
	LOOKS_UP(statfs),
	LOOKS_UP_AT(statx),
	SYNCS(sync_file_range),
	SYNCS(syncfs),
	MOVES(tee, 0, 1),
	LOOKS_UP(truncate),
	LOOKS_UP(unlink),
	LOOKS_UP_AT(unlinkat),
	LOOKS_UP_AT(utimensat),
	WRITES(vmsplice),
	WRITES(write),
	WRITES(writev),
};

static int compare(const void *name, const void *call)
{
	return strcmp(name, ((const struct blocking_call *)call)->name);
}

/* A poll() that was interrupted and goes on has its arguments where they were; the kernel's functions tell that it is one. */
static const char *restarted(const struct snap_thread *thread)
{
	for (uint32_t i = 0; thread->kernel_text && i < thread->nkernel; i++)
		if (thread->kernel_text[i] && strncmp(thread->kernel_text[i], "do_restart_poll", strlen("do_restart_poll")) == 0)
			return "poll";
	return "";
}

const struct blocking_call *blocking_call_of(const struct arch *arch, const struct snap_thread *thread)
{
	const struct syscall_info *info = arch_syscall(arch, thread->syscall.nr);
	const char *name = info ? info->name : "";

	if (thread->state == 'R' || thread->status != THREAD_CAPTURED || thread->syscall.state != SYSCALL_IN)
		return NULL;
	if (strcmp(name, "restart_syscall") == 0)
		name = restarted(thread);
	return bsearch(name, calls, sizeof(calls) / sizeof(calls[0]), sizeof(calls[0]), compare);
}

bool blocking_is_timed(const struct blocking_call *call, const struct snap_syscall *syscall)
{
	const uint64_t value = syscall->args[call->limit_arg];

	return call->limit == LIMIT_POINTER ? value != 0 : call->limit == LIMIT_MILLISECONDS && (int32_t)value >= 0;
}
