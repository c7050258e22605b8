/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_WAIT_RUST_NAMES_H
#define STAKEOUT_WAIT_RUST_NAMES_H

#include "model/stack.h"
#include "model/wait.h"

/* What a thread waits for in functions of Rust's standard library, which record no owner of anything. WAIT_NOTHING: it is in none. */
enum wait_kind rust_wait(const struct stack *user);

#endif
