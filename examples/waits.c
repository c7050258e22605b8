/* SPDX-License-Identifier: MIT */
/* Prints where the threads of a process wait for a second: waits PID [SECONDS] */
#include <inttypes.h>
#include <stakeout.h>
#include <stdio.h>
#include <stdlib.h>

static void print_stack(const struct stakeout_stack *stack)
{
	for (size_t i = 0; i < stakeout_stack_depth(stack); i++) {
		struct stakeout_frame f = {.size = sizeof(f)};

		stakeout_stack_frame(stack, i, &f);
		printf("  %-6s %s\n", f.kind, f.function ? f.function : "??");
	}
}

static void print_waits(const struct stakeout_waits *waits)
{
	struct stakeout_waits_summary s = {.size = sizeof(s)};
	struct stakeout_wait w = {.size = sizeof(w)};
	const char *note;

	stakeout_waits_summary(waits, &s);
	printf("%" PRIu64 " waits, %" PRIu64 " us, %s%s\n", s.count, s.total_ns / 1000, s.method, s.estimate ? ", estimated" : "");
	for (size_t i = 0; stakeout_waits_wait(waits, i, &w) == 0; i++) {
		printf("tid %d %s  %c %s: %" PRIu64 " waits, %" PRIu64 " us\n", w.tid, w.name, w.state, w.cause, w.count,
		       w.total_ns / 1000);
		print_stack(w.kernel);
		print_stack(w.user);
	}
	for (size_t i = 0; (note = stakeout_waits_note(waits, i)); i++)
		printf("note: %s\n", note);
}

int main(int argc, char **argv)
{
	pid_t pid = argc > 1 ? atoi(argv[1]) : 0;
	double seconds = argc > 2 ? atof(argv[2]) : 1;
	struct stakeout_waits *waits = NULL;
	struct stakeout *stakeout;
	int rc;

	if (pid <= 0 || stakeout_create(NULL, &stakeout) < 0)
		return 2;
	rc = stakeout_waits_start(stakeout, &pid, 1, NULL, &waits);
	if (rc == 0)
		rc = stakeout_waits_sleep(waits, (uint64_t)(seconds * 1e9));
	if (rc >= 0)
		rc = stakeout_waits_stop(waits);
	if (rc == 0)
		print_waits(waits);
	else
		fprintf(stderr, "%s\n", stakeout_error(stakeout));
	stakeout_waits_free(waits);
	stakeout_free(stakeout);
	return rc < 0;
}
