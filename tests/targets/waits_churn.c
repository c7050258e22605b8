/* SPDX-License-Identifier: MIT */
/*
 * waits_churn LIBRARY [NAP_US]: processes and objects that are not there when the recording starts. Question: "go"; a child, a
 * child that executes this program, and a child of a child wait and end; then LIBRARY (plugin.c) is loaded, and the
 * thread "loader" waits in a callback from it. The answer is who waited how often where, at least and at most, for a
 * millisecond or longer: "KIND=PID:LEAST:MOST:FUNCTION…".
 */
/* build: -fomit-frame-pointer -ldl */
#include "waits.h"

#include <dlfcn.h>
#include <semaphore.h>
#include <sys/wait.h>

enum { WAITS = 25, THRESHOLD_NS = 1000000 };

/* What a process has measured. */
struct naps {
	pid_t pid;
	struct waits_site site;
};

static const char *program, *library, *nap_us = "4000";
static sem_t load, loaded;
static struct naps mine;
static int told[2]; /* of children, one after the other */

#define SITE(function)                                                                                                 \
	FRAME static void function(void)                                                                               \
	{                                                                                                              \
		struct waits_mark mark = waits_begin();                                                                \
                                                                                                                       \
		NO_FRAME_POINTER();                                                                                    \
		waits_nap(atoi(nap_us));                                                                               \
		waits_end(&mine.site, &mark, THRESHOLD_NS);                                                            \
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

static void tell(void)
{
	mine.pid = getpid();
	if (write(told[1], &mine, sizeof(mine)) != sizeof(mine))
		target_die("write");
}

FRAME static void forked(void)
{
	prctl(PR_SET_NAME, "forked");
	repeat(forked_wait);
	tell();
}

FRAME static void executed(void)
{
	prctl(PR_SET_NAME, "executed");
	repeat(executed_wait);
	tell();
}

FRAME static void execute(void)
{
	char fd[16];

	snprintf(fd, sizeof(fd), "%d", told[1]);
	execl("/proc/self/exe", program, library, nap_us, fd, NULL);
	target_die("execl");
}

FRAME static void grandchild(void)
{
	prctl(PR_SET_NAME, "grandchild");
	repeat(grandchild_wait);
	tell();
}

/* Runs `what` in a child, and waits until that has ended. */
static void in_child(void (*what)(void))
{
	pid_t pid = fork();

	if (!pid) {
		target_init();
		what();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		target_die("child");
}

FRAME static void parent_of_grandchild(void)
{
	in_child(grandchild);
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

/* A call that was disturbed may be no wait, and one that slept again is several. */
static void print_naps(const char *kind, const char *function, const struct naps *n)
{
	const struct waits_site *s = &n->site;

	printf("%s=%d:%llu:%llu:%s ", kind, (int)n->pid, (unsigned long long)(s->count - s->near),
	       (unsigned long long)(s->count + s->again), function);
}

static struct naps naps_of(void (*what)(void))
{
	struct naps naps;

	in_child(what);
	if (read(told[0], &naps, sizeof(naps)) != sizeof(naps))
		target_die("read");
	return naps;
}

static void go(const char *question)
{
	struct naps child = naps_of(forked), exec = naps_of(execute), below = naps_of(parent_of_grandchild);

	sem_post(&load);
	sem_wait(&loaded);
	mine.pid = getpid();
	print_naps("forked", "forked_wait", &child);
	print_naps("executed", "executed_wait", &exec);
	print_naps("grandchild", "grandchild_wait", &below);
	print_naps("loader", "late_wait", &mine);
	printf("\n");
}

int main(int argc, char **argv)
{
	target_init();
	program = argv[0];
	library = argc > 1 ? argv[1] : "";
	nap_us = argc > 2 ? argv[2] : nap_us;
	if (argc > 3) {
		told[1] = atoi(argv[3]);
		executed();
		return 0;
	}
	sem_init(&load, 0, 0);
	sem_init(&loaded, 0, 0);
	if (pipe(told))
		target_die("pipe");
	target_start("loader", loader);
	target_ready();
	target_serve(go);
}
