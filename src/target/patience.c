/* SPDX-License-Identifier: MIT */
#include "target/patience.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { PROMPT_NS = 100000000 };

static _Atomic uint64_t left_ns = (uint64_t)PATIENCE_DEFAULT_MS * 1000000;
static atomic_bool interrupted;
static _Atomic int wake_fd = -1; /* readable after patience_interrupt() */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct notes complaints;

void patience_set(uint64_t ns)
{
	atomic_store(&left_ns, ns);
}

void patience_hurry(void)
{
	const uint64_t most = (uint64_t)PATIENCE_DEFAULT_MS * 1000000;
	uint64_t left = atomic_load(&left_ns);

	while (left > most && !atomic_compare_exchange_weak(&left_ns, &left, most))
		continue;
}

bool patience_is_interrupted(void)
{
	return atomic_load(&interrupted);
}

uint64_t patience_left(void)
{
	return patience_is_interrupted() ? 0 : atomic_load(&left_ns);
}

void patience_interrupt(void)
{
	const uint64_t one = 1;
	int fd;

	atomic_store(&interrupted, true);
	fd = atomic_load(&wake_fd);
	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		return; /* it is readable already */
}

void patience_resume(void)
{
	uint64_t count;
	int fd = atomic_load(&wake_fd);

	atomic_store(&interrupted, false);
	if (fd >= 0 && read(fd, &count, sizeof(count)) < 0)
		return; /* nobody has written to it */
}

/* Made for the first wait; an earlier interrupt is seen by the flag. */
static int open_wake_fd(void)
{
	int fd;

	pthread_mutex_lock(&lock);
	if (atomic_load(&wake_fd) < 0)
		atomic_store(&wake_fd, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	fd = atomic_load(&wake_fd);
	pthread_mutex_unlock(&lock);
	return fd;
}

static void spend(uint64_t ns)
{
	uint64_t left = atomic_load(&left_ns);

	while (!atomic_compare_exchange_weak(&left_ns, &left, left > ns ? left - ns : 0))
		continue;
}

int patience_wait(int fd)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = open_wake_fd(), .events = POLLIN}};
	uint64_t started = monotonic_ns(), left;
	int rc = 0;

	do {
		uint64_t waited = monotonic_ns() - started;
		struct timespec timeout;

		left = patience_left();
		left = left > waited ? left - waited : 0;
		timeout = (struct timespec){.tv_sec = (time_t)(left / NS_PER_S), .tv_nsec = (long)(left % NS_PER_S)};
		rc = ppoll(fds, 2, &timeout, NULL);
	} while (rc < 0 && errno == EINTR);
	/* Who answers promptly costs nothing, however often: a long recording would run out of patience with everybody. */
	left = monotonic_ns() - started;
	if (!fds[0].revents || left > PROMPT_NS)
		spend(left);
	return fds[0].revents ? 0 : -ETIMEDOUT;
}

void patience_complain(const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	pthread_mutex_lock(&lock);
	if (text)
		notes_add(&complaints, "%s", text);
	pthread_mutex_unlock(&lock);
}

/* Files are waited for by the broker: it knows. */
static bool tell_as_parser(struct notes *out)
{
	struct errand_reply reply;
	struct errand errand;
	int n = 0;

	while (errand_init(&errand, ERRAND_COMPLAINT, n, 0, NULL) && broker_ask(&errand, &reply) == 0) {
		notes_add(out, "%s", reply.data);
		n++;
	}
	return n > 0;
}

static void serve(void *ctx, const struct errand *errand, struct errand_reply *reply)
{
	size_t index = (size_t)(uint32_t)errand->number[0];

	pthread_mutex_lock(&lock);
	reply->rc = index < complaints.len ? 0 : -ENOENT;
	if (reply->rc == 0)
		errand_answer(reply, complaints.data[index]);
	pthread_mutex_unlock(&lock);
}

void patience_errand_add(struct parser_job *job)
{
	job->services[ERRAND_COMPLAINT] = (struct service){.serve = serve};
}

bool patience_tell(struct notes *out)
{
	bool any;

	if (broker_is_there() && broker_has_complained())
		return tell_as_parser(out);
	pthread_mutex_lock(&lock);
	notes_add_all(out, &complaints);
	any = complaints.len > 0;
	pthread_mutex_unlock(&lock);
	return any;
}

void patience_reset(void)
{
	int fd;

	pthread_mutex_lock(&lock);
	fd = atomic_exchange(&wake_fd, -1);
	if (fd >= 0)
		close(fd);
	atomic_store(&interrupted, false);
	atomic_store(&left_ns, (uint64_t)PATIENCE_DEFAULT_MS * 1000000);
	notes_deinit(&complaints);
	pthread_mutex_unlock(&lock);
}
