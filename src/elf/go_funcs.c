/* SPDX-License-Identifier: MIT */
#include "elf/go_funcs.h"

/* The address at an index of the sorted table; the last one is the end of the last function. */
static uint64_t functab_pc(const struct go_tables *t, uint64_t index)
{
	struct cursor c = go_tables_at(t, t->funcs, 2 * index * go_tables_functab_field(t));

	return t->text + cursor_uint(&c, go_tables_functab_field(t));
}

bool go_func_nth(const struct go_tables *t, uint64_t index, uint64_t *budget, struct go_func *f)
{
	struct cursor c = go_tables_at(t, t->funcs, (2 * index + 1) * go_tables_functab_field(t));
	uint64_t record = cursor_uint(&c, go_tables_functab_field(t));

	*f = (struct go_func){.end = functab_pc(t, index + 1), .budget = budget};
	c = go_tables_at(t, t->version == GO_1_2 ? t->whole : t->funcs, record);
	f->start = t->text + cursor_uint(&c, go_tables_functab_field(t));
	f->name = cursor_u32(&c);
	cursor_skip(&c, 8); /* size of the arguments, deferreturn */
	f->pcsp = cursor_u32(&c);
	f->pcfile = cursor_u32(&c);
	f->pcln = cursor_u32(&c);
	f->npcdata = cursor_u32(&c);
	f->cu = t->version >= GO_1_16 ? cursor_u32(&c) : 0;
	if (t->version >= GO_1_20)
		cursor_skip(&c, 4); /* line of the function's start */
	f->pcdata = c;
	/* The second byte; up to 1.11 that of a number that is small, and little-endian where it matters. */
	cursor_skip(&c, 1);
	f->flags = cursor_u8(&c);
	/* A hole between functions has no record: what lies there belongs to another one. */
	return !f->pcdata.bad && f->start == functab_pc(t, index) && f->end > f->start;
}

bool go_func_find(const struct go_tables *t, uint64_t vaddr, uint64_t *budget, struct go_func *f)
{
	uint64_t low = 0, high = t->nfunc;

	if (vaddr < functab_pc(t, 0) || vaddr >= functab_pc(t, t->nfunc))
		return false;
	while (high - low > 1) {
		uint64_t mid = low + (high - low) / 2;

		if (functab_pc(t, mid) <= vaddr)
			low = mid;
		else
			high = mid;
	}
	return go_func_nth(t, low, budget, f) && vaddr >= f->start && vaddr < f->end;
}

const char *go_string_at(const struct go_tables *t, struct span span, uint32_t offset)
{
	struct cursor c = go_tables_at(t, span, offset);
	const char *text;

	if (cursor_left(&c) > GO_NAME_MAX)
		c.end = c.p + GO_NAME_MAX;
	text = cursor_cstr(&c);
	return text && text[0] ? text : NULL;
}

const char *go_name_at(const struct go_tables *t, uint32_t offset)
{
	return go_string_at(t, t->names, offset);
}

struct go_values go_values(const struct go_tables *t, const struct go_func *f, uint32_t offset)
{
	struct go_values v = {
		.c = go_tables_at(t, t->pcs, offset ? offset : UINT64_MAX),
		.budget = f->budget,
		.start = f->start,
		.end = f->start,
		.value = -1,
	};

	if (cursor_left(&v.c) > *f->budget)
		v.c.end = v.c.p + *f->budget;
	return v;
}

bool go_values_next(const struct go_tables *t, struct go_values *v)
{
	size_t before = cursor_left(&v->c);
	uint32_t zigzag = (uint32_t)cursor_uleb(&v->c);
	uint64_t step = (uint32_t)cursor_uleb(&v->c) * (uint64_t)t->quantum;

	*v->budget -= before - cursor_left(&v->c);
	if (zigzag == 0 && v->started)
		return false;
	v->started = true;
	v->value = (int32_t)((uint32_t)v->value + (-(zigzag & 1) ^ (zigzag >> 1)));
	v->start = v->end;
	v->end += step;
	return !v->c.bad && step > 0;
}

int32_t go_value_at(const struct go_tables *t, const struct go_func *f, uint32_t offset, uint64_t vaddr)
{
	struct go_values v = go_values(t, f, offset);

	while (go_values_next(t, &v))
		if (vaddr < v.end)
			return v.value;
	return -1;
}
