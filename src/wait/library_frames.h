/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_LIBRARY_FRAMES_H
#define STAKEOUT_WAIT_LIBRARY_FRAMES_H

#include "model/stack.h"
#include "model/wait.h"

/* What a thread waits for by the functions of a language's library that it is in. WAIT_NOTHING: they do not tell. */

/* Python's modules threading, queue and concurrent.futures, whose objects are made of locks. */
enum wait_kind library_wait_python(const struct stack *stack);

/* Java: the innermost method alone, where nothing is known of the object. */
enum wait_kind library_wait_java(const struct stack *stack);

/* Whether that is the one by which all of java.util.concurrent waits; and whether it was called by Thread.join(). */
bool library_is_parked(const struct stack *stack);
bool library_is_join(const struct stack *stack);

#endif
