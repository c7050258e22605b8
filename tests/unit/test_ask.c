/* SPDX-License-Identifier: MIT */
/* The process that is asked is this one. */
#include "child.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "target/ask.h"
#include "target/target.h"

enum { PAGE = 65536, MAX_ROUNDS = 8, MAX_RANGES = 8 };

/* What it wants in each round; and what it got for that. */
struct script {
	struct ask_range rounds[MAX_ROUNDS][MAX_RANGES];
	size_t lens[MAX_ROUNDS];
	size_t nrounds; /* then it wants nothing more */
	bool insatiable; /* wants the first round's again and again */
	bool fails;      /* says that memory is exhausted */
	unsigned asked;
	uint64_t got[MAX_ROUNDS][MAX_RANGES];
	uint8_t first[MAX_ROUNDS][MAX_RANGES]; /* bytes */
};

static void look_at_answers(struct script *s, size_t round, const struct ask *answers)
{
	assert_int_equal(answers->len, s->lens[round]);
	for (size_t i = 0; i < answers->len; i++) {
		const struct ask_range *answer = &answers->data[i];

		assert_int_equal(answer->address, s->rounds[round][i].address);
		assert_int_equal(answer->len, s->rounds[round][i].len);
		assert_true(answer->got <= answer->len);
		s->got[round][i] = answer->got;
		s->first[round][i] = answer->got ? answer->data[0] : 0;
	}
}

static bool ask_script(void *state, const struct snapshot *snap, const struct snap_thread *thread,
		       const struct ask *answers, struct ask *wants)
{
	struct script *s = state;
	size_t round = s->insatiable ? 0 : s->asked;

	assert_null(thread);
	assert_int_equal(wants->len, 0);
	if (!s->asked)
		assert_int_equal(answers->len, 0);
	else
		look_at_answers(s, s->insatiable ? 0 : s->asked - 1, answers);
	s->asked++;
	if (s->fails)
		return false;
	for (size_t i = 0; round < s->nrounds && i < s->lens[round]; i++) {
		const struct ask_range *range = &s->rounds[round][i];

		assert_true(ask_want(wants, range->address, range->len, range->keep));
	}
	return true;
}

static void want(struct script *s, size_t round, const void *address, uint64_t len, enum ask_keep keep)
{
	s->rounds[round][s->lens[round]++] =
		(struct ask_range){.address = (uintptr_t)address, .len = len, .keep = keep};
	if (s->nrounds <= round)
		s->nrounds = round + 1;
}

struct fixture {
	struct target *target;
	struct snapshot *snap;
	struct script script;
	uint8_t *memory; /* PAGE bytes that can be read, and as many that cannot */
};

static int start(void **state)
{
	static struct fixture f;

	f = (struct fixture){.snap = snapshot_create(getpid(), arch_host())};
	f.memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(f.memory != MAP_FAILED);
	for (unsigned i = 0; i < PAGE; i++)
		f.memory[i] = (uint8_t)(i / 7);
	assert_int_equal(mprotect(f.memory + PAGE, PAGE, PROT_NONE), 0);
	assert_int_equal(target_open(getpid(), NULL, &f.target), 0);
	*state = &f;
	return 0;
}

static int finish(void **state)
{
	struct fixture *f = *state;

	target_close(f->target);
	snapshot_destroy(f->snap);
	munmap(f->memory, 2 * PAGE);
	return 0;
}

static int ask(struct fixture *f, unsigned max_rounds)
{
	const struct asker asker = {.max_rounds = max_rounds, .ask = ask_script};

	return ask_process(f->target, f->snap, &asker, &f->script, NULL);
}

static void test_rounds_are_bounded(void **state)
{
	struct fixture *f = *state;

	f->script.insatiable = true;
	want(&f->script, 0, f->memory, 16, ASK_BYTES);
	assert_int_equal(ask(f, 5), 0);
	assert_int_equal(f->script.asked, 6); /* the last time to hear the last answer */
	assert_int_equal(f->snap->copies.len, 5);
	assert_int_equal(f->snap->asked_bytes, 5 * 16);
	f->script.asked = 0;
	assert_int_equal(ask(f, 0), 0);
	assert_int_equal(f->script.asked, 1);
	assert_int_equal(f->snap->copies.len, 5);
}

/* Pointers lead to pointers: what one round brought is known in the next, and all of a round is read at once. */
static void test_several_ranges(void **state)
{
	struct fixture *f = *state;
	struct script *s = &f->script;

	want(s, 0, f->memory + 7, 1, ASK_PASSING);
	want(s, 0, f->memory + 14, PAGE - 14, ASK_BYTES);
	want(s, 0, f->memory + 21, 100, ASK_PASSING);
	want(s, 1, f->memory + 28, 8, ASK_BYTES);
	assert_int_equal(ask(f, 100), 0);
	assert_int_equal(s->asked, 3); /* the last time it wanted nothing */
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(s->got[0][i], s->rounds[0][i].len);
		assert_int_equal(s->first[0][i], i + 1);
	}
	assert_int_equal(s->first[1][0], 4);
	assert_int_equal(f->snap->asked_bytes, 1 + PAGE - 14 + 100 + 8);
	assert_int_equal(f->snap->copies.len, 2);
	assert_int_equal(f->snap->copies.data[0].tid, 0);
	assert_int_equal(f->snap->copies.data[0].copy.start, (uintptr_t)f->memory + 14);
	assert_int_equal(f->snap->copies.data[0].copy.len, PAGE - 14);
	assert_memory_equal(f->snap->copies.data[0].copy.data, f->memory + 14, PAGE - 14);
}

static void test_unreadable(void **state)
{
	struct fixture *f = *state;
	struct script *s = &f->script;

	want(s, 0, f->memory + PAGE, 8, ASK_BYTES);           /* nothing of it */
	want(s, 0, f->memory + PAGE - 8, 16, ASK_BYTES);      /* half of it */
	want(s, 0, f->memory + 7, 8, ASK_BYTES);              /* all, whatever is before it */
	want(s, 0, NULL, 8, ASK_BYTES);
	want(s, 0, (void *)UINTPTR_MAX, 8, ASK_BYTES);
	want(s, 0, f->memory, 0, ASK_BYTES);
	want(s, 0, f->memory + 14, 8, ASK_BYTES);
	assert_int_equal(ask(f, 2), 0);
	assert_int_equal(s->got[0][0], 0);
	assert_int_equal(s->got[0][1], 8);
	assert_int_equal(s->got[0][2], 8);
	assert_int_equal(s->got[0][3], 0);
	assert_int_equal(s->got[0][4], 0);
	assert_int_equal(s->got[0][5], 0);
	assert_int_equal(s->got[0][6], 8);
	assert_int_equal(f->snap->copies.len, 3);
	assert_int_equal(f->snap->copies.data[0].copy.len, 8); /* as much as there is */
	assert_int_equal(f->snap->copies.data[0].copy.region_end, (uintptr_t)f->memory + PAGE);
	assert_memory_equal(f->snap->copies.data[0].copy.data, f->memory + PAGE - 8, 8);
}

/* Images are of use only whole. */
static void test_keep(void **state)
{
	static uint8_t bytes[8] = "1234567";
	struct fixture *f = *state;
	struct ask answers = {0};
	static const enum ask_keep keeps[] = {ASK_PASSING, ASK_BYTES, ASK_IMAGE, ASK_JIT_IMAGE};

	for (uint64_t got = 0; got <= 8; got += 4)
		for (size_t i = 0; i < 4; i++) {
			struct ask_range range = {
				.address = 0x1000 * (i + 1), .len = 8, .keep = keeps[i], .got = got, .data = bytes};

			assert_true(vec_push(&answers, range));
		}
	assert_true(ask_keep(f->snap, 42, &answers));
	assert_int_equal(f->snap->copies.len, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct snap_copy *copy = &f->snap->copies.data[i];

		assert_int_equal(copy->tid, 42);
		assert_int_equal(copy->copy.start, 0x2000);
		assert_int_equal(copy->copy.len, 4 + 4 * i);
		assert_int_equal(copy->copy.region_end, 0x2000 + 4 + 4 * i);
		assert_ptr_equal(copy->copy.data, bytes);
	}
	assert_int_equal(f->snap->images.len, 1);
	assert_int_equal(f->snap->images.data[0].start, 0x3000);
	assert_int_equal(f->snap->images.data[0].len, 8);
	assert_int_equal(f->snap->jit_images.len, 1);
	assert_int_equal(f->snap->jit_images.data[0].start, 0x4000);
	ask_deinit(&answers);
}

/* However much a process has to tell, and however many ask. */
static void test_bytes_are_limited(void **state)
{
	const uint64_t limit = UINT64_C(512) << 20;
	struct fixture *f = *state;
	struct script *s = &f->script;

	f->snap->asked_bytes = limit - 24; /* taken by others */
	want(s, 0, f->memory, 32, ASK_BYTES);
	want(s, 0, f->memory + 7, 16, ASK_BYTES);
	want(s, 0, f->memory + 14, 16, ASK_BYTES);
	want(s, 0, f->memory + 21, 8, ASK_BYTES);
	want(s, 0, f->memory + 28, 1, ASK_BYTES);
	want(s, 0, f->memory, UINT64_MAX, ASK_BYTES);
	assert_int_equal(ask(f, 2), 0);
	assert_int_equal(s->got[0][0], 0);
	assert_int_equal(s->got[0][1], 16);
	assert_int_equal(s->got[0][2], 0);
	assert_int_equal(s->got[0][3], 8);
	assert_int_equal(s->got[0][4], 0);
	assert_int_equal(s->got[0][5], 0);
	assert_int_equal(f->snap->asked_bytes, limit);
	assert_int_equal(f->snap->copies.len, 2);
}

/* What several want is read in one go, and each gets its own. */
static void test_read_for_several(void **state)
{
	struct fixture *f = *state;
	struct ask first = {0}, none = {0}, second = {0}, *asks[] = {&first, &none, &second};

	assert_true(ask_want(&first, (uintptr_t)f->memory + 7, 4, ASK_PASSING));
	assert_true(ask_want(&second, (uintptr_t)f->memory + 14, 4, ASK_PASSING));
	assert_true(ask_want(&second, (uintptr_t)f->memory + 21, 4, ASK_PASSING));
	assert_true(ask_read(&f->target->memory, f->snap, asks, 3));
	assert_int_equal(first.data[0].data[0], 1);
	assert_int_equal(second.data[0].data[0], 2);
	assert_int_equal(second.data[1].data[0], 3);
	assert_int_equal(f->snap->asked_bytes, 12);
	assert_true(ask_read(&f->target->memory, f->snap, asks, 0));
	for (size_t i = 0; i < 3; i++)
		ask_deinit(asks[i]);
}

static void test_asker_that_fails(void **state)
{
	struct fixture *f = *state;

	want(&f->script, 0, f->memory, 8, ASK_BYTES);
	f->script.fails = true;
	assert_int_equal(ask(f, 5), -ENOMEM);
	assert_int_equal(f->script.asked, 1);
	assert_int_equal(f->snap->copies.len, 0);
}

static void test_ended(void **state)
{
	struct fixture *f = *state;
	pid_t pid = child_start(child_sleeps);

	target_close(f->target);
	assert_int_equal(target_open(pid, NULL, &f->target), 0);
	want(&f->script, 0, f->memory, 8, ASK_BYTES);
	child_end(pid);
	assert_int_equal(ask(f, 5), 0);
	assert_int_equal(f->script.asked, 2);
	assert_int_equal(f->script.got[0][0], 0);
	assert_int_equal(f->snap->copies.len, 0);
}

static void test_vdso(void **state)
{
	struct fixture *f = *state;
	const struct map_entry *vdso = NULL;

	assert_int_equal(process_maps(&f->target->process, f->snap->arena, NULL, &f->snap->maps), 0);
	for (size_t i = 0; i < f->snap->maps.len; i++)
		if (strcmp(f->snap->maps.data[i].path, "[vdso]") == 0)
			vdso = &f->snap->maps.data[i];
	assert_int_equal(ask_process(f->target, f->snap, &ask_vdso, NULL, NULL), 0);
	if (!vdso) {
		print_message("skipped: this kernel has no vDSO\n");
		skip();
	}
	assert_int_equal(f->snap->images.len, 1);
	assert_int_equal(f->snap->images.data[0].start, vdso->start);
	assert_int_equal(f->snap->images.data[0].len, vdso->end - vdso->start);
	assert_memory_equal(f->snap->images.data[0].data, "\177ELF", 4);
}

#define ASK_TEST(name) cmocka_unit_test_setup_teardown(name, start, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ASK_TEST(test_rounds_are_bounded), ASK_TEST(test_several_ranges),   ASK_TEST(test_unreadable),
		ASK_TEST(test_keep),               ASK_TEST(test_bytes_are_limited), ASK_TEST(test_read_for_several),
		ASK_TEST(test_asker_that_fails),   ASK_TEST(test_ended),            ASK_TEST(test_vdso),
	};

	return cmocka_run_group_tests_name("ask", tests, NULL, NULL);
}
