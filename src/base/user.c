/* SPDX-License-Identifier: MIT */
#include "base/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { MAX_GROUPS = 65536 };

#ifdef STATIC_BUILD

/* Valid until the next call. */
static struct passwd *find_user(uint32_t uid)
{
	_cleanup_fclose_ FILE *file = fopen("/etc/passwd", "re");
	struct passwd *user;

	while (file && (user = fgetpwent(file)))
		if (user->pw_uid == uid)
			return user;
	return NULL;
}

static bool is_member(const struct group *group, const char *name)
{
	for (char **member = group->gr_mem; *member; member++)
		if (strcmp(*member, name) == 0)
			return true;
	return false;
}

/* As getgrouplist(). */
static int list_groups(const char *name, gid_t first, gid_t *ids, int *n)
{
	_cleanup_fclose_ FILE *file = fopen("/etc/group", "re");
	int room = *n, found = 1;
	struct group *group;

	if (room > 0)
		ids[0] = first;
	while (file && (group = fgetgrent(file))) {
		if (group->gr_gid == first || !is_member(group, name))
			continue;
		if (found < room)
			ids[found] = group->gr_gid;
		found++;
	}
	*n = found;
	return found <= room ? found : -1;
}

bool user_find_group(const char *name, gid_t *out)
{
	_cleanup_fclose_ FILE *file = fopen("/etc/group", "re");
	struct group *group;

	while (file && (group = fgetgrent(file)))
		if (strcmp(group->gr_name, name) == 0) {
			*out = group->gr_gid;
			return true;
		}
	return false;
}

#else

static struct passwd *find_user(uint32_t uid)
{
	return getpwuid(uid);
}

static int list_groups(const char *name, gid_t first, gid_t *ids, int *n)
{
	return getgrouplist(name, first, ids, n);
}

bool user_find_group(const char *name, gid_t *out)
{
	struct group *group = getgrnam(name);

	if (group)
		*out = group->gr_gid;
	return group;
}

#endif

bool user_name(uint32_t uid, char *buf, size_t size)
{
	struct passwd *user = find_user(uid);

	return user && snprintf(buf, size, "%s", user->pw_name) >= 0;
}

char *user_home(uint32_t uid)
{
	struct passwd *user = find_user(uid);

	return user && user->pw_dir && user->pw_dir[0] == '/' ? strdup(user->pw_dir) : NULL;
}

int user_groups(uint32_t uid, gid_t first, gid_t **out)
{
	struct passwd *user = find_user(uid);
	int n = 0;

	if (user)
		list_groups(user->pw_name, first, NULL, &n);
	if (n < 1 || n > MAX_GROUPS)
		n = 1;
	*out = calloc((size_t)n, sizeof(gid_t));
	if (!*out)
		return -ENOMEM;
	(*out)[0] = first;
	return user && list_groups(user->pw_name, first, *out, &n) >= 0 ? n : 1;
}
