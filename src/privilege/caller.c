/* SPDX-License-Identifier: MIT */
#include "privilege/caller.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/user.h"

/* A number in the environment, as sudo leaves it there; false when there is none. */
static bool read_id(const char *name, unsigned *out)
{
	const char *text = getenv(name);
	char *end;
	unsigned long value;

	if (!text || !*text || strspn(text, "0123456789") != strlen(text))
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	*out = (unsigned)value;
	return !errno && value < (unsigned)-1;
}

static bool acts;

void caller_act(void)
{
	acts = true;
}

struct caller caller_find(void)
{
	struct caller caller = {.uid = getuid(), .gid = getgid()};
	unsigned uid, gid;

	/* The environment tells root who is behind it: nobody else is made somebody by it. */
	if (acts && getuid() == 0 && read_id("SUDO_UID", &uid) && read_id("SUDO_GID", &gid) && uid != 0)
		caller = (struct caller){.uid = uid, .gid = gid, .by_sudo = true};
	return caller;
}

char *caller_home(const struct caller *caller)
{
	return user_home(caller->uid);
}

/* All that the caller belongs to, looked up once; only the one that sudo names if the list of users does not tell. */
static struct {
	gid_t *ids; /* NULL: not looked up yet */
	int n;
} callers_groups;

static bool find_groups(const struct caller *caller)
{
	if (!callers_groups.ids)
		callers_groups.n = user_groups(caller->uid, caller->gid, &callers_groups.ids);
	return callers_groups.ids;
}

static bool lower(struct caller_scope *scope)
{
	struct capabilities lowered;

	if (!acts || geteuid() == 0 || !capabilities_read(&scope->before) || !scope->before.effective)
		return false;
	lowered = scope->before;
	lowered.effective = 0;
	return capabilities_write(&lowered) == 0;
}

struct caller_scope caller_begin_rights(void)
{
	struct caller_scope scope = {0};

	scope.lowered = lower(&scope);
	return scope;
}

/* Back to root; whoever cannot must not go on as somebody else. */
static void be_root(struct caller_scope *scope)
{
	if (seteuid(0) < 0 || setegid(0) < 0 || setgroups((size_t)scope->ngroups, scope->groups) < 0)
		_exit(1);
	free(steal_ptr(scope->groups));
}

static bool remember_groups(struct caller_scope *scope)
{
	scope->ngroups = getgroups(0, NULL);
	if (scope->ngroups < 0)
		return false;
	scope->groups = calloc((size_t)scope->ngroups + 1, sizeof(*scope->groups));
	return scope->groups && getgroups(scope->ngroups, scope->groups) == scope->ngroups;
}

static bool become_for_now(struct caller_scope *scope, const struct caller *caller)
{
	if (!find_groups(caller) || !remember_groups(scope))
		return false;
	if (setgroups((size_t)callers_groups.n, callers_groups.ids) == 0 && setegid(caller->gid) == 0 && seteuid(caller->uid) == 0)
		return true;
	be_root(scope);
	return false;
}

struct caller_scope caller_begin_identity(void)
{
	struct caller caller = caller_find();
	struct caller_scope scope = {0};

	if (caller.by_sudo && geteuid() == 0) /* else within another such scope */
		scope.became = become_for_now(&scope, &caller);
	else
		scope.lowered = lower(&scope);
	return scope;
}

void caller_end(struct caller_scope *scope)
{
	if (scope->became)
		be_root(scope);
	if (scope->lowered)
		capabilities_write(&scope->before);
	free(scope->groups);
	*scope = (struct caller_scope){0};
}

int caller_become(void)
{
	struct caller caller = caller_find();

	if (!caller.by_sudo)
		return 0;
	if (!find_groups(&caller))
		return -ENOMEM;
	if (setgroups((size_t)callers_groups.n, callers_groups.ids) < 0 || setresgid(caller.gid, caller.gid, caller.gid) < 0 ||
	    setresuid(caller.uid, caller.uid, caller.uid) < 0)
		return -errno;
	return 0;
}

int caller_give(int fd)
{
	struct caller caller = caller_find();

	return caller.by_sudo && fchown(fd, caller.uid, caller.gid) < 0 ? -errno : 0;
}
