/* SPDX-License-Identifier: MIT */
/*
 * waits_churn LIBRARY [NAP_US]: processes and objects that are not there when the recording starts. Question: "go"; a child, a
 * child that executes this program, and a child of a child wait and end; then LIBRARY (plugin.c) is loaded, and the
 * thread "loader" waits in a callback from it. The answer is who waited how often where: "KIND=PID:COUNT:FUNCTION…".
 */
/* build: -fomit-frame-pointer -ldl */
#include "waits.h"

#include <dlfcn.h>
#include <semaphore.h>
#include <sys/wait.h>

enum { WAITS = 25 };

static const char *program, *library, *nap_us = "4000";
static sem_t load, loaded;

#define SITE(function)                                                                                                 \
	FRAME static void function(void)                                                                               \
	{                                                                                                              \
		NO_FRAME_POINTER();                                                                                    \
		waits_nap(atoi(nap_us));                                                                                \
	}

SITE(forked_wait)
SITE(executed_wait)
SITE(grandchild_wait)
SITE(late_wait)

static void repeat(void (*wait)(void))
{
	for (int i = 0; i < WAITS; i++)
		wait();
}

FRAME static void forked(void)
{
	prctl(PR_SET_NAME, "forked");
	repeat(forked_wait);
}

FRAME static void executed(void)
{
	prctl(PR_SET_NAME, "executed");
	repeat(executed_wait);
}

FRAME static void execute(void)
{
	execl("/proc/self/exe", program, library, nap_us, "executed", NULL);
	target_die("execl");
}

FRAME static void grandchild(void)
{
	prctl(PR_SET_NAME, "grandchild");
	repeat(grandchild_wait);
}

/* Runs `what` in a child, and waits until that has ended. */
static pid_t in_child(void (*what)(void))
{
	pid_t pid = fork();

	if (!pid) {
		target_init();
		what();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		target_die("child");
	return pid;
}

static int grandchild_pid[2];

FRAME static void parent_of_grandchild(void)
{
	pid_t pid = in_child(grandchild);

	if (write(grandchild_pid[1], &pid, sizeof(pid)) != sizeof(pid))
		target_die("write");
}

FRAME static int callback(int n)
{
	repeat(late_wait);
	return n;
}

FRAME static void loader(void)
{
	int (*enter)(int (*)(int), int);
	void *plugin;

	target_arrived();
	sem_wait(&load);
	plugin = dlopen(library, RTLD_NOW);
	enter = plugin ? (int (*)(int (*)(int), int))dlsym(plugin, "plugin_enter") : NULL;
	if (!enter)
		target_die("dlopen");
	enter(callback, 1);
	sem_post(&loaded);
	target_block();
}

static void go(const char *question)
{
	pid_t child = in_child(forked), exec = in_child(execute), below;

	in_child(parent_of_grandchild);
	if (read(grandchild_pid[0], &below, sizeof(below)) != sizeof(below))
		target_die("read");
	sem_post(&load);
	sem_wait(&loaded);
	printf("forked=%d:%d:forked_wait executed=%d:%d:executed_wait grandchild=%d:%d:grandchild_wait ", (int)child,
	       WAITS, (int)exec, WAITS, (int)below, WAITS);
	printf("loader=%d:%d:late_wait\n", (int)getpid(), WAITS);
}

int main(int argc, char **argv)
{
	target_init();
	program = argv[0];
	library = argc > 1 ? argv[1] : "";
	nap_us = argc > 2 ? argv[2] : nap_us;
	if (argc > 3) {
		executed();
		return 0;
	}
	sem_init(&load, 0, 0);
	sem_init(&loaded, 0, 0);
	if (pipe(grandchild_pid))
		target_die("pipe");
	target_start("loader", loader);
	target_ready();
	target_serve(go);
}
