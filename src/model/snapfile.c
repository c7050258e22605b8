/* SPDX-License-Identifier: MIT */
#include "model/snapfile.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "model/snapfile_facts.h"
#include "model/snapfile_parts.h"
#include "model/snapfile_waits.h"

/*
 * The file:
 *
 *	"STKOSNAP", u32 version, u32 architecture, then sections: u32 tag, u64 length, that many bytes.
 *
 * A reader skips tags that it does not know and bytes at the end of a record that it does not know, so a later
 * version adds either without a new version number. The last section is TAG_END: a file without it was cut short.
 * Integers are little-endian; a string is a u32 length (NO_STRING for NULL) and its bytes.
 */
static const char magic[8] = {'S', 'T', 'K', 'O', 'S', 'N', 'A', 'P'};

enum {
	VERSION = 1,
	SECTION_HEADER = 4 + 8,
	MAX_THREADS = 1000 * 1000,
	MAX_MAPS = 1000 * 1000,
	MAX_IMAGES = 64,
	MAX_JIT_IMAGES = 1000 * 1000,
	MAX_COPIES = 1 << 20,
	MAX_NOTES = 1000,
	MAX_RUNTIMES = 16,
	MAX_FACTS = 1 << 16,
	MAX_KERNEL_FRAMES = 4096,
	READ_CHUNK = 1024 * 1024,
};

#define MAX_SECTION UINT64_C(0x100000000)

#define TAG(a, b, c, d) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

enum {
	TAG_PROCESS = TAG('P', 'R', 'O', 'C'),
	TAG_CAPTURE = TAG('C', 'A', 'P', 'T'),
	TAG_NOTES = TAG('N', 'O', 'T', 'E'),
	TAG_MAPS = TAG('M', 'A', 'P', 'S'),
	TAG_IMAGE = TAG('I', 'M', 'A', 'G'),     /* one each */
	TAG_JIT_IMAGE = TAG('J', 'I', 'T', 'I'), /* one each */
	TAG_COPY = TAG('C', 'O', 'P', 'Y'),      /* one each */
	TAG_RUNTIME = TAG('R', 'U', 'N', 'T'),   /* one each */
	TAG_THREAD = TAG('T', 'H', 'R', 'D'),    /* one each */
	TAG_FACTS = TAG('F', 'A', 'C', 'T'),     /* one each, behind the thread's */
	TAG_WAIT = TAG('W', 'A', 'I', 'T'),      /* one each */
	TAG_END = TAG('E', 'N', 'D', '.'),
};

/* What a thread record holds of its kernel stack. */
enum { KERNEL_PCS = 1, KERNEL_TEXT = 2 };

/* What a process record says of the snapshot as a whole. */
enum { DOUBTFUL_NUMBERS = 1, PARTIAL = 2 };

/* Writing */

static void put_copy(struct bytes *b, const struct mem_copy *copy)
{
	put_u64(b, copy->start);
	put_u64(b, copy->len);
	put_u64(b, copy->region_end);
	put_bytes(b, copy->data, copy->len);
}

static void put_outsider(struct bytes *b, const struct snap_outsider *o)
{
	put_u32(b, o->number);
	put_u32(b, (uint32_t)o->tid);
	put_u32(b, (uint32_t)o->pid);
	put_u8(b, o->same_memory);
	put_string(b, o->comm);
}

static void put_process(struct bytes *b, const struct snapshot *snap)
{
	put_u32(b, (uint32_t)snap->pid);
	put_string(b, snap->comm);
	put_string(b, snap->exe);
	put_u8(b, snap->kernel_thread);
	put_u64(b, (uint64_t)snap->taken_at_ns);
	put_u64(b, (uint64_t)snap->taken_at_monotonic_ns);
	put_u32(b, (uint32_t)snap->inner_pid);
	put_string(b, snap->container.cgroup);
	put_string(b, snap->container.engine);
	put_string(b, snap->container.id);
	put_string(b, snap->container.pod);
	put_u64(b, (uint64_t)snap->monotonic_ahead_ns);
	put_u64(b, (uint64_t)snap->boottime_ahead_ns);
	put_u32(b, (uint32_t)snap->outsiders.len);
	for (size_t i = 0; i < snap->outsiders.len; i++)
		put_outsider(b, &snap->outsiders.data[i]);
	put_u8(b, (snap->has_doubtful_numbers ? DOUBTFUL_NUMBERS : 0) | (snap->partial ? PARTIAL : 0));
	for (size_t i = 0; i < snap->outsiders.len; i++)
		put_u8(b, snap->outsiders.data[i].shares_memory);
}

static void put_capture(struct bytes *b, const struct capture_info *info)
{
	put_string(b, info->method);
	put_string(b, info->stop_mode);
	put_u32(b, info->stopped_threads);
	put_u32(b, info->retaken_threads);
	put_u64(b, info->max_pause_ns);
	put_u64(b, info->capture_ns);
	put_u8(b, info->consistent);
	put_string(b, info->inconsistent_why);
	put_string(b, info->kernel_stack_error);
	put_u32(b, info->windows);
	put_u32(b, info->cpus_taken);
	put_u64(b, info->window_ns);
	put_u64(b, (uint64_t)info->instant_ns);
	put_u32(b, info->last_look);
}

static void put_notes(struct bytes *b, const struct snapshot *snap)
{
	put_u32(b, (uint32_t)snap->notes.len);
	for (size_t i = 0; i < snap->notes.len; i++)
		put_string(b, snap->notes.data[i]);
}

static void put_maps(struct bytes *b, const struct maps *maps)
{
	put_u32(b, (uint32_t)maps->len);
	for (size_t i = 0; i < maps->len; i++) {
		const struct map_entry *e = &maps->data[i];

		put_u64(b, e->start);
		put_u64(b, e->end);
		put_u64(b, e->offset);
		put_u64(b, e->inode);
		put_u32(b, e->dev_major);
		put_u32(b, e->dev_minor);
		put_u32(b, e->perms);
		put_u32(b, e->deleted);
		put_string(b, e->path);
		put_string(b, e->build_id);
	}
}

static void put_runtime(struct bytes *b, const struct snap_runtime *runtime)
{
	uint32_t nfacts = runtime->nfacts < MAX_FACTS ? runtime->nfacts : MAX_FACTS;

	put_string(b, runtime->name);
	put_string(b, runtime->version);
	put_string(b, runtime->problem);
	put_u32(b, nfacts);
	for (uint32_t i = 0; i < nfacts; i++)
		put_u64(b, runtime->facts[i]);
}

static void put_kernel_stack(struct bytes *b, const struct snap_thread *t)
{
	put_u32(b, t->nkernel);
	put_u8(b, (t->kernel_pcs ? KERNEL_PCS : 0) | (t->kernel_text ? KERNEL_TEXT : 0));
	for (uint32_t i = 0; t->kernel_pcs && i < t->nkernel; i++)
		put_u64(b, t->kernel_pcs[i]);
	for (uint32_t i = 0; t->kernel_text && i < t->nkernel; i++)
		put_string(b, t->kernel_text[i]);
}

static void put_thread(struct bytes *b, const struct snap_thread *t, unsigned nregs)
{
	put_u32(b, (uint32_t)t->tid);
	put_string(b, t->name);
	put_u8(b, (uint8_t)t->state);
	put_u32(b, t->status);
	put_u32(b, t->capture);
	put_string(b, t->why);
	put_u32(b, (uint32_t)t->tracer);
	put_u64(b, t->nvcsw);
	put_u64(b, t->nivcsw);
	put_u64(b, (uint64_t)t->off_cpu_ns);
	put_u64(b, t->pause_ns);
	put_u32(b, t->retakes);
	put_u32(b, t->syscall.state);
	put_u64(b, (uint64_t)t->syscall.nr);
	for (size_t i = 0; i < 6; i++)
		put_u64(b, t->syscall.args[i]);
	put_u32(b, nregs);
	put_u64(b, t->regs.valid);
	for (unsigned i = 0; i < nregs; i++)
		put_u64(b, t->regs.v[i]);
	put_kernel_stack(b, t);
	put_copy(b, &t->stack);
	put_copy(b, &t->interrupted);
	put_u64(b, (uint64_t)t->cpu_ns);
	put_u32(b, (uint32_t)t->inner_tid);
	put_u64(b, t->tid_address);
	put_u8(b, (uint8_t)t->still);
	put_u8(b, t->woken);
	put_u32(b, t->read_in);
	put_u32(b, t->still_in);
	put_u8(b, t->still_besides);
}

/* Writing goes on after an error, which sticks: the caller looks once, at the end. */
struct writer {
	FILE *out;
	struct bytes section;
	int error; /* 0 or -errno */
};

static void write_bytes(struct writer *w, const struct bytes *b)
{
	if (w->error)
		return;
	errno = 0;
	if (b->failed)
		w->error = -ENOMEM;
	else if (fwrite(b->data, 1, b->len, w->out) != b->len)
		w->error = errno ? -errno : -EIO;
}

static void write_header(struct writer *w, const struct arch *arch)
{
	_cleanup_(cleanup_bytes) struct bytes b = {0};

	put_bytes(&b, magic, sizeof(magic));
	put_u32(&b, VERSION);
	put_u32(&b, arch->id);
	write_bytes(w, &b);
}

/* Writes the section that was put together and starts the next one. */
static void write_section(struct writer *w, uint32_t tag)
{
	_cleanup_(cleanup_bytes) struct bytes header = {0};

	put_u32(&header, tag);
	put_u64(&header, w->section.len);
	write_bytes(w, &header);
	write_bytes(w, &w->section);
	w->section.len = 0;
}

int snapfile_write(const struct snapshot *snap, FILE *out, struct err *err)
{
	struct writer w = {.out = out};

	write_header(&w, snap->arch);
	put_process(&w.section, snap);
	write_section(&w, TAG_PROCESS);
	put_capture(&w.section, &snap->capture);
	write_section(&w, TAG_CAPTURE);
	put_notes(&w.section, snap);
	write_section(&w, TAG_NOTES);
	put_maps(&w.section, &snap->maps);
	write_section(&w, TAG_MAPS);
	for (size_t i = 0; i < snap->images.len; i++) {
		put_copy(&w.section, &snap->images.data[i]);
		write_section(&w, TAG_IMAGE);
	}
	for (size_t i = 0; i < snap->jit_images.len; i++) {
		put_copy(&w.section, &snap->jit_images.data[i]);
		write_section(&w, TAG_JIT_IMAGE);
	}
	for (size_t i = 0; i < snap->copies.len && i < MAX_COPIES; i++) {
		put_u32(&w.section, (uint32_t)snap->copies.data[i].tid);
		put_copy(&w.section, &snap->copies.data[i].copy);
		write_section(&w, TAG_COPY);
	}
	for (size_t i = 0; i < snap->runtimes.len; i++) {
		put_runtime(&w.section, &snap->runtimes.data[i]);
		write_section(&w, TAG_RUNTIME);
	}
	for (size_t i = 0; i < snap->threads.len; i++) {
		put_thread(&w.section, &snap->threads.data[i], snap->arch->nuser_regs);
		write_section(&w, TAG_THREAD);
		put_facts(&w.section, &snap->threads.data[i]);
		write_section(&w, TAG_FACTS);
	}
	for (size_t i = 0; i < snap->waits.len; i++) {
		put_wait(&w.section, &snap->waits.data[i]);
		write_section(&w, TAG_WAIT);
	}
	write_section(&w, TAG_END);
	cleanup_bytes(&w.section);
	if (!w.error && fflush(out) != 0)
		w.error = errno ? -errno : -EIO;
	return w.error ? err_set(err, -w.error, "cannot save the snapshot: %s", strerror(-w.error)) : 0;
}

/* Reading: each get_ function takes one record; the caller tests the cursor for a record that is too short. */

/* NULL when it is none: what reports show and files are looked up by is only ever hexadecimal. */
static int get_build_id(struct cursor *c, struct snapshot *snap, struct err *err, const char **out)
{
	int ret = get_string(c, snap, err, out);

	if (!ret && *out && (!**out || (*out)[strspn(*out, "0123456789abcdef")]))
		*out = NULL;
	return ret;
}

static int get_copy(struct cursor *c, struct snapshot *snap, struct err *err, struct mem_copy *out)
{
	struct mem_copy copy = {0};
	struct cursor data;

	copy.start = cursor_u64(c);
	copy.len = cursor_u64(c);
	copy.region_end = cursor_u64(c);
	data = cursor_take(c, copy.len);
	if (data.bad)
		return 0;
	if (copy.len > UINT64_MAX - copy.start)
		return err_set(err, EINVAL, "a memory copy that ends beyond the address space");
	if (copy.len) {
		copy.data = arena_alloc(snap->arena, copy.len);
		if (!copy.data)
			return snapfile_no_memory(err);
		cursor_bytes(&data, copy.data, copy.len);
	}
	*out = copy;
	return 0;
}

static int get_container(struct cursor *c, struct snapshot *snap, struct err *err)
{
	struct container *container = &snap->container;
	const char **const fields[] = {&container->cgroup, &container->engine, &container->id, &container->pod};
	int ret = 0;

	snap->inner_pid = (pid_t)cursor_u32(c);
	for (size_t i = 0; !ret && i < sizeof(fields) / sizeof(fields[0]); i++)
		ret = get_string(c, snap, err, fields[i]);
	return ret;
}

static int get_outsiders(struct cursor *c, struct snapshot *snap, struct err *err)
{
	const uint32_t n = cursor_u32(c);
	int ret = 0;

	if (n > MAX_OUTSIDERS)
		return err_set(err, EINVAL, "%" PRIu32 " outsiders", n);
	for (uint32_t i = 0; !ret && !c->bad && i < n; i++) {
		struct snap_outsider o = {.number = cursor_u32(c)};

		o.tid = (pid_t)cursor_u32(c);
		o.pid = (pid_t)cursor_u32(c);
		o.same_memory = cursor_u8(c) != 0;
		ret = get_text(c, snap, err, &o.comm);
		if (!ret && !c->bad && !vec_push(&snap->outsiders, o))
			ret = snapfile_no_memory(err);
	}
	return ret;
}

/* An older file does not tell whether numbers are doubtful: then they may be. */
static void get_flags(struct cursor *c, struct snapshot *snap)
{
	const uint8_t flags = cursor_left(c) ? cursor_u8(c) : DOUBTFUL_NUMBERS;

	snap->has_doubtful_numbers = flags & DOUBTFUL_NUMBERS;
	snap->partial = flags & PARTIAL;
	for (size_t i = 0; i < snap->outsiders.len; i++)
		snap->outsiders.data[i].shares_memory = cursor_left(c) && cursor_u8(c);
}

static int get_process(struct cursor *c, struct snapshot *snap, struct err *err)
{
	int ret;

	snap->pid = (pid_t)cursor_u32(c);
	ret = get_text(c, snap, err, &snap->comm);
	if (!ret)
		ret = get_string(c, snap, err, &snap->exe);
	snap->kernel_thread = cursor_u8(c) != 0;
	snap->taken_at_ns = (int64_t)cursor_u64(c);
	snap->taken_at_monotonic_ns = cursor_left(c) >= 8 ? (int64_t)cursor_u64(c) : 0; /* not in older files */
	snap->boottime_ahead_ns = CLOCK_UNKNOWN;
	if (!ret && cursor_left(c)) /* likewise */
		ret = get_container(c, snap, err);
	if (!ret && cursor_left(c) >= 16) { /* likewise */
		snap->monotonic_ahead_ns = (int64_t)cursor_u64(c);
		snap->boottime_ahead_ns = (int64_t)cursor_u64(c);
	}
	if (!ret && cursor_left(c)) /* likewise */
		ret = get_outsiders(c, snap, err);
	if (!ret)
		get_flags(c, snap);
	if (!ret && !c->bad && (snap->pid <= 0 || snap->inner_pid < 0))
		return err_set(err, EINVAL, "process id %d", snap->pid);
	return ret;
}

static int get_capture(struct cursor *c, struct snapshot *snap, struct err *err)
{
	struct capture_info *info = &snap->capture;
	int ret = get_text(c, snap, err, &info->method);

	if (!ret)
		ret = get_text(c, snap, err, &info->stop_mode);
	info->stopped_threads = cursor_u32(c);
	info->retaken_threads = cursor_u32(c);
	info->max_pause_ns = cursor_u64(c);
	info->capture_ns = cursor_u64(c);
	info->consistent = cursor_u8(c) != 0;
	if (!ret)
		ret = get_string(c, snap, err, &info->inconsistent_why);
	if (!ret)
		ret = get_string(c, snap, err, &info->kernel_stack_error);
	if (!ret && cursor_left(c)) { /* since there are windows */
		info->windows = cursor_u32(c);
		info->cpus_taken = cursor_u32(c);
		info->window_ns = cursor_u64(c);
		info->instant_ns = (int64_t)cursor_u64(c);
	}
	if (!ret && cursor_left(c))
		info->last_look = cursor_u32(c);
	return ret;
}

static int get_notes(struct cursor *c, struct snapshot *snap, struct err *err)
{
	uint32_t count = cursor_u32(c);

	if (count > MAX_NOTES)
		return err_set(err, EINVAL, "%" PRIu32 " notes", count);
	for (uint32_t i = 0; i < count && !c->bad; i++) {
		const char *note;
		int ret = get_text(c, snap, err, &note);

		if (ret)
			return ret;
		if (!c->bad)
			notes_add(&snap->notes, "%s", note);
	}
	return 0;
}

static int get_map_entry(struct cursor *c, struct snapshot *snap, struct err *err)
{
	uint64_t floor = snap->maps.len ? snap->maps.data[snap->maps.len - 1].end : 0;
	struct map_entry e = {0};
	int ret;

	e.start = cursor_u64(c);
	e.end = cursor_u64(c);
	e.offset = cursor_u64(c);
	e.inode = cursor_u64(c);
	e.dev_major = cursor_u32(c);
	e.dev_minor = cursor_u32(c);
	e.perms = cursor_u32(c);
	e.deleted = cursor_u32(c);
	ret = get_text(c, snap, err, &e.path);
	if (!ret)
		ret = get_build_id(c, snap, err, &e.build_id);
	if (ret || c->bad)
		return ret;
	if (e.start >= e.end || e.start < floor)
		return err_set(err, EINVAL, "mappings out of order at 0x%" PRIx64, e.start);
	return vec_push(&snap->maps, e) ? 0 : snapfile_no_memory(err);
}

static int get_maps(struct cursor *c, struct snapshot *snap, struct err *err)
{
	uint32_t count = cursor_u32(c);
	int ret = 0;

	if (count > MAX_MAPS)
		return err_set(err, EINVAL, "%" PRIu32 " mappings", count);
	for (uint32_t i = 0; i < count && !ret && !c->bad; i++)
		ret = get_map_entry(c, snap, err);
	return ret;
}

static int get_image(struct cursor *c, struct snapshot *snap, struct err *err)
{
	struct mem_copy copy = {0};
	int ret = get_copy(c, snap, err, &copy);

	if (ret || c->bad)
		return ret;
	if (snap->images.len >= MAX_IMAGES)
		return err_set(err, EINVAL, "more than %d images", MAX_IMAGES);
	return vec_push(&snap->images, copy) ? 0 : snapfile_no_memory(err);
}

static int get_jit_image(struct cursor *c, struct snapshot *snap, struct err *err)
{
	struct mem_copy copy = {0};
	int ret = get_copy(c, snap, err, &copy);

	if (ret || c->bad)
		return ret;
	if (snap->jit_images.len >= MAX_JIT_IMAGES)
		return err_set(err, EINVAL, "more than %d JIT images", MAX_JIT_IMAGES);
	return vec_push(&snap->jit_images, copy) ? 0 : snapfile_no_memory(err);
}

static int get_asked(struct cursor *c, struct snapshot *snap, struct err *err)
{
	struct snap_copy copy = {.tid = (pid_t)cursor_u32(c)};
	int ret = get_copy(c, snap, err, &copy.copy);

	if (ret || c->bad)
		return ret;
	if (snap->copies.len >= MAX_COPIES)
		return err_set(err, EINVAL, "more than %d copies of memory", MAX_COPIES);
	return vec_push(&snap->copies, copy) ? 0 : snapfile_no_memory(err);
}

static int get_runtime(struct cursor *c, struct snapshot *snap, struct err *err)
{
	struct snap_runtime runtime = {0};
	int ret = get_text(c, snap, err, &runtime.name);

	if (!ret)
		ret = get_string(c, snap, err, &runtime.version);
	if (!ret)
		ret = get_string(c, snap, err, &runtime.problem);
	if (ret)
		return ret;
	runtime.nfacts = cursor_u32(c);
	if (runtime.nfacts > MAX_FACTS || snap->runtimes.len >= MAX_RUNTIMES)
		return err_set(err, EINVAL, "%" PRIu32 " facts of runtime %zu", runtime.nfacts, snap->runtimes.len + 1);
	runtime.facts = arena_alloc(snap->arena, runtime.nfacts * sizeof(*runtime.facts) + 1);
	if (!runtime.facts)
		return snapfile_no_memory(err);
	for (uint32_t i = 0; i < runtime.nfacts; i++)
		runtime.facts[i] = cursor_u64(c);
	if (c->bad)
		return 0;
	return vec_push(&snap->runtimes, runtime) ? 0 : snapfile_no_memory(err);
}

static int get_regs(struct cursor *c, const struct arch *arch, struct err *err, struct user_regs *out)
{
	uint32_t nregs = cursor_u32(c);

	if (c->bad)
		return 0;
	if (nregs != arch->nuser_regs)
		return err_set(err, EINVAL, "%" PRIu32 " registers, but %s has %u", nregs, arch->name,
			       arch->nuser_regs);
	out->valid = cursor_u64(c) & ((UINT64_C(1) << nregs) - 1);
	for (uint32_t i = 0; i < nregs; i++)
		out->v[i] = cursor_u64(c);
	return 0;
}

static int get_kernel_text(struct cursor *c, struct snapshot *snap, struct err *err, struct snap_thread *t)
{
	t->kernel_text = arena_alloc(snap->arena, t->nkernel * sizeof(*t->kernel_text));
	if (!t->kernel_text)
		return snapfile_no_memory(err);
	for (uint32_t i = 0; i < t->nkernel; i++) {
		int ret = get_string(c, snap, err, &t->kernel_text[i]);

		if (ret)
			return ret;
	}
	return 0;
}

static int get_kernel_stack(struct cursor *c, struct snapshot *snap, struct err *err, struct snap_thread *t)
{
	uint8_t parts;

	t->nkernel = cursor_u32(c);
	parts = cursor_u8(c);
	if (t->nkernel > MAX_KERNEL_FRAMES)
		return err_set(err, EINVAL, "a kernel stack of %" PRIu32 " frames", t->nkernel);
	if (!(parts & (KERNEL_PCS | KERNEL_TEXT)))
		t->nkernel = 0;
	if (parts & KERNEL_PCS) {
		t->kernel_pcs = arena_alloc(snap->arena, t->nkernel * sizeof(*t->kernel_pcs));
		if (!t->kernel_pcs)
			return snapfile_no_memory(err);
		for (uint32_t i = 0; i < t->nkernel; i++)
			t->kernel_pcs[i] = cursor_u64(c);
	}
	return parts & KERNEL_TEXT ? get_kernel_text(c, snap, err, t) : 0;
}

static void get_syscall(struct cursor *c, struct snap_syscall *out)
{
	out->state = cursor_u32(c);
	out->nr = (int64_t)cursor_u64(c);
	for (size_t i = 0; i < 6; i++)
		out->args[i] = cursor_u64(c);
}

static int get_thread(struct cursor *c, struct snapshot *snap, struct err *err)
{
	struct snap_thread t = {.tid = (pid_t)cursor_u32(c), .facts = thread_facts_none}; /* which older files have not */
	const char *name;
	int ret = get_text(c, snap, err, &name);

	if (ret)
		return ret;
	snprintf(t.name, sizeof(t.name), "%s", name);
	t.state = (char)cursor_u8(c);
	t.status = cursor_u32(c);
	t.capture = cursor_u32(c);
	ret = get_string(c, snap, err, &t.why);
	if (ret)
		return ret;
	t.tracer = (pid_t)cursor_u32(c);
	t.nvcsw = cursor_u64(c);
	t.nivcsw = cursor_u64(c);
	t.off_cpu_ns = (int64_t)cursor_u64(c);
	t.pause_ns = cursor_u64(c);
	t.retakes = cursor_u32(c);
	get_syscall(c, &t.syscall);
	ret = get_regs(c, snap->arch, err, &t.regs);
	if (!ret)
		ret = get_kernel_stack(c, snap, err, &t);
	if (!ret)
		ret = get_copy(c, snap, err, &t.stack);
	if (!ret)
		ret = get_copy(c, snap, err, &t.interrupted);
	if (ret || c->bad)
		return ret;
	t.cpu_ns = cursor_left(c) >= 8 ? (int64_t)cursor_u64(c) : -1; /* not in older files */
	t.inner_tid = cursor_left(c) >= 4 ? (pid_t)cursor_u32(c) : 0;
	if (cursor_left(c) >= 18) { /* likewise */
		uint8_t still;

		t.tid_address = cursor_u64(c);
		still = cursor_u8(c);
		t.still = still <= STILL_IN_WINDOW ? (enum thread_stillness)still : STILL_NEVER;
		t.woken = cursor_u8(c);
		t.read_in = cursor_u32(c);
		t.still_in = cursor_u32(c);
	}
	t.still_besides = cursor_left(c) && cursor_u8(c); /* likewise */
	if (t.tid <= 0 || t.inner_tid < 0 || t.tracer < 0)
		return err_set(err, EINVAL, "a thread with the number %d, traced by %d", (int)t.tid, (int)t.tracer);
	if (snap->threads.len >= MAX_THREADS)
		return err_set(err, EINVAL, "more than %d threads", MAX_THREADS);
	return vec_push(&snap->threads, t) ? 0 : snapfile_no_memory(err);
}

struct reader {
	FILE *in;
	uint64_t offset; /* in the file */
	struct bytes buf;
};

static int cut_short(const struct reader *r, struct err *err)
{
	if (ferror(r->in))
		return err_set(err, EIO, "cannot read the snapshot at byte %" PRIu64, r->offset);
	return err_set(err, EINVAL, "damaged snapshot: the file ends at byte %" PRIu64 ", inside a section", r->offset);
}

/* Reads `len` bytes into r->buf; in pieces, so that a wrong length costs no more memory than the file has bytes. */
static int read_bytes(struct reader *r, uint64_t len, struct err *err)
{
	r->buf.len = 0;
	while (r->buf.len < len) {
		size_t want = len - r->buf.len < READ_CHUNK ? (size_t)(len - r->buf.len) : READ_CHUNK;
		size_t got;

		if (!vec_reserve(&r->buf, r->buf.len + want))
			return snapfile_no_memory(err);
		got = fread(r->buf.data + r->buf.len, 1, want, r->in);
		r->buf.len += got;
		r->offset += got;
		if (got < want)
			return cut_short(r, err);
	}
	return 0;
}

static int read_header(struct reader *r, struct err *err, struct snapshot **out)
{
	const struct arch *arch;
	struct cursor c;
	uint32_t version, id;
	int ret = read_bytes(r, sizeof(magic) + 4 + 4, err);

	if (r->buf.len < sizeof(magic) || memcmp(r->buf.data, magic, sizeof(magic)) != 0)
		return err_set(err, EINVAL, "not a saved snapshot");
	if (ret)
		return ret;
	c = cursor_init(r->buf.data, r->buf.len);
	cursor_skip(&c, sizeof(magic));
	version = cursor_u32(&c);
	id = cursor_u32(&c);
	if (version != VERSION)
		return err_set(err, EINVAL,
			       "the snapshot has format version %" PRIu32 "; this program reads version %d", version,
			       VERSION);
	arch = arch_by_id(id);
	if (!arch)
		return err_set(err, EINVAL, "the snapshot is of an architecture that is not known here (%" PRIu32 ")",
			       id);
	*out = snapshot_create(0, arch);
	return *out ? 0 : snapfile_no_memory(err);
}

static const struct section {
	uint32_t tag;
	const char *name;
	int (*get)(struct cursor *c, struct snapshot *snap, struct err *err);
} sections[] = {
	{TAG_PROCESS, "process", get_process}, {TAG_CAPTURE, "capture", get_capture},
	{TAG_NOTES, "notes", get_notes},       {TAG_MAPS, "maps", get_maps},
	{TAG_IMAGE, "image", get_image},       {TAG_JIT_IMAGE, "JIT image", get_jit_image},
	{TAG_COPY, "copy", get_asked},         {TAG_RUNTIME, "runtime", get_runtime},
	{TAG_THREAD, "thread", get_thread},   {TAG_FACTS, "facts", get_facts},
	{TAG_WAIT, "wait", get_wait},
};

static const struct section *section_by_tag(uint32_t tag)
{
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		if (sections[i].tag == tag)
			return &sections[i];
	return NULL;
}

/* Reads one section into the snapshot; *tag tells which it was. */
static int read_section(struct reader *r, struct snapshot *snap, struct err *err, uint32_t *tag)
{
	uint64_t start = r->offset, len;
	const struct section *section;
	struct cursor c;
	int ret = read_bytes(r, SECTION_HEADER, err);

	if (ret)
		return ret;
	c = cursor_init(r->buf.data, r->buf.len);
	*tag = cursor_u32(&c);
	len = cursor_u64(&c);
	if (len > MAX_SECTION)
		return err_set(err, EINVAL, "damaged snapshot: section at byte %" PRIu64 " of %" PRIu64 " bytes", start,
			       len);
	ret = read_bytes(r, len, err);
	if (ret)
		return ret;
	section = section_by_tag(*tag);
	if (!section)
		return 0;
	c = cursor_init(r->buf.data, r->buf.len);
	ret = section->get(&c, snap, err);
	if (!ret && c.bad)
		ret = err_set(err, EINVAL, "the record is too short");
	if (ret)
		err_prefix(err, "damaged snapshot: %s section at byte %" PRIu64, section->name, start);
	return ret;
}

DEFINE_CLEANUP(snapshot, struct snapshot *, snapshot_destroy)

static void cleanup_reader(struct reader *r)
{
	cleanup_bytes(&r->buf);
}

int snapfile_read(FILE *in, struct err *err, struct snapshot **out)
{
	_cleanup_(cleanup_reader) struct reader r = {.in = in};
	_cleanup_(cleanup_snapshot) struct snapshot *snap = NULL;
	uint32_t tag = 0;
	int ret = read_header(&r, err, &snap);

	while (!ret && tag != TAG_END)
		ret = read_section(&r, snap, err, &tag);
	if (ret)
		return ret;
	if (!snap->pid)
		return err_set(err, EINVAL, "damaged snapshot: it has no process section");
	snap->replayed = true;
	*out = steal_ptr(snap);
	return 0;
}
