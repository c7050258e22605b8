/* SPDX-License-Identifier: MIT */
/* Names addresses of the file with a build-id, or of a file: names BUILD-ID|PATH ADDRESS… */
#include <inttypes.h>
#include <stakeout.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_frames(const struct stakeout_stack *stack)
{
	for (size_t i = 0; i < stakeout_stack_depth(stack); i++) {
		struct stakeout_frame f = {.size = sizeof(f)};

		stakeout_stack_frame(stack, i, &f);
		printf("0x%" PRIx64 "  %s", f.pc, f.function ? f.function : "??");
		if (f.flags & STAKEOUT_FRAME_HAS_OFFSET)
			printf("+0x%" PRIx64, f.function_offset);
		if (f.file)
			printf("  at %s:%u", f.file, f.line);
		puts(f.flags & STAKEOUT_FRAME_INLINED ? "  [inlined]" : "");
	}
}

int main(int argc, char **argv)
{
	struct stakeout_options options = {.size = sizeof(options), .flags = STAKEOUT_CACHE};
	size_t n = argc > 2 ? (size_t)argc - 2 : 0;
	const struct stakeout_stack **stacks = calloc(n + 1, sizeof(*stacks));
	uint64_t *addresses = calloc(n + 1, sizeof(*addresses));
	struct stakeout_symbols *symbols = NULL;
	struct stakeout *stakeout = NULL;
	int rc;

	if (!n || !addresses || !stacks || stakeout_create(&options, &stakeout) < 0)
		return 2;
	for (size_t i = 0; i < n; i++)
		addresses[i] = strtoull(argv[i + 2], NULL, 16);
	if (strchr(argv[1], '/'))
		rc = stakeout_symbols_of_file(stakeout, argv[1], &symbols);
	else
		rc = stakeout_symbols_of_build_id(stakeout, argv[1], &symbols);
	if (rc == 0)
		rc = stakeout_symbols_find(symbols, addresses, n, stacks);
	for (size_t i = 0; rc == 0 && i < n; i++)
		print_frames(stacks[i]);
	if (rc < 0)
		fprintf(stderr, "%s\n", stakeout_error(stakeout));
	stakeout_symbols_free(symbols);
	stakeout_free(stakeout);
	free(addresses);
	free(stacks);
	return rc < 0;
}
