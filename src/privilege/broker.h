/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PRIVILEGE_BROKER_H
#define STAKEOUT_PRIVILEGE_BROKER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

/*
 * Work on what others wrote (files, memory of a process) is done by a process without rights, the parser: a copy of this
 * one, made by fork() when all that needs rights is done, so it has all that was read so far. What else it needs, mostly
 * files, it asks of the process that it was made by, the broker, which sends descriptors. Errands are few and narrow: who
 * serves one checks that it is what an honest parser would ask for.
 *
 * To add an errand: a kind; a function that asks for it if broker_is_there(), and one that serves it, in the same file; a
 * line in cmd/parsing.c.
 */
enum errand_kind {
	ERRAND_FILE,      /* target/file_errands.c */
	ERRAND_STAT,
	ERRAND_REAL_PATH,
	ERRAND_JIT_FILE,
	ERRAND_COMPLAINT, /* target/patience.c */
	ERRAND_KALLSYMS,  /* kernel/kallsyms.c */
	ERRAND_CACHE,     /* symbol/store.c */
	ERRAND_DOWNLOAD,  /* symbol/debuginfod.c */
	ERRAND_REPORT,    /* cmd/parsing.c */
	ERRAND_END,       /* the work is done: what the kernel then clears away is not waited for */
	ERRAND_KINDS,
};

enum { ERRAND_ROOM = PATH_MAX + 512 };

/* What the numbers mean is a matter of the kind; `data` always ends with a NUL that is not counted. */
struct errand {
	uint32_t kind;
	int32_t number[2];
	uint32_t len;
	char data[ERRAND_ROOM];
};

struct errand_reply {
	int32_t rc; /* 0 or -errno */
	int32_t fd; /* or -1; closed by the broker when it was sent */
	uint32_t number;
	uint32_t len;
	struct stat st;
	char data[ERRAND_ROOM];
};

/* In the parser. */
bool broker_is_there(void);

/* Makes an errand of numbers and a text (may be NULL); false when that is too long. */
bool errand_init(struct errand *errand, enum errand_kind kind, int a, int b, const char *text);

/* reply->rc; -EPIPE when there is no broker any more. A descriptor in the reply is the caller's. For any thread. */
int broker_ask(const struct errand *errand, struct errand_reply *reply);

/* Whether something did not answer the broker in time: then it has complaints that the parser does not know. */
bool broker_has_complained(void);

/* In the broker: leaves a text in the reply, as much as there is room for. */
void errand_answer(struct errand_reply *reply, const char *text);

/* Who serves a kind of errand; no function: it is refused. The reply begins with rc -EPERM and no descriptor. */
struct service {
	void (*serve)(void *ctx, const struct errand *errand, struct errand_reply *reply);
	void *ctx;
};

/* In the broker, while an errand is served: readable when the parser has died. For who waits for others meanwhile. */
int broker_client(void);

struct parser_job {
	void (*work)(void *arg); /* in the parser; what it leaves in ordinary memory is lost */
	void *arg;
	int keep_fd; /* that it may use, beside 0, 1 and 2; 0: none */
	struct service services[ERRAND_KINDS];
	void (*complain)(void *arg, const char *words); /* in the parser: what it could not give up. May be NULL */
};

/*
 * Has the work done by a parser, and serves it until it has ended. 0 when it came to its end; else -errno: -EOWNERDEAD with
 * how it died, -EPIPE when that was because nobody reads its output, others when it could not be made. Call it with one
 * thread, or with others that hold no lock.
 */
int parser_run(const struct parser_job *job, struct err *err);

#endif
