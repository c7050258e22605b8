# SPDX-License-Identifier: MIT
"""Tasks of asyncio that wait, in many ways and in several loops. Asked for `truth`, it says what Python itself knows of them: a
line of JSON, {name: {"stack": [[function, file, line], …], "awaits": [type, task], "state": state, "tid": tid}}, the innermost
first. `tasks.py COUNT` has so many of those that do the same, `tasks.py none` does not even load asyncio."""

import collections.abc
import gc
import json
import sys
import threading
import types

if sys.argv[1:] == ["none"]:
    print("ready", flush=True)
    sys.stdin.read()
    sys.exit()

import asyncio  # noqa: E402
import asyncio.tasks  # noqa: E402

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 60
FOREVER = 1000000
DEEP = 80

gate = threading.Lock()
gate.acquire()
loops = []  # (thread, loop)
tasks = []  # all that are to be told, which keeps them
ended = []  # such as are not


def spawn(coroutine, name=None):
    task = asyncio.get_running_loop().create_task(coroutine)
    if name:
        task.set_name(name)
    tasks.append(task)
    return task


async def sleeper():
    await asyncio.sleep(FOREVER)


async def consumer(queue, depth):
    if depth:
        return await consumer(queue, depth - 1)
    return await queue.get()


async def locker(lock):
    async with lock:
        await asyncio.sleep(FOREVER)


async def nested(depth):
    try:
        if depth:
            for _ in [1, 2]:
                await nested(depth - 1)
        else:
            await asyncio.Event().wait()
    finally:
        pass


async def numbers(future):
    yield 1
    await inside(future)
    yield 2


async def inside(future):
    await future


async def counting(future):
    async for number in numbers(future):
        assert number


async def comprehending(future):
    return [number async for number in numbers(future)]


async def sending(future):
    generator = numbers(future)
    await generator.__anext__()
    await generator.asend(None)


async def guarded(future):
    try:
        yield 1
    finally:
        await inside(future)


async def closing(future):
    generator = guarded(future)
    await generator.__anext__()
    await generator.aclose()


async def throwing(future):
    generator = guarded(future)
    await generator.__anext__()
    await generator.athrow(ValueError)


async def defaulting(future):
    generator = numbers(future)
    await generator.__anext__()
    await anext(generator, None)  # noqa: F821: since 3.10


async def gathering():
    await asyncio.gather(*(spawn(sleeper(), f"gathered {i}") for i in range(3)))


async def timing():
    inner = asyncio.get_running_loop().create_future()
    await asyncio.wait_for(inner, FOREVER)


async def shielding():
    await asyncio.shield(spawn(sleeper(), "shielded"))


async def waiting_for_some():
    await asyncio.wait([spawn(sleeper(), "one of some")], timeout=FOREVER)


async def conditional():
    condition = asyncio.Condition()
    async with condition:
        await condition.wait_for(lambda: False)


async def semaphored():
    await asyncio.Semaphore(0).acquire()


async def awaiting(other):
    return await other


class Awaitable:
    """Awaited through a generator."""

    def __init__(self, future):
        self.future = future

    def __await__(self):
        result = yield from self.future
        return result


class Wrapped:
    """Awaited through the helper that a coroutine's own __await__() returns."""

    def __init__(self, coroutine):
        self.coroutine = coroutine

    def __await__(self):
        return self.coroutine.__await__()


class Stepper:
    """Awaited through an iterator that is no generator."""

    def __init__(self, future):
        self.steps = future.__await__()

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.steps)


class Foreign(collections.abc.Coroutine):
    """Acts like a coroutine, and is none, as those of compiled modules."""

    def __init__(self, coroutine):
        self.coroutine = coroutine

    def __await__(self):
        return self.coroutine.__await__()

    def send(self, value):
        return self.coroutine.send(value)

    def throw(self, *why):
        return self.coroutine.throw(*why)


async def awaiting_object(thing):
    await thing


@types.coroutine
def old_style(future):
    yield from future


@types.coroutine
def by_hand(future):
    """As a future's own iterator does it: it yields the future, and awaits nothing."""
    future._asyncio_future_blocking = True
    yield future


async def awaiting_old_style(future):
    await old_style(
        future
    )


async def awaiting_by_hand(future):
    values = [1, 2, await by_hand(future)]
    return values


class Worker(asyncio.Task):
    """A task with more than others have."""

    def __init__(self, *args, **kwargs):
        self.first = self.second = object()
        super().__init__(*args, **kwargs)


async def grouping():
    async with asyncio.TaskGroup() as group:
        for number in range(4):
            tasks.append(group.create_task(sleeper(), name=f"grouped {number}"))


async def limited():
    async with asyncio.timeout(FOREVER):
        await asyncio.sleep(FOREVER)


async def nothing():
    return 1


async def blocking():
    """This one runs: its frames are in the stack of the thread."""
    tasks.append(asyncio.current_task())
    ready.release()
    gate.acquire()


def spawn_all():
    loop = asyncio.get_running_loop()
    future, queue, lock = loop.create_future(), asyncio.Queue(), asyncio.Lock()

    for number in range(COUNT):
        spawn(sleeper(), f"sleeper {number}")
        spawn(consumer(queue, number % 3), f"consumer {number}")
        spawn(locker(lock), f"locker {number}")
    for number in range(7):
        spawn(nested(number))  # named by their numbers
    spawn(nested(DEEP), "deep")
    for make in (counting, comprehending, sending, closing, throwing, inside, awaiting_old_style, awaiting_by_hand):
        spawn(make(future if make is not awaiting_by_hand else loop.create_future()), make.__name__)
    for make in (gathering, timing, shielding, waiting_for_some, conditional, semaphored):
        spawn(make(), make.__name__)
    spawn(awaiting(spawn(awaiting(spawn(sleeper(), "awaited")), "awaits a task")), "awaits a task that awaits a task")
    spawn(awaiting_object(Awaitable(future)), "through a generator")
    spawn(awaiting_object(Wrapped(inside(future))), "through a helper")
    spawn(awaiting_object(Stepper(future)), "through an iterator")
    spawn(Foreign(inside(future)), "of another kind")
    spawn(sleeper(), "übergrößenträger 数")
    tasks.append(Worker(sleeper(), loop=loop, name="of a subclass"))
    tasks.append(asyncio.tasks._PyTask(Foreign(inside(future)), loop=loop, name="of another kind in Python"))
    in_python = asyncio.tasks._PyTask(counting(future), loop=loop, name="in Python")
    tasks.extend([in_python, asyncio.tasks._PyTask(awaiting(in_python), loop=loop, name="awaits one in Python")])
    if sys.version_info >= (3, 10):
        spawn(defaulting(future), "defaulting")
    if sys.version_info >= (3, 11):
        spawn(grouping(), "grouping")
        spawn(limited(), "limited")
    if sys.version_info >= (3, 12):
        tasks.append(asyncio.Task(sleeper(), loop=loop, name="eager", eager_start=True))
    ended.extend(loop.create_task(nothing()) for _ in range(COUNT))


async def start():
    spawn_all()
    for _ in range(DEEP + 20):  # all of them come to where they stay
        await asyncio.sleep(0)
    loops.append((threading.current_thread().native_id, asyncio.get_running_loop()))
    ready.release()
    await asyncio.get_running_loop().create_future()


def run(what):
    loop = asyncio.new_event_loop()
    task = loop.create_task(what())
    if what is start:
        task.set_name(f"start {threading.current_thread().name}")
        tasks.append(task)
    loop.run_until_complete(task)


COROUTINES = (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType)


def step(thing):
    """Its frame, and what it awaits."""
    for prefix, awaits in (("cr", "await"), ("gi", "yieldfrom"), ("ag", "await")):
        if hasattr(thing, f"{prefix}_frame"):
            return getattr(thing, f"{prefix}_frame"), getattr(thing, f"{prefix}_{awaits}"), getattr(thing, f"{prefix}_running")
    return None


def follow(thing):
    """The coroutine that is awaited, also through helpers of the interpreter."""
    if thing is None or isinstance(thing, COROUTINES):
        return thing
    if type(thing).__module__ != "builtins":
        return None
    return next(filter(None, (follow(referent) for referent in gc.get_referents(thing))), None)


def describe(task):
    stack, coroutine, state = [], task.get_coro(), None
    if isinstance(coroutine, Foreign):
        coroutine, state = None, "suspended"
    while coroutine is not None:
        frame, awaited, running = step(coroutine)
        code = frame.f_code
        stack.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        if state is None:
            state = "running" if running else "created" if not awaited and frame.f_lasti in (-1, created_at) else "suspended"
        coroutine = follow(awaited)
    waiter = task._fut_waiter
    awaits = waiter and [type(waiter).__name__, waiter.get_name() if hasattr(waiter, "get_name") else None]
    tid = next((tid for tid, loop in loops if loop is task.get_loop()), None)
    return {"stack": stack[::-1], "awaits": awaits, "state": state, "tid": tid}


def find_created_at():
    """The instruction at which a coroutine is that has not begun."""
    coroutine = nothing()
    lasti = coroutine.cr_frame.f_lasti
    coroutine.close()
    return lasti


ready = threading.Semaphore(0)
created_at = find_created_at()


def main():
    for number in range(2):
        threading.Thread(target=run, args=(start,), name=f"loop {number}", daemon=True).start()
    for _ in range(2):
        ready.acquire()
    threading.Thread(target=run, args=(blocking,), name="blocks", daemon=True).start()
    ready.acquire()
    loops.append((next(thread.native_id for thread in threading.enumerate() if thread.name == "blocks"), tasks[-1].get_loop()))
    tasks[-1].set_name("blocks")
    idle = asyncio.new_event_loop()  # nobody runs it
    for number in range(3):
        tasks.append(idle.create_task(nested(number)))
        tasks[-1].set_name(f"never started {number}")
    for task in tasks:
        if task.get_name() in NAMES:
            task.set_name(f"{task.get_name()} again")
        NAMES.add(task.get_name())
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "truth":
            print(json.dumps({task.get_name(): describe(task) for task in tasks}), flush=True)


NAMES = set()
main()
