/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "proc/sockets.h"

/* Replies, as the kernel would put them together. */
struct reply {
	_Alignas(8) uint8_t data[1024];
	size_t len;
	uint32_t request; /* that it answers */
};

static void *add(struct reply *r, uint16_t type, size_t body)
{
	struct nlmsghdr *header = (struct nlmsghdr *)(r->data + r->len);

	*header = (struct nlmsghdr){.nlmsg_len = (uint32_t)NLMSG_LENGTH(body), .nlmsg_type = type, .nlmsg_seq = r->request};
	r->len += NLMSG_SPACE(body);
	return NLMSG_DATA(header);
}

static void add_tcp(struct reply *r, uint32_t inode)
{
	struct inet_diag_msg *m = add(r, SOCK_DIAG_BY_FAMILY, sizeof(*m));

	*m = (struct inet_diag_msg){.idiag_family = AF_INET, .idiag_state = TCP_ESTABLISHED, .idiag_inode = inode, .idiag_rqueue = 3};
	m->id.idiag_sport = htons(41022);
	m->id.idiag_dport = htons(5432);
	m->id.idiag_src[0] = htonl(0x0a000005);
	m->id.idiag_dst[0] = htonl(0x0a000009);
}

/* With a name and the other end. */
static void add_unix(struct reply *r, uint32_t inode, const char *name, uint16_t len)
{
	const size_t size = sizeof(struct unix_diag_msg) + RTA_SPACE(len) + RTA_SPACE(4);
	struct unix_diag_msg *m = add(r, SOCK_DIAG_BY_FAMILY, size);
	struct rtattr *attribute = (struct rtattr *)(m + 1);
	const uint32_t peer = 99;

	*m = (struct unix_diag_msg){.udiag_family = AF_UNIX, .udiag_type = SOCK_STREAM, .udiag_state = TCP_LISTEN, .udiag_ino = inode};
	*attribute = (struct rtattr){.rta_len = (uint16_t)RTA_LENGTH(len), .rta_type = UNIX_DIAG_NAME};
	memcpy(RTA_DATA(attribute), name, len);
	attribute = (struct rtattr *)((uint8_t *)attribute + RTA_SPACE(len));
	*attribute = (struct rtattr){.rta_len = RTA_LENGTH(4), .rta_type = UNIX_DIAG_PEER};
	memcpy(RTA_DATA(attribute), &peer, 4);
}

struct seen {
	struct arena *arena;
	struct descriptor_socket facts[8];
	uint64_t inodes[8];
	size_t n;
};

static void see(void *arg, const struct diag_socket *s)
{
	struct seen *seen = arg;

	if (seen->n < 8 && socket_describe(s, s->family == AF_UNIX ? "unix" : "tcp", seen->arena, &seen->facts[seen->n]))
		seen->inodes[seen->n++] = s->inode;
}

static void test_replies(void **state)
{
	struct seen seen = {.arena = arena_create()};
	struct reply r = {.request = 5};

	add_tcp(&r, 7);
	add_unix(&r, 8, "/run/x.sock", 11);
	add_unix(&r, 9, "\0abs\0tract", 10);
	assert_int_equal(sockets_parse(r.data, r.len, 5, see, &seen), 1);
	*(int32_t *)add(&r, NLMSG_DONE, 4) = 0;
	seen.n = 0;
	assert_int_equal(sockets_parse(r.data, r.len, 5, see, &seen), 0);
	assert_int_equal(seen.n, 3);
	assert_true(seen.inodes[0] == 7 && seen.inodes[1] == 8 && seen.inodes[2] == 9);
	assert_string_equal(seen.facts[0].local, "10.0.0.5:41022");
	assert_string_equal(seen.facts[0].remote, "10.0.0.9:5432");
	assert_string_equal(seen.facts[0].state, "established");
	assert_int_equal(seen.facts[0].unread, 3);
	assert_string_equal(seen.facts[1].local, "/run/x.sock");
	assert_true(seen.facts[1].listening && seen.facts[1].peer == 99);
	assert_string_equal(seen.facts[2].local, "@abs@tract");
	arena_destroy(seen.arena);
}

static void test_answers_to_others(void **state)
{
	struct seen seen = {.arena = arena_create()};
	struct reply r = {.request = 4};

	add_tcp(&r, 7);
	*(int32_t *)add(&r, NLMSG_DONE, 4) = 0;
	assert_int_equal(sockets_parse(r.data, r.len, 5, see, &seen), 2);
	assert_int_equal(sockets_parse(r.data, 0, 5, see, &seen), 2);
	assert_int_equal(seen.n, 0);
	r.request = 5;
	add_tcp(&r, 8);
	assert_int_equal(sockets_parse(r.data, r.len, 5, see, &seen), 1);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.inodes[0], 8);
	arena_destroy(seen.arena);
}

static void test_errors(void **state)
{
	struct seen seen = {.arena = arena_create()};
	struct reply r = {.request = 5};

	*(int32_t *)add(&r, NLMSG_ERROR, 4) = -ENOENT;
	assert_int_equal(sockets_parse(r.data, r.len, 5, see, &seen), -ENOENT);
	r.len = 0;
	*(int32_t *)add(&r, NLMSG_ERROR, 4) = 5;
	assert_int_equal(sockets_parse(r.data, r.len, 5, see, &seen), -EBADMSG);
	r.len = 0;
	add(&r, NLMSG_ERROR, 0);
	assert_int_equal(sockets_parse(r.data, r.len, 5, see, &seen), -EBADMSG);
	r.len = 0;
	*(int32_t *)add(&r, NLMSG_DONE, 4) = -ENOENT; /* a dump of a protocol that is not there */
	assert_int_equal(sockets_parse(r.data, r.len, 5, see, &seen), -ENOENT);
	r.len = 0;
	*(int32_t *)add(&r, NLMSG_DONE, 4) = -5000;
	assert_int_equal(sockets_parse(r.data, r.len, 5, see, &seen), 0);
	r.len = 0;
	add(&r, NLMSG_DONE, 0);
	assert_int_equal(sockets_parse(r.data, r.len, 5, see, &seen), 0);
	arena_destroy(seen.arena);
}

/* Cut anywhere, and with any byte changed: nothing is read beyond its end. Each is a copy of its own, for the sanitizers. */
static void test_hostile_replies(void **state)
{
	static const uint8_t masks[] = {0xff, 0x80, 0x01, 0x10};
	struct seen seen = {.arena = arena_create()};
	struct reply r = {.request = 5};

	add_unix(&r, 8, "/run/x.sock", 11);
	add_tcp(&r, 7);
	for (size_t len = 0; len <= r.len; len++) {
		uint8_t *copy = malloc(len + 1);

		memcpy(copy, r.data, len);
		seen.n = 0;
		sockets_parse(copy, len, 5, see, &seen);
		free(copy);
	}
	for (size_t i = 0; i < r.len * sizeof(masks); i++) {
		uint8_t *copy = malloc(r.len);

		memcpy(copy, r.data, r.len);
		copy[i / sizeof(masks)] ^= masks[i % sizeof(masks)];
		seen.n = 0;
		sockets_parse(copy, r.len, 5, see, &seen);
		free(copy);
	}
	arena_destroy(seen.arena);
}

static void test_lines(void **state)
{
	struct arena *arena = arena_create();
	struct descriptor_socket facts;
	struct diag_socket s;

	assert_true(sockets_parse_line("   1: 0100007F:1F90 0200007F:C350 01 00000010:00000020 00:00000000 00000000  1000        0 4711 1 0000 20 4\n", false, &s));
	assert_true(s.inode == 4711 && s.unsent == 0x10 && s.unread == 0x20);
	assert_true(socket_describe(&s, "tcp", arena, &facts));
	assert_string_equal(facts.local, "127.0.0.1:8080");
	assert_string_equal(facts.remote, "127.0.0.2:50000");
	assert_true(sockets_parse_line("   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 12 1\n", false, &s));
	assert_true(socket_describe(&s, "tcp", arena, &facts));
	assert_string_equal(facts.local, "[::1]:80");
	assert_null(facts.remote);
	assert_true(facts.listening);
	assert_true(sockets_parse_line("   0: 0000000000000000FFFF00000100007F:0050 0000000000000000FFFF00000100007F:1234 01 0:0 00:0 0 0 0 12 1\n", false, &s));
	assert_true(socket_describe(&s, "tcp", arena, &facts));
	assert_string_equal(facts.local, "127.0.0.1:80"); /* IPv4 on a socket of IPv6 */
	assert_true(sockets_parse_line("0000000000000000: 00000002 00000000 00010000 0001 01 812 /run/a b\n", true, &s));
	assert_true(socket_describe(&s, "unix", arena, &facts));
	assert_string_equal(facts.local, "/run/a b");
	assert_true(facts.listening && s.inode == 812);
	assert_true(sockets_parse_line("0000000000000000: 00000003 00000000 00000000 0001 03 813\n", true, &s));
	assert_true(s.state == TCP_ESTABLISHED && !s.has_name);
	arena_destroy(arena);
}

static void test_damaged_lines(void **state)
{
	static const char *const lines[] = {
		"", "\n", ":", "sl  local_address rem_address   st\n", "0: 0100007F", "0: 0100007F:", "0: 0100007F:1F90 0200007F", "0: 01007F:1 01007F:1 01 0:0 0:0 0 0 0 1",
		"0: 0100007F:1F90 0200007F:C350 01 00000010", "0: 0100007F:1F90 0200007F:C350 01 0:0 0:0 0 0 0",
	};
	struct diag_socket s;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_false(sockets_parse_line(lines[i], false, &s));
		assert_false(sockets_parse_line(lines[i], true, &s));
	}
}

static void test_addresses(void **state)
{
	struct arena *arena = arena_create();
	struct sockaddr_un where = {.sun_family = AF_UNIX, .sun_path = "/run/x"};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(80), .sin_addr.s_addr = htonl(0x7f000001)};
	uint8_t longest[256] = {AF_UNIX};

	assert_string_equal(socket_address(&in, sizeof(in), arena), "127.0.0.1:80");
	assert_null(socket_address(&in, sizeof(in) - 1, arena));
	assert_null(socket_address(&in, 1, arena));
	assert_null(socket_address(&in, 0, arena));
	assert_string_equal(socket_address(&where, sizeof(where), arena), "/run/x");
	assert_null(socket_address(&where, 2, arena));
	memset(longest + 2, 'x', sizeof(longest) - 2);
	assert_non_null(socket_address(longest, 128, arena));
	assert_null(socket_address(longest, 129, arena));
	arena_destroy(arena);
}

static struct inet_ends ends_of(uint8_t family, const char *local, uint16_t local_port, const char *remote, uint16_t remote_port)
{
	struct diag_socket s = {.family = family, .local_port = local_port, .remote_port = remote_port};
	struct inet_ends ends;

	assert_int_equal(inet_pton(family, local, s.local), 1);
	assert_int_equal(inet_pton(family, remote, s.remote), 1);
	inet_ends_of(&s, &ends);
	return ends;
}

static void test_connections_within_the_machine(void **state)
{
	const struct {
		uint8_t family;
		const char *local, *remote;
		uint16_t port;
		bool here, ipv4;
	} cases[] = {
		{AF_INET, "127.0.0.1", "127.1.2.3", 5, true, true},
		{AF_INET, "10.0.0.1", "10.0.0.1", 5, true, true},
		{AF_INET, "10.0.0.1", "10.0.0.2", 5, false, true},
		{AF_INET, "127.0.0.1", "127.0.0.1", 0, false, true}, /* it is not connected */
		{AF_INET6, "::1", "::1", 5, true, false},
		{AF_INET6, "fe80::1", "fe80::2", 5, false, false},
		{AF_INET6, "7f00::1", "7f00::2", 5, false, false},
		{AF_INET6, "::ffff:127.0.0.1", "::ffff:127.0.0.2", 5, true, true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct inet_ends ends = ends_of(cases[i].family, cases[i].local, 4, cases[i].remote, cases[i].port);

		assert_int_equal(inet_ends_are_here(&ends), cases[i].here);
		assert_int_equal(inet_ends_are_of_ipv4(&ends), cases[i].ipv4);
	}
}

static void test_other_ends(void **state)
{
	const struct inet_ends one = ends_of(AF_INET, "127.0.0.1", 4, "127.0.0.1", 5), other = ends_of(AF_INET, "127.0.0.1", 5, "127.0.0.1", 4),
			       mapped = ends_of(AF_INET6, "::ffff:127.0.0.1", 5, "::ffff:127.0.0.1", 6),
			       its_other = ends_of(AF_INET, "127.0.0.1", 6, "127.0.0.1", 5), third = ends_of(AF_INET6, "::1", 4, "::1", 5);
	struct socket_ends all = {0};
	uint64_t inode = 77;

	assert_false(socket_ends_find_other(&all, &one, &inode));
	assert_true(socket_ends_add(&all, &one, 10));
	assert_true(socket_ends_add(&all, &other, 11));
	assert_true(socket_ends_add(&all, &mapped, 12));
	assert_true(socket_ends_find_other(&all, &one, &inode));
	assert_int_equal(inode, 11);
	assert_true(socket_ends_find_other(&all, &other, &inode));
	assert_int_equal(inode, 10);
	assert_true(socket_ends_find_other(&all, &its_other, &inode));
	assert_int_equal(inode, 12);
	assert_false(socket_ends_find_other(&all, &third, &inode));
	assert_false(socket_ends_find_other(&all, &mapped, &inode));

	assert_true(socket_ends_add(&all, &other, 11)); /* shown twice */
	assert_true(socket_ends_find_other(&all, &one, &inode));
	assert_true(socket_ends_add(&all, &other, 13)); /* another one */
	assert_false(socket_ends_find_other(&all, &one, &inode));
	socket_ends_deinit(&all);
}

struct question {
	struct nlmsghdr header;
	uint8_t family;
	uint8_t rest[239];
};

/* A kernel without the module that tells of this protocol: it says so at once, or, where there is that of another one, at the end of a dump. */
struct ignorant {
	int fd;
	uint16_t answer; /* NLMSG_… */
};

static void *know_nothing(void *arg)
{
	const struct ignorant *kernel = arg;
	struct question question;

	while (recv(kernel->fd, &question, sizeof(question), 0) > 0) {
		struct reply r = {.request = question.header.nlmsg_seq};

		memcpy(add(&r, kernel->answer, sizeof(struct nlmsgerr)), &(struct nlmsgerr){.error = -ENOENT}, sizeof(struct nlmsgerr));
		send(kernel->fd, r.data, r.len, 0);
	}
	return NULL;
}

static void expect_lines_instead(uint16_t answer)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int ends[2], listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct wanted_sockets wanted = {0};
	struct arena *arena = arena_create();
	struct process self;
	struct descriptors dirs;
	struct err err;
	struct stat st;
	char address[32];
	pthread_t kernel;
	struct sockets sockets;
	const struct wanted_socket *found;

	assert_int_equal(bind(listener, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(fstat(listener, &st), 0);
	assert_int_equal(process_open(getpid(), &err, &self), 0);
	assert_int_equal(descriptors_open(&self, 0, NULL, &dirs), 0);
	assert_int_equal(sockets_open(&self, &sockets), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	close(sockets.diag);
	sockets.diag = ends[0];
	assert_int_equal(pthread_create(&kernel, NULL, know_nothing, &(struct ignorant){.fd = ends[1], .answer = answer}), 0);

	assert_non_null(wanted_sockets_add(&wanted, st.st_ino, listener));
	assert_int_equal(sockets_find(&sockets, &wanted, &dirs, arena), 0);
	found = wanted_sockets_find(&wanted, st.st_ino);
	snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(at.sin_port));
	assert_string_equal(found->facts.protocol, "tcp");
	assert_string_equal(found->facts.local, address);
	assert_true(found->facts.listening);

	sockets_close(&sockets);
	pthread_join(kernel, NULL);
	close(ends[1]);
	close(listener);
	wanted_sockets_deinit(&wanted);
	descriptors_close(&dirs);
	process_close(&self);
	arena_destroy(arena);
}

static void test_protocol_without_a_module(void **state)
{
	expect_lines_instead(NLMSG_ERROR);
	expect_lines_instead(NLMSG_DONE);
}

/* What it is asked for it tells twice: first as it was when it was asked before, which nobody has read to its end. */
struct forgetful {
	int fd;
	uint32_t tcp, named;
};

static void tell(const struct forgetful *kernel, const struct question *question, bool now)
{
	struct reply r = {.request = question->header.nlmsg_seq - !now};

	if (question->family == AF_UNIX) {
		add_unix(&r, kernel->named, now ? "/now" : "/then", now ? 4 : 5);
	} else {
		add_tcp(&r, kernel->tcp);
		((struct inet_diag_msg *)NLMSG_DATA((struct nlmsghdr *)r.data))->id.idiag_sport = htons(now ? 1 : 2);
		*(int32_t *)add(&r, NLMSG_DONE, 4) = 0;
	}
	send(kernel->fd, r.data, r.len, 0);
}

static void *remember(void *arg)
{
	const struct forgetful *kernel = arg;
	struct question question;

	while (recv(kernel->fd, &question, sizeof(question), 0) > 0) {
		tell(kernel, &question, false);
		tell(kernel, &question, true);
	}
	return NULL;
}

static uint32_t inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint32_t)st.st_ino;
}

static void test_answers_that_were_left(void **state)
{
	const int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), named = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct forgetful kernel = {.tcp = inode_of(tcp), .named = inode_of(named)};
	struct wanted_sockets wanted = {0};
	struct arena *arena = arena_create();
	struct sockets sockets = {.net = -1};
	struct descriptors dirs;
	struct process self;
	pthread_t thread;
	struct err err;
	int ends[2];

	assert_int_equal(process_open(getpid(), &err, &self), 0);
	assert_int_equal(descriptors_open(&self, 0, NULL, &dirs), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	sockets.diag = ends[0];
	kernel.fd = ends[1];
	assert_int_equal(pthread_create(&thread, NULL, remember, &kernel), 0);

	assert_non_null(wanted_sockets_add(&wanted, kernel.tcp, tcp));
	assert_non_null(wanted_sockets_add(&wanted, kernel.named, named));
	assert_int_equal(sockets_find(&sockets, &wanted, &dirs, arena), 0);
	assert_string_equal(wanted_sockets_find(&wanted, kernel.tcp)->facts.local, "10.0.0.5:1");
	assert_string_equal(wanted_sockets_find(&wanted, kernel.named)->facts.local, "/now");

	sockets_close(&sockets);
	pthread_join(thread, NULL);
	close(ends[1]);
	close(tcp);
	close(named);
	wanted_sockets_deinit(&wanted);
	descriptors_close(&dirs);
	process_close(&self);
	arena_destroy(arena);
}

/* Each socket has the same other end, which has no name. */
static void *log_for_all(void *arg)
{
	const int fd = *(const int *)arg;
	struct question question;

	while (recv(fd, &question, sizeof(question), 0) > 0) {
		struct reply r = {.request = question.header.nlmsg_seq};
		const struct unix_diag_req *wanted = NLMSG_DATA(&question.header);

		add_unix(&r, wanted->udiag_ino, "", 0);
		send(fd, r.data, r.len, 0);
	}
	return NULL;
}

static void test_a_common_other_end(void **state)
{
	struct wanted_sockets wanted = {0};
	struct sockets sockets = {.net = -1};
	struct arena *arena = arena_create();
	struct descriptors dirs;
	struct process self;
	pthread_t kernel;
	int ends[2], clients[2];

	assert_int_equal(process_open(getpid(), NULL, &self), 0);
	assert_int_equal(descriptors_open(&self, 0, NULL, &dirs), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, clients), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	sockets.diag = ends[0];
	assert_int_equal(pthread_create(&kernel, NULL, log_for_all, &ends[1]), 0);
	for (int i = 0; i < 2; i++)
		assert_non_null(wanted_sockets_add(&wanted, inode_of(clients[i]), clients[i]));
	assert_int_equal(sockets_find(&sockets, &wanted, &dirs, arena), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wanted.data[i].facts.peer, 99);
		assert_null(wanted.data[i].facts.remote);
		close(clients[i]);
	}
	assert_int_equal(sockets.requests, 3);
	sockets_close(&sockets);
	pthread_join(kernel, NULL);
	close(ends[1]);
	wanted_sockets_deinit(&wanted);
	descriptors_close(&dirs);
	process_close(&self);
	arena_destroy(arena);
}

/* Two servers that listen under one path, of which the second has replaced the first, and one with a path of its own. */
static void *restart(void *arg)
{
	const int fd = *(const int *)arg;
	struct question question;

	while (recv(fd, &question, sizeof(question), 0) > 0) {
		struct reply r = {.request = question.header.nlmsg_seq};

		add_unix(&r, 7, "/run/server", 11);
		add_unix(&r, 8, "/run/other", 10);
		add_unix(&r, 8, "/run/other", 10); /* shown twice */
		add_unix(&r, 9, "/run/server", 11);
		*(int32_t *)add(&r, NLMSG_DONE, 4) = 0;
		send(fd, r.data, r.len, 0);
	}
	return NULL;
}

static void test_listeners(void **state)
{
	struct sockets sockets = {.net = -1};
	pthread_t kernel;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	sockets.diag = ends[0];
	assert_int_equal(pthread_create(&kernel, NULL, restart, &ends[1]), 0);
	assert_int_equal(sockets_find_listener(&sockets, "/run/other"), 8);
	assert_int_equal(sockets_find_listener(&sockets, "/run/server"), 0);
	assert_int_equal(sockets_find_listener(&sockets, "/run/none"), 0);
	assert_int_equal(sockets_find_listener(&sockets, "/run/other"), 8);
	assert_int_equal(sockets.requests, 4);
	assert_int_equal(sockets_find_listener(&sockets, "/run/other"), 8);
	assert_int_equal(sockets.requests, 4);
	assert_int_equal(sockets_find_listener(&sockets, ""), 0);
	sockets_close(&sockets);
	pthread_join(kernel, NULL);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replies), cmocka_unit_test(test_answers_to_others), cmocka_unit_test(test_errors),	      cmocka_unit_test(test_hostile_replies),
		cmocka_unit_test(test_lines),	cmocka_unit_test(test_damaged_lines), cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_connections_within_the_machine), cmocka_unit_test(test_other_ends),
		cmocka_unit_test(test_protocol_without_a_module), cmocka_unit_test(test_answers_that_were_left),
		cmocka_unit_test(test_listeners), cmocka_unit_test(test_a_common_other_end),
	};

	return cmocka_run_group_tests_name("sockets", tests, NULL, NULL);
}
