/* SPDX-License-Identifier: MIT */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proc/cgroup.h"

#define ID    "3f2a9d0c1b7e4f5a6d8c9b0a1e2f3d4c5b6a79880f1e2d3c4b5a69788796a5b4"
#define INNER "0c1d2e3f4a5b6c7d8e9f00112233445566778899aabbccddeeff001122334455"
#define POD   "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
#define SLICE "1b4e28ba_2fa1_11d2_883f_0016d3cca427"
#define HASH  "0123456789abcdef0123456789abcdef"

/* Paths as engines make them, by cgroupfs and by systemd, of both versions. */
static const struct {
	const char *path, *engine, *id, *pod;
} known[] = {
	/* Docker */
	{"/docker/" ID, "docker", ID, NULL},
	{"/system.slice/docker-" ID ".scope", "docker", ID, NULL},
	{"/docker/" ID "/system.slice/nginx.service", "docker", ID, NULL},
	{"/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" ID ".scope", "docker", ID, NULL},
	{"/docker/" ID "/docker/" INNER, "docker", INNER, NULL},
	/* Podman; its monitors are outside */
	{"/machine.slice/libpod-" ID ".scope", "podman", ID, NULL},
	{"/machine.slice/libpod-" ID ".scope/container", "podman", ID, NULL},
	{"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container", "podman", ID, NULL},
	{"/libpod_parent/libpod-" ID, "podman", ID, NULL},
	{"/machine.slice/libpod-conmon-" ID ".scope", NULL, NULL, NULL},
	/* containerd without Kubernetes */
	{"/system.slice/nerdctl-" ID ".scope", "containerd", ID, NULL},
	{"/default/" ID, NULL, ID, NULL},
	/* Kubernetes, by cgroupfs */
	{"/kubepods/besteffort/pod" POD "/" ID, NULL, ID, POD},
	{"/kubepods/burstable/pod" POD "/crio-" ID, "cri-o", ID, POD},
	{"/kubepods/pod" POD "/" ID, NULL, ID, POD},
	{"/kubepods/burstable/pod" HASH "/" ID, NULL, ID, HASH},
	{"/kubepods/burstable/pod" POD, NULL, NULL, POD},
	/* by systemd */
	{"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" SLICE ".slice/docker-" ID ".scope", "docker", ID, POD},
	{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" SLICE ".slice/cri-containerd-" ID ".scope",
	 "containerd", ID, POD},
	{"/kubepods.slice/kubepods-pod" SLICE ".slice/crio-" ID ".scope", "cri-o", ID, POD},
	{"/kubepods.slice/kubepods-pod" SLICE ".slice/crio-" ID ".scope/container", "cri-o", ID, POD},
	{"/kubepods.slice/kubepods-pod" SLICE ".slice/crio-conmon-" ID ".scope", NULL, NULL, POD},
	{"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" HASH ".slice/cri-containerd-" ID ".scope",
	 "containerd", ID, HASH},
	{"/system.slice/containerd.service/kubepods-burstable-pod" SLICE ".slice:cri-containerd:" ID, "containerd", ID, POD},
	{"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" SLICE ".slice/cri-containerd-" ID ".scope", "containerd", ID,
	 POD},
	/* of a cluster whose nodes are containers, and from inside at a neighbour */
	{"/docker/" ID "/kubelet/kubepods/besteffort/pod" POD "/" INNER, NULL, INNER, POD},
	{"/../cri-containerd-" ID ".scope", "containerd", ID, NULL},
	{"/../../pod" POD "/" ID, NULL, ID, POD},
	/* others */
	{"/ecs/" HASH "/" ID, NULL, ID, NULL},
	{"/ecs/" HASH "/" HASH "-1234567890", "ecs", HASH "-1234567890", NULL},
	{"/lxc/web", "lxc", "web", NULL},
	{"/lxc.payload.web-1/system.slice/cron.service", "lxc", "web-1", NULL},
	/* none */
	{"/system.slice/docker.service", NULL, NULL, NULL},
	{"/system.slice/containerd.service", NULL, NULL, NULL},
	{"/user.slice/user-1000.slice/session-3.scope", NULL, NULL, NULL},
	{"/lxc.monitor.web", NULL, NULL, NULL},
	{"/tripod" POD, NULL, NULL, NULL},
	{"/pod" "1b4e28ba-2fa1-11d2-883f-0016d3cca42g", NULL, NULL, NULL},
	{"/backup-" HASH, NULL, NULL, NULL},
	{"/x" ID, NULL, NULL, NULL},
};

static void assert_same(const char *found, const char *expected, const char *path)
{
	if (!found != !expected || (found && strcmp(found, expected) != 0))
		fail_msg("%s: %s instead of %s", path, found ? found : "nothing", expected ? expected : "nothing");
}

static void test_paths(void **state)
{
	static const char *const forms[] = {"0::%s\n", "4:memory:%s\n1:name=systemd:/\n0::/\n", "2:cpu,cpuacct:/\n1:name=systemd:%s"};
	struct arena *arena = arena_create();

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		for (size_t form = 0; form < sizeof(forms) / sizeof(forms[0]); form++) {
			bool is_read = form != 1 || known[i].id || known[i].pod; /* of one controller only if it tells something */
			struct container found;
			char text[1024];

			snprintf(text, sizeof(text), forms[form], known[i].path);
			cgroup_parse(text, arena, &found);
			assert_same(found.cgroup, is_read ? known[i].path : NULL, known[i].path);
			assert_same(found.engine, known[i].engine, known[i].path);
			assert_same(found.id, known[i].id, known[i].path);
			assert_same(found.pod, known[i].pod, known[i].path);
		}
	arena_destroy(arena);
}

/* What is not as the kernel writes it tells nothing, and breaks nothing. */
static void test_odd_text(void **state)
{
	static const char *const texts[] = {"", "\n", "0", "0:", "0::", "0::/", ":::", "0:\n:/docker/" ID "\n", "0::/\n1:x"};
	struct arena *arena = arena_create();
	struct container found;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		cgroup_parse(texts[i], arena, &found);
		assert_same(found.cgroup, NULL, texts[i]);
		assert_same(found.id, NULL, texts[i]);
	}
	arena_destroy(arena);
}

static void test_own(void **state)
{
	struct arena *arena = arena_create();
	struct container found = {.pod = "x"};
	struct process process;

	assert_int_equal(process_open(getpid(), NULL, &process), 0);
	cgroup_read(&process, arena, &found);
	assert_ptr_not_equal(found.pod, "x");
	process_close(&process);
	arena_destroy(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_odd_text),
		cmocka_unit_test(test_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
