/* SPDX-License-Identifier: MIT */
/* undumpable: asks the kernel to keep even its own user out, as programs with secrets do (ssh-agent). */
#include "target.h"

int main(void)
{
	target_init();
	prctl(PR_SET_DUMPABLE, 0);
	target_ready();
	target_serve(NULL);
}
