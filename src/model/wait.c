/* SPDX-License-Identifier: MIT */
#include "model/wait.h"

#include <string.h>

const char *wait_kind_name(enum wait_kind kind)
{
	static const char *const names[WAIT_KIND_COUNT] = {
		[WAIT_MUTEX] = "mutex",	        [WAIT_READ_LOCK] = "read_lock", [WAIT_WRITE_LOCK] = "write_lock",
		[WAIT_CONDITION] = "condition", [WAIT_SEMAPHORE] = "semaphore", [WAIT_BARRIER] = "barrier",
		[WAIT_ONCE] = "once",	        [WAIT_STREAM] = "stream",	[WAIT_JOIN] = "join",
		[WAIT_FUTURE] = "future",       [WAIT_PARKED] = "parked",	[WAIT_FUTEX] = "futex",
		[WAIT_CHANNEL] = "channel",	[WAIT_CHANNEL_ROOM] = "channel_room",
		[WAIT_READ] = "read",		[WAIT_WRITE] = "write",
		[WAIT_SYNC] = "sync",	        [WAIT_ACCEPT] = "accept",	[WAIT_CONNECT] = "connect",
		[WAIT_EVENTS] = "events",       [WAIT_OPEN] = "open",		[WAIT_CONTROL] = "control",
		[WAIT_FILE_LOCK] = "file_lock",

		[WAIT_CHILD] = "child",	        [WAIT_VFORK] = "vfork",	        [WAIT_TIME] = "time",
		[WAIT_SIGNAL] = "signal",       [WAIT_STOPPED] = "stopped",     [WAIT_TRACED] = "traced",
		[WAIT_REAPER] = "reaper",       [WAIT_FROZEN] = "frozen",       [WAIT_THROTTLED] = "throttled",
		[WAIT_CPU] = "cpu",	        [WAIT_FAULT] = "page",	        [WAIT_SWAP] = "swap",
		[WAIT_USERFAULT] = "userfault", [WAIT_DISK] = "disk",	        [WAIT_NFS] = "nfs",
		[WAIT_FUSE] = "fuse",	        [WAIT_REMOTE] = "remote_file",  [WAIT_SECCOMP] = "seccomp",
		[WAIT_KERNEL_LOCK] = "kernel_lock",
		[WAIT_SYSV_SEMAPHORE] = "sysv_semaphore",
		[WAIT_SYSV_MESSAGE] = "sysv_message",
		[WAIT_SYSV_ROOM] = "sysv_room",
		[WAIT_MESSAGE] = "message",
		[WAIT_ROOM] = "room",

		[WAIT_GIL] = "gil",
		[WAIT_PYTHON_LOCK] = "python_lock",
		[WAIT_PYTHON_RLOCK] = "python_rlock",
		[WAIT_PYTHON_CONDITION] = "python_condition",
		[WAIT_PYTHON_EVENT] = "python_event",
		[WAIT_PYTHON_SEMAPHORE] = "python_semaphore",
		[WAIT_PYTHON_BARRIER] = "python_barrier",
		[WAIT_PYTHON_ITEM] = "python_item",
		[WAIT_PYTHON_ROOM] = "python_room",
		[WAIT_PYTHON_DONE] = "python_done",
		[WAIT_PYTHON_FUTURE] = "python_future",
		[WAIT_PYTHON_JOIN] = "python_join",

		[WAIT_MONITOR] = "monitor",
		[WAIT_NOTIFICATION] = "notification",
		[WAIT_JAVA_LOCK] = "java_lock",
		[WAIT_JAVA_CONDITION] = "java_condition",
		[WAIT_JAVA_SEMAPHORE] = "java_semaphore",
		[WAIT_JAVA_LATCH] = "java_latch",
		[WAIT_JAVA_PARK] = "java_park",
		[WAIT_JAVA_JOIN] = "java_join",

		[WAIT_GO_WORK] = "go_work",
		[WAIT_GO_GOROUTINE] = "go_goroutine",
		[WAIT_GO_START] = "go_start",
		[WAIT_GO_STOP] = "go_stop",
		[WAIT_GO_MONITOR] = "go_monitor",
		[WAIT_GO_TEMPLATE] = "go_template",
		[WAIT_GO_SIGNAL] = "go_signal",
		[WAIT_GO_LOCK] = "go_lock",
		[WAIT_GO_NOTE] = "go_note",
	};

	return names[kind];
}

enum wait_kind wait_kind_named(const char *name)
{
	for (enum wait_kind kind = WAIT_NOTHING + 1; kind < WAIT_KIND_COUNT; kind++)
		if (strcmp(wait_kind_name(kind), name) == 0)
			return kind;
	return WAIT_NOTHING;
}

const char *wait_holder_name(enum wait_holder holder)
{
	static const char *const names[HOLDER_COUNT] = {
		[HOLDER_NOT_RECORDED] = "not_recorded", [HOLDER_NONE] = "none",	  [HOLDER_THREAD] = "thread",
		[HOLDER_READERS] = "readers",	        [HOLDER_ENDED] = "ended",	  [HOLDER_INFERRED] = "inferred",
	};

	return names[holder];
}

const char *mutex_type_name(enum mutex_type type)
{
	static const char *const names[MUTEX_TYPE_COUNT] = {
		[MUTEX_NORMAL] = "normal",
		[MUTEX_RECURSIVE] = "recursive",
		[MUTEX_ERROR_CHECKING] = "error_checking",
		[MUTEX_ADAPTIVE] = "adaptive",
	};

	return names[type];
}

const char *wait_left_name(enum wait_left left)
{
	static const char *const names[LEFT_COUNT] = {[LEFT_EXACT] = "exact", [LEFT_ABOUT] = "about", [LEFT_AT_MOST] = "at_most"};

	return names[left];
}

enum wait_kind wait_medium_of(const char *filesystem)
{
	static const struct {
		const char *prefix;
		enum wait_kind kind;
	} types[] = {
		{"nfs", WAIT_NFS},	{"fuse", WAIT_FUSE}, {"9p", WAIT_REMOTE},     {"cifs", WAIT_REMOTE},
		{"smb", WAIT_REMOTE}, {"ceph", WAIT_REMOTE}, {"afs", WAIT_REMOTE}, {"lustre", WAIT_REMOTE},
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strncmp(filesystem, types[i].prefix, strlen(types[i].prefix)) == 0)
			return types[i].kind;
	return WAIT_DISK;
}
