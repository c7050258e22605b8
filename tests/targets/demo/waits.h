/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_DEMO_WAITS_H
#define STAKEOUT_DEMO_WAITS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Thread bodies that never return. Each waits in one way. */
void *update_account(void *mutex); /* for a pthread_mutex_t that another thread holds */
void *serve_client(void *fd);	   /* for bytes from the socket whose number `fd` points to */
void *retry_later(void *unused);   /* for time to pass */

#ifdef __cplusplus
}
#endif

#endif
