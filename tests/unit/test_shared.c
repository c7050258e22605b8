/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "wait/shared.h"

/* Two processes: a thread of the first waits for a lock in memory that a thread of the second has, as far as its number tells. */
enum { WAITER = 100, OWNER = 200, INSTANT = 4711, LOCK = 0x7000 };

struct pair {
	struct snapshot snaps[2];
	struct map_entry maps[2][3];
	struct snap_thread threads[2];
	struct trace_thread traced[2];
	struct trace traces[2];
	struct trace *all[2];
};

static const struct map_entry memory = {.start = 0x7000, .end = 0x9000, .offset = 0x1000, .inode = 5, .dev_major = 1, .dev_minor = 2,
					.perms = MAP_PERM_READ | MAP_PERM_WRITE | MAP_PERM_SHARED, .path = "/dev/shm/x"};

static void init(struct pair *p)
{
	*p = (struct pair){0};
	for (size_t i = 0; i < 2; i++) {
		p->maps[i][0] = memory;
		p->snaps[i].pid = i ? OWNER : WAITER;
		p->snaps[i].maps.data = p->maps[i];
		p->snaps[i].maps.len = 1;
		p->snaps[i].capture.instant_ns = INSTANT;
		p->threads[i] = (struct snap_thread){.tid = i ? OWNER : WAITER, .still = STILL_THROUGHOUT, .read_in = 1, .still_in = 1};
		p->snaps[i].threads.data = &p->threads[i];
		p->snaps[i].threads.len = 1;
		p->traced[i] = (struct trace_thread){.snap = &p->snaps[i], .thread = &p->threads[i]};
		p->traces[i].snap = &p->snaps[i];
		p->traces[i].threads.data = &p->traced[i];
		p->traces[i].threads.len = 1;
		p->all[i] = &p->traces[i];
	}
	p->maps[1][0].start = 0x20000; /* mapped from a page before on */
	p->maps[1][0].end = 0x23000;
	p->maps[1][0].offset = 0;
	p->traced[0].wait = (struct wait){.kind = WAIT_MUTEX, .address = LOCK, .holder = HOLDER_THREAD, .owner = OWNER, .shared = true, .evident = true};
}

static const struct wait *find(struct pair *p)
{
	waits_find_shared(p->all, 2);
	return &p->traced[0].wait;
}

static void test_owner(void **state)
{
	struct pair p;

	init(&p);
	assert_int_equal(find(&p)->owner_pid, OWNER);
	assert_true(p.traced[0].wait.certain);
	init(&p);
	p.traced[0].wait.owner_pid = OWNER; /* as it was found before, and not looked at */
	p.traced[0].wait.owner_comm = "x";
	assert_null(find(&p)->owner_comm);
	assert_true(p.traced[0].wait.certain);
}

/* What is another object, or another part of it, is not the same lock. */
static void test_other_memory(void **state)
{
	struct pair p;

	for (int what = 0; what < 6; what++) {
		init(&p);
		if (what == 0)
			p.maps[1][0].inode++;
		else if (what == 1)
			p.maps[1][0].dev_minor++;
		else if (what == 2)
			p.maps[1][0].perms &= ~(uint32_t)MAP_PERM_SHARED;
		else if (what == 3)
			p.maps[1][0].end = 0x21000; /* only the page before */
		else if (what == 4)
			p.maps[1][0].offset = 0x2000; /* only what follows */
		else
			p.maps[0][0].perms &= ~(uint32_t)MAP_PERM_SHARED;
		assert_int_equal(find(&p)->owner_pid, 0);
		assert_false(p.traced[0].wait.certain);
	}
	init(&p);
	p.maps[0][0].path = p.maps[1][0].path = "/SYSV00000000"; /* each namespace has one with this number */
	assert_int_equal(find(&p)->owner_pid, 0);
	p.snaps[0].ipc_ns = p.snaps[1].ipc_ns = 3;
	assert_int_equal(find(&p)->owner_pid, OWNER);
}

/* An object may be mapped in several parts, one of which may have another in it. */
static void test_several_parts(void **state)
{
	struct pair p;

	for (uint64_t offset = 0; offset < 6; offset++) {
		init(&p);
		p.maps[1][0] = p.maps[1][1] = p.maps[1][2] = memory;
		p.maps[1][0].inode--;
		p.maps[1][0].offset = 0x1000;
		p.maps[1][1].offset = 0x1000; /* to 0x4000 of the object, */
		p.maps[1][1].end = p.maps[1][1].start + 0x3000;
		p.maps[1][2].offset = 0x2000; /* in which is one to 0x3000 */
		p.maps[1][2].end = p.maps[1][2].start + 0x1000;
		p.snaps[1].maps.len = 3;
		p.maps[0][0].offset = offset * 0x1000; /* what the lock is at */
		assert_int_equal(find(&p)->owner_pid, offset >= 1 && offset < 4 ? OWNER : 0);
	}
}

/* The child of a vfork() has its parent's memory, and a lock of that: who has it was found before. */
static void test_same_memory(void **state)
{
	struct pair p;

	for (int what = 0; what < 5; what++) {
		init(&p);
		p.maps[0][0].perms &= ~(uint32_t)MAP_PERM_SHARED;
		p.traced[0].wait.owner_pid = OWNER;
		p.traced[0].wait.owner_comm = "parent";
		if (what == 1)
			p.traced[0].wait.owner = OWNER + 1; /* a thread that was not looked at */
		else if (what == 2)
			p.snaps[1].capture.instant_ns++;
		else if (what == 3)
			p.snaps[0].has_doubtful_numbers = true; /* elsewhere */
		else if (what == 4)
			p.snaps[1].pid++;
		assert_int_equal(find(&p)->certain, what == 0 || what == 3);
		assert_int_equal(p.traced[0].wait.owner_comm == NULL, what != 1 && what != 4);
	}
}

static void test_other_numbers(void **state)
{
	struct pair p;

	init(&p);
	p.snaps[0].inner_pid = 1; /* another namespace than the second's */
	assert_int_equal(find(&p)->owner_pid, 0);
	p.snaps[1].inner_pid = 1;
	p.threads[1].inner_tid = OWNER;
	assert_int_equal(find(&p)->owner_pid, 0); /* which may be two */
	p.snaps[0].pid_ns = 7;
	p.snaps[1].pid_ns = 8;
	assert_int_equal(find(&p)->owner_pid, 0);
	p.snaps[1].pid_ns = 7;
	assert_int_equal(find(&p)->owner_pid, OWNER);
	assert_true(p.traced[0].wait.certain);
	init(&p);
	p.snaps[0].has_doubtful_numbers = true;
	assert_int_equal(find(&p)->owner_pid, OWNER);
	assert_false(p.traced[0].wait.certain);
}

/* Certain is only what was so at one instant. */
static void test_instants(void **state)
{
	struct pair p;

	init(&p);
	p.snaps[1].capture.instant_ns++;
	assert_false(find(&p)->certain);
	init(&p);
	p.snaps[0].capture.instant_ns = p.snaps[1].capture.instant_ns = 0;
	assert_false(find(&p)->certain);
	init(&p);
	p.threads[1].read_in = 2; /* it was seen still only after the lock was read */
	assert_false(find(&p)->certain);
	init(&p);
	p.threads[1].still = STILL_IN_WINDOW;
	assert_false(find(&p)->certain);
	init(&p);
	p.threads[0].still = p.threads[1].still = STILL_IN_WINDOW;
	assert_true(find(&p)->certain);
	init(&p);
	p.threads[0].woken = true;
	assert_false(find(&p)->certain);
	init(&p);
	p.traced[0].wait.evident = false;
	assert_false(find(&p)->certain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owner),
		cmocka_unit_test(test_other_memory),
		cmocka_unit_test(test_several_parts),
		cmocka_unit_test(test_same_memory),
		cmocka_unit_test(test_other_numbers),
		cmocka_unit_test(test_instants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
