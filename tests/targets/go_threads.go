// SPDX-License-Identifier: MIT

// Does not get beyond the first thread that the runtime creates, by C code and on the stack that it has for itself. The C code
// sleeps again and again, and uses the register in which Go has its goroutine.
// Not built by make: tests/e2e/test_go.py does, where Go is installed.
package main

// #include <pthread.h>
// #include <stdio.h>
// #include <time.h>
// #include <unistd.h>
// int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
// {
// 	const struct timespec some = {.tv_nsec = 2000000};
//
// 	printf("ready %d\n", getpid());
// 	fflush(stdout);
// 	for (;;) {
// #if defined(__x86_64__)
// 		__asm__ volatile("xorl %%r14d, %%r14d" ::: "r14");
// #else
// 		__asm__ volatile("mov x28, xzr" ::: "x28");
// #endif
// 		nanosleep(&some, 0);
// 	}
// }
import "C"

func main() {}
