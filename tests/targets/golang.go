// SPDX-License-Identifier: MIT

// Waits for a line, with inlined calls on its stack, and answers it with that stack as Go's own runtime tells it.
// Not built by make: tests/e2e/test_go.py does, where Go is installed.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
)

type waiter struct{ fd int }

//go:noinline
func (w *waiter) wait() int {
	for first(w.fd) > 0 {
	}
	return 5
}

func first(fd int) int { return second(fd) + 2 }

func second(fd int) int {
	return third(fd) - 2
}

func third(fd int) int { return serve(fd) }

//go:noinline
func serve(fd int) int {
	// One line for both calls, so that the answer has the line of the wait.
	if hear(fd) && tell() {
		return 1
	}
	return 0
}

//go:noinline
func hear(fd int) bool {
	var buf [64]byte
	n, err := syscall.Read(fd, buf[:])
	return err == nil && n > 0
}

//go:noinline
func tell() bool {
	var pcs [64]uintptr
	var all []string
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		all = append(all, fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line))
		if !more {
			break
		}
	}
	fmt.Println(strings.Join(all, "\t"))
	return true
}

//go:noinline
func generic[T any](v T, f func() int) int { return f() + 4 }

func init() { runtime.LockOSThread() }

func main() {
	w := &waiter{}
	fmt.Println("ready", os.Getpid())
	generic("x", func() int { return w.wait() + 3 })
}
