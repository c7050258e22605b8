/* SPDX-License-Identifier: MIT */
#include "model/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* Takes the text over. */
static void add(struct notes *notes, char *text)
{
	for (size_t i = 0; text && i < notes->len; i++)
		if (strcmp(notes->data[i], text) == 0) {
			free(text);
			return;
		}
	if (text && !vec_push(notes, text))
		free(text);
}

void notes_add(struct notes *notes, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	add(notes, text);
}

void notes_add_all(struct notes *notes, const struct notes *more)
{
	for (size_t i = 0; i < more->len; i++)
		add(notes, strdup(more->data[i]));
}

void notes_deinit(struct notes *notes)
{
	for (size_t i = 0; i < notes->len; i++)
		free(notes->data[i]);
	vec_deinit(notes);
}
