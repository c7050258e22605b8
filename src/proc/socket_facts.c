/* SPDX-License-Identifier: MIT */
/* What the kernel tells of a socket, from its bytes and lines to words. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/cursor.h"
#include "proc/sockets.h"

/* Attributes that follow a unix socket: each a length, a type, and its bytes, all in the host's order. */
static void parse_attributes(struct cursor *c, struct diag_socket *s)
{
	while (cursor_left(c) >= sizeof(struct rtattr)) {
		struct rtattr attribute;
		struct cursor value;
		uint32_t numbers[2] = {0};

		cursor_bytes(c, &attribute, sizeof(attribute));
		if (attribute.rta_len < sizeof(attribute) || attribute.rta_len - sizeof(attribute) > cursor_left(c))
			return;
		value = cursor_take(c, attribute.rta_len - sizeof(attribute));
		cursor_skip(c, RTA_ALIGN(attribute.rta_len) - attribute.rta_len);
		if (attribute.rta_type == UNIX_DIAG_NAME && cursor_left(&value)) {
			s->name = (const char *)value.p;
			s->name_len = cursor_left(&value);
			s->has_name = true;
		} else if (attribute.rta_type == UNIX_DIAG_PEER && cursor_left(&value) >= 4) {
			cursor_bytes(&value, numbers, 4);
			s->peer = numbers[0];
		} else if (attribute.rta_type == UNIX_DIAG_RQLEN && cursor_left(&value) >= 8) {
			cursor_bytes(&value, numbers, 8);
			s->unread = numbers[0];
			s->unsent = numbers[1];
		}
	}
}

static bool parse_unix(struct cursor *c, struct diag_socket *s)
{
	struct unix_diag_msg m;

	if (!cursor_bytes(c, &m, sizeof(m)))
		return false;
	*s = (struct diag_socket){.inode = m.udiag_ino, .family = AF_UNIX, .type = m.udiag_type, .state = m.udiag_state};
	parse_attributes(c, s);
	return true;
}

static bool parse_inet(struct cursor *c, struct diag_socket *s)
{
	struct inet_diag_msg m;

	if (!cursor_bytes(c, &m, sizeof(m)))
		return false;
	*s = (struct diag_socket){
		.inode = m.idiag_inode,
		.family = m.idiag_family,
		.state = m.idiag_state,
		.local_port = ntohs(m.id.idiag_sport),
		.remote_port = ntohs(m.id.idiag_dport),
		.unread = m.idiag_rqueue,
		.unsent = m.idiag_wqueue,
	};
	memcpy(s->local, m.id.idiag_src, sizeof(s->local));
	memcpy(s->remote, m.id.idiag_dst, sizeof(s->remote));
	return true;
}

/* The kernel's errors; 0: it is none. */
static int read_error(struct cursor *body)
{
	int32_t code = 0;

	return cursor_bytes(body, &code, sizeof(code)) && code < 0 && code > -4096 ? code : 0;
}

/* 1: go on; 0: it was the last one; -errno, with which a dump that was begun may end, too. */
static int parse_message(uint16_t type, struct cursor *body, void (*visit)(void *arg, const struct diag_socket *socket), void *arg)
{
	struct diag_socket s;
	uint8_t family;
	int error;

	if (type == NLMSG_DONE || type == NLMSG_ERROR) {
		error = read_error(body);
		return error || type == NLMSG_DONE ? error : -EBADMSG;
	}
	if (type != SOCK_DIAG_BY_FAMILY || !cursor_left(body))
		return 1; /* not for us */
	family = *body->p;
	if (family == AF_UNIX ? parse_unix(body, &s) : (family == AF_INET || family == AF_INET6) && parse_inet(body, &s))
		visit(arg, &s);
	return 1;
}

int sockets_parse(const void *reply, size_t len, uint32_t request, void (*visit)(void *arg, const struct diag_socket *socket), void *arg)
{
	struct cursor c = cursor_init(reply, len);
	int rc = 2;

	while (rc > 0 && cursor_left(&c)) {
		struct nlmsghdr header;
		struct cursor body;
		size_t padding;

		if (!cursor_bytes(&c, &header, sizeof(header)) || header.nlmsg_len < sizeof(header) ||
		    header.nlmsg_len - sizeof(header) > cursor_left(&c))
			return -EBADMSG;
		body = cursor_take(&c, header.nlmsg_len - sizeof(header));
		padding = NLMSG_ALIGN((size_t)header.nlmsg_len) - header.nlmsg_len;
		cursor_skip(&c, padding < cursor_left(&c) ? padding : cursor_left(&c));
		if (header.nlmsg_seq == request)
			rc = parse_message(header.nlmsg_type, &body, visit, arg);
	}
	return rc;
}

/* Lines */

/* "0100007F:1F90": words of four bytes in the host's order. */
static const char *parse_end(const char *text, uint8_t address[static 16], uint16_t *port, uint8_t *family)
{
	const size_t digits = strspn(text, "0123456789ABCDEFabcdef");
	char word[9] = "", *end;

	if ((digits != 8 && digits != 32) || text[digits] != ':')
		return NULL;
	for (size_t i = 0; i < digits / 8; i++) {
		uint32_t value;

		memcpy(word, text + 8 * i, 8);
		value = (uint32_t)strtoul(word, NULL, 16);
		memcpy(address + 4 * i, &value, 4);
	}
	*family = digits == 8 ? AF_INET : AF_INET6;
	*port = (uint16_t)strtoul(text + digits + 1, &end, 16);
	return *end == ' ' ? end + 1 : NULL;
}

/* "  0: LOCAL REMOTE STATE TX:RX TR:WHEN RETRANSMITS UID TIMEOUT INODE …" */
static bool parse_inet_line(const char *line, struct diag_socket *out)
{
	const char *at = strchr(line, ':');
	uint8_t family;
	unsigned state;

	at = at && at[1] == ' ' ? parse_end(at + 2, out->local, &out->local_port, &out->family) : NULL;
	at = at ? parse_end(at, out->remote, &out->remote_port, &family) : NULL;
	if (!at || sscanf(at, "%x %" SCNx32 ":%" SCNx32 " %*x:%*x %*x %*d %*d %" SCNu64, &state, &out->unsent, &out->unread, &out->inode) != 4)
		return false;
	out->state = (uint8_t)state;
	return true;
}

/* "0000000000000000: REFS PROTOCOL FLAGS TYPE STATE INODE [NAME]"; the state is the socket's own (SS_…), and a flag tells who listens. */
static bool parse_unix_line(const char *line, struct diag_socket *out)
{
	enum { ACCEPTS = 1 << 16, SS_CONNECTED_STATE = 3 };
	unsigned flags, type, state;
	int name = 0;

	if (sscanf(line, "%*x: %*x %*x %x %x %x %" SCNu64 "%n", &flags, &type, &state, &out->inode, &name) != 4 || !name)
		return false;
	out->family = AF_UNIX;
	out->type = (uint8_t)type;
	out->state = flags & ACCEPTS ? TCP_LISTEN : state == SS_CONNECTED_STATE ? TCP_ESTABLISHED : TCP_CLOSE;
	if (line[name] == ' ') {
		out->name = line + name + 1;
		out->name_len = strcspn(out->name, "\n");
		out->has_name = out->name_len > 0;
	}
	return true;
}

bool sockets_parse_line(const char *line, bool is_unix, struct diag_socket *out)
{
	*out = (struct diag_socket){0};
	return is_unix ? parse_unix_line(line, out) : parse_inet_line(line, out);
}

/* Words */

/* Where it ends. */
static char *put_number(char *at, unsigned value)
{
	if (value >= 10)
		at = put_number(at, value / 10);
	*at = (char)('0' + value % 10);
	return at + 1;
}

/* By hand: there may be thousands, and inet_ntop() takes longer than all else that is done for them. */
static char *put_ipv4(char *at, const uint8_t *address)
{
	for (int i = 0; i < 4; i++) {
		if (i)
			*at++ = '.';
		at = put_number(at, address[i]);
	}
	return at;
}

static char *put_ipv6(char *at, const uint8_t *address)
{
	*at++ = '[';
	inet_ntop(AF_INET6, address, at, INET6_ADDRSTRLEN);
	at += strlen(at);
	*at++ = ']';
	return at;
}

static const char *format_ip(uint8_t family, const uint8_t *address, uint16_t port, struct arena *arena)
{
	static const uint8_t mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	char text[INET6_ADDRSTRLEN + sizeof("[]:65535")], *end;

	if (family == AF_INET)
		end = put_ipv4(text, address);
	else if (memcmp(address, mapped, sizeof(mapped)) == 0)
		end = put_ipv4(text, address + sizeof(mapped));
	else
		end = put_ipv6(text, address);
	*end++ = ':';
	end = put_number(end, port);
	return arena_intern_n(arena, text, (size_t)(end - text));
}

/* An abstract one begins with NUL, and is written with @; a path may have a NUL at its end. */
static const char *format_name(const char *name, size_t len, struct arena *arena)
{
	char text[SOCKET_NAME_SIZE];

	_Static_assert(sizeof(text) >= sizeof(((struct sockaddr_un *)NULL)->sun_path) + 2, "a NUL in front, and one behind");
	if (len >= sizeof(text))
		len = sizeof(text) - 1;
	memcpy(text, name, len);
	text[len] = '\0';
	if (!text[0])
		text[0] = '@';
	for (size_t i = strlen(text); i < len && text[0] == '@'; i++)
		if (!text[i])
			text[i] = '@'; /* NULs may be anywhere in it */
	return arena_intern(arena, text);
}

static const char *state_name(uint8_t state, bool is_unix)
{
	static const char *const names[] = {
		[TCP_ESTABLISHED] = "established", [TCP_SYN_SENT] = "connecting",     [TCP_SYN_RECV] = "being connected",
		[TCP_FIN_WAIT1] = "closing",	   [TCP_FIN_WAIT2] = "closed by us",   [TCP_TIME_WAIT] = "closed",
		[TCP_CLOSE] = "not connected",	   [TCP_CLOSE_WAIT] = "closed by the other end", [TCP_LAST_ACK] = "closing",
		[TCP_LISTEN] = "listening",	   [TCP_CLOSING] = "closing",
	};

	if (is_unix && state == TCP_CLOSE)
		return NULL; /* datagram sockets have no other */
	return state < sizeof(names) / sizeof(names[0]) ? names[state] : NULL;
}

bool socket_describe(const struct diag_socket *s, const char *protocol, struct arena *arena, struct descriptor_socket *out)
{
	const bool is_unix = s->family == AF_UNIX, is_udp = strcmp(protocol, "udp") == 0;

	*out = (struct descriptor_socket){
		.protocol = protocol,
		.state = is_udp ? NULL : state_name(s->state, is_unix),
		.peer = s->peer,
		.unread = s->unread,
		.unsent = s->unsent,
		.listening = s->state == TCP_LISTEN && !is_udp,
	};
	if (is_unix) {
		out->local = s->has_name ? format_name(s->name, s->name_len, arena) : NULL;
		return out->local || !s->has_name;
	}
	out->local = format_ip(s->family, s->local, s->local_port, arena);
	if (s->remote_port)
		out->remote = format_ip(s->family, s->remote, s->remote_port, arena);
	return out->local && (out->remote || !s->remote_port);
}

const char *socket_address(const void *address, size_t len, struct arena *arena)
{
	struct sockaddr_storage a = {0};
	const struct sockaddr_in *in = (const struct sockaddr_in *)&a;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&a;
	const size_t path = offsetof(struct sockaddr_un, sun_path);

	if (len > sizeof(a) || len < sizeof(a.ss_family))
		return NULL;
	memcpy(&a, address, len);
	if (a.ss_family == AF_INET && len >= sizeof(*in))
		return format_ip(AF_INET, (const uint8_t *)&in->sin_addr, ntohs(in->sin_port), arena);
	if (a.ss_family == AF_INET6 && len >= offsetof(struct sockaddr_in6, sin6_scope_id))
		return format_ip(AF_INET6, in6->sin6_addr.s6_addr, ntohs(in6->sin6_port), arena);
	if (a.ss_family == AF_UNIX && len > path)
		return format_name((const char *)&a + path, len - path, arena);
	return NULL;
}
