/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/debug.h"
#include "base/user.h"
#include "cmd/cmd.h"
#include "privilege/capabilities.h"
#include "privilege/file_rights.h"
#include "proc/process.h"

static const char help[] =
	"Usage: stakeout setup [OPTION…] [FILE]\n"
	"\n"
	"Lets the members of a group use stakeout on all processes, without sudo: FILE (this program, if none\n"
	"is given) gets just the capabilities that it needs, belongs to root and the group, and nobody else\n"
	"can execute it (mode 0750). Whoever may run it then may read every process on this machine: their\n"
	"memory has passwords and keys. To be run as root; it shows what it will do, and asks first.\n"
	"\n"
	"      --group NAME       who may run it (stakeout); the group must exist\n"
	"      --dry-run          only show what would be done\n"
	"      --undo             take it back: no capabilities, root's own group, for all to execute\n"
	"  -y, --yes              do not ask\n"
	DEBUG_HELP "  -h, --help             this help\n"
	"\n"
	"Exit status: 0 done, 1 it could not be done, or the answer was no, 2 wrong usage.\n";

struct setup {
	const char *group;
	bool dry_run;
	bool undo;
	bool yes;
	char path[PATH_MAX];
	int fd;
	gid_t gid;
	struct needed_right rights[MAX_NEEDED_RIGHTS];
	size_t nrights;
};

static int find_program(struct setup *s, const char *path, struct err *err)
{
	if (path)
		snprintf(s->path, sizeof(s->path), "%s", path);
	else if (!process_own_program(s->path, sizeof(s->path)))
		return err_set(err, errno, "which program this is cannot be told: name it");
	s->fd = file_rights_open(s->path, err);
	debug_say(s->fd, "opening %s", s->path);
	return s->fd < 0 ? s->fd : 0;
}

static int find_group(struct setup *s, struct err *err)
{
	if (user_find_group(s->group, &s->gid))
		return 0;
	return err_set(err, ENOENT, "there is no group %s: create it (groupadd --system %s), or name another with --group", s->group,
		       s->group);
}

static void show_rights(const struct setup *s)
{
	printf("%s gets these capabilities:\n", s->path);
	for (size_t i = 0; i < s->nrights; i++)
		printf("  %-23s without it: %s\n", s->rights[i].name, s->rights[i].without);
	printf("Only root and the group %s will be able to execute it.\n"
	       "Whoever is in that group may then read every process on this machine, with all passwords and keys in\n"
	       "their memory, and so become any user.\n",
	       s->group);
}

/* The same by other means, for who wants to do it themselves. */
static void show_commands(const struct setup *s)
{
	printf("\n");
	if (s->undo) {
		printf("  setcap -r %s\n  chown root:root %s\n  chmod 0755 %s\n", s->path, s->path, s->path);
		return;
	}
	printf("  chown root:%s %s\n  chmod 0750 %s\n  setcap ", s->group, s->path, s->path);
	for (size_t i = 0; i < s->nrights; i++)
		printf("%s%s", i ? "," : "", s->rights[i].name);
	printf("=ep %s\n", s->path);
}

static void show_plan(const struct setup *s)
{
	if (s->undo)
		printf("%s loses its capabilities; everybody can execute it, with their own rights.\n", s->path);
	else
		show_rights(s);
	show_commands(s);
}

/* Only the word of somebody who was asked counts. */
static bool is_agreed(void)
{
	char answer[16];

	printf("\nGo on? [y/N] ");
	fflush(stdout);
	if (!fgets(answer, sizeof(answer), stdin)) {
		printf("\n");
		return false;
	}
	return strcmp(answer, "y\n") == 0 || strcmp(answer, "Y\n") == 0 || strcmp(answer, "yes\n") == 0;
}

static int change(const struct setup *s, struct err *err)
{
	uint64_t capabilities = 0;
	int rc;

	for (size_t i = 0; i < s->nrights; i++)
		capabilities |= RIGHT(s->rights[i].capability);
	rc = s->undo ? file_rights_take_back(s->fd, err) : file_rights_give(s->fd, capabilities, s->gid, err);
	debug_say(rc, "%s: capabilities are %#llx", s->path, (unsigned long long)file_rights_read(s->fd));
	return rc;
}

static int run(struct setup *s, const char *path, struct err *err)
{
	int rc = find_program(s, path, err);

	if (rc == 0 && !s->undo)
		rc = find_group(s, err);
	if (rc < 0)
		return rc;
	s->nrights = needed_rights(capabilities_last(), s->rights);
	show_plan(s);
	if (s->dry_run)
		return 0;
	if (geteuid() != 0)
		return err_set(err, EPERM, "only root can do that: sudo stakeout setup");
	if (!s->yes && !is_agreed())
		return err_set(err, ECANCELED, "nothing was changed");
	rc = change(s, err);
	return rc < 0 ? err_prefix(err, "%s", s->path) : 0;
}

/* -1 to go on; else the exit code. */
static int parse(int argc, char **argv, struct setup *s)
{
	enum { OPT_GROUP = 1, OPT_DRY_RUN, OPT_UNDO };
	static const struct option long_options[] = {
		{"group", required_argument, NULL, OPT_GROUP},
		{"dry-run", no_argument, NULL, OPT_DRY_RUN},
		{"undo", no_argument, NULL, OPT_UNDO},
		{"yes", no_argument, NULL, 'y'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "yh", long_options, NULL)) != -1) {
		if (opt == '?')
			return cmd_misused(argv[0], "");
		if (opt == 'h') {
			fputs(help, stdout);
			return cmd_printed();
		}
		s->dry_run |= opt == OPT_DRY_RUN;
		s->undo |= opt == OPT_UNDO;
		s->yes |= opt == 'y';
		if (opt == OPT_GROUP)
			s->group = optarg;
	}
	return argc - optind > 1 ? cmd_misused(argv[0], "give one file, or none") : -1;
}

int cmd_setup(int argc, char **argv)
{
	struct setup s = {.group = "stakeout", .fd = -1};
	struct err err = {0};
	int code = parse(argc, argv, &s);

	if (code >= 0)
		return code;
	if (run(&s, argv[optind], &err) < 0) {
		fflush(stdout);
		cmd_complain(err.msg);
		code = EXIT_NOTHING;
	} else {
		code = cmd_printed();
	}
	if (s.fd >= 0)
		close(s.fd);
	return code;
}
