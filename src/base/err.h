/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_BASE_ERR_H
#define STAKEOUT_BASE_ERR_H

/*
 * Errors carry a code for the program and a sentence for the person. A function that can fail returns 0 or a negative
 * errno and, when the caller passed a struct err, leaves the sentence there. The caller owns the struct; NULL means
 * that the caller does not want the sentence.
 */
struct err {
	int code; /* positive errno, 0 when unset */
	char msg[400];
};

/* Sets the message and returns -code, so that `return err_set(err, ENOENT, "...")` reads well. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the message that is already there; returns -err->code, or -EIO when err is NULL. */
int err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
