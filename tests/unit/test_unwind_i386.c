/* SPDX-License-Identifier: MIT */
/* A walk through a 32-bit program as a compiler made it, with a stack that is made here: no machine that runs it is needed. */
#include "cmocka_all.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "target/target.h"
#include "unwind/unwind.h"

#define STACK UINT32_C(0xffffd000)

enum { WORDS = 64 };

struct world {
	char path[256];
	uint32_t stack[WORDS];
	const uint8_t *file;
	size_t file_len;
	struct snapshot *snap;
	struct target *target;
};

/* The address of a function, by its symbol. */
static uint32_t address_of(const struct world *w, const char *name)
{
	char command[512], line[256], found[128];
	unsigned address = 0, value;
	FILE *nm;

	snprintf(command, sizeof(command), "nm '%s'", w->path);
	nm = popen(command, "r");
	assert_non_null(nm);
	while (fgets(line, sizeof(line), nm))
		if (sscanf(line, "%x %*c %127s", &value, found) == 2 && strcmp(found, name) == 0)
			address = value;
	pclose(nm);
	assert_int_not_equal(address, 0);
	return address;
}

/* The segment with the code, as it would be mapped. */
static void map_code(struct world *w)
{
	int fd = open(w->path, O_RDONLY | O_CLOEXEC);
	const Elf32_Phdr *phdr;
	const Elf32_Ehdr *ehdr;
	struct stat st;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	ehdr = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(ehdr != MAP_FAILED && ehdr->e_machine == EM_386);
	phdr = (const Elf32_Phdr *)((const char *)ehdr + ehdr->e_phoff);
	for (unsigned i = 0; i < ehdr->e_phnum; i++)
		if (phdr[i].p_type == PT_LOAD && phdr[i].p_flags & PF_X)
			assert_true(vec_push(&w->snap->maps, (struct map_entry){
				.start = phdr[i].p_vaddr, .end = (phdr[i].p_vaddr + phdr[i].p_memsz + 4095) & ~UINT32_C(4095),
				.offset = phdr[i].p_offset, .inode = st.st_ino, .dev_major = major(st.st_dev),
				.dev_minor = minor(st.st_dev), .perms = MAP_PERM_READ | MAP_PERM_EXEC, .path = w->path}));
	w->file = (const uint8_t *)ehdr;
	w->file_len = (size_t)st.st_size;
	close(fd);
}

/* The address behind the first such bytes of a function. */
static uint32_t behind(const struct world *w, const char *function, const char *bytes, size_t len, size_t whole)
{
	const struct map_entry *code = &w->snap->maps.data[0];
	uint64_t at = address_of(w, function) - code->start + code->offset;
	const uint8_t *found = memmem(w->file + at, w->file_len - at, bytes, len);

	assert_non_null(found);
	return (uint32_t)((uint64_t)(found - w->file) - code->offset + code->start + whole);
}

static bool open_world(struct world *w)
{
	const char *targets = getenv("STAKEOUT_TARGETS");

	snprintf(w->path, sizeof(w->path), "%s/waits_32bit", targets ? targets : "build/tests/targets");
	if (access(w->path, R_OK) < 0)
		return false;
	w->snap = snapshot_create(1, &arch_i386);
	w->snap->replayed = true;
	map_code(w);
	assert_true(vec_push(&w->snap->maps, (struct map_entry){.start = STACK, .end = STACK + sizeof(w->stack),
								.perms = MAP_PERM_READ | MAP_PERM_WRITE, .path = "[stack]"}));
	w->target = target_open_saved(w->snap);
	assert_non_null(w->target);
	assert_int_equal(target_open_files(w->target, &(struct modules_options){0}, NULL), 0);
	return true;
}

static void set_register(struct snap_thread *thread, unsigned reg, uint32_t value)
{
	thread->regs.v[reg] = value;
	thread->regs.valid |= UINT64_C(1) << reg;
}

/* Each function has pushed ebp, and moved esp there. */
static void test_frames(void **state)
{
	enum { EBP = 5, FIRST = 4, SECOND = 10 };
	struct snap_thread thread = {.tid = 1, .state = 'S', .status = THREAD_CAPTURED};
	struct world w = {.snap = NULL};
	struct raw_stack out;
	uint32_t wait, caller;

	if (!open_world(&w))
		skip();
	wait = behind(&w, "narrow_wait", "\xcd\x80", 2, 2); /* int $0x80 */
	caller = behind(&w, "narrow_caller", "\xe8", 1, 5);  /* call narrow_wait */
	w.stack[FIRST] = STACK + 4 * SECOND;
	w.stack[FIRST + 1] = caller;
	w.stack[SECOND] = 0;
	w.stack[SECOND + 1] = 0; /* returns nowhere */
	w.stack[SECOND + 2] = UINT32_MAX;
	set_register(&thread, arch_i386.user_pc, wait);
	set_register(&thread, arch_i386.user_sp, STACK);
	set_register(&thread, EBP, STACK + 4 * FIRST);
	thread.stack = (struct mem_copy){.start = STACK, .len = sizeof(w.stack), .region_end = STACK + sizeof(w.stack),
					 .data = (uint8_t *)w.stack};
	unwind_thread(w.snap, w.target->modules, &thread, &(struct unwind_options){0}, &out);
	assert_string_equal(out.error, "");
	assert_int_equal(out.end, STACK_COMPLETE);
	assert_int_equal(out.len, 2);
	assert_int_equal(out.data[0].pc, wait);
	assert_int_equal(out.data[1].pc, caller);
	assert_int_equal(out.data[1].sp, STACK + 4 * (FIRST + 2));
	raw_stack_deinit(&out);
	target_close(w.target);
	snapshot_destroy(w.snap);
	munmap((void *)(uintptr_t)w.file, w.file_len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
