/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "report/names.h"
#include "report/text_format.h"

/*
 * The kernel's parameter names tell how a value reads best. Where they do not, the value does: pointers are large,
 * counts are small, and what looks like a 32-bit int just below zero is one.
 */
enum form { FORM_GUESS, FORM_INT, FORM_SIZE, FORM_BITS };

static enum form form_of(const char *name, size_t len)
{
	static const struct {
		const char *suffix;
		enum form form;
	} rules[] = {
		{"fd", FORM_INT},    {"fildes", FORM_INT}, {"pid", FORM_INT},    {"timeout", FORM_INT},
		{"op", FORM_BITS},   {"flags", FORM_BITS}, {"flag", FORM_BITS},  {"prot", FORM_BITS},
		{"mask", FORM_BITS}, {"cmd", FORM_BITS},   {"count", FORM_SIZE}, {"len", FORM_SIZE},
		{"size", FORM_SIZE}, {"vlen", FORM_SIZE},
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		size_t n = strlen(rules[i].suffix);

		if (len >= n && strncmp(name + len - n, rules[i].suffix, n) == 0)
			return rules[i].form;
	}
	return FORM_GUESS;
}

static bool is_pointer(uint64_t value)
{
	return value > UINT32_MAX && value < UINT64_C(1) << 63;
}

static bool is_small_negative(uint64_t value)
{
	int64_t wide = (int64_t)value;
	int32_t narrow = (int32_t)value;

	return (wide < 0 && wide >= -4096) || (value <= UINT32_MAX && narrow < 0 && narrow >= -4096);
}

static void put_value(const struct text *t, enum form form, uint64_t value)
{
	if (form == FORM_BITS && value && !is_small_negative(value))
		fprintf(t->out, "0x%" PRIx64, value);
	else if (is_small_negative(value) || (form == FORM_INT && !is_pointer(value)))
		fprintf(t->out, "%" PRId32, (int32_t)value);
	else if (form == FORM_SIZE || value < 0x10000)
		fprintf(t->out, "%" PRIu64, value);
	else
		fprintf(t->out, "0x%" PRIx64, value);
}

void text_syscall(const struct text *t, const struct arch *arch, const struct snap_syscall *call, unsigned args_differ)
{
	const struct syscall_info *info = arch_syscall(arch, call->nr);
	const char *name = info ? info->args : NULL;

	if (info)
		fprintf(t->out, "%s(", info->name);
	else
		fprintf(t->out, "syscall %" PRId64 "(", call->nr);
	for (unsigned i = 0; i < syscall_nargs(info); i++) {
		size_t len = name ? strcspn(name, ",") : 0;

		fputs(i ? ", " : "", t->out);
		if (name)
			fprintf(t->out, "%.*s=", (int)len, name);
		if (args_differ >> i & 1)
			fputs("…", t->out);
		else
			put_value(t, name ? form_of(name, len) : FORM_GUESS, call->args[i]);
		if (name)
			name += name[len] ? len + 1 : len;
	}
	fputc(')', t->out);
}
