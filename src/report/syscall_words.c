/* SPDX-License-Identifier: MIT */
#include "report/syscall_words.h"

#include <inttypes.h>
#include <linux/futex.h>
#include <linux/wait.h>
#include <string.h>
#include <sys/file.h>

struct word {
	uint64_t value;
	const char *name;
};

#define WORD(name) {name, #name}

static const struct word waitid_kinds[] = {WORD(P_ALL), WORD(P_PID), WORD(P_PGID), WORD(P_PIDFD), {0, NULL}};

static const struct word wait_bits[] = {
	WORD(WNOHANG),    WORD(WSTOPPED), WORD(WEXITED), WORD(WCONTINUED), WORD(WNOWAIT),
	WORD(__WNOTHREAD), WORD(__WALL),  WORD(__WCLONE), {0, NULL},
};

static const struct word flock_bits[] = {WORD(LOCK_SH), WORD(LOCK_EX), WORD(LOCK_NB), WORD(LOCK_UN), {0, NULL}};

/* Those of locks, which are what a thread may wait in. */
static const struct word fcntl_commands[] = {
	{5, "F_GETLK"},       {6, "F_SETLK"},       {7, "F_SETLKW"},     {36, "F_OFD_GETLK"},
	{37, "F_OFD_SETLK"}, {38, "F_OFD_SETLKW"}, {1024, "F_SETLEASE"}, {0, NULL},
};

static const struct word sleep_bits[] = {{1, "TIMER_ABSTIME"}, {0, NULL}};

static const struct word clocks[] = {
	{0, "CLOCK_REALTIME"},           {1, "CLOCK_MONOTONIC"},     {2, "CLOCK_PROCESS_CPUTIME_ID"},
	{3, "CLOCK_THREAD_CPUTIME_ID"},  {4, "CLOCK_MONOTONIC_RAW"}, {5, "CLOCK_REALTIME_COARSE"},
	{6, "CLOCK_MONOTONIC_COARSE"},   {7, "CLOCK_BOOTTIME"},      {8, "CLOCK_REALTIME_ALARM"},
	{9, "CLOCK_BOOTTIME_ALARM"},     {11, "CLOCK_TAI"},          {0, NULL},
};

static const struct {
	const char *call; /* NULL: any that has such a parameter */
	const char *param;
	const struct word *words;
	bool bits; /* any of them may be set, and 0 is none */
} parameters[] = {
	{"waitid", "which", waitid_kinds, false},
	{"waitid", "options", wait_bits, true},
	{"wait4", "options", wait_bits, true},
	{"flock", "cmd", flock_bits, true},
	{"fcntl", "cmd", fcntl_commands, false},
	{"fcntl64", "cmd", fcntl_commands, false},
	{"clock_nanosleep", "flags", sleep_bits, true},
	{NULL, "which_clock", clocks, false},
	{NULL, "clockid", clocks, false},
};

static bool put_value(FILE *out, const struct word *words, uint64_t value)
{
	for (; words->name; words++)
		if (words->value == value) {
			fputs(words->name, out);
			return true;
		}
	return false;
}

static bool put_bits(FILE *out, const struct word *words, uint64_t value)
{
	const char *separator = "";
	uint64_t known = 0;

	for (const struct word *word = words; word->name; word++)
		known |= word->value;
	if (!value || value & ~known)
		return false;
	for (; words->name; words++)
		if (value & words->value) {
			fprintf(out, "%s%s", separator, words->name);
			separator = "|";
		}
	return true;
}

static bool put_futex_op(FILE *out, uint32_t value)
{
	static const char *const ops[] = {
		[FUTEX_WAIT] = "WAIT",
		[FUTEX_WAKE] = "WAKE",
		[FUTEX_FD] = "FD",
		[FUTEX_REQUEUE] = "REQUEUE",
		[FUTEX_CMP_REQUEUE] = "CMP_REQUEUE",
		[FUTEX_WAKE_OP] = "WAKE_OP",
		[FUTEX_LOCK_PI] = "LOCK_PI",
		[FUTEX_UNLOCK_PI] = "UNLOCK_PI",
		[FUTEX_TRYLOCK_PI] = "TRYLOCK_PI",
		[FUTEX_WAIT_BITSET] = "WAIT_BITSET",
		[FUTEX_WAKE_BITSET] = "WAKE_BITSET",
		[FUTEX_WAIT_REQUEUE_PI] = "WAIT_REQUEUE_PI",
		[FUTEX_CMP_REQUEUE_PI] = "CMP_REQUEUE_PI",
		[13] = "LOCK_PI2",
	};
	uint32_t op = value & (uint32_t)FUTEX_CMD_MASK;

	if (op >= sizeof(ops) / sizeof(ops[0]))
		return false;
	fprintf(out, "FUTEX_%s%s%s", ops[op], value & FUTEX_PRIVATE_FLAG ? "|PRIVATE" : "",
		value & FUTEX_CLOCK_REALTIME ? "|CLOCK_REALTIME" : "");
	return true;
}

static bool is_word(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && strncmp(text, word, len) == 0;
}

bool syscall_word(FILE *out, const char *call, const char *param, size_t len, uint64_t value)
{
	if (strcmp(call, "futex") == 0 && is_word(param, len, "op"))
		return put_futex_op(out, (uint32_t)value);
	for (size_t i = 0; i < sizeof(parameters) / sizeof(parameters[0]); i++) {
		if ((parameters[i].call && strcmp(call, parameters[i].call) != 0) ||
		    !is_word(param, len, parameters[i].param))
			continue;
		return parameters[i].bits ? put_bits(out, parameters[i].words, value)
					  : put_value(out, parameters[i].words, value);
	}
	return false;
}
