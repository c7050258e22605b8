/* SPDX-License-Identifier: MIT */
/*
 * The rows for BPF of real files and processes: every row of the decoder is there or said to be missing, and walks by
 * them find the frames that the snapshot's unwinder finds.
 */
#include "cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf_walk.h"
#include "capture/capture.h"
#include "scratch.h"
#include "target/target.h"
#include "unwind/codeinfo.h"
#include "unwind/expr.h"
#include "unwind/unwind.h"

enum { MAX_REPORTED = 20, PC_SLOT = 16 };

/* Registers far from each other, so that no two rules can give the same by chance. */
#define SP_VALUE UINT64_C(0x100000000000)
#define FP_VALUE UINT64_C(0x200000000000)
#define LR_VALUE UINT64_C(0x300000000000)

struct comparison {
	const struct arch *arch;
	const char *path;
	struct bpf_rows rows;
	size_t at; /* the row that was compared last: the decoder's rise as well */
	size_t differences;
	uint64_t covered;     /* bytes of code */
	uint64_t unsupported; /* of them */
};

/* Memory in which every word tells where it lies. */
static ssize_t echo_read(struct mem *mem, uint64_t address, void *buf, size_t len)
{
	uint64_t word = address * 3 + 8;

	assert_int_equal(len, sizeof(word));
	memcpy(buf, &word, len);
	return (ssize_t)len;
}

struct expected {
	uint64_t cfa, ra, fp;
	bool has_fp;
};

static bool rule_value(const struct cfi_rule *rule, uint64_t cfa, const struct expr_env *env, uint64_t same,
		       uint64_t *out)
{
	uint64_t address;

	switch (rule->kind) {
	case CFI_REGISTER_OFFSET:
		if (!regs_has(env->regs, rule->reg))
			return false;
		*out = env->regs->r[rule->reg] + (uint64_t)rule->offset;
		return true;
	case CFI_UNSPECIFIED:
	case CFI_SAME_VALUE:
		*out = same;
		return true;
	case CFI_AT_CFA_OFFSET:
		echo_read(NULL, cfa + (uint64_t)rule->offset, out, sizeof(*out));
		return true;
	case CFI_AT_EXPRESSION:
		if (expr_eval(rule->expr, rule->expr_len, env, &cfa, &address) != EXPR_OK)
			return false;
		echo_read(NULL, address, out, sizeof(*out));
		return true;
	default:
		return false;
	}
}

/* What the decoder's row gives, where it can be told of sp, fp, pc and the link register alone, or rdi. */
static bool by_decoder(const struct comparison *cmp, const struct cfi_row *row, uint64_t pc, struct expected *out)
{
	struct mem mem = {.read = echo_read};
	struct regs regs = {.pc = pc};
	struct expr_env env = {.word = 8, .regs = &regs, .mem = &mem};

	regs_put(&regs, cmp->arch->dwarf_sp, SP_VALUE);
	regs_put(&regs, cmp->arch->dwarf_fp, FP_VALUE);
	regs_put(&regs, bpf_walk_link(cmp->arch), LR_VALUE);
	if (cmp->arch->id == ARCH_X86_64)
		regs_put(&regs, PC_SLOT, pc);
	if (row->cfa.kind == CFI_EXPRESSION) {
		if (expr_eval(row->cfa.expr, row->cfa.expr_len, &env, NULL, &out->cfa) != EXPR_OK)
			return false;
	} else if (row->cfa.kind == CFI_REGISTER_OFFSET && regs_has(&regs, row->cfa.reg)) {
		out->cfa = regs.r[row->cfa.reg] + (uint64_t)row->cfa.offset;
	} else {
		return false;
	}
	out->has_fp = rule_value(&row->regs[cmp->arch->dwarf_fp], out->cfa, &env, FP_VALUE, &out->fp);
	return rule_value(&row->regs[row->ra_reg], out->cfa, &env, LR_VALUE, &out->ra);
}

static void differs(struct comparison *cmp, uint64_t address, const char *what)
{
	if (cmp->differences++ < MAX_REPORTED)
		print_error("%s: 0x%" PRIx64 ": %s\n", cmp->path, address, what);
}

static void compare_step(struct comparison *cmp, const struct cfi_row *decoded, const struct unwind_row *row,
			 uint64_t pc)
{
	struct mem mem = {.read = echo_read};
	struct bpf_walk w = {.arch = cmp->arch,
			     .mem = &mem,
			     .pc = pc,
			     .sp = SP_VALUE,
			     .fp = FP_VALUE,
			     .lr = LR_VALUE,
			     .exact = true,
			     .has_fp = true,
			     .has_lr = true};
	struct expected want;

	if (!by_decoder(cmp, decoded, pc, &want)) {
		differs(cmp, pc, "a rule that needs more than a row has");
		return;
	}
	if (!bpf_walk_by_row(&w, row)) {
		/* CFAs below sp are written by hand in a few places; no walk accepts them */
		if (w.end != BPF_WALK_NO_PROGRESS)
			differs(cmp, pc, "the walk ends");
	} else if (w.sp != want.cfa) {
		differs(cmp, pc, "CFA");
	} else if (w.pc != arch_strip_code_pointer(cmp->arch, want.ra)) {
		differs(cmp, pc, "return address");
	} else if (w.has_fp != want.has_fp || (w.has_fp && w.fp != want.fp)) {
		differs(cmp, pc, "frame pointer");
	}
}

static void compare_at(struct comparison *cmp, const struct cfi_row *decoded, const struct unwind_row *row, uint64_t pc)
{
	bool is_end = decoded->regs[decoded->ra_reg].kind == CFI_UNDEFINED;

	switch (row->kind) {
	case UNWIND_NONE:
		differs(cmp, pc, "the row is missing");
		break;
	case UNWIND_SIGNAL:
		if (!decoded->signal_frame)
			differs(cmp, pc, "this is no signal frame");
		break;
	case UNWIND_UNSUPPORTED:
		break;
	default:
		if (is_end != (row->kind == UNWIND_END))
			differs(cmp, pc, "an end");
		else if (!is_end)
			compare_step(cmp, decoded, row, pc);
	}
}

/* Compares every stretch of the decoder's row that has one row of ours, at its first and last byte. */
static int compare_row(const struct cfi_row *decoded, void *arg)
{
	struct comparison *cmp = arg;
	const struct bpf_rows *rows = &cmp->rows;
	uint64_t pc = decoded->start - rows->base, end = decoded->end - rows->base;

	while (pc < end) {
		uint64_t next;

		while (cmp->at + 1 < rows->len && rows->data[cmp->at + 1].pc <= pc)
			cmp->at++;
		next = cmp->at + 1 < rows->len && rows->data[cmp->at + 1].pc < end ? rows->data[cmp->at + 1].pc : end;
		compare_at(cmp, decoded, &rows->data[cmp->at], rows->base + pc);
		compare_at(cmp, decoded, &rows->data[cmp->at], rows->base + next - 1);
		cmp->covered += next - pc;
		if (rows->data[cmp->at].kind == UNWIND_UNSUPPORTED)
			cmp->unsupported += next - pc;
		pc = next;
	}
	return 0;
}

struct subject {
	const char *name;
	const struct arch *arch; /* NULL: the host's */
	unsigned most_permille;  /* of the code may be unsupported */
	const char *paths[8];
};

/* The first of the paths that exists; NULL ends the list. */
static const char *first_of(const char *const *paths)
{
	for (; *paths; paths++)
		if (access(*paths, R_OK) == 0)
			return *paths;
	return NULL;
}

static void test_file(void **state)
{
	const struct subject *subject = *state;
	const char *path = first_of(subject->paths);
	struct comparison cmp = {.path = path, .arch = subject->arch ? subject->arch : arch_host()};
	struct cfi_section section;
	struct image *image;
	struct err err;

	if (!path) {
		print_message("skipped: %s is not installed\n", subject->name);
		skip();
	}
	if (image_open_fd(open(path, O_RDONLY | O_CLOEXEC), &err, &image) != 0 ||
	    bpf_rows_build(image, cmp.arch, &err, &cmp.rows) != 0)
		fail_msg("%s: %s", path, err.msg);
	code_open_eh_frame(&section, cmp.arch, image);
	assert_int_equal(cfi_for_each_row(&section, compare_row, &cmp), 0);
	print_message("%s: %zu rows, %" PRIu64 " bytes of code, %" PRIu64 " of them unsupported, %zu differences\n",
		      path, cmp.rows.len, cmp.covered, cmp.unsupported, cmp.differences);
	assert_false(cmp.rows.cut);
	assert_true(cmp.rows.len > 1000);
	assert_int_equal(cmp.differences, 0);
	assert_true(cmp.unsupported * 1000 < cmp.covered * subject->most_permille);
	cfi_section_deinit(&section);
	bpf_rows_deinit(&cmp.rows);
	image_destroy(image);
}

/* A program that was started, and what it has written. */
struct program {
	pid_t pid;
	int in, out;
	char text[65536];
	size_t len;
};

static void program_start(struct program *p, const char *const *argv)
{
	int in[2], out[2];

	*p = (struct program){0};
	assert_int_equal(pipe2(in, O_CLOEXEC), 0); /* targets end with it */
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (p->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	p->in = in[1];
	p->out = out[0];
}

static void program_await(struct program *p, const char *word)
{
	while (!strstr(p->text, word)) {
		struct pollfd pollfd = {.fd = p->out, .events = POLLIN};
		ssize_t n;

		assert_int_equal(poll(&pollfd, 1, 60000), 1);
		n = read(p->out, p->text + p->len, sizeof(p->text) - 1 - p->len);
		if (n <= 0)
			fail_msg("it ended, or wrote too much, before it wrote \"%s\"", word);
		p->len += (size_t)n;
	}
}

/* A thread that was just created, and has not run yet, has the registers of another. */
static bool is_any_awake(pid_t pid)
{
	char path[64], state = 0;
	struct dirent *entry;
	bool found = false;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	assert_non_null(tasks);
	while ((entry = readdir(tasks))) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/stat", (int)pid, entry->d_name);
		f = entry->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (!f)
			continue;
		found |= fscanf(f, "%*d (%*[^)]) %c", &state) != 1 || state == 'R';
		fclose(f);
	}
	closedir(tasks);
	return found;
}

static void program_settle(const struct program *p)
{
	for (unsigned i = 0; i < 60000 && is_any_awake(p->pid); i++)
		poll(NULL, 0, 1);
}

static void program_end(struct program *p)
{
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	close(p->in);
	close(p->out);
}

struct walks {
	size_t threads, frames;
	size_t equal;       /* threads whose stacks are the same to the end */
	size_t unsupported; /* whose walk by rows met what rows cannot hold */
};

static void start_walk(struct bpf_walk *w, const struct snap_thread *thread)
{
	struct regs regs;

	assert_true(arch_to_dwarf(w->arch, &thread->regs, &regs));
	w->pc = regs.pc;
	w->sp = regs.r[w->arch->dwarf_sp];
	w->fp = regs.r[w->arch->dwarf_fp];
	w->has_fp = regs_has(&regs, w->arch->dwarf_fp);
	w->lr = regs.r[bpf_walk_link(w->arch)];
	w->has_lr = regs_has(&regs, bpf_walk_link(w->arch));
	w->exact = true;
	w->sp_is_bound = false;
}

/* Up to where the snapshot's unwinder began to search, or ours met what it cannot, the frames are the same. */
static void compare_thread(struct bpf_walk *w, const struct raw_stack *real, pid_t tid, struct walks *walks)
{
	const uint32_t guessed = FRAME_BY_SCAN | FRAME_BY_CODE;
	bool more = true;
	size_t i;

	for (i = 0; i < real->len && more && !(real->data[i].flags & guessed); i++) {
		if (w->pc != real->data[i].pc || (!w->sp_is_bound && w->sp != real->data[i].sp))
			fail_msg("thread %d: frame %zu: 0x%" PRIx64 " at sp 0x%" PRIx64 " is 0x%" PRIx64
				 " at 0x%" PRIx64,
				 tid, i, real->data[i].pc, real->data[i].sp, w->pc, w->sp);
		more = bpf_walk_step(w);
		walks->frames++;
	}
	walks->threads++;
	if (!more && i == real->len && real->end == STACK_COMPLETE && w->end == BPF_WALK_COMPLETE)
		walks->equal++;
	else if (!more && w->end == BPF_WALK_UNSUPPORTED)
		walks->unsupported++;
	else
		print_message("thread %d: the stack of %zu frames ends %s, the walk by rows with %d at frame %zu\n",
			      tid, real->len, stack_end_name(real->end), more ? -1 : (int)w->end, i);
}

static struct walks compare_process(pid_t pid)
{
	/* held, so that all registers are known */
	const struct capture_options options = {.stop = STOP_ALL, .stack_size = 8 << 20, .stop_timeout_ms = 10000};
	struct bpf_walk w = {.arch = arch_host()};
	struct walks walks = {0};
	struct target *target;
	struct budget budget = {.left = UNWIND_BUDGET};
	struct capture *capture;
	struct snapshot *snap = NULL;
	struct err err;

	if (target_open(pid, &err, &target) != 0 || capture_open(target, &options, &err, &capture) != 0 ||
	    capture_take(capture, &err, &snap) != 0 || target_open_files(target, NULL, &err) != 0)
		fail_msg("%s", err.msg);
	w.modules = target->modules;
	for (size_t i = 0; i < snap->threads.len; i++) {
		const struct snap_thread *thread = &snap->threads.data[i];
		struct snapshot_mem mem;
		struct raw_stack real;

		assert_int_equal(thread->status, THREAD_CAPTURED);
		snapshot_mem_init(&mem, snap, thread);
		w.mem = &mem.mem;
		unwind_thread(snap, w.modules, thread, &(struct unwind_options){.budget = &budget}, &real);
		start_walk(&w, thread);
		compare_thread(&w, &real, thread->tid, &walks);
		raw_stack_deinit(&real);
	}
	/* Real programs take next to nothing of what is there for those that are made to take all. */
	assert_true(UNWIND_BUDGET - budget.left < UNWIND_BUDGET / 50);
	bpf_walk_deinit(&w);
	capture_close(capture);
	target_close(target);
	snapshot_destroy(snap);
	print_message("%zu threads, %zu frames: %zu walks are the same, %zu are unsupported; %llu units of the budget\n",
		      walks.threads, walks.frames, walks.equal, walks.unsupported,
		      (unsigned long long)(UNWIND_BUDGET - budget.left));
	return walks;
}

static void compare_program(const char *const *argv, const char *ready)
{
	struct program p;
	struct walks walks;

	program_start(&p, argv);
	program_await(&p, ready);
	program_settle(&p);
	walks = compare_process(p.pid);
	program_end(&p);
	assert_true(walks.threads > 0);
	assert_int_equal(walks.equal, walks.threads);
}

static void test_target(void **state)
{
	const char *dir = getenv("STAKEOUT_TARGETS"), *name = *state;
	const char *argv[] = {NULL, NULL};
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir ? dir : "", name);
	if (!dir || access(path, X_OK) != 0) {
		print_message("skipped: $STAKEOUT_TARGETS/%s is not there\n", name);
		skip();
	}
	argv[0] = path;
	compare_program(argv, "ready");
}

static void needs(const char *path)
{
	if (access(path, X_OK) != 0) {
		print_message("skipped: %s is not installed\n", path);
		skip();
	}
}

static void test_redis(void **state)
{
	struct scratch dir;
	const char *argv[] = {"/usr/bin/redis-server", "--port", "0", "--unixsocket", "s", "--dir", dir.dir, NULL};

	needs(argv[0]);
	scratch_init(&dir);
	compare_program(argv, "eady to accept");
	scratch_deinit(&dir);
}

static void test_python(void **state)
{
	const char *argv[] = {"/usr/bin/python3", "-Sc",
			      "import threading, functools\n"
			      "e = threading.Event()\n"
			      "r = lambda n: r(n - 1) if n else functools.reduce(lambda a, b: e.wait(), [1, 2])\n"
			      "ts = [threading.Thread(target=r, args=(n,), daemon=True) for n in range(5)]\n"
			      "[t.start() for t in ts]\n"
			      "print('ready', flush=True)\n"
			      "sorted([1], key=lambda _: e.wait())\n",
			      NULL};

	needs(argv[0]);
	compare_program(argv, "ready");
}

#define IN_LIB(name)                                                                                                   \
	{                                                                                                              \
		"/usr/lib/x86_64-linux-gnu/" name, "/lib/x86_64-linux-gnu/" name, "/usr/lib/aarch64-linux-gnu/" name,  \
			"/lib/aarch64-linux-gnu/" name, "/usr/lib64/" name, "/usr/lib/" name                           \
	}

static const struct subject files[] = {
	{"libc", NULL, 10, IN_LIB("libc.so.6")},
	{"libstdc++", NULL, 10, IN_LIB("libstdc++.so.6")},
	/* Its ciphers are written by hand and keep the CFA in rax and others; they call nothing and do not wait. */
	{"libcrypto", NULL, 30, IN_LIB("libcrypto.so.3")},
	{"libm", NULL, 10, IN_LIB("libm.so.6")},
	{"libx265: frames that were aligned anew", NULL, 10, IN_LIB("libx265.so.199")},
	{"python3", NULL, 10, {"/usr/bin/python3"}},
	{"redis-server", NULL, 10, {"/usr/bin/redis-server"}},
	{"postgres",
	 NULL,
	 10,
	 {"/usr/lib/postgresql/17/bin/postgres", "/usr/lib/postgresql/16/bin/postgres",
	  "/usr/lib/postgresql/15/bin/postgres", "/usr/bin/postgres"}},
	{"node",
	 NULL,
	 10,
	 {"/usr/lib/x86_64-linux-gnu/libnode.so.115", "/usr/lib/aarch64-linux-gnu/libnode.so.115",
	  "/usr/lib/x86_64-linux-gnu/libnode.so.108", "/usr/lib/aarch64-linux-gnu/libnode.so.108", "/usr/bin/node"}},
#ifdef __x86_64__
	{"libc of the other architecture", &arch_aarch64, 10, {"/usr/aarch64-linux-gnu/lib/libc.so.6"}},
	{"libstdc++ of the other architecture", &arch_aarch64, 10, {"/usr/aarch64-linux-gnu/lib/libstdc++.so.6"}},
#else
	{"libc of the other architecture", &arch_x86_64, 10, {"/usr/x86_64-linux-gnu/lib/libc.so.6"}},
#endif
};

static const char *const targets[] = {
	"plain",
	"plain_static",
	"plain_static_pie",
	"plain_nopie",
	"plain_no_hdr",
	"plain_debug_frame",
	"plain_frame_pointer",
	"sleepers",
	"cxx",
	"recursion",
	"signals",
	"contexts",
	"noreturn",
	"vla",
};

enum { FILES = sizeof(files) / sizeof(files[0]), TARGETS = sizeof(targets) / sizeof(targets[0]) };

int main(void)
{
	struct CMUnitTest tests[FILES + TARGETS + 2] = {
		{"redis", test_redis, NULL, NULL, NULL},
		{"python", test_python, NULL, NULL, NULL},
	};

	for (size_t i = 0; i < FILES; i++)
		tests[2 + i] = (struct CMUnitTest){files[i].name, test_file, NULL, NULL, (void *)&files[i]};
	for (size_t i = 0; i < TARGETS; i++)
		tests[2 + FILES + i] = (struct CMUnitTest){targets[i], test_target, NULL, NULL, (void *)targets[i]};
	return cmocka_run_group_tests_name("bpf_rows of real files", tests, NULL, NULL);
}
