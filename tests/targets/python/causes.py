# SPDX-License-Identifier: MIT
"""Threads that wait for ever, each in a function that is named after what it waits for; several that want the interpreter."""

import queue
import threading
from concurrent.futures import ThreadPoolExecutor

lock, recursive = threading.Lock(), threading.RLock()
lock.acquire()
recursive.acquire()
condition = threading.Condition()
done = threading.Event()
begun = threading.Semaphore(0)


def for_turn():
    begun.release()
    with lock:
        pass


def for_another_turn():
    begun.release()
    recursive.acquire()


def for_condition():
    with condition:
        begun.release()
        condition.wait()


def for_event():
    begun.release()
    done.wait()


def for_queue():
    begun.release()
    queue.Queue().get()


def for_simple_queue():
    begun.release()
    queue.SimpleQueue().get()


def for_thread():
    begun.release()
    threads[0].join()


def for_interpreter():
    begun.release()
    while True:
        pass


functions = [for_turn, for_another_turn, for_condition, for_event, for_queue, for_simple_queue, for_thread]
threads = [threading.Thread(target=function, name=function.__name__, daemon=True) for function in functions]
threads += [threading.Thread(target=for_interpreter, daemon=True) for _ in range(4)]
for thread in threads:
    thread.start()
pool = ThreadPoolExecutor(2)
for _ in range(2):
    pool.submit(begun.release)
for _ in range(len(threads) + 2):
    begun.acquire()
print("ready", flush=True)
lock.acquire()
