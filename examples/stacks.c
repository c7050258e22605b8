/* SPDX-License-Identifier: MIT */
/* Prints the stacks of all threads of a process whenever SIGALRM comes, until it has ended: stacks PID */
#include <inttypes.h>
#include <signal.h>
#include <stakeout.h>
#include <stdio.h>
#include <stdlib.h>

static void print_stack(const struct stakeout_stack *stack)
{
	for (size_t i = 0; i < stakeout_stack_depth(stack); i++) {
		struct stakeout_frame f = {.size = sizeof(f)};

		stakeout_stack_frame(stack, i, &f);
		printf("  %-6s 0x%016" PRIx64 "  %s", f.kind, f.pc, f.function ? f.function : "??");
		if (f.file)
			printf("  at %s:%u", f.file, f.line);
		puts(f.flags & STAKEOUT_FRAME_INLINED ? "  [inlined]" : "");
	}
}

static void print_process(const struct stakeout_snapshot *snapshot)
{
	struct stakeout_process p = {.size = sizeof(p)};
	struct stakeout_thread t = {.size = sizeof(t)};
	const char *note;

	stakeout_snapshot_process(snapshot, 0, &p);
	printf("%s (pid %d): %zu threads, %zu held\n", p.name, p.pid, p.nthreads, p.nheld);
	for (size_t i = 0; stakeout_snapshot_thread(snapshot, 0, i, &t) == 0; i++) {
		printf("tid %d %s  %c  %s\n", t.tid, t.name, t.state, t.problem ? t.problem : "");
		print_stack(t.kernel);
		print_stack(t.user);
	}
	for (size_t i = 0; (note = stakeout_snapshot_note(snapshot, 0, i)); i++)
		printf("note: %s\n", note);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct stakeout_snapshot *snapshot = NULL;
	struct stakeout *stakeout;
	sigset_t alarms;
	int sig;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarms, NULL);
	if (argc < 2 || stakeout_create(NULL, &stakeout) < 0)
		return 2;
	while (sigwait(&alarms, &sig) == 0 && stakeout_snapshot_take(stakeout, atoi(argv[1]), NULL, &snapshot) == 0) {
		print_process(snapshot);
		stakeout_snapshot_free(snapshot);
	}
	fprintf(stderr, "%s\n", stakeout_error(stakeout));
	stakeout_free(stakeout);
	return 1;
}
