/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_TESTS_CMOCKA_ALL_H
#define STAKEOUT_TESTS_CMOCKA_ALL_H

/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
