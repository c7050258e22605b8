/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_DEBUGINFOD_H
#define STAKEOUT_SYMBOL_DEBUGINFOD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "privilege/broker.h"

/*
 * Debug info and programs from debuginfod servers, by build-id. libdebuginfod keeps what it gets in its own cache,
 * which debuggers share; it is loaded only when a file is asked for that is not there, since it brings libcurl and some
 * thirty other libraries.
 */
struct debuginfod;

/* 0 when libdebuginfod can be loaded, or why not. */
int debuginfod_try(struct err *err);

/* DEBUGINFOD_URLS is set and not empty: servers may be asked even without an option. */
bool debuginfod_is_wanted(void);

struct debuginfod_options {
	const char *urls; /* separated by spaces; NULL or "": those of DEBUGINFOD_URLS */
	int timeout;      /* seconds without a byte; 0: DEBUGINFOD_TIMEOUT or 60 */
	bool keep_signals; /* Ctrl-C is not caught: a download is cancelled by patience_interrupt() */

	/* Called now and then while a file is downloaded, and with label == NULL at its end. May be NULL. */
	void (*progress)(void *arg, const char *label, uint64_t bytes, uint64_t total); /* total 0: not known */
	void *arg;
};

/*
 * To be called while there is only one thread: libdebuginfod is configured through the environment. -ENOENT: no server
 * is known.
 */
int debuginfod_create(const struct debuginfod_options *options, struct err *err, struct debuginfod **out);
void debuginfod_destroy(struct debuginfod *debuginfod);

enum debuginfod_kind {
	DEBUGINFOD_DEBUGINFO,
	DEBUGINFOD_EXECUTABLE,
};

/*
 * An open file with that build-id (hex), or a negative errno and why: -ENOENT the servers do not have it, -ECANCELED
 * Ctrl-C was pressed during this or an earlier download, -ETIMEDOUT and others the servers cannot be asked; then all
 * further files fail at once. For any thread; one downloads at a time. `label` is for progress.
 *
 * During a download Ctrl-C, if it is caught, only ends the download; a second one does what it normally does.
 */
int debuginfod_find(struct debuginfod *debuginfod, enum debuginfod_kind kind, const char *build_id, const char *label,
		    struct err *err);

/* A broker has files downloaded for its parser, by a process without its rights. NULL is legal. */
void debuginfod_errand_add(struct parser_job *job, struct debuginfod *debuginfod);

#endif
