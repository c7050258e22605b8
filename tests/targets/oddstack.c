/* SPDX-License-Identifier: MIT */
/*
 * oddstack file|uffd|uffd-shared|uffd-elsewhere sleep|spin [FILE]: a thread "odd" whose stack pointer is right below a page that may take for ever
 * to read. It is in a private mapping of FILE, of which only the page below was touched; or in memory for which a
 * userfaultfd answers, which this program never does: private memory, shared memory, or private memory whose userfaultfd
 * only another process has. "sleep": the thread sleeps in ppoll; "spin": it runs.
 * Beside it "sleeper" and "spinner" do what their names say, with stacks like any other.
 *
 * Its frames are odd_sleep or odd_spin, whose caller is known from the page that can be read, odd_caller, whose own
 * caller is on the page that cannot.
 *
 * Questions: "progress" (rises while the spinner runs), "gap" (the longest time, in nanoseconds since last asked, that
 * the spinner, or the odd thread if it spins, stood still), "mapping" (its first address and its end, in hexadecimal),
 * "waiting" (1: somebody waits for memory of the userfaultfd).
 * Exits with 77 where there is no userfaultfd, or no right to use it for faults of the kernel.
 */
#include "target.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

enum { PAGES = 32, TOUCHED = 15, CANNOT = 77 };

static char *mapping;
static size_t page, mapping_size;
static int uffd = -1;
static bool odd_spins;
volatile uint64_t odd_turns;
static atomic_ullong largest_gap, turns;

/*
 * odd_caller(SP, SPIN): moves to the stack pointer, for good. What is told of the frames is what it would be if they
 * had come there by calls: the return address of odd_caller is above the stack pointer that it was given.
 */
void odd_caller(void *sp, int spin) __attribute__((noreturn));
#if defined(__x86_64__)
asm("	.pushsection .text\n"
    "	.globl odd_caller, odd_sleep, odd_spin\n"
    "	.type odd_sleep, @function\n"
    "odd_sleep:\n"
    "	.cfi_startproc\n"
    "1:	mov $271, %eax\n" /* ppoll */
    "	xor %edi, %edi\n"
    "	xor %esi, %esi\n"
    "	xor %edx, %edx\n"
    "	xor %r10d, %r10d\n"
    "	syscall\n"
    "	jmp 1b\n"
    "	.cfi_endproc\n"
    "	.size odd_sleep, . - odd_sleep\n"
    "	.type odd_spin, @function\n"
    "odd_spin:\n"
    "	.cfi_startproc\n"
    "1:	incq odd_turns(%rip)\n"
    "	jmp 1b\n"
    "	.cfi_endproc\n"
    "	.size odd_spin, . - odd_spin\n"
    "	.type odd_caller, @function\n"
    "odd_caller:\n"
    "	.cfi_startproc\n"
    "	mov %rdi, %rsp\n"
    "	test %esi, %esi\n"
    "	jnz 1f\n"
    "	call odd_sleep\n"
    "1:	call odd_spin\n"
    "	ud2\n"
    "	.cfi_endproc\n"
    "	.size odd_caller, . - odd_caller\n"
    "	.popsection\n");
#elif defined(__aarch64__)
asm("	.pushsection .text\n"
    "	.globl odd_caller, odd_sleep, odd_spin\n"
    "	.type odd_sleep, @function\n"
    "odd_sleep:\n"
    "	.cfi_startproc\n"
    "	stp x29, x30, [sp, #-16]!\n"
    "	.cfi_def_cfa_offset 16\n"
    "	.cfi_offset 29, -16\n"
    "	.cfi_offset 30, -8\n"
    "1:	mov x8, #73\n" /* ppoll */
    "	mov x0, #0\n"
    "	mov x1, #0\n"
    "	mov x2, #0\n"
    "	mov x3, #0\n"
    "	svc #0\n"
    "	b 1b\n"
    "	.cfi_endproc\n"
    "	.size odd_sleep, . - odd_sleep\n"
    "	.type odd_spin, @function\n"
    "odd_spin:\n"
    "	.cfi_startproc\n"
    "	stp x29, x30, [sp, #-16]!\n"
    "	.cfi_def_cfa_offset 16\n"
    "	.cfi_offset 29, -16\n"
    "	.cfi_offset 30, -8\n"
    "	adrp x9, odd_turns\n"
    "	add x9, x9, :lo12:odd_turns\n"
    "	mov x10, #0\n"
    "1:	add x10, x10, #1\n"
    "	str x10, [x9]\n"
    "	b 1b\n"
    "	.cfi_endproc\n"
    "	.size odd_spin, . - odd_spin\n"
    "	.type odd_caller, @function\n"
    "odd_caller:\n"
    "	.cfi_startproc\n"
    "	.cfi_def_cfa_offset 16\n"
    "	.cfi_offset 29, -16\n"
    "	.cfi_offset 30, -8\n"
    "	mov sp, x0\n"
    "	cbnz w1, 1f\n"
    "	bl odd_sleep\n"
    "1:	bl odd_spin\n"
    "	brk #1\n"
    "	.cfi_endproc\n"
    "	.size odd_caller, . - odd_caller\n"
    "	.popsection\n");
#else
#error "which stack pointer?"
#endif

static void map_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	mapping = mmap(NULL, mapping_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (fd < 0 || mapping == MAP_FAILED)
		target_die(path);
	/* Nothing around the page that is touched is read with it, whatever the file system would do. */
	madvise(mapping, mapping_size, MADV_RANDOM);
	mapping[TOUCHED * page] = 1;
	close(fd);
}

/* A child keeps it, until we end. */
static void give_uffd_away(void)
{
	pid_t child = fork();

	if (child < 0)
		target_die("fork");
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	close(uffd);
	uffd = -1;
}

static char *map_memory(bool shared)
{
	int fd = shared ? memfd_create("odd", MFD_CLOEXEC) : -1;
	char *memory;

	if (shared && (fd < 0 || ftruncate(fd, (off_t)mapping_size)))
		target_die("memfd_create");
	memory = mmap(NULL, mapping_size, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	if (memory == MAP_FAILED)
		target_die("mmap");
	if (shared)
		close(fd);
	return memory;
}

static void map_uffd(const char *kind)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};

	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api)) {
		perror("userfaultfd");
		exit(CANNOT);
	}
	mapping = map_memory(!strcmp(kind, "uffd-shared"));
	madvise(mapping, mapping_size, MADV_NOHUGEPAGE);
	mapping[TOUCHED * page] = 1; /* before nobody answers for it any more */
	range.range.start = (uintptr_t)mapping;
	range.range.len = mapping_size;
	if (ioctl(uffd, UFFDIO_REGISTER, &range))
		target_die("UFFDIO_REGISTER");
	if (!strcmp(kind, "uffd-elsewhere"))
		give_uffd_away();
}

static void odd(void)
{
	target_arrived();
	odd_caller(mapping + (TOUCHED + 1) * page, odd_spins);
}

FRAME static void sleep_here(void)
{
	target_block();
}

static void sleeper(void)
{
	sleep_here();
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

FRAME static void spin_here(void)
{
	uint64_t before = now_ns(), odd_before = before, odd_seen = 0;

	target_arrived();
	for (;;) {
		uint64_t now = now_ns(), gap = now - before, seen = odd_turns;
		unsigned long long largest = atomic_load_explicit(&largest_gap, memory_order_relaxed);

		if (seen != odd_seen) {
			if (odd_seen && now - odd_before > gap)
				gap = now - odd_before;
			odd_seen = seen;
			odd_before = now;
		}
		while (gap > largest && !atomic_compare_exchange_weak(&largest_gap, &largest, gap))
			;
		atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
		before = now;
	}
}

static void spinner(void)
{
	spin_here();
}

static void answer(const char *question)
{
	struct pollfd pfd = {.fd = uffd, .events = POLLIN};

	if (!strcmp(question, "gap"))
		printf("%llu\n", atomic_exchange(&largest_gap, 0));
	else if (!strcmp(question, "mapping"))
		printf("%lx %lx\n", (unsigned long)mapping, (unsigned long)(mapping + mapping_size));
	else if (!strcmp(question, "waiting"))
		printf("%d\n", uffd >= 0 && poll(&pfd, 1, 0) == 1);
	else
		printf("%llu\n", atomic_load(&turns));
}

int main(int argc, char **argv)
{
	bool is_file = argc == 4 && !strcmp(argv[1], "file");

	if (!is_file && argc != 3)
		return 2;
	target_init();
	page = (size_t)sysconf(_SC_PAGESIZE);
	mapping_size = PAGES * page;
	odd_spins = !strcmp(argv[2], "spin");
	if (is_file)
		map_file(argv[3]);
	else
		map_uffd(argv[1]);
	target_start("odd", odd);
	target_start("sleeper", sleeper);
	target_start("spinner", spinner);
	target_ready();
	target_serve(answer);
}
