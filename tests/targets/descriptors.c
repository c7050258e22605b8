/* SPDX-License-Identifier: MIT */
/*
 * descriptors WHAT [ARG]: `waiter` is blocked on a descriptor of the kind that is wanted. Where another process has the other end, that is
 * `child`, which is called "partner" and does nothing.
 */
#include "target.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>

enum { MANY = 10000, WORKERS = 40 };

static int fds[2];
static const char *argument;

static int loses_main; /* the partner's main thread ends, and another one is left */

static void *stay(void *arg)
{
	const int named = (int)(intptr_t)arg;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "left");
	while (access("/proc/self/fd", F_OK) == 0 && readlink("/proc/self/fd/0", (char[64]){0}, 64) >= 0)
		usleep(1000); /* that is what the main thread has: nothing, when it has ended */
	close(named);
	for (;;)
		pause();
	return NULL;
}

static void lose_main(int named)
{
	pthread_t thread;

	pthread_create(&thread, NULL, stay, (void *)(intptr_t)named);
	pthread_exit(NULL);
}

/* Another process, which keeps its own copies of descriptors but for this one. */
static void start_partner(int but)
{
	int named[2];
	char byte;
	pid_t pid;

	if (pipe(named) < 0 || (pid = fork()) < 0)
		target_die("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "partner");
		close(but);
		close(named[0]);
		if (loses_main)
			lose_main(named[1]);
		close(named[1]);
		for (;;)
			pause();
	}
	close(named[1]);
	while (read(named[0], &byte, 1) < 0)
		;
	close(named[0]);
	target_threads[target_nthreads].name = "child";
	atomic_store(&target_threads[target_nthreads++].tid, pid);
}

static void fill(int fd)
{
	static char bytes[4096];

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
	while (write(fd, bytes, 1) > 0)
		;
	fcntl(fd, F_SETFL, 0);
}

FRAME static void read_it(void)
{
	char bytes[256];

	target_arrived();
	while (read(fds[0], bytes, sizeof(bytes)) >= 0 || errno == EINTR)
		;
	target_die("read");
}

static void write_it(void)
{
	static char bytes[4096];

	target_arrived();
	while (write(fds[1], bytes, sizeof(bytes)) >= 0 || errno == EINTR)
		;
	target_die("write");
}

static void make_pipe(void)
{
	if (pipe(fds) < 0)
		target_die("pipe");
}

static void pipe_read(void)
{
	make_pipe();
	start_partner(fds[0]);
	close(fds[1]);
	target_start("waiter", read_it);
}

static void pipe_headless(void)
{
	loses_main = 1;
	pipe_read();
}

/* The end that is written to is in the table of one thread only. */
static atomic_int apart;

static void keep_apart(void)
{
	if (unshare(CLONE_FILES) < 0)
		target_die("unshare");
	atomic_store(&apart, 1);
	target_block();
}

static void pipe_apart(void)
{
	make_pipe();
	target_start("keeper", keep_apart);
	while (!atomic_load(&apart))
		usleep(1000);
	close(fds[1]);
	target_start("waiter", read_it);
}

static void pipe_write(void)
{
	make_pipe();
	start_partner(fds[1]);
	fill(fds[1]);
	close(fds[0]);
	target_start("waiter", write_it);
}

/* The process has the other end itself, and nobody else. */
static void pipe_own(void)
{
	make_pipe();
	target_start("waiter", read_it);
}

static void fifo(void)
{
	if (mkfifo(argument, 0600) < 0)
		target_die("mkfifo");
	fds[0] = open(argument, O_RDONLY | O_NONBLOCK);
	fds[1] = open(argument, O_WRONLY);
	fcntl(fds[0], F_SETFL, 0);
	start_partner(fds[0]);
	close(fds[1]);
	target_start("waiter", read_it);
}

static atomic_int gone;

static void answer_go(const char *question)
{
	(void)question;
	atomic_store(&gone, 1);
	puts("gone");
}

/* A file that is read when it is said so, from byte 10 on. */
static void wait_until_gone(void)
{
	target_arrived();
	while (!atomic_load(&gone))
		usleep(1000);
}

static void read_later(void)
{
	wait_until_gone();
	read_it();
}

/* These calls have an offset of their own, or mean that of the file by -1. */
static void pread_later(void)
{
	char byte;

	wait_until_gone();
	(void)!pread(fds[0], &byte, 1, 20);
}

static void preadv2_later(void)
{
	char byte;
	const struct iovec one = {.iov_base = &byte, .iov_len = 1};

	wait_until_gone();
	(void)!preadv2(fds[0], &one, 1, -1, 0);
}

static void start_on_file(void (*run)(void))
{
	fds[0] = open(argument, O_RDONLY);
	if (fds[0] < 0 || lseek(fds[0], 10, SEEK_SET) < 0)
		target_die(argument);
	target_start("waiter", run);
}

static void file_later(void)
{
	start_on_file(read_later);
}

static void file_pread_later(void)
{
	start_on_file(pread_later);
}

static void file_preadv2_later(void)
{
	start_on_file(preadv2_later);
}

/* A file whose memory is touched when it is said so. */
static const volatile char *mapped;

static void touch_later(void)
{
	wait_until_gone();
	fds[1] = *mapped;
	target_block();
}

static void mapped_later(void)
{
	fds[0] = open(argument, O_RDONLY);
	mapped = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fds[0], 0);
	if (fds[0] < 0 || mapped == MAP_FAILED)
		target_die(argument);
	target_start("waiter", touch_later);
}

static void wait_for_go(void)
{
	target_arrived();
	while (!atomic_load(&gone))
		usleep(1000);
}

static void sync_it(void)
{
	wait_for_go();
	fsync(fds[0]);
	target_block();
}

static void control_it(void)
{
	wait_for_go();
	ioctl(fds[0], _IO('x', 1), 0);
	target_block();
}

static void open_argument(void)
{
	fds[0] = open(argument, O_RDONLY);
	if (fds[0] < 0)
		target_die(argument);
}

static void sync_later(void)
{
	open_argument();
	target_start("waiter", sync_it);
}

static void control_later(void)
{
	open_argument();
	target_start("waiter", control_it);
}

/* Two that want to change one directory: the second has to wait for the first. */
static void make_directory(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%d", argument, (int)target_gettid());
	wait_for_go();
	mkdir(path, 0700);
	target_block();
}

static void directories_later(void)
{
	target_start("waiter", make_directory);
	target_start("another", make_directory);
}

/* A device, from where it ends just now. */
static void device(void)
{
	fds[0] = open(argument, O_RDONLY);
	if (fds[0] < 0 || lseek(fds[0], 0, SEEK_END) < 0) {
		target_start("cannot", target_block);
		return;
	}
	target_start("waiter", read_it);
}

/* Sockets */

static void check(int rc, const char *what)
{
	if (rc < 0)
		target_die(what);
}

/* A socket that listens, on a port that the kernel chooses, or at a path. */
static int listening(int family, int backlog, struct sockaddr_storage *address, socklen_t *len)
{
	int fd = socket(family, SOCK_STREAM, 0);

	memset(address, 0, sizeof(*address));
	address->ss_family = (sa_family_t)family;
	*len = family == AF_INET ? sizeof(struct sockaddr_in) : family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_un);
	if (family == AF_INET)
		((struct sockaddr_in *)address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (family == AF_INET6)
		((struct sockaddr_in6 *)address)->sin6_addr = in6addr_loopback;
	else
		snprintf(((struct sockaddr_un *)address)->sun_path, sizeof(((struct sockaddr_un *)address)->sun_path), "%s", argument);
	check(fd, "socket");
	check(bind(fd, (struct sockaddr *)address, *len), "bind");
	check(listen(fd, backlog), "listen");
	check(getsockname(fd, (struct sockaddr *)address, len), "getsockname");
	return fd;
}

/* fds[0] is the client's end, fds[1] the server's. */
static void connect_ends(int family)
{
	struct sockaddr_storage address;
	socklen_t len;
	int listener = listening(family, 5, &address, &len);

	fds[0] = socket(family, SOCK_STREAM, 0);
	check(connect(fds[0], (struct sockaddr *)&address, len), "connect");
	fds[1] = accept(listener, NULL, NULL);
	check(fds[1], "accept");
	close(listener);
}

static void read_from_partner(void)
{
	start_partner(fds[0]);
	close(fds[1]);
	target_start("waiter", read_it);
}

static void tcp_read(void)
{
	connect_ends(AF_INET);
	read_from_partner();
}

static void tcp6_read(void)
{
	connect_ends(AF_INET6);
	read_from_partner();
}

/* fds[0] is of IPv4, and fds[1] of IPv6, with the same addresses. */
static void connect_families(void)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(any);
	int listener = socket(AF_INET6, SOCK_STREAM, 0), off = 0;

	check(setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)), "setsockopt");
	check(bind(listener, (struct sockaddr *)&any, len), "bind");
	check(listen(listener, 5), "listen");
	check(getsockname(listener, (struct sockaddr *)&any, &len), "getsockname");
	address.sin_port = any.sin6_port;
	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	check(connect(fds[0], (struct sockaddr *)&address, sizeof(address)), "connect");
	fds[1] = accept(listener, NULL, NULL);
	check(fds[1], "accept");
	close(listener);
}

static void tcp4to6_read(void)
{
	connect_families();
	read_from_partner();
}

static void tcp6to4_read(void)
{
	int first;

	connect_families();
	first = fds[0];
	fds[0] = fds[1];
	fds[1] = first;
	read_from_partner();
}

static void unix_read(void)
{
	connect_ends(AF_UNIX);
	read_from_partner();
}

static void pair_read(void)
{
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), "socketpair");
	read_from_partner();
}

static void write_to_partner(void)
{
	int other = fds[0];

	start_partner(fds[1]);
	fill(fds[1]);
	close(other);
	target_start("waiter", write_it);
}

static void tcp_write(void)
{
	connect_ends(AF_INET);
	write_to_partner();
}

static void pair_write(void)
{
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), "socketpair");
	write_to_partner();
}

static void udp_read(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	fds[0] = socket(AF_INET, SOCK_DGRAM, 0);
	check(bind(fds[0], (struct sockaddr *)&address, sizeof(address)), "bind");
	target_start("waiter", read_it);
}

static void receive_several(void)
{
	char bytes[2][16];
	struct iovec parts[2] = {{bytes[0], sizeof(bytes[0])}, {bytes[1], sizeof(bytes[1])}};
	struct mmsghdr messages[2] = {{.msg_hdr = {.msg_iov = &parts[0], .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = &parts[1], .msg_iovlen = 1}}};
	struct timespec hour = {.tv_sec = 3600}; /* which the kernel looks at only when a message has come */

	target_arrived();
	for (;;)
		recvmmsg(fds[0], messages, 2, 0, &hour);
}

static void udp_several(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	fds[0] = socket(AF_INET, SOCK_DGRAM, 0);
	check(bind(fds[0], (struct sockaddr *)&address, sizeof(address)), "bind");
	target_start("waiter", receive_several);
}

static void netlink_read(void)
{
	fds[0] = socket(AF_NETLINK, SOCK_RAW, 0);
	target_start("waiter", read_it);
}

static void accept_it(void)
{
	target_arrived();
	accept(fds[0], NULL, NULL);
	target_die("accept");
}

static struct sockaddr_storage where;
static socklen_t where_len;

static void accept_tcp(void)
{
	fds[0] = listening(AF_INET, 5, &where, &where_len);
	target_start("waiter", accept_it);
}

static void accept_unix(void)
{
	fds[0] = listening(AF_UNIX, 5, &where, &where_len);
	target_start("waiter", accept_it);
}

/* Nobody accepts, and the queue is full. */
static void connect_it(void)
{
	target_arrived();
	connect(fds[0], (struct sockaddr *)&where, where_len);
	target_die("connect");
}

static void fill_queue(int family)
{
	int fd, rc;

	fds[1] = listening(family, 0, &where, &where_len);
	do {
		fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
		rc = connect(fd, (struct sockaddr *)&where, where_len);
		if (rc < 0 && errno == EINPROGRESS) { /* as long as it answers it is not full */
			struct pollfd done = {.fd = fd, .events = POLLOUT};

			rc = poll(&done, 1, 300) == 1 ? 0 : -1;
		}
	} while (rc == 0);
	fds[0] = socket(family, SOCK_STREAM, 0);
	target_start("waiter", connect_it);
}

static void connect_tcp(void)
{
	fill_queue(AF_INET);
}

static void connect_unix(void)
{
	fill_queue(AF_UNIX);
}

/* Other descriptors */

static void read_eventfd(void)
{
	fds[0] = eventfd(0, 0);
	target_start("waiter", read_it);
}

static void read_timer(void)
{
	const struct itimerspec hour = {.it_value.tv_sec = 3600};

	fds[0] = timerfd_create(CLOCK_MONOTONIC, 0);
	timerfd_settime(fds[0], 0, &hour, NULL);
	target_start("waiter", read_it);
}

static void read_unset_timer(void)
{
	fds[0] = timerfd_create(CLOCK_MONOTONIC, 0);
	target_start("waiter", read_it);
}

static void read_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fds[0] = signalfd(-1, &set, 0);
	target_start("waiter", read_it);
}

static void read_inotify(void)
{
	fds[0] = inotify_init1(0);
	target_start("waiter", read_it);
}

static void read_terminal(void)
{
	fds[1] = posix_openpt(O_RDWR | O_NOCTTY);
	check(fds[1] < 0 || grantpt(fds[1]) || unlockpt(fds[1]) ? -1 : 0, "a terminal");
	fds[0] = open(ptsname(fds[1]), O_RDWR | O_NOCTTY);
	target_start("waiter", read_it);
}

static void read_master(void)
{
	fds[0] = posix_openpt(O_RDWR | O_NOCTTY);
	check(fds[0] < 0 || grantpt(fds[0]) || unlockpt(fds[0]) ? -1 : 0, "a terminal");
	fds[1] = open(ptsname(fds[0]), O_RDWR | O_NOCTTY);
	target_start("waiter", read_it);
}

/* Sets */

static void poll_it(void)
{
	struct pollfd one = {.fd = fds[0], .events = POLLIN};

	target_arrived();
	for (;;)
		poll(&one, 1, -1);
}

static void poll_tcp(void)
{
	connect_ends(AF_INET);
	start_partner(fds[0]);
	close(fds[1]);
	target_start("waiter", poll_it);
}

static void poll_pidfd(void)
{
	start_partner(-1);
	fds[0] = (int)syscall(SYS_pidfd_open, target_threads[0].tid, 0);
	target_start("waiter", poll_it);
}

static void poll_for_a_while(void)
{
	struct pollfd two[] = {{.fd = fds[0], .events = POLLIN}, {.fd = -1}, {.fd = fds[1], .events = POLLOUT}};

	target_arrived();
	for (;;)
		poll(two, 3, 3600 * 1000);
}

static void poll_two(void)
{
	make_pipe();
	fill(fds[1]);
	fds[0] = eventfd(0, 0);
	target_start("waiter", poll_for_a_while);
}

static void select_it(void)
{
	fd_set reads, writes;

	target_arrived();
	for (;;) {
		FD_ZERO(&reads);
		FD_ZERO(&writes);
		FD_SET(fds[0], &reads);
		FD_SET(fds[1], &writes);
		select(FD_SETSIZE, &reads, &writes, NULL, NULL);
	}
}

static void select_two(void)
{
	make_pipe();
	fill(fds[1]);
	fds[0] = eventfd(0, 0);
	target_start("waiter", select_it);
}

static void watch(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	check(fd, "a descriptor to watch");
	check(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

static void wait_for_events(void)
{
	struct epoll_event event;

	target_arrived();
	for (;;)
		epoll_wait(fds[0], &event, 1, -1);
}

static void epoll(void)
{
	int ends[2], pipes[2];

	fds[0] = epoll_create1(0);
	watch(fds[0], listening(AF_INET, 5, &where, &where_len));
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	watch(fds[0], ends[0]);
	watch(fds[0], eventfd(0, 0));
	watch(fds[0], timerfd_create(CLOCK_MONOTONIC, 0));
	check(pipe(pipes), "pipe");
	watch(fds[0], pipes[0]);
	target_start("waiter", wait_for_events);
}

static void epoll_many(void)
{
	const struct rlimit limit = {MANY + 100, MANY + 100};
	int ends[2];

	if (setrlimit(RLIMIT_NOFILE, &limit) < 0) {
		target_start("cannot", target_block);
		return;
	}
	fds[0] = epoll_create1(0);
	for (int i = 0; i < MANY / 2; i++) {
		check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
		watch(fds[0], ends[0]);
		watch(fds[0], ends[1]);
	}
	watch(fds[0], listening(AF_INET, 5, &where, &where_len));
	watch(fds[0], eventfd(0, 0));
	target_start("waiter", wait_for_events);
	target_start("another", wait_for_events);
}

static struct epoll_event *owed; /* memory that nobody delivers */

/* Something has happened, and the thread is to write it to that memory: it has the epoll locked. */
static void wait_into_nowhere(void)
{
	target_arrived();
	epoll_wait(fds[0], owed, 1, -1);
	target_die("epoll_wait");
}

static void epoll_stuck(void)
{
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	owed = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range = (struct uffdio_range){.start = (uintptr_t)owed, .len = size};
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) < 0 || ioctl(uffd, UFFDIO_REGISTER, &range) < 0) {
		target_start("cannot", target_block);
		return;
	}
	fds[0] = epoll_create1(0);
	watch(fds[0], eventfd(1, 0));
	target_start("waiter", wait_into_nowhere);
}

static void enter_ring(void)
{
	target_arrived();
	for (;;)
		syscall(SYS_io_uring_enter, fds[0], 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
}

static void ring(void)
{
	struct io_uring_params params = {0};

	fds[0] = (int)syscall(SYS_io_uring_setup, 4, &params);
	target_start(fds[0] < 0 ? "cannot" : "waiter", fds[0] < 0 ? target_block : enter_ring);
}

/* Several */

/* Clients that say nothing, each served by a thread of its own. */
static void serve(void)
{
	char byte;
	int fd = accept(fds[0], NULL, NULL);

	check(fd, "accept");
	target_arrived();
	while (read(fd, &byte, 1) >= 0 || errno == EINTR)
		;
}

static void servers(void)
{
	fds[0] = listening(AF_INET, WORKERS, &where, &where_len);
	for (int i = 0; i < WORKERS; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		check(connect(fd, (struct sockaddr *)&where, where_len), "connect");
		target_start("server", serve);
	}
}

/* Threads that read from pipes, fifos, sockets and eventfds, more of each kind than are looked at one by one. */
enum { OF_EACH = 20 };

static atomic_int in_crowd;

static void *read_one(void *arg)
{
	atomic_fetch_add(&in_crowd, 1);
	for (uint64_t word; read((int)(intptr_t)arg, &word, sizeof(word)) >= 0 || errno == EINTR;)
		;
	target_die("read");
	return NULL;
}

static void open_one_fifo(void)
{
	char path[4096];
	static int n;

	snprintf(path, sizeof(path), "%s-%d", argument, n++);
	check(mkfifo(path, 0600), "mkfifo");
	fds[0] = open(path, O_RDONLY | O_NONBLOCK);
	fds[1] = open(path, O_WRONLY);
	fcntl(fds[0], F_SETFL, 0);
}

static void connect_tcp4(void)
{
	connect_ends(AF_INET);
}

static void connect_tcp6(void)
{
	connect_ends(AF_INET6);
}

static void connect_pair(void)
{
	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), "socketpair");
}

static void make_eventfd(void)
{
	fds[0] = eventfd(0, EFD_CLOEXEC);
	fds[1] = dup(fds[0]);
}

/* All at once, and a file whose name may mislead. Nothing that is waited for happens to any of them. */
static struct pollfd polled[7 * OF_EACH + 1];
static nfds_t npolled;

static void *poll_all(void *arg)
{
	prctl(PR_SET_NAME, "poller");
	atomic_fetch_add(&in_crowd, 1);
	while (poll(polled, npolled, -1) < 0 && errno == EINTR)
		;
	target_die("poll");
	return arg;
}

static void add_polled(int fd)
{
	check(fd, "a descriptor");
	polled[npolled++] = (struct pollfd){.fd = fd, .events = POLLPRI};
}

static void open_misleading(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%.*s/[eventfd]", (int)(strrchr(argument, '/') - argument), argument);
	add_polled(open(path, O_RDWR | O_CREAT, 0600));
}

static void crowd(void)
{
	static void (*const make[])(void) = {make_pipe, open_one_fifo, connect_tcp4, connect_tcp6, connect_families, connect_pair, make_eventfd};
	enum { KINDS = sizeof(make) / sizeof(make[0]), ALL = KINDS * OF_EACH };
	static int read_from[ALL], other[ALL];
	pthread_t thread;

	open_misleading();
	for (int i = 0; i < ALL; i++) {
		make[i % KINDS]();
		/* Of some the ends are swapped, where they are alike. */
		read_from[i] = fds[i / KINDS % 2 && make[i % KINDS] == connect_families];
		other[i] = fds[0] + fds[1] - read_from[i];
		add_polled(read_from[i]);
	}
	start_partner(-1);
	for (int i = 0; i < ALL; i += 3)
		close(other[i]);
	for (int i = 0; i < ALL; i++)
		if (pthread_create(&thread, NULL, read_one, (void *)(intptr_t)read_from[i]))
			target_die("pthread_create");
	if (pthread_create(&thread, NULL, poll_all, NULL))
		target_die("pthread_create");
	while (atomic_load(&in_crowd) < ALL + 1)
		usleep(1000);
}

static int accepted_from;

static void accept_more(void)
{
	target_arrived();
	accept(accepted_from, NULL, NULL);
	target_die("accept");
}

/* So many sockets that the kernel's list of them is long. */
static bool connect_idle(void)
{
	enum { CONNECTIONS = 2100 };
	int listener = listening(AF_INET, 64, &where, &where_len);

	if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){3 * CONNECTIONS, 3 * CONNECTIONS}) < 0)
		return false;
	for (int i = 0; i < CONNECTIONS; i++) {
		check(connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&where, where_len), "connect");
		check(accept(listener, NULL, NULL), "accept");
	}
	return true;
}

/* All kinds of sockets of TCP. */
static void serve_all(int nservers)
{
	enum { UNREAD = 7 };
	pthread_t thread;
	int raw = socket(AF_INET, SOCK_RAW, IPPROTO_TCP); /* no connection of TCP, though it says so */

	if (!connect_idle()) {
		target_start("cannot", target_block);
		return;
	}

	accepted_from = listening(AF_INET6, 64, &where, &where_len);
	for (int i = 0; i < nservers; i++) {
		int client = socket(AF_INET6, SOCK_STREAM, 0), fd;

		check(connect(client, (struct sockaddr *)&where, where_len), "connect");
		fd = accept(accepted_from, NULL, NULL);
		check(fd, "accept");
		if (pthread_create(&thread, NULL, read_one, (void *)(intptr_t)fd))
			target_die("pthread_create");
	}
	while (atomic_load(&in_crowd) < nservers)
		usleep(1000);
	target_start("acceptor", accept_more);
	connect_ends(AF_INET);
	check((int)write(fds[1], "unread!", UNREAD), "write");
	add_polled(fds[0]);
	add_polled(socket(AF_INET, SOCK_DGRAM, 0));
	if (raw >= 0) /* the user may */
		add_polled(raw);
	add_polled(listening(AF_INET, 5, &where, &where_len));
	if (pthread_create(&thread, NULL, poll_all, NULL))
		target_die("pthread_create");
	while (atomic_load(&in_crowd) < nservers + 1)
		usleep(1000);
	fill_queue(AF_INET);
}

static void serve_few(void)
{
	serve_all(3);
}

/* The process goes to another network namespace, in which it has none of them. */
static void serve_elsewhere(void)
{
	serve_all(3);
	if (unshare(CLONE_NEWNET) < 0)
		target_start("cannot", target_block);
}

/* More than are looked at one by one. */
static void serve_many(void)
{
	serve_all(140);
}

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int locked;

static void hold_and_read(void)
{
	pthread_mutex_lock(&cache_lock);
	atomic_store(&locked, 1);
	read_it();
}

static void want_lock(void)
{
	while (!atomic_load(&locked))
		usleep(1000);
	target_arrived();
	pthread_mutex_lock(&cache_lock);
}

static void chain(void)
{
	static char names[31][16];

	connect_ends(AF_INET);
	start_partner(fds[0]);
	close(fds[1]);
	target_start("worker-3", hold_and_read);
	for (int i = 0; i < 31; i++) {
		snprintf(names[i], sizeof(names[i]), "wants-%d", i);
		target_start(names[i], want_lock);
	}
}

/* Two threads that hand a byte to and fro as fast as they can. */
static int to[2], fro[2];

static void play(int in, int out)
{
	char byte = 0;

	target_arrived();
	while (read(in, &byte, 1) == 1 && write(out, &byte, 1) == 1)
		;
}

static void ping(void)
{
	play(to[0], fro[1]);
}

static void pong(void)
{
	play(fro[0], to[1]);
}

static void ping_pong(void)
{
	check(pipe(to), "pipe");
	check(pipe(fro), "pipe");
	target_start("ping", ping);
	target_start("pong", pong);
	check((int)write(to[1], "", 1), "write");
}

/* One number that is now a pipe and now a socket; the functions tell which. */
enum { NUMBER = 100 };

static atomic_int feeding = -1;

static void wait_once(int in, int out)
{
	char byte;

	dup2(in, NUMBER);
	close(in);
	atomic_store(&feeding, out);
	while (read(NUMBER, &byte, 1) < 0 && errno == EINTR)
		;
	close(out);
}

FRAME static void wait_for_pipe(void)
{
	int ends[2];

	check(pipe(ends), "pipe");
	wait_once(ends[0], ends[1]);
}

FRAME static void wait_for_socket(void)
{
	int ends[2];

	check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	wait_once(ends[0], ends[1]);
}

static void change(void)
{
	target_arrived();
	for (;;) {
		wait_for_pipe();
		wait_for_socket();
	}
}

/* Lets it wait for a while that is as long as a look takes, or shorter; when it is said so, for ever. */
static void feed(void)
{
	target_arrived();
	for (unsigned i = 0; !atomic_load(&gone); i++) {
		int fd = atomic_exchange(&feeding, -1);

		usleep(100 << i % 8);
		if (fd >= 0)
			check((int)write(fd, "", 1), "write");
	}
	target_block();
}

static void changing(void)
{
	target_start("waiter", change);
	target_start("feeder", feed);
}

/* Files */

static void open_it(void)
{
	target_arrived();
	open(argument, O_RDONLY);
	target_die("open");
}

static void open_fifo(void)
{
	check(mkfifo(argument, 0600), "mkfifo");
	target_start("waiter", open_it);
}

static void open_at(void)
{
	target_arrived();
	openat(fds[0], strrchr(argument, '/') + 1, O_RDONLY);
	target_die("openat");
}

/* By its name in a directory that is open. */
static void open_fifo_at(void)
{
	char *directory = strdup(argument);

	check(mkfifo(argument, 0600), "mkfifo");
	*strrchr(directory, '/') = '\0';
	fds[0] = open(directory, O_RDONLY | O_DIRECTORY);
	target_start("waiter", open_at);
}

/* Two descriptors in one call */

static void splice_it(void)
{
	target_arrived();
	splice(fds[0], NULL, fds[1], NULL, 4096, 0);
	target_die("splice");
}

/* From an empty pipe to a file. */
static void splice_empty(void)
{
	make_pipe();
	fds[1] = open(argument, O_WRONLY | O_CREAT, 0600);
	target_start("waiter", splice_it);
}

/* From a file to a full pipe. */
static void splice_full(void)
{
	int pipes[2];

	check(pipe(pipes), "pipe");
	fill(pipes[1]);
	fds[0] = open("/proc/self/exe", O_RDONLY);
	fds[1] = pipes[1];
	target_start("waiter", splice_it);
}

static void tee_it(void)
{
	target_arrived();
	tee(fds[0], fds[1], 4096, 0);
	target_die("tee");
}

/* Two pipes: the first is empty, or the second is full. */
static void two_pipes(bool full)
{
	int pipes[2];

	check(pipe(pipes), "pipe");
	fds[1] = pipes[1];
	check(pipe(pipes), "pipe");
	fds[0] = pipes[0];
	if (full)
		fill(fds[1]);
	check(full ? (int)write(pipes[1], "x", 1) : 0, "write");
}

static void tee_empty(void)
{
	two_pipes(false);
	target_start("waiter", tee_it);
}

static void tee_full(void)
{
	two_pipes(true);
	target_start("waiter", tee_it);
}

static void splice_empty_pipe(void)
{
	two_pipes(false);
	target_start("waiter", splice_it);
}

static void splice_full_pipe(void)
{
	two_pipes(true);
	target_start("waiter", splice_it);
}

static void send_it(void)
{
	target_arrived();
	sendfile(fds[1], fds[0], NULL, 4096);
	target_die("sendfile");
}

/* From a file to a socket that is full. */
static void sendfile_full(void)
{
	int ends[2];

	check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	fill(ends[1]);
	fds[0] = open("/proc/self/exe", O_RDONLY);
	fds[1] = ends[1];
	target_start("waiter", send_it);
}

/* A child that has to open a fifo before it executes its program. */
static void spawn_it(void)
{
	static char *const argv[] = {(char *)"true", NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, argument, O_RDONLY, 0);
	target_arrived();
	posix_spawn(&pid, "/bin/true", &actions, NULL, argv, NULL);
	target_block();
}

static void spawn(void)
{
	check(mkfifo(argument, 0600), "mkfifo");
	target_start("waiter", spawn_it);
}

/* `waiter` has a table of its own: what `other` waits for has the same number there as something else. */
enum { POLLED = 200 };
static struct pollfd many_polled[POLLED];
static int instead[2];

static void have_own_table(void)
{
	if (unshare(CLONE_FILES) < 0)
		target_die("unshare");
}

/* The process has none of it any more when the thread begins to wait. */
static void hand_over(void)
{
	have_own_table();
	check(dup2(instead[0], fds[0]), "dup2");
	atomic_store(&apart, 1);
	while (atomic_load(&apart) == 1)
		usleep(1000);
	close(instead[0]);
	close(instead[1]);
}

static void wait_until_handed_over(void)
{
	while (!atomic_load(&apart))
		usleep(1000);
	close(instead[0]);
	close(instead[1]);
	atomic_store(&apart, 2);
}

static void read_own(void)
{
	hand_over();
	read_it();
}

static void own_read(void)
{
	make_pipe();
	check(pipe(instead), "pipe");
	start_partner(instead[0]);
	target_start("other", read_it);
	target_start("waiter", read_own);
	wait_until_handed_over();
}

static void events_own(void)
{
	hand_over();
	wait_for_events();
}

static void own_epoll(void)
{
	fds[0] = epoll_create1(0);
	watch(fds[0], eventfd(0, 0));
	instead[0] = epoll_create1(0);
	instead[1] = -1;
	watch(instead[0], timerfd_create(CLOCK_MONOTONIC, 0));
	target_start("other", wait_for_events);
	target_start("waiter", events_own);
	wait_until_handed_over();
}

static void poll_many(void)
{
	target_arrived();
	for (;;)
		poll(many_polled, POLLED, -1);
}

static void poll_own(void)
{
	have_own_table();
	for (int i = 0; i < POLLED; i++) {
		int fd = eventfd(0, 0);

		check(dup2(fd, many_polled[i].fd), "dup2");
		close(fd);
	}
	poll_many();
}

static void own_poll(void)
{
	make_pipe();
	for (int i = 0; i < POLLED; i++)
		many_polled[i] = (struct pollfd){.fd = dup(fds[0]), .events = POLLIN};
	target_start("other", poll_many);
	target_start("waiter", poll_own);
}

static void lock_own(void)
{
	hand_over();
	target_arrived();
	flock(fds[0], LOCK_EX);
	target_die("flock");
}

/* A file that the process has locked by another open file. */
static void own_lock(void)
{
	static int holder;

	fds[0] = open("/dev/null", O_RDWR);
	instead[0] = open(argument, O_RDWR | O_CREAT, 0600);
	instead[1] = -1;
	holder = open(argument, O_RDWR);
	check(flock(holder, LOCK_EX), "flock");
	target_start("waiter", lock_own);
	wait_until_handed_over();
}

static const struct {
	const char *name;
	void (*begin)(void);
} cases[] = {
	{"pipe-read", pipe_read},	{"pipe-write", pipe_write},   {"pipe-own", pipe_own},
	{"pipe-headless", pipe_headless}, {"pipe-apart", pipe_apart},
	{"fifo", fifo},			{"file-later", file_later},   {"tcp-read", tcp_read},
	{"tcp4to6-read", tcp4to6_read}, {"tcp6to4-read", tcp6to4_read},
	{"tcp6-read", tcp6_read},	{"tcp-write", tcp_write},     {"udp-read", udp_read},
	{"unix-read", unix_read},	{"pair-read", pair_read},     {"pair-write", pair_write},
	{"netlink-read", netlink_read}, {"accept-tcp", accept_tcp},   {"accept-unix", accept_unix},
	{"connect-tcp", connect_tcp},	{"connect-unix", connect_unix}, {"eventfd", read_eventfd},
	{"timerfd", read_timer},	{"timerfd-unset", read_unset_timer}, {"signalfd", read_signals},
	{"inotify", read_inotify},	{"terminal", read_terminal},  {"poll-tcp", poll_tcp},
	{"poll-pidfd", poll_pidfd},	{"poll-two", poll_two},	      {"select-two", select_two},
	{"epoll", epoll},		{"epoll-many", epoll_many},   {"servers", servers},
	{"serve-few", serve_few},     {"serve-many", serve_many}, {"serve-elsewhere", serve_elsewhere},
	{"crowd", crowd},
	{"file-pread-later", file_pread_later}, {"file-preadv2-later", file_preadv2_later},
	{"own-read", own_read},		{"own-epoll", own_epoll},     {"own-poll", own_poll},
	{"own-lock", own_lock},
	{"chain", chain},		{"ping-pong", ping_pong},     {"open-fifo", open_fifo},
	{"open-fifo-at", open_fifo_at}, {"splice-empty", splice_empty}, {"splice-full", splice_full},
	{"io_uring", ring},		{"changing", changing},     {"epoll-stuck", epoll_stuck},
	{"udp-several", udp_several},	{"terminal-master", read_master}, {"device", device},
	{"tee-empty", tee_empty},	{"tee-full", tee_full},	      {"splice-pipes-empty", splice_empty_pipe},
	{"splice-pipes-full", splice_full_pipe}, {"sendfile-full", sendfile_full}, {"spawn", spawn},
	{"mapped-later", mapped_later},	{"sync-later", sync_later},   {"control-later", control_later},
	{"directories-later", directories_later},
};

int main(int argc, char **argv)
{
	target_init();
	argument = argc > 2 ? argv[2] : "";
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {
			cases[i].begin();
			target_ready();
			target_serve(answer_go);
		}
	return 2;
}
