/* SPDX-License-Identifier: MIT */
#include "wait/stillness.h"

/*
 * What a thread waits for was read while it slept. An owner that did not run then had it all the while; one that was read in a window may
 * have let go of it between the two. A thread that has been woken does not wait any more.
 */
bool stillness_of_capture(const struct snap_thread *t, const struct snap_thread *owner)
{
	if (t->woken || t->still == STILL_NEVER || owner->still == STILL_NEVER || owner->read_in > t->read_in || owner->still_in < t->read_in)
		return false;
	return t->still == STILL_IN_WINDOW || owner->still == STILL_THROUGHOUT;
}

bool stillness_lasts(const struct wait_threads *threads, const struct snap_thread *t)
{
	return t->still != STILL_NEVER && t->still_in == threads->last_look;
}

bool stillness_of_last_look(const struct wait_threads *threads, const struct snap_thread *t, const struct snap_thread *owner)
{
	return !t->woken && stillness_lasts(threads, t) && stillness_lasts(threads, owner);
}
