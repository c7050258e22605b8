/* SPDX-License-Identifier: MIT */
#include "runtime/replace.h"

struct stack_merge stack_merge_begin(struct stack *stack, bool keep)
{
	return (struct stack_merge){.stack = stack, .keep = keep, .ok = true};
}

/* Frames come in the order of raw ones. */
static bool is_before(const struct stack_merge *m, uint32_t raw)
{
	return m->at < m->stack->len && m->stack->data[m->at].raw < raw;
}

static bool is_upto(const struct stack_merge *m, uint32_t raw)
{
	return m->at < m->stack->len && m->stack->data[m->at].raw <= raw;
}

static void copy_one(struct stack_merge *m)
{
	m->ok = m->ok && vec_push(&m->out, m->stack->data[m->at]);
	m->at++;
}

void stack_merge_replace(struct stack_merge *m, uint32_t first, uint32_t last, const struct frame *frames, size_t n)
{
	size_t own, replaced = 0;

	if (!n)
		return;
	while (is_before(m, first))
		copy_one(m);
	own = m->out.len;
	for (size_t i = 0; m->ok && i < n; i++) {
		m->ok = vec_push(&m->out, frames[i]);
		if (m->ok) {
			m->out.data[own + i].raw = first;
			m->out.data[own + i].replaces = 0;
		}
	}
	for (; is_upto(m, last); replaced++) {
		if (m->keep)
			copy_one(m);
		else
			m->at++;
	}
	if (m->ok)
		m->out.data[own].replaces = (uint32_t)replaced;
}

bool stack_merge_end(struct stack_merge *m)
{
	while (m->ok && m->at < m->stack->len)
		copy_one(m);
	if (m->ok) {
		struct stack old = *m->stack;

		*m->stack = m->out;
		m->out = old;
	}
	vec_deinit(&m->out);
	return m->ok;
}
