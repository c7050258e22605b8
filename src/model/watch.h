/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_WATCH_H
#define STAKEOUT_MODEL_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/notes.h"
#include "model/trace.h"

/*
 * Several looks at the same threads, and what came of each: who did not move, who moved and came back, who ran. It grows with the
 * threads that there are, not with the looks: what was seen of a thread is added up.
 */

/* What a thread has done between the last two looks at it. */
enum watch_step {
	WATCH_FIRST,    /* there was none before */
	WATCH_STILL,    /* nothing: the same stack, not one switch, not a nanosecond of CPU */
	WATCH_RETURNED, /* it ran, and is again where it was */
	WATCH_RAN,      /* it is elsewhere, or was seen running */
	WATCH_STEPS,
};

/* "first", "still", "returned", "ran" */
const char *watch_step_name(enum watch_step step);

/* What it has done in all looks. */
enum watch_verdict {
	WATCH_UNKNOWN,  /* it was seen only once */
	WATCH_STUCK,    /* it never moved */
	WATCH_HALTED,   /* it moved, but no more in the last looks */
	WATCH_LOOPS,    /* it moved, and came back to the same place each time */
	WATCH_MOVES,    /* it was in several places, or seen running, but used little CPU */
	WATCH_BUSY,     /* it ran */
	WATCH_GONE,     /* it has ended */
	WATCH_VERDICTS,
};

/* "unknown", "stuck", "halted", "returned", "moves", "busy", "ended" */
const char *watch_verdict_name(enum watch_verdict verdict);

/* A look at a thread: only what is compared, and costs nothing to keep. */
struct watch_look {
	uint64_t at_ns; /* CLOCK_MONOTONIC */
	uint64_t nvcsw, nivcsw;
	int64_t cpu_ns; /* -1: not known */
	uint64_t stack; /* stands for the user stack, unnamed, and the system call; 0: not known */
	char state;
	bool running; /* it had a CPU, or may have had one */
};

/* A function that it was seen in. */
struct watch_place {
	const char *name; /* the watch's own: equal names are the same */
	uint32_t looks;
};

enum {
	WATCH_PLACES = 6, /* that are kept of a thread */
	WATCH_NAME = 64,
	WATCH_PLACE = 160, /* bytes of a function's name, with the NUL */
};

struct watched_thread {
	pid_t pid, tid;
	uint64_t start; /* numbers are used again: with their starts they are not; 0: not known */
	char name[WATCH_NAME];
	const struct trace_thread *traced; /* in the last look, as long as that is held; in a parser it has names; NULL: there is none */
	struct watch_look first, last;
	uint32_t looks;
	uint32_t born, ended;        /* in which round; born 1: it was there; ended 0: it has not */
	uint32_t steps[WATCH_STEPS]; /* how many of each */
	uint32_t still;	             /* of the last ones, in a row */
	uint64_t still_since_ns;     /* CLOCK_MONOTONIC: the look before these */
	enum watch_step step, before; /* of the last round, and of the one before */
	bool busy, was_busy;         /* likewise: it used much CPU */
	int64_t step_cpu_ns;         /* in the last step; -1: not known */
	uint64_t step_ns;            /* which took so long */
	bool seen;                   /* in the last round */
	enum watch_verdict verdict;
	const char *place, *place_before; /* of the last look, and of the one before; NULL: not known */
	struct watch_place places[WATCH_PLACES];
	uint32_t nplaces;
	uint32_t elsewhere; /* looks in further places */
};

struct watched_process {
	pid_t pid;
	const char *comm;   /* the watch's own */
	const char *method; /* of its last snapshot: a start is comparable only with those of the same */
	uint32_t looks;
	uint32_t ended;     /* in which round it was found to have; 0: it has not */
	bool seen;          /* in the last round */
	uint64_t others;     /* stands for those who could end its waits in the last look at it, */
	bool others_changed; /* which was in this round, and they are not those of the look before */
};

struct watch_log {
	uint64_t interval_ns;
	uint32_t wanted; /* rounds; 0: until somebody ends it */
	uint32_t rounds; /* so far */
	uint32_t skipped; /* whose time was over before their turn came */
	uint32_t skipped_now; /* of these, right before this round */
	uint32_t failed; /* looks at a process that gave nothing */
	uint64_t begun_ns, now_ns; /* CLOCK_MONOTONIC: of the first and the last round */
	bool interrupted;
	bool woken_told; /* that threads were woken by being looked at */

	VEC(struct watched_process) processes;
	VEC(struct watched_thread) threads; /* by pid and tid; those that have ended are not among them */
	VEC(struct watched_thread) ended;   /* the first ones only */
	uint32_t nborn, nended;	            /* since the first round */
	uint32_t nended_now;                /* in the last round */
	struct notes notes;                 /* of the last round: what could not be seen */
	struct notes all_notes;             /* each once, the first ones only */
	struct arena *arena;
	struct u64map names; /* of functions, by their hashes: where they are in the arena */
};

/* False when memory is exhausted. */
bool watch_init(struct watch_log *watch);
void watch_deinit(struct watch_log *watch);

const struct watched_process *watch_process(const struct watch_log *watch, pid_t pid); /* NULL: there is none */

/* How much of one CPU it has used, in hundredths of a percent: between the first look and the last, or in the last step; -1: not known. */
int64_t watch_cpu_share(const struct watched_thread *thread);
int64_t watch_step_cpu_share(const struct watched_thread *thread);

/* From this on a thread is busy, in hundredths of a percent of a CPU. */
enum { WATCH_BUSY_FROM = 500 };

/* Whether there is something to tell of its last step: it is new, in another place, or began or ceased to be busy. */
bool watch_has_news(const struct watched_thread *thread);

#endif
