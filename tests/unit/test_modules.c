/* SPDX-License-Identifier: MIT */
#include "child.h"
#include "elfmake.h"
#include "scratch.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "elf/symtab.h"
#include "proc/process.h"
#include "proc/task.h"
#include "target/mapped_file.h"
#include "target/memimage.h"
#include "target/target.h"

static const char source[] = "static __attribute__((noinline, used)) int hidden(int x) { return x * 7; }\n"
			     "int shown_by_the_library(int x) { return hidden(x) + 1; }\n";

/* Where the child loads the library from; set before it is forked. */
static char library[256];
static struct scratch scratch;

static int setup(void **state)
{
	scratch_init(&scratch);
	scratch_text(&scratch, "l.c", source);
	scratch_run(&scratch, "chmod 755 . && cc -g -O1 -shared -fPIC -Wl,--build-id=sha1 -o lib.so l.c && "
			      "cc -O2 -DX=1 -shared -fPIC -Wl,--build-id=sha1 -o other.so l.c");
	snprintf(library, sizeof(library), "%s/lib.so", scratch.dir);
	return 0;
}

static int teardown(void **state)
{
	scratch_deinit(&scratch);
	return 0;
}

static void load_library(void)
{
	if (!dlopen(library, RTLD_NOW))
		_exit(1);
}

static void body_loads(void)
{
	load_library();
	child_sleeps();
}

/* The maps of a child once it has the library: ready only means forked, and it sleeps only when all of it is mapped. */
static struct snapshot *take_maps(pid_t pid)
{
	struct snapshot *snap = snapshot_create(pid, arch_host());
	struct process process;
	char letter;

	assert_int_equal(process_open(pid, NULL, &process), 0);
	for (int tries = 0; tries < 2000; tries++) {
		assert_int_equal(task_state(&process, pid, &letter), 0);
		assert_int_equal(process_maps(&process, snap->arena, NULL, &snap->maps), 0);
		for (size_t i = 0; letter == 'S' && i < snap->maps.len; i++) {
			const struct map_entry *e = &snap->maps.data[i];

			if ((e->perms & MAP_PERM_EXEC) && (strstr(e->path, "lib.so") || strstr(e->path, "memfd:lib"))) {
				process_close(&process);
				return snap;
			}
		}
		usleep(1000);
	}
	fail_msg("the child did not load the library");
	return NULL;
}

/* The code of the library: by the name of its mapping. */
static const struct map_entry *library_entry(const struct snapshot *snap)
{
	for (size_t i = 0; i < snap->maps.len; i++) {
		const struct map_entry *e = &snap->maps.data[i];

		if ((e->perms & MAP_PERM_EXEC) && (strstr(e->path, "lib.so") || strstr(e->path, "memfd:lib")))
			return e;
	}
	return NULL;
}

static bool finds_name(struct image *image, uint64_t vaddr, const char *want)
{
	struct symtab *tab;
	struct symbol symbol;
	bool found = false;

	assert_int_equal(symtab_create(image, NULL, NULL, &tab), 0);
	for (uint64_t at = vaddr; !found && at < vaddr + 4096; at++)
		found = symtab_find(tab, at, &symbol) && symbol.name_len == strlen(want) &&
			memcmp(symbol.name, want, symbol.name_len) == 0;
	symtab_destroy(tab);
	return found;
}

/* The process behind a snapshot, or none. */
static struct target *open_target(struct snapshot *snap)
{
	struct target *target = NULL;

	if (snap->replayed)
		target = target_open_saved(snap);
	else
		assert_int_equal(target_open(snap->pid, NULL, &target), 0);
	assert_non_null(target);
	target_set_snapshot(target, snap);
	return target;
}

static struct target *open_files(struct snapshot *snap)
{
	struct target *target = open_target(snap);

	assert_int_equal(target_open_files(target, NULL, NULL), 0);
	return target;
}

/* The module of the library's code, which must be the real one. */
static void expect_library(struct snapshot *snap, bool ignore_deleted)
{
	const struct modules_options options = {.ignore_deleted = ignore_deleted};
	struct target *target = open_target(snap);
	struct image *file = NULL;
	struct module *module;
	const struct map_entry *entry = library_entry(snap);
	uint64_t vaddr;

	assert_int_equal(target_open_files(target, &options, NULL), 0);
	module = modules_find(target->modules, entry->start, &vaddr);
	assert_non_null(module);
	if (!module->image)
		fail_msg("%s: %s", module->info.path, module->info.problem);
	assert_null(module->info.problem);
	assert_true(finds_name(module->image, vaddr, "shown_by_the_library"));
	assert_non_null(module->info.build_id);
	assert_string_equal(entry->build_id, module->info.build_id);
	if (access(library, F_OK) == 0) {
		file = scratch_image(&scratch, "lib.so");
		assert_string_equal(image_build_id(file), module->info.build_id);
		image_destroy(file);
	}
	assert_null(modules_find(target->modules, 0, &vaddr));
	target_close(target);
}

static void test_mapped_file(void **state)
{
	pid_t pid = child_start(body_loads);
	struct snapshot *snap = take_maps(pid);

	expect_library(snap, false);
	snapshot_destroy(snap);
	child_end(pid);
}

static void test_mappings_of_one_file_are_one_module(void **state)
{
	pid_t pid = child_start(body_loads);
	struct snapshot *snap = take_maps(pid);
	const struct map_entry *code = library_entry(snap);
	struct target *target;
	struct module *module;
	uint64_t vaddr;

	target = open_files(snap);
	module = modules_find(target->modules, code->start, &vaddr);
	for (size_t i = 0; i < snap->maps.len; i++)
		if (strcmp(snap->maps.data[i].path, code->path) == 0)
			assert_ptr_equal(modules_find(target->modules, snap->maps.data[i].start, &vaddr), module);
	target_close(target);
	snapshot_destroy(snap);
	child_end(pid);
}

static void test_each_file_with_code(void **state)
{
	pid_t pid = child_start(body_loads);
	struct snapshot *snap = take_maps(pid);
	const struct map_entry *code = library_entry(snap), *entry;
	struct target *target = open_files(snap);
	const struct module *last = NULL;
	unsigned libraries = 0, others = 0;
	struct module *module;
	uint64_t bias, vaddr;
	size_t at = 0;

	for (; (module = modules_next(target->modules, &at, &entry, &bias)); last = module) {
		assert_non_null(module->image);
		assert_ptr_not_equal(module, last);
		assert_true(entry->perms & MAP_PERM_EXEC);
		assert_ptr_equal(modules_find(target->modules, entry->start, &vaddr), module);
		assert_int_equal(entry->start - vaddr, bias);
		libraries += entry == code;
		others += entry != code;
	}
	assert_int_equal(libraries, 1);
	assert_true(others >= 2); /* this program and its C library */
	target_close(target);
	snapshot_destroy(snap);
	child_end(pid);
}

static void test_deleted_file(void **state)
{
	pid_t pid = child_start(body_loads);
	struct snapshot *snap = take_maps(pid);

	snapshot_destroy(snap);
	scratch_run(&scratch, "cp lib.so keep.so && rm lib.so");
	snap = take_maps(pid);
	assert_true(library_entry(snap)->deleted);
	expect_library(snap, false);
	snapshot_destroy(snap);
	scratch_run(&scratch, "mv keep.so lib.so");
	child_end(pid);
}

/* Another file at the path must not lend its names: as root the mapped one is still found. */
static void test_replaced_file(void **state)
{
	pid_t pid = child_start(body_loads);
	struct snapshot *snap = take_maps(pid);
	struct image *mine = scratch_image(&scratch, "lib.so");
	struct target *target;
	struct module *module;
	uint64_t vaddr;

	scratch_run(&scratch, "mv lib.so keep.so && cp other.so lib.so");
	target = open_files(snap);
	module = modules_find(target->modules, library_entry(snap)->start, &vaddr);
	if (module->image)
		assert_string_equal(image_build_id(module->image), image_build_id(mine));
	else
		assert_non_null(strstr(module->info.problem, "not the one that is mapped"));
	target_close(target);
	image_destroy(mine);
	snapshot_destroy(snap);
	scratch_run(&scratch, "mv keep.so lib.so");
	child_end(pid);
}

static void body_loads_memfd(void)
{
	int fd = memfd_create("lib", 0), from = open(library, O_RDONLY);
	char buf[65536];
	ssize_t len;

	while ((len = read(from, buf, sizeof(buf))) > 0)
		if (write(fd, buf, (size_t)len) != len)
			_exit(1);
	snprintf(buf, sizeof(buf), "/proc/self/fd/%d", fd);
	if (!dlopen(buf, RTLD_NOW))
		_exit(1);
	child_sleeps();
}

static void test_memfd(void **state)
{
	pid_t pid = child_start(body_loads_memfd);
	struct snapshot *snap = take_maps(pid);

	expect_library(snap, false);
	snapshot_destroy(snap);
	child_end(pid);
}

/* What an unprivileged user gets: map_files is refused, so that the image comes from the target's memory. */
static void test_deleted_file_from_memory(void **state)
{
	pid_t pid = child_start(body_loads);
	struct snapshot *snap = take_maps(pid);
	const struct map_entry *entry = library_entry(snap);
	struct target *target = open_target(snap);
	struct image *image;
	struct mem_copy copy;
	size_t first, last;

	for (first = last = (size_t)(entry - snap->maps.data); snap->maps.data[first].offset; first--)
		;
	while (last + 1 < snap->maps.len && strcmp(snap->maps.data[last + 1].path, entry->path) == 0)
		last++;
	assert_int_equal(memimage_copy(snap, &target->memory, first, last, NULL, &copy), 0);
	assert_int_equal(image_open_memory(copy.data, copy.len, NULL, &image), 0);
	assert_non_null(image_build_id(image));
	assert_true(finds_name(image, entry->start - copy.start, "shown_by_the_library"));
	image_destroy(image);

	/* In a snapshot it is found again, also when that is replayed. */
	assert_true(vec_push(&snap->images, copy));
	snap->replayed = true;
	expect_library(snap, false);
	target_close(target);
	snapshot_destroy(snap);
	child_end(pid);
}

/* Everything of the last test at once, as nobody: true when the image was found. */
static bool nobody_finds_deleted(void)
{
	struct snapshot *snap;
	pid_t pid;

	if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
		return false;
	pid = child_start(body_loads);
	snap = take_maps(pid);
	snapshot_destroy(snap);
	if (unlink(library) < 0)
		return false;
	snap = take_maps(pid);
	expect_library(snap, false);
	assert_int_equal(snap->images.len, 1);
	snapshot_destroy(snap);
	child_end(pid);
	return true;
}

static void test_deleted_file_without_privileges(void **state)
{
	int status;
	pid_t pid;

	if (getuid() != 0) {
		print_message("skipped: only root can become nobody\n");
		skip();
	}
	scratch_run(&scratch, "cp lib.so keep.so && chmod 777 .");
	pid = fork();
	if (pid == 0)
		_exit(nobody_finds_deleted() ? 0 : 1);
	waitpid(pid, &status, 0);
	scratch_run(&scratch, "mv keep.so lib.so && chmod 755 .");
	assert_int_equal(status, 0);
}

static void test_vdso(void **state)
{
	struct snapshot *snap = snapshot_create(getpid(), arch_host());
	uint64_t start = getauxval(AT_SYSINFO_EHDR);
	struct map_entry *vdso = NULL;
	struct process process;
	struct target *target;
	struct module *module;
	uint64_t vaddr;

	if (!start) {
		print_message("skipped: this kernel has no vDSO\n");
		skip();
	}
	assert_int_equal(process_open(getpid(), NULL, &process), 0);
	assert_int_equal(process_maps(&process, snap->arena, NULL, &snap->maps), 0);
	process_close(&process);
	for (size_t i = 0; i < snap->maps.len; i++)
		if (snap->maps.data[i].start == start)
			vdso = &snap->maps.data[i];
	assert_non_null(vdso);
	assert_true(vec_push(&snap->images, (struct mem_copy){.start = start,
							      .len = vdso->end - start,
							      .region_end = vdso->end,
							      .data = (uint8_t *)start}));
	target = open_files(snap);
	module = modules_find(target->modules, start + 0x10, &vaddr);
	assert_non_null(module);
	assert_non_null(module->image);
	assert_string_equal(module->info.path, "[vdso]");
	assert_int_equal(vaddr, 0x10);
	target_close(target);

	snap->images.len = 0;
	target = open_files(snap);
	module = modules_find(target->modules, start + 0x10, &vaddr);
	assert_null(module->image);
	assert_non_null(module->info.problem);
	target_close(target);
	snapshot_destroy(snap);
}

static struct module *replay(struct snapshot *snap, const char *path, const char *build_id, struct target **target)
{
	struct map_entry e = {.start = 0x10000,
			      .end = 0x20000,
			      .inode = 1,
			      .perms = MAP_PERM_READ | MAP_PERM_EXEC,
			      .path = path,
			      .build_id = build_id};
	uint64_t vaddr;

	snap->replayed = true;
	snap->maps.len = 0;
	assert_true(vec_push(&snap->maps, e));
	*target = open_files(snap);
	return modules_find((*target)->modules, 0x10000, &vaddr);
}

static void test_replay_checks_the_build_id(void **state)
{
	struct snapshot *snap = snapshot_create(1, arch_host());
	struct image *file = scratch_image(&scratch, "lib.so");
	struct target *target;
	struct module *module;

	module = replay(snap, library, image_build_id(file), &target);
	assert_non_null(module->image);
	assert_null(module->info.problem);
	target_close(target);

	module = replay(snap, library, "0123456789abcdef", &target);
	assert_null(module->image);
	assert_non_null(strstr(module->info.problem, "build-id differs"));
	assert_string_equal(module->info.build_id, "0123456789abcdef");
	target_close(target);

	module = replay(snap, library, "../../../../etc", &target);
	assert_null(module->image);
	target_close(target);

	module = replay(snap, library, NULL, &target); /* another inode, and no build-id to tell */
	assert_null(module->image);
	assert_non_null(module->info.problem);
	target_close(target);

	module = replay(snap, "/nonexistent", image_build_id(file), &target);
	assert_null(module->image);
	assert_non_null(module->info.problem);
	target_close(target);
	image_destroy(file);
	snapshot_destroy(snap);
}

/* What is mapped need not be an ELF file, and may be cut short. */
static void test_what_is_no_library(void **state)
{
	struct snapshot *snap = snapshot_create(1, arch_host());
	static const char *const names[] = {"empty", "text", "header", "fifo"};
	struct target *target;
	char path[256];

	scratch_run(&scratch, "rm -f fifo; : > empty; echo text > text; head -c 64 lib.so > header; mkfifo fifo");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct module *module;

		snprintf(path, sizeof(path), "%s/%s", scratch.dir, names[i]);
		module = replay(snap, path, "0123456789abcdef", &target);
		assert_null(module->image);
		assert_non_null(module->info.problem);
		target_close(target);
	}
	snapshot_destroy(snap);
}

/* Code announced by a JIT compiler is a module, but not where a file is mapped that could be opened. */
static void test_jit_code(void **state)
{
	struct snapshot *snap = snapshot_create(1, arch_host());
	struct image *file = scratch_image(&scratch, "lib.so");
	const struct map_entry mapped[] = {
		{.start = 0x10000, .end = 0x20000, .inode = 1, .perms = MAP_PERM_EXEC, .path = library,
		 .build_id = image_build_id(file)},
		{.start = 0x20000, .end = 0x30000, .perms = MAP_PERM_EXEC, .path = ""},
		{.start = 0x30000, .end = 0x40000, .inode = 2, .perms = MAP_PERM_EXEC, .path = "/memfd:code"},
	};
	struct target *target;
	struct module *module;
	struct elfmake e;
	uint64_t vaddr;

	elfmake_init(&e, EM_X86_64);
	elfmake_section(&e, ".text",
			(Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = 0x18000}, NULL,
			0);
	e.shdrs[1].sh_size = 0x20000;
	image_destroy(elfmake_image(&e));
	for (size_t i = 0; i < 3; i++)
		assert_true(vec_push(&snap->maps, mapped[i]));
	assert_true(vec_push(&snap->jit_images, (struct mem_copy){.start = 0x1000, .len = e.len, .data = e.data}));
	snap->replayed = true;
	target = open_files(snap);

	assert_string_equal(modules_find(target->modules, 0x18000, &vaddr)->info.path, library);
	assert_false(modules_find(target->modules, 0x18000, &vaddr)->jit);
	module = modules_find(target->modules, 0x20010, &vaddr);
	assert_non_null(module);
	assert_true(module->jit);
	assert_int_equal(vaddr, 0x20010);
	assert_ptr_equal(modules_find(target->modules, 0x30010, &vaddr), module);
	assert_int_equal(vaddr, 0x30010);
	assert_null(modules_find(target->modules, 0x39000, &vaddr)); /* behind the code, in a file that is no object */
	assert_false(target_is_live(target));
	assert_int_equal(mapped_file_open(target, &mapped[0], false, NULL, NULL), -ESRCH);
	target_close(target);
	elfmake_deinit(&e);
	image_destroy(file);
	snapshot_destroy(snap);
}

static void test_process_that_is_gone(void **state)
{
	pid_t pid = child_start(body_loads);
	struct snapshot *snap = take_maps(pid);
	struct target *target = open_target(snap);
	uint64_t vaddr;

	child_end(pid);
	assert_int_equal(target_open_files(target, NULL, NULL), 0); /* its root is held open */
	assert_non_null(modules_find(target->modules, library_entry(snap)->start, &vaddr)->image);
	scratch_run(&scratch, "mv lib.so keep.so");
	assert_int_equal(target_open_files(target, NULL, NULL), 0);
	assert_non_null(modules_find(target->modules, library_entry(snap)->start, &vaddr)->info.problem);
	scratch_run(&scratch, "mv keep.so lib.so");
	target_close(target);
	snapshot_destroy(snap);
}

static void test_ignore_deleted(void **state)
{
	pid_t pid = child_start(body_loads);
	struct snapshot *snap = take_maps(pid);

	/* Take the surer ways away: another address has no map_files entry, another inode no file. */
	for (size_t i = 0; i < snap->maps.len; i++) {
		if (strcmp(snap->maps.data[i].path, library) != 0)
			continue;
		snap->maps.data[i].deleted = true;
		snap->maps.data[i].inode++;
	}
	expect_library(snap, true);
	snapshot_destroy(snap);
	child_end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mapped_file),
		cmocka_unit_test(test_mappings_of_one_file_are_one_module),
		cmocka_unit_test(test_each_file_with_code),
		cmocka_unit_test(test_deleted_file),
		cmocka_unit_test(test_replaced_file),
		cmocka_unit_test(test_memfd),
		cmocka_unit_test(test_deleted_file_from_memory),
		cmocka_unit_test(test_deleted_file_without_privileges),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_replay_checks_the_build_id),
		cmocka_unit_test(test_what_is_no_library),
		cmocka_unit_test(test_jit_code),
		cmocka_unit_test(test_process_that_is_gone),
		cmocka_unit_test(test_ignore_deleted),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
