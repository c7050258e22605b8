/* SPDX-License-Identifier: MIT */
/* The process that the doctor tries things on, and what helps where something was refused. */
#include "cmocka_all.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor/patient.h"
#include "doctor/rights.h"
#include "privilege/capabilities.h"

static struct arena *arena;

static int setup(void **state)
{
	arena = arena_create();
	return arena ? 0 : -1;
}

static int teardown(void **state)
{
	arena_destroy(arena);
	return 0;
}

/* The state letter of a process, and its parent; 0: it is gone. */
static char look(pid_t pid, int *parent)
{
	char path[32], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%*d (%*[^)]) %c %d", &state, parent) != 2)
		state = 0;
	fclose(f);
	return state;
}

static void test_patient(void **state)
{
	struct patient patient;
	struct err err = {0};
	int parent = 0;
	char letter;
	pid_t pid;

	assert_int_equal(patient_start(&patient, &err), 0);
	pid = patient.pid;
	letter = look(pid, &parent);
	assert_true(letter && letter != 'Z');
	assert_int_not_equal(parent, getpid());
	patient_end(&patient);
	letter = look(pid, &parent);
	assert_true(letter == 0 || letter == 'Z' || letter == 'X');
	patient_end(&patient); /* of none */
	assert_false(patient_waits_at(0));
	assert_false(patient_waits_at((uintptr_t)&test_patient));
}

static void test_patient_that_runs(void **state)
{
	struct patient patient;
	struct err err = {0};
	int parent = 0;
	pid_t pid;

	assert_int_equal(patient_start_running(&patient, &err), 0);
	pid = patient.pid;
	for (int i = 0; i < 5000 && look(pid, &parent) != 'R'; i++)
		usleep(1000); /* in the system call that tells of it, at most */
	assert_int_equal(look(pid, &parent), 'R');
	patient_end(&patient);
	assert_int_equal(patient.pid, 0);
	assert_int_not_equal(look(pid, &parent), 'R');
}

static void expect(const struct rights *rights, enum refused what, const char *words)
{
	const char *remedy = rights_remedy(rights, what, "bpf", arena);

	if (!words)
		assert_null(remedy);
	else if (!remedy || !strstr(remedy, words))
		fail_msg("'%s' is not in '%s'", words, remedy ? remedy : "(nothing)");
}

/* From what is in the way first. */
static void test_remedies(void **state)
{
	const enum refused bpf = REFUSED_BPF;
	struct rights rights = {0};

	expect(&rights, bpf, "sudo stakeout …, or once: sudo stakeout setup (cap_perfmon,cap_bpf)");
	rights.standing.is_filtered = true;
	expect(&rights, bpf, "--cap-add=PERFMON --cap-add=BPF (Kubernetes: capabilities: {add: [PERFMON, BPF]}), and as root");
	rights.standing.is_root = true;
	expect(&rights, bpf, "{add: [PERFMON, BPF]})");
	rights.standing.is_filtered = false; /* as Kubernetes starts containers */
	expect(&rights, bpf, "--cap-add=PERFMON --cap-add=BPF");
	rights.standing.is_filtered = true;
	rights.standing.capabilities = RIGHT(CAP_BPF);
	expect(&rights, bpf, "--cap-add=PERFMON (");
	rights.standing.capabilities = remedy_needs(bpf);
	expect(&rights, bpf, "{\"names\": [\"bpf\"], \"action\": \"SCMP_ACT_ALLOW\"} to the container's seccomp profile");
	expect(&rights, bpf, "seccomp=unconfined");
	rights.standing.in_user_namespace = true;
	expect(&rights, bpf, "on the host");
	rights = (struct rights){.standing.capabilities = remedy_needs(bpf), .is_locked_down = true};
	expect(&rights, bpf, "lockdown=none");
	rights.is_locked_down = false;
	expect(&rights, bpf, NULL);
	lsm_parse("docker-default (enforce)\n", &rights.label);
	expect(&rights, bpf, "AppArmor may be what refuses it (profile docker-default): start the container with "
			     "--security-opt apparmor=unconfined");
	lsm_parse("system_u:system_r:container_t:s0:c1,c2", &rights.label);
	expect(&rights, bpf, "SELinux may be what refuses it (type container_t): start the container with --security-opt label=disable");
}

/* Yama has a say, too, but not in what root does, unless it forbids all. */
static void test_remedies_for_ptrace(void **state)
{
	struct rights rights = {.standing.ptrace_scope = 1};

	expect(&rights, REFUSED_PTRACE, "(cap_sys_ptrace); for your own processes: sudo sysctl kernel.yama.ptrace_scope=0 (it is 1)");
	rights.standing.ptrace_scope = 3;
	expect(&rights, REFUSED_PTRACE, "restart the machine");
	rights.standing.capabilities = RIGHT(CAP_SYS_PTRACE);
	expect(&rights, REFUSED_PTRACE, "restart the machine");
	rights.standing.ptrace_scope = 2;
	rights.standing.is_filtered = true;
	expect(&rights, REFUSED_PTRACE, "seccomp");
	rights = (struct rights){.standing.ptrace_scope = 0};
	expect(&rights, REFUSED_PTRACE, "cap_sys_ptrace");
}

/* Nor is it said that a filter refuses what a setting does. */
static void test_remedies_for_perf_events(void **state)
{
	struct rights rights = {.standing = {.perf_paranoid = 3, .is_root = true, .is_filtered = true}};
	const char *setting = "sudo sysctl kernel.perf_event_paranoid=2 (it is 3)";

	expect(&rights, REFUSED_MMAP_WATCH, "--cap-add=PERFMON (");
	expect(&rights, REFUSED_MMAP_WATCH, setting);
	rights.standing.capabilities = RIGHT(CAP_PERFMON) | RIGHT(CAP_BPF);
	expect(&rights, REFUSED_MMAP_WATCH, setting);
	expect(&rights, REFUSED_KPROBE, setting);
	expect(&rights, REFUSED_BPF, "seccomp");
	rights.standing.capabilities |= RIGHT(CAP_SYS_ADMIN); /* which is above it */
	expect(&rights, REFUSED_MMAP_WATCH, "seccomp");
	rights.standing = (struct standing){.perf_paranoid = 2, .is_filtered = true, .capabilities = RIGHT(CAP_PERFMON)};
	expect(&rights, REFUSED_MMAP_WATCH, "seccomp");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patient),
		cmocka_unit_test(test_patient_that_runs),
		cmocka_unit_test(test_remedies),
		cmocka_unit_test(test_remedies_for_ptrace),
		cmocka_unit_test(test_remedies_for_perf_events),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
