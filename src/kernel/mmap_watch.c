/* SPDX-License-Identifier: MIT */
#include "kernel/mmap_watch.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/map.h"
#include "base/vec.h"
#include "privilege/remedy.h"

enum {
	RING_BYTES = 1 << 16, /* of each CPU: some 500 mappings */
	MAX_CPUS = 1 << 13,
	FILE_ID_BYTES = 24, /* device and inode, or a build-id, which is as long */
};

struct cpu_ring {
	int fd;
	struct perf_event_mmap_page *page; /* followed by the ring */
};

struct mmap_watch {
	int epoll_fd;
	size_t page_bytes;
	size_t ring_bytes; /* a power of two */
	VEC(struct cpu_ring) cpus;
	uint8_t *records; /* ring_bytes long: what is read from one ring, in one piece */
	uint64_t lost;
};

DEFINE_CLEANUP(mmap_watch, struct mmap_watch *, mmap_watch_destroy)

static int explain(struct err *err, int code)
{
	char help[REMEDY_SIZE];

	if (code == EPERM || code == EACCES)
		return err_set(err, code, "watching mappings was refused (%s): %s", strerror(code), remedy(REFUSED_MMAP_WATCH, help));
	return err_set(err, code, "watching mappings by perf events: %s", strerror(code));
}

/* One more than the highest number that a CPU of this machine can have. The file is a list such as 0-3,8. */
static int count_cpus(void)
{
	_cleanup_fclose_ FILE *f = fopen("/sys/devices/system/cpu/possible", "re");
	long configured = sysconf(_SC_NPROCESSORS_CONF);
	char separator;
	int last = -1;

	while (f && fscanf(f, "%d%c", &last, &separator) == 2 && separator != '\n')
		;
	if (last < 0)
		last = (int)configured - 1;
	return last < MAX_CPUS ? last + 1 : MAX_CPUS;
}

static int open_event(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.mmap = 1, /* mmap2 alone makes the kernel write nothing */
		.mmap2 = 1,
		.watermark = 1,
		.wakeup_watermark = 1, /* wake at once: the reader decides how long to gather */
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void close_ring(const struct mmap_watch *watch, struct cpu_ring *ring)
{
	if (ring->page)
		munmap(ring->page, watch->page_bytes + watch->ring_bytes);
	close(ring->fd);
}

static int add_cpu(struct mmap_watch *watch, int cpu, struct err *err)
{
	struct cpu_ring ring = {.fd = open_event(cpu)};
	struct epoll_event event = {.events = EPOLLIN};
	void *page;
	int rc = 0;

	if (ring.fd < 0) /* an offline CPU maps nothing; if it comes up later, stacks that lack tables ask for them */
		return errno == ENODEV ? 0 : explain(err, errno);
	page = mmap(NULL, watch->page_bytes + watch->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, 0);
	if (page != MAP_FAILED)
		ring.page = page;
	if (!ring.page || epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, ring.fd, &event) < 0)
		rc = explain(err, errno);
	else if (!vec_push(&watch->cpus, ring))
		rc = err_set(err, ENOMEM, "out of memory");
	if (rc < 0)
		close_ring(watch, &ring);
	return rc;
}

int mmap_watch_create(struct err *err, struct mmap_watch **out)
{
	_cleanup_(cleanup_mmap_watch) struct mmap_watch *watch = calloc(1, sizeof(*watch));
	int ncpus = count_cpus(), rc = 0;

	if (!watch)
		return err_set(err, ENOMEM, "out of memory");
	watch->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	watch->ring_bytes = watch->page_bytes > RING_BYTES ? watch->page_bytes : RING_BYTES;
	watch->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (watch->epoll_fd < 0)
		return explain(err, errno);
	watch->records = malloc(watch->ring_bytes);
	if (!watch->records)
		return err_set(err, ENOMEM, "out of memory");
	for (int cpu = 0; rc == 0 && cpu < ncpus; cpu++)
		rc = add_cpu(watch, cpu, err);
	if (rc < 0)
		return rc;
	*out = steal_ptr(watch);
	return 0;
}

void mmap_watch_destroy(struct mmap_watch *watch)
{
	if (!watch)
		return;
	for (size_t i = 0; i < watch->cpus.len; i++)
		close_ring(watch, &watch->cpus.data[i]);
	vec_deinit(&watch->cpus);
	if (watch->epoll_fd >= 0)
		close(watch->epoll_fd);
	free(watch->records);
	free(watch);
}

int mmap_watch_fd(const struct mmap_watch *watch)
{
	return watch->epoll_fd;
}

static void parse_mapping(struct cursor *c, mmap_watch_fn tell, void *arg)
{
	int32_t tgid = (int32_t)cursor_u32(c);
	uint32_t prot;

	cursor_skip(c, sizeof(uint32_t) + 3 * sizeof(uint64_t) + FILE_ID_BYTES); /* tid; address, length, offset */
	prot = cursor_u32(c);
	/* Processes of other pid namespaces have no number here: 0 or -1. */
	if (!c->bad && prot & PROT_EXEC && tgid > 0)
		tell(arg, tgid);
}

uint64_t mmap_watch_parse(const void *records, size_t len, mmap_watch_fn tell, void *arg)
{
	struct cursor c = cursor_init(records, len);
	uint64_t lost = 0;

	c.big_endian = CURSOR_BIG_ENDIAN_HOST;
	while (cursor_left(&c)) {
		uint32_t type = cursor_u32(&c);
		uint32_t misc = cursor_u16(&c);
		uint32_t size = cursor_u16(&c);
		struct cursor body;

		(void)misc; /* which kind of file id it is */
		if (size < sizeof(struct perf_event_header))
			break;
		body = cursor_take(&c, size - sizeof(struct perf_event_header));
		body.big_endian = c.big_endian;
		if (type == PERF_RECORD_MMAP2) {
			parse_mapping(&body, tell, arg);
		} else if (type == PERF_RECORD_LOST) {
			cursor_skip(&body, sizeof(uint64_t)); /* number of the event */
			lost += cursor_u64(&body);
		}
	}
	return lost;
}

/* Copies what is new in a ring, which may wrap around, and gives the room back. */
static size_t take_records(struct mmap_watch *watch, struct cpu_ring *ring)
{
	const uint8_t *data = (const uint8_t *)ring->page + watch->page_bytes;
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;
	size_t len = (size_t)(head - tail), at = (size_t)tail & (watch->ring_bytes - 1);
	size_t first = watch->ring_bytes - at;

	if (len > watch->ring_bytes) /* never happens: the kernel does not overwrite unread records */
		len = 0;
	if (first > len)
		first = len;
	memcpy(watch->records, data + at, first);
	memcpy(watch->records + first, data, len - first);
	__atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
	return len;
}

struct batch {
	struct u64map seen;
	mmap_watch_fn tell;
	void *arg;
};

static void tell_once(void *arg, pid_t tgid)
{
	struct batch *batch = arg;
	bool created = true;

	/* Without memory to remember it: reported twice is better than never. */
	if (!u64map_put(&batch->seen, (uint64_t)tgid, &created) || created)
		batch->tell(batch->arg, tgid);
}

void mmap_watch_read(struct mmap_watch *watch, mmap_watch_fn tell, void *arg)
{
	struct batch batch = {.tell = tell, .arg = arg};

	for (size_t i = 0; i < watch->cpus.len; i++) {
		size_t len = take_records(watch, &watch->cpus.data[i]);

		watch->lost += mmap_watch_parse(watch->records, len, tell_once, &batch);
	}
	u64map_deinit(&batch.seen);
}

uint64_t mmap_watch_lost(const struct mmap_watch *watch)
{
	return watch->lost;
}
