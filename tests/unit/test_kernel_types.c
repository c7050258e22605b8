/* SPDX-License-Identifier: MIT */
#include "child.h"

#ifdef HAVE_BPF

#include <bpf/btf.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "bpf/task_record.h"
#include "kernel/loading.h"
#include "kernel/offcpu_probe.h"
#include "offcpu.skel.h"
#include "task_iter.skel.h"

static void need_bpf(void)
{
	struct task_iter_bpf *skel;

	libbpf_set_print(loading_quiet);
	skel = task_iter_bpf__open_and_load();
	if (!skel) {
		print_message("skipped: BPF programs cannot be loaded here\n");
		skip();
	}
	task_iter_bpf__destroy(skel);
}

static struct btf_member *find_member(const struct btf *btf, const struct btf_type *type, const char *name)
{
	for (unsigned i = 0; i < btf_vlen(type); i++)
		if (strcmp(btf__name_by_offset(btf, btf_members(type)[i].name_off), name) == 0)
			return btf_members(type) + i;
	fail_msg("no field %s", name);
	return NULL;
}

/* The place of a part of the kernel's BTF in a copy of its bytes. */
static void *in_copy(char *copy, const struct btf *btf, const void *part)
{
	__u32 size;

	return copy + ((const char *)part - (const char *)btf__raw_data(btf, &size));
}

/*
 * The BTF of a kernel on which on_cpu is one byte, and others follow: it is said to be where the upper byte of the pid is,
 * which is 0 of every thread, and the tgid comes behind that.
 */
static void write_btf(const char *path, const char *byte_type)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *task;
	struct btf_member *on_cpu, *pid, *tgid;
	__u32 size;
	char *copy;
	FILE *f;

	assert_non_null(btf);
	task = btf__type_by_id(btf, (__u32)btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT));
	pid = find_member(btf, task, "pid");
	tgid = find_member(btf, task, "tgid");
	assert_int_equal(tgid->offset, pid->offset + 32);
	btf__raw_data(btf, &size);
	copy = malloc(size);
	assert_non_null(copy);
	memcpy(copy, btf__raw_data(btf, &size), size);
	on_cpu = in_copy(copy, btf, find_member(btf, task, "on_cpu"));
	on_cpu->offset = pid->offset + 24;
	on_cpu->type = (__u32)btf__find_by_name_kind(btf, byte_type, BTF_KIND_INT);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(copy, size, 1, f), 1);
	fclose(f);
	free(copy);
	btf__free(btf);
}

static void make_path(char path[static 32])
{
	int fd;

	strcpy(path, "/tmp/test_kernel_types.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
}

/* What the task iterator says of a sleeping thread. */
static void read_record(const char *btf_path, struct task_record *out)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = btf_path);
	struct task_iter_bpf *skel = task_iter_bpf__open_opts(&opts);
	pid_t pid = child_start(child_sleeps);
	struct words words = {0};
	struct err err = {0};

	assert_non_null(skel);
	skel->rodata->ns_inum = loading_pid_namespace();
	assert_int_equal(task_iter_bpf__load(skel), 0);
	skel->bss->pass.target_tgid = (__u32)pid;
	assert_int_equal(task_iter_bpf__attach(skel), 0);
	for (int i = 0; i < 5000; i++, usleep(1000)) { /* until it sleeps */
		assert_int_equal(loading_read_iterator(bpf_link__fd(skel->links.dump_task), &words, &err), 0);
		assert_true(words.len >= sizeof(*out) / 8);
		memcpy(out, words.data, sizeof(*out));
		if (out->state == 1)
			break;
	}
	assert_int_equal(out->tid, pid);
	vec_deinit(&words);
	task_iter_bpf__destroy(skel);
	child_end(pid);
}

static void check_byte(const char *byte_type)
{
	struct task_record record;
	char path[32];

	need_bpf();
	make_path(path);
	write_btf(path, byte_type);
	read_record(path, &record);
	unlink(path);
	assert_int_equal(record.state, 1);
	assert_int_equal(record.flags & TASK_ON_CPU, 0);
}

/* Since Linux 7.2 on_cpu is one byte, and what follows says nothing of it. */
static void test_unsigned_byte(void **state)
{
	check_byte("unsigned char");
}

static void test_signed_byte(void **state)
{
	check_byte("signed char");
}

/* The programs that record waits can be relocated, too. */
static void test_offcpu_programs(void **state)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	struct bpf_program *program;
	struct offcpu_bpf *skel;
	char path[32];

	need_bpf();
	make_path(path);
	write_btf(path, "signed char");
	opts.btf_custom_path = path;
	skel = offcpu_bpf__open_opts(&opts);
	assert_non_null(skel);
	bpf_object__for_each_program(program, skel->obj)
		bpf_program__set_autoload(program, program == skel->progs.note_waiting || program == skel->progs.list_waiting);
	bpf_map__set_max_entries(skel->maps.ring, 1 << 16);
	assert_int_equal(offcpu_bpf__load(skel), 0);
	offcpu_bpf__destroy(skel);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unsigned_byte),
		cmocka_unit_test(test_signed_byte),
		cmocka_unit_test(test_offcpu_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void test_none(void **state)
{
	print_message("skipped: built without BPF\n");
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_none)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
