/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#ifndef STAKEOUT_BPF_FOUND_CODE_H
#define STAKEOUT_BPF_FOUND_CODE_H

/*
 * What the current process has mapped, when the loader has not told yet: new processes are gone before it has read their
 * maps, but usually have no file that it does not know. Without FINDS_CODE nothing is found: kernels without the iterator
 * refuse a program that names it, even where it is never called.
 */

enum {
	MAX_VISITED = 1024, /* mappings of a process: no other thread gets this CPU while they are looked at */
	LOOK_AGAIN_NS = 200000000,
	SETS_AT_ONCE = 4, /* that a process gets as soon as it needs them; then at growing intervals, from the next on */
	FIRST_GAP_NS = 1000000,
	MAX_DOUBLINGS = 10,
};

/* Set by the loader. */
const volatile __u32 first_found_slot;
volatile __u32 nfiles; /* how many files it has made known so far */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384); /* a file may be mapped from several places */
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct offcpu_file);
	__type(value, struct offcpu_file_code);
} files SEC(".maps");

/* How a process was when it was looked at in vain, or when something was found. It is not again until that has changed. */
struct look {
	__u64 ns;
	__u64 pages;
	__u32 set;
	__u32 nfiles;
	__u32 nsets; /* found so far */
	__u32 ncopies; /* of its stacks: see stack_copy.bpf.h */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32); /* tgid */
	__type(value, struct look);
} looks SEC(".maps");

struct found {
	struct offcpu_found head;
	struct offcpu_mapping mappings[OFFCPU_FOUND_MAPPINGS];
	struct offcpu_file file; /* here because the programs' own stack is small */
	struct look look;
	struct offcpu_maps maps; /* where its mappings are */
	__u32 is_shared;	 /* another process had the same: the loader has this set already */
	__u64 hash;
	__u64 missed;
	__u32 nvisited;
	__u32 over; /* there are too many */
	__u32 nunknown; /* mappings of code that is in no file, or in one that is not known */
	__u32 is_code;	/* where the walk ended is code, */
	__u32 is_known; /* and of a file that is known */
	__u32 nlisted;	/* mappings of code from files, known or not; */
	__u32 is_listed; /* all of them, for the current stack */
	struct offcpu_code listed[OFFCPU_FOUND_MAPPINGS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCHES);
	__type(key, __u32);
	__type(value, struct found);
} found_scratches SEC(".maps");

/* Sets found lately, by a hash of what they have: those of a server's workers are one, and so are their stacks. */
enum { CACHED_SETS = 1024 };

struct cached_set {
	__u64 hash;
	struct offcpu_maps maps;
	__u32 zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CACHED_SETS);
	__type(key, __u32);
	__type(value, struct cached_set);
} cached_sets SEC(".maps");

__u64 nfound_slots; /* given out so far */
__u32 nfound_sets;

enum finding { FOUND_NOTHING, FOUND_SET, FOUND_NO_CODE };

/* What is mapped. False: no file, and not the vDSO. */
static bool identify(struct vm_area_struct *vma, struct offcpu_file *out)
{
	enum { QUERIED = 1u << 31 }; /* a mark that the kernel keeps with the time */
	struct file *file = vma->vm_file;
	struct mm_struct *mm = vma->vm_mm;
	struct inode *inode;

	*out = (struct offcpu_file){.page = vma->vm_pgoff};
	if (file) {
		inode = file->f_inode;
		out->inode = (__u64)inode;
		if (bpf_core_field_exists(inode->i_ctime_sec)) {
			out->changed_s = inode->i_ctime_sec;
			out->changed_ns = inode->i_ctime_nsec & ~QUERIED;
		} else {
			out->changed_s = ((struct inode___before_6_11 *)inode)->__i_ctime.tv_sec;
			out->changed_ns = ((struct inode___before_6_11 *)inode)->__i_ctime.tv_nsec;
		}
		return inode != 0;
	}
	/* 32-bit processes have another, which aarch64 does not tell from this one. */
	if (!mm || vma->vm_start != (__u64)BPF_CORE_READ(mm, context.vdso) || !(vma->vm_start >> 32))
		return false;
	if (bpf_core_field_exists(mm->context.vdso_image))
		out->inode = (__u64)BPF_CORE_READ(mm, context.vdso_image);
	out->page = 0;
	return true;
}

/* For the loader: which file it has mapped at an address, as identify() says. */
struct {
	__u64 address;
	struct offcpu_file file;
	__u32 done;
} asked_file;

static long note_file(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	struct offcpu_file file;

	asked_file.done = identify(vma, &file);
	asked_file.file = file;
	return 0;
}

SEC("?raw_tp")
int tell_file(void *ctx)
{
	__u64 none = 0;

	asked_file.done = 0;
	return bpf_find_vma((struct task_struct *)bpf_get_current_task_btf(), asked_file.address, note_file, &none, 0);
}

static struct cached_set *cached_place(const struct found *f)
{
	__u32 at = (f->hash >> 40) % CACHED_SETS;

	return bpf_map_lookup_elem(&cached_sets, &at);
}

static void cache_set(struct found *f)
{
	struct cached_set *c = cached_place(f);

	if (!c)
		return;
	__sync_lock_test_and_set(&c->hash, 0); /* somebody may be reading it */
	c->maps = f->maps;
	__sync_lock_test_and_set(&c->hash, f->hash);
}

#ifdef FINDS_CODE

struct bpf_iter_task_vma {
	__u64 opaque[1];
} __attribute__((aligned(8)));

extern int bpf_iter_task_vma_new(struct bpf_iter_task_vma *it, struct task_struct *task, __u64 address) __ksym;
extern struct vm_area_struct *bpf_iter_task_vma_next(struct bpf_iter_task_vma *it) __ksym;
extern void bpf_iter_task_vma_destroy(struct bpf_iter_task_vma *it) __ksym;

static struct offcpu_mapping *found_at(struct found *f, __u32 i)
{
	asm volatile("" : "+r"(i)); /* shows the verifier a bound that the compiler already knows */
	return &f->mappings[i % OFFCPU_FOUND_MAPPINGS];
}

static struct offcpu_code *listed_at(struct found *f, __u32 i)
{
	asm volatile("" : "+r"(i)); /* likewise */
	return &f->listed[i % OFFCPU_FOUND_MAPPINGS];
}

static void list(struct found *f, struct vm_area_struct *vma)
{
	struct offcpu_code *code;

	if (f->nlisted < OFFCPU_FOUND_MAPPINGS) {
		code = listed_at(f, f->nlisted);
		code->start = vma->vm_start;
		code->end = vma->vm_end;
		code->file = f->file;
	}
	f->nlisted++;
}

/* False: these are too many. */
static bool visit(struct found *f, struct vm_area_struct *vma)
{
	struct offcpu_file_code *code = 0;
	struct offcpu_mapping *m;
	bool here;

	if (++f->nvisited > MAX_VISITED)
		return false;
	if (!(vma->vm_flags & VM_EXEC))
		return true;
	here = vma->vm_start <= f->missed && f->missed < vma->vm_end;
	f->is_code |= here;
	if (identify(vma, &f->file)) {
		list(f, vma);
		code = bpf_map_lookup_elem(&files, &f->file);
	}
	if (!code) {
		f->nunknown++;
		return true;
	}
	if (f->head.count >= OFFCPU_FOUND_MAPPINGS)
		return false;
	f->is_known |= here;
	m = found_at(f, f->head.count++);
	m->start = vma->vm_start;
	m->end = vma->vm_end;
	m->bias = vma->vm_start + code->shift;
	m->object = code->object;
	m->nrows = code->nrows;
	m->serial = code->serial;
	f->hash = mix(mix(mix(f->hash, m->start), m->end), mix(m->bias, (__u64)m->object << 32 | m->serial));
	return true;
}

/* Whether a mapping of that set is still what we found. */
static bool is_in_set(struct found *f, __u32 i, const struct offcpu_maps *maps)
{
	struct offcpu_mapping *m, *mine = found_at(f, i);
	__u32 at = maps->first + i;

	m = bpf_map_lookup_elem(&mappings, &at);
	return m && m->set == maps->set && m->start == mine->start && m->object == mine->object && m->serial == mine->serial;
}

/* A set with the same mappings, unless it is the one that an address was missed with. */
static bool share_set(struct found *f, __u32 set)
{
	struct cached_set *c = cached_place(f);

	if (!c || c->hash != f->hash)
		return false;
	f->maps = c->maps;
	asm volatile("" ::: "memory");
	return c->hash == f->hash && f->maps.set != set && f->maps.count == f->head.count && is_in_set(f, 0, &f->maps) &&
	       is_in_set(f, f->head.count - 1, &f->maps);
}

/* Gives the set a number and places; false: there are none. A set that had them before is unknown, and found again. */
static bool place_set(struct found *f)
{
	__u64 at = OFFCPU_FOUND_SLOTS;

	for (int i = 0; i < 2 && at + f->head.count > OFFCPU_FOUND_SLOTS; i++) /* all in one piece */
		at = __sync_fetch_and_add(&nfound_slots, f->head.count) % OFFCPU_FOUND_SLOTS;
	f->head.set = __sync_fetch_and_add(&nfound_sets, 1) | OFFCPU_FOUND_SET;
	f->head.first = first_found_slot + (__u32)at;
	f->maps = (struct offcpu_maps){.first = f->head.first, .count = f->head.count, .set = f->head.set};
	return at + f->head.count <= OFFCPU_FOUND_SLOTS;
}

static void write_set(struct found *f)
{
	for (__u32 i = 0; i < OFFCPU_FOUND_MAPPINGS && i < f->head.count; i++) {
		struct offcpu_mapping *from = found_at(f, i), *m;
		__u32 at = f->maps.first + i;

		m = bpf_map_lookup_elem(&mappings, &at);
		if (!m)
			return;
		__sync_lock_test_and_set(&m->set, 0); /* neither the old set's nor this one's: somebody may walk by it */
		m->start = from->start;
		m->end = from->end;
		m->bias = from->bias;
		m->object = from->object;
		m->nrows = from->nrows;
		m->serial = from->serial;
		__sync_lock_test_and_set(&m->set, f->head.set);
	}
}

/* Some processes map code all the time, and each set makes all stacks new ones. */
static __u64 gap_after(const struct look *last)
{
	__u32 doublings = last->nsets - SETS_AT_ONCE;

	if (last->nsets < SETS_AT_ONCE)
		return 0;
	return (__u64)FIRST_GAP_NS << (doublings < MAX_DOUBLINGS ? doublings : MAX_DOUBLINGS);
}

/* Whether looking may tell more than the last time. Notes that it is done. */
static bool is_worth_looking(struct found *f, struct task_struct *task, __u32 tgid, __u32 set)
{
	struct look *last = bpf_map_lookup_elem(&looks, &tgid);
	__u64 since;

	f->look = (struct look){.ns = bpf_ktime_get_ns(), .set = set, .nfiles = nfiles};
	f->look.pages = BPF_CORE_READ(task, mm, exec_vm);
	if (!last)
		return true;
	f->look.nsets = last->nsets;
	f->look.ncopies = last->ncopies;
	since = f->look.ns - last->ns;
	if (since < gap_after(last))
		return false;
	return last->set != set || last->pages != f->look.pages || last->nfiles != f->look.nfiles || since > LOOK_AGAIN_NS;
}

/* False: not now. */
static bool visit_all(struct found *f, struct task_struct *task)
{
	struct vm_area_struct *vma;
	struct bpf_iter_task_vma it;
	bool ok;

	f->head.count = f->nvisited = f->nunknown = f->is_code = f->is_known = f->is_shared = f->over = f->nlisted = 0;
	f->hash = 0;
	/* Fails while somebody changes the map, or the last one's lock on this CPU is still to be given back. */
	ok = bpf_iter_task_vma_new(&it, task, 0) == 0;
	while ((vma = bpf_iter_task_vma_next(&it)))
		if (!visit(f, vma)) {
			f->over = 1;
			break;
		}
	bpf_iter_task_vma_destroy(&it);
	f->is_listed = ok && !f->over && f->nlisted <= OFFCPU_FOUND_MAPPINGS;
	return ok;
}

/*
 * Looks at what the current process has mapped, as it has no set yet, or `set` lacks the address. FOUND_SET: there is a
 * set with it in the scratch. A set of the loader's is replaced only by one that knows everything, as the loader may know
 * more of code that is in no file.
 */
__attribute__((noinline)) int find_code(__u32 tgid, __u32 set, __u32 which, __u64 missed)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	struct found *f = bpf_map_lookup_elem(&found_scratches, &which);

	if (!f)
		return FOUND_NOTHING;
	f->is_listed = 0;
	f->missed = missed;
	if (!is_worth_looking(f, task, tgid, set))
		return FOUND_NOTHING;
	if (BPF_CORE_READ_BITFIELD_PROBED(mm, map_count) > MAX_VISITED || !visit_all(f, task))
		return FOUND_NOTHING;
	bpf_map_update_elem(&looks, &tgid, &f->look, 0);
	if (f->over)
		return FOUND_NOTHING;
	if (!f->is_code)
		return FOUND_NO_CODE;
	if (!f->is_known || (f->nunknown && set && !(set & OFFCPU_FOUND_SET)))
		return FOUND_NOTHING;
	f->is_shared = share_set(f, set);
	if (f->is_shared)
		return FOUND_SET;
	if (!place_set(f))
		return FOUND_NOTHING;
	write_set(f);
	return FOUND_SET;
}

#else

static int find_code(__u32 tgid, __u32 set, __u32 which, __u64 missed)
{
	return FOUND_NOTHING;
}

#endif

#endif
