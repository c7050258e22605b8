/* SPDX-License-Identifier: MIT */
/* What BPF finds out itself of a process that nobody has read, by the files that it was told of. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "kernel/offcpu_probe.h"

enum { NAP_NS = 2000000, MIN_NS = 1000000, POLL_MS = 10, PATIENCE = 3000, OBJECT = 3, SERIAL = 7, MANY_WRITES = 1 << 20 };

enum { MAX_COPIES = 64 /* of a process's stacks */ };

/* Sleeps in this very file, so that the first frame is in it. */
__attribute__((noinline)) static void nap(void)
{
	const struct timespec t = {.tv_nsec = NAP_NS};
#if defined(__x86_64__)
	long rc = SYS_nanosleep;

	__asm__ volatile("syscall" : "+a"(rc) : "D"(&t), "S"(NULL) : "rcx", "r11", "memory");
#else
	register long rc __asm__("x0") = (long)&t;
	register long rest __asm__("x1") = 0;
	register long number __asm__("x8") = SYS_nanosleep;

	__asm__ volatile("svc #0" : "+r"(rc) : "r"(rest), "r"(number) : "memory");
#endif
}

static void naps(void)
{
	for (;;)
		nap();
}

/* The mapping that nap() is in. */
struct place {
	uint64_t start, end, offset;
};

static struct place find_place(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	struct place place;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &place.start, &place.end, &place.offset) == 3 &&
		    place.start <= (uintptr_t)nap && (uintptr_t)nap < place.end) {
			fclose(f);
			return place;
		}
	fail_msg("no mapping");
	return place;
}

struct seen {
	unsigned stacks, sets, copies;
	size_t bytes; /* of all copies */
	struct offcpu_copy copy; /* the last one, */
	struct offcpu_code code; /* and the mapping of this file that it has */
	struct offcpu_stack stack; /* the last one */
	struct offcpu_found set;
	struct offcpu_mapping mapping; /* its first one */
	bool in_order; /* no stack came before its set */
};

static void take_copy(struct seen *seen, const void *record, size_t len)
{
	const struct offcpu_copy *copy = record;
	const struct offcpu_code *codes = (const void *)((const char *)(copy + 1) + copy->npieces * OFFCPU_COPY_PIECE);

	assert_true(len >= sizeof(*copy));
	assert_int_equal(len, sizeof(*copy) + copy->npieces * OFFCPU_COPY_PIECE + copy->count * sizeof(*codes));
	seen->copy = *copy;
	seen->copies++;
	seen->bytes += len;
	for (uint32_t i = 0; i < copy->count; i++)
		if (codes[i].start <= (uintptr_t)nap && (uintptr_t)nap < codes[i].end)
			seen->code = codes[i];
}

static void take(void *arg, const void *record, size_t len)
{
	struct seen *seen = arg;

	switch (*(const uint32_t *)record) {
	case OFFCPU_FOUND:
		memcpy(&seen->set, record, sizeof(seen->set));
		assert_true(seen->set.count > 0);
		assert_int_equal(len, sizeof(seen->set) + seen->set.count * sizeof(seen->mapping));
		memcpy(&seen->mapping, (const char *)record + sizeof(seen->set), sizeof(seen->mapping));
		seen->sets++;
		break;
	case OFFCPU_COPY:
		take_copy(seen, record, len);
		break;
	case OFFCPU_STACK:
		memcpy(&seen->stack, record, sizeof(seen->stack));
		seen->in_order &= !(seen->stack.set & OFFCPU_FOUND_SET) || seen->stack.set == seen->set.set;
		seen->stacks++;
		break;
	}
}

struct fixture {
	struct offcpu_probe *probe;
	struct place place;
	struct offcpu_file file;
	pid_t pid;
	struct seen seen;
};

static const struct unwind_row outermost = {.kind = UNWIND_END};

/* All code of this file is that of the outermost function. */
static void give_table(struct fixture *f, uint32_t serial)
{
	const uint32_t object = OBJECT;
	int table = offcpu_probe_create_table(f->probe, &outermost, 1, serial);

	assert_true(table >= 0);
	assert_int_equal(offcpu_probe_set_objects(f->probe, &object, &table, 1), 0);
	close(table);
}

static void tell_file(struct fixture *f)
{
	const struct offcpu_file_code code = {.object = OBJECT, .nrows = 1, .serial = SERIAL};

	assert_int_equal(offcpu_probe_identify(f->probe, (const void *)(uintptr_t)nap, &f->file), 0);
	assert_true(f->file.inode && !f->file.page);
	f->file.page = f->place.offset / (uint64_t)sysconf(_SC_PAGESIZE);
	assert_int_equal(offcpu_probe_set_file(f->probe, &f->file, &code), 0);
}

static void start(struct fixture *f, uint64_t min_ns, uint32_t pretended)
{
	const struct offcpu_probe_options options = {
		.rung = OFFCPU_RUNG_SCHED_EXIT,
		.filter = {.min_ns = min_ns, .max_ns = UINT64_MAX, .sleeping = true},
		.only_new = true,
		.user_stacks = true,
		.ring_bytes = 1 << 20,
		.max_mappings = 1,
		.pretended = pretended,
	};
	struct err err = {0};
	int rc;

	*f = (struct fixture){.place = find_place(), .seen.in_order = true};
	rc = offcpu_probe_create(&options, &err, &f->probe);
	if (rc == 0 && !pretended && !offcpu_probe_finds_code(f->probe))
		rc = err_set(&err, ENOSYS, "this kernel does not let BPF look at mappings");
	if (rc < 0) {
		print_message("skipped: %s\n", err.msg);
		offcpu_probe_destroy(f->probe);
		skip();
	}
	f->pid = child_start(naps);
	assert_int_equal(offcpu_probe_watch(f->probe, f->pid, &err), 0);
}

/* Another child than the usual one. */
static void watch_instead(struct fixture *f, void (*run)(void))
{
	child_end(f->pid);
	f->pid = child_start(run);
	assert_int_equal(offcpu_probe_watch(f->probe, f->pid, NULL), 0);
}

static void record(struct fixture *f, unsigned stacks)
{
	assert_int_equal(offcpu_probe_start(f->probe, NULL), 0);
	for (int i = 0; i < PATIENCE && f->seen.stacks < stacks; i++)
		assert_int_equal(offcpu_probe_poll(f->probe, POLL_MS, take, &f->seen), 0);
	assert_true(f->seen.stacks >= stacks);
}

static void finish(struct fixture *f)
{
	offcpu_probe_destroy(f->probe);
	child_end(f->pid);
}

static void assert_found(const struct fixture *f)
{
	assert_int_equal(f->seen.sets, 1);
	assert_true(f->seen.in_order);
	assert_int_equal(f->seen.set.tgid, f->pid);
	assert_true(f->seen.mapping.start == f->place.start && f->seen.mapping.end == f->place.end);
	assert_int_equal(f->seen.mapping.object, OBJECT);
	assert_int_equal(f->seen.mapping.serial, SERIAL);
	assert_int_equal(f->seen.stack.set, f->seen.set.set);
	assert_int_equal(f->seen.stack.user_end, OFFCPU_END_COMPLETE);
	assert_int_equal(offcpu_probe_set_of(f->probe, f->pid), f->seen.set.set);
}

static void test_finds(void **state)
{
	struct fixture f;

	start(&f, MIN_NS, 0);
	give_table(&f, SERIAL);
	tell_file(&f);
	record(&f, 1);
	assert_found(&f);
	finish(&f);
}

/* Its stack is cut when it leaves its CPU, where nobody can look, and whole when it is back. */
static void test_finds_when_back(void **state)
{
	struct fixture f;

	start(&f, 0, 0);
	give_table(&f, SERIAL);
	tell_file(&f);
	record(&f, 2);
	assert_found(&f);
	finish(&f);
}

/* Processes with the same mappings share a set, and so their stacks. */
static void test_shares(void **state)
{
	struct fixture f;
	pid_t other;

	start(&f, MIN_NS, 0);
	give_table(&f, SERIAL);
	tell_file(&f);
	record(&f, 1);
	other = child_start(naps);
	assert_int_equal(offcpu_probe_watch(f.probe, other, NULL), 0);
	for (int i = 0; i < PATIENCE && !offcpu_probe_set_of(f.probe, other); i++)
		assert_int_equal(offcpu_probe_poll(f.probe, POLL_MS, take, &f.seen), 0);
	assert_int_equal(offcpu_probe_set_of(f.probe, other), f.seen.set.set);
	assert_found(&f);
	child_end(other);
	finish(&f);
}

static void maps_much_and_naps(void)
{
	const struct place place = find_place();
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	for (int i = 0; i < 2 * OFFCPU_FOUND_MAPPINGS; i++)
		if (mmap(NULL, (size_t)(place.end - place.start), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (off_t)place.offset) ==
		    MAP_FAILED)
			_exit(1);
	naps();
}

/* A process with more code than a set can have is left to the loader. */
static void test_too_much_code(void **state)
{
	struct fixture f;

	start(&f, MIN_NS, 0);
	watch_instead(&f, maps_much_and_naps);
	give_table(&f, SERIAL);
	tell_file(&f);
	record(&f, 1);
	assert_int_equal(f.seen.sets, 0); /* it does not sleep before it has mapped all */
	assert_int_equal(f.seen.stack.user_end, OFFCPU_END_NO_TABLES);
	finish(&f);
}

/* The stack is sent as it is, with what is mapped. */
static void test_knows_no_file(void **state)
{
	struct offcpu_file file;
	struct fixture f;

	start(&f, MIN_NS, 0);
	give_table(&f, SERIAL);
	record(&f, 1);
	assert_int_equal(f.seen.sets, 0);
	assert_int_equal(f.seen.stack.user_end, OFFCPU_END_NO_TABLES);
	assert_int_equal(f.seen.copy.number, f.seen.stack.copy);
	assert_int_equal(f.seen.copy.tgid, f.pid);
	assert_true(f.seen.copy.present & 1 && f.seen.copy.npieces > 1 && f.seen.copy.start % OFFCPU_COPY_PIECE == 0);
	assert_true(f.seen.code.start == f.place.start && f.seen.code.end == f.place.end);
	assert_int_equal(offcpu_probe_identify(f.probe, (const void *)(uintptr_t)nap, &file), 0);
	assert_true(f.seen.code.file.inode == file.inode && f.seen.code.file.changed_s == file.changed_s);
	assert_int_equal(f.seen.code.file.page, f.place.offset / (uint64_t)sysconf(_SC_PAGESIZE));
	finish(&f);
}

static void record_until_cut(struct fixture *f)
{
	record(f, 1);
	for (int i = 0; i < PATIENCE && f->seen.stack.copy; i++)
		assert_int_equal(offcpu_probe_poll(f->probe, POLL_MS, take, &f->seen), 0);
	assert_int_equal(f->seen.stack.copy, 0);
	assert_int_equal(f->seen.stack.user_end, OFFCPU_END_NO_TABLES);
	assert_in_range(f->seen.copies, 1, MAX_COPIES);
}

/* The file may never become known: then it is cut as before. A long environment, too, is on the stack. */
static void test_copies_end(void **state)
{
	struct fixture f;

	start(&f, MIN_NS, 0);
	record_until_cut(&f);
	assert_true(f.seen.copies == MAX_COPIES || f.seen.bytes >= OFFCPU_COPIES_BYTES);
	finish(&f);
}

static void naps_deep(void)
{
	volatile char deep[2 * OFFCPU_COPY_BYTES];

	for (size_t i = 0; i < sizeof(deep); i++) /* what was never written is not copied */
		deep[i] = 1;
	naps();
	deep[0] = deep[1];
}

static void test_large_copies_end(void **state)
{
	struct fixture f;

	start(&f, MIN_NS, 0);
	watch_instead(&f, naps_deep);
	record_until_cut(&f);
	assert_true(f.seen.copies < MAX_COPIES && f.seen.bytes >= OFFCPU_COPIES_BYTES);
	finish(&f);
}

/* The loader has dropped the set, and so BPF makes another. */
static void test_forgotten_set(void **state)
{
	struct offcpu_found set;
	struct fixture f;

	start(&f, MIN_NS, 0);
	give_table(&f, SERIAL);
	tell_file(&f);
	record(&f, 1);
	assert_found(&f);
	set = f.seen.set;
	for (uint32_t i = 0; i < set.count; i++)
		offcpu_probe_forget_mapping(f.probe, set.first + i, set.set);
	/* A stack that comes before BPF looks again has none. */
	for (int i = 0; i < PATIENCE && (f.seen.sets < 2 || f.seen.stack.set != f.seen.set.set); i++)
		assert_int_equal(offcpu_probe_poll(f.probe, POLL_MS, take, &f.seen), 0);
	assert_int_equal(f.seen.sets, 2);
	f.seen.sets = 1;
	assert_found(&f);
	finish(&f);
}

static void test_forgotten_file(void **state)
{
	struct fixture f;

	start(&f, MIN_NS, 0);
	give_table(&f, SERIAL);
	tell_file(&f);
	offcpu_probe_forget_file(f.probe, &f.file);
	record(&f, 1);
	assert_int_equal(f.seen.sets, 0);
	assert_int_equal(f.seen.stack.user_end, OFFCPU_END_NO_TABLES);
	finish(&f);
}

/* The number of the table is another file's by now. */
static void test_table_of_others(void **state)
{
	struct fixture f;

	start(&f, MIN_NS, 0);
	give_table(&f, SERIAL + 1);
	tell_file(&f);
	record(&f, 1);
	assert_int_equal(f.seen.stack.user_end, OFFCPU_END_NO_TABLES);
	finish(&f);
}

/* As on a kernel before 6.7: the loader has to read the maps. */
static void test_never_finds(void **state)
{
	struct fixture f;

	start(&f, MIN_NS, OFFCPU_NEVER_FINDS);
	assert_false(offcpu_probe_finds_code(f.probe));
	give_table(&f, SERIAL);
	record(&f, 1);
	assert_int_equal(f.seen.sets, 0);
	assert_int_equal(f.seen.stack.user_end, OFFCPU_END_NO_TABLES);
	finish(&f);
}

/* Where no file is mapped there is none; the vDSO is one. */
static void test_identifies(void **state)
{
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct offcpu_file file, again;
	struct fixture f;
	int here = 0;

	start(&f, MIN_NS, 0);
	assert_int_equal(offcpu_probe_identify(f.probe, &here, &file), -ENOENT);
	assert_int_equal(offcpu_probe_identify(f.probe, NULL, &file), -ENOENT);
	assert_int_equal(offcpu_probe_identify(f.probe, (const void *)(uintptr_t)nap, &file), 0);
	assert_int_equal(offcpu_probe_identify(f.probe, &outermost, &again), 0); /* of the same file, elsewhere */
	assert_memory_equal(&file, &again, sizeof(file));
	assert_int_equal(offcpu_probe_identify(f.probe, (const void *)(uintptr_t)printf, &again), 0);
	assert_true(file.inode != again.inode);
	if (vdso) {
		assert_int_equal(offcpu_probe_identify(f.probe, vdso, &again), 0);
		assert_true(!again.changed_s && !again.page);
	}
	finish(&f);
}

/* The size of the mapping that starts there. */
static size_t size_at(uint64_t address)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uint64_t start, end;
	size_t size = 0;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 && start == address)
			size = (size_t)(end - start);
	if (f)
		fclose(f);
	return size;
}

/* Where a 32-bit process has its own, the vDSO is not taken for ours. Nothing may be asked of it once it was moved. */
static void test_low_vdso(void **state)
{
	void *const low = (void *)(uintptr_t)0x40000000, *vdso = (void *)getauxval(AT_SYSINFO_EHDR);
	const size_t size = size_at((uintptr_t)vdso);
	struct offcpu_file file;
	struct fixture f;
	int status;
	pid_t pid;

	start(&f, MIN_NS, 0);
	if (!vdso || (uintptr_t)vdso >> 32 == 0) {
		finish(&f);
		skip();
	}
	pid = fork();
	if (pid == 0) {
		if (mremap(vdso, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, low) != low)
			_exit(1);
		_exit(offcpu_probe_identify(f.probe, low, &file) == -ENOENT ? 0 : 2);
	}
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	finish(&f);
}

static void *maps_all_the_time(void *arg)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const volatile bool *ends = arg;

	while (!*ends)
		munmap(mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), page);
	return NULL;
}

/* Whatever other threads of ours do to the map, which BPF does not wait for. */
static void test_identifies_while_maps_change(void **state)
{
	volatile bool ends = false;
	struct offcpu_file file;
	struct fixture f;
	pthread_t thread;

	start(&f, MIN_NS, 0);
	assert_int_equal(pthread_create(&thread, NULL, maps_all_the_time, (void *)&ends), 0);
	for (int i = 0; i < 3000; i++)
		assert_int_equal(offcpu_probe_identify(f.probe, (const void *)(uintptr_t)nap, &file), 0);
	ends = true;
	pthread_join(thread, NULL);
	finish(&f);
}

/* A file whose contents have changed is another one, although it is where it was. */
static void test_changed_file(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char path[] = "/tmp/test_found_code.XXXXXX";
	struct offcpu_file before, after;
	struct fixture f;
	void *mapped;
	int fd;

	start(&f, MIN_NS, 0);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(fd, (off_t)page), 0);
	mapped = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(mapped != MAP_FAILED);
	assert_int_equal(offcpu_probe_identify(f.probe, mapped, &before), 0);
	after = before;
	for (int i = 0; i < MANY_WRITES && memcmp(&before, &after, sizeof(before)) == 0; i++) { /* the clock may be coarse */
		assert_int_equal(pwrite(fd, &i, sizeof(i), 0), sizeof(i));
		assert_int_equal(offcpu_probe_identify(f.probe, mapped, &after), 0);
	}
	assert_true(before.inode == after.inode);
	assert_true(before.changed_s != after.changed_s || before.changed_ns != after.changed_ns);
	munmap(mapped, page);
	close(fd);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds),
		cmocka_unit_test(test_finds_when_back),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_too_much_code),
		cmocka_unit_test(test_knows_no_file),
		cmocka_unit_test(test_copies_end), cmocka_unit_test(test_large_copies_end),
		cmocka_unit_test(test_forgotten_file),
		cmocka_unit_test(test_forgotten_set),
		cmocka_unit_test(test_table_of_others),
		cmocka_unit_test(test_never_finds),
		cmocka_unit_test(test_identifies),
		cmocka_unit_test(test_low_vdso),
		cmocka_unit_test(test_identifies_while_maps_change),
		cmocka_unit_test(test_changed_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
