/* SPDX-License-Identifier: MIT */
#include "cmd/parsing.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/kallsyms.h"
#include "symbol/debuginfod.h"
#include "target/patience.h"

static void work(void *arg)
{
	struct parsing *parsing = arg;
	struct parsing_outcome *outcome = parsing->outcome;

	outcome->rc = parsing->work(parsing->arg, parsing, &outcome->err);
}

static void complain(void *arg, const char *words)
{
	struct parsing *parsing = arg;

	err_set(&parsing->outcome->sandbox, EPERM, "%s", words);
}

/* Once: what was printed cannot be taken back. */
static void serve_report(void *ctx, const struct errand *errand, struct errand_reply *reply)
{
	struct parsing *parsing = ctx;
	int fd = fileno(parsing->report);

	if (parsing->printed || !parsing->print)
		return;
	parsing->printed = true;
	reply->rc = lseek(fd, 0, SEEK_SET) < 0 ? -errno : parsing->print(parsing->arg, fd, &parsing->print_error);
}

int parsing_hand_over(struct parsing *parsing, struct err *err)
{
	struct errand_reply reply;
	struct errand errand;

	if (fflush(parsing->report) != 0)
		return err_set(err, errno, "writing the output: %s", strerror(errno));
	errand_init(&errand, ERRAND_REPORT, 0, 0, NULL);
	return broker_ask(&errand, &reply);
}

static int open_report(struct parsing *parsing, struct err *err)
{
	static char buffer[64 << 10]; /* reports may have megabytes */
	_cleanup_close_ int fd = memfd_create("stakeout-report", MFD_CLOEXEC);

	if (fd < 0)
		return err_set(err, errno, "memory for the report cannot be had: %s", strerror(errno));
	parsing->report = fdopen(fd, "w+");
	if (!parsing->report)
		return err_set(err, errno, "out of memory");
	setvbuf(parsing->report, buffer, _IOFBF, sizeof(buffer));
	steal_fd(&fd);
	return 0;
}

static int prepare(struct parsing *parsing, struct err *err)
{
	void *shared = mmap(NULL, sizeof(*parsing->outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return err_set(err, errno, "out of memory");
	parsing->outcome = shared;
	return parsing->print ? open_report(parsing, err) : 0;
}

void parsing_end(struct parsing *parsing)
{
	if (parsing->outcome)
		munmap(parsing->outcome, sizeof(*parsing->outcome));
	if (parsing->report)
		fclose(parsing->report);
	parsing->outcome = NULL;
	parsing->report = NULL;
}

void parsing_explain(const struct err *why, char out[static PARSING_WORDS])
{
	if (why->code == EOWNERDEAD)
		snprintf(out, PARSING_WORDS, "no names: the process that reads files and finds them has died (%s); please report that",
			 why->msg);
	else
		snprintf(out, PARSING_WORDS, "no names: the process that reads files and finds them could not be made (%s)", why->msg);
}

static void end_sentence(struct err *err)
{
	err->msg[sizeof(err->msg) - 1] = '\0';
}

int parsing_run(struct parsing *parsing, struct err *err)
{
	struct parser_job job = {.work = work, .arg = parsing, .complain = complain, .keep_fd = parsing->keep_fd};
	int rc = prepare(parsing, err);

	if (rc < 0)
		return rc;
	file_errands_add(&job, &parsing->files);
	patience_errand_add(&job);
	kallsyms_errand_add(&job);
	store_errand_add(&job, parsing->symbols.cache);
	debuginfod_errand_add(&job, parsing->symbols.debuginfod);
	job.services[ERRAND_REPORT] = (struct service){serve_report, parsing};
	rc = parser_run(&job, err);
	end_sentence(&parsing->outcome->err);
	end_sentence(&parsing->outcome->sandbox);
	return rc;
}
