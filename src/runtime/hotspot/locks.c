/* SPDX-License-Identifier: MIT */
#include "runtime/hotspot/locks.h"

#include <string.h>

#include "runtime/hotspot/fields.h"
#include "runtime/hotspot/objects.h"

enum {
	MAX_SUPERS = 16,
	ANONYMOUS = 1, /* in the place of an owner: whoever has the object among those that it has locked */
	BLOCKED = 0x400, /* java.lang.Thread's status: it waits to enter a monitor */
};

static bool get(const struct java_threads *t, uint64_t base, enum hotspot_fact fact, uint64_t *out)
{
	return layout_read(t->layout, t->pages, base, fact, out);
}

static bool reference(const struct java_threads *t, uint64_t address, uint64_t *out)
{
	return t->shape.references != UNKNOWN_REFERENCES &&
	       java_reference(t->layout, t->pages, address, t->shape.references == NARROW_REFERENCES, out);
}

static bool class_of(const struct java_threads *t, uint64_t object, uint64_t *out)
{
	return t->shape.header && java_class_of(t->layout, t->pages, t->shape.header, object, out);
}

/* The class of that name among a class and those that it extends; 0: none of them, or it is not known. */
static uint64_t find_class(const struct java_threads *t, uint64_t class, const char *name)
{
	struct symbol_text text;

	for (unsigned i = 0; class && i < MAX_SUPERS; i++) {
		if (!java_class_name(t->layout, t->pages, class, &text))
			return 0;
		if (strcmp(text.bytes, name) == 0)
			return class;
		if (!get(t, class, HS_KLASS_SUPER, &class))
			return 0;
	}
	return 0;
}

static bool extends_thread(const struct java_threads *t, uint64_t class)
{
	for (unsigned i = 0; class && i < MAX_SUPERS; i++) {
		if (class == t->layout->facts[HS_CLASS_THREAD])
			return true;
		if (!get(t, class, HS_KLASS_SUPER, &class))
			return false;
	}
	return false;
}

/* A field that holds a reference or a number, of objects of the class that declares it. */
static bool find_field(const struct java_threads *t, uint64_t class, const char *name, char type, uint32_t *offset)
{
	struct java_field field = {.name = name};
	uint32_t first;

	if (!class || !fields_find(t->layout, t->pages, class, &field, 1, &first) || field.type != type)
		return false;
	*offset = field.offset;
	return true;
}

/* The thread that an object is of, if it is a Thread that runs. */
static const struct java_thread *thread_of(const struct java_threads *t, uint64_t object)
{
	uint64_t class, thread;

	if (!class_of(t, object, &class) || !extends_thread(t, class) || !pages_read_word(t->pages, object + t->shape.eetop, &thread))
		return NULL;
	return java_threads_at(t, thread);
}

/* What was found is named by its class. */
static void take_object(const struct java_threads *t, uint64_t object, struct java_wait *out)
{
	uint64_t class;

	out->object = object;
	if (!class_of(t, object, &class) || !java_class_name(t->layout, t->pages, class, &out->type))
		out->type.len = 0;
}

/* By a structure of the virtual machine: see HS_THREAD_OBJECT. */
static bool object_in(const struct java_threads *t, uint64_t base, enum hotspot_fact fact, uint64_t *object)
{
	if (!get(t, base, fact, object) || !*object)
		return false;
	return !t->layout->facts[HS_THREAD_OBJECT_IS_HANDLE] || (pages_read_word(t->pages, *object, object) && *object);
}

/* Monitors */

/* An owner is a thread, an address in its stack, where it locked the object, its number, or a mark: releases differ, and modes of locking. */
static void find_owner(const struct java_threads *t, uint64_t owner, struct java_wait *out)
{
	if (!owner) {
		out->owner = JAVA_OWNER_NOBODY;
		return;
	}
	out->thread = java_threads_at(t, owner);
	if (!out->thread)
		out->thread = java_threads_find(t, owner);
	if (!out->thread && layout_has(t->layout, HS_THREAD_OWNER_ID) && owner != ANONYMOUS)
		out->thread = java_threads_with_owner_id(t, owner);
	if (!out->thread && owner == ANONYMOUS) {
		out->thread = java_threads_that_locked(t, out->object);
		out->by_objects = true;
	}
	out->owner = out->thread ? JAVA_OWNER_THREAD : JAVA_OWNER_UNKNOWN;
}

static void read_monitor(const struct java_threads *t, uint64_t monitor, enum wait_kind kind, struct java_wait *out)
{
	uint64_t owner, object, recursions;

	if (!get(t, monitor, HS_MONITOR_OWNER, &owner))
		return;
	out->kind = kind;
	out->owner = JAVA_OWNER_UNKNOWN;
	if (object_in(t, monitor, HS_MONITOR_OBJECT, &object))
		take_object(t, object, out);
	if (kind == WAIT_NOTIFICATION) {
		out->subject = out->object ? thread_of(t, out->object) : NULL;
		out->by_objects = out->subject;
		return;
	}
	find_owner(t, owner, out);
	if (out->owner == JAVA_OWNER_THREAD && get(t, monitor, HS_MONITOR_RECURSIONS, &recursions) && recursions < UINT32_MAX)
		out->count = recursions + 1;
}

/* Who was notified has to enter the monitor again. */
static bool is_blocked(const struct java_threads *t, const struct java_thread *thread)
{
	uint64_t object, base;
	uint8_t status[4];

	if (!t->shape.status || !object_in(t, thread->address, HS_THREAD_OBJECT, &object))
		return false;
	base = object;
	if (t->shape.holder && !reference(t, object + t->shape.holder, &base))
		return false;
	return pages_read(t->pages, base + t->shape.status, status, sizeof(status)) && status[1] & BLOCKED >> 8;
}

static void read_waiting(const struct java_threads *t, const struct java_thread *thread, uint64_t monitor, struct java_wait *out)
{
	const bool is_notified = is_blocked(t, thread);

	read_monitor(t, monitor, is_notified ? WAIT_MONITOR : WAIT_NOTIFICATION, out);
	out->by_objects |= is_notified; /* the thread's object says so */
}

/* Parking */

static bool begins(const struct symbol_text *text, const char *prefix)
{
	return text->len >= strlen(prefix) && memcmp(text->bytes, prefix, strlen(prefix)) == 0;
}

static bool is_condition(const struct symbol_text *type)
{
	return strcmp(type->bytes, "java/util/concurrent/locks/AbstractQueuedSynchronizer$ConditionObject") == 0 ||
	       strcmp(type->bytes, "java/util/concurrent/locks/AbstractQueuedLongSynchronizer$ConditionObject") == 0;
}

/* The upper half of the state counts readers: 16 bits of 32, or in 25 32 of 64. */
static bool is_read(const struct java_threads *t, uint64_t lock, uint64_t class)
{
	uint32_t offset, half;

	if (find_field(t, find_class(t, class, "java/util/concurrent/locks/AbstractQueuedSynchronizer"), "state", 'I', &offset))
		half = 2;
	else if (find_field(t, find_class(t, class, "java/util/concurrent/locks/AbstractQueuedLongSynchronizer"), "state", 'J', &offset))
		half = 4;
	else
		return false;
	for (uint32_t i = 0; i < half; i++) {
		uint8_t byte;

		if (pages_read(t->pages, lock + offset + half + i, &byte, 1) && byte)
			return true;
	}
	return false;
}

/* A Thread that has no thread of the system; but virtual ones never have. */
static bool has_ended(const struct java_threads *t, uint64_t object)
{
	uint64_t class, thread;
	struct symbol_text name;

	return class_of(t, object, &class) && extends_thread(t, class) && pages_read_word(t->pages, object + t->shape.eetop, &thread) && !thread &&
	       java_class_name(t->layout, t->pages, class, &name) && !begins(&name, "java/lang/VirtualThread") &&
	       !begins(&name, "java/lang/ThreadBuilders$");
}

/* A lock that has an owner at times says who that is. */
static void read_lock(const struct java_threads *t, uint64_t lock, uint64_t class, struct java_wait *out)
{
	const uint64_t owned = find_class(t, class, "java/util/concurrent/locks/AbstractOwnableSynchronizer");
	const bool is_rwlock = begins(&out->type, "java/util/concurrent/locks/ReentrantReadWriteLock$");
	uint64_t owner;
	uint32_t offset;

	if (!find_field(t, owned, "exclusiveOwnerThread", 'L', &offset))
		return;
	if (reference(t, lock + offset, &owner)) {
		out->kind = WAIT_JAVA_LOCK;
		out->thread = thread_of(t, owner);
		out->owner = out->thread ? JAVA_OWNER_THREAD : has_ended(t, owner) ? JAVA_OWNER_ENDED : JAVA_OWNER_UNKNOWN;
	} else if (is_rwlock || begins(&out->type, "java/util/concurrent/locks/ReentrantLock$")) {
		out->kind = WAIT_JAVA_LOCK;
		out->owner = is_rwlock && is_read(t, lock, class) ? JAVA_OWNER_READERS : JAVA_OWNER_NOBODY;
	}
}

static void read_blocker(const struct java_threads *t, uint64_t blocker, struct java_wait *out)
{
	uint64_t class;

	take_object(t, blocker, out);
	if (!out->type.len || !class_of(t, blocker, &class))
		return;
	out->kind = WAIT_JAVA_PARK;
	out->owner = JAVA_OWNER_UNKNOWN;
	out->by_objects = true;
	if (is_condition(&out->type))
		out->kind = WAIT_JAVA_CONDITION;
	else if (begins(&out->type, "java/util/concurrent/Semaphore$"))
		out->kind = WAIT_JAVA_SEMAPHORE;
	else if (begins(&out->type, "java/util/concurrent/CountDownLatch$"))
		out->kind = WAIT_JAVA_LATCH;
	else
		read_lock(t, blocker, class, out);
}

/* A virtual thread parks with its carrier where it cannot leave it. */
static void read_parking(const struct java_threads *t, const struct java_thread *thread, struct java_wait *out)
{
	uint64_t object, blocker;
	const enum hotspot_fact current = layout_has(t->layout, HS_THREAD_CURRENT) ? HS_THREAD_CURRENT : HS_THREAD_OBJECT;

	if (t->shape.blocker && object_in(t, thread->address, current, &object) && reference(t, object + t->shape.blocker, &blocker))
		read_blocker(t, blocker, out);
}

void java_wait_read(const struct java_threads *t, const struct java_thread *thread, struct java_wait *out)
{
	uint64_t pending = 0, waiting = 0;

	*out = (struct java_wait){0};
	if (!get(t, thread->address, HS_THREAD_PENDING, &pending) || !get(t, thread->address, HS_THREAD_WAITING, &waiting))
		return;
	if (pending)
		read_monitor(t, pending, WAIT_MONITOR, out);
	else if (waiting)
		read_waiting(t, thread, waiting, out);
	else
		read_parking(t, thread, out);
	if (out->kind == WAIT_MONITOR && out->thread == thread) /* it has got it, and waits for something else before it goes on */
		*out = (struct java_wait){0};
}

struct java_heap_state java_heap_read(const struct layout *layout, struct mem *live)
{
	const uint64_t heap = layout_has(layout, HS_HEAP) ? layout->facts[HS_HEAP] : 0;
	struct java_heap_state state = {0};
	uint8_t active;

	if (layout->facts[HS_HEAP_MOVES] || !heap || !layout_has(layout, HS_HEAP_COLLECTIONS) || !layout_has(layout, HS_HEAP_ACTIVE))
		return state;
	state.still = mem_read_exact(live, heap + layout_field(layout, HS_HEAP_COLLECTIONS).offset, &state.collections, sizeof(state.collections)) &&
		      mem_read_exact(live, heap + layout_field(layout, HS_HEAP_ACTIVE).offset, &active, sizeof(active)) && !active;
	return state;
}
