/* SPDX-License-Identifier: MIT */
#include "proc/socket_ends.h"

#include <string.h>
#include <sys/socket.h>

#include "base/hash.h"
#include "proc/sockets.h"

static const uint8_t of_ipv4[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static void put_address(uint8_t family, const uint8_t address[static 16], uint8_t out[static 16])
{
	if (family != AF_INET) {
		memcpy(out, address, 16);
		return;
	}
	memcpy(out, of_ipv4, sizeof(of_ipv4));
	memcpy(out + sizeof(of_ipv4), address, 4);
}

void inet_ends_of(const struct diag_socket *s, struct inet_ends *out)
{
	*out = (struct inet_ends){.local_port = s->local_port, .remote_port = s->remote_port};
	put_address(s->family, s->local, out->local);
	put_address(s->family, s->remote, out->remote);
}

static bool is_of_ipv4(const uint8_t address[static 16])
{
	return memcmp(address, of_ipv4, sizeof(of_ipv4)) == 0;
}

bool inet_ends_are_of_ipv4(const struct inet_ends *ends)
{
	return is_of_ipv4(ends->local) && is_of_ipv4(ends->remote);
}

bool inet_ends_are_here(const struct inet_ends *ends)
{
	const size_t first = sizeof(of_ipv4);

	if (!ends->remote_port)
		return false;
	return memcmp(ends->local, ends->remote, sizeof(ends->local)) == 0 ||
	       (inet_ends_are_of_ipv4(ends) && ends->local[first] == 127 && ends->remote[first] == 127);
}

void inet_ends_other(const struct inet_ends *ends, struct inet_ends *out)
{
	*out = (struct inet_ends){.local_port = ends->remote_port, .remote_port = ends->local_port};
	memcpy(out->local, ends->remote, sizeof(out->local));
	memcpy(out->remote, ends->local, sizeof(out->remote));
}

static uint64_t hash_of(const struct inet_ends *ends)
{
	return hash_bytes(HASH_SEED, ends, sizeof(*ends));
}

bool socket_ends_add(struct socket_ends *all, const struct inet_ends *ends, uint64_t inode)
{
	return chains_add(&all->by_ends, hash_of(ends)) && vec_push(all, (struct socket_end){.ends = *ends, .inode = inode});
}

void socket_ends_deinit(struct socket_ends *all)
{
	chains_deinit(&all->by_ends);
	vec_deinit(all);
}

bool socket_ends_find_other(const struct socket_ends *all, const struct inet_ends *ends, uint64_t *inode)
{
	const struct socket_end *found = NULL;
	struct inet_ends other;

	inet_ends_other(ends, &other);
	for (size_t i = chains_first(&all->by_ends, hash_of(&other)); i; i = chains_next(&all->by_ends, i)) {
		const struct socket_end *end = &all->data[i - 1];

		if (memcmp(&end->ends, &other, sizeof(other)) != 0)
			continue;
		if (found && found->inode != end->inode)
			return false;
		found = end;
	}
	if (found)
		*inode = found->inode;
	return found;
}
