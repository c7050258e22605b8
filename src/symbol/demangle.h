/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_SYMBOL_DEMANGLE_H
#define STAKEOUT_SYMBOL_DEMANGLE_H

/*
 * The source form of a C++, Rust or D name, for free(). NULL when the name is none of them, as all C names are; when
 * it is damaged; and when its source form would be absurdly long, as a few bytes of repeated references can make it.
 */
char *demangle(const char *name);

/*
 * The same as addr2line and llvm-symbolizer write it: with the return type of a C++ template function, which its name
 * has, unlike those of other functions. Debuggers leave it out, as the above does.
 */
char *demangle_with_return_type(const char *name);

#endif
