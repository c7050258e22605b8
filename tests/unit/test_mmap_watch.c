/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "kernel/mmap_watch.h"

enum { MANY = 4 * (1 << 16) / 72 }; /* more than a ring of 64 KiB holds: a record has 72 bytes and a name */

/* What the watch reported. */
struct reports {
	pid_t wanted;
	pid_t unwanted; /* 0: all others */
	int times;
	int wrong;
};

static void on_report(void *arg, pid_t tgid)
{
	struct reports *reports = arg;

	if (tgid == reports->wanted)
		reports->times++;
	else if (!reports->unwanted || tgid == reports->unwanted)
		reports->wrong++;
}

/* A child that maps as often as it is told to, on one CPU. */
struct mapper {
	pid_t pid;
	int to;
	int from;
};

static void run_mapper(int in, int out)
{
	int cpu = sched_getcpu(), fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct {
		int times;
		int prot;
	} order;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (fd < 0 || sched_setaffinity(0, sizeof(set), &set) < 0)
		_exit(1);
	while (read(in, &order, sizeof(order)) == sizeof(order)) {
		for (int i = 0; i < order.times; i++) {
			void *p = mmap(NULL, 4096, order.prot, MAP_PRIVATE, fd, 0);

			if (p == MAP_FAILED)
				_exit(1);
			munmap(p, 4096);
		}
		if (write(out, "d", 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static void mapper_start(struct mapper *mapper)
{
	int to[2], from[2];

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	mapper->pid = fork();
	assert_true(mapper->pid >= 0);
	if (mapper->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(to[1]);
		close(from[0]);
		run_mapper(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	mapper->to = to[1];
	mapper->from = from[0];
}

/* Returns when it has mapped. */
static void mapper_map(const struct mapper *mapper, int times, int prot)
{
	int order[] = {times, prot};
	char done;

	assert_int_equal(write(mapper->to, order, sizeof(order)), sizeof(order));
	assert_int_equal(read(mapper->from, &done, 1), 1);
}

static void mapper_end(const struct mapper *mapper)
{
	close(mapper->to);
	close(mapper->from);
	child_end(mapper->pid);
}

static struct mmap_watch *create_or_skip(void)
{
	struct mmap_watch *watch = NULL;
	struct err err = {0};

	if (mmap_watch_create(&err, &watch) < 0) {
		assert_true(err.msg[0]);
		print_message("skipped: %s\n", err.msg);
		skip();
	}
	return watch;
}

static bool is_readable(const struct mmap_watch *watch, int timeout_ms)
{
	struct pollfd fd = {.fd = mmap_watch_fd(watch), .events = POLLIN};

	return poll(&fd, 1, timeout_ms) == 1;
}

static void test_tells_who_mapped(void **state)
{
	struct mmap_watch *watch = create_or_skip();
	struct reports reports = {0};
	struct mapper mapper;

	mapper_start(&mapper);
	reports.wanted = mapper.pid;
	mapper_map(&mapper, 1, PROT_READ | PROT_EXEC); /* it is up: whatever it mapped until then is reported now */
	assert_true(is_readable(watch, 10000));
	mmap_watch_read(watch, on_report, &reports);
	assert_int_equal(reports.times, 1);

	reports.times = 0;
	mapper_map(&mapper, 1, PROT_READ); /* data */
	mmap_watch_read(watch, on_report, &reports);
	assert_int_equal(reports.times, 0);

	mapper_map(&mapper, 50, PROT_READ | PROT_EXEC); /* once for a batch */
	mmap_watch_read(watch, on_report, &reports);
	assert_int_equal(reports.times, 1);
	mmap_watch_read(watch, on_report, &reports);
	assert_int_equal(reports.times, 1);
	assert_int_equal(mmap_watch_lost(watch), 0);
	mapper_end(&mapper);
	mmap_watch_destroy(watch);
}

/* A program that starts is reported under the number that its parent knows. */
static void test_tells_of_programs(void **state)
{
	struct mmap_watch *watch = create_or_skip();
	struct reports reports = {0};
	int status;

	reports.wanted = fork();
	assert_true(reports.wanted >= 0);
	if (reports.wanted == 0) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(reports.wanted, &status, 0), reports.wanted);
	assert_int_equal(status, 0);
	mmap_watch_read(watch, on_report, &reports);
	assert_int_equal(reports.times, 1);
	mmap_watch_destroy(watch);
}

/* Round and round the ring, by two in turn: what is left of the other must not be reported again. */
static void test_ring_wraps(void **state)
{
	struct mmap_watch *watch = create_or_skip();
	struct mapper mappers[2];

	mapper_start(&mappers[0]);
	mapper_start(&mappers[1]);
	for (int i = 0; i < MANY / 37; i++) {
		struct reports reports = {.wanted = mappers[i % 2].pid, .unwanted = mappers[!(i % 2)].pid};

		mapper_map(&mappers[i % 2], 37, PROT_READ | PROT_EXEC);
		mmap_watch_read(watch, on_report, &reports);
		assert_int_equal(reports.times, 1);
		assert_int_equal(reports.wrong, 0);
	}
	assert_int_equal(mmap_watch_lost(watch), 0);
	mapper_end(&mappers[0]);
	mapper_end(&mappers[1]);
	mmap_watch_destroy(watch);
}

static void test_counts_what_is_lost(void **state)
{
	struct mmap_watch *watch = create_or_skip();
	long page = sysconf(_SC_PAGESIZE);
	int many = page > 1 << 16 ? MANY * (int)(page >> 16) : MANY;
	struct reports reports = {0};
	struct mapper mapper;

	mapper_start(&mapper);
	reports.wanted = mapper.pid;
	mapper_map(&mapper, many, PROT_READ | PROT_EXEC);
	mmap_watch_read(watch, on_report, &reports);
	assert_int_equal(reports.times, 1);
	mapper_map(&mapper, 1, PROT_READ | PROT_EXEC); /* with this one the kernel tells */
	mmap_watch_read(watch, on_report, &reports);
	assert_int_equal(reports.times, 2);
	assert_in_range(mmap_watch_lost(watch), many / 2, many);
	mapper_end(&mapper);
	mmap_watch_destroy(watch);
}

/* Records, made by hand. */
struct made {
	uint8_t bytes[1024];
	size_t len;
};

static void make_mapping(struct made *made, uint16_t misc, uint32_t tgid, uint32_t prot)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		uint64_t addr, len, pgoff;
		uint8_t file[24];
		uint32_t prot, flags;
		char name[8];
	} record = {
		.header = {.type = PERF_RECORD_MMAP2, .misc = misc, .size = sizeof(record)},
		.pid = tgid,
		.tid = 99,
		.prot = prot,
		.name = "x",
	};

	memset(record.file, 0xff, sizeof(record.file));
	memcpy(made->bytes + made->len, &record, sizeof(record));
	made->len += sizeof(record);
}

static void make_lost(struct made *made, uint64_t count)
{
	struct {
		struct perf_event_header header;
		uint64_t id, lost;
	} record = {.header = {.type = PERF_RECORD_LOST, .size = sizeof(record)}, .id = 1000, .lost = count};

	memcpy(made->bytes + made->len, &record, sizeof(record));
	made->len += sizeof(record);
}

static void test_parses(void **state)
{
	struct reports reports = {.wanted = 5};
	struct made made = {0};

	make_mapping(&made, PERF_RECORD_MISC_USER, 5, PROT_READ | PROT_EXEC);
	make_lost(&made, 3);
	make_mapping(&made, PERF_RECORD_MISC_USER | 1 << 14, 5, PROT_EXEC); /* with a build-id */
	make_mapping(&made, PERF_RECORD_MISC_USER, 5, PROT_READ | PROT_WRITE);
	make_mapping(&made, PERF_RECORD_MISC_USER, 0, PROT_EXEC); /* of other pid namespaces */
	make_mapping(&made, PERF_RECORD_MISC_USER, UINT32_MAX, PROT_EXEC);
	make_lost(&made, 4);
	assert_int_equal(mmap_watch_parse(made.bytes, made.len, on_report, &reports), 7);
	assert_int_equal(reports.times, 2);
	assert_int_equal(reports.wrong, 0);
}

/* Whatever is cut off or has no length ends there; what comes before it counts. */
static void test_cut_short(void **state)
{
	struct made made = {0};
	struct reports reports;

	make_mapping(&made, PERF_RECORD_MISC_USER, 5, PROT_EXEC);
	make_lost(&made, 3);
	for (size_t len = 0; len < made.len; len++) {
		uint8_t *copy = malloc(len + 1);

		memcpy(copy, made.bytes, len);
		reports = (struct reports){.wanted = 5};
		assert_int_equal(mmap_watch_parse(copy, len, on_report, &reports), 0);
		assert_int_equal(reports.times, len >= made.len - 24);
		free(copy);
	}
	memset(made.bytes + 6, 0, 2); /* size of the first */
	reports = (struct reports){.wanted = 5};
	assert_int_equal(mmap_watch_parse(made.bytes, made.len, on_report, &reports), 0);
	assert_int_equal(reports.times, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tells_who_mapped), cmocka_unit_test(test_tells_of_programs),
		cmocka_unit_test(test_ring_wraps),       cmocka_unit_test(test_counts_what_is_lost),
		cmocka_unit_test(test_parses),           cmocka_unit_test(test_cut_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
