/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <string.h>

#include "privilege/capabilities.h"
#include "privilege/remedy.h"

static void expect(enum refused what, struct standing standing, const char *words)
{
	char text[REMEDY_SIZE];

	assert_string_equal(remedy_for(what, &standing, text), words);
}

static void test_users(void **state)
{
	expect(REFUSED_BPF, (struct standing){0}, "sudo stakeout …, or once: sudo stakeout setup (cap_perfmon,cap_bpf)");
	expect(REFUSED_KERNEL_STACK, (struct standing){0}, "sudo stakeout … (cap_sys_admin)");
}

/* Root that lacks rights is that of a container. */
static void test_containers(void **state)
{
	struct standing standing = {.is_root = true, .capabilities = RIGHT(CAP_BPF)};

	expect(REFUSED_BPF, standing, "start the container with --cap-add=PERFMON (Kubernetes: capabilities: {add: [PERFMON]})");
	standing = (struct standing){.is_filtered = true};
	expect(REFUSED_BPF, standing, "start the container with --cap-add=PERFMON --cap-add=BPF "
				      "(Kubernetes: capabilities: {add: [PERFMON, BPF]}), and as root (runAsUser: 0)");
	standing.in_user_namespace = true;
	expect(REFUSED_BPF, standing, "run it on the host: in a user namespace these rights are worth nothing outside of it");
}

/* Nobody is told to get what he has. */
static void test_rights_that_are_there(void **state)
{
	const struct standing all = {.is_root = true, .capabilities = UINT64_MAX};

	expect(REFUSED_KALLSYMS, all, "where kernel.kptr_restrict is 2: sudo sysctl kernel.kptr_restrict=1");
	expect(REFUSED_BPF, all, "a filter, a lockdown or a security module may be in the way: `stakeout doctor` tells");
}

/* Whoever asks, what is said fits, with room for the sentence that it is part of. */
static void test_length(void **state)
{
	for (unsigned i = 0; i < 4; i++) {
		const struct standing standing = {.is_root = i & 1, .is_filtered = i & 2, .ptrace_scope = 3};
		char text[REMEDY_SIZE];

		for (enum refused what = REFUSED_PTRACE; what <= REFUSED_WINDOW; what++)
			assert_in_range(strlen(remedy_for(what, &standing, text)), 1, REMEDY_SIZE - 20);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_users),
		cmocka_unit_test(test_containers),
		cmocka_unit_test(test_rights_that_are_there),
		cmocka_unit_test(test_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
