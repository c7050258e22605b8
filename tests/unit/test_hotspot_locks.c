/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include "hotspot_fake.h"
#include "runtime/hotspot/locks.h"

static struct fake fake;

/* Two threads of Java: the first waits; and objects with a header of 12 bytes. */
enum {
	WAITER = FAKE_DATA + 0x100, /* pending 0, waiting 8, number 16, locked 24 (top, and behind it objects), current 128 */
	OWNER = FAKE_DATA + 0x200,
	WAITER_HANDLE = FAKE_DATA + 0x300,
	MONITOR = FAKE_DATA + 0x400, /* object 0, owner 8, recursions 16 */
	MONITOR_HANDLE = FAKE_DATA + 0x440,
	OBJECT_CLASS = FAKE_DATA + 0x500, /* name 0, constants 8, fields 16, count 24, super 32 */
	THREAD_CLASS = FAKE_DATA + 0x540,
	OWNED_CLASS = FAKE_DATA + 0x580,
	LOCK_CLASS = FAKE_DATA + 0x5c0,
	LATCH_CLASS = FAKE_DATA + 0x600,
	SYMBOLS = FAKE_DATA + 0x800,
	POOL = FAKE_DATA + 0xc00,
	FIELDS = FAKE_DATA + 0xd00,
	OBJECT = FAKE_DATA + 0x2000,
	WAITER_OBJECT = FAKE_DATA + 0x2100, /* eetop 16, blocker 24, status 28 */
	OWNER_OBJECT = FAKE_DATA + 0x2200,
	LOCK = FAKE_DATA + 0x2300, /* its owner at 12 */
	LATCH = FAKE_DATA + 0x2400,
	OWNER_STACK = 0x70000000,
	STACK_SIZE = 0x10000,
};

static unsigned nsymbols;

static uint64_t put_symbol(const char *text)
{
	uint64_t at = SYMBOLS + 0x60 * nsymbols++;

	fake_symbol(&fake, at, text);
	return at;
}

static void put_class(uint64_t class, const char *name, uint64_t super)
{
	fake_put(&fake, class, put_symbol(name), 8);
	fake_put(&fake, class + 32, super, 8);
}

static void put_object(uint64_t object, uint64_t class)
{
	fake_put(&fake, object + 8, class, 4);
}

static void put_fields(void)
{
	fake_field(&fake, HS_THREAD_PENDING, 0, 8, false);
	fake_field(&fake, HS_THREAD_WAITING, 8, 8, false);
	fake_field(&fake, HS_THREAD_OBJECT, 128, 8, false);
	fake_field(&fake, HS_MONITOR_OBJECT, 0, 8, false);
	fake_field(&fake, HS_MONITOR_OWNER, 8, 8, false);
	fake_field(&fake, HS_MONITOR_RECURSIONS, 16, 8, true);
	fake_field(&fake, HS_KLASS_NAME, 0, 8, false);
	fake_field(&fake, HS_KLASS_CONSTANTS, 8, 8, false);
	fake_field(&fake, HS_KLASS_FIELDS, 16, 8, false);
	fake_field(&fake, HS_KLASS_FIELD_COUNT, 24, 2, false);
	fake_field(&fake, HS_KLASS_SUPER, 32, 8, false);
	fake.layout.facts[HS_THREAD_OBJECT_IS_HANDLE] = 1;
	fake.layout.facts[HS_CLASS_THREAD] = THREAD_CLASS;
	fake.layout.facts[HS_NARROW_OOP_BASE] = fake.layout.facts[HS_NARROW_KLASS_BASE] = 0;
	fake.layout.facts[HS_NARROW_OOP_SHIFT] = 3;
	fake.layout.facts[HS_NARROW_KLASS_SHIFT] = 0;
}

/* AbstractOwnableSynchronizer's only field, in the form of before 21. */
static void put_owner_field(void)
{
	fake_put(&fake, OWNED_CLASS + 8, POOL, 8);
	fake_put(&fake, OWNED_CLASS + 16, FIELDS, 8);
	fake_put(&fake, OWNED_CLASS + 24, 1, 2);
	fake_put(&fake, POOL + 8, 8, 4);
	fake_put(&fake, POOL + FAKE_POOL + 8, put_symbol("exclusiveOwnerThread"), 8);
	fake_put(&fake, POOL + FAKE_POOL + 16, put_symbol("Ljava/lang/Thread;"), 8);
	fake_put(&fake, FIELDS, 6, 4);
	fake_put(&fake, FIELDS + 4 + 2, 1, 2);
	fake_put(&fake, FIELDS + 4 + 4, 2, 2);
	fake_put(&fake, FIELDS + 4 + 8, 12 << 2 | 1, 4);
}

static int set_up(void **state)
{
	fake_init(&fake);
	nsymbols = 0;
	put_fields();
	put_class(OBJECT_CLASS, "java/lang/Object", 0);
	put_class(THREAD_CLASS, "java/lang/Thread", OBJECT_CLASS);
	put_class(OWNED_CLASS, "java/util/concurrent/locks/AbstractOwnableSynchronizer", OBJECT_CLASS);
	put_class(LOCK_CLASS, "java/util/concurrent/locks/ReentrantLock$FairSync", OWNED_CLASS);
	put_class(LATCH_CLASS, "java/util/concurrent/CountDownLatch$Sync", OWNED_CLASS);
	put_owner_field();
	put_object(OBJECT, OBJECT_CLASS);
	put_object(WAITER_OBJECT, THREAD_CLASS);
	put_object(OWNER_OBJECT, THREAD_CLASS);
	put_object(LOCK, LOCK_CLASS);
	put_object(LATCH, LATCH_CLASS);
	fake_put(&fake, WAITER + 128, WAITER_HANDLE, 8);
	fake_put(&fake, WAITER_HANDLE, WAITER_OBJECT, 8);
	fake_put(&fake, WAITER_OBJECT + 16, WAITER, 8);
	fake_put(&fake, OWNER_OBJECT + 16, OWNER, 8);
	fake_put(&fake, MONITOR, MONITOR_HANDLE, 8);
	fake_put(&fake, MONITOR_HANDLE, OBJECT, 8);
	return 0;
}

static int tear_down(void **state)
{
	fake_deinit(&fake);
	return 0;
}

static struct java_thread list[2];

/* Of the first thread. */
static struct java_wait look(void)
{
	struct java_threads threads = {
		.layout = &fake.layout,
		.pages = &fake.pages,
		.list = {.data = list, .len = 2},
		.shape = {.header = 12, .eetop = 16, .blocker = 24, .status = 28, .references = NARROW_REFERENCES},
	};
	struct java_wait wait;

	list[0].address = WAITER;
	list[0].low = OWNER_STACK - 4 * STACK_SIZE;
	list[0].high = OWNER_STACK - 3 * STACK_SIZE;
	list[1].address = OWNER;
	list[1].low = OWNER_STACK - STACK_SIZE;
	list[1].high = OWNER_STACK;
	fake_load(&fake);
	assert_true(java_threads_index(&threads));
	java_wait_read(&threads, &list[0], &wait);
	u64map_deinit(&threads.by_address);
	u64map_deinit(&threads.by_owner_id);
	u64map_deinit(&threads.by_locked);
	tear_down(NULL);
	pages_init(&fake.pages, 1 << 20);
	return wait;
}

static void clear_list(void)
{
	memset(list, 0, sizeof(list));
}

static void test_nothing(void **state)
{
	clear_list();
	assert_int_equal(look().kind, WAIT_NOTHING);
}

/* As releases and modes of locking write it. */
static void test_owner_of_monitor(void **state)
{
	static const uint64_t owners[] = {OWNER, OWNER_STACK - 64, 17, 1};

	clear_list();
	fake_field(&fake, HS_THREAD_OWNER_ID, 16, 8, false);
	fake_put(&fake, WAITER, MONITOR, 8);
	fake_put(&fake, MONITOR + 16, 2, 8);
	list[1].owner_id = 17;
	list[1].locked[1] = OBJECT;
	list[1].nlocked = 2;
	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
		struct java_wait wait;

		fake_put(&fake, MONITOR + 8, owners[i], 8);
		wait = look();
		assert_int_equal(wait.kind, WAIT_MONITOR);
		assert_int_equal(wait.object, OBJECT);
		assert_string_equal(wait.type.bytes, "java/lang/Object");
		assert_int_equal(wait.owner, JAVA_OWNER_THREAD);
		assert_ptr_equal(wait.thread, &list[1]);
		assert_int_equal(wait.count, 3);
		assert_int_equal(wait.by_objects, owners[i] == 1);
	}
}

/* Nobody has it; a number that is nobody's; and the waiter itself, which has got it meanwhile. */
static void test_no_owner_of_monitor(void **state)
{
	static const struct {
		uint64_t word;
		enum wait_kind kind;
		enum java_owner owner;
	} cases[] = {
		{0, WAIT_MONITOR, JAVA_OWNER_NOBODY},
		{99, WAIT_MONITOR, JAVA_OWNER_UNKNOWN},
		{1, WAIT_MONITOR, JAVA_OWNER_UNKNOWN},
		{OWNER_STACK + 64, WAIT_MONITOR, JAVA_OWNER_UNKNOWN},
		{WAITER, WAIT_NOTHING, JAVA_OWNER_NOBODY},
	};

	clear_list();
	fake_put(&fake, WAITER, MONITOR, 8);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct java_wait wait;

		fake_put(&fake, MONITOR + 8, cases[i].word, 8);
		wait = look();
		assert_int_equal(wait.kind, cases[i].kind);
		assert_int_equal(wait.owner, cases[i].owner);
		assert_null(wait.thread);
	}
}

/* Who waits for a notification does not wait for the owner, until it is notified. */
static void test_notification(void **state)
{
	struct java_wait wait;

	clear_list();
	fake_put(&fake, WAITER + 8, MONITOR, 8);
	fake_put(&fake, MONITOR + 8, OWNER, 8);
	wait = look();
	assert_int_equal(wait.kind, WAIT_NOTIFICATION);
	assert_null(wait.thread);
	assert_null(wait.subject);
	fake_put(&fake, WAITER_OBJECT + 28, 0x401, 4);
	wait = look();
	assert_int_equal(wait.kind, WAIT_MONITOR);
	assert_ptr_equal(wait.thread, &list[1]);
	assert_true(wait.by_objects);
}

static void test_notification_of_a_thread(void **state)
{
	clear_list();
	fake_put(&fake, WAITER + 8, MONITOR, 8);
	fake_put(&fake, MONITOR_HANDLE, OWNER_OBJECT, 8);
	assert_ptr_equal(look().subject, &list[1]);
	fake_put(&fake, OWNER_OBJECT + 16, 0, 8); /* it has ended */
	assert_null(look().subject);
}

static void test_lock(void **state)
{
	struct java_wait wait;

	clear_list();
	fake_put(&fake, WAITER_OBJECT + 24, LOCK >> 3, 4);
	fake_put(&fake, LOCK + 12, OWNER_OBJECT >> 3, 4);
	wait = look();
	assert_int_equal(wait.kind, WAIT_JAVA_LOCK);
	assert_int_equal(wait.object, LOCK);
	assert_ptr_equal(wait.thread, &list[1]);
	assert_true(wait.by_objects);
	fake_put(&fake, LOCK + 12, 0, 4);
	wait = look();
	assert_int_equal(wait.kind, WAIT_JAVA_LOCK);
	assert_int_equal(wait.owner, JAVA_OWNER_NOBODY);
}

static void test_others_that_park(void **state)
{
	clear_list();
	fake_put(&fake, WAITER_OBJECT + 24, LATCH >> 3, 4);
	fake_put(&fake, LATCH + 12, OWNER_OBJECT >> 3, 4); /* which means nothing there */
	assert_int_equal(look().kind, WAIT_JAVA_LATCH);
	assert_null(look().thread);
	fake_put(&fake, WAITER_OBJECT + 24, OBJECT >> 3, 4);
	assert_int_equal(look().kind, WAIT_JAVA_PARK);
}

/* What was moved, or is no object, is not followed. */
static void test_moved(void **state)
{
	static const struct {
		uint64_t at, value;
		unsigned size;
	} moved[] = {
		{LOCK + 12, UINT32_MAX, 4},	    /* an owner that is nowhere, */
		{LOCK + 12, OBJECT >> 3, 4},	    /* or no thread; */
		{OWNER_OBJECT + 16, OBJECT, 8},	    /* one without a thread of the virtual machine */
		{LOCK + 8, UINT32_MAX, 4},	    /* a lock of no class */
		{WAITER_OBJECT + 24, UINT32_MAX, 4}, /* or that is nowhere */
		{LOCK_CLASS + 32, LOCK_CLASS, 8},    /* a class that extends itself */
	};

	for (size_t i = 0; i < sizeof(moved) / sizeof(moved[0]); i++) {
		set_up(NULL);
		clear_list();
		fake_put(&fake, WAITER_OBJECT + 24, LOCK >> 3, 4);
		fake_put(&fake, LOCK + 12, OWNER_OBJECT >> 3, 4);
		fake_put(&fake, moved[i].at, moved[i].value, moved[i].size);
		assert_null(look().thread);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_owner_of_monitor, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_owner_of_monitor, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_notification, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_notification_of_a_thread, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lock, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_others_that_park, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_moved, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
