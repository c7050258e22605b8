# SPDX-License-Identifier: MIT
"""Threads that wait for Python's locks, and for what its library makes of these, each for ever; threads that wait for each other; and
"healthy", which takes many locks in order for ever, and "healthy-joins", where threads wait for the ends of those that others have created.
The threads have their names; "ready" comes when all are about to wait."""

import concurrent.futures
import contextlib
import ctypes
import multiprocessing
import queue
import signal
import sys
import threading
import time

what = sys.argv[1]
held = threading.Event()
keeps_gil = ctypes.PyDLL(None)
lets_go = ctypes.CDLL(None)
leave = keeps_gil.pthread_mutex_unlock  # whoever speaks of unlocking is not taken for one who has what is in its with block
mutex = ctypes.create_string_buffer(64)  # all zero is an unlocked one
processes = multiprocessing.get_context("fork")  # of others another process has to know, which may not be able to start


def start(name, function, *args):
    thread = threading.Thread(target=function, args=args, name=name, daemon=True)
    thread.start()
    return thread


def keep():
    held.set()
    while True:
        time.sleep(1000)


def pair(take, times=1, **how):
    """Owned by "holder", wanted by "waiter"."""

    def hold():
        for _ in range(times):
            take()
        keep()

    start("holder", hold)
    held.wait()
    start("waiter", lambda: take(**how))


def fill(q):
    while True:
        q.put(1)


def unfinished(q):
    q.put(1)
    q.join()


def never():
    time.sleep(1000)


def result():
    pool = concurrent.futures.ThreadPoolExecutor(1)
    pool.submit(never).result()


def idle_worker():
    pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="waiter")
    pool.submit(int).result()
    threading.main_thread().pool = pool  # it ends when nobody has it


def wait_for_condition():
    condition = threading.Condition()
    with condition:
        condition.wait()


def wait_for_condition_that():
    condition = threading.Condition()
    with condition:
        condition.wait_for(lambda: False)


def wait_between_processes():
    condition = processes.Condition()
    with condition:
        condition.wait()


def in_block(lock):
    with lock:
        keep()


def in_blocks(lock):
    """Among others, in a loop, while an exception is handled."""
    for _ in range(2):
        try:
            with contextlib.suppress(ValueError), open(sys.executable, "rb"), lock, memoryview(b""):
                try:
                    raise KeyError
                except KeyError:
                    keep()
        finally:
            print("this takes for ever")


def after_block(lock):
    """What the block had on the frame's stack may still be there."""
    with lock:
        pass
    take_and_keep(lock)


def take_and_keep(lock):
    start("other", lambda: (lock.acquire(), keep()))
    time.sleep(1000)


def let_go_in_block(lock):
    with lock:
        lock.release()
        take_and_keep(lock)


def let_go_in_condition(lock):
    condition = threading.Condition(lock)
    start("other", lambda: (gate.wait(), lock.acquire(), keep()))
    with lock:
        gate.wait()
        condition.wait()


def let_go_by_another(lock):
    """Two are in a block of it, of whom one has it."""
    with lock:
        give_up(lock)
        start("other", in_block, lock)
        time.sleep(1000)


def give_up(lock):
    lock.release()


def wait_in_block(lock, wait):
    with lock:
        held.set()
        wait()


def let_go_by_argument(lock, release):
    with lock:
        release()
        take_and_keep(lock)


class Unlocked:
    """A block in which the lock is somebody else's."""

    def __init__(self, lock):
        self.lock = lock

    def __enter__(self):
        self.lock.release()

    def __exit__(self, *_):
        self.lock.acquire()


def let_go_in_inner_block(lock):
    with lock:
        with Unlocked(lock):
            take_and_keep(lock)


@contextlib.contextmanager
def without(lock):
    give_up(lock)
    yield
    lock.acquire()


def compute_in_block(lock):
    with lock:
        held.set()
        while True:
            pass


def let_go_to_one_that_runs(lock):
    """Nothing on its frames tells that it has let go of it."""
    with lock:
        with without(lock):
            start("other", compute_in_block, lock)
            time.sleep(1000)


def let_go_in_wait_for(lock):
    condition = threading.Condition(lock)
    start("other", lambda: (gate.wait(), lock.acquire(), keep()))
    with lock:
        gate.wait()
        condition.wait_for(lambda: False)


BLOCKS = {
    "block": in_block,
    "blocks": in_blocks,
    "block-event": lambda lock: wait_in_block(lock, threading.Event().wait),
    "block-item": lambda lock: wait_in_block(lock, queue.Queue().get),
    "block-future": lambda lock: wait_in_block(lock, result),
    "block-barrier": lambda lock: wait_in_block(lock, threading.Barrier(2).wait),
    "after-block": after_block,
    "block-let-go": let_go_in_block,
    "block-condition": let_go_in_condition,
    "block-wait-for": let_go_in_wait_for,
    "block-argument": lambda lock: let_go_by_argument(lock, lock.release),
    "block-contested": let_go_by_another,
    "block-inner": let_go_in_inner_block,
    "block-running": let_go_to_one_that_runs,
}


def lock_twice(lock):
    with lock:
        with lock:
            raise AssertionError("this takes for ever")


OWNERLESS = {
    "condition": wait_for_condition,
    "wait-for": wait_for_condition_that,
    "event": lambda: threading.Event().wait(),
    "event-timed": lambda: threading.Event().wait(100000),
    "semaphore": lambda: threading.Semaphore(0).acquire(),
    "barrier": lambda: threading.Barrier(2).wait(),
    "item": lambda: queue.Queue().get(),
    "room": lambda: fill(queue.Queue(1)),
    "done": lambda: unfinished(queue.Queue()),
    "future": result,
    "simple-item": lambda: queue.SimpleQueue().get(),
    "futures": lambda: concurrent.futures.wait([concurrent.futures.Future()]),
    "processes-event": lambda: processes.Event().wait(),
    "processes-condition": wait_between_processes,
    "processes-room": lambda: fill(processes.Queue(1)),
    "processes-lock": lambda: lock_twice(processes.Lock()),
}


def abba(locks, own):
    with locks[own]:
        gate.wait()
        with locks[1 - own]:
            raise AssertionError("this is a deadlock")


def have_and_join(lock):
    """Waits for the end of a thread that wants what it has."""
    with lock:
        start("ring-1", lock.acquire).join()


def spin_with_mutex():
    """Has the mutex, and wants the GIL again and again."""
    lets_go.pthread_mutex_lock(mutex)
    held.set()
    while True:
        pass


def want_mutex():
    """Keeps the GIL while it waits for the mutex."""
    keeps_gil.pthread_mutex_lock(mutex)


def hold_gil():
    keeps_gil.sleep(100000)


rounds = 0


def in_order(locks, first, depth):
    global rounds
    if not depth or first >= len(locks):
        rounds += 1
        if rounds % 3 == 0:
            time.sleep(0.0005 * (rounds % 11))
        return
    if first % 3 == 2:  # the mutexes of the C library: the GIL is let go while one is waited for
        lets_go.pthread_mutex_lock(mutexes[first])
        in_order(locks, first + 1 + depth % 3, depth - 1)
        leave(mutexes[first])
    else:
        with locks[first]:
            in_order(locks, first + 1 + depth % 3, depth - 1)


def work(seed, locks):
    while True:
        seed += 1
        in_order(locks, seed % 5, 1 + seed % 4)


def join_in_order(locks):
    """Waits for the end of one thread after the other; what it has itself comes before all that they take."""
    while True:
        with locks[0]:
            start("joined", in_order, locks, 1, 3).join()


def create_for_others(lock, created, taken):
    """Wants what another one has that waits for the end of a thread which this one has created."""
    while True:
        thread = start("joined", time.sleep, 0.02)
        created.put(thread)
        taken.get()
        with lock:
            pass


def join_for_others(lock, created, taken):
    while True:
        thread = created.get()
        with lock:
            taken.put(lock)
            thread.join()


if what == "gil":
    start("waiter", lambda: [None for _ in iter(int, 1)])
    start("holder", lambda: (held.wait(), print("ready", flush=True), hold_gil()))
    held.set()
    threading.Event().wait()
elif what == "lock":
    pair(threading.Lock().acquire)
elif what in BLOCKS:
    gate = threading.Barrier(2)
    lock = threading.Lock()
    start("holder", BLOCKS[what], lock)
    held.wait()
    start("waiter", in_block, lock)
elif what == "block-twice":
    start("ring-0", lock_twice, threading.Lock())
elif what == "abba-blocks":
    gate = threading.Barrier(2)
    start("ring-0", abba, locks := [threading.Lock(), threading.Lock()], 0)
    start("ring-1", abba, locks, 1)
elif what == "rlock":
    pair(threading.RLock().acquire, 3)
elif what == "rlock-timed":
    pair(threading.RLock().acquire, timeout=100000)
elif what == "with":
    lock = threading.RLock()
    pair(lock.__enter__)
elif what == "abba":
    gate = threading.Barrier(2)
    rlocks = [threading.RLock(), threading.RLock()]
    start("ring-0", abba, rlocks, 0)
    start("ring-1", abba, rlocks, 1)
elif what in ("abba-main", "abba-handler", "abba-blocks-main", "abba-blocks-handler"):
    if what.endswith("handler"):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("this ends it"))
    gate = threading.Barrier(2)
    rlocks = [threading.Lock() if "blocks" in what else threading.RLock() for _ in range(2)]
    start("ring-0", abba, rlocks, 0)
    print("ready", flush=True)
    abba(rlocks, 1)
elif what == "join":
    start("waiter", start("joined", keep).join)
elif what == "join-ring":
    start("ring-0", have_and_join, threading.RLock())
elif what == "join-block":
    start("ring-0", have_and_join, threading.Lock())
elif what == "shutdown":
    threading.Thread(target=keep, name="joined").start()  # no daemon: Python waits for it before it ends
    print("ready", flush=True)
    sys.exit()
elif what == "gil-mutex":
    start("ring-0", spin_with_mutex)
    held.wait()
    start("ring-1", lambda: (print("ready", flush=True), want_mutex()))
    threading.Event().wait()
elif what == "healthy":
    mutexes = [ctypes.create_string_buffer(64) for _ in range(12)]
    locks = [threading.Lock() if number % 3 == 1 else threading.RLock() for number in range(12)]
    for number in range(16):
        start(f"worker-{number}", work, number, locks)
    start("joiner", join_in_order, locks)
elif what == "healthy-joins":
    for number in range(8):
        between = threading.RLock(), queue.SimpleQueue(), queue.SimpleQueue()
        start(f"creator-{number}", create_for_others, *between)
        start(f"joiner-{number}", join_for_others, *between)
elif what == "buckets":
    for lock in [threading.RLock() for _ in range(6)]:
        start("holder", lambda lock: (lock.acquire(), keep()), lock)
        held.wait()
        held.clear()
        start("waiter", lock.acquire)
        start("waiter", lock.acquire)
elif what == "workers":
    for number in range(5):
        start(f"worker-{number}", queue.Queue().get)
elif what == "worker":
    idle_worker()
else:
    start("waiter", OWNERLESS[what])
print("ready", flush=True)
for line in sys.stdin:
    print(rounds, flush=True)
