/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/threads.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/hotspot/fields.h"
#include "runtime/hotspot/objects.h"

enum {
	MAX_THREADS = 4096,
	MAX_NAME = 1024, /* in characters */
	/* java.lang.Thread's status, which is JVMTI's */
	ALIVE = 0x1,
	TERMINATED = 0x2,
	RUNNABLE = 0x4,
	WAITS_FOR_EVER = 0x10,
	WAITS_WITH_TIMEOUT = 0x20,
	BLOCKED = 0x400,
	LATIN1 = 0, /* a string's coder */
};

/* Where the fields of Java's own classes are. */
struct classes {
	struct java_field name, eetop, daemon, status, holder, blocker;
	bool is_held; /* daemon and status are in the holder */
	struct java_field value, coder;
	uint32_t header; /* size of an object's */
};

void java_threads_init(struct java_threads *threads, const struct layout *layout, struct pages *pages, struct arena *arena)
{
	*threads = (struct java_threads){.layout = layout, .pages = pages, .arena = arena};
}

static void clear(struct java_threads *threads)
{
	vec_deinit(&threads->list);
	u64map_deinit(&threads->by_address);
	u64map_deinit(&threads->by_owner_id);
	u64map_deinit(&threads->by_locked);
	threads->has_tids = false;
}

void java_threads_deinit(struct java_threads *threads)
{
	clear(threads);
}

const char *java_thread_state(uint32_t status)
{
	return status & RUNNABLE             ? "RUNNABLE"
	       : status & BLOCKED            ? "BLOCKED"
	       : status & WAITS_FOR_EVER     ? "WAITING"
	       : status & WAITS_WITH_TIMEOUT ? "TIMED_WAITING"
	       : status & TERMINATED         ? "TERMINATED"
	       : status & ALIVE              ? "RUNNABLE"
					     : "NEW";
}

static bool get(const struct java_threads *t, uint64_t base, enum hotspot_fact fact, uint64_t *out)
{
	return layout_read(t->layout, t->pages, base, fact, out);
}

static uint64_t fact(const struct java_threads *t, enum hotspot_fact which)
{
	return t->layout->facts[which];
}

static bool has_all(const struct java_threads *t)
{
	static const enum hotspot_fact needed[] = {HS_THREAD_STACK_BASE,       HS_THREAD_STACK_SIZE, HS_THREAD_OBJECT,
						   HS_THREAD_OBJECT_IS_HANDLE, HS_CLASS_THREAD,      HS_CLASS_STRING};

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!layout_has(t->layout, needed[i]))
			return false;
	return layout_has(t->layout, HS_AT_THREADS_LIST) || layout_has(t->layout, HS_AT_FIRST_THREAD);
}

static bool find_classes(const struct java_threads *t, struct classes *out)
{
	struct java_field thread[] = {{.name = "name"}, {.name = "eetop"}, {.name = "daemon"}, {.name = "threadStatus"}, {.name = "holder"},
				       {.name = "parkBlocker"}};
	struct java_field string[] = {{.name = "value"}, {.name = "coder"}};
	struct java_field holder[] = {{.name = "daemon"}, {.name = "threadStatus"}};
	bool ok = fields_find(t->layout, t->pages, fact(t, HS_CLASS_STRING), string, 2, &out->header);
	uint32_t first;

	ok = fields_find(t->layout, t->pages, fact(t, HS_CLASS_THREAD), thread, 6, &first) && ok;
	out->is_held = layout_has(t->layout, HS_CLASS_FIELD_HOLDER);
	if (out->is_held)
		ok = fields_find(t->layout, t->pages, fact(t, HS_CLASS_FIELD_HOLDER), holder, 2, &first) && ok;
	out->name = thread[0];
	out->eetop = thread[1];
	out->daemon = out->is_held ? holder[0] : thread[2];
	out->status = out->is_held ? holder[1] : thread[3];
	out->holder = thread[4];
	out->blocker = thread[5];
	out->value = string[0];
	out->coder = string[1];
	return ok && out->name.type && out->eetop.type == 'J' && out->value.type == '[' &&
	       (out->header == 8 || out->header == 12 || out->header == 16);
}

static bool read_u32(const struct java_threads *t, uint64_t address, uint32_t *out)
{
	uint8_t b[4];

	if (!pages_read(t->pages, address, b, sizeof(b)))
		return false;
	*out = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
	return true;
}

/* The class of an object, by what its header is like. */
static bool class_of(const struct java_threads *t, const struct classes *c, uint64_t object, uint64_t *out)
{
	return java_class_of(t->layout, t->pages, c->header, object, out);
}

/* A reference in a field of so many bytes. */
static bool read_reference(const struct java_threads *t, uint64_t address, bool narrow, uint64_t *out)
{
	return java_reference(t->layout, t->pages, address, narrow, out);
}

/* How long an array is, and where its elements are. */
static bool read_array(const struct java_threads *t, const struct classes *c, uint64_t array, uint32_t *len, uint64_t *data)
{
	*data = array + (c->header == 16 ? (fact(t, HS_FEATURE) >= 23 ? 20 : 24) : c->header + 4);
	return read_u32(t, array + c->header, len);
}

/* UTF-16, or each byte a character. A NUL ends the name. */
static const char *make_string(const struct java_threads *t, const uint8_t *bytes, size_t len, bool is_wide)
{
	char out[4 * MAX_NAME];
	size_t n = 0;

	for (size_t i = 0; i + is_wide < len; i += 1 + is_wide) {
		uint32_t c = bytes[i] | (is_wide ? (uint32_t)bytes[i + 1] << 8 : 0);

		if (c >= 0xd800 && c < 0xdc00 && i + 3 < len && (bytes[i + 3] & 0xfc) == 0xdc) {
			c = 0x10000 + ((c & 0x3ff) << 10) + (((uint32_t)bytes[i + 3] & 3) << 8 | bytes[i + 2]);
			i += 2;
		}
		if (!c)
			break;
		n += utf8_put(out + n, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
	}
	return n ? arena_intern_n(t->arena, out, n) : NULL;
}

static const char *read_characters(const struct java_threads *t, const struct classes *c, uint64_t array, bool is_wide, bool is_chars)
{
	uint8_t bytes[2 * MAX_NAME];
	uint64_t data;
	uint32_t len;

	if (!read_array(t, c, array, &len, &data))
		return NULL;
	if (is_chars) /* not bytes */
		len = len < MAX_NAME ? 2 * len : sizeof(bytes);
	if (len > sizeof(bytes))
		len = sizeof(bytes);
	if (!is_wide && len > MAX_NAME)
		len = MAX_NAME;
	return pages_read(t->pages, data, bytes, len) ? make_string(t, bytes, len, is_wide) : NULL;
}

static const char *read_name(const struct java_threads *t, const struct classes *c, uint64_t object, bool narrow)
{
	uint64_t string, class, value;
	uint8_t coder = 1;

	if (!read_reference(t, object + c->name.offset, narrow, &string))
		return NULL;
	if (c->name.type == '[') /* 8: the characters themselves */
		return read_characters(t, c, string, true, true);
	if (!class_of(t, c, string, &class) || class != fact(t, HS_CLASS_STRING) ||
	    !read_reference(t, string + c->value.offset, narrow, &value))
		return NULL;
	if (!c->coder.type)
		return read_characters(t, c, value, true, true);
	if (!pages_read(t->pages, string + c->coder.offset, &coder, 1))
		return NULL;
	return read_characters(t, c, value, coder != LATIN1, false);
}

/* What is read of another class than Thread's own is found by the reference that gives the name a sense. */
static void read_object(struct java_threads *t, const struct classes *c, uint64_t object, struct java_thread *out)
{
	uint64_t base = object;
	uint32_t status;
	uint8_t daemon;
	bool narrow = true;

	out->name = read_name(t, c, object, true);
	if (!out->name && (out->name = read_name(t, c, object, false)))
		narrow = false;
	if (out->name)
		t->shape.references = narrow ? NARROW_REFERENCES : WIDE_REFERENCES;
	if (!out->name || (c->is_held && !read_reference(t, object + c->holder.offset, narrow, &base)))
		return;
	if (c->status.type == 'I' && read_u32(t, base + c->status.offset, &status))
		out->state = java_thread_state(status);
	out->has_daemon = c->daemon.type == 'Z' && pages_read(t->pages, base + c->daemon.offset, &daemon, 1);
	out->is_daemon = out->has_daemon && daemon == 1;
}

/* Its object says which thread it is of: else it was moved meanwhile. */
static bool find_object(const struct java_threads *t, const struct classes *c, uint64_t thread, uint64_t *object)
{
	uint64_t back;

	if (!get(t, thread, HS_THREAD_OBJECT, object) || !*object)
		return false;
	if (fact(t, HS_THREAD_OBJECT_IS_HANDLE) && (!pages_read_word(t->pages, *object, object) || !*object))
		return false;
	return pages_read_word(t->pages, *object + c->eetop.offset, &back) && back == thread;
}

/* The top is counted from the beginning of the thread's structure. */
static void read_locked(const struct java_threads *t, struct java_thread *out)
{
	const uint64_t base = layout_field(t->layout, HS_THREAD_LOCKS).offset + layout_field(t->layout, HS_LOCKS_BASE).offset;
	uint64_t top;

	if (!layout_has(t->layout, HS_THREAD_LOCKS) || !layout_has(t->layout, HS_LOCKS_BASE) ||
	    !get(t, out->address + layout_field(t->layout, HS_THREAD_LOCKS).offset, HS_LOCKS_TOP, &top) || top < base ||
	    top - base > 8 * JAVA_MAX_LOCKED || (top - base) % 8)
		return;
	for (uint64_t at = base; at < top; at += 8)
		if (pages_read_word(t->pages, out->address + at, &out->locked[out->nlocked]))
			out->nlocked++;
}

static bool read_thread(struct java_threads *t, const struct classes *c, uint64_t thread)
{
	struct java_thread found = {.address = thread};
	uint64_t object, size = 0, os, own;
	bool known = get(t, thread, HS_THREAD_STACK_BASE, &found.high) && get(t, thread, HS_THREAD_STACK_SIZE, &size);

	get(t, thread, HS_THREAD_OWNER_ID, &found.owner_id);
	read_locked(t, &found);
	if (c && find_object(t, c, thread, &object))
		read_object(t, c, object, &found);
	if (get(t, thread, HS_THREAD_OS, &os) && os && get(t, os, HS_OS_THREAD_ID, &own))
		found.own = (pid_t)own;
	if (!known || !size || size > found.high)
		return true;
	found.low = found.high - size;
	return vec_push(&t->list, found);
}

static bool read_list(struct java_threads *t, const struct classes *c)
{
	uint64_t list, n, array, thread;

	if (!pages_read_word(t->pages, fact(t, HS_AT_THREADS_LIST), &list) || !list || !get(t, list, HS_LIST_LENGTH, &n) ||
	    !get(t, list, HS_LIST_THREADS, &array))
		return true;
	n &= UINT32_MAX;
	for (uint64_t i = 0; i < n && i < MAX_THREADS; i++)
		if (pages_read_word(t->pages, array + 8 * i, &thread) && thread && !read_thread(t, c, thread))
			return false;
	return true;
}

static bool read_chain(struct java_threads *t, const struct classes *c)
{
	uint64_t thread;

	if (!pages_read_word(t->pages, fact(t, HS_AT_FIRST_THREAD), &thread))
		return true;
	for (unsigned i = 0; thread && i < MAX_THREADS; i++) {
		if (!read_thread(t, c, thread))
			return false;
		if (!get(t, thread, HS_THREAD_NEXT, &thread))
			return true;
	}
	return true;
}

static int compare_stacks(const void *a, const void *b)
{
	const struct java_thread *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

/* Of several the first one. 0 is none. */
static bool put(struct u64map *map, uint64_t key, size_t position)
{
	bool created;
	uint64_t *slot = key ? u64map_put(map, key, &created) : NULL;

	if (slot && created)
		*slot = position;
	return slot || !key;
}

bool java_threads_index(struct java_threads *t)
{
	bool ok = true;

	for (size_t i = 0; ok && i < t->list.len; i++) {
		const struct java_thread *thread = &t->list.data[i];

		ok = put(&t->by_address, thread->address, i) && put(&t->by_owner_id, thread->owner_id, i);
		for (unsigned k = 0; ok && k < thread->nlocked; k++)
			ok = put(&t->by_locked, thread->locked[k], i);
	}
	return ok;
}

bool java_threads_read(struct java_threads *t)
{
	struct classes classes;
	const struct classes *c;
	bool ok;

	clear(t);
	if (!has_all(t))
		return true;
	c = find_classes(t, &classes) ? &classes : NULL;
	t->shape = (struct java_thread_shape){0};
	if (c)
		t->shape = (struct java_thread_shape){
			.header = c->header,
			.eetop = c->eetop.offset,
			.blocker = c->blocker.type == 'L' ? c->blocker.offset : 0,
			.holder = c->is_held ? c->holder.offset : 0,
			.status = c->status.type == 'I' ? c->status.offset : 0,
		};
	ok = layout_has(t->layout, HS_AT_THREADS_LIST) ? read_list(t, c) : read_chain(t, c);
	if (ok && t->list.len)
		qsort(t->list.data, t->list.len, sizeof(*t->list.data), compare_stacks);
	return ok && java_threads_index(t);
}

bool java_threads_lack_objects(const struct java_threads *t)
{
	for (size_t i = 0; i < t->list.len; i++)
		if (t->list.data[i].name)
			return false;
	return t->list.len > 0;
}

const struct java_thread *java_threads_find(const struct java_threads *t, uint64_t sp)
{
	size_t low = 0, high = t->list.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->list.data[middle].high <= sp)
			low = middle + 1;
		else
			high = middle;
	}
	return low < t->list.len && sp >= t->list.data[low].low ? &t->list.data[low] : NULL;
}

static const struct java_thread *find(const struct java_threads *t, const struct u64map *map, uint64_t key)
{
	const uint64_t *slot = key ? u64map_find(map, key) : NULL;

	return slot ? &t->list.data[*slot] : NULL;
}

const struct java_thread *java_threads_at(const struct java_threads *t, uint64_t address)
{
	return find(t, &t->by_address, address);
}

const struct java_thread *java_threads_with_owner_id(const struct java_threads *t, uint64_t id)
{
	return find(t, &t->by_owner_id, id);
}

const struct java_thread *java_threads_that_locked(const struct java_threads *t, uint64_t object)
{
	return find(t, &t->by_locked, object);
}
