# SPDX-License-Identifier: MIT
"""Threads that wait, each with another kind of call in its stack. What Python itself knows of them it says: see truth.py."""

import asyncio
import ctypes
import functools
import sys
import threading
import time

import truth

gate = threading.Lock()
gate.acquire()
waiting = threading.Semaphore(0)


def block():
    waiting.release()
    gate.acquire()


class Handler:
    def get(self, depth):
        if depth:
            return self.get(depth - 1)
        return self.answer()

    def answer(self):
        def inner():
            block()

        return inner()

    @staticmethod
    def still():
        block()

    @property
    def value(self):
        block()

    def __getattr__(self, name):
        block()

    def __lt__(self, other):
        block()
        return True

    def __enter__(self):
        block()

    def __exit__(self, *why):
        pass


def methods():
    Handler().get(4)


def c_callbacks():
    return list(map(lambda item: sorted([item, 2], key=lambda key: functools.reduce(lambda a, b: block(), [key, 1])), [1]))


def numbers():
    yield 1
    yield from more_numbers()


def more_numbers():
    yield 2
    block()
    yield 3


def generators():
    for number in (n * 2 for n in numbers()):
        pass


async def leaf():
    await asyncio.sleep(0)
    block()


async def branch(depth):
    if depth:
        await branch(depth - 1)
    else:
        await asyncio.gather(leaf())


def coroutines():
    asyncio.run(branch(5))


def comprehensions():
    return [x for x in [y for y in (block() for _ in range(1))]]


def slots():
    with Handler():
        pass


def attributes():
    return Handler().missing


def comparisons():
    return sorted([Handler(), Handler()])


def properties():
    return Handler().value


CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def from_c():
    """qsort() calls back: C frames that are not the interpreter's."""

    def compare(a, b):
        block()
        return 0

    array = (ctypes.c_int * 2)(2, 1)
    ctypes.CDLL(None).qsort(array, 2, 4, CALLBACK(compare))


def übergrößenträger():
    block()


def 数():
    block()


def deep(n=400):
    return deep(n - 1) if n else block()


def abyss():
    deep(3000)


def made():
    exec(compile("def made_here():\n\n\n    block()\nmade_here()", "<made>", "exec"), {"block": block})


def long_lines():
    (block if True else
     print)(
        *[]
    )


def raising():
    try:
        raise ValueError
    except ValueError:
        try:
            raise KeyError
        finally:
            block()


class Meta(type):
    def __call__(cls):
        block()


class Made(metaclass=Meta):
    pass


def many_names():
    a = b = c = d = e = f = g = h = i = j = k = l = m = n = o = p = 1
    return [Made(), a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]


KINDS = [methods, Handler.still, c_callbacks, generators, coroutines, comprehensions, slots, attributes, comparisons, properties, from_c,
         übergrößenträger, 数, deep, made, long_lines, raising, many_names]


def main_waits():
    """The main thread is where it will be, too: it stays at one instruction although the lock is free."""
    main, last = threading.main_thread().ident, None
    while True:
        frame = sys._current_frames()[main]
        here = (frame.f_code.co_name, frame.f_lasti)
        if here == last and "join" in truth.describe(frame)[1][0] + here[0]:
            return
        last = here
        time.sleep(0.01)


def speak():
    main_waits()
    print("ready", flush=True)
    truth.answer()


def main():
    sys.setrecursionlimit(10000)
    threading.stack_size(16 << 20)
    only = sys.argv[1:]
    kinds = [kind for kind in [*KINDS, abyss] if kind.__name__ in only or (not only and kind in KINDS)]
    for number, kind in enumerate(kinds):
        threading.Thread(target=kind, name=f"{kind.__name__} #{number}", daemon=number % 2 == 0).start()
    for _ in kinds:
        waiting.acquire()
    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    speaker.join()


main()
