/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "model/snapshot.h"

static void test_create(void **state)
{
	struct snapshot *snap = snapshot_create(42, &arch_aarch64);

	assert_int_equal(snap->pid, 42);
	assert_ptr_equal(snap->arch, &arch_aarch64);
	assert_non_null(snap->arena);
	snapshot_destroy(snap);
	snapshot_destroy(NULL);
}

static void test_bulk_is_unmapped(void **state)
{
	struct snapshot *snap = snapshot_create(42, arch_host());
	void *data = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(data, MAP_FAILED);
	assert_true(vec_push(&snap->bulk, (struct bulk){.data = data, .size = 4096}));
	snapshot_destroy(snap);
	assert_int_equal(msync(data, 4096, MS_ASYNC), -1);
	assert_int_equal(errno, ENOMEM);
}

static void test_mem(void **state)
{
	struct snapshot *snap = snapshot_create(42, arch_host());
	uint8_t stack[] = {1, 2, 3, 4}, image[] = {5, 6, 7, 8}, buf[8] = {0};
	struct snap_thread thread = {.stack = {.start = 0x1000, .len = 4, .data = stack}};
	struct snapshot_mem m;

	assert_true(vec_push(&snap->images, (struct mem_copy){.start = 0x2000, .len = 4, .data = image}));
	snapshot_mem_init(&m, snap, &thread);
	assert_int_equal(m.mem.read(&m.mem, 0x1000, buf, 2), 2);
	assert_memory_equal(buf, stack, 2);
	assert_int_equal(m.mem.read(&m.mem, 0x1002, buf, 8), 2);
	assert_memory_equal(buf, stack + 2, 2);
	assert_int_equal(m.mem.read(&m.mem, 0x2001, buf, 3), 3);
	assert_memory_equal(buf, image + 1, 3);
	assert_int_equal(m.mem.read(&m.mem, 0x1004, buf, 1), -EFAULT);
	assert_int_equal(m.mem.read(&m.mem, 0xfff, buf, 4), -EFAULT);
	assert_int_equal(m.mem.read(&m.mem, UINT64_MAX, buf, 8), -EFAULT);
	assert_true(mem_read_exact(&m.mem, 0x1000, buf, 4));
	assert_false(mem_read_exact(&m.mem, 0x1001, buf, 4));
	snapshot_mem_init(&m, snap, NULL);
	assert_int_equal(m.mem.read(&m.mem, 0x1000, buf, 2), -EFAULT);
	assert_int_equal(m.mem.read(&m.mem, 0x2000, buf, 2), 2);
	snapshot_destroy(snap);
}

/* What was read for one thread may be of another instant than the others were. */
static void test_mem_of_copies(void **state)
{
	struct snapshot *snap = snapshot_create(42, arch_host());
	uint8_t own[] = {1, 2, 3, 4}, common[] = {5, 6, 7, 8}, buf[8] = {0};
	struct snap_thread thread = {.tid = 42}, other = {.tid = 43};
	struct snapshot_mem m;

	assert_true(vec_push(&snap->copies,
			     (struct snap_copy){.tid = 42, .copy = {.start = 0x1000, .len = 4, .data = own}}));
	assert_true(vec_push(&snap->copies, (struct snap_copy){.copy = {.start = 0x2000, .len = 4, .data = common}}));
	snapshot_mem_init(&m, snap, &thread);
	assert_int_equal(m.mem.read(&m.mem, 0x1001, buf, 8), 3);
	assert_memory_equal(buf, own + 1, 3);
	assert_int_equal(m.mem.read(&m.mem, 0x2000, buf, 4), 4);
	assert_memory_equal(buf, common, 4);
	assert_int_equal(m.mem.read(&m.mem, 0x1000, buf, 4), 4); /* before the one that had the last */
	assert_memory_equal(buf, own, 4);
	assert_int_equal(m.mem.read(&m.mem, 0x1004, buf, 1), -EFAULT);
	snapshot_mem_init(&m, snap, &other);
	assert_int_equal(m.mem.read(&m.mem, 0x1000, buf, 4), -EFAULT);
	assert_int_equal(m.mem.read(&m.mem, 0x2000, buf, 4), 4);
	snapshot_mem_init(&m, snap, NULL);
	assert_int_equal(m.mem.read(&m.mem, 0x1000, buf, 4), -EFAULT);
	assert_int_equal(m.mem.read(&m.mem, 0x2000, buf, 4), 4);
	snapshot_destroy(snap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_bulk_is_unmapped),
		cmocka_unit_test(test_mem),
		cmocka_unit_test(test_mem_of_copies),
	};

	return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
