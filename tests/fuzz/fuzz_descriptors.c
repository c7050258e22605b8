/* SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proc/descriptors.h"
#include "proc/sockets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void describe(void *arg, const struct diag_socket *s)
{
	struct descriptor_socket facts;

	if (socket_describe(s, s->family == 1 ? "unix" : "tcp", arg, &facts) && facts.local)
		(void)strlen(facts.local);
}

/* The same bytes as a reply of SOCK_DIAG, an address, and text: a link, an fdinfo, lines. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_create();
	char *text = malloc(size + 1);
	struct watched_descriptor watched;
	struct diag_socket socket;
	struct descriptor d = {0};
	uint64_t mount;
	uint32_t request = 0;

	if (size >= 12)
		memcpy(&request, data + 8, sizeof(request)); /* that of the first message */
	if (arena && text) {
		sockets_parse(data, size, request, describe, arena);
		socket_address(data, size, arena);
		memcpy(text, data, size);
		text[size] = '\0';
		descriptor_parse_link(text, &d);
		descriptor_parse_info(text, &d, &mount);
		descriptor_parse_watched(text, &watched);
		if (sockets_parse_line(text, false, &socket))
			describe(arena, &socket);
		if (sockets_parse_line(text, true, &socket))
			describe(arena, &socket);
	}
	free(text);
	arena_destroy(arena);
	return 0;
}
