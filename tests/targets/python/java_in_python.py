# SPDX-License-Identifier: MIT
"""Two runtimes in one stack: Python starts a virtual machine and calls Java, which calls Python back, which waits. JNI is called
through ctypes: java_in_python.py LIBJVM CLASSES"""

import ctypes
import os
import sys

VERSION = 0x00010008
# Where the functions are in the table of JNI.
FIND_CLASS, GET_STATIC_METHOD, CALL_STATIC_VOID_METHOD, REGISTER_NATIVES = 6, 113, 141, 215


class Option(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char_p), ("extra", ctypes.c_void_p)]


class Arguments(ctypes.Structure):
    _fields_ = [("version", ctypes.c_int), ("count", ctypes.c_int), ("options", ctypes.POINTER(Option)), ("ignore", ctypes.c_ubyte)]


class Native(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("signature", ctypes.c_char_p), ("function", ctypes.c_void_p)]


def create(library, classes):
    options = (Option * 1)(Option(f"-Djava.class.path={classes}".encode(), None))
    arguments = Arguments(VERSION, 1, options, 0)
    machine, env = ctypes.c_void_p(), ctypes.c_void_p()
    assert ctypes.CDLL(library).JNI_CreateJavaVM(ctypes.byref(machine), ctypes.byref(env), ctypes.byref(arguments)) == 0
    return env


def jni(env, number, result, *types):
    table = ctypes.cast(env, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p)))[0]
    return ctypes.CFUNCTYPE(result, ctypes.c_void_p, *types)(table[number])


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
def back(env, owner):
    innermost()


def innermost():
    print("ready", flush=True)
    os.read(0, 1)
    os._exit(0)


def outermost(library, classes):
    env = create(library, classes)
    owner = jni(env, FIND_CLASS, ctypes.c_void_p, ctypes.c_char_p)(env, b"JavaInPython")
    natives = Native(b"back", b"()V", ctypes.cast(back, ctypes.c_void_p))
    jni(env, REGISTER_NATIVES, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Native), ctypes.c_int)(env, owner, natives, 1)
    find = jni(env, GET_STATIC_METHOD, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
    method = find(env, owner, b"descend", b"(I)V")
    jni(env, CALL_STATIC_VOID_METHOD, None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)(env, owner, method, 3)


outermost(*sys.argv[1:])
