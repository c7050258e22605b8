/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_DEMANGLE_H
#define STAKEOUT_SYMBOL_DEMANGLE_H

/*
 * The source form of a C++, Rust or D name, for free(). NULL when the name is none of them, as all C names are; when
 * it is damaged; and when its source form would be absurdly long, as a few bytes of repeated references can make it.
 */
char *demangle(const char *name);

#endif
