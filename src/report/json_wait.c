/* SPDX-License-Identifier: MIT */
#include "report/json_wait.h"

void json_wait(struct json *j, const struct wait *w)
{
	if (w->kind == WAIT_NOTHING) {
		json_null(j, "waits_for");
		return;
	}
	json_object(j, "waits_for");
	json_string(j, "kind", wait_kind_name(w->kind));
	json_hex(j, "address", w->address ? w->address : w->word);
	json_string(j, "module", w->path);
	if (w->path)
		json_hex(j, "module_offset", w->offset);
	else
		json_null(j, "module_offset");
	json_string(j, "variable", w->variable);
	if (w->variable)
		json_hex(j, "variable_offset", w->variable_offset);
	else
		json_null(j, "variable_offset");
	json_string(j, "holder", wait_holder_name(w->holder));
	if (w->owner)
		json_int(j, "owner_tid", w->owner);
	else
		json_null(j, "owner_tid");
	if (w->owner_pid)
		json_int(j, "owner_pid", w->owner_pid);
	else
		json_null(j, "owner_pid");
	json_bool(j, "shared", w->shared);
	json_bool(j, "timed", w->timed);
	json_bool(j, "certain", w->certain);
	json_object_end(j);
}
