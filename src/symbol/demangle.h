/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_DEMANGLE_H
#define STAKEOUT_SYMBOL_DEMANGLE_H

/*
 * The source form of a C++, Rust or D name, for free(). NULL when it is not one of these, like all C names; when it is
 * damaged; and when its source form would be absurdly long, as a few bytes of repeated references can make it.
 */
char *demangle(const char *name);

/*
 * The same as addr2line and llvm-symbolizer write it: with the return type of C++ template functions, which, unlike
 * others, have it in their names. Debuggers leave it out, as demangle() does.
 */
char *demangle_with_return_type(const char *name);

#endif
