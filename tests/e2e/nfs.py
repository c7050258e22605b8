# SPDX-License-Identifier: MIT
"""
An NFS server that can stop answering, and its mount. It is just enough of version 3 (RFC 1813) for the kernel to mount it and to use one file:
over TCP, on a port of its own on the loopback, without portmapper, locks or rights.
"""

import ctypes
import os
import shutil
import socket
import struct
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import TIMEOUT

NFS, MOUNT = 100003, 100005
DIRECTORY, FILE = 2, 1  # what they are, and their numbers
SIZE = 1 << 20
EXPORT = "127.0.0.1:/export"
MNT_DETACH = 2
OK, NOENT, NOTSUPP = 0, 2, 10004
PROG_UNAVAIL = 1


def words(*numbers):
    return struct.pack(f">{len(numbers)}I", *numbers)


def opaque(data):
    return words(len(data)) + data + bytes(-len(data) % 4)


def handle(number):
    return opaque(b"stakeout" + bytes([number]) * 8)


def attributes(number):
    mode, links = (0o755, 2) if number == DIRECTORY else (0o644, 1)
    return words(number, mode, links, 0, 0) + struct.pack(">QQ", SIZE, SIZE) + words(0, 0) + struct.pack(">QQ", 1, number) + words(*[1, 0] * 3)


def known(number):
    """Attributes that need not be told, and are."""
    return words(1) + attributes(number)


def changed(number):
    """The same for what changes them: those of before are not told."""
    return words(0) + known(number)


class Arguments:
    def __init__(self, data):
        self.data = data

    def number(self):
        (value,), self.data = struct.unpack(">I", self.data[:4]), self.data[4:]
        return value

    def long(self):
        return self.number() << 32 | self.number()

    def bytes(self):
        size = self.number()
        value, self.data = self.data[:size], self.data[size + -size % 4 :]
        return value

    def handle(self):
        return self.bytes()[-1]


def look_up(args):
    directory, name = args.handle(), args.bytes()
    return words(OK) + handle(FILE) + known(FILE) + known(directory) if name == b"file" else words(NOENT) + known(directory)


def access(args):
    number = args.handle()
    return words(OK) + known(number) + words(args.number())


def read(args):
    number, offset, count = args.handle(), args.long(), args.number()
    data = b"x" * max(0, min(count, SIZE - offset))
    return words(OK) + known(number) + words(len(data), offset + len(data) >= SIZE) + opaque(data)


def write(args):
    number, _, count = args.handle(), args.long(), args.number()
    return words(OK) + changed(number) + words(count, 2) + bytes(8)


def file_system(args):
    most = 1 << 16
    return words(OK) + known(args.handle()) + words(most, most, 1, most, most, 1, most) + struct.pack(">Q", 1 << 40) + words(0, 1, 0x1B)


ANSWERS = {
    (MOUNT, 1): lambda args: words(OK) + handle(DIRECTORY) + words(1, 1),  # MNT: the root, for who says who he is (AUTH_SYS)
    (NFS, 1): lambda args: words(OK) + attributes(args.handle()),  # GETATTR
    (NFS, 2): lambda args: words(OK) + changed(args.handle()),  # SETATTR
    (NFS, 3): look_up,
    (NFS, 4): access,
    (NFS, 6): read,
    (NFS, 7): write,
    (NFS, 18): lambda args: words(OK) + known(args.handle()) + bytes(6 * 8 + 4),  # FSSTAT
    (NFS, 19): file_system,
    (NFS, 20): lambda args: words(OK) + known(args.handle()) + words(1, 255, 1, 1, 0, 1),  # PATHCONF
    (NFS, 21): lambda args: words(OK) + changed(args.handle()) + bytes(8),  # COMMIT
}


def reply(call):
    """To a message; both without what says how long they are."""
    args = Arguments(call)
    xid, _, _, program, _, procedure = (args.number() for _ in range(6))
    for _ in range(2):  # who asks, and the proof of it
        args.number()
        args.bytes()
    if program not in (NFS, MOUNT):
        return words(xid, 1, 0, 0, 0, PROG_UNAVAIL)
    if procedure == 0:
        return words(xid, 1, 0, 0, 0, 0)
    return words(xid, 1, 0, 0, 0, 0) + ANSWERS.get((program, procedure), lambda args: words(NOTSUPP))(args)


class Server:
    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._stopped, self._kept = False, []  # connections, and what came by them
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rb") as stream:
            while True:
                message, last = b"", False
                while not last:
                    head = stream.read(4)
                    if len(head) < 4:
                        return
                    (size,) = struct.unpack(">I", head)
                    last = size >> 31
                    message += stream.read(size & 0x7FFFFFFF)
                self._take(connection, message)

    def _take(self, connection, message):
        with self._lock:
            if self._stopped:
                self._kept.append((connection, message))
            else:
                self._answer(connection, message)

    def _answer(self, connection, message):
        answer = reply(message)
        try:
            connection.sendall(words(1 << 31 | len(answer)) + answer)
        except OSError:
            pass  # who asked has gone

    def waiting(self):
        """How many requests wait for an answer."""
        with self._lock:
            return len(self._kept)

    def stop(self):
        with self._lock:
            self._stopped = True

    def go(self):
        with self._lock:
            self._stopped = False
            for kept in self._kept:
                self._answer(*kept)
            self._kept = []

    def end(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


libc = ctypes.CDLL(None, use_errno=True)


def need_filesystem(name):
    """Skips the test where the kernel has none of that kind, or we must not mount it."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if shutil.which("modprobe"):
        subprocess.run(["modprobe", "-q", name], capture_output=True, timeout=TIMEOUT)
    if f"\t{name}\n" not in Path("/proc/filesystems").read_text():
        pytest.skip(f"the kernel has no {name}")


@contextmanager
def mounted(place):
    """A server of which "file" is at that place; skips the test where there can be none."""
    need_filesystem("nfs")
    server = Server()
    # What it has been told it believes for an hour, so that it asks only for what is new.
    options = f"vers=3,proto=tcp,port={server.port},mountvers=3,mountproto=tcp,mountport={server.port},addr=127.0.0.1"
    options += ",mountaddr=127.0.0.1,nolock,noacl,noresvport,nosharecache,hard,actimeo=3600"
    try:
        if libc.mount(EXPORT.encode(), os.fsencode(place), b"nfs", 0, options.encode()):
            pytest.skip(f"no NFS can be mounted here: {os.strerror(ctypes.get_errno())}")
        try:
            yield server
        finally:
            server.go()
            libc.umount2(os.fsencode(place), MNT_DETACH)
    finally:
        server.end()
