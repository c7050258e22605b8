/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/snapfile.h"
#include "sample.h"

/* The bytes of a saved snapshot; the caller frees. */
static char *save(const struct snapshot *snap, size_t *len)
{
	char *data = NULL;
	FILE *f = open_memstream(&data, len);

	assert_non_null(f);
	assert_int_equal(snapfile_write(snap, f, NULL), 0);
	fclose(f);
	return data;
}

static int load(const void *data, size_t len, struct err *err, struct snapshot **out)
{
	FILE *f = tmpfile();
	int ret;

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	rewind(f);
	ret = snapfile_read(f, err, out);
	fclose(f);
	return ret;
}

/* The same from memory, which is faster; an empty buffer cannot be opened. */
static int load_mem(char *data, size_t len, struct err *err, struct snapshot **out)
{
	FILE *f = fmemopen(data, len, "r");
	int ret;

	assert_non_null(f);
	ret = snapfile_read(f, err, out);
	fclose(f);
	return ret;
}

static void assert_text_equal(const char *a, const char *b)
{
	assert_int_equal(!a, !b);
	if (a)
		assert_string_equal(a, b);
}

static void assert_copy_equal(const struct mem_copy *a, const struct mem_copy *b)
{
	assert_true(a->start == b->start && a->len == b->len && a->region_end == b->region_end);
	if (a->len)
		assert_memory_equal(a->data, b->data, a->len);
}

static void assert_peer_equal(const struct wait_peer *a, const struct wait_peer *b)
{
	assert_true(a->pid == b->pid && a->state == b->state);
	assert_text_equal(a->comm, b->comm);
}

static void assert_facts_equal(const struct thread_facts *a, const struct thread_facts *b)
{
	assert_true(a->cpu == b->cpu && a->timer_ns == b->timer_ns && a->stop_signal == b->stop_signal && a->throttled == b->throttled);
	assert_peer_equal(&a->ahead, &b->ahead);
	assert_true(a->nothers == b->nothers && a->total == b->total && a->has_children == b->has_children && a->frozen == b->frozen);
	for (uint32_t i = 0; i < a->nothers; i++)
		assert_peer_equal(&a->others[i], &b->others[i]);
	assert_text_equal(a->place, b->place);
	assert_text_equal(a->filesystem, b->filesystem);
	assert_text_equal(a->device, b->device);
	assert_true(a->has_key == b->has_key && a->key == b->key && a->has_handler == b->has_handler && a->has_async_handler == b->has_async_handler);
}

static void assert_thread_equal(const struct snap_thread *a, const struct snap_thread *b)
{
	assert_int_equal(a->tid, b->tid);
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->status, b->status);
	assert_int_equal(a->capture, b->capture);
	assert_text_equal(a->why, b->why);
	assert_int_equal(a->tracer, b->tracer);
	assert_true(a->nvcsw == b->nvcsw && a->nivcsw == b->nivcsw);
	assert_true(a->off_cpu_ns == b->off_cpu_ns && a->pause_ns == b->pause_ns && a->cpu_ns == b->cpu_ns);
	assert_int_equal(a->retakes, b->retakes);
	assert_int_equal(a->syscall.state, b->syscall.state);
	assert_true(a->syscall.nr == b->syscall.nr);
	assert_memory_equal(a->syscall.args, b->syscall.args, sizeof(a->syscall.args));
	assert_memory_equal(&a->regs, &b->regs, sizeof(a->regs));
	assert_copy_equal(&a->stack, &b->stack);
	assert_facts_equal(&a->facts, &b->facts);
	assert_int_equal(a->nkernel, b->nkernel);
	assert_int_equal(!a->kernel_pcs, !b->kernel_pcs);
	assert_int_equal(!a->kernel_text, !b->kernel_text);
	for (uint32_t i = 0; i < a->nkernel; i++) {
		if (a->kernel_pcs)
			assert_true(a->kernel_pcs[i] == b->kernel_pcs[i]);
		if (a->kernel_text)
			assert_string_equal(a->kernel_text[i], b->kernel_text[i]);
	}
}

static void assert_capture_equal(const struct capture_info *a, const struct capture_info *b)
{
	assert_text_equal(a->method, b->method);
	assert_text_equal(a->stop_mode, b->stop_mode);
	assert_int_equal(a->stopped_threads, b->stopped_threads);
	assert_int_equal(a->retaken_threads, b->retaken_threads);
	assert_true(a->max_pause_ns == b->max_pause_ns && a->capture_ns == b->capture_ns);
	assert_true(a->windows == b->windows && a->cpus_taken == b->cpus_taken && a->window_ns == b->window_ns && a->instant_ns == b->instant_ns);
	assert_int_equal(a->consistent, b->consistent);
	assert_text_equal(a->inconsistent_why, b->inconsistent_why);
	assert_text_equal(a->kernel_stack_error, b->kernel_stack_error);
}

static void assert_maps_equal(const struct maps *a, const struct maps *b)
{
	assert_int_equal(a->len, b->len);
	for (size_t i = 0; i < a->len; i++) {
		const struct map_entry *x = &a->data[i], *y = &b->data[i];

		assert_true(x->start == y->start && x->end == y->end && x->offset == y->offset && x->inode == y->inode);
		assert_int_equal(x->dev_major, y->dev_major);
		assert_int_equal(x->dev_minor, y->dev_minor);
		assert_int_equal(x->perms, y->perms);
		assert_int_equal(x->deleted, y->deleted);
		assert_text_equal(x->path, y->path);
		assert_text_equal(x->build_id, y->build_id);
	}
}

static void assert_descriptor_equal(const struct descriptor *a, const struct descriptor *b)
{
	assert_true(a->fd == b->fd && a->kind == b->kind && a->inode == b->inode && a->flags == b->flags && a->events == b->events);
	assert_true(a->offset == b->offset && a->left_ns == b->left_ns && a->count == b->count && a->pid == b->pid);
	assert_text_equal(a->name, b->name);
	assert_text_equal(a->socket.protocol, b->socket.protocol);
	assert_text_equal(a->socket.state, b->socket.state);
	assert_text_equal(a->socket.local, b->socket.local);
	assert_text_equal(a->socket.remote, b->socket.remote);
	assert_true(a->socket.peer == b->socket.peer && a->socket.unread == b->socket.unread && a->socket.unsent == b->socket.unsent);
	assert_true(a->socket.listening == b->socket.listening && a->socket.accepted == b->socket.accepted);
	assert_true(a->peers_known == b->peers_known && a->npeers == b->npeers);
	for (uint32_t i = 0; i < a->npeers; i++) {
		assert_int_equal(a->peers[i].pid, b->peers[i].pid);
		assert_text_equal(a->peers[i].comm, b->peers[i].comm);
	}
}

static void assert_wait_equal(const struct snap_wait *a, const struct snap_wait *b)
{
	assert_true(a->tid == b->tid && a->kind == b->kind && a->guessed == b->guessed);
	assert_text_equal(a->path, b->path);
	assert_text_equal(a->address, b->address);
	assert_descriptor_equal(&a->on, &b->on);
	assert_true(a->set.len == b->set.len && a->set.total == b->set.total && a->set.listeners == b->set.listeners);
	assert_memory_equal(a->set.counts, b->set.counts, sizeof(a->set.counts));
	for (uint32_t i = 0; i < a->set.len; i++)
		assert_descriptor_equal(&a->set.data[i], &b->set.data[i]);
}

static void test_waits(void **state)
{
	struct snapshot *snap = sample_snapshot(), *back = NULL;
	size_t len;
	char *data = save(snap, &len);

	assert_int_equal(load(data, len, NULL, &back), 0);
	assert_int_equal(back->waits.len, 2);
	for (size_t i = 0; i < back->waits.len; i++)
		assert_wait_equal(&back->waits.data[i], &snap->waits.data[i]);
	assert_true(back->threads.data[0].still_besides && !back->threads.data[1].still_besides);
	free(data);
	snapshot_destroy(back);
	snapshot_destroy(snap);
}

/* What is not known of a descriptor, its other ends and a path; and which of two descriptors it is. */
static void test_waits_without_names(void **state)
{
	struct snapshot *snap = snapshot_create(1, arch_host()), *back = NULL;
	const struct wait_peer nameless = {.pid = 5, .comm = ""}; /* NULL would be read as that, too */
	struct descriptor set[] = {{.fd = 4, .kind = DESCRIPTOR_SOCKET, .offset = -1, .left_ns = -1}};
	const struct snap_wait waits[] = {
		{.tid = 1, .kind = WAIT_WRITE, .guessed = true, .on = {.fd = 3, .kind = DESCRIPTOR_SOCKET, .peers = &nameless, .npeers = 1}},
		{.tid = 2, .kind = WAIT_OPEN, .on = {.fd = -1, .offset = -1, .left_ns = -1}},
		{.tid = 3, .kind = WAIT_EVENTS, .on = {.fd = -1}, .set = {.data = set, .len = 1, .total = 1, .counts = {[DESCRIPTOR_SOCKET] = 1}}},
	};
	size_t len;
	char *data;

	for (size_t i = 0; i < 3; i++)
		assert_true(vec_push(&snap->waits, waits[i]));
	data = save(snap, &len);
	assert_int_equal(load(data, len, NULL, &back), 0);
	assert_int_equal(back->waits.len, 3);
	for (size_t i = 0; i < 3; i++)
		assert_wait_equal(&back->waits.data[i], &waits[i]);
	assert_null(back->waits.data[0].on.name);
	free(data);
	snapshot_destroy(back);
	snapshot_destroy(snap);
}

/* Of a later version: left out; a number of parts that the record cannot hold: an error, and no memory for them. */
static void test_odd_waits(void **state)
{
	struct snapshot *snap = sample_snapshot(), *back = NULL;
	struct err err = {0};
	size_t len, at;
	char *data = save(snap, &len), *kind = memmem(data, len, "events", 6), *comm = memmem(data, len, "reader", 6);

	assert_non_null(kind);
	assert_non_null(comm);
	kind[0] = 'E';
	assert_int_equal(load(data, len, &err, &back), 0);
	assert_int_equal(back->waits.len, 1);
	snapshot_destroy(back);
	kind[0] = 'e';
	back = NULL;
	at = (size_t)(comm - data) - 4 - 4 - 4; /* before its length and its number: how many there are */
	memset(data + at, 0x7f, 4);
	assert_int_equal(load(data, len, &err, &back), -EINVAL);
	assert_non_null(strstr(err.msg, "wait section"));
	free(data);
	snapshot_destroy(snap);
}

static void test_round_trip(void **state)
{
	struct snapshot *snap = sample_snapshot(), *back = NULL;
	struct err err = {0};
	size_t len;
	char *data;
	uint64_t facts[] = {0x955a80, UINT64_MAX};
	const struct wait_peer child = {.pid = 4711, .comm = "sleep", .state = 'S'};
	const struct snap_runtime python = {.name = "python", .version = "3.11.2", .facts = facts, .nfacts = 2}, *runtime;

	assert_non_null(snapshot_add_runtime(snap, &python));
	snap->inner_pid = 7;
	snap->monotonic_ahead_ns = -5;
	snap->boottime_ahead_ns = 77;
	vec_push(&snap->outsiders, (struct snap_outsider){.number = 5, .tid = 4712, .pid = 4711, .comm = "parent", .same_memory = true});
	vec_push(&snap->outsiders, (struct snap_outsider){.number = 6, .tid = 4716, .pid = 4715, .comm = "other", .shares_memory = true});
	snap->container = (struct container){"/docker/x", "docker", "x", "uid"};
	snap->threads.data[1].inner_tid = 8;
	snap->threads.data[1].facts = (struct thread_facts){
		.cpu = 3, .timer_ns = -5, .stop_signal = 19, .ahead = {.pid = 812, .comm = "ffmpeg"}, .others = &child, .nothers = 1, .total = 70,
		.has_children = true, .place = "/batch", .filesystem = "ext4", .has_key = true, .key = 0x57, .has_handler = true, .has_async_handler = true};
	data = save(snap, &len);
	assert_int_equal(load(data, len, &err, &back), 0);
	runtime = snapshot_find_runtime(back, "python");
	assert_non_null(runtime);
	assert_string_equal(runtime->version, "3.11.2");
	assert_null(runtime->problem);
	assert_int_equal(runtime->nfacts, 2);
	assert_true(runtime->facts[0] == 0x955a80 && runtime->facts[1] == UINT64_MAX);
	assert_null(snapshot_find_runtime(back, "java"));
	assert_ptr_equal(back->arch, snap->arch);
	assert_int_equal(back->pid, snap->pid);
	assert_text_equal(back->comm, snap->comm);
	assert_text_equal(back->exe, snap->exe);
	assert_int_equal(back->inner_pid, 7);
	assert_string_equal(back->container.cgroup, "/docker/x");
	assert_string_equal(back->container.engine, "docker");
	assert_string_equal(back->container.id, "x");
	assert_string_equal(back->container.pod, "uid");
	assert_int_equal(back->threads.data[1].inner_tid, 8);
	assert_int_equal(back->threads.data[2].inner_tid, 0);
	assert_int_equal(back->kernel_thread, snap->kernel_thread);
	assert_true(back->replayed);
	assert_true(back->taken_at_ns == snap->taken_at_ns && back->taken_at_monotonic_ns == snap->taken_at_monotonic_ns);
	assert_int_equal(back->outsiders.len, 2);
	assert_true(back->outsiders.data[0].number == 5 && back->outsiders.data[0].tid == 4712 && back->outsiders.data[0].pid == 4711);
	assert_true(back->outsiders.data[0].same_memory && !back->outsiders.data[0].shares_memory);
	assert_true(!back->outsiders.data[1].same_memory && back->outsiders.data[1].shares_memory);
	assert_string_equal(back->outsiders.data[0].comm, "parent");
	assert_true(back->monotonic_ahead_ns == snap->monotonic_ahead_ns && back->boottime_ahead_ns == snap->boottime_ahead_ns);
	assert_capture_equal(&back->capture, &snap->capture);
	assert_maps_equal(&back->maps, &snap->maps);
	assert_int_equal(back->notes.len, snap->notes.len);
	assert_string_equal(back->notes.data[0], snap->notes.data[0]);
	assert_int_equal(back->images.len, snap->images.len);
	assert_copy_equal(&back->images.data[0], &snap->images.data[0]);
	assert_int_equal(back->jit_images.len, snap->jit_images.len);
	assert_copy_equal(&back->jit_images.data[0], &snap->jit_images.data[0]);
	assert_int_equal(back->copies.len, snap->copies.len);
	for (size_t i = 0; i < snap->copies.len; i++) {
		assert_int_equal(back->copies.data[i].tid, snap->copies.data[i].tid);
		assert_copy_equal(&back->copies.data[i].copy, &snap->copies.data[i].copy);
	}
	assert_int_equal(back->asked_bytes, 0);
	assert_int_equal(back->threads.len, snap->threads.len);
	for (size_t i = 0; i < snap->threads.len; i++)
		assert_thread_equal(&back->threads.data[i], &snap->threads.data[i]);
	free(data);
	snapshot_destroy(back);
	snapshot_destroy(snap);
}

/* What is not certain is not made so by saving it; nor is a part of the threads all of them. */
static void test_doubts_are_kept(void **state)
{
	struct snapshot *snap = sample_snapshot(), *back = NULL;
	const size_t header = 16;
	size_t len, end;
	char *data;

	for (unsigned i = 0; i < 4; i++) {
		snap->has_doubtful_numbers = i & 1;
		snap->partial = i & 2;
		data = save(snap, &len);
		assert_int_equal(load(data, len, NULL, &back), 0);
		assert_int_equal(back->has_doubtful_numbers, i & 1);
		assert_int_equal(back->partial, i >> 1);
		free(data);
		snapshot_destroy(back);
	}
	snap->has_doubtful_numbers = false; /* which an older file did not tell */
	data = save(snap, &len);
	end = header + 12 + (uint8_t)data[header + 4];
	data[header + 4]--;
	memmove(data + end - 1, data + end, len - end);
	assert_int_equal(load(data, len - 1, NULL, &back), 0);
	assert_true(back->has_doubtful_numbers);
	assert_false(back->partial);
	free(data);
	snapshot_destroy(back);
	snapshot_destroy(snap);
}

/* No capture finds more of them: a file that has more is damaged. */
static void test_most_outsiders(void **state)
{
	for (size_t n = MAX_OUTSIDERS; n <= MAX_OUTSIDERS + 1; n++) {
		struct snapshot *snap = sample_snapshot(), *back = NULL;
		struct err err = {0};
		size_t len;
		char *data;

		for (size_t i = 0; i < n; i++)
			assert_true(vec_push(&snap->outsiders, (struct snap_outsider){.number = 5, .tid = 4712, .pid = 4711, .comm = "x"}));
		data = save(snap, &len);
		assert_int_equal(load(data, len, &err, &back), n > MAX_OUTSIDERS ? -EINVAL : 0);
		assert_true(n <= MAX_OUTSIDERS || strstr(err.msg, "65 outsiders"));
		free(data);
		snapshot_destroy(back);
		snapshot_destroy(snap);
	}
}

/* What was read besides stacks is there for whoever reads memory, as it was before. */
static void test_copies_are_replayed(void **state)
{
	struct snapshot *snap = sample_snapshot(), *back = NULL;
	struct snapshot_mem mem;
	size_t len;
	char *data = save(snap, &len);
	uint8_t bytes[16];

	assert_int_equal(load(data, len, NULL, &back), 0);
	for (size_t i = 0; i < back->threads.len; i++) {
		const struct snap_thread *t = &back->threads.data[i];

		snapshot_mem_init(&mem, back, t);
		assert_int_equal(mem_read_exact(&mem.mem, 0x7f1234600000, bytes, 12), t->tid == SAMPLE_PID + 1);
		memset(bytes, 0, sizeof(bytes));
		assert_true(mem_read_exact(&mem.mem, 0x7f1234700000, bytes, 16)); /* of the process as a whole */
		assert_memory_equal(bytes, snap->copies.data[1].copy.data, 16);
	}
	snapshot_destroy(back);
	snapshot_destroy(snap);
	free(data);
}

static void test_empty_snapshot(void **state)
{
	struct snapshot *snap = snapshot_create(1, &arch_aarch64), *back = NULL;
	size_t len;
	char *data;

	snap->kernel_thread = true;
	data = save(snap, &len);
	assert_int_equal(load(data, len, NULL, &back), 0);
	assert_ptr_equal(back->arch, &arch_aarch64);
	assert_true(back->kernel_thread);
	assert_null(back->exe);
	assert_int_equal(back->threads.len, 0);
	free(data);
	snapshot_destroy(back);
	snapshot_destroy(snap);
}

static void test_build_ids(void **state)
{
	static const struct {
		const char *text;
		bool good;
	} ids[] = {
		{"cd34", true}, {"0123456789abcdef", true}, {"", false},      {"cd34\033[31m", false},
		{"xy", false},  {"cd/../34", false},        {"cd 34", false},
	};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct snapshot *snap = sample_snapshot(), *back = NULL;
		size_t len;
		char *data;

		snap->maps.data[0].build_id = ids[i].text;
		data = save(snap, &len);
		assert_int_equal(load(data, len, NULL, &back), 0);
		assert_text_equal(back->maps.data[0].build_id, ids[i].good ? ids[i].text : NULL);
		assert_string_equal(back->maps.data[1].path, "[stack]");
		free(data);
		snapshot_destroy(back);
		snapshot_destroy(snap);
	}
}

static void test_every_truncation(void **state)
{
	struct snapshot *snap = sample_snapshot(), *back = NULL;
	size_t whole;
	char *data = save(snap, &whole);

	for (size_t len = 1; len < whole; len++) {
		struct err err = {0};

		assert_int_equal(load_mem(data, len, &err, &back), -EINVAL);
		assert_null(back);
		assert_true(strlen(err.msg) > 0);
	}
	assert_int_equal(load(data, 0, NULL, &back), -EINVAL);
	free(data);
	snapshot_destroy(snap);
}

/* Flipped bytes may go unnoticed, but must never crash: the sanitizers look on. */
static void test_every_byte_flipped(void **state)
{
	static const uint8_t masks[] = {0xff, 0x80, 0x01};
	struct snapshot *snap = sample_snapshot();
	size_t len;
	char *data = save(snap, &len);

	for (size_t i = 0; i < len; i++) {
		for (size_t m = 0; m < sizeof(masks); m++) {
			struct snapshot *back = NULL;
			struct err err = {0};
			int ret;

			data[i] ^= (char)masks[m];
			ret = load_mem(data, len, &err, &back);
			assert_int_equal(ret != 0, err.msg[0] != '\0');
			assert_int_equal(ret != 0, back == NULL);
			snapshot_destroy(back);
			data[i] ^= (char)masks[m];
		}
	}
	free(data);
	snapshot_destroy(snap);
}

static void test_error_says_where(void **state)
{
	struct snapshot *snap = sample_snapshot(), *back = NULL;
	struct err err = {0};
	size_t len;
	char *data = save(snap, &len);

	assert_int_equal(load_mem(data, 50, &err, &back), -EINVAL);
	assert_string_equal(err.msg, "damaged snapshot: the file ends at byte 50, inside a section");
	data[28] = 0; /* the process id, after the headers of the file and of the section */
	data[29] = 0;
	assert_int_equal(load_mem(data, len, &err, &back), -EINVAL);
	assert_string_equal(err.msg, "damaged snapshot: process section at byte 16: process id 0");
	free(data);
	snapshot_destroy(snap);
}

static void test_not_a_snapshot(void **state)
{
	struct snapshot *back = NULL;
	struct err err = {0};

	assert_int_equal(load("#!/bin/sh\nexit 0\n", 17, &err, &back), -EINVAL);
	assert_string_equal(err.msg, "not a saved snapshot");
	assert_int_equal(load("STKOSNAP\2\0\0\0\1\0\0\0", 16, &err, &back), -EINVAL);
	assert_string_equal(err.msg, "the snapshot has format version 2; this program reads version 1");
	assert_int_equal(load("STKOSNAP\1\0\0\0\x63\0\0\0", 16, &err, &back), -EINVAL);
	assert_non_null(strstr(err.msg, "architecture"));
	assert_int_equal(load("STKOSNAP\1\0\0\0\1\0\0\0END.\0\0\0\0\0\0\0\0", 28, &err, &back), -EINVAL);
	assert_string_equal(err.msg, "damaged snapshot: it has no process section");
}

/* A later version may add sections, and fields at the end of a record. */
static void test_unknown_parts_are_skipped(void **state)
{
	static const char section[] = "NEW!\3\0\0\0\0\0\0\0abc";
	const size_t header = 16, added = sizeof(section) - 1;
	struct snapshot *snap = sample_snapshot(), *back = NULL;
	struct err err = {0};
	size_t len;
	char *data = save(snap, &len);
	char *longer = malloc(len + added + 1);
	uint32_t process_len;

	memcpy(longer, data, header);
	memcpy(longer + header, section, added);
	memcpy(longer + header + added, data + header, len - header);
	assert_int_equal(load(longer, len + added, &err, &back), 0);
	assert_int_equal(back->threads.len, snap->threads.len);
	snapshot_destroy(back);

	process_len = (uint8_t)data[header + 4];
	memcpy(longer, data, header + 12 + process_len);
	longer[header + 4]++;
	longer[header + 12 + process_len] = 'x';
	memcpy(longer + header + 12 + process_len + 1, data + header + 12 + process_len,
	       len - header - 12 - process_len);
	assert_int_equal(load(longer, len + 1, &err, &back), 0);
	assert_int_equal(back->threads.len, snap->threads.len);
	snapshot_destroy(back);
	free(longer);
	free(data);
	snapshot_destroy(snap);
}

static void test_write_error(void **state)
{
	struct snapshot *snap = sample_snapshot();
	FILE *full = fopen("/dev/full", "w");
	struct err err = {0};

	assert_non_null(full);
	assert_int_equal(snapfile_write(snap, full, &err), -ENOSPC);
	assert_non_null(strstr(err.msg, "No space left"));
	fclose(full);
	snapshot_destroy(snap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),	    cmocka_unit_test(test_waits),
		cmocka_unit_test(test_odd_waits), cmocka_unit_test(test_waits_without_names),
		cmocka_unit_test(test_doubts_are_kept),		    cmocka_unit_test(test_most_outsiders),
		cmocka_unit_test(test_copies_are_replayed),         cmocka_unit_test(test_empty_snapshot),
		cmocka_unit_test(test_build_ids),          cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_every_byte_flipped), cmocka_unit_test(test_error_says_where),
		cmocka_unit_test(test_not_a_snapshot),     cmocka_unit_test(test_unknown_parts_are_skipped),
		cmocka_unit_test(test_write_error),
	};

	return cmocka_run_group_tests_name("snapfile", tests, NULL, NULL);
}
