/* SPDX-License-Identifier: MIT */
#include "base/filemap.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/signals.h"

/* A file that cannot be mapped is read, up to here. */
static const uint64_t max_copy = UINT64_C(1) << 30;

/*
 * One mapping. The handler of a signal looks for the mapping that an address is in, while other threads may add and
 * remove theirs: `version` is odd while a slot is being changed, and the handler passes over such a slot, and over one
 * that changed while it looked. The mapping that faulted is never one of these: its owner is reading it.
 */
struct slot {
	atomic_bool taken;
	atomic_bool changed;
	atomic_uint version;
	atomic_uintptr_t start;
	atomic_uintptr_t end;
};

/*
 * Global and mutable, because there is no other way to pass data to a signal handler. Its size is fixed, because a
 * signal handler cannot allocate.
 */
static struct {
	struct slot slots[FILEMAP_MAX];
	atomic_uint used; /* slots from here on were never used */
} all;

/* The slot whose mapping has the address, and where the bytes of its file end; NULL when there is none. */
static struct slot *find_slot(uintptr_t at, uintptr_t *end)
{
	unsigned used = atomic_load(&all.used);

	for (unsigned i = 0; i < used; i++) {
		struct slot *slot = &all.slots[i];
		unsigned version = atomic_load(&slot->version);
		uintptr_t start = atomic_load(&slot->start);

		*end = atomic_load(&slot->end);
		if (at >= start && at < *end && !(version & 1) && atomic_load(&slot->version) == version)
			return slot;
	}
	return NULL;
}

/*
 * A truncated file has lost everything behind that address, so all of it is replaced by zeroes: one fault for each page
 * would take a while. Uses the bare system call, since this runs in a signal handler.
 */
static bool give_zeroes(uintptr_t at)
{
	uintptr_t end, page = (uintptr_t)sysconf(_SC_PAGESIZE), from = at / page * page;
	struct slot *slot = find_slot(at, &end);

	if (!slot)
		return false;
	atomic_store(&slot->changed, true);
	return syscall(SYS_mmap, from, end - from, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		       0) == (long)from;
}

static void on_bus_error(int sig, siginfo_t *info, void *context);

static struct signal_loan bus_errors = SIGNAL_LOAN(SIGBUS, on_bus_error);

static void on_bus_error(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	if (info->si_code <= 0 || !give_zeroes((uintptr_t)info->si_addr))
		signal_loan_pass_on(&bus_errors, info, context);
	errno = saved;
}

static void set_range(struct slot *slot, uintptr_t start, uintptr_t end)
{
	atomic_fetch_add(&slot->version, 1);
	atomic_store(&slot->start, start);
	atomic_store(&slot->end, end);
	atomic_fetch_add(&slot->version, 1);
}

static bool find_free_slot(uint32_t *number)
{
	for (uint32_t i = 0; i < FILEMAP_MAX; i++) {
		unsigned used = atomic_load(&all.used);

		if (atomic_load(&all.slots[i].taken) || atomic_exchange(&all.slots[i].taken, true))
			continue;
		while (used <= i && !atomic_compare_exchange_weak(&all.used, &used, i + 1))
			;
		atomic_store(&all.slots[i].changed, false);
		*number = i;
		return true;
	}
	return false;
}

/* With the handler that looks for it. */
static bool take_slot(uint32_t *number)
{
	if (signal_loan_take(&bus_errors) < 0)
		return false;
	if (find_free_slot(number))
		return true;
	signal_loan_return(&bus_errors);
	return false;
}

static void leave_slot(uint32_t number)
{
	set_range(&all.slots[number], 0, 0);
	atomic_store(&all.slots[number].taken, false);
	signal_loan_return(&bus_errors);
}

/* The file is mapped over the beginning of an anonymous mapping, of which at least a page remains behind its end. */
static bool map_file(int fd, struct filemap *out)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len = out->len;
	void *room;

	if (len > SIZE_MAX - 2 * page || !take_slot(&out->slot))
		return false;
	out->reserved = (len + page - 1) / page * page + page;
	room = mmap(NULL, out->reserved, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED) {
		leave_slot(out->slot);
		return false;
	}
	set_range(&all.slots[out->slot], (uintptr_t)room, (uintptr_t)room + out->reserved - page);
	if (mmap(room, len, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
		leave_slot(out->slot);
		munmap(room, out->reserved);
		return false;
	}
	out->data = room;
	return true;
}

static int copy_file(int fd, struct err *err, struct filemap *out)
{
	size_t room = (out->len / FILEMAP_ALIGN + 1) * FILEMAP_ALIGN;
	_cleanup_free_ uint8_t *copy = out->len <= max_copy ? aligned_alloc(FILEMAP_ALIGN, room) : NULL;
	size_t done = 0;

	if (!copy)
		return err_set(err, EFBIG, "the file can neither be mapped nor read into memory");
	while (done < out->len) {
		ssize_t got = pread(fd, copy + done, out->len - done, (off_t)done);

		if (got < 0 && errno != EINTR)
			return err_set(err, errno, "cannot read the file: %s", strerror(errno));
		if (got == 0)
			break;
		done += got > 0 ? (size_t)got : 0;
	}
	out->short_copy = done < out->len;
	memset(copy + done, 0, room - done);
	out->data = steal_ptr(copy);
	return 0;
}

int filemap_open(int fd, uint64_t len, struct err *err, struct filemap *out)
{
	*out = (struct filemap){0};
	if (!len || len > SIZE_MAX / 2)
		return err_set(err, EINVAL, "the file is empty, or too large");
	out->len = (size_t)len;
	if (map_file(fd, out))
		return 0;
	out->reserved = 0;
	return copy_file(fd, err, out);
}

void filemap_close(struct filemap *map)
{
	if (map->reserved) {
		leave_slot(map->slot);
		munmap((void *)map->data, map->reserved);
	} else {
		free((void *)map->data);
	}
	*map = (struct filemap){0};
}

bool filemap_has_changed(const struct filemap *map)
{
	return map->reserved ? atomic_load(&all.slots[map->slot].changed) : map->short_copy;
}
