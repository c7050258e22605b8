/* SPDX-License-Identifier: MIT */
#ifndef HAVE_BPF

#include "kernel/offcpu_probe.h"

#include <errno.h>

/* For builds without BPF: no probe can be created, so nothing else is ever called. */

int offcpu_probe_create(const struct offcpu_probe_options *options, struct err *err, struct offcpu_probe **out)
{
	return err_set(err, ENOSYS, "this build has no BPF programs");
}

void offcpu_probe_destroy(struct offcpu_probe *probe)
{
}

const char *offcpu_probe_method(const struct offcpu_probe *probe)
{
	return "";
}

const char *offcpu_probe_lacks_user_stacks(const struct offcpu_probe *probe)
{
	return NULL;
}

const char *offcpu_probe_lacks_kernel_stacks(const struct offcpu_probe *probe)
{
	return NULL;
}

const char *offcpu_probe_passed_over(const struct offcpu_probe *probe)
{
	return NULL;
}

int offcpu_probe_watch(struct offcpu_probe *probe, pid_t tgid, struct err *err)
{
	return -ENOSYS;
}

bool offcpu_probe_is_watched(const struct offcpu_probe *probe, pid_t tgid)
{
	return false;
}

bool offcpu_probe_is_hidden(const struct offcpu_probe *probe, pid_t tgid)
{
	return false;
}

bool offcpu_probe_watches_any(const struct offcpu_probe *probe)
{
	return false;
}

int offcpu_probe_start(struct offcpu_probe *probe, struct err *err)
{
	return -ENOSYS;
}

int offcpu_probe_note_waiting(struct offcpu_probe *probe, struct err *err)
{
	return -ENOSYS;
}

uint64_t offcpu_probe_begin_ns(const struct offcpu_probe *probe)
{
	return 0;
}

uint64_t offcpu_probe_end(struct offcpu_probe *probe)
{
	return 0;
}

int offcpu_probe_stop(struct offcpu_probe *probe, struct err *err, const struct offcpu_open **open, size_t *n)
{
	return -ENOSYS;
}

int offcpu_probe_ran(struct offcpu_probe *probe, struct err *err, const struct offcpu_ran **ran, size_t *n)
{
	return -ENOSYS;
}

int offcpu_probe_sums(struct offcpu_probe *probe, offcpu_sums_fn take, void *arg)
{
	return -ENOSYS;
}

uint64_t offcpu_probe_seen(struct offcpu_probe *probe)
{
	return 0;
}

int offcpu_probe_create_table(struct offcpu_probe *probe, const struct unwind_row *rows, size_t n, uint32_t serial)
{
	return -ENOSYS;
}

int offcpu_probe_set_objects(struct offcpu_probe *probe, const uint32_t *objects, const int *tables, size_t n)
{
	return -ENOSYS;
}

int offcpu_probe_set_mapping(struct offcpu_probe *probe, uint32_t index, const struct offcpu_mapping *mapping)
{
	return -ENOSYS;
}

void offcpu_probe_forget_mapping(struct offcpu_probe *probe, uint32_t index, uint32_t set)
{
}

int offcpu_probe_set_process(struct offcpu_probe *probe, pid_t tgid, const struct offcpu_maps *maps)
{
	return -ENOSYS;
}

uint32_t offcpu_probe_set_of(const struct offcpu_probe *probe, pid_t tgid)
{
	return 0;
}

int offcpu_probe_set_runtime(struct offcpu_probe *probe, pid_t tgid, const struct offcpu_runtime *runtime)
{
	return -ENOSYS;
}

int offcpu_probe_set_stubs(struct offcpu_probe *probe, const struct offcpu_stub_key *key, const struct offcpu_stub_rows *rows)
{
	return -ENOSYS;
}

void offcpu_probe_forget_process(struct offcpu_probe *probe, pid_t tgid, uint32_t set)
{
}

bool offcpu_probe_finds_code(const struct offcpu_probe *probe)
{
	return false;
}

int offcpu_probe_identify(struct offcpu_probe *probe, const void *address, struct offcpu_file *out)
{
	return -ENOSYS;
}

int offcpu_probe_set_file(struct offcpu_probe *probe, const struct offcpu_file *file, const struct offcpu_file_code *code)
{
	return -ENOSYS;
}

void offcpu_probe_forget_file(struct offcpu_probe *probe, const struct offcpu_file *file)
{
}

void offcpu_probe_answered(struct offcpu_probe *probe, pid_t tgid, bool news)
{
}

int offcpu_probe_poll(struct offcpu_probe *probe, int timeout_ms, offcpu_record_fn handle, void *arg)
{
	return -ENOSYS;
}

uint64_t offcpu_probe_loss(const struct offcpu_probe *probe, enum offcpu_lost what)
{
	return 0;
}

#endif
