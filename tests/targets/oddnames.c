/* SPDX-License-Identifier: MIT */
/* oddnames: threads whose names are hostile to terminals and to JSON. */
#include "target.h"

static const char *const names[] = {"q\"b\\s",       "esc\033[31mred", "line\nbreak",
				    "utf8 \xc3\xa9", "bad \xff\xfe",   "a b) R (c"};

static void *named(void *name)
{
	static atomic_int arrived;

	prctl(PR_SET_NAME, name);
	if (atomic_fetch_add(&arrived, 1) + 1 == sizeof(names) / sizeof(*names))
		target_ready();
	target_block();
	return NULL;
}

int main(void)
{
	pthread_t thread;

	target_init();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (pthread_create(&thread, NULL, named, (void *)names[i]))
			target_die("pthread_create");
	target_serve(NULL);
}
