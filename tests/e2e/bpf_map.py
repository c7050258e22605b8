# SPDX-License-Identifier: MIT
"""The BPF maps of a process and the memory that they take."""

import ctypes
import os
import platform
import re
import struct
from pathlib import Path


class BpfMap:
    """A BPF map of the kernel, by its number."""

    _SYSCALL = {"x86_64": 321, "aarch64": 280}[platform.machine()]
    _LOOKUP, _NEXT_KEY, _FD_BY_ID, _INFO = 1, 4, 14, 15
    _ARRAY_OF_MAPS = 12

    def __init__(self, number):
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self._call(self._FD_BY_ID, struct.pack("III", number, 0, 0))
        info = ctypes.create_string_buffer(80)
        self._call(self._INFO, struct.pack("IIQ", self.fd, len(info), ctypes.addressof(info)))
        self.type, self.number, self._key_bytes, self._value_bytes, self.max_entries, _, name = struct.unpack_from("6I16s", info)
        self.name = name.rstrip(b"\0").decode()

    def _call(self, command, attributes):
        attr = ctypes.create_string_buffer(attributes, 128)
        rc = self._libc.syscall(self._SYSCALL, command, attr, len(attr))
        if rc < 0:
            raise OSError(ctypes.get_errno(), "bpf()")
        return rc

    def lookup(self, key):
        """The value of a number; None when there is none."""
        key, value = ctypes.c_uint32(key), ctypes.create_string_buffer(self._value_bytes)
        try:
            where = struct.pack("IxxxxQQQ", self.fd, ctypes.addressof(key), ctypes.addressof(value), 0)
            self._call(self._LOOKUP, where)
        except FileNotFoundError:
            return None
        return value.raw

    def count(self):
        """How many keys there are."""
        key, following = (ctypes.create_string_buffer(self._key_bytes) for _ in range(2))
        n = 0
        while True:
            try:
                self._call(self._NEXT_KEY, struct.pack("IxxxxQQ", self.fd, ctypes.addressof(key) if n else 0, ctypes.addressof(following)))
            except FileNotFoundError:
                return n
            n += 1
            key.raw = following.raw

    def inner(self):
        """The maps in a map of maps."""
        for i in range(self.max_entries if self.type == self._ARRAY_OF_MAPS else 0):
            value = self.lookup(i)
            if value:
                with BpfMap(*struct.unpack("I", value)) as found:
                    yield found

    def memory(self):
        return int(fields(f"/proc/self/fdinfo/{self.fd}")["memlock"]) + sum(m.memory() for m in self.inner())

    def __enter__(self):
        return self

    def __exit__(self, *what):
        os.close(self.fd)


def fields(path):
    lines = (line.partition(":") for line in Path(path).read_text().splitlines())
    return {name: value.strip() for name, _, value in lines}


def bpf_maps(pid):
    """The BPF maps that a process has, each once; those that are in others not."""
    numbers = set()
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            numbers.add(fields(f"/proc/{pid}/fdinfo/{fd}").get("map_id"))
        except FileNotFoundError:
            pass  # closed meanwhile
    for number in numbers - {None}:
        with BpfMap(int(number)) as found:
            yield found


def resident_maps(pid):
    """How many bytes of a process's resident memory are BPF maps: its part of the ring."""
    areas = re.split(r"\n(?=[0-9a-f]+-)", Path(f"/proc/{pid}/smaps").read_text())
    maps = (area for area in areas if "bpf-map" in area.partition("\n")[0])
    return sum(int(re.search(r"\nRss:\s+(\d+) kB", area)[1]) * 1024 for area in maps)
