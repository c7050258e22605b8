/* SPDX-License-Identifier: MIT */
#include "proc/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/signals.h"

enum {
	REPLY_SIZE = 32 << 10, /* more the kernel does not send at once */
	FEW = 16,	     /* unix sockets are asked for one by one: the kernel searches all of them each time */
	MOST_EXACT = 1024,   /* other ends that are asked for */
	PATIENCE_MS = 1000, /* for the kernel's answer */
	ALL_STATES = 0xfff & ~(1 << TCP_TIME_WAIT),
};

/* What the kernel calls a protocol, and how it is asked for. */
static const struct protocol {
	const char *kernel; /* of the newer names only the beginning */
	const char *name;
	const char *file; /* below /proc/PID/net; NULL: it is only named */
	uint8_t family, number;
} protocols[] = {
	{"TCPv6", "tcp", "tcp6", AF_INET6, IPPROTO_TCP}, {"TCP", "tcp", "tcp", AF_INET, IPPROTO_TCP},
	{"UDPv6", "udp", "udp6", AF_INET6, IPPROTO_UDP}, {"UDP", "udp", "udp", AF_INET, IPPROTO_UDP},
	{"UNIX", "unix", "unix", AF_UNIX, 0},		 {"NETLINK", "netlink", NULL, 0, 0},
	{"PACKET", "packet", NULL, 0, 0},		 {"RAW", "raw", NULL, 0, 0},
	{"PING", "ping", NULL, 0, 0},			 {"AF_VSOCK", "vsock", NULL, 0, 0},
	{"MPTCP", "mptcp", NULL, 0, 0},			 {"SCTP", "sctp", NULL, 0, 0},
};

static const struct protocol *find_protocol(const char *kernel)
{
	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++)
		if (strncmp(kernel, protocols[i].kernel, strlen(protocols[i].kernel)) == 0)
			return &protocols[i];
	return NULL;
}

/* Namespaces */

static int open_diag(void)
{
	const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

struct visit_there {
	int ns;
	int diag;
};

static void *open_there(void *arg)
{
	struct visit_there *there = arg;

	if (setns(there->ns, CLONE_NEWNET) == 0)
		there->diag = open_diag();
	return NULL;
}

/* A socket stays in the namespace that it was made in; the thread that went there for it ends. */
static int open_diag_in(int ns)
{
	struct visit_there there = {.ns = ns, .diag = -1};
	sigset_t before;
	pthread_t thread;
	int rc;

	signals_block_for_worker(&before);
	rc = pthread_create(&thread, NULL, open_there, &there);
	signals_restore(&before);
	if (rc == 0)
		pthread_join(thread, NULL);
	return there.diag;
}

static uint64_t namespace_of(int dir)
{
	struct stat st;

	return fstatat(dir, "ns/net", &st, 0) == 0 ? st.st_ino : 0;
}

bool sockets_are_of(const struct sockets *sockets, const struct process *process)
{
	return sockets->ns && sockets->ns == namespace_of(process->mm_fd);
}

int sockets_open(const struct process *process, struct sockets *out)
{
	_cleanup_close_ int self = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC), ns = -1;

	*out = (struct sockets){.ns = namespace_of(process->mm_fd), .diag = -1, .net = -1};
	if (out->ns && self >= 0 && out->ns == namespace_of(self)) {
		out->diag = open_diag();
	} else if (out->ns) {
		ns = openat(process->mm_fd, "ns/net", O_RDONLY | O_CLOEXEC);
		if (ns >= 0)
			out->diag = open_diag_in(ns);
	}
	out->net = openat(process->mm_fd, "net", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return out->diag >= 0 || out->net >= 0 ? 0 : -errno;
}

void sockets_close(struct sockets *sockets)
{
	cleanup_close(&sockets->diag);
	cleanup_close(&sockets->net);
}

uint64_t sockets_count_tcp(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/net/sockstat", "re");
	char line[256];
	uint64_t n = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "TCP: inuse %*u orphan %*u tw %*u alloc %" SCNu64, &n) == 1)
			break;
	return n;
}

/* What is wanted */

struct wanted_socket *wanted_sockets_add(struct wanted_sockets *wanted, uint64_t inode, int fd)
{
	bool created;
	uint64_t *slot = u64map_put(&wanted->by_inode, inode, &created);

	if (!slot)
		return NULL;
	if (created) {
		*slot = wanted->len;
		if (!vec_push(wanted, (struct wanted_socket){.inode = inode, .fd = fd}))
			return NULL;
	}
	return &wanted->data[*slot];
}

/* The kernel does not list those that have neither been connected nor listen. */
bool wanted_sockets_tell(struct wanted_sockets *wanted, int fd, const struct diag_socket *s, uint64_t net, struct arena *arena)
{
	const char *tcp = find_protocol("TCP")->name;
	struct wanted_socket *w = wanted_sockets_add(wanted, s->inode, fd);

	if (!w)
		return false;
	w->found = true;
	w->net = net;
	w->facts.protocol = tcp;
	if (s->state == TCP_CLOSE)
		return true;
	inet_ends_of(s, &w->ends);
	return socket_describe(s, tcp, arena, &w->facts);
}

const struct wanted_socket *wanted_sockets_find(const struct wanted_sockets *wanted, uint64_t inode)
{
	const uint64_t *slot = u64map_find(&wanted->by_inode, inode);

	return slot ? &wanted->data[*slot] : NULL;
}

void wanted_sockets_deinit(struct wanted_sockets *wanted)
{
	vec_deinit(wanted);
	u64map_deinit(&wanted->by_inode);
}

struct finding {
	struct sockets *sockets;
	struct wanted_sockets *wanted;
	const struct protocol *protocol;
	struct arena *arena;
	struct u64map ports; /* of IP, that somebody listens on */
	struct socket_ends ends; /* of TCP connections within the machine */
	bool all_states;	 /* all connections of the protocol were shown */
	struct u64map peers; /* inodes of other ends of unix sockets, and the names that they have; 0: they were not asked for */
	uint64_t exact;	     /* the inode that was found */
	bool connects;  /* it is asked for one that is not connected yet */
	bool names_peers;    /* what is looked for are these names */
	bool only_ports;     /* of TCP: only who listens */
	bool no_memory;
};

static void found(void *arg, const struct diag_socket *s)
{
	struct finding *f = arg;
	uint64_t *slot = u64map_find(&f->wanted->by_inode, s->inode);
	struct wanted_socket *w = slot ? &f->wanted->data[*slot] : NULL;
	struct inet_ends ends;
	bool created;

	if (s->family != AF_UNIX && s->state == TCP_LISTEN && !u64map_put(&f->ports, s->local_port, &created))
		f->no_memory = true;
	inet_ends_of(s, &ends);
	if (f->protocol->number == IPPROTO_TCP && s->state != TCP_TIME_WAIT && inet_ends_are_here(&ends) && !socket_ends_add(&f->ends, &ends, s->inode))
		f->no_memory = true;
	if (!s->inode || !w || w->found)
		return;
	w->found = true;
	w->ends = ends;
	if (!socket_describe(s, f->protocol->name, f->arena, &w->facts) || (s->peer && !u64map_put(&f->peers, s->peer, &created)))
		f->no_memory = true;
}

/* The name of the other end. */
static void found_peer(void *arg, const struct diag_socket *s)
{
	struct finding *f = arg;
	uint64_t *slot = u64map_find(&f->peers, s->inode);
	struct descriptor_socket facts = {0};

	if (!slot || !s->has_name)
		return;
	if (!socket_describe(s, "unix", f->arena, &facts))
		f->no_memory = true;
	*slot = (uint64_t)(uintptr_t)facts.local;
}

static void found_exact(void *arg, const struct diag_socket *s)
{
	struct finding *f = arg;

	if (s->state != TCP_LISTEN || f->connects) /* where there is no such connection the kernel tells who listens */
		f->exact = s->inode;
}

/* By SOCK_DIAG */

/* Sends a request, and visits all that is replied. 0 or -errno. */
static int ask(struct sockets *sockets, const void *body, size_t len, bool all, void (*visit)(void *arg, const struct diag_socket *s), void *arg)
{
	struct {
		struct nlmsghdr header;
		uint8_t body[sizeof(struct inet_diag_req_v2)];
	} request = {.header = {.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + len),
				.nlmsg_type = SOCK_DIAG_BY_FAMILY,
				.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | (all ? NLM_F_DUMP : 0)),
				.nlmsg_seq = ++sockets->requests}};
	uint8_t reply[REPLY_SIZE];
	int rc = 1;

	memcpy(request.body, body, len);
	if (send(sockets->diag, &request, NLMSG_HDRLEN + len, 0) < 0)
		return -errno;
	while (rc > 0) {
		ssize_t got = recv(sockets->diag, reply, REPLY_SIZE, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		rc = sockets_parse(reply, (size_t)got, request.header.nlmsg_seq, visit, arg);
		if (!all && rc == 1)
			rc = 0; /* there is one answer */
	}
	return rc;
}

static uint32_t states_of(const struct finding *f)
{
	const struct wanted_sockets *wanted = f->wanted;
	bool only_listening = true;

	for (size_t i = 0; !f->only_ports && !wanted->only_listening && i < wanted->len; i++)
		only_listening &= wanted->data[i].found || wanted->data[i].listens;
	return only_listening ? 1 << TCP_LISTEN : ALL_STATES;
}

static int ask_inet(struct finding *f)
{
	struct inet_diag_req_v2 request = {.sdiag_family = f->protocol->family, .sdiag_protocol = f->protocol->number};

	request.idiag_states = f->protocol->number == IPPROTO_TCP ? states_of(f) : ~0u;
	f->all_states = request.idiag_states == ALL_STATES;
	return ask(f->sockets, &request, sizeof(request), true, found, f);
}

static int ask_unix(struct finding *f, uint64_t inode)
{
	struct unix_diag_req request = {
		.sdiag_family = AF_UNIX,
		.udiag_states = f->wanted->only_listening ? 1 << TCP_LISTEN : ~0u,
		.udiag_ino = (uint32_t)inode,
		.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN,
		.udiag_cookie = {~0u, ~0u},
	};

	return ask(f->sockets, &request, sizeof(request), !inode, f->names_peers ? found_peer : found, f);
}

/* A few by inode, else all at once. */
static int ask_unix_wanted(struct finding *f)
{
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < f->wanted->len; i++)
		n += !f->wanted->data[i].found;
	if (n > FEW || f->wanted->only_listening)
		return ask_unix(f, 0);
	for (size_t i = 0; rc != -ENOMEM && i < f->wanted->len; i++)
		if (!f->wanted->data[i].found)
			rc = ask_unix(f, f->wanted->data[i].inode); /* it may be of another kind */
	return rc;
}

/* What the other ends of unix sockets are called: whoever connects has no name, and the one who accepts has. */
static void name_peers(struct finding *f)
{
	static const char none[] = "";

	f->names_peers = true;
	if (f->peers.len > FEW)
		ask_unix(f, 0);
	for (size_t i = 0; i < f->wanted->len; i++) {
		struct descriptor_socket *s = &f->wanted->data[i].facts;
		uint64_t *slot = s->peer ? u64map_find(&f->peers, s->peer) : NULL;

		if (slot && !*slot && f->peers.len <= FEW) { /* many may have the same */
			*slot = (uint64_t)(uintptr_t)none;
			ask_unix(f, s->peer);
		}
		if (slot && *slot && *slot != (uint64_t)(uintptr_t)none)
			s->remote = (const char *)(uintptr_t)*slot;
	}
}

/* Whichever family it is of. */
static uint64_t ask_for_end(struct finding *f, const struct inet_ends *ends)
{
	const bool is_ipv4 = inet_ends_are_of_ipv4(ends);
	const size_t skip = is_ipv4 ? 12 : 0;
	struct inet_diag_req_v2 request = {
		.sdiag_family = is_ipv4 ? AF_INET : AF_INET6,
		.sdiag_protocol = f->protocol->number,
		.idiag_states = ~0u,
		.id = {.idiag_sport = htons(ends->local_port),
		       .idiag_dport = htons(ends->remote_port),
		       .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}},
	};

	memcpy(request.id.idiag_src, ends->local + skip, sizeof(ends->local) - skip);
	memcpy(request.id.idiag_dst, ends->remote + skip, sizeof(ends->remote) - skip);
	f->exact = 0;
	ask(f->sockets, &request, sizeof(request), false, found_exact, f);
	return f->exact;
}

static uint64_t ask_for_other_end(struct finding *f, const struct inet_ends *ends)
{
	struct inet_ends other;

	inet_ends_other(ends, &other);
	return ask_for_end(f, &other);
}

/*
 * A process may have sockets of other network namespaces than its own, which is the one that is asked. Of one that was told it is known where its is:
 * if it is to be found here, that is here.
 */
static bool is_elsewhere(struct finding *f, const struct wanted_socket *w)
{
	enum { TRIES = 8 }; /* it may just be closed */
	struct sockets *sockets = f->sockets;

	if (w->net && !sockets->ns_place && sockets->diag >= 0 && w->ends.remote_port && sockets->tries++ < TRIES && ask_for_end(f, &w->ends) == w->inode)
		sockets->ns_place = w->net;
	return w->net && w->net != sockets->ns_place;
}

/*
 * The socket at the other end was mostly shown with the others. But it may be of the other family, or there is none yet, and the one that
 * listens is asked for: then the kernel is.
 */
static void find_other_ends(struct finding *f)
{
	unsigned asked = 0;

	if (f->protocol->number != IPPROTO_TCP) /* others answer for the socket itself, or for whoever listens */
		return;
	for (size_t i = 0; i < f->wanted->len; i++) {
		struct wanted_socket *w = &f->wanted->data[i];

		if (!w->found || !w->wants_peer || w->facts.peer || w->facts.protocol != f->protocol->name || w->facts.listening ||
		    !inet_ends_are_here(&w->ends))
			continue;
		f->connects = w->facts.state && strcmp(w->facts.state, "connecting") == 0;
		if (f->connects ? is_elsewhere(f, w) : w->net || f->only_ports) /* told: it is found with those who have it */
			continue;
		if (!f->connects && socket_ends_find_other(&f->ends, &w->ends, &w->facts.peer))
			continue;
		if (f->sockets->diag < 0 || (!f->connects && f->all_states && !inet_ends_are_of_ipv4(&w->ends)) || asked == MOST_EXACT)
			continue;
		w->facts.peer = ask_for_other_end(f, &w->ends);
		asked++;
	}
}

static void find_accepted(struct finding *f)
{
	f->connects = false;
	for (size_t i = 0; i < f->wanted->len; i++) {
		struct wanted_socket *w = &f->wanted->data[i];

		w->facts.accepted |= w->facts.protocol == f->protocol->name && w->facts.remote && u64map_find(&f->ports, w->ends.local_port) &&
				     !is_elsewhere(f, w);
	}
}

/* By /proc/PID/net */

static int read_file(struct finding *f)
{
	_cleanup_fclose_ FILE *file = NULL;
	_cleanup_free_ char *line = NULL;
	struct diag_socket s;
	size_t size = 0;
	int fd = openat(f->sockets->net, f->protocol->file, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	file = fdopen(fd, "r");
	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	while (getline(&line, &size, file) > 0)
		if (sockets_parse_line(line, f->protocol->family == AF_UNIX, &s))
			found(f, &s);
	return 0;
}

/* Both */

/* -ENOENT: the kernel's part of SOCK_DIAG for this protocol is a module that is not there; or a socket is gone. */
static int ask_for_protocol(struct finding *f)
{
	if (f->sockets->diag < 0)
		return -ENOENT;
	return f->protocol->family == AF_UNIX ? ask_unix_wanted(f) : ask_inet(f);
}

static void find_of_protocol(struct finding *f)
{
	if (!f->protocol->file)
		return;
	if (ask_for_protocol(f) == -ENOENT)
		read_file(f);
	if (f->protocol->family == AF_UNIX) {
		name_peers(f);
	} else {
		find_accepted(f);
		find_other_ends(f);
	}
}

/* That of the first one of which nothing is known; NULL: it has none that is known here. */
static const struct protocol *next_protocol(struct wanted_sockets *wanted, const struct descriptors *dirs, bool *left)
{
	char kernel[32];

	for (size_t i = 0; i < wanted->len; i++) {
		struct wanted_socket *w = &wanted->data[i];
		const struct protocol *protocol;

		if (w->found || w->tried)
			continue;
		w->tried = true;
		*left = true;
		protocol = descriptors_protocol(dirs, w->fd, w->inode, kernel, sizeof(kernel)) ? find_protocol(kernel) : NULL;
		if (!protocol)
			return NULL;
		w->facts.protocol = protocol->name; /* if no more is found */
		return protocol;
	}
	*left = false;
	return NULL;
}

/* Of very many only those that listen: of the kinds that do. */
static void find_listening(struct finding *f)
{
	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
		f->protocol = &protocols[i];
		if (protocols[i].number == IPPROTO_TCP || protocols[i].family == AF_UNIX)
			find_of_protocol(f);
	}
}

static bool was_told(const struct wanted_sockets *wanted)
{
	for (size_t i = 0; i < wanted->len; i++)
		if (wanted->data[i].net)
			return true;
	return false;
}

/* For sockets that were told of: which of them were accepted, and whom those connect to that are not connected yet. */
static void find_ports(struct finding *f, uint64_t done)
{
	f->only_ports = true;
	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
		f->protocol = &protocols[i];
		if (protocols[i].number == IPPROTO_TCP && !(done >> i & 1))
			find_of_protocol(f);
	}
}

/* Who is to be connected to. */
struct listener_search {
	const char *name;
	struct arena *arena;
	uint64_t inode;
	bool several;
};

static void found_listener(void *arg, const struct diag_socket *s)
{
	struct listener_search *search = arg;
	struct descriptor_socket facts = {0};

	if (!s->has_name || !socket_describe(s, "unix", search->arena, &facts) || strcmp(facts.local, search->name) != 0)
		return;
	search->several |= search->inode && search->inode != s->inode;
	search->inode = s->inode;
}

static uint64_t ask_for_listener(struct sockets *sockets, const char *name)
{
	const struct unix_diag_req request = {
		.sdiag_family = AF_UNIX, .udiag_states = 1 << TCP_LISTEN, .udiag_show = UDIAG_SHOW_NAME, .udiag_cookie = {~0u, ~0u}};
	struct listener_search search = {.name = name, .arena = arena_create()};
	int rc = search.arena && sockets->diag >= 0 ? ask(sockets, &request, sizeof(request), true, found_listener, &search) : -ENOENT;

	arena_destroy(search.arena);
	return rc == 0 && !search.several ? search.inode : 0;
}

/* Threads that wait mostly wait for the same one, and the kernel shows all sockets each time. */
uint64_t sockets_find_listener(struct sockets *sockets, const char *name)
{
	if (!name[0] || strlen(name) >= sizeof(sockets->asked))
		return 0;
	if (strcmp(name, sockets->asked) != 0) {
		strcpy(sockets->asked, name);
		sockets->listener = ask_for_listener(sockets, name);
	}
	return sockets->listener;
}

int sockets_find(struct sockets *sockets, struct wanted_sockets *wanted, const struct descriptors *dirs, struct arena *arena)
{
	struct finding f = {.sockets = sockets, .wanted = wanted, .arena = arena};
	uint64_t done = 0;
	bool left = true;

	if (wanted->only_listening) {
		find_listening(&f);
		left = false;
	}
	while (left) {
		f.protocol = next_protocol(wanted, dirs, &left);
		if (!f.protocol || done >> (f.protocol - protocols) & 1)
			continue;
		done |= UINT64_C(1) << (f.protocol - protocols); /* what was not found by then is of another namespace, or gone */
		find_of_protocol(&f);
	}
	if (was_told(wanted))
		find_ports(&f, done);
	socket_ends_deinit(&f.ends);
	u64map_deinit(&f.peers);
	u64map_deinit(&f.ports);
	return f.no_memory ? -ENOMEM : 0;
}
