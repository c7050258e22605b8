/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/arena.h"
#include "capture/file_ahead.h"
#include "capture/file_source.h"
#include "capture/take.h"
#include "proc/holders.h"
#include "proc/sockets.h"

/* In place of kernel/open_files.c: it shows the records that it is given. */
struct open_files {
	const struct file_record *records;
	size_t n;
	int create_error, pass_error;
	unsigned created;
	bool tells_tcp;
	unsigned passes; /* over one thread */
	struct file_wants wants; /* of the last one over all */
};

static struct open_files fake;

int open_files_create(bool tells_tcp, struct err *err, struct open_files **out)
{
	fake.created++;
	fake.tells_tcp = tells_tcp;
	if (fake.create_error)
		return err_set(err, fake.create_error, "refused");
	*out = &fake;
	return 0;
}

void open_files_destroy(struct open_files *files)
{
}

int open_files_look(struct open_files *files, pid_t tid, const struct file_wants *wants, struct err *err, struct file_records *out)
{
	if (tid)
		files->passes++;
	else
		files->wants = *wants;
	return files->pass_error ? err_set(err, files->pass_error, "failed") : 0;
}

const struct file_record *file_records_next(const struct file_records *records, size_t *pos)
{
	const struct file_record *record = *pos < fake.n ? &fake.records[*pos] : NULL;

	*pos += record && record->kind == FILE_TCP ? 2 : 1;
	return record;
}

void file_records_deinit(struct file_records *records)
{
}

static struct observer observer;
static struct target target;
static struct capture capture = {.observer = &observer, .target = &target};
static struct file_source source;

/* Nothing was asked for yet, and BPF shows these. */
static void begin(const struct file_record *records, size_t n)
{
	observer = (struct observer){.name = "bpf"};
	fake = (struct open_files){.records = records, .n = n};
	source = (struct file_source){0};
}

enum { HERE = 1, THERE = 2, NET = 0x1000, OTHER_NET = 0x2000 };

/* A connection between 127.0.0.1 and .2, as one of its ends has it. What tells of that is in the place of another record. */
static void put_tcp(struct file_record *out, uint32_t tgid, uint64_t inode, const uint16_t ports[2], uint64_t net)
{
	const bool is_here = ports[0] < ports[1];
	struct file_tcp tcp = {.family = AF_INET, .state = TCP_ESTABLISHED, .local_port = ports[0], .remote_port = ports[1], .net = net,
			       .local = {127, 0, 0, is_here ? HERE : THERE}, .remote = {127, 0, 0, is_here ? THERE : HERE}, .unread = 6, .unsent = 7};

	_Static_assert(sizeof(tcp) <= sizeof(*out), "it has room there");
	out[0] = (struct file_record){.tgid = tgid, .fd = 5, .kind = FILE_TCP, .inode = inode, .mode = FILE_READS | FILE_WRITES, .comm = "tcp"};
	memcpy(&out[1], &tcp, sizeof(tcp));
}

static bool is_used(void)
{
	static const struct file_wants none;

	return file_source_of(&source, &capture, 7, &none);
}

static void test_when_it_is_used(void **state)
{
	begin(NULL, 0);
	observer.name = "proc";
	assert_false(is_used());
	begin(NULL, 0);
	observer.slow_why = "libbpf had to load it";
	assert_false(is_used());
	begin(NULL, 0);
	capture.unstoppable = true;
	assert_false(is_used());
	assert_int_equal(fake.created, 0);

	begin(NULL, 0);
	capture.unstoppable = false;
	fake.create_error = EPERM;
	assert_false(is_used());
	fake.create_error = 0;
	assert_false(is_used()); /* it was asked for once */
	assert_int_equal(fake.created, 1);

	begin(NULL, 0);
	assert_true(is_used());
	assert_true(is_used());
	assert_int_equal(fake.created, 1);
	assert_int_equal(fake.passes, 2);
	file_source_deinit(&source);
}

static void assert_holder(const struct held *thing, size_t i, pid_t pid, const char *comm, bool reads, bool writes)
{
	assert_true(i < thing->holders.len);
	assert_int_equal(thing->holders.data[i].pid, pid);
	assert_string_equal(thing->holders.data[i].comm, comm);
	assert_int_equal(thing->holders.data[i].reads, reads);
	assert_int_equal(thing->holders.data[i].writes, writes);
}

static void test_holders(void **state)
{
	const struct file_record records[] = {
		{.tgid = 9, .fd = 1, .kind = FILE_PIPE, .inode = 50, .place = 0x50, .mode = FILE_WRITES, .comm = "writer"},
		{.tgid = 7, .fd = 3, .kind = FILE_PIPE, .inode = 50, .place = 0x50, .mode = FILE_READS, .comm = "waiter"},
		{.tgid = 7, .fd = 4, .kind = FILE_SOCKET, .inode = 60, .place = 0x60, .mode = FILE_READS | FILE_WRITES, .comm = "waiter"},
		{.tgid = 7, .fd = 3, .kind = FILE_PIPE, .inode = 51, .place = 0x51, .mode = FILE_READS, .comm = "waiter"},  /* of a thread apart */
		{.tgid = 8, .fd = 3, .kind = FILE_PIPE, .inode = 50, .place = 0x55, .mode = FILE_WRITES, .comm = "other"},   /* a fifo with that number */
		{.tgid = 8, .fd = 4, .kind = FILE_SOCKET, .inode = 61, .place = 0x61, .mode = FILE_READS, .comm = "other"}, /* it has the same bit */
		{.tgid = 8, .fd = 5, .kind = FILE_PIPE, .inode = 70, .place = 0x70, .mode = FILE_WRITES, .comm = "other"},
		{.tgid = 7, .fd = 6, .kind = FILE_PIPE, .inode = 70, .place = 0x70, .mode = FILE_READS, .comm = "waiter"},
		{.tgid = 8, .fd = 7, .kind = FILE_PIPE, .inode = 70, .place = 0x70, .mode = FILE_READS, .comm = "sixteen letters!"},
	};
	struct held things[] = {
		{.kind = DESCRIPTOR_PIPE, .inode = 50, .pid = 7, .fd = 3},
		{.kind = DESCRIPTOR_SOCKET, .inode = 60, .pid = 7, .fd = 99},
		{.kind = DESCRIPTOR_FIFO, .inode = 1070, .pid = 7, .fd = 6}, /* its file system has other numbers for files */
		{.kind = DESCRIPTOR_PIPE, .inode = 80, .pid = 7, .fd = 8},	/* it was closed */
	};

	begin(records, sizeof(records) / sizeof(records[0]));
	assert_int_equal(file_source_holders(&source, &capture, things, 4), 0);
	assert_int_equal(file_wants_count(&fake.wants), 4);
	assert_true(file_wants_has(&fake.wants, 50));
	assert_true(fake.wants.any_fifo && !fake.wants.any_tcp);
	assert_int_equal(things[0].holders.len, 2);
	assert_holder(&things[0], 0, 7, "waiter", true, false);
	assert_holder(&things[0], 1, 9, "writer", false, true);
	assert_int_equal(things[1].holders.len, 1);
	assert_holder(&things[1], 0, 7, "waiter", true, true);
	assert_int_equal(things[2].holders.len, 2);
	assert_holder(&things[2], 0, 7, "waiter", true, false);
	assert_holder(&things[2], 1, 8, "sixteen letters!", true, true);
	assert_int_equal(things[3].holders.len, 0);
	assert_true(things[0].holders.all);
	for (size_t i = 0; i < 4; i++)
		vec_deinit(&things[i].holders);
}

/* A file system may show a fifo as several files: whoever has it has all of them. */
static void test_things_in_one_place(void **state)
{
	const struct file_record records[] = {
		{.tgid = 7, .fd = 3, .kind = FILE_PIPE, .inode = 50, .place = 0x50, .mode = FILE_READS, .comm = "waiter"},
		{.tgid = 7, .fd = 4, .kind = FILE_PIPE, .inode = 50, .place = 0x50, .mode = FILE_READS, .comm = "waiter"},
		{.tgid = 7, .fd = 5, .kind = FILE_PIPE, .inode = 50, .place = 0x51, .mode = FILE_READS, .comm = "waiter"},
		{.tgid = 9, .fd = 1, .kind = FILE_PIPE, .inode = 50, .place = 0x50, .mode = FILE_WRITES, .comm = "writer"},
		{.tgid = 8, .fd = 3, .kind = FILE_PIPE, .inode = 50, .place = 0x50, .mode = FILE_READS, .comm = "reader"},
	};
	struct held things[] = {
		{.kind = DESCRIPTOR_FIFO, .inode = 50, .device = 1, .pid = 7, .fd = 3},
		{.kind = DESCRIPTOR_FIFO, .inode = 50, .device = 2, .pid = 7, .fd = 4},
		{.kind = DESCRIPTOR_FIFO, .inode = 50, .device = 3, .pid = 7, .fd = 5},
		{.kind = DESCRIPTOR_FIFO, .inode = 50, .device = 4, .pid = 8, .fd = 3},
	};

	begin(records, sizeof(records) / sizeof(records[0]));
	assert_int_equal(file_source_holders(&source, &capture, things, 4), 0);
	for (size_t i = 0; i < 4; i++) {
		if (i == 2)
			continue;
		assert_int_equal(things[i].holders.len, 3);
		assert_holder(&things[i], 0, 7, "waiter", true, false);
		assert_holder(&things[i], 1, 8, "reader", true, false);
		assert_holder(&things[i], 2, 9, "writer", false, true);
	}
	assert_int_equal(things[2].holders.len, 1);
	for (size_t i = 0; i < 4; i++)
		vec_deinit(&things[i].holders);
}

static void test_failure(void **state)
{
	struct held thing = {.kind = DESCRIPTOR_SOCKET, .inode = 60};

	begin(NULL, 0);
	fake.pass_error = EPERM;
	assert_int_equal(file_source_holders(&source, &capture, &thing, 1), -EPERM);
	assert_false(fake.wants.any_fifo);
	assert_int_equal(thing.holders.len, 0);
}

/* All that is known of a socket, but for the other end; and that, by what is known. */
static void test_connections(void **state)
{
	struct arena *arena = arena_create();
	struct wanted_sockets wanted = {0};
	struct file_record records[10];
	struct held things[2] = {{.kind = DESCRIPTOR_SOCKET, .pid = 7, .fd = 5}, {.kind = DESCRIPTOR_SOCKET, .pid = 7, .fd = 6}};
	struct wanted_socket *w;

	begin(NULL, 0);
	put_tcp(records, 7, 60, (const uint16_t[]){1000, 2000}, NET);
	assert_true(file_source_tell(records, &wanted, arena));
	w = &wanted.data[0];
	assert_true(w->found && w->inode == 60 && w->fd == 5 && w->net == NET);
	assert_string_equal(w->facts.protocol, "tcp");
	assert_string_equal(w->facts.state, "established");
	assert_string_equal(w->facts.local, "127.0.0.1:1000");
	assert_string_equal(w->facts.remote, "127.0.0.2:2000");
	assert_true(w->facts.unread == 6 && w->facts.unsent == 7 && !w->facts.listening);
	assert_true(file_source_keep_far(&source, w)); /* nobody wants to know */
	assert_null(file_source_far(&source, 60));
	w->wants_peer = true;
	assert_true(file_source_keep_far(&source, w) && file_source_keep_far(&source, w));
	things[0].far = file_source_far(&source, 60);
	assert_non_null(things[0].far);

	put_tcp(records, 7, 61, (const uint16_t[]){1001, 2000}, NET);
	assert_true(file_source_tell(records, &wanted, arena));
	w = &wanted.data[1];
	w->wants_peer = true;
	assert_true(file_source_keep_far(&source, w));
	things[1].far = file_source_far(&source, 61);
	things[0].far = file_source_far(&source, 60);

	put_tcp(records, 7, 62, (const uint16_t[]){0, 0}, NET); /* neither connected nor listening: as where the kernel lists all sockets */
	((struct file_tcp *)&records[1])->state = TCP_CLOSE;
	assert_true(file_source_tell(records, &wanted, arena));
	assert_true(wanted.data[2].found && !wanted.data[2].facts.state && !wanted.data[2].facts.local);
	assert_string_equal(wanted.data[2].facts.protocol, "tcp");

	put_tcp(records, 9, 70, (const uint16_t[]){2000, 1000}, NET);
	put_tcp(records + 2, 8, 70, (const uint16_t[]){2000, 1000}, NET);
	put_tcp(records + 4, 6, 71, (const uint16_t[]){2000, 1000}, OTHER_NET);
	put_tcp(records + 6, 6, 72, (const uint16_t[]){2000, 1001}, NET);
	put_tcp(records + 8, 6, 73, (const uint16_t[]){2000, 1001}, NET); /* on another interface */
	fake = (struct open_files){.records = records, .n = 10};
	assert_int_equal(file_source_holders(&source, &capture, things, 2), 0);
	assert_int_equal(file_wants_count(&fake.wants), 2);
	assert_true(fake.wants.any_tcp && file_wants_has(&fake.wants, file_ports(2000, 1000)));
	assert_int_equal(things[0].inode, 70);
	assert_int_equal(things[0].holders.len, 2);
	assert_holder(&things[0], 0, 8, "tcp", true, true);
	assert_holder(&things[0], 1, 9, "tcp", true, true);
	assert_int_equal(things[1].inode, 0);
	assert_int_equal(things[1].holders.len, 0);
	for (size_t i = 0; i < 2; i++)
		vec_deinit(&things[i].holders);
	file_source_deinit(&source);
	wanted_sockets_deinit(&wanted);
	arena_destroy(arena);
}

static void test_descriptors(void **state)
{
	struct arena *arena = arena_create();
	struct descriptor d;

	assert_non_null(arena);
	assert_true(file_source_describe(&(struct file_record){.fd = 5, .kind = FILE_PIPE, .inode = 77, .flags = O_WRONLY | O_CLOEXEC}, arena, &d));
	assert_int_equal(d.fd, 5);
	assert_int_equal(d.kind, DESCRIPTOR_PIPE);
	assert_int_equal(d.inode, 77);
	assert_int_equal(d.flags, O_WRONLY);
	assert_string_equal(d.name, "pipe:[77]");
	assert_int_equal(d.offset, -1);
	assert_int_equal(d.left_ns, -1);
	assert_true(file_source_describe(&(struct file_record){.kind = FILE_SOCKET, .inode = 78, .flags = O_RDWR}, arena, &d));
	assert_int_equal(d.kind, DESCRIPTOR_SOCKET);
	assert_int_equal(d.flags, 0);
	assert_string_equal(d.name, "socket:[78]");
	assert_true(file_source_describe(&(struct file_record){.kind = FILE_EVENTFD, .inode = 79, .flags = O_RDWR, .count = 3}, arena, &d));
	assert_int_equal(d.kind, DESCRIPTOR_EVENTFD);
	assert_int_equal(d.inode, 0);
	assert_int_equal(d.count, 3);
	assert_string_equal(d.name, "anon_inode:[eventfd]");
	arena_destroy(arena);
}

/* A process that has so many threads, each of which reads a descriptor of its own. */
static struct snapshot *readers(size_t n)
{
	struct snapshot *snap = snapshot_create(7, arch_host());

	for (size_t i = 0; i < n; i++)
		assert_true(vec_push(&snap->threads, ((struct snap_thread){.tid = (pid_t)(7 + i), .state = 'S', .status = THREAD_CAPTURED,
									   .syscall = {.state = SYSCALL_IN, .nr = SYS_read, .args = {100 + i}}})));
	return snap;
}

static const struct file_look *look_for(pid_t tid, uint64_t first, uint64_t n)
{
	struct file_wants wants = {0};

	for (uint64_t i = 0; i < n; i++)
		file_wants_add(&wants, first + i);
	return file_source_of(&source, &capture, tid, &wants);
}

/* What was looked at while stacks were copied is not looked at again, if it is the same table, and all was looked at. */
static void test_ahead(void **state)
{
	struct snapshot *few = readers(FEW_FILES), *many = readers(FEW_FILES + 1);
	struct file_ahead *ahead;

	begin(NULL, 0);
	target.process = (struct process){.pid = 7, .mm_tid = 7, .mm_fd = -1};
	assert_null(file_ahead_begin(&capture, few));
	observer.name = "proc";
	assert_null(file_ahead_begin(&capture, many));
	observer.name = "bpf";
	assert_int_equal(fake.created, 0);

	ahead = file_ahead_begin(&capture, many);
	assert_non_null(ahead);
	file_source_take_ahead(&source, ahead);
	assert_int_equal(fake.passes, 1);
	assert_ptr_equal(look_for(7, 100, FEW_FILES + 1), file_ahead_of(ahead, 7));
	assert_int_equal(fake.passes, 1);
	assert_ptr_not_equal(look_for(7, 99, 2), file_ahead_of(ahead, 7));
	assert_non_null(look_for(8, 100, 1)); /* of a thread that has others */
	assert_int_equal(fake.passes, 3);
	assert_int_equal(fake.created, 1);
	assert_true(fake.tells_tcp == file_source_tells_tcp(&source, &capture));
	file_source_deinit(&source);
	file_ahead_destroy(ahead);

	begin(NULL, 0);
	fake.create_error = EPERM;
	ahead = file_ahead_begin(&capture, many);
	file_source_take_ahead(&source, ahead);
	assert_null(look_for(7, 100, 1));
	assert_int_equal(fake.created, 1);
	file_source_deinit(&source);
	file_ahead_destroy(ahead);
	snapshot_destroy(few);
	snapshot_destroy(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_when_it_is_used),
		cmocka_unit_test(test_holders),
		cmocka_unit_test(test_things_in_one_place),
		cmocka_unit_test(test_failure),
		cmocka_unit_test(test_connections),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
