/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "symbol/debuginfod.h"
#include "target/patience.h"

#define ID       "0123456789abcdef"
#define OTHER_ID "fedcba9876543210"

/* A server on the loopback interface that answers every request in the same way. */
struct server {
	int listener;
	pthread_t thread;
	const char *head; /* NULL: no answer at all */
	const char *body;
	size_t body_len;
	bool stalls; /* keeps the connection open after what it has sent */
	atomic_uint requests;
	int kept[64];
};

static void *serve(void *arg)
{
	struct server *s = arg;
	char request[4096];
	unsigned n = 0;
	int fd;

	while ((fd = accept(s->listener, NULL, NULL)) >= 0) {
		ssize_t got = recv(fd, request, sizeof(request), 0);

		if (got > 0)
			atomic_fetch_add(&s->requests, 1);
		if (got > 0 && s->head) {
			dprintf(fd, "HTTP/1.0 %s\r\n\r\n", s->head);
			for (size_t at = 0; at < s->body_len;) {
				ssize_t sent = send(fd, s->body + at, s->body_len - at, MSG_NOSIGNAL);

				if (sent <= 0)
					break;
				at += (size_t)sent;
			}
		}
		if (s->stalls && n < sizeof(s->kept) / sizeof(s->kept[0]))
			s->kept[n++] = fd;
		else
			close(fd);
	}
	while (n)
		close(s->kept[--n]);
	return NULL;
}

struct fixture {
	struct scratch scratch;
	struct server server;
	struct debuginfod *debuginfod;
	bool interrupt; /* press Ctrl-C at the first progress */
	bool cancel;    /* by patience_interrupt() then */
	unsigned shown; /* calls of progress with the label */
	unsigned ended;
	uint64_t most; /* bytes */
};

static void on_progress(void *arg, const char *label, uint64_t bytes, uint64_t total)
{
	struct fixture *f = arg;

	if (!label) {
		f->ended++;
		return;
	}
	assert_string_equal(label, "prog");
	f->shown++;
	if (bytes > f->most)
		f->most = bytes;
	if (f->interrupt)
		raise(SIGINT);
	f->interrupt = false;
	if (f->cancel)
		patience_interrupt();
}

static void needs_library(void)
{
	void *handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_NODELETE);

	if (!handle) {
		print_message("skipped: libdebuginfod is not installed\n");
		skip();
	}
}

static void start_with(struct fixture *f, struct server how, struct debuginfod_options options)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	char url[64];

	needs_library();
	*f = (struct fixture){.server = how};
	scratch_init(&f->scratch);
	setenv("DEBUGINFOD_CACHE_PATH", f->scratch.dir, 1);
	f->server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->server.listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(f->server.listener, 16), 0);
	assert_int_equal(getsockname(f->server.listener, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(pthread_create(&f->server.thread, NULL, serve, &f->server), 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", ntohs(address.sin_port));
	options.urls = url;
	options.progress = on_progress;
	options.arg = f;
	assert_int_equal(debuginfod_create(&options, NULL, &f->debuginfod), 0);
}

static void start(struct fixture *f, struct server how, int timeout)
{
	start_with(f, how, (struct debuginfod_options){.timeout = timeout});
}

static void stop_server(struct fixture *f)
{
	if (f->server.listener < 0)
		return;
	shutdown(f->server.listener, SHUT_RDWR);
	pthread_join(f->server.thread, NULL);
	close(f->server.listener);
	f->server.listener = -1;
}

static void stop(struct fixture *f)
{
	debuginfod_destroy(f->debuginfod);
	stop_server(f);
	scratch_deinit(&f->scratch);
}

/* An ELF file with the build-id ID. */
static char *make_elf(size_t *len)
{
	struct scratch s;
	char *data;

	scratch_init(&s);
	scratch_text(&s, "x.c", "int x(void) { return 1; }\n");
	scratch_run(&s, "cc -shared -nostdlib -Wl,--build-id=0x" ID " -o x.so x.c");
	data = scratch_read(&s, "x.so", len);
	scratch_deinit(&s);
	return data;
}

static void expect_error(struct fixture *f, const char *id, int code, const char *words)
{
	struct err err = {0};

	assert_int_equal(debuginfod_find(f->debuginfod, DEBUGINFOD_DEBUGINFO, id, "prog", &err), -code);
	assert_int_equal(err.code, code);
	assert_non_null(strstr(err.msg, words));
}

/* What a later run would take for the servers' word that they do not have the file. */
static void expect_no_miss(struct fixture *f, const char *id)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s/debuginfo", f->scratch.dir, id);
	assert_int_not_equal(access(path, F_OK), 0);
}

static void test_no_server_known(void **state)
{
	const struct debuginfod_options options = {.urls = ""};
	struct debuginfod *debuginfod = NULL;
	struct err err = {0};

	unsetenv("DEBUGINFOD_URLS");
	assert_false(debuginfod_is_wanted());
	assert_int_equal(debuginfod_create(&options, &err, &debuginfod), -ENOENT);
	assert_non_null(strstr(err.msg, "https://debuginfod.elfutils.org/"));
	setenv("DEBUGINFOD_URLS", " ", 1);
	assert_false(debuginfod_is_wanted());
	assert_int_equal(debuginfod_create(&options, &err, &debuginfod), -ENOENT);
	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1", 1);
	assert_true(debuginfod_is_wanted());
	assert_int_equal(debuginfod_create(&options, &err, &debuginfod), 0);
	debuginfod_destroy(debuginfod);
}

static void test_found_then_cached(void **state)
{
	struct server how = {.head = "200 OK"};
	char *body = make_elf(&how.body_len);
	struct fixture f;
	int fd;

	how.body = body;
	start(&f, how, 0);
	fd = debuginfod_find(f.debuginfod, DEBUGINFOD_DEBUGINFO, ID, "prog", NULL);
	assert_true(fd >= 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), how.body_len);
	close(fd);
	assert_int_equal(f.ended, 1);
	stop_server(&f);
	fd = debuginfod_find(f.debuginfod, DEBUGINFOD_DEBUGINFO, ID, "prog", NULL);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(f.server.requests, 1);
	stop(&f);
	free(body);
}

static void test_not_there(void **state)
{
	struct fixture f;

	start(&f, (struct server){.head = "404 Not Found"}, 0);
	expect_error(&f, ID, ENOENT, "does not have it");
	expect_error(&f, OTHER_ID, ENOENT, "does not have it");
	assert_int_equal(f.server.requests, 2);
	stop(&f);
}

static void test_garbage(void **state)
{
	static const char page[] = "<html>Please log in</html>";
	struct fixture f;

	start(&f, (struct server){.head = "200 OK", .body = page, .body_len = strlen(page)}, 0);
	expect_error(&f, ID, ENOEXEC, "cannot be used");
	stop(&f);
}

static void test_another_file(void **state)
{
	struct server how = {.head = "200 OK"};
	char *body = make_elf(&how.body_len);
	struct fixture f;

	how.body = body;
	start(&f, how, 0);
	expect_error(&f, OTHER_ID, EBADMSG, ID);
	stop(&f);
	free(body);
}

/* The first file costs the time, the others nothing: they are not even asked for. */
static void check_stall(struct server how)
{
	struct fixture f;

	start(&f, how, 1);
	expect_error(&f, ID, ETIMEDOUT, "for 1 s");
	expect_no_miss(&f, ID);
	assert_true(f.shown > 0 && f.ended == 1);
	expect_error(&f, OTHER_ID, ETIMEDOUT, "for 1 s");
	assert_int_equal(f.server.requests, 1);
	stop(&f);
}

static void test_no_answer(void **state)
{
	check_stall((struct server){.stalls = true});
}

static void test_stops_half_way(void **state)
{
	static char half[100000] = "\177ELF";

	check_stall((struct server){
		.head = "200 OK\r\nContent-Length: 200000", .body = half, .body_len = sizeof(half), .stalls = true});
	check_stall((struct server){.head = "200 OK", .body = half, .body_len = sizeof(half), .stalls = true});
}

static void on_sigint(int sig)
{
}

static void test_interrupted(void **state)
{
	const struct sigaction mine = {.sa_handler = on_sigint};
	struct sigaction before, after;
	struct fixture f;
	unsigned shown;

	start(&f, (struct server){.stalls = true}, 0);
	f.interrupt = true;
	sigaction(SIGINT, &mine, &before);
	expect_error(&f, ID, ECANCELED, "cancelled");
	expect_no_miss(&f, ID);
	shown = f.shown;
	expect_error(&f, OTHER_ID, ECANCELED, "cancelled");
	assert_int_equal(f.shown, shown);
	sigaction(SIGINT, &before, &after);
	assert_ptr_equal(after.sa_handler, on_sigint);
	stop(&f);
}

static volatile sig_atomic_t sigints;

static void count_sigint(int sig)
{
	sigints++;
}

/* In a library: Ctrl-C is the program's own business. */
static void test_cancelled_without_signals(void **state)
{
	const struct sigaction mine = {.sa_handler = count_sigint};
	struct sigaction before;
	struct fixture f;

	start_with(&f, (struct server){.stalls = true}, (struct debuginfod_options){.keep_signals = true});
	f.interrupt = f.cancel = true;
	sigints = 0;
	sigaction(SIGINT, &mine, &before);
	expect_error(&f, ID, ECANCELED, "cancelled");
	sigaction(SIGINT, &before, NULL);
	assert_int_equal(sigints, 1);
	expect_no_miss(&f, ID);
	patience_resume();
	stop(&f);
}

static void test_refused(void **state)
{
	struct fixture f;

	start(&f, (struct server){.head = "404 Not Found"}, 0);
	stop_server(&f);
	expect_error(&f, ID, ECONNREFUSED, "cannot be asked");
	expect_no_miss(&f, ID);
	expect_error(&f, OTHER_ID, ECONNREFUSED, "cannot be asked");
	stop(&f);
}

static void test_what_is_no_build_id(void **state)
{
	static const char *const ids[] = {"", "abc", "../../../etc/passwd", "0123456789ABCDEF", "ab/d", "ab\n\n"};
	struct fixture f;

	start(&f, (struct server){.head = "404 Not Found"}, 0);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		expect_error(&f, ids[i], EINVAL, "not a build-id");
	assert_int_equal(f.server.requests, 0);
	stop(&f);
}

static void *find_one(void *arg)
{
	struct fixture *f = arg;
	int fd = debuginfod_find(f->debuginfod, DEBUGINFOD_EXECUTABLE, ID, "prog", NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0 ? arg : NULL;
}

static void test_threads(void **state)
{
	struct server how = {.head = "200 OK"};
	char *body = make_elf(&how.body_len);
	pthread_t threads[8];
	struct fixture f;

	how.body = body;
	start(&f, how, 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, find_one, &f), 0);
	for (int i = 0; i < 8; i++) {
		void *result = NULL;

		pthread_join(threads[i], &result);
		assert_ptr_equal(result, &f);
	}
	assert_int_equal(f.server.requests, 1);
	stop(&f);
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_server_known), cmocka_unit_test(test_found_then_cached),
		cmocka_unit_test(test_not_there),       cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_another_file),    cmocka_unit_test(test_no_answer),
		cmocka_unit_test(test_stops_half_way),  cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_cancelled_without_signals),
		cmocka_unit_test(test_refused),         cmocka_unit_test(test_what_is_no_build_id),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
