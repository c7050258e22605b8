# SPDX-License-Identifier: MIT
"""Runs inside gdb (gdb -batch -p PID -x gdb_stacks.py): every thread's stack as one line of JSON."""

import json
import re

import gdb

KINDS = {gdb.NORMAL_FRAME: "native", gdb.INLINE_FRAME: "inlined", gdb.SIGTRAMP_FRAME: "signal"}


def function_start(frame, looked_up):
    """Where the frame's function begins: by DWARF, else by the symbol table; None when gdb knows neither."""
    function = frame.function()
    if function is not None and frame.type() != gdb.INLINE_FRAME:
        return int(function.value().address)
    place = re.search(r" \+ (\d+) in section ", gdb.execute(f"info symbol {looked_up:#x}", to_string=True))
    return looked_up - int(place.group(1)) if place else None


def frames():
    frame = gdb.newest_frame()
    exact = True  # the pc is an instruction's address, not a return address
    while frame is not None and frame.is_valid():
        sal = frame.find_sal()
        yield {
            "pc": frame.pc(),
            "name": frame.name(),
            "kind": KINDS.get(frame.type(), "other"),
            "start": function_start(frame, frame.pc() - (not exact)),
            "file": sal.symtab.filename if sal.symtab else None,
            "line": sal.line if sal.symtab else None,
        }
        exact = frame.type() == gdb.SIGTRAMP_FRAME or (exact and frame.type() == gdb.INLINE_FRAME)
        reason = frame.unwind_stop_reason()
        try:
            frame = frame.older()
        except gdb.error as e:
            yield {"stopped": str(e)}
            return
        if frame is None and reason not in (gdb.FRAME_UNWIND_NO_REASON, gdb.FRAME_UNWIND_OUTERMOST):
            yield {"stopped": gdb.frame_stop_reason_string(reason)}


stacks = {}
for thread in gdb.selected_inferior().threads():
    thread.switch()
    stacks[thread.ptid[1]] = list(frames())
print("STACKS " + json.dumps(stacks))
