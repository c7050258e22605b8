/* SPDX-License-Identifier: MIT */
#include "doctor/patient.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { NAP_MS = 4, MAX_END_MS = 1000, SPINS = 1 << 16 };

const uint64_t patient_word = UINT64_C(0x7374616b656f7574);

/* The linker tells where a section begins and ends. */
#define PATIENT_SECTION "stakeout_patient"
extern const char __start_stakeout_patient[], __stop_stakeout_patient[];

bool patient_waits_at(uint64_t pc)
{
	return pc >= (uintptr_t)__start_stakeout_patient && pc <= (uintptr_t)__stop_stakeout_patient;
}

/* Until nobody holds the other end of the leash any more. */
__attribute__((noinline, section(PATIENT_SECTION))) static void wait_for_end(int leash)
{
	struct pollfd end = {.fd = leash, .events = POLLIN};

	while (poll(&end, 1, -1) <= 0)
		;
	_exit(0);
}

__attribute__((noinline, section(PATIENT_SECTION))) static void *nap_again_and_again(void *arg)
{
	while (poll(NULL, 0, NAP_MS) <= 0)
		;
	return NULL;
}

/* The same, but it runs. */
__attribute__((noinline, section(PATIENT_SECTION))) static void run_to_end(int leash)
{
	struct pollfd end = {.fd = leash, .events = POLLIN};

	while (poll(&end, 1, 0) <= 0)
		for (volatile unsigned i = 0; i < SPINS; i++)
			;
	_exit(0);
}

static void drop_privileges(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	syscall(SYS_capset, &header, none);
	prctl(PR_SET_DUMPABLE, 1); /* a program with capabilities of its own is not, and neither are those it forks */
}

/* What a process in between does: whose child the patient is nobody can tell when that has ended. */
__attribute__((noreturn)) static void become_patient(int leash[2], int tell, bool runs)
{
	pthread_t napper;
	pid_t pid = fork();

	if (pid)
		_exit(pid < 0 ? 1 : 0);
	close(leash[1]);
	prctl(PR_SET_NAME, "stakeout-doctor");
	drop_privileges();
	pid = getpid();
	if (!runs && pthread_create(&napper, NULL, nap_again_and_again, NULL))
		_exit(1);
	if (write(tell, &pid, sizeof(pid)) == sizeof(pid))
		(runs ? run_to_end : wait_for_end)(leash[0]);
	_exit(1);
}

static int start(bool runs, struct patient *patient, struct err *err)
{
	_cleanup_close_ int told = -1, leash_end = -1, leash_start = -1;
	int leash[2], tell[2], status;
	pid_t between;

	patient->pid = 0;
	if (pipe2(leash, O_CLOEXEC) < 0)
		return err_set(err, errno, "a pipe cannot be made: %s", strerror(errno));
	leash_end = leash[0];
	leash_start = leash[1];
	if (pipe2(tell, O_CLOEXEC) < 0)
		return err_set(err, errno, "a pipe cannot be made: %s", strerror(errno));
	told = tell[0];
	between = fork();
	if (between == 0)
		become_patient(leash, tell[1], runs);
	close(tell[1]);
	if (between < 0)
		return err_set(err, errno, "a process cannot be started: %s", strerror(errno));
	if (waitpid(between, &status, 0) != between || status ||
	    read(told, &patient->pid, sizeof(patient->pid)) != sizeof(patient->pid)) {
		patient->pid = 0;
		return err_set(err, EAGAIN, "a process to try things on cannot be started");
	}
	patient->leash = leash_start;
	leash_start = -1;
	return 0;
}

int patient_start(struct patient *patient, struct err *err)
{
	return start(false, patient, err);
}

int patient_start_running(struct patient *patient, struct err *err)
{
	return start(true, patient, err);
}

void patient_end(struct patient *patient)
{
	_cleanup_close_ int fd = patient->pid ? (int)syscall(SYS_pidfd_open, patient->pid, 0) : -1;
	struct pollfd end = {.fd = fd, .events = POLLIN};

	if (!patient->pid)
		return;
	close(patient->leash);
	if (fd >= 0)
		poll(&end, 1, MAX_END_MS);
	patient->pid = 0;
}
