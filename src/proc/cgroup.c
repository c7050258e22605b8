/* SPDX-License-Identifier: MIT */
#include "proc/cgroup.h"

#include <ctype.h>
#include <string.h>

enum { MAX_TEXT = 16384, ID_LEN = 64, TASK_LEN = 32, UID_LEN = 36 };

/* A part of a path. */
struct piece {
	const char *p;
	size_t len;
};

static bool is(struct piece piece, const char *word)
{
	return piece.len == strlen(word) && memcmp(piece.p, word, piece.len) == 0;
}

static bool begins_with(struct piece piece, const char *word)
{
	return piece.len >= strlen(word) && memcmp(piece.p, word, strlen(word)) == 0;
}

static bool are_all(const char *p, size_t len, int (*is_one)(int c))
{
	for (size_t i = 0; i < len; i++)
		if (!is_one((unsigned char)p[i]))
			return false;
	return true;
}

/* Whose names containers begin with, or are below; systemd's units have the first form. */
static const char *find_engine(struct piece name)
{
	static const struct {
		const char *word, *engine;
	} engines[] = {
		{"docker", "docker"},
		{"cri-containerd", "containerd"},
		{"containerd", "containerd"},
		{"nerdctl", "containerd"},
		{"crio", "cri-o"},
		{"libpod", "podman"},
	};

	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (is(name, engines[i].word))
			return engines[i].engine;
	return NULL;
}

/* 1b4e28ba-2fa1-11d2-883f-0016d3cca427, in names of slices with _ for -; pods of files have a hash without either. */
static bool is_uid(const char *p, size_t len)
{
	static const size_t dashes[] = {8, 13, 18, 23};
	size_t start = 0;

	if (len == TASK_LEN)
		return are_all(p, len, isxdigit);
	if (len != UID_LEN)
		return false;
	for (size_t i = 0; i < sizeof(dashes) / sizeof(dashes[0]); start = dashes[i++] + 1)
		if ((p[dashes[i]] != '-' && p[dashes[i]] != '_') || !are_all(p + start, dashes[i] - start, isxdigit))
			return false;
	return are_all(p + start, len - start, isxdigit);
}

/* "podUID" or "kubepods-burstable-podUID" */
static void find_pod(struct piece piece, struct arena *arena, struct container *out)
{
	static const size_t lens[] = {UID_LEN, TASK_LEN};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		size_t before = piece.len - lens[i];
		const char *uid = piece.p + before;
		char text[UID_LEN + 1];

		if (piece.len < lens[i] + 3 || memcmp(uid - 3, "pod", 3) != 0 || (before > 3 && uid[-4] != '-') ||
		    !is_uid(uid, lens[i]))
			continue;
		for (size_t j = 0; j < lens[i]; j++)
			text[j] = uid[j] == '_' ? '-' : uid[j];
		out->pod = arena_intern_n(arena, text, lens[i]);
	}
}

/* The task's id and a number, as Amazon's ECS has it on machines of its own. */
static bool is_ecs_container(struct piece piece)
{
	return piece.len > TASK_LEN + 1 && piece.p[TASK_LEN] == '-' && are_all(piece.p, TASK_LEN, isxdigit) &&
	       are_all(piece.p + TASK_LEN + 1, piece.len - TASK_LEN - 1, isdigit);
}

static void set_container(struct container *out, const char *engine, struct piece id, struct arena *arena)
{
	out->engine = engine;
	out->id = arena_intern_n(arena, id.p, id.len);
}

/* `before`: the piece that it is below. */
static void find_container(struct piece before, struct piece piece, struct arena *arena, struct container *out)
{
	static const char payload[] = "lxc.payload.";
	struct piece id = {piece.p + (piece.len < ID_LEN ? 0 : piece.len - ID_LEN), ID_LEN};
	struct piece prefix = {piece.p, (size_t)(id.p - piece.p)};

	if (is(before, "lxc") || is(before, "lxc.payload"))
		set_container(out, "lxc", piece, arena);
	else if (begins_with(piece, payload))
		set_container(out, "lxc", (struct piece){piece.p + strlen(payload), piece.len - strlen(payload)}, arena);
	else if (is_ecs_container(piece))
		set_container(out, "ecs", piece, arena);
	else if (piece.len < ID_LEN || !are_all(id.p, id.len, isxdigit) || (prefix.len && prefix.p[prefix.len - 1] != '-'))
		return;
	else if (!prefix.len)
		set_container(out, find_engine(before), id, arena);
	else if (find_engine((struct piece){prefix.p, --prefix.len})) /* else a monitor: "libpod-conmon-" */
		set_container(out, find_engine(prefix), id, arena);
}

/* Without what systemd's units end with. */
static struct piece cut(struct piece piece)
{
	static const char *const ends[] = {".scope", ".slice"};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t len = strlen(ends[i]);

		if (piece.len > len && memcmp(piece.p + piece.len - len, ends[i], len) == 0)
			piece.len -= len;
	}
	return piece;
}

/* Containers may be in others: the innermost one counts. "SLICE:cri-containerd:ID" is a path of three, too. */
static void parse_path(struct piece path, struct arena *arena, struct container *out)
{
	struct piece before = {"", 0}, piece;
	const char *end = path.p + path.len;

	*out = (struct container){.cgroup = path.len > 1 ? arena_intern_n(arena, path.p, path.len) : NULL};
	for (const char *p = path.p; p < end; p += piece.len + 1, before = cut(piece)) {
		piece = (struct piece){p, 0};
		while (p + piece.len < end && p[piece.len] != '/' && p[piece.len] != ':')
			piece.len++;
		find_pod(cut(piece), arena, out);
		find_container(before, cut(piece), arena, out);
	}
}

/* "4:memory:/path", "1:name=systemd:/path", "0::/path" for the second version, which has all controllers. */
void cgroup_parse(const char *text, struct arena *arena, struct container *out)
{
	*out = (struct container){0};
	for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *list = memchr(line, ':', strcspn(line, "\n"));
		const char *path = list ? memchr(list + 1, ':', strcspn(list + 1, "\n")) : NULL;
		struct container found;
		bool is_main;

		if (!path)
			continue;
		is_main = path == list + 1 || begins_with((struct piece){list + 1, (size_t)(path - list - 1)}, "name=systemd");
		parse_path((struct piece){path + 1, strcspn(path + 1, "\n")}, arena, &found);
		if (found.id || found.pod) {
			*out = found;
			return;
		}
		if (is_main && found.cgroup)
			*out = found;
	}
}

void cgroup_read(const struct process *process, struct arena *arena, struct container *out)
{
	char text[MAX_TEXT];

	*out = (struct container){0};
	if (process_read_file(process->dir_fd, "cgroup", text, sizeof(text)) > 0)
		cgroup_parse(text, arena, out);
}
