/* SPDX-License-Identifier: MIT */
#ifndef STAKEOUT_OFFCPU_COMMAND_H
#define STAKEOUT_OFFCPU_COMMAND_H

/*
 * Maps the code that a command will have, as execvp() finds it: its file, or that of the interpreter that a script names,
 * the dynamic loader, and the libraries that they need and that are where the loader is. A child that is to execute the
 * command has it then as well, and when it is read into the tables those of the command are there before it starts.
 * What cannot be mapped is left out. It stays mapped; nothing of it is executed.
 */
void command_map_code(const char *name);

#endif
