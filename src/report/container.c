/* SPDX-License-Identifier: MIT */
#include "report/container.h"

#include <string.h>

enum { ID_LEN = 64, SHORT_ID_LEN = 12 }; /* as engines show ids */

static void put_id(const struct text *t, const char *id)
{
	char cut[SHORT_ID_LEN + 1];

	snprintf(cut, sizeof(cut), "%s", id);
	text_untrusted(t, strlen(id) == ID_LEN ? cut : id);
}

void container_text(const struct text *t, pid_t inner_pid, const struct container *container)
{
	if (inner_pid)
		fprintf(t->out, ", %d in its namespace", (int)inner_pid);
	if (container->id) {
		fputs(", container ", t->out);
		put_id(t, container->id);
		if (container->engine) {
			fputs(" (", t->out);
			text_untrusted(t, container->engine);
			fputc(')', t->out);
		}
	}
	if (container->pod) {
		fputs(", pod ", t->out);
		text_untrusted(t, container->pod);
	}
	if (container->cgroup && !container->id && !container->pod) {
		fputs(", cgroup ", t->out);
		text_untrusted(t, path_tail(container->cgroup, 1));
	}
}

void container_json(struct json *j, pid_t inner_pid, const struct container *container)
{
	if (inner_pid)
		json_int(j, "inner_pid", inner_pid);
	else
		json_null(j, "inner_pid");
	json_string(j, "cgroup", container->cgroup);
	if (!container->id && !container->pod) {
		json_null(j, "container");
		return;
	}
	json_object(j, "container");
	json_string(j, "engine", container->engine);
	json_string(j, "id", container->id);
	json_string(j, "pod", container->pod);
	json_object_end(j);
}
