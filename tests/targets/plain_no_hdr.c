/* SPDX-License-Identifier: MIT */
/* .eh_frame without the search table of .eh_frame_hdr. */
/* build: -Wl,--no-eh-frame-hdr */
#include "plain.c"
