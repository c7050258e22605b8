/* SPDX-License-Identifier: MIT */
#include "capture/file_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "capture/blocking.h"
#include "capture/file_ahead.h"
#include "capture/take.h"
#include "proc/descriptors.h"
#include "proc/family.h"
#include "proc/holders.h"
#include "proc/sockets.h"

bool file_source_may_be_bpf(const struct capture *capture)
{
	return strcmp(capture->observer->name, "bpf") == 0 && !capture->observer->slow_why && !capture->unstoppable;
}

/* NULL: it cannot be had, or is not to be used. */
static struct open_files *load(struct file_source *source, const struct capture *capture)
{
	struct err why;

	if (source->files || source->refused)
		return source->files;
	source->refused = !file_source_may_be_bpf(capture) || open_files_create(file_source_tells_tcp(source, capture), &why, &source->files) < 0;
	return source->files;
}

bool file_source_list_is_long(void)
{
	enum { MANY = 4096 };

	return sockets_count_tcp() > MANY;
}

bool file_source_tells_tcp(struct file_source *source, const struct capture *capture)
{
	if (!source->decided)
		source->tells_tcp = file_source_may_be_bpf(capture) && file_source_list_is_long();
	source->decided = true;
	return source->tells_tcp && !source->refused;
}

void file_source_deinit(struct file_source *source)
{
	open_files_destroy(source->files);
	file_look_deinit(&source->of_one);
	file_look_deinit(&source->of_all);
	vec_deinit(&source->far);
	u64map_deinit(&source->far_of);
}

void file_source_take_ahead(struct file_source *source, struct file_ahead *ahead)
{
	if (!ahead)
		return;
	source->files = file_ahead_end(ahead, &source->tells_tcp);
	source->refused = !source->files;
	source->decided = true;
	source->ahead = ahead;
}

/* Looks */

size_t file_wants_count(const struct file_wants *wants)
{
	size_t n = 0;

	for (size_t i = 0; i < FILE_WANTED_WORDS; i++)
		n += (size_t)__builtin_popcountll(wants->numbers[i]);
	return n;
}

void file_wants_blocked(struct file_wants *wants, const struct blocking_call *call, const struct snap_syscall *syscall)
{
	int fds[2];

	for (unsigned i = 0, n = blocking_descriptors(call, syscall, fds); i < n; i++)
		if (fds[i] >= 0)
			file_wants_add(wants, (uint64_t)fds[i]);
}

/* Of the descriptors of a thread: what is wanted now was wanted then, too. */
static bool has_shown(const struct file_look *look, const struct file_wants *wants)
{
	bool has = true;

	for (size_t i = 0; has && i < FILE_WANTED_WORDS; i++)
		has = !(wants->numbers[i] & ~look->wants.numbers[i]);
	return has;
}

int file_look_at_one(struct open_files *files, pid_t tid, struct file_look *look)
{
	struct err why;
	int rc = open_files_look(files, tid, &look->wants, &why, &look->records);

	look->done = rc == 0;
	return rc;
}

/* Who was started meanwhile has what its parent had, and may have a number that was passed by then. */
static int look_at_all(struct open_files *files, struct file_look *look)
{
	const pid_t newest = process_newest();
	struct err why;
	int rc = open_files_look(files, 0, &look->wants, &why, &look->records);

	look->again.words.len = 0;
	return rc == 0 && (!newest || process_newest() != newest) ? open_files_look(files, 0, &look->wants, &why, &look->again) : rc;
}

void file_look_deinit(struct file_look *look)
{
	file_records_deinit(&look->records);
	file_records_deinit(&look->again);
}

const struct file_look *file_source_of(struct file_source *source, const struct capture *capture, pid_t tid, const struct file_wants *wants)
{
	const struct file_look *ahead = source->ahead ? file_ahead_of(source->ahead, tid) : NULL;
	struct open_files *files;

	if (ahead && has_shown(ahead, wants))
		return ahead;
	files = load(source, capture);
	source->of_one.wants = *wants;
	return files && file_look_at_one(files, tid, &source->of_one) == 0 ? &source->of_one : NULL;
}

/* Sockets */

static void read_tcp(const struct file_record *record, struct diag_socket *out)
{
	const struct file_tcp *tcp = file_tcp_of(record);

	*out = (struct diag_socket){
		.inode = record->inode,
		.family = tcp->family,
		.state = tcp->state,
		.local_port = tcp->local_port,
		.remote_port = tcp->remote_port,
		.unread = tcp->unread,
		.unsent = tcp->unsent,
	};
	memcpy(out->local, tcp->local, sizeof(out->local));
	memcpy(out->remote, tcp->remote, sizeof(out->remote));
}

bool file_source_tell(const struct file_record *record, struct wanted_sockets *wanted, struct arena *arena)
{
	struct diag_socket socket;

	read_tcp(record, &socket);
	return wanted_sockets_tell(wanted, (int)record->fd, &socket, file_tcp_of(record)->net, arena);
}

bool file_source_keep_far(struct file_source *source, const struct wanted_socket *socket)
{
	struct tcp_ends far = {.net = socket->net};
	uint64_t *slot;
	bool created;

	if (!socket->net || !socket->wants_peer || socket->facts.peer || socket->facts.listening || !inet_ends_are_here(&socket->ends))
		return true;
	inet_ends_other(&socket->ends, &far.ends);
	slot = u64map_put(&source->far_of, socket->inode, &created);
	if (!slot)
		return false;
	*slot = created ? source->far.len : *slot;
	return !created || vec_push(&source->far, far);
}

const struct tcp_ends *file_source_far(const struct file_source *source, uint64_t inode)
{
	const uint64_t *slot = u64map_find(&source->far_of, inode);

	return slot ? &source->far.data[*slot] : NULL;
}

/* Holders */

enum { SEVERAL = 1 }; /* in place of an inode: more than one socket has these ends, on several interfaces */

struct search {
	struct held *things;
	size_t n;
	struct u64map sockets;	   /* by inode, in `things` */
	struct u64map far;	   /* by a hash of the ends */
	struct u64map descriptors; /* of pipes and fifos, by who waits for them, */
	struct u64map own;	   /* but by inode where that is a thread with a table of its own */
	struct u64map places;	   /* of their inodes: one thing that is there, */
	size_t *same;		   /* and for each thing another one there, or itself */
};

static uint64_t descriptor_key(pid_t pid, uint32_t fd)
{
	return (uint64_t)pid << 32 | fd;
}

/* Most things are of one kind, and go to one map. */
static bool put(const struct search *s, struct u64map *map, uint64_t key, size_t value)
{
	bool created;
	uint64_t *slot = map->len || u64map_reserve(map, s->n) ? u64map_put(map, key, &created) : NULL;

	if (slot)
		*slot = value;
	return slot;
}

/* A file system may show the same fifo as several files. */
static bool put_place(struct search *s, uint64_t place, size_t thing)
{
	bool created;
	uint64_t *slot = s->places.len || u64map_reserve(&s->places, s->n) ? u64map_put(&s->places, place, &created) : NULL;

	if (!slot)
		return false;
	s->same[thing] = created ? thing : *slot;
	*slot = thing;
	return true;
}

static uint64_t hash_of(const struct tcp_ends *far)
{
	return hash_bytes(HASH_SEED ^ far->net, &far->ends, sizeof(far->ends));
}

/* False when memory is exhausted. */
static bool want(struct search *s, struct file_wants *wants)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct held *thing = &s->things[i];
		const bool is_socket = thing->kind == DESCRIPTOR_SOCKET;

		if (thing->far)
			file_wants_add_tcp(wants, thing->far->ends.local_port, thing->far->ends.remote_port);
		else
			file_wants_add(wants, thing->inode);
		wants->any_fifo |= thing->kind == DESCRIPTOR_FIFO;
		if (thing->far ? !put(s, &s->far, hash_of(thing->far), i)
		    : is_socket ? !put(s, &s->sockets, thing->inode, i)
		    : thing->own_table ? thing->kind == DESCRIPTOR_PIPE && !put(s, &s->own, thing->inode, i)
				       : !put(s, &s->descriptors, descriptor_key(thing->pid, (uint32_t)thing->fd), i))
			return false;
	}
	return true;
}

/*
 * An inode's number is that of another one in another file system: a pipe or fifo is known by the descriptor of who waits for it. For a fifo what
 * files have for their numbers may be others than those of inodes.
 */
static uint64_t *find_waited_for(const struct search *s, const struct file_record *record)
{
	uint64_t *slot = u64map_find(&s->descriptors, descriptor_key((pid_t)record->tgid, record->fd));
	const struct held *thing = slot && *slot < s->n ? &s->things[*slot] : NULL;

	if (thing && (thing->kind != DESCRIPTOR_PIPE || thing->inode == record->inode))
		return slot;
	slot = u64map_find(&s->own, record->inode);
	thing = slot && *slot < s->n ? &s->things[*slot] : NULL;
	return thing && thing->pid == (pid_t)record->tgid && thing->fd == (int)record->fd ? slot : NULL;
}

static bool find_places(struct search *s, const struct file_records *records)
{
	const struct file_record *record;
	size_t pos = 0;

	while ((record = file_records_next(records, &pos))) {
		uint64_t *slot = record->kind == FILE_PIPE ? find_waited_for(s, record) : NULL;

		if (!slot)
			continue;
		if (!put_place(s, record->place, *slot))
			return false;
		*slot = s->n; /* the same number in the table of another thread is something else */
	}
	return true;
}

static bool add_holder(struct held *thing, const struct file_record *record)
{
	struct holder *holder = holders_add(&thing->holders, (pid_t)record->tgid);

	if (!holder)
		return false;
	memcpy(holder->comm, record->comm, sizeof(record->comm));
	holder->reads |= record->mode & FILE_READS;
	holder->writes |= (record->mode & FILE_WRITES) != 0;
	return true;
}

/* The socket at the other end of a connection; NULL: it is none of these. */
static struct held *find_far(const struct search *s, const struct file_record *record)
{
	struct diag_socket socket;
	struct tcp_ends ends;
	const uint64_t *slot;
	struct held *thing;

	if (!s->far.len)
		return NULL;
	read_tcp(record, &socket);
	inet_ends_of(&socket, &ends.ends);
	ends.net = file_tcp_of(record)->net;
	slot = u64map_find(&s->far, hash_of(&ends));
	thing = slot ? &s->things[*slot] : NULL;
	return thing && memcmp(&thing->far->ends, &ends.ends, sizeof(ends.ends)) == 0 && thing->far->net == ends.net ? thing : NULL;
}

static bool add_far(struct held *thing, const struct file_record *record)
{
	if (!thing->inode)
		thing->inode = record->inode;
	if (thing->inode == record->inode)
		return add_holder(thing, record);
	thing->inode = SEVERAL;
	thing->holders.len = 0;
	return true;
}

static bool find_holders(const struct search *s, const struct file_records *records)
{
	const struct file_record *record;
	size_t pos = 0;

	while ((record = file_records_next(records, &pos))) {
		const bool is_pipe = record->kind == FILE_PIPE;
		const uint64_t *slot = is_pipe ? u64map_find(&s->places, record->place) : u64map_find(&s->sockets, record->inode);
		struct held *far = record->kind == FILE_TCP ? find_far(s, record) : NULL;

		if (far && !add_far(far, record))
			return false;
		if (!slot)
			continue;
		if (!add_holder(&s->things[*slot], record))
			return false;
		for (size_t i = *slot; is_pipe && s->same[i] != i; i = s->same[i])
			if (!add_holder(&s->things[s->same[i]], record))
				return false;
	}
	return true;
}

int file_source_holders(struct file_source *source, const struct capture *capture, struct held *things, size_t n)
{
	struct search s = {.things = things, .n = n, .same = calloc(n + 1, sizeof(*s.same))};
	struct open_files *files = load(source, capture);
	struct file_look *shown = &source->of_all;
	int rc;

	shown->wants = (struct file_wants){0};
	rc = !s.same || !want(&s, &shown->wants) ? -ENOMEM : files ? look_at_all(files, shown) : -ENOENT;
	if (rc == 0 && !(find_places(&s, &shown->records) && find_holders(&s, &shown->records) && find_holders(&s, &shown->again)))
		rc = -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (things[i].far && things[i].inode == SEVERAL)
			things[i].inode = 0;
		if (rc == 0)
			holders_judge(&things[i].holders, true);
	}
	u64map_deinit(&s.sockets);
	u64map_deinit(&s.far);
	u64map_deinit(&s.descriptors);
	u64map_deinit(&s.own);
	u64map_deinit(&s.places);
	free(s.same);
	return rc;
}

bool file_source_describe(const struct file_record *record, struct arena *arena, struct descriptor *out)
{
	*out = (struct descriptor){.fd = (int)record->fd, .offset = -1, .left_ns = -1};
	if (record->kind != FILE_SOCKET && record->kind != FILE_TCP) /* whose is not asked for in /proc */
		out->flags = record->flags & ~(uint32_t)O_CLOEXEC;
	if (record->kind == FILE_EVENTFD) {
		out->kind = DESCRIPTOR_EVENTFD;
		out->count = record->count;
		out->name = arena_intern(arena, "anon_inode:[eventfd]");
		return out->name;
	}
	out->kind = record->kind == FILE_PIPE ? DESCRIPTOR_PIPE : DESCRIPTOR_SOCKET;
	out->inode = record->inode;
	out->name = descriptor_name(out->kind, out->inode, arena);
	return out->name;
}
