/* SPDX-License-Identifier: MIT */
#include "proc/lsm.h"

#include <stdio.h>
#include <string.h>

#include "proc/process.h"

/* user:role:type:level; these types are not held back. */
static void parse_selinux(const char *role, struct lsm_label *out)
{
	static const char *const free_types[] = {"unconfined_t", "unconfined_service_t", "spc_t", "kernel_t", "init_t"};
	const char *type = strchr(role, ':');

	if (!type)
		return;
	type++;
	out->module = "SELinux";
	snprintf(out->name, sizeof(out->name), "%.*s", (int)strcspn(type, ":\n"), type);
	for (size_t i = 0; i < sizeof(free_types) / sizeof(free_types[0]); i++)
		if (strcmp(out->name, free_types[i]) == 0)
			out->module = NULL;
}

void lsm_parse(const char *text, struct lsm_label *out)
{
	const char *mode = strstr(text, " (enforce)"), *colon = strchr(text, ':');

	*out = (struct lsm_label){0};
	if (mode) {
		out->module = "AppArmor";
		snprintf(out->name, sizeof(out->name), "%.*s", (int)(mode - text), text);
	} else if (colon) {
		parse_selinux(colon + 1, out);
	}
}

void lsm_read(int dir_fd, struct lsm_label *out)
{
	static const char *const files[] = {"attr/apparmor/current", "attr/current"};
	char text[512];

	*out = (struct lsm_label){0};
	for (size_t i = 0; !out->module && i < sizeof(files) / sizeof(files[0]); i++)
		if (process_read_file(dir_fd, files[i], text, sizeof(text)) > 0)
			lsm_parse(text, out);
}
