/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernel/kallsyms.h"
#include "kernel/address_names.h"

enum { COUNT = 150 };

static char texts[COUNT][256];

static void found(void *arg, size_t index, const char *text)
{
	assert_true(index < COUNT);
	snprintf(texts[index], sizeof(texts[index]), "%s", text);
}

/* What the kernel says when asked is what /proc/kallsyms says. */
static void test_agrees_with_kallsyms(void **state)
{
	uint64_t addresses[COUNT];
	struct kallsyms *kallsyms;
	struct kernel_symbol symbol;
	struct err err = {0};
	unsigned agree = 0;
	size_t n = 0;

	if (kallsyms_load("/proc/kallsyms", &err, &kallsyms) < 0) {
		print_message("skipped: %s\n", err.msg);
		skip();
	}
	/* Some place behind the start of every so many symbols: walk through the kernel's code from its first one. */
	for (uint64_t at = UINT64_MAX; n < COUNT && kallsyms_find(kallsyms, at, &symbol) && symbol.start; at = symbol.start - 1)
		if (!symbol.module && n < COUNT)
			addresses[n++] = symbol.start + 1;
	if (n < COUNT || address_names_ask(addresses, n, found, NULL, &err) < 0) {
		print_message("skipped: %s\n", err.msg);
		kallsyms_destroy(kallsyms);
		skip();
	}
	for (size_t i = 0; i < n; i++) {
		struct kernel_text text;

		if (!kernel_text_parse(texts[i], &text))
			continue;
		assert_true(kallsyms_find(kallsyms, addresses[i] - 1, &symbol));
		/* Several names may stand for one address: then only the place has to be the same. */
		assert_int_equal(addresses[i] - text.offset, symbol.start);
		agree += strlen(symbol.name) == text.name_len && memcmp(symbol.name, text.name, text.name_len) == 0;
	}
	assert_true(agree > n / 2);
	kallsyms_destroy(kallsyms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_agrees_with_kallsyms)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
