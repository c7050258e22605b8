/* SPDX-License-Identifier: MIT */
#include "proc/user.h"

#include <pwd.h>
#include <stdio.h>

#include "base/cleanup.h"

#ifdef STATIC_BUILD

bool user_name(uint32_t uid, char *buf, size_t size)
{
	_cleanup_fclose_ FILE *file = fopen("/etc/passwd", "re");
	struct passwd *user;

	while (file && (user = fgetpwent(file)))
		if (user->pw_uid == uid)
			return snprintf(buf, size, "%s", user->pw_name) >= 0;
	return false;
}

#else

bool user_name(uint32_t uid, char *buf, size_t size)
{
	struct passwd *user = getpwuid(uid);

	return user && snprintf(buf, size, "%s", user->pw_name) >= 0;
}

#endif
