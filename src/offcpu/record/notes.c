/* SPDX-License-Identifier: MIT */
#include "offcpu/record/notes.h"

#include <stdio.h>

enum { FEW = 8 };

bool record_notes_init(struct record_notes *notes)
{
	pthread_mutex_init(&notes->lock, NULL);
	notes->arena = arena_create();
	return notes->arena;
}

void record_notes_deinit(struct record_notes *notes)
{
	vec_deinit(&notes->texts);
	arena_destroy(notes->arena);
	pthread_mutex_destroy(&notes->lock);
}

void record_notes_add(struct record_notes *notes, const char *what, const char *why)
{
	const char *text;

	pthread_mutex_lock(&notes->lock);
	text = arena_printf(notes->arena, "%s: %s", what, why);
	if (text)
		vec_push(&notes->texts, text);
	pthread_mutex_unlock(&notes->lock);
}

void record_notes_add_failed_read(struct record_notes *notes, const char *what, const char *why)
{
	record_notes_add(notes, what, why);
	pthread_mutex_lock(&notes->lock);
	notes->reads_failed++;
	pthread_mutex_unlock(&notes->lock);
}

bool record_notes_give(const struct record_notes *notes, struct offcpu_profile *out)
{
	for (size_t i = 0; i < notes->texts.len; i++)
		if (!vec_push(&out->notes, notes->texts.data[i]))
			return false;
	return true;
}

void few_notes_add(void *few_notes, const char *text)
{
	struct few_notes *few = few_notes;
	struct record_notes *notes = few->notes;
	const char *own = arena_intern(notes->arena, text);

	for (size_t i = 0; own && i < notes->texts.len; i++)
		if (notes->texts.data[i] == own)
			return;
	if (own && few->told < FEW && vec_push(&notes->texts, own))
		few->told++;
	else
		few->left_out++;
}

void few_notes_end(const struct few_notes *few, const char *what)
{
	char why[64];

	snprintf(why, sizeof(why), "%zu more %s not shown", few->left_out, few->left_out == 1 ? "note is" : "notes are");
	if (few->left_out)
		record_notes_add(few->notes, what, why);
}
