/* SPDX-License-Identifier: MIT */
#ifdef HAVE_BPF

#include "kernel/loading.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "privilege/capabilities.h"
#include "privilege/remedy.h"

/* The end of the verifier's log: what it refused. */
static _Thread_local char refusal[160];

static void keep_last_words(const char *log)
{
	const char *end = strstr(log, "\nprocessed "), *start = end;
	size_t len;

	if (!end)
		return;
	while (start > log && start[-1] != '\n')
		start--;
	len = (size_t)(end - start) < sizeof(refusal) - 1 ? (size_t)(end - start) : sizeof(refusal) - 1;
	memcpy(refusal, start, len);
	refusal[len] = '\0';
}

int loading_quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char *text;

	if (!strstr(fmt, "PROG LOAD LOG") || vasprintf(&text, fmt, ap) < 0)
		return 0;
	keep_last_words(text);
	free(text);
	return 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static unsigned loaders;
static libbpf_print_fn_t print_before;

void loading_begin(void)
{
	pthread_mutex_lock(&lock);
	if (!loaders++)
		print_before = libbpf_set_print(loading_quiet);
	pthread_mutex_unlock(&lock);
}

void loading_end(void)
{
	pthread_mutex_lock(&lock);
	if (!--loaders)
		libbpf_set_print(print_before);
	pthread_mutex_unlock(&lock);
}

/* The helpers of our programs that not every kernel has, and the first one that lets such programs call it. */
static const struct helper {
	int number;
	const char *name, *since;
} helpers[] = {
	{BPF_FUNC_task_storage_get, "bpf_task_storage_get", "5.12"},
	{BPF_FUNC_get_current_task_btf, "bpf_get_current_task_btf", "5.11"},
	{BPF_FUNC_snprintf, "bpf_snprintf", "5.13"},
	{BPF_FUNC_task_pt_regs, "bpf_task_pt_regs", "5.15"},
	{BPF_FUNC_find_vma, "bpf_find_vma", "5.17"},
	{BPF_FUNC_loop, "bpf_loop", "5.17"},
};

/* The verifier says "invalid func unknown#175" of one that it has not heard of, "unknown func NAME#175" of others. */
static const struct helper *find_helper(const char *said)
{
	const char *number = strstr(said, "func ") ? strrchr(said, '#') : NULL;

	for (size_t i = 0; number && i < sizeof(helpers) / sizeof(helpers[0]); i++)
		if (atoi(number + 1) == helpers[i].number)
			return &helpers[i];
	return NULL;
}

int loading_explain(struct err *err, int code, const char *step, const char *doubt)
{
	const char *colon = doubt ? ": " : "";
	const struct helper *helper;
	char said[sizeof(refusal)], help[REMEDY_SIZE];

	memcpy(said, refusal, sizeof(said));
	refusal[0] = '\0'; /* a later step does not fail for this */
	if (code == EPERM)
		return err_set(err, code, "%s was refused (%s): it takes CAP_BPF and CAP_PERFMON: %s", step, strerror(code),
			       remedy(REFUSED_BPF, help));
	if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
		return err_set(err, code, "%s failed: this kernel has no BTF (/sys/kernel/btf/vmlinux): " REMEDY_BTF, step);
	doubt = doubt ? doubt : "";
	helper = find_helper(said);
	if (helper)
		return err_set(err, code, "%s failed: this kernel has no %s for it, which Linux %s has%s%s", step,
			       helper->name, helper->since, colon, doubt);
	if (said[0])
		return err_set(err, code, "%s failed: the kernel's verifier says \"%s\"", step, said);
	return err_set(err, code, "%s failed: %s%s%s", step, strerror(code), colon, doubt);
}

uint32_t loading_pid_namespace(void)
{
	enum { FIRST = 0xEFFFFFFC }; /* part of the kernel's interface */
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != FIRST ? (uint32_t)st.st_ino : 0;
}

int loading_read_iterator(int link, struct words *out, struct err *err)
{
	_cleanup_close_ int fd = bpf_iter_create(link);
	size_t len = 0;

	out->len = 0;
	if (fd < 0)
		return loading_explain(err, errno, "creating the BPF task iterator", NULL);
	for (;;) {
		ssize_t n;

		if (!vec_reserve(out, len / 8 + 8192))
			return err_set(err, ENOMEM, "out of memory");
		n = read(fd, (char *)out->data + len, out->cap * 8 - len);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return err_set(err, errno, "reading the BPF task iterator: %s", strerror(errno));
		if (n == 0)
			break;
		len += (size_t)n;
	}
	out->len = len / 8;
	return 0;
}

#endif
