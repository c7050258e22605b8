/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_MODEL_CONTAINER_H
#define STAKEOUT_MODEL_CONTAINER_H

/* Where a process runs, as its control group tells; NULL: what that does not tell. */
struct container {
	const char *cgroup; /* the path, as our own cgroup namespace shows it; NULL: the root of all */
	const char *engine; /* "docker", "containerd", "cri-o", "podman"… */
	const char *id;
	const char *pod; /* its uid in Kubernetes */
};

#endif
