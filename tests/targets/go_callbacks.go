// SPDX-License-Identifier: MIT

// A goroutine that waits in C, one that waits in Go that C has called, one in Go that C has called from such Go, and a thread
// of C's own that waits in Go. Answers each
// line with all goroutines' stacks as Go's own runtime tells them.
// Not built by make: tests/e2e/test_go.py does, where Go is installed.
package main

// #include <pthread.h>
// #include <unistd.h>
// extern void waitInGo(void);
// extern void callAgain(void);
// static int calls; // what is done after a call keeps the caller's frame
// static void wait_in_c(void) { for (;;) pause(); }
// static __attribute__((noinline)) void call_go(void) { waitInGo(); calls++; }
// static __attribute__((noinline)) void call_twice(void) { callAgain(); calls++; }
// static void *call_from_thread(void *arg) { waitInGo(); return arg; }
// static int start_thread(void) { pthread_t t; return pthread_create(&t, 0, call_from_thread, 0); }
import "C"

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
)

var pipe [2]int

//export waitInGo
func waitInGo() {
	syscall.Read(pipe[0], make([]byte, 1))
}

//export callAgain
func callAgain() {
	C.call_go()
}

//go:noinline
func deeper(depth int, f func()) {
	if depth > 0 {
		deeper(depth-1, f)
		return
	}
	f()
}

func main() {
	if syscall.Pipe(pipe[:]) != nil || C.start_thread() != 0 {
		os.Exit(1)
	}
	go func() { deeper(30, func() { C.wait_in_c() }) }()
	go func() { deeper(3, func() { C.call_go() }) }()
	go func() { deeper(5, func() { C.call_twice() }) }()
	fmt.Println("ready", os.Getpid())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		text := make([]byte, 1<<20)
		text = text[:runtime.Stack(text, true)]
		fmt.Println(strings.ReplaceAll(string(text), "\n", "|"))
	}
}
