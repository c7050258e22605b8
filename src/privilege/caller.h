/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_PRIVILEGE_CALLER_H
#define STAKEOUT_PRIVILEGE_CALLER_H

#include <stdbool.h>
#include <sys/types.h>

#include "privilege/capabilities.h"

/*
 * Who runs this program. Three ways give it rights that this user may not have: being root; sudo, where the user behind
 * root is known; capabilities of the program's own file (`stakeout setup`), where the user ids are the caller's already.
 */
struct caller {
	uid_t uid;
	gid_t gid;
	bool by_sudo; /* this process is root's, the caller is not */
};

struct caller caller_find(void);

/*
 * To be said by the program at its start: it acts for its caller. Without that, in a program of others that uses the library,
 * nothing here changes who it is and what it may do.
 */
void caller_act(void);

/* The caller's home directory, by the list of users; for free(). NULL: not known. */
char *caller_home(const struct caller *caller);

/*
 * A file that the caller names is opened with the caller's rights: those of the program's file do not count meanwhile.
 * Whoever uses sudo wants root's rights, and has them. For one thread, without others that need those rights:
 *
 *	_cleanup_(caller_end) struct caller_scope scope = caller_begin_rights();
 */
struct caller_scope {
	bool lowered; /* capabilities */
	bool became;  /* another user */
	struct capabilities before;
	gid_t *groups;
	int ngroups;
};

struct caller_scope caller_begin_rights(void);

/* The same, and under sudo as the caller, to whom belongs what is created meanwhile. Only while there is one thread. */
struct caller_scope caller_begin_identity(void);

void caller_end(struct caller_scope *scope);

/* Becomes the caller for good, where that is somebody else, with all groups. 0 or -errno. */
int caller_become(void);

/* Under sudo what was created belongs to the caller. 0 or -errno. */
int caller_give(int fd);

#endif
