/* SPDX-License-Identifier: MIT */
#include "child.h"
#include "fake_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "offcpu/feed/listing.h"
#include "target/target.h"

enum { PAGE = 65536, TOO_MANY = LISTING_MAX + 100 };

struct fixture {
	struct offcpu_probe probe;
	pthread_mutex_t lock;
	struct objects *objects;
	struct jit_processes *jit;
};

static bool no_room(void *arg)
{
	return false;
}

static void start(struct fixture *f, uint32_t files)
{
	const struct objects_limits limits = {.files = files, .rows = 1 << 20};

	fake_probe_init(&f->probe);
	pthread_mutex_init(&f->lock, NULL);
	f->objects = objects_create(&f->probe, &f->lock, &limits, no_room, NULL);
	f->jit = jit_processes_create();
	assert_non_null(f->objects);
	assert_non_null(f->jit);
}

static void finish(struct fixture *f)
{
	objects_destroy(f->objects);
	jit_processes_destroy(f->jit);
	fake_probe_deinit(&f->probe);
}

static unsigned count_executable_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];
	unsigned n = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		n += strchr(line, ' ')[3] == 'x';
	fclose(maps);
	return n;
}

static int read_target(struct fixture *f, struct target *target, bool known_only, struct listing *listing)
{
	const struct listing_options options = {
		.objects = f->objects,
		.jit = f->jit,
		.lock = &f->lock,
		.known_only = known_only,
	};

	return listing_read(target, &options, NULL, listing);
}

static int read_process(struct fixture *f, pid_t pid, bool known_only, struct listing *listing)
{
	struct target *target;
	int rc;

	assert_int_equal(target_open(pid, NULL, &target), 0);
	rc = read_target(f, target, known_only, listing);
	target_close(target);
	return rc;
}

static void flush(struct fixture *f)
{
	pthread_mutex_lock(&f->lock);
	assert_int_equal(objects_flush(f->objects), 0);
	pthread_mutex_unlock(&f->lock);
}

static void read_self(struct fixture *f, struct listing *listing)
{
	assert_int_equal(read_process(f, getpid(), false, listing), 0);
	flush(f);
}

static void drop(struct fixture *f, struct listing *listing)
{
	mappings_deinit(&listing->mappings, f->objects);
	flush(f);
}

static const struct mapping *find(const struct listing *listing, const void *code)
{
	for (size_t i = 0; i < listing->mappings.len; i++) {
		const struct mapping *m = &listing->mappings.data[i];

		if (m->start <= (uintptr_t)code && (uintptr_t)code < m->end)
			return m;
	}
	return NULL;
}

/* The second time no file is opened, and the result is the same. */
static void test_twice(void **state)
{
	struct listing first, second;
	struct fixture f;

	start(&f, 100);
	read_self(&f, &first);
	assert_int_equal(first.mappings.len, count_executable_mappings());
	assert_int_equal(first.mappings_over, 0);
	assert_int_equal(first.files_over, 0);
	assert_int_not_equal(find(&first, (void *)test_twice)->object, OFFCPU_NO_OBJECT);
	assert_int_not_equal(find(&first, (void *)strtol)->object, OFFCPU_NO_OBJECT);
	assert_int_not_equal(find(&first, (void *)test_twice)->object, find(&first, (void *)strtol)->object);
	for (size_t i = 0; i < first.mappings.len; i++)
		assert_int_equal(first.mappings.data[i].maker, 0); /* also what the kernel maps */
	read_self(&f, &second);
	assert_int_equal(second.mappings.len, first.mappings.len);
	assert_memory_equal(second.mappings.data, first.mappings.data, first.mappings.len * sizeof(struct mapping));
	drop(&f, &first);
	assert_true(f.probe.rows[second.mappings.data[0].object] > 1);
	drop(&f, &second);
	for (int i = 0; i < 100; i++)
		assert_true(f.probe.rows[i] <= 1); /* all is given back */
	finish(&f);
}

/* A file is known when BPF has its table, and then all is as if it had been new. */
static void test_known_only(void **state)
{
	struct listing none, first, second;
	struct fixture f;

	start(&f, 100);
	assert_int_equal(read_process(&f, getpid(), true, &none), -EAGAIN);
	assert_int_equal(none.mappings.len, 0);
	assert_int_equal(read_process(&f, getpid(), false, &first), 0);
	assert_int_equal(read_process(&f, getpid(), true, &none), -EAGAIN);
	assert_int_equal(none.mappings.len, 0);
	flush(&f);
	assert_int_equal(read_process(&f, getpid(), true, &second), 0);
	assert_int_equal(second.mappings.len, first.mappings.len);
	assert_memory_equal(second.mappings.data, first.mappings.data, first.mappings.len * sizeof(struct mapping));
	drop(&f, &first);
	drop(&f, &second);
	for (int i = 0; i < 100; i++)
		assert_true(f.probe.rows[i] <= 1); /* all is given back */
	finish(&f);
}

/* Another thread is making the table of what has no file, the vDSO: it is not known, and is not given back either. */
static void test_not_ready(void **state)
{
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct listing first, second, third;
	struct mapping *mapping;
	struct fixture f;
	uint32_t object;

	if (!vdso)
		skip();
	start(&f, 100);
	read_self(&f, &first);
	mapping = (struct mapping *)find(&first, vdso);
	assert_non_null(mapping);
	objects_give(f.objects, mapping->object);
	mapping->object = OFFCPU_NO_OBJECT;
	flush(&f);
	assert_int_equal(read_process(&f, getpid(), false, &second), 0);
	object = find(&second, vdso)->object;
	assert_true(object != OFFCPU_NO_OBJECT);
	assert_int_equal(read_process(&f, getpid(), true, &third), -EAGAIN);
	mappings_deinit(&third.mappings, f.objects);
	assert_true(objects_table(f.objects, object).nrows > 0);
	flush(&f);
	drop(&f, &first);
	drop(&f, &second);
	finish(&f);
}

static void test_too_many_files(void **state)
{
	struct listing listing;
	struct fixture f;

	start(&f, 2);
	read_self(&f, &listing);
	assert_true(listing.files_over > 0);
	assert_int_equal(listing.mappings.len, count_executable_mappings());
	assert_int_equal(f.probe.objects, 2);
	drop(&f, &listing);
	finish(&f);
}

/* Code in no file is left out first: without libraries no stack is whole. */
static void test_too_much_loose_code(void **state)
{
	size_t len = 2 * (size_t)TOO_MANY * PAGE;
	char *area = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct listing listing;
	struct fixture f;

	start(&f, 100);
	assert_ptr_not_equal(area, MAP_FAILED);
	assert_true((uintptr_t)area < (uintptr_t)strtol);
	for (size_t i = 0; i < TOO_MANY; i++)
		assert_int_equal(mprotect(area + 2 * i * PAGE, PAGE, PROT_READ | PROT_EXEC), 0);
	read_self(&f, &listing);
	assert_int_equal(listing.mappings.len, LISTING_MAX);
	assert_int_equal(listing.mappings_over, count_executable_mappings() - LISTING_MAX);
	assert_int_not_equal(find(&listing, (void *)strtol)->object, OFFCPU_NO_OBJECT);
	assert_int_equal(find(&listing, area)->object, OFFCPU_NO_OBJECT);
	assert_int_equal(find(&listing, area)->maker, 1);
	drop(&f, &listing);
	munmap(area, len);
	finish(&f);
}

/* Of files: some are left out whichever they are. */
static void test_too_many_mappings(void **state)
{
	size_t len = 2 * (size_t)TOO_MANY * PAGE;
	char *area = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct listing listings[2];
	struct fixture f;

	start(&f, 100);
	assert_ptr_not_equal(area, MAP_FAILED);
	for (size_t i = 0; i < TOO_MANY; i++)
		assert_ptr_not_equal(
			mmap(area + 2 * i * PAGE, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0),
			MAP_FAILED);
	close(fd);
	for (int i = 0; i < 2; i++) { /* as a file that is new, and as one that is known */
		read_self(&f, &listings[i]);
		assert_int_equal(listings[i].mappings.len, LISTING_MAX);
		assert_int_equal(listings[i].mappings_over, count_executable_mappings() - LISTING_MAX);
		assert_int_equal(find(&listings[i], area)->object, find(&listings[i], (void *)test_twice)->object);
	}
	assert_int_equal(f.probe.objects, 1);
	drop(&f, &listings[0]);
	assert_true(f.probe.rows[0] > 1);
	drop(&f, &listings[1]);
	assert_int_equal(f.probe.rows[0], 1);
	munmap(area, len);
	finish(&f);
}

static void test_gone(void **state)
{
	pid_t pid = child_start(child_sleeps);
	struct target *target;
	struct listing listing;
	struct fixture f;

	start(&f, 100);
	assert_int_equal(target_open(pid, NULL, &target), 0);
	child_end(pid);
	assert_int_equal(read_target(&f, target, false, &listing), -ESRCH);
	assert_int_equal(listing.mappings.len, 0);
	target_close(target);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_known_only),
		cmocka_unit_test(test_not_ready),
		cmocka_unit_test(test_too_many_files),
		cmocka_unit_test(test_too_much_loose_code),
		cmocka_unit_test(test_too_many_mappings),
		cmocka_unit_test(test_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
