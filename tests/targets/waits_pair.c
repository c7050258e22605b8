/* SPDX-License-Identifier: MIT */
/*
 * waits_pair [SPIN_US]: two processes on one CPU that switch to each other: each computes for SPIN_US, tells the other
 * one through a pipe, and waits. What is taken of the wrong thread at a switch has the other one's functions.
 * Ready line: child=PID of the second process. Question: any; the answer is how often the first one has waited.
 */
/* build: -fomit-frame-pointer */
#include "waits.h"

static uint64_t spin_us = 2000;
static int from_other, to_other;
static atomic_ullong turns;

static void hear(void)
{
	char byte;

	if (read(from_other, &byte, 1) != 1)
		_exit(0);
}

static void tell(void)
{
	if (write(to_other, "x", 1) != 1)
		_exit(0);
}

FRAME static void ping_wait(void)
{
	NO_FRAME_POINTER();
	hear();
}

FRAME static void ping(void)
{
	target_arrived();
	for (;;) {
		tell();
		ping_wait();
		waits_spin(spin_us);
		atomic_fetch_add(&turns, 1);
	}
}

FRAME static void pong_wait(void)
{
	NO_FRAME_POINTER();
	hear();
}

FRAME static void pong(void)
{
	prctl(PR_SET_NAME, "pong");
	for (;;) {
		pong_wait();
		waits_spin(spin_us);
		tell();
	}
}

static void answer(const char *question)
{
	printf("%llu\n", atomic_load(&turns));
}

/* As batch work, so that who tells the other one is not pushed off its CPU by it, but goes to sleep. */
static void stay_on_one_cpu(void)
{
	const struct sched_param normal = {0};
	cpu_set_t allowed, one;
	int cpu = CPU_SETSIZE - 1;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		target_die("sched_getaffinity");
	while (cpu > 0 && !CPU_ISSET(cpu, &allowed))
		cpu--;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		target_die("sched_setaffinity");
	if (sched_setscheduler(0, SCHED_BATCH, &normal))
		target_die("sched_setscheduler");
}

/* Executed, not only forked: the same address is another function, or none, in the other process. */
static pid_t start_pong(const char *program, int *pipes)
{
	char from[12], to[12], spin[24];
	pid_t pid = fork();

	if (pid)
		return pid;
	snprintf(spin, sizeof(spin), "%llu", (unsigned long long)spin_us);
	snprintf(from, sizeof(from), "%d", pipes[0]);
	snprintf(to, sizeof(to), "%d", pipes[3]);
	close(pipes[1]);
	close(pipes[2]);
	execl("/proc/self/exe", program, spin, from, to, NULL);
	target_die("execl");
	return -1;
}

int main(int argc, char **argv)
{
	int pipes[4];
	pid_t child;

	target_init();
	spin_us = argc > 1 ? strtoull(argv[1], NULL, 10) : spin_us;
	if (argc > 3) {
		from_other = atoi(argv[2]);
		to_other = atoi(argv[3]);
		pong();
	}
	stay_on_one_cpu();
	if (pipe(pipes) || pipe(pipes + 2))
		target_die("pipe");
	child = start_pong(argv[0], pipes);
	if (child < 0)
		target_die("fork");
	close(pipes[0]);
	close(pipes[3]);
	from_other = pipes[2];
	to_other = pipes[1];
	target_threads[target_nthreads++] = (struct target_thread){.name = "child", .tid = child};
	target_start("ping", ping);
	target_ready();
	target_serve(answer);
}
