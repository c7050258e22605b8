/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_COMMAND_H
#define STAKEOUT_OFFCPU_COMMAND_H

/*
 * Maps the code that a command will have, as execvp() finds it: its file, or that of the interpreter that a script
 * names, the dynamic loader, and the libraries that they need and that are where the loader is. A child inherits these
 * mappings, so reading the child into the tables makes the command's tables ready before it starts. Files that cannot
 * be mapped are left out. The mappings stay; none of the code is executed.
 */
void command_map_code(const char *name);

#endif
