/* SPDX-License-Identifier: MIT */
/* What the kernel lets us load and ask. */
#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "doctor/check.h"
#include "kernel/mmap_watch.h"
#include "kernel/task_iter.h"

static int create_map(uint32_t type, uint32_t size, uint32_t entries, struct err *err)
{
	union bpf_attr attr = {.map_type = type, .key_size = size, .value_size = size, .max_entries = entries};
	_cleanup_close_ int fd = -1;

	if (!task_iter_built_in())
		return err_set(err, ENOTSUP, "this build of stakeout has no BPF");
	fd = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	return fd < 0 ? err_set(err, errno, "%s", strerror(errno)) : 0;
}

static int try_bpf(struct doctor *doctor, const char **how, struct err *err)
{
	return create_map(BPF_MAP_TYPE_ARRAY, 4, 1, err);
}

/* As large as that of a recording: an old kernel counts it as locked memory, which is limited. */
static int try_ring(struct doctor *doctor, const char **how, struct err *err)
{
	return create_map(BPF_MAP_TYPE_RINGBUF, 0, 16 << 20, err);
}

static int try_btf(struct doctor *doctor, const char **how, struct err *err)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		return 0;
	return err_set(err, errno, "/sys/kernel/btf/vmlinux: %s", strerror(errno));
}

static int try_perf(struct doctor *doctor, const char **how, struct err *err)
{
	struct mmap_watch *watch;
	int rc = mmap_watch_create(err, &watch);

	if (rc == 0)
		mmap_watch_destroy(watch);
	return rc;
}

static void *return_at_once(void *arg)
{
	return NULL;
}

/* As the thread that holds others is started. */
static int try_realtime(struct doctor *doctor, const char **how, struct err *err)
{
	struct sched_param first = {.sched_priority = 1};
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &first);
	rc = pthread_create(&thread, &attr, return_at_once, NULL);
	pthread_attr_destroy(&attr);
	if (rc)
		return err_set(err, rc, "%s", strerror(rc));
	pthread_join(thread, NULL);
	return 0;
}

/* A cpuset leaves no others. */
static int try_cpus(struct doctor *doctor, const char **how, struct err *err)
{
	const long online = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t before, all, got;
	int ours;

	memset(&all, 0xff, sizeof(all));
	if (sched_getaffinity(0, sizeof(before), &before) < 0 || sched_setaffinity(0, sizeof(all), &all) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	sched_getaffinity(0, sizeof(got), &got);
	sched_setaffinity(0, sizeof(before), &before);
	ours = CPU_COUNT(&got);
	if (ours < online)
		return err_set(err, EINVAL, "the cpuset of this control group has %d of %ld", ours, online);
	*how = arena_printf(doctor->arena, "%d", ours);
	return 0;
}

static const char *remedy_cpus(struct doctor *doctor, int code)
{
	return "start the container without --cpuset-cpus, or run it in another control group";
}

static const char *remedy_btf(struct doctor *doctor, int code)
{
	return REMEDY_BTF;
}

static const char *remedy_ring(struct doctor *doctor, int code)
{
	const struct finding *bpf = findings_find(&doctor->diagnosis->findings, "bpf", strlen("bpf"));

	if (code == EPERM && bpf && bpf->state == FINDING_WORKS)
		return "ulimit -l unlimited";
	return code == EINVAL ? "use Linux 5.8 or newer" : rights_remedy(&doctor->rights, REFUSED_BPF, "bpf", doctor->arena);
}

static const char group[] = "the kernel";

static const struct check list[] = {
	{
		.group = group,
		.name = "bpf",
		.about = "programs can be loaded into the kernel (BPF)",
		.costs = "waits over time are estimated, not measured; kernel stacks come from /proc, where root may read them",
		.attempt = try_bpf,
		.refused = REFUSED_BPF,
		.syscall = "bpf",
	},
	{
		.group = group,
		.name = "btf",
		.about = "the kernel describes its types (BTF)",
		.costs = "waits over time are estimated, not measured",
		.attempt = try_btf,
		.remedy = remedy_btf,
	},
	{
		.group = group,
		.name = "ring_buffer",
		.about = "room for what BPF tells (16 MiB)",
		.costs = "waits over time are estimated, not measured",
		.attempt = try_ring,
		.remedy = remedy_ring,
	},
	{
		.group = group,
		.name = "perf_event_open",
		.about = "news of code that processes map (perf_event_open)",
		.costs = "the first stacks through a library that was just loaded may end there",
		.attempt = try_perf,
		.refused = REFUSED_MMAP_WATCH,
		.syscall = "perf_event_open",
	},
	{
		.group = group,
		.name = "realtime",
		.about = "threads of our own come before all others (SCHED_FIFO)",
		.costs = "running threads are stopped by ptrace, on a busy machine for milliseconds instead of microseconds",
		.attempt = try_realtime,
		.refused = REFUSED_REALTIME,
	},
	{
		.group = group,
		.name = "cpus",
		.about = "all processors can be used",
		.costs = "symbols are read on fewer processors, and where the process itself may run",
		.attempt = try_cpus,
		.remedy = remedy_cpus,
		.is_extra = true,
	},
};

const struct checks kernel_checks = {list, sizeof(list) / sizeof(list[0])};
