// SPDX-License-Identifier: MIT

// Creates threads all the time, which the runtime does by C code, on the stack that it has for itself. The C code takes its
// time, and uses the register in which Go has its goroutine.
// Not built by make: tests/e2e/test_go.py does, where Go is installed.
package main

// #cgo LDFLAGS: -ldl
// #define _GNU_SOURCE
// #include <dlfcn.h>
// #include <pthread.h>
// #include <time.h>
// int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
// {
// 	int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
// 	const struct timespec some = {.tv_nsec = 2000000};
//
// #if defined(__x86_64__)
// 	__asm__ volatile("xorl %%r14d, %%r14d" ::: "r14");
// #else
// 	__asm__ volatile("mov x28, xzr" ::: "x28");
// #endif
// 	nanosleep(&some, 0);
// 	return next(t, attr, start, arg);
// }
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

func main() {
	runtime.GOMAXPROCS(4)
	fmt.Println("ready", os.Getpid())
	for {
		go runtime.LockOSThread() // the thread ends with the goroutine
		time.Sleep(time.Millisecond)
	}
}
