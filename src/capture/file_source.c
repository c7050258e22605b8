/* SPDX-License-Identifier: MIT */
#include "capture/file_source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "capture/take.h"
#include "proc/family.h"
#include "proc/holders.h"

/* Not where BPF was refused for the threads, or is not wanted; nor where numbers in /proc are others than the kernel's. */
struct open_files *file_source_get(struct file_source *source, const struct capture *capture)
{
	const struct observer *observer = capture->observer;
	struct err why;

	if (source->files || source->refused)
		return source->files;
	source->refused = strcmp(observer->name, "bpf") != 0 || observer->slow_why || capture->unstoppable ||
			  open_files_create(&why, &source->files) < 0;
	return source->files;
}

void file_source_deinit(struct file_source *source)
{
	open_files_destroy(source->files);
}

struct search {
	struct held *things;
	size_t n;
	struct u64map sockets;	   /* by inode, in `things` */
	struct u64map descriptors; /* of pipes and fifos, by who waits for them */
	struct u64map places;	   /* of their inodes */
};

static uint64_t descriptor_key(pid_t pid, uint32_t fd)
{
	return (uint64_t)pid << 32 | fd;
}

static bool put(struct u64map *map, uint64_t key, size_t value)
{
	bool created;
	uint64_t *slot = u64map_put(map, key, &created);

	if (slot)
		*slot = value;
	return slot;
}

/* False when memory is exhausted. */
static bool want(struct search *s, struct open_files *files, bool *any_fifo)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct held *thing = &s->things[i];
		const bool is_socket = thing->kind == DESCRIPTOR_SOCKET;

		*any_fifo |= thing->kind == DESCRIPTOR_FIFO;
		open_files_want(files, thing->inode);
		if (!put(is_socket ? &s->sockets : &s->descriptors, is_socket ? thing->inode : descriptor_key(thing->pid, (uint32_t)thing->fd), i))
			return false;
	}
	return true;
}

/*
 * An inode's number is that of another one in another file system: a pipe or fifo is known by the descriptor of who waits for it. For a fifo what
 * files have for their numbers may be others than those of inodes.
 */
static bool find_places(struct search *s, const struct open_files *files)
{
	const struct file_record *record;
	size_t pos = 0;

	while ((record = open_files_next(files, &pos))) {
		uint64_t *slot = record->kind == FILE_PIPE ? u64map_find(&s->descriptors, descriptor_key((pid_t)record->tgid, record->fd)) : NULL;
		const struct held *thing = slot && *slot < s->n ? &s->things[*slot] : NULL;

		if (!thing || (thing->kind == DESCRIPTOR_PIPE && thing->inode != record->inode))
			continue;
		if (!put(&s->places, record->place, *slot))
			return false;
		*slot = s->n; /* the same number in the table of another thread is something else */
	}
	return true;
}

static bool find_holders(const struct search *s, const struct open_files *files)
{
	const struct file_record *record;
	struct holder *holder;
	size_t pos = 0;

	while ((record = open_files_next(files, &pos))) {
		const uint64_t *slot = record->kind == FILE_SOCKET ? u64map_find(&s->sockets, record->inode) : u64map_find(&s->places, record->place);

		if (!slot)
			continue;
		holder = holders_add(&s->things[*slot], (pid_t)record->tgid);
		if (!holder)
			return false;
		memcpy(holder->comm, record->comm, sizeof(record->comm));
		holder->reads |= record->mode & FILE_READS;
		holder->writes |= (record->mode & FILE_WRITES) != 0;
	}
	return true;
}

static int look_again(const struct search *s, struct open_files *files, bool any_fifo)
{
	struct err why;
	int rc;

	for (size_t i = 0; i < s->n; i++)
		open_files_want(files, s->things[i].inode);
	rc = open_files_of_all(files, any_fifo, &why);
	return rc == 0 && !find_holders(s, files) ? -ENOMEM : rc;
}

/* Who was started meanwhile has what its parent had, and may have a number that was passed by then. */
int file_source_holders(struct open_files *files, struct held *things, size_t n)
{
	const pid_t newest = process_newest();
	struct search s = {.things = things, .n = n};
	bool any_fifo = false, ok = want(&s, files, &any_fifo);
	struct err why;
	int rc = ok ? open_files_of_all(files, any_fifo, &why) : -ENOMEM;

	if (rc == 0 && !(find_places(&s, files) && find_holders(&s, files)))
		rc = -ENOMEM;
	if (rc == 0 && (!newest || process_newest() != newest))
		rc = look_again(&s, files, any_fifo);
	if (rc == 0)
		holders_judge(things, n, true);
	u64map_deinit(&s.sockets);
	u64map_deinit(&s.descriptors);
	u64map_deinit(&s.places);
	return rc;
}

bool file_source_describe(const struct file_record *record, struct arena *arena, struct descriptor *out)
{
	*out = (struct descriptor){.fd = (int)record->fd, .offset = -1, .left_ns = -1};
	if (record->kind != FILE_SOCKET) /* whose is not asked for in /proc */
		out->flags = record->flags & ~(uint32_t)O_CLOEXEC;
	if (record->kind == FILE_EVENTFD) {
		out->kind = DESCRIPTOR_EVENTFD;
		out->count = record->count;
		out->name = arena_intern(arena, "anon_inode:[eventfd]");
		return out->name;
	}
	out->kind = record->kind == FILE_SOCKET ? DESCRIPTOR_SOCKET : DESCRIPTOR_PIPE;
	out->inode = record->inode;
	out->name = arena_printf(arena, "%s:[%llu]", out->kind == DESCRIPTOR_SOCKET ? "socket" : "pipe", (unsigned long long)record->inode);
	return out->name;
}
