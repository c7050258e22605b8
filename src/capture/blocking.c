/* SPDX-License-Identifier: MIT */
#include "capture/blocking.h"

#include <stdlib.h>
#include <string.h>

#include "model/stack.h"

#define READS(call)	   {.name = #call, .kind = WAIT_READ}
#define WRITES(call)	   {.name = #call, .kind = WAIT_WRITE}
#define SYNCS(call)	   {.name = #call, .kind = WAIT_SYNC}
#define MOVES(call, in, out) {.name = #call, .kind = WAIT_READ, .form = BLOCKING_TWO_FDS, .arg = (in), .other = (out)}
#define LOOKS_UP(call)	   {.name = #call, .kind = WAIT_OPEN, .form = BLOCKING_PATH}
#define LOOKS_UP_AT(call)  {.name = #call, .kind = WAIT_OPEN, .form = BLOCKING_PATH, .arg = 1, .has_directory = true}
#define WAITS(call, how)   {.name = #call, .kind = WAIT_EVENTS, .form = (how)}

/* By name, for bsearch(). */
static const struct blocking_call calls[] = {
	WAITS(_newselect, BLOCKING_SELECT),
	{.name = "accept", .kind = WAIT_ACCEPT},
	{.name = "accept4", .kind = WAIT_ACCEPT},
	LOOKS_UP(access),
	LOOKS_UP(chdir),
	{.name = "connect", .kind = WAIT_CONNECT},
	MOVES(copy_file_range, 0, 2),
	LOOKS_UP(creat),
	WAITS(epoll_pwait, BLOCKING_EPOLL),
	WAITS(epoll_pwait2, BLOCKING_EPOLL),
	WAITS(epoll_wait, BLOCKING_EPOLL),
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
	WAITS(io_uring_enter, BLOCKING_FD),
	{.name = "ioctl", .kind = WAIT_CONTROL},
	LOOKS_UP(lstat),
	LOOKS_UP(lstat64),
	LOOKS_UP(mkdir),
	LOOKS_UP_AT(mkdirat),
	READS(mq_timedreceive),
	WRITES(mq_timedsend),
	LOOKS_UP_AT(newfstatat),
	LOOKS_UP(open),
	LOOKS_UP_AT(openat),
	LOOKS_UP_AT(openat2),
	WAITS(poll, BLOCKING_POLL),
	WAITS(ppoll, BLOCKING_POLL),
	WAITS(ppoll_time64, BLOCKING_POLL),
	READS(pread64),
	READS(preadv),
	READS(preadv2),
	WAITS(pselect6, BLOCKING_SELECT),
	WAITS(pselect6_time64, BLOCKING_SELECT),
	WRITES(pwrite64),
	WRITES(pwritev),
	WRITES(pwritev2),
	READS(read),
	LOOKS_UP(readlink),
	LOOKS_UP_AT(readlinkat),
	READS(readv),
	READS(recv),
	READS(recvfrom),
	READS(recvmmsg),
	READS(recvmsg),
	LOOKS_UP(rename),
	LOOKS_UP_AT(renameat),
	LOOKS_UP_AT(renameat2),
	LOOKS_UP(rmdir),
	WAITS(select, BLOCKING_SELECT),
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
		if (thread->kernel_text[i] && name_is_kernel_function(thread->kernel_text[i], "do_restart_poll"))
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

unsigned blocking_descriptors(const struct blocking_call *call, const struct snap_syscall *syscall, int fds[static 2])
{
	const bool is_one = call->form == BLOCKING_FD || call->form == BLOCKING_EPOLL, are_two = call->form == BLOCKING_TWO_FDS;

	if (is_one || are_two)
		fds[0] = (int)syscall->args[call->arg];
	if (are_two)
		fds[1] = (int)syscall->args[call->other];
	return are_two ? 2 : is_one;
}
