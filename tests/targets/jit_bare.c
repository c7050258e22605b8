/* SPDX-License-Identifier: MIT */
/*
 * jit_bare record|sub|push|borrowed [naps] [sandboxed] [memfd]: code made at run time that nobody announces. worker calls
 * a function that keeps a frame record, that calls between, and that calls a function which
 * record    keeps a frame record, too
 * sub       makes room on the stack and leaves the frame pointer alone (CPython 3.12 and 3.13 with -X perf)
 * push      the same with the frame pointer saved (CPython 3.14)
 * borrowed  like sub, and it goes on after the call: the frame pointer leads to the caller's caller
 * The innermost function blocks, or with "naps" sleeps again and again. With "sandboxed" the root directory is one of a
 * process that has ended, as Chromium has it. With "memfd" the code is in a file in memory, as Erlang has it, and
 * /tmp/perf-PID.map calls it made_inner and made_outer.
 */
#include "jit_code.h"

#include <sys/wait.h>

struct code {
	const char *name;
	const void *bytes;
	size_t len;
};

#ifdef __x86_64__
static const uint8_t jit_sub[] = {
	0xf3, 0x0f, 0x1e, 0xfa, /* endbr64 */
	0x48, 0x83, 0xec, 0x08, /* sub $8,%rsp */
	0xff, 0xd7,             /* call *%rdi */
	0x48, 0x83, 0xc4, 0x08, /* add $8,%rsp */
	0xc3,                   /* ret */
};
static const uint8_t jit_push[] = {
	0x55,       /* push %rbp */
	0xff, 0xd7, /* call *%rdi */
	0x5d,       /* pop %rbp */
	0xc3,       /* ret */
};
static const uint8_t jit_borrowed[] = {
	0x48, 0x83, 0xec, 0x18, /* sub $0x18,%rsp */
	0xff, 0xd7,             /* call *%rdi */
	0x85, 0xc0,             /* test %eax,%eax */
	0x75, 0x00,             /* jne to the next */
	0x48, 0x83, 0xc4, 0x18, /* add $0x18,%rsp */
	0xc3,                   /* ret */
};
#else
static const uint32_t jit_sub[] = {
	0xd10043ff, /* sub sp,sp,#0x10 */
	0xf90007fe, /* str x30,[sp,#8] */
	0xd63f0000, /* blr x0 */
	0xf94007fe, /* ldr x30,[sp,#8] */
	0x910043ff, /* add sp,sp,#0x10 */
	0xd65f03c0, /* ret */
};
static const uint32_t jit_push[] = {
	0xa9bf7bfd, /* stp x29,x30,[sp,#-16]! */
	0xd63f0000, /* blr x0 */
	0xa8c17bfd, /* ldp x29,x30,[sp],#16 */
	0xd65f03c0, /* ret */
};
static const uint32_t jit_borrowed[] = {
	0xd10043ff, /* sub sp,sp,#0x10 */
	0xf90007fe, /* str x30,[sp,#8] */
	0xd63f0000, /* blr x0 */
	0x34000020, /* cbz w0 to the next */
	0xf94007fe, /* ldr x30,[sp,#8] */
	0x910043ff, /* add sp,sp,#0x10 */
	0xd65f03c0, /* ret */
};
#endif

static const struct code codes[] = {
	{"record", jit_framed, sizeof(jit_framed)},
	{"sub", jit_sub, sizeof(jit_sub)},
	{"push", jit_push, sizeof(jit_push)},
	{"borrowed", jit_borrowed, sizeof(jit_borrowed)},
};

static jit_function outer, inner;
static jit_callee innermost = target_block;

FRAME static void nap(void)
{
	target_arrived();
	for (;;)
		usleep(2000);
}

FRAME static void between(void)
{
	inner(innermost);
}

FRAME static void worker(void)
{
	outer(between);
}

/* In a mapping that can only be executed, of a file that is written through another. */
static jit_function place_in_memfd(const void *code, size_t len)
{
	int fd = memfd_create("made", 0);
	void *page;

	if (fd < 0 || write(fd, code, len) != (ssize_t)len || ftruncate(fd, 4096) != 0)
		target_die("memfd_create");
	page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		target_die("mmap");
	close(fd);
	return (jit_function)page;
}

static void write_perf_map(void)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	f = fopen(path, "w");
	if (!f)
		target_die(path);
	fprintf(f, "%lx 20 made_inner\n%lx 20 made_outer\n", (unsigned long)inner, (unsigned long)outer);
	if (fclose(f) != 0)
		target_die(path);
}

static void enter_sandbox(void)
{
	pid_t pid = fork();
	char path[64];

	if (!pid)
		pause();
	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
	if (pid < 0 || chroot(path) != 0 || chdir("/") != 0)
		target_die(path);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	const struct code *code = codes;

	target_init();
	while (argc < 2 || strcmp(code->name, argv[1]) != 0)
		if (++code == codes + sizeof(codes) / sizeof(codes[0]))
			target_die("record, sub, push or borrowed");
	inner = (jit_function)jit_place(code->bytes, code->len);
	outer = (jit_function)jit_place(jit_framed, sizeof(jit_framed));
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "naps") == 0)
			innermost = nap;
		if (strcmp(argv[i], "sandboxed") == 0)
			enter_sandbox();
		if (strcmp(argv[i], "memfd") == 0) {
			inner = place_in_memfd(code->bytes, code->len);
			outer = place_in_memfd(jit_framed, sizeof(jit_framed));
			write_perf_map();
		}
	}
	target_start("worker", worker);
	target_ready();
	target_serve(NULL);
}
