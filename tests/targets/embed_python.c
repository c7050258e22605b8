/* SPDX-License-Identifier: MIT */
/* build: -ldl */
/* A C program that has Python in it: embed_python LIBPYTHON. It is called by its own thread, which is no thread of Python's. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

static int (*run)(const char *);
static int (*ensure)(void);
static void (*release)(int);

static __attribute__((noinline)) void work(void)
{
	int state = ensure();

	run("def embedded():\n    import os\n    os.write(1, b'ready\\n')\n    os.read(0, 1)\n\nembedded()\n");
	release(state);
	__asm__ volatile("");
}

static void *work_thread(void *arg)
{
	work();
	return NULL;
}

static void *find(void *library, const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol) {
		fprintf(stderr, "%s\n", dlerror());
		exit(77);
	}
	return symbol;
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL, *(*save)(void);
	void (*initialize)(int);
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!library) {
		fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "embed_python LIBPYTHON");
		return 77;
	}
	initialize = (void (*)(int))find(library, "Py_InitializeEx");
	save = (void *(*)(void))find(library, "PyEval_SaveThread");
	run = (int (*)(const char *))find(library, "PyRun_SimpleString");
	ensure = (int (*)(void))find(library, "PyGILState_Ensure");
	release = (void (*)(int))find(library, "PyGILState_Release");
	initialize(0);
	save();
	pthread_create(&thread, NULL, work_thread, NULL);
	pthread_join(thread, NULL);
	return 0;
}
