/* SPDX-License-Identifier: MIT */
#ifdef HAVE_BPF

#include "kernel/offcpu_probe.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/debug.h"
#include "kernel/loading.h"
#include "offcpu.skel.h"
#include "offcpu_finding.skel.h"
#include "privilege/remedy.h"

/* Waits whose sums do not fit are sent one by one. */
enum { ALLOCATED_SUMS = 1 << 15, ALLOCATED_STACKS = 1 << 16, ALLOCATED_LENGTHS = 1 << 12, ALLOCATED_STUBS = 1 << 9 };

/* Which stacks are taken, from the best to the least. */
enum stacks { STACKS_WANTED, STACKS_KERNEL, STACKS_USER, STACKS_NONE };

/* What the kernel offers, according to its BTF. */
struct kernel_facts {
	bool sched_exit; /* the tracepoint */
	bool prev_state;
	bool run_delay;	      /* the scheduler counts how long a thread waits for a CPU */
	bool delayed_dequeue; /* and is wrong at times (Linux 6.12): see is_misjudged() in offcpu.bpf.c */
	bool storage_hides; /* task storage is not found while its CPU is busy with some other (until Linux 6.2) */
	bool own_allocator; /* BPF has memory of its own for maps that grow (Linux 6.1) */
	bool lists_mappings; /* BPF can look at what a process has mapped (Linux 6.7) */
};

struct offcpu_probe {
	struct kernel_facts kernel;
	struct offcpu_bpf *skel;
	struct ring_buffer *ring;
	enum offcpu_rung rung;
	char switch_symbol[64]; /* the function that a kprobe is put on */
	enum stacks stacks;
	bool finds_code;
	struct err lacks;       /* why fewer stacks are taken than were wanted */
	struct err passed_over; /* why no better rung is used; see offcpu_probe_passed_over() */
	struct words words;     /* what an iterator wrote */
	struct words ran;       /* what list_ran() wrote */
	int ncpus;
	uint64_t *per_cpu; /* room for one value of each */
	offcpu_record_fn handle;
	void *arg;
};

DEFINE_CLEANUP(offcpu_probe, struct offcpu_probe *, offcpu_probe_destroy)

/* Whether the tracepoint has a fourth argument, the state of the thread that leaves. */
static bool has_prev_state(const struct btf *btf)
{
	int id = btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF);
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;
	const char *name;

	while (type && (btf_is_typedef(type) || btf_is_ptr(type)))
		type = btf__type_by_id(btf, type->type);
	if (!type || !btf_is_func_proto(type) || btf_vlen(type) != 5) /* the first is the tracepoint's own */
		return false;
	name = btf__name_by_offset(btf, btf_params(type)[4].name_off);
	return !name || !*name || strcmp(name, "prev_state") == 0;
}

static bool has_member(const struct btf *btf, const char *structure, const char *member)
{
	int id = btf__find_by_name_kind(btf, structure, BTF_KIND_STRUCT);
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;

	for (unsigned i = 0; type && i < btf_vlen(type); i++)
		if (strcmp(btf__name_by_offset(btf, btf_members(type)[i].name_off), member) == 0)
			return true;
	return false;
}

/* Reading the kernel's BTF takes some 20 ms, so it is done once for all questions. */
static struct kernel_facts ask_kernel(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	struct kernel_facts facts = {0};

	if (!btf)
		return facts;
	facts.sched_exit = btf__find_by_name_kind(btf, "btf_trace_sched_exit_tp", BTF_KIND_TYPEDEF) > 0;
	facts.prev_state = has_prev_state(btf);
	facts.run_delay = has_member(btf, "sched_info", "run_delay");
	facts.delayed_dequeue = has_member(btf, "sched_entity", "sched_delayed");
	facts.storage_hides = btf__find_by_name_kind(btf, "bpf_task_storage_busy", BTF_KIND_VAR) > 0 &&
			      btf__find_by_name_kind(btf, "bpf_task_storage_get_recur", BTF_KIND_FUNC) < 0;
	facts.own_allocator = btf__find_by_name_kind(btf, "bpf_mem_alloc", BTF_KIND_STRUCT) > 0;
	facts.lists_mappings = btf__find_by_name_kind(btf, "bpf_iter_task_vma_new", BTF_KIND_FUNC) > 0;
	btf__free(btf);
	return facts;
}

/* Compilers give the function a suffix when they change its arguments. */
static bool find_switch_symbol(char out[static 64])
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[256], name[128];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %*c %127s", name) == 1 && strncmp(name, "finish_task_switch", 18) == 0 &&
		    (!name[18] || name[18] == '.') && !strstr(name, ".cold")) {
			snprintf(out, 64, "%.63s", name);
			found = true;
		}
	if (f)
		fclose(f);
	return found;
}

static bool has_kernel_stacks(const struct offcpu_probe *probe)
{
	return probe->stacks == STACKS_WANTED || probe->stacks == STACKS_KERNEL;
}

static bool has_user_stacks(const struct offcpu_probe *probe)
{
	return probe->stacks == STACKS_WANTED || probe->stacks == STACKS_USER;
}

/* All of them, not only those of threads that the scheduler misjudges. */
static bool wants_wakeups(const struct offcpu_probe *probe, const struct offcpu_probe_options *options)
{
	return options->wakers || probe->rung == OFFCPU_RUNG_SWITCH || !probe->kernel.run_delay;
}

static void configure(struct offcpu_probe *probe, const struct offcpu_probe_options *options)
{
	const struct arch *arch = arch_host();
	struct offcpu_bpf *skel = probe->skel;

	skel->rodata->min_ns = options->filter.min_ns;
	skel->rodata->max_ns = options->filter.max_ns;
	skel->rodata->signal_frame.pc = (__u32)arch->sigframe_pc_offset;
	skel->rodata->signal_frame.sp = (__u32)arch->sigframe_offset[arch->dwarf_sp];
	skel->rodata->signal_frame.fp = (__u32)arch->sigframe_offset[arch->dwarf_fp];
	skel->rodata->signal_frame.link = (__u32)arch->sigframe_offset[arch->dwarf_link];
	skel->rodata->ns_inum = loading_pid_namespace();
	skel->rodata->self_tgid = (__u32)getpid();
	skel->rodata->all_processes = options->all_processes;
	skel->rodata->want_runtimes = options->runtimes;
	skel->rodata->want_children = options->children;
	skel->rodata->can_kernel = has_kernel_stacks(probe);
	skel->rodata->want_kernel = options->kernel_stacks && has_kernel_stacks(probe);
	skel->rodata->want_user = options->user_stacks && has_user_stacks(probe);
	skel->rodata->want_wakers = options->wakers;
	skel->rodata->want_sleeping = options->filter.sleeping;
	skel->rodata->want_uninterruptible = options->filter.uninterruptible;
	skel->rodata->want_runnable = options->filter.runnable;
	skel->rodata->want_events = options->events;
	skel->rodata->want_copies = !options->events; /* a wait is told at once then, with the stack that it has */
	skel->rodata->want_waiting = !options->only_new;
	skel->rodata->storage_hides = probe->kernel.storage_hides || options->pretended & OFFCPU_BUSY_BACK;
	skel->rodata->pretended = options->pretended;
	skel->rodata->has_prev_state = probe->kernel.prev_state;
	skel->rodata->end_at_switch = probe->rung == OFFCPU_RUNG_SWITCH;
	skel->rodata->stack_at_switch = probe->rung == OFFCPU_RUNG_SWITCH || options->filter.min_ns == 0;
	skel->rodata->only_misjudged = !wants_wakeups(probe, options);
	bpf_program__set_autoload(skel->progs.on_waking, wants_wakeups(probe, options) || probe->kernel.delayed_dequeue);
	bpf_program__set_autoload(skel->progs.on_sched_exit, probe->rung == OFFCPU_RUNG_SCHED_EXIT);
	bpf_program__set_autoload(skel->progs.on_finish_switch, probe->rung == OFFCPU_RUNG_KPROBE);
	bpf_program__set_autoload(skel->progs.tell_file, probe->finds_code);
	skel->rodata->first_found_slot = options->max_mappings;
	bpf_map__set_max_entries(skel->maps.mappings, options->max_mappings + (probe->finds_code ? OFFCPU_FOUND_SLOTS : 0));
	if (!probe->finds_code) {
		bpf_map__set_max_entries(skel->maps.files, 1);
		bpf_map__set_max_entries(skel->maps.looks, 1);
	}
	bpf_map__set_max_entries(skel->maps.ring, options->ring_bytes);
}

/*
 * Where BPF has no allocator of its own, each map entry comes from the kernel's, which must not be called with a
 * scheduler lock held, as it may wake a thread. There the maps are allocated in advance, and so are smaller.
 */
static void allocate_before(struct offcpu_bpf *skel)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, skel->obj)
		if (bpf_map__type(map) == BPF_MAP_TYPE_HASH)
			bpf_map__set_map_flags(map, bpf_map__map_flags(map) & ~(__u32)BPF_F_NO_PREALLOC);
	bpf_map__set_max_entries(skel->maps.sums, ALLOCATED_SUMS);
	bpf_map__set_max_entries(skel->maps.known_stacks, ALLOCATED_STACKS);
	bpf_map__set_max_entries(skel->maps.lengths, ALLOCATED_LENGTHS);
	bpf_map__set_max_entries(skel->maps.java_stubs, ALLOCATED_STUBS);
}

/* What an old kernel lacks that none of the rungs can do without; NULL when it has it. */
static const char *find_lack(void)
{
	return libbpf_probe_bpf_map_type(BPF_MAP_TYPE_TASK_STORAGE, NULL) == 0
		       ? "this kernel has no storage for what BPF notes of a thread, which Linux 5.12 has"
		       : NULL;
}

/* The programs that suit the kernel. Both kinds have the same types: the Makefile sees to that. */
static struct offcpu_bpf *open_programs(bool finds_code)
{
	struct offcpu_bpf *skel = calloc(1, sizeof(*skel));
	int rc = skel ? offcpu_bpf__create_skeleton(skel) : -ENOMEM;

	if (rc == 0 && finds_code)
		skel->skeleton->data = (void *)offcpu_finding_bpf__elf_bytes(&skel->skeleton->data_sz);
	if (rc == 0)
		rc = bpf_object__open_skeleton(skel->skeleton, NULL);
	if (rc == 0)
		return skel;
	if (skel)
		offcpu_bpf__destroy(skel);
	errno = -rc;
	return NULL;
}

static int load_programs(struct offcpu_probe *probe, const struct offcpu_probe_options *options, struct err *err)
{
	int rc;

	offcpu_bpf__destroy(probe->skel);
	probe->skel = open_programs(probe->finds_code);
	if (!probe->skel)
		return loading_explain(err, errno, "opening the BPF programs", NULL);
	configure(probe, options);
	if (!probe->kernel.own_allocator)
		allocate_before(probe->skel);
	rc = offcpu_bpf__load(probe->skel);
	return rc ? loading_explain(err, -rc, "loading the BPF programs", find_lack()) : 0;
}

/* A kernel may have what finds code and not let these programs use it: then the loader reads all maps, as on older ones. */
static int load(struct offcpu_probe *probe, const struct offcpu_probe_options *options, struct err *err)
{
	int rc;

	/* Where a wait ends at the switch, nothing is ever looked at in the thread that is back. */
	probe->finds_code = probe->kernel.lists_mappings && options->user_stacks && has_user_stacks(probe) &&
			    probe->rung != OFFCPU_RUNG_SWITCH && !(options->pretended & OFFCPU_NEVER_FINDS);
	rc = load_programs(probe, options, err);
	if (rc == 0 || rc == -EPERM || !probe->finds_code)
		return rc;
	probe->finds_code = false;
	return load_programs(probe, options, err);
}

/* A probe that can be loaded may still be refused when it is attached. */
static int try_kprobe(struct offcpu_probe *probe)
{
	struct bpf_link *link;

	link = bpf_program__attach_kprobe(probe->skel->progs.on_finish_switch, false, probe->switch_symbol);
	if (!link)
		return -errno;
	bpf_link__destroy(link);
	return 0;
}

/* The kernel has them at all: it is expensive to find that out by loading the programs, each time with fewer stacks. */
static bool has_kprobes(void)
{
	static const char *const doors[] = {
		"/sys/bus/event_source/devices/kprobe/type",
		"/sys/kernel/tracing/kprobe_events",
		"/sys/kernel/debug/tracing/kprobe_events",
	};

	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++)
		if (access(doors[i], F_OK) == 0)
			return true;
	return false;
}

/* A kprobe without a program: for the same reason. 0 also where only /sys/kernel/tracing can make one. */
static int ask_for_kprobe(const char *symbol)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .kprobe_func = (uintptr_t)symbol};
	_cleanup_fclose_ FILE *f = fopen("/sys/bus/event_source/devices/kprobe/type", "re");
	_cleanup_close_ int fd = -1;

	if (!f || fscanf(f, "%u", &attr.type) != 1)
		return 0;
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : 0;
}

static int refuse_kprobe(const struct offcpu_probe *probe, int code, struct err *err)
{
	char help[REMEDY_SIZE];

	return err_set(err, code, "a kprobe on %s was refused (%s): %s", probe->switch_symbol, strerror(code),
		       remedy(REFUSED_KPROBE, help));
}

static int try_rung(struct offcpu_probe *probe, enum offcpu_rung rung, const struct offcpu_probe_options *options,
		    struct err *err)
{
	int rc;

	probe->rung = rung;
	if (rung == OFFCPU_RUNG_SCHED_EXIT && !probe->kernel.sched_exit)
		return err_set(err, ENOENT, "this kernel has no tracepoint sched_exit_tp");
	if (rung == OFFCPU_RUNG_KPROBE && !find_switch_symbol(probe->switch_symbol))
		return err_set(err, ENOENT, "/proc/kallsyms shows no finish_task_switch");
	if (rung == OFFCPU_RUNG_KPROBE) {
		rc = has_kprobes() ? ask_for_kprobe(probe->switch_symbol) : -ENOENT;
		if (rc < 0)
			return refuse_kprobe(probe, -rc, err);
	}
	rc = load(probe, options, err);
	if (rc < 0 || rung != OFFCPU_RUNG_KPROBE)
		return rc;
	rc = try_kprobe(probe);
	return rc < 0 ? refuse_kprobe(probe, -rc, err) : 0;
}

/* Appends the reason to that of the rung before. */
static void pass_over(struct offcpu_probe *probe, const char *why)
{
	char before[sizeof(probe->passed_over.msg)];

	memcpy(before, probe->passed_over.msg, sizeof(before));
	err_set(&probe->passed_over, ENOENT, "%s%s%s: %s", before, before[0] ? "; " : "", offcpu_probe_method(probe), why);
}

static int try_rungs(struct offcpu_probe *probe, const struct offcpu_probe_options *options, struct err *err)
{
	int rc = -ENOENT;

	probe->passed_over = (struct err){0};
	for (enum offcpu_rung rung = OFFCPU_RUNG_SCHED_EXIT; rc < 0 && rung <= OFFCPU_RUNG_SWITCH; rung++) {
		if (options->rung != OFFCPU_RUNG_AUTO && options->rung != rung)
			continue;
		rc = try_rung(probe, rung, options, err);
		debug_say(rc, "loading BPF programs for waits, rung %s%s%s", offcpu_probe_method(probe), rc < 0 && err ? ": " : "",
			  rc < 0 && err ? err->msg : "");
		if (rc < 0)
			pass_over(probe, err->msg);
	}
	return rc;
}

/* A kernel that cannot walk one kind of stack may still walk the other, or report waits without stacks. */
static int try_stacks(struct offcpu_probe *probe, const struct offcpu_probe_options *options, struct err *err)
{
	const bool both = options->user_stacks && (options->kernel_stacks || options->wakers); /* whose kernel stacks count */
	int rc = try_rungs(probe, options, err);

	if (rc == 0 || rc == -EPERM || !probe->skel) /* nothing was loaded: there is no such rung, with whatever stacks */
		return rc;
	probe->lacks = *err;
	for (enum stacks stacks = both ? STACKS_KERNEL : STACKS_NONE; rc < 0 && stacks <= STACKS_NONE; stacks++) {
		probe->stacks = stacks;
		rc = try_rungs(probe, options, err);
	}
	if (rc < 0)
		*err = probe->lacks; /* explain why the one that was wanted failed */
	return rc;
}

int offcpu_probe_create(const struct offcpu_probe_options *options, struct err *err, struct offcpu_probe **out)
{
	_cleanup_(cleanup_offcpu_probe) struct offcpu_probe *probe = calloc(1, sizeof(*probe));
	struct err why = {0};
	LOADING_QUIETLY;
	int rc;

	if (!probe)
		return err_set(err, ENOMEM, "out of memory");
	libbpf_set_print(loading_quiet);
	probe->ncpus = libbpf_num_possible_cpus();
	probe->per_cpu = calloc(probe->ncpus > 0 ? (size_t)probe->ncpus : 1, sizeof(*probe->per_cpu));
	if (!probe->per_cpu)
		return err_set(err, ENOMEM, "out of memory");
	probe->kernel = ask_kernel();
	rc = try_stacks(probe, options, &why);
	if (rc < 0)
		return err_set(err, -rc, "%s", why.msg);
	*out = steal_ptr(probe);
	return 0;
}

const char *offcpu_probe_lacks_user_stacks(const struct offcpu_probe *probe)
{
	return has_user_stacks(probe) ? NULL : probe->lacks.msg;
}

const char *offcpu_probe_lacks_kernel_stacks(const struct offcpu_probe *probe)
{
	return has_kernel_stacks(probe) ? NULL : probe->lacks.msg;
}

const char *offcpu_probe_passed_over(const struct offcpu_probe *probe)
{
	const bool usual = probe->rung == OFFCPU_RUNG_KPROBE && !probe->kernel.sched_exit;

	return probe->passed_over.msg[0] && !usual ? probe->passed_over.msg : NULL;
}

void offcpu_probe_destroy(struct offcpu_probe *probe)
{
	if (!probe)
		return;
	ring_buffer__free(probe->ring);
	offcpu_bpf__destroy(probe->skel);
	vec_deinit(&probe->words);
	vec_deinit(&probe->ran);
	free(probe->per_cpu);
	free(probe);
}

const char *offcpu_probe_method(const struct offcpu_probe *probe)
{
	static const char *const names[] = {
		[OFFCPU_RUNG_SCHED_EXIT] = "sched_exit",
		[OFFCPU_RUNG_KPROBE] = "kprobe",
		[OFFCPU_RUNG_SWITCH] = "switch",
	};

	return names[probe->rung];
}

int offcpu_probe_watch(struct offcpu_probe *probe, pid_t tgid, struct err *err)
{
	__u32 key = (__u32)tgid;
	__u8 target = OFFCPU_TARGET_UNSEEN;

	if (bpf_map_update_elem(bpf_map__fd(probe->skel->maps.targets), &key, &target, BPF_ANY) < 0)
		return err_set(err, errno, "watching process %d: %s", (int)tgid, strerror(errno));
	return 0;
}

bool offcpu_probe_is_watched(const struct offcpu_probe *probe, pid_t tgid)
{
	__u32 key = (__u32)tgid;
	__u8 target;

	if (probe->skel->rodata->all_processes)
		return key != probe->skel->rodata->self_tgid;
	return bpf_map_lookup_elem(bpf_map__fd(probe->skel->maps.targets), &key, &target) == 0;
}

bool offcpu_probe_is_hidden(const struct offcpu_probe *probe, pid_t tgid)
{
	__u32 key = (__u32)tgid;
	__u8 target;

	return bpf_map_lookup_elem(bpf_map__fd(probe->skel->maps.targets), &key, &target) == 0 &&
	       target != OFFCPU_TARGET_LISTED;
}

/* A process that had ended before it was watched stays in the map for ever. */
bool offcpu_probe_watches_any(const struct offcpu_probe *probe)
{
	int fd = bpf_map__fd(probe->skel->maps.targets);
	__u32 key, *last = NULL;

	if (probe->skel->rodata->all_processes)
		return true;
	for (; bpf_map_get_next_key(fd, last, &key) == 0; last = &key)
		if (kill((pid_t)key, 0) == 0 || errno != ESRCH)
			return true;
	return false;
}

static int on_record(void *ctx, void *data, size_t len)
{
	struct offcpu_probe *probe = ctx;

	probe->handle(probe->arg, data, len);
	return 0;
}

int offcpu_probe_start(struct offcpu_probe *probe, struct err *err)
{
	LOADING_QUIETLY;
	int rc;

	probe->ring = ring_buffer__new(bpf_map__fd(probe->skel->maps.ring), on_record, probe, NULL);
	if (!probe->ring)
		return loading_explain(err, errno, "opening the ring buffer", NULL);
	if (probe->rung == OFFCPU_RUNG_KPROBE) {
		probe->skel->links.on_finish_switch =
			bpf_program__attach_kprobe(probe->skel->progs.on_finish_switch, false, probe->switch_symbol);
		if (!probe->skel->links.on_finish_switch)
			return loading_explain(err, errno, "attaching the kprobe", NULL);
	}
	rc = offcpu_bpf__attach(probe->skel);
	if (rc)
		return loading_explain(err, -rc, "attaching the BPF programs", NULL);
	probe->skel->bss->begin_ns = monotonic_ns();
	return offcpu_probe_note_waiting(probe, err);
}

int offcpu_probe_note_waiting(struct offcpu_probe *probe, struct err *err)
{
	int rc = loading_read_iterator(bpf_link__fd(probe->skel->links.note_waiting), &probe->words, err);

	probe->skel->bss->noted_all = true;
	return rc < 0 ? rc : 0;
}

uint64_t offcpu_probe_begin_ns(const struct offcpu_probe *probe)
{
	return probe->skel->bss->begin_ns;
}

uint64_t offcpu_probe_end(struct offcpu_probe *probe)
{
	if (!probe->skel->bss->end_ns)
		probe->skel->bss->end_ns = monotonic_ns();
	return probe->skel->bss->end_ns;
}

int offcpu_probe_stop(struct offcpu_probe *probe, struct err *err, const struct offcpu_open **open, size_t *n)
{
	int rc = loading_read_iterator(bpf_link__fd(probe->skel->links.list_waiting), &probe->words, err);

	offcpu_bpf__detach(probe->skel);
	*open = (const struct offcpu_open *)probe->words.data;
	*n = rc < 0 ? 0 : probe->words.len * sizeof(__u64) / sizeof(**open);
	return rc;
}

int offcpu_probe_ran(struct offcpu_probe *probe, struct err *err, const struct offcpu_ran **ran, size_t *n)
{
	int rc = loading_read_iterator(bpf_link__fd(probe->skel->links.list_ran), &probe->ran, err);

	*ran = (const struct offcpu_ran *)probe->ran.data;
	*n = rc < 0 ? 0 : probe->ran.len * sizeof(__u64) / sizeof(**ran);
	return rc;
}

static bool read_lengths(struct offcpu_probe *probe, const struct offcpu_sums *sums,
			 struct offcpu_lengths_counted *lengths)
{
	return sums->count > OFFCPU_FIRST_WAITS &&
	       bpf_map_lookup_elem(bpf_map__fd(probe->skel->maps.lengths), &sums->number, lengths) == 0;
}

int offcpu_probe_sums(struct offcpu_probe *probe, offcpu_sums_fn take, void *arg)
{
	int fd = bpf_map__fd(probe->skel->maps.sums);
	struct offcpu_key key, *last = NULL;
	struct offcpu_lengths_counted lengths;
	struct offcpu_sums sums;

	while (bpf_map_get_next_key(fd, last, &key) == 0) {
		if (bpf_map_lookup_elem(fd, &key, &sums) == 0)
			take(arg, &key, &sums, read_lengths(probe, &sums, &lengths) ? &lengths : NULL);
		last = &key;
	}
	return errno == ENOENT ? 0 : -errno;
}

uint64_t offcpu_probe_seen(struct offcpu_probe *probe)
{
	__u32 key = 0;
	uint64_t total = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(probe->skel->maps.seen), &key, probe->per_cpu) < 0)
		return 0;
	for (int i = 0; i < probe->ncpus; i++)
		total += probe->per_cpu[i];
	return total;
}

/* The serial number is in a row of its own behind the others. */
int offcpu_probe_create_table(struct offcpu_probe *probe, const struct unwind_row *rows, size_t n, uint32_t serial)
{
	LIBBPF_OPTS(bpf_map_create_opts, create, .map_flags = BPF_F_INNER_MAP);
	const struct unwind_row last = {.pc = serial};
	_cleanup_close_ int fd = -1;
	__u32 count = (__u32)n;
	__u32 *keys;
	int rc;

	if (n == 0 || n >= UINT32_MAX)
		return -ENOSPC;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "rows", sizeof(*keys), sizeof(*rows), count + 1, &create);
	if (fd < 0 || bpf_map_update_elem(fd, &count, &last, BPF_ANY) < 0)
		return -errno;
	keys = malloc(n * sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	for (__u32 i = 0; i < count; i++)
		keys[i] = i;
	rc = bpf_map_update_batch(fd, keys, rows, &count, NULL) < 0 ? -errno : 0;
	free(keys);
	return rc < 0 ? rc : steal_fd(&fd);
}

int offcpu_probe_set_objects(struct offcpu_probe *probe, const uint32_t *objects, const int *tables, size_t n)
{
	int fd = bpf_map__fd(probe->skel->maps.objects);
	__u32 count = (__u32)n;

	for (size_t i = 0; i < n; i++)
		if (objects[i] >= bpf_map__max_entries(probe->skel->maps.objects))
			return -ENOSPC;
	if (!n || bpf_map_update_batch(fd, objects, tables, &count, NULL) == 0)
		return 0;
	for (size_t i = 0; i < n; i++) /* older kernels have no batches of maps */
		if (bpf_map_update_elem(fd, &objects[i], &tables[i], BPF_ANY) < 0)
			return -errno;
	return 0;
}

int offcpu_probe_set_mapping(struct offcpu_probe *probe, uint32_t index, const struct offcpu_mapping *mapping)
{
	return bpf_map_update_elem(bpf_map__fd(probe->skel->maps.mappings), &index, mapping, BPF_ANY) < 0 ? -errno : 0;
}

void offcpu_probe_forget_mapping(struct offcpu_probe *probe, uint32_t index, uint32_t set)
{
	static const struct offcpu_mapping none;
	struct offcpu_mapping mapping;

	if (bpf_map_lookup_elem(bpf_map__fd(probe->skel->maps.mappings), &index, &mapping) < 0 || mapping.set != set)
		return;
	offcpu_probe_set_mapping(probe, index, &none);
	__atomic_fetch_add(&probe->skel->bss->nforgotten, 1, __ATOMIC_RELEASE);
}

int offcpu_probe_set_process(struct offcpu_probe *probe, pid_t tgid, const struct offcpu_maps *maps)
{
	__u32 key = (__u32)tgid;

	return bpf_map_update_elem(bpf_map__fd(probe->skel->maps.processes), &key, maps, BPF_ANY) < 0 ? -errno : 0;
}

uint32_t offcpu_probe_set_of(const struct offcpu_probe *probe, pid_t tgid)
{
	__u32 key = (__u32)tgid;
	struct offcpu_maps maps;

	return bpf_map_lookup_elem(bpf_map__fd(probe->skel->maps.processes), &key, &maps) == 0 ? maps.set : 0;
}

/* The pid may belong to a new process by now. If that gets its set just now, BPF will ask for it again. */
void offcpu_probe_forget_process(struct offcpu_probe *probe, pid_t tgid, uint32_t set)
{
	__u32 key = (__u32)tgid;

	if (offcpu_probe_set_of(probe, tgid) == set)
		bpf_map_delete_elem(bpf_map__fd(probe->skel->maps.processes), &key);
}

int offcpu_probe_set_runtime(struct offcpu_probe *probe, pid_t tgid, const struct offcpu_runtime *runtime)
{
	const int fd = bpf_map__fd(probe->skel->maps.runtimes);
	__u32 key = (__u32)tgid;

	return (runtime ? bpf_map_update_elem(fd, &key, runtime, BPF_ANY) : bpf_map_delete_elem(fd, &key)) < 0 ? -errno : 0;
}

int offcpu_probe_set_stubs(struct offcpu_probe *probe, const struct offcpu_stub_key *key, const struct offcpu_stub_rows *rows)
{
	return bpf_map_update_elem(bpf_map__fd(probe->skel->maps.java_stubs), key, rows, BPF_ANY) < 0 ? -errno : 0;
}

bool offcpu_probe_finds_code(const struct offcpu_probe *probe)
{
	return probe->finds_code;
}

/*
 * BPF does not wait for other threads of ours that change the map. Such a one may itself have to wait for a CPU, for as long as others use it: a
 * second at most is waited for it.
 */
int offcpu_probe_identify(struct offcpu_probe *probe, const void *address, struct offcpu_file *out)
{
	enum { TRIES = 2000, AT_ONCE = 1000 };
	LIBBPF_OPTS(bpf_test_run_opts, run);

	probe->skel->bss->asked_file.address = (uintptr_t)address;
	for (int i = 0; i < TRIES; i++) {
		if (bpf_prog_test_run_opts(bpf_program__fd(probe->skel->progs.tell_file), &run) < 0)
			return -errno;
		if ((int)run.retval != -EBUSY)
			break;
		if (i < AT_ONCE)
			sched_yield();
		else
			poll(NULL, 0, 1);
	}
	*out = probe->skel->bss->asked_file.file;
	out->page = 0;
	return probe->skel->bss->asked_file.done ? 0 : -ENOENT;
}

int offcpu_probe_set_file(struct offcpu_probe *probe, const struct offcpu_file *file, const struct offcpu_file_code *code)
{
	if (bpf_map_update_elem(bpf_map__fd(probe->skel->maps.files), file, code, BPF_ANY) < 0)
		return -errno;
	__atomic_fetch_add(&probe->skel->bss->nfiles, 1, __ATOMIC_RELAXED);
	return 0;
}

void offcpu_probe_forget_file(struct offcpu_probe *probe, const struct offcpu_file *file)
{
	bpf_map_delete_elem(bpf_map__fd(probe->skel->maps.files), file);
}

void offcpu_probe_answered(struct offcpu_probe *probe, pid_t tgid, bool news)
{
	int fd = bpf_map__fd(probe->skel->maps.requested);
	__u32 key = (__u32)tgid;
	__u64 now = monotonic_ns();

	if (news)
		bpf_map_delete_elem(fd, &key);
	else
		bpf_map_update_elem(fd, &key, &now, BPF_EXIST);
}

/*
 * Most records are sent without a wake-up, so that they come in batches: polling at once again would keep a CPU busy.
 */
int offcpu_probe_poll(struct offcpu_probe *probe, int timeout_ms, offcpu_record_fn handle, void *arg)
{
	int rc;

	probe->handle = handle;
	probe->arg = arg;
	rc = ring_buffer__consume(probe->ring);
	if (rc >= 0 && timeout_ms) {
		rc = ring_buffer__poll(probe->ring, timeout_ms);
		if (rc >= 0)
			rc = ring_buffer__consume(probe->ring);
	}
	return rc < 0 && rc != -EINTR ? rc : 0;
}

uint64_t offcpu_probe_loss(const struct offcpu_probe *probe, enum offcpu_lost what)
{
	return probe->skel->bss->losses[what];
}

#endif
