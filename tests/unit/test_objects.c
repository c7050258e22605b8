/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"
#include "fake_probe.h"
#include "far_disk.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "offcpu/feed/objects.h"
#include "target/target.h"

struct fixture {
	struct offcpu_probe probe;
	pthread_mutex_t lock; /* held throughout */
	struct objects *objects;
	struct target *target;
	unsigned asked;  /* for room */
	uint32_t victim; /* to be given back then; OFFCPU_NO_OBJECT: none is left */
};

static bool make_room(void *arg)
{
	struct fixture *f = arg;

	f->asked++;
	if (f->victim == OFFCPU_NO_OBJECT)
		return false;
	objects_give(f->objects, f->victim);
	f->victim = OFFCPU_NO_OBJECT;
	return true;
}

static void start(struct fixture *f, uint32_t files, uint32_t rows)
{
	const struct objects_limits limits = {.files = files, .rows = rows};

	*f = (struct fixture){.victim = OFFCPU_NO_OBJECT};
	fake_probe_init(&f->probe);
	pthread_mutex_init(&f->lock, NULL);
	pthread_mutex_lock(&f->lock);
	f->objects = objects_create(&f->probe, &f->lock, &limits, make_room, f);
	assert_non_null(f->objects);
	assert_int_equal(target_open_whole(getpid(), NULL, NULL, &f->target), 0);
}

static void close_target(struct fixture *f)
{
	target_close(f->target);
	f->target = NULL;
}

static void finish(struct fixture *f)
{
	objects_destroy(f->objects);
	close_target(f);
	fake_probe_deinit(&f->probe);
}

/* The mapping of code whose path ends so, of this process, opened now. */
static const struct map_entry *find(struct fixture *f, const char *end)
{
	close_target(f);
	assert_int_equal(target_open_whole(getpid(), NULL, NULL, &f->target), 0);
	for (size_t i = 0; i < f->target->snap->maps.len; i++) {
		const struct map_entry *e = &f->target->snap->maps.data[i];
		size_t len = strlen(e->path);

		if (e->perms & MAP_PERM_EXEC && len >= strlen(end) && strcmp(e->path + len - strlen(end), end) == 0)
			return e;
	}
	fail_msg("%s is not mapped", end);
	return NULL;
}

static uint32_t take_entry(struct fixture *f, const struct map_entry *entry, enum objects_fit *fit)
{
	uint64_t vaddr;
	struct module *module = modules_find(f->target->modules, entry->start, &vaddr);

	assert_non_null(module);
	return objects_take(f->objects, f->target->modules, entry, module, vaddr, fit);
}

static uint32_t take(struct fixture *f, const char *end)
{
	enum objects_fit fit;
	uint32_t number = take_entry(f, find(f, end), &fit);

	assert_int_not_equal(number, OFFCPU_NO_OBJECT);
	assert_int_equal(fit, OBJECTS_FIT);
	assert_int_equal(objects_flush(f->objects), 0);
	return number;
}

static void give(struct fixture *f, uint32_t number)
{
	objects_give(f->objects, number);
	assert_int_equal(objects_flush(f->objects), 0);
}

static void test_once(void **state)
{
	struct fixture f;
	uint32_t libc, self;

	start(&f, 8, 1 << 20);
	libc = take(&f, "/libc.so.6");
	self = take(&f, "/test_objects");
	assert_int_not_equal(libc, self);
	assert_int_equal(f.probe.objects, 2);
	assert_int_equal(take(&f, "/libc.so.6"), libc);
	assert_int_equal(f.probe.objects, 2);
	assert_true(objects_table(f.objects, libc).nrows > 1000);
	assert_int_equal(objects_table(f.objects, libc).nrows, f.probe.rows[libc]);
	assert_int_equal(f.asked, 0);
	finish(&f);
}

/* A file is known again without being opened, as long as somebody has it, and where code was mapped from there before.
 */
static void test_known(void **state)
{
	const struct map_entry *entry;
	struct map_entry elsewhere;
	enum objects_fit fit;
	uint64_t vaddr, found, identity;
	struct fixture f;
	uint32_t libc, number;

	start(&f, 8, 1 << 20);
	entry = find(&f, "/libc.so.6");
	identity = image_identity(modules_find(f.target->modules, entry->start, &vaddr)->image);
	assert_false(objects_take_known(f.objects, identity, entry, &number, &found, &fit));
	libc = take_entry(&f, entry, &fit);
	objects_flush(f.objects);
	assert_true(objects_take_known(f.objects, identity, entry, &number, &found, &fit));
	assert_int_equal(number, libc);
	assert_int_equal(found, vaddr);
	assert_int_equal(fit, OBJECTS_FIT);
	elsewhere = *entry;
	elsewhere.offset += 4096;
	assert_false(objects_take_known(f.objects, identity, &elsewhere, &number, &found, &fit));
	give(&f, libc);
	assert_true(f.probe.rows[libc] > 1000);
	objects_keep(f.objects, libc);
	give(&f, libc);
	assert_false(objects_take_known(f.objects, identity, entry, &number, &found, &fit)); /* it has no table */
	finish(&f);
}

/* Nothing stays of a file whose processes are gone: not its table, not its number. */
static void test_given_back(void **state)
{
	struct fixture f;
	uint32_t libc;

	start(&f, 1, 1 << 20);
	libc = take(&f, "/libc.so.6");
	assert_int_equal(take(&f, "/libc.so.6"), libc);
	objects_take_again(f.objects, libc);
	give(&f, libc);
	give(&f, libc);
	assert_true(f.probe.rows[libc] > 1000);
	give(&f, libc);
	assert_int_equal(f.probe.rows[libc], 1);
	assert_int_equal(take(&f, "/test_objects"), libc);
	assert_int_equal(f.asked, 0);
	finish(&f);
}

/* Not even when BPF has not been told yet. */
static void test_given_back_before(void **state)
{
	struct fixture f;
	uint32_t libc;

	start(&f, 1, 1 << 20);
	libc = take(&f, "/libc.so.6");
	objects_give(f.objects, libc);
	assert_int_equal(take(&f, "/test_objects"), libc);
	assert_int_equal(f.asked, 0);
	finish(&f);
}

/* But the file of an address that is to be named does. It gets its table again when it turns up again. */
static void test_kept(void **state)
{
	struct fixture f;
	uint32_t libc, rows;
	struct module *module;

	start(&f, 2, 1 << 20);
	libc = take(&f, "/libc.so.6");
	rows = f.probe.rows[libc];
	assert_null(objects_module(f.objects, libc));
	objects_keep(f.objects, libc);
	give(&f, libc);
	assert_int_equal(f.probe.rows[libc], 1);
	module = objects_module(f.objects, libc);
	assert_non_null(module);
	assert_non_null(image_section(module->image, ".text").data);
	assert_int_not_equal(take(&f, "/test_objects"), libc);
	assert_int_equal(take(&f, "/libc.so.6"), libc);
	assert_int_equal(f.probe.rows[libc], rows);
	assert_int_equal(objects_table(f.objects, libc).nrows, rows);
	assert_ptr_equal(objects_module(f.objects, libc), module);
	assert_null(objects_module(f.objects, 1000));
	finish(&f);
}

static void test_too_many_files(void **state)
{
	enum objects_fit fit;
	struct fixture f;
	uint32_t libc;

	start(&f, 1, 1 << 20);
	libc = take(&f, "/libc.so.6");
	assert_int_equal(take_entry(&f, find(&f, "/test_objects"), &fit), OFFCPU_NO_OBJECT);
	assert_int_equal(fit, OBJECTS_NO_ROOM);
	assert_int_equal(f.asked, 1);
	f.victim = libc;
	assert_int_equal(take(&f, "/test_objects"), libc);
	finish(&f);
}

static void test_too_many_rows(void **state)
{
	enum objects_fit fit;
	struct fixture f;
	uint32_t libc, self, rows;

	start(&f, 8, 1 << 20);
	libc = take(&f, "/libc.so.6");
	rows = f.probe.rows[libc];
	finish(&f);

	start(&f, 8, rows);
	libc = take(&f, "/libc.so.6");
	self = take_entry(&f, find(&f, "/test_objects"), &fit);
	assert_int_not_equal(self, OFFCPU_NO_OBJECT);
	assert_int_equal(fit, OBJECTS_NO_TABLE);
	assert_int_equal(objects_table(f.objects, self).nrows, 0);
	assert_int_equal(f.probe.objects, 1);
	objects_keep(f.objects, self); /* it has names all the same */
	assert_non_null(objects_module(f.objects, self));
	give(&f, self);

	f.victim = libc;
	assert_int_equal(take_entry(&f, find(&f, "/test_objects"), &fit), self);
	assert_int_equal(fit, OBJECTS_FIT);
	assert_true(objects_table(f.objects, self).nrows > 0);
	finish(&f);
}

static void test_refused_by_the_kernel(void **state)
{
	enum objects_fit fit;
	struct fixture f;
	uint32_t libc;

	start(&f, 8, 1 << 20);
	f.probe.full = true;
	libc = take_entry(&f, find(&f, "/libc.so.6"), &fit);
	assert_int_not_equal(libc, OFFCPU_NO_OBJECT);
	assert_int_equal(fit, OBJECTS_NO_TABLE);
	assert_int_equal(objects_table(f.objects, libc).nrows, 0);
	finish(&f);
}

static void test_refused_at_last(void **state)
{
	enum objects_fit fit;
	struct fixture f;
	uint32_t libc;

	start(&f, 8, 1 << 20);
	f.probe.refuses = true;
	libc = take_entry(&f, find(&f, "/libc.so.6"), &fit);
	assert_int_equal(fit, OBJECTS_FIT);
	assert_int_equal(objects_flush(f.objects), 1);
	assert_int_equal(objects_table(f.objects, libc).nrows, 0);
	assert_int_equal(objects_flush(f.objects), 0);
	finish(&f);
}

/* Also when it is a go in between that is refused, to make room. */
static void test_refused_for_room(void **state)
{
	enum objects_fit fit;
	struct fixture f;
	uint32_t libc;

	start(&f, 2, 1 << 20);
	f.probe.refuses = true;
	libc = take_entry(&f, find(&f, "/libc.so.6"), &fit);
	f.victim = take_entry(&f, find(&f, "/test_objects"), &fit);
	take_entry(&f, find(&f, "[vdso]"), &fit);
	assert_int_equal(objects_table(f.objects, libc).nrows, 0);
	assert_int_equal(objects_flush(f.objects), 3);
	finish(&f);
}

/* The kernel takes its time for each go. */
static void test_in_one_go(void **state)
{
	enum objects_fit fit;
	struct fixture f;
	uint32_t libc, self;

	start(&f, 3, 1 << 20);
	libc = take(&f, "/libc.so.6");
	f.probe.batches = 0;
	objects_give(f.objects, libc);
	self = take_entry(&f, find(&f, "/test_objects"), &fit);
	assert_int_not_equal(self, libc); /* BPF may still walk with its table */
	assert_int_not_equal(take_entry(&f, find(&f, "[vdso]"), &fit), libc);
	assert_int_equal(f.probe.batches, 0);
	assert_true(f.probe.rows[libc] > 1000);
	assert_int_equal(objects_flush(f.objects), 0);
	assert_int_equal(f.probe.batches, 1);
	assert_int_equal(f.probe.rows[libc], 1);
	assert_true(f.probe.rows[self] > 1);
	assert_int_equal(take(&f, "/libc.so.6"), libc); /* the number is free again */
	assert_int_equal(f.asked, 0);
	finish(&f);
}

/* The vDSO is in no file: its bytes lie in what was read of the process. */
static void test_in_memory(void **state)
{
	struct module *module;
	struct fixture f;
	struct span text;
	uint32_t vdso;

	start(&f, 8, 1 << 20);
	vdso = take(&f, "[vdso]");
	objects_keep(f.objects, vdso);
	assert_int_equal(take(&f, "[vdso]"), vdso);
	assert_int_equal(f.probe.objects, 1);
	close_target(&f);
	module = objects_module(f.objects, vdso);
	assert_non_null(module);
	text = image_section(module->image, ".text");
	assert_non_null(text.data);
	assert_true(text.len > 0);
	finish(&f);
}

/* How often a file is mapped from its start on, as one that is read is, and as the loader does. */
static unsigned count_mapped(const char *path)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];
	unsigned n = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, path) && strstr(line, " r--p 00000000 ");
	fclose(maps);
	return n;
}

/* Thousands of files are taken, and few have addresses that are to be named: only those are read. */
static void test_read_when_needed(void **state)
{
	struct fixture f;
	unsigned loaded = count_mapped("/libc.so.6");
	uint32_t libc;

	start(&f, 8, 1 << 20);
	libc = take(&f, "/libc.so.6");
	objects_keep(f.objects, libc);
	assert_int_equal(count_mapped("/libc.so.6"), loaded + 1);
	close_target(&f);
	assert_int_equal(count_mapped("/libc.so.6"), loaded);
	assert_non_null(objects_module(f.objects, libc));
	assert_int_equal(count_mapped("/libc.so.6"), loaded + 1);
	finish(&f);
}

struct asking {
	struct objects *objects;
	uint32_t number;
	struct module *module;
};

static void *ask_for_module(void *arg)
{
	struct asking *asking = arg;

	asking->module = objects_module(asking->objects, asking->number);
	return NULL;
}

/* Who keeps an object, or asks for another, does not wait until a file is read; who asks for the same one does. */
static void test_far_away(void **state)
{
	struct asking first, second;
	pthread_t threads[2];
	struct fixture f;
	uint32_t libc, self;

	start(&f, 8, 1 << 20);
	libc = take(&f, "/libc.so.6");
	self = take(&f, "/test_objects");
	objects_keep(f.objects, libc);
	first = second = (struct asking){.objects = f.objects, .number = libc};
	far_disk_init();
	assert_int_equal(pthread_create(&threads[0], NULL, ask_for_module, &first), 0);
	sem_wait(&far_disk.asked);
	assert_int_equal(pthread_create(&threads[1], NULL, ask_for_module, &second), 0);
	alarm(60); /* ends the test should this wait */
	objects_keep(f.objects, self);
	assert_non_null(objects_module(f.objects, self));
	give(&f, libc);
	alarm(0);
	sem_post(&far_disk.answered);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	assert_non_null(first.module);
	assert_ptr_equal(second.module, first.module);
	finish(&f);
}

static void test_no_descriptors(void **state)
{
	struct rlimit limit, none;
	enum objects_fit fit;
	struct fixture f;
	const struct map_entry *entry;
	uint32_t libc;
	int next;

	start(&f, 8, 1 << 20);
	entry = find(&f, "/libc.so.6");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	next = dup(STDIN_FILENO);
	assert_true(next >= 0);
	close(next);
	none = (struct rlimit){.rlim_cur = (rlim_t)next + 1, .rlim_max = limit.rlim_max}; /* one, for the table */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	libc = take_entry(&f, entry, &fit);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_not_equal(libc, OFFCPU_NO_OBJECT);
	assert_int_equal(fit, OBJECTS_FIT);
	assert_true(objects_table(f.objects, libc).nrows > 1000);
	objects_keep(f.objects, libc);
	close_target(&f);
	assert_non_null(image_section(objects_module(f.objects, libc)->image, ".text").data);
	finish(&f);
}

/* A copy of this program. */
static uint32_t take_copy(struct fixture *f)
{
	const uint64_t offset = find(f, "/test_objects")->offset;
	int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd = memfd_create("copy", MFD_CLOEXEC);
	struct image *image = NULL;
	struct module *module = NULL;
	uint64_t vaddr = offset;
	enum objects_fit fit;
	uint32_t number;

	assert_true(own >= 0 && fd >= 0);
	while (sendfile(fd, own, NULL, 1 << 20) > 0)
		;
	close(own);
	assert_int_equal(image_open_fd(dup(fd), NULL, &image), 0);
	assert_int_equal(module_create(image, "copy", NULL, &module), 0);
	image_offset_to_vaddr(image, offset, &vaddr);
	number = objects_take_open(f->objects, &(struct open_file){.fd = fd, .offset = offset}, module, vaddr, &fit);
	module_destroy(module);
	assert_int_equal(objects_flush(f->objects), 0);
	return number;
}

/* What the kernel has as one file, as below two overlays, is known by the other when one is dropped, whichever it is. */
static void test_twins(void **state)
{
	struct fixture f;
	uint32_t one, other;

	for (int first = 0; first < 2; first++) {
		start(&f, 8, 1 << 20);
		f.probe.finds = f.probe.one_file = true;
		one = take_copy(&f);
		other = take_copy(&f);
		assert_true(one != other && f.probe.nfiles == 1);
		assert_int_equal(f.probe.codes[0].object, other);
		give(&f, first ? one : other);
		assert_int_equal(f.probe.nfiles, 1);
		assert_int_equal(f.probe.codes[0].object, first ? other : one);
		give(&f, first ? other : one);
		assert_int_equal(f.probe.nfiles, 0);
		finish(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_given_back),
		cmocka_unit_test(test_given_back_before),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_too_many_files),
		cmocka_unit_test(test_too_many_rows),
		cmocka_unit_test(test_refused_by_the_kernel),
		cmocka_unit_test(test_refused_at_last),
		cmocka_unit_test(test_refused_for_room),
		cmocka_unit_test(test_in_one_go),
		cmocka_unit_test(test_in_memory),
		cmocka_unit_test(test_read_when_needed),
		cmocka_unit_test(test_far_away),
		cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_twins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
