/* SPDX-License-Identifier: MIT */
#define REPORT report_offcpu_folded
#include "offcpu_sample.h"

static const struct offcpu_report_options plain;

static void test_whole(void **state)
{
	assert_string_equal(
		report(*state, plain),
		"server;aeMain;__epoll_wait;__x64_sys_epoll_wait_[k];do_epoll_wait_[k];ep_poll_[k] 9000000\n"
		"worker;[incomplete];__futex_abstimed_wait_common;futex_wait_[k];futex_wait_queue_[k];--;"
		"futex_wait_queue_[k];futex_wait_[k];mix;hash_all;<signal handler called>;server+0x5000;0x12345678;"
		"server 600000\n"
		"disk;[no user stack];0xffffffff81234567_[k];xfs_buf_lock_[k] 300000\n"
		"worker;0x12345678;server+0x5000;<signal handler called>;hash_all;mix;[no kernel stack]_[k];"
		"[waiting for a CPU]_[k] 90000\n"
		"evil\\x1b[31m\"\\\xef\xbf\xbd:\\x0a 1\n");
}

/* Of an interrupt there is only a kernel stack, and of many wakers less than all. */
static void test_wakers(void **state)
{
	struct fixture *f = *state;
	struct offcpu_row *row = &f->profile.rows.data[4];

	f->profile.rows.data[0] = *row;
	f->profile.rows.len = 1;
	row = &f->profile.rows.data[0];
	row->thread_name = "main";
	row->has_waker = true;
	row->waker = (struct offcpu_waker){.interrupt = true, .name = "interrupt", .kernel = &sample_futex_kernel};
	assert_string_equal(report(f, plain), "main;--;futex_wait_queue_[k];futex_wait_[k];interrupt 1\n");
	row->waker = (struct offcpu_waker){.tid = 7, .name = "a;b\n", .user = &sample_futex, .user_error = "it ends"};
	assert_string_equal(report(f, plain), "main;--;__futex_abstimed_wait_common;[incomplete];a:b\\x0a 1\n");
	row->waker = (struct offcpu_waker){.tid = 7, .user_error = "none", .kernel_error = "none"};
	assert_string_equal(report(f, plain), "main;--;[no kernel stack]_[k];[no user stack];? 1\n");
}

static void test_idle_is_hidden(void **state)
{
	const struct offcpu_report_options hiding = {.hide_idle = true};

	expect_not(state, hiding, "epoll");
	expect(state, hiding, "worker;");
}

static void test_nothing(void **state)
{
	clear(*state);
	assert_string_equal(report(*state, plain), "");
}

/* What separates frames, and lines, is never part of a name. */
static void test_separators(void **state)
{
	const struct module_info module = {.path = "/lib/a;b\n.so"};
	const struct stack user = SAMPLE_STACK({.address = 1, .symbol = "Lf;g;\n\xc2\xb5\xe2\x80\xae 7"},
					       {.address = 2, .raw = 1, .module = &module, .module_offset = 0x10});
	struct fixture *f = *state;

	f->profile.rows.data[0].user = &user;
	f->profile.rows.data[0].kernel = NULL;
	f->profile.rows.data[0].thread_name = NULL;
	f->profile.rows.data[4].thread_name = "";
	expect(state, plain, "?;a:b\\x0a.so+0x10;Lf:g:\\x0a\xc2\xb5\\u202e 7 9000000\n");
	expect(state, plain, "\n? 1\n");
}

static void test_microseconds(void **state)
{
	static const struct {
		uint64_t ns;
		const char *want;
	} cases[] = {{0, " 1\n"}, {1, " 1\n"}, {1499, " 1\n"}, {1500, " 2\n"}, {UINT64_MAX, " 18446744073709552\n"}};
	struct fixture *f = *state;

	f->profile.rows.len = 1;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		f->profile.rows.data[0].sum.total_ns = cases[i].ns;
		expect(state, plain, cases[i].want);
	}
}

static void test_stream_error(void **state)
{
	expect_stream_error(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wakers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_is_hidden, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_separators, setup, teardown),
		cmocka_unit_test_setup_teardown(test_microseconds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stream_error, setup, teardown),
	};

	return cmocka_run_group_tests_name("report_offcpu_folded", tests, NULL, NULL);
}
