/* SPDX-License-Identifier: MIT */
#include "pymem.h"

#include "runtime/python/gil.h"
#include "runtime/python/locks.h"

/* A page of the process, which has everything. */
enum { BASE = PYMEM_BASE, SIZE = PYMEM_SIZE, OBJECT = BASE + 0x100, TYPE = BASE + 0x200, NAME = BASE + 0x400, SEMAPHORE = BASE + 0x500, GIL = BASE + 0x600,
       STACK = BASE + 0x1000 };

struct fixture {
	struct pymem pymem;
	struct python_layout layout;
	struct snapshot *snap;
	struct snap_thread thread;
	struct map_entry map;
};

static void put_type(struct fixture *f, const char *name, uint64_t size)
{
	pymem_put64(&f->pymem, OBJECT + 8, TYPE);
	pymem_put64(&f->pymem, TYPE + 24, NAME);
	pymem_put64(&f->pymem, TYPE + 32, size);
	memset(f->pymem.bytes + (NAME - BASE), 0, 64);
	pymem_put(&f->pymem, NAME, name, strlen(name));
}

static void begin(struct fixture *f)
{
	*f = (struct fixture){.pymem.mem.read = pymem_read, .snap = snapshot_create(1, arch_host())};
	f->layout.at[PY_RLOCK_OWNER] = 24;
	f->layout.at[PY_RLOCK_COUNT] = 32;
	f->layout.at[PY_GIL_HOLDER] = 8;
	f->layout.at[PY_GIL_LOCKED] = 16;
	f->layout.at[PY_GIL_MUTEX] = 80;
	f->layout.at[PY_RUNTIME] = GIL - 0x40;
	f->layout.at[PY_RUNTIME_GIL] = 0x40;
	f->map = (struct map_entry){.start = BASE, .end = BASE + SIZE, .perms = MAP_PERM_READ | MAP_PERM_WRITE, .path = ""};
	f->snap->maps.data = &f->map;
	f->snap->maps.len = 1;
	f->thread.stack = (struct mem_copy){
		.start = STACK, .len = BASE + SIZE - STACK, .region_end = BASE + SIZE, .data = f->pymem.bytes + (STACK - BASE)};
}

static void end(struct fixture *f)
{
	f->snap->maps = (struct maps){0};
	snapshot_destroy(f->snap);
}

static void test_candidates(void **state)
{
	uint64_t found[PYTHON_LOCK_CANDIDATES];
	struct fixture f;

	begin(&f);
	pymem_put64(&f.pymem, STACK + 8, OBJECT);
	pymem_put64(&f.pymem, STACK + 16, OBJECT);	   /* once */
	pymem_put64(&f.pymem, STACK + 24, OBJECT + 8);   /* no object begins there, */
	pymem_put64(&f.pymem, STACK + 32, STACK + 0x40); /* nor on the stack, */
	pymem_put64(&f.pymem, STACK + 40, 0x5000000);	   /* nor where nothing is */
	pymem_put64(&f.pymem, STACK + 0x500, TYPE);	   /* too far away */
	f.thread.regs.v[3] = SEMAPHORE;
	f.thread.regs.v[4] = GIL;
	f.thread.regs.valid = 1 << 3;
	assert_int_equal(python_lock_candidates(f.snap, &f.thread, found), 2);
	assert_int_equal(found[0], SEMAPHORE);
	assert_int_equal(found[1], OBJECT);
	for (uint64_t i = 0; i < 200; i++)
		pymem_put64(&f.pymem, STACK + 8 * i, BASE + 16 * i);
	assert_int_equal(python_lock_candidates(f.snap, &f.thread, found), PYTHON_LOCK_CANDIDATES);
	f.map.inode = 7; /* variables of a file */
	assert_int_equal(python_lock_candidates(f.snap, &f.thread, found), 0);
	end(&f);
}

static void test_object(void **state)
{
	struct python_lock lock;
	struct fixture f;

	begin(&f);
	pymem_put64(&f.pymem, OBJECT + 16, SEMAPHORE);
	assert_int_equal(python_lock_word(f.pymem.bytes + (OBJECT - BASE)), SEMAPHORE);
	put_type(&f, "_thread.lock", 40);
	assert_true(python_lock_read(&f.layout, &f.pymem.mem, OBJECT, &lock));
	assert_int_equal(lock.kind, WAIT_PYTHON_LOCK);
	put_type(&f, "_thread.RLock", 48);
	pymem_put64(&f.pymem, OBJECT + 24, 0xabc000);
	pymem_put64(&f.pymem, OBJECT + 32, 3);
	assert_true(python_lock_read(&f.layout, &f.pymem.mem, OBJECT, &lock));
	assert_int_equal(lock.kind, WAIT_PYTHON_RLOCK);
	assert_int_equal(lock.owner, 0xabc000);
	assert_int_equal(lock.count, 3);
	pymem_put64(&f.pymem, OBJECT + 32, UINT64_MAX); /* this is no count, and so that was no owner */
	assert_true(python_lock_read(&f.layout, &f.pymem.mem, OBJECT, &lock));
	assert_int_equal(lock.owner, 0);
	end(&f);
}

static void test_no_object(void **state)
{
	static const char *const names[] = {"dict", "program.lock", "_thread.lock2", "", "program.RLock"};
	struct python_lock lock;
	struct fixture f;

	begin(&f);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		put_type(&f, names[i], 48);
		assert_false(python_lock_read(&f.layout, &f.pymem.mem, OBJECT, &lock));
	}
	put_type(&f, "_thread.RLock", 32); /* too small for what is looked for in it */
	assert_false(python_lock_read(&f.layout, &f.pymem.mem, OBJECT, &lock));
	assert_false(python_lock_read(&f.layout, &f.pymem.mem, BASE + SIZE - 4, &lock));
	end(&f);
}

static void test_beside(void **state)
{
	struct fixture f;

	begin(&f);
	f.thread.syscall.args[0] = STACK + 0x48;
	pymem_put64(&f.pymem, STACK + 0x40, OBJECT + 16);
	assert_int_equal(python_lock_beside(&f.thread, &f.pymem.mem), OBJECT);
	pymem_put64(&f.pymem, STACK + 0x40, 3);
	assert_int_equal(python_lock_beside(&f.thread, &f.pymem.mem), 0);
	f.thread.syscall.args[0] = SEMAPHORE; /* not on the stack */
	assert_int_equal(python_lock_beside(&f.thread, &f.pymem.mem), 0);
	end(&f);
}

/* What a thread lets go of when it ends: by a weak reference behind its number, which is further away since 3.11. */
static void test_end_by_a_lock(void **state)
{
	enum { TSTATE = BASE + 0x700, SELF = 0x10, REFERENCE = BASE + 0x800 };
	struct fixture f;

	begin(&f);
	f.layout.at[PY_TSTATE_THREAD] = SELF;
	pymem_put64(&f.pymem, OBJECT + 24, REFERENCE);
	for (uint64_t minor = 8; minor <= 13; minor++) {
		memset(f.pymem.bytes + (TSTATE - BASE), 0, 0x100);
		f.layout.at[PY_VERSION] = 0x03000000 | minor << 16;
		assert_int_equal(python_end_of_thread(&f.layout, &f.pymem.mem, TSTATE), 0);
		pymem_put64(&f.pymem, TSTATE + SELF + (minor > 10 ? 40 : 32), REFERENCE);
		assert_int_equal(python_end_of_thread(&f.layout, &f.pymem.mem, TSTATE), minor <= 12 ? REFERENCE : 0);
		assert_int_equal(python_end_of_lock(&f.layout, &f.pymem.mem, OBJECT), minor <= 12 ? REFERENCE : 0);
	}
	f.layout.at[PY_VERSION] = 0x030c0000;
	assert_int_equal(python_end_of_lock(&f.layout, &f.pymem.mem, 0x5000000), 0); /* nothing is there */
	assert_int_equal(python_end_of_thread(&f.layout, &f.pymem.mem, 0x5000000), 0);
	end(&f);
}

/* struct ThreadHandle: two lists, the thread's number twice, whether that is known, its state, a mutex of a byte, and the byte. */
static void test_end_by_a_byte(void **state)
{
	enum { HANDLE = BASE + 0x900, BYTE = HANDLE + 57 };
	struct fixture f;

	begin(&f);
	pymem_put64(&f.pymem, HANDLE + 32, 0xabc000);
	pymem_put64(&f.pymem, HANDLE + 40, 0xabc000);
	pymem_put64(&f.pymem, HANDLE + 48, (uint64_t)3 << 32 | 1);
	assert_int_equal(python_end_beside(&f.pymem.mem, BYTE - 16), 0xabc000);
	assert_int_equal(python_end_beside(&f.pymem.mem, BYTE - 16 + 1), 0);
	pymem_put64(&f.pymem, HANDLE + 48, (uint64_t)3 << 32); /* not known */
	assert_int_equal(python_end_beside(&f.pymem.mem, BYTE - 16), 0);
	pymem_put64(&f.pymem, HANDLE + 48, 1);
	pymem_put64(&f.pymem, HANDLE + 40, 0xabc001); /* not the same */
	assert_int_equal(python_end_beside(&f.pymem.mem, BYTE - 16), 0);
	assert_int_equal(python_end_beside(&f.pymem.mem, 3), 0);
	assert_int_equal(python_end_beside(&f.pymem.mem, 0x5000000 + 57 - 16), 0);
	end(&f);
}

/* While it is handed on, the holder is the one before. */
static void test_gil(void **state)
{
	struct python_gil gil;
	struct fixture f;

	begin(&f);
	pymem_put64(&f.pymem, GIL + 8, 0x7000);
	pymem_put64(&f.pymem, GIL + 16, 1);
	assert_true(python_gil_read(&f.layout, &f.pymem.mem, 0, &gil));
	assert_true(gil.holder == 0x7000 && gil.settled);
	pymem_put64(&f.pymem, GIL + 80, 1);
	assert_true(python_gil_read(&f.layout, &f.pymem.mem, 0, &gil));
	assert_true(gil.holder == 0x7000 && !gil.settled);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_candidates), cmocka_unit_test(test_object), cmocka_unit_test(test_no_object),
		cmocka_unit_test(test_beside),	   cmocka_unit_test(test_gil),	  cmocka_unit_test(test_end_by_a_lock),
		cmocka_unit_test(test_end_by_a_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
