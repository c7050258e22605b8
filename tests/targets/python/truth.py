# SPDX-License-Identifier: MIT
"""What Python itself knows of the threads of a target, for whoever asks on its standard input; an answer is a line of JSON:

    truth           {"frames": {tid: [[function, file, line], …]}, "names": {tid: [name, daemon]}}, innermost first
    faulthandler    {"dump": what faulthandler writes of all threads, "tids": {number of a thread in it: tid}}

The thread that answers is not in the former, and the current one in the latter. A thread that just begins is in neither."""

import faulthandler
import json
import sys
import tempfile
import threading


def describe(frame):
    said = []
    while frame:
        code = frame.f_code
        said.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return said


def threads():
    return [thread for thread in threading.enumerate() if thread.native_id]


def tell_frames():
    known = threads()
    tids = {thread.ident: thread.native_id for thread in known if thread is not threading.current_thread()}
    frames = {tids[ident]: describe(frame) for ident, frame in sys._current_frames().items() if ident in tids}
    return {"frames": frames, "names": {thread.native_id: [thread.name, thread.daemon] for thread in known}}


def dump():
    with tempfile.TemporaryFile() as file:
        tids = {thread.ident: thread.native_id for thread in threads()}
        faulthandler.dump_traceback(file)
        file.seek(0)
        return {"dump": file.read().decode(), "tids": tids}


def answer(**more):
    """To the end of the input. `more` are other questions: functions that return what is to be said."""
    questions = {"truth": tell_frames, "faulthandler": dump, **more}
    for line in sys.stdin:
        print(json.dumps(questions[line.strip()]()), flush=True)
