/* SPDX-License-Identifier: MIT */
#include "model/descriptor.h"

const char *descriptor_kind_name(enum descriptor_kind kind)
{
	static const char *const names[DESCRIPTOR_KIND_COUNT] = {
		[DESCRIPTOR_UNKNOWN] = "unknown",   [DESCRIPTOR_FILE] = "file",		  [DESCRIPTOR_DIRECTORY] = "directory",
		[DESCRIPTOR_PIPE] = "pipe",	    [DESCRIPTOR_FIFO] = "fifo",		  [DESCRIPTOR_SOCKET] = "socket",
		[DESCRIPTOR_EVENTFD] = "eventfd",   [DESCRIPTOR_TIMERFD] = "timerfd",	  [DESCRIPTOR_SIGNALFD] = "signalfd",
		[DESCRIPTOR_INOTIFY] = "inotify",   [DESCRIPTOR_FANOTIFY] = "fanotify",	  [DESCRIPTOR_EPOLL] = "epoll",
		[DESCRIPTOR_PIDFD] = "pidfd",	    [DESCRIPTOR_IO_URING] = "io_uring",	  [DESCRIPTOR_TERMINAL] = "terminal",
		[DESCRIPTOR_DEVICE] = "device",	    [DESCRIPTOR_FUSE] = "fuse",		  [DESCRIPTOR_USERFAULTFD] = "userfaultfd",
		[DESCRIPTOR_OTHER] = "other",
	};

	return names[kind];
}
