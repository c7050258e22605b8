// SPDX-License-Identifier: MIT

// A thread that runs nearly always on the stack that the runtime has for itself: it writes down the stacks of many
// goroutines, again and again.
// Not built by make: tests/e2e/test_go.py does, where Go is installed.
package main

import (
	"fmt"
	"os"
	"runtime"
)

//go:noinline
func deeper(depth int, f func()) {
	if depth > 0 {
		deeper(depth-1, f)
		return
	}
	f()
}

func main() {
	for i := 0; i < 2000; i++ {
		go func() { select {} }()
	}
	fmt.Println("ready", os.Getpid())
	text := make([]byte, 1<<20)
	deeper(30, func() {
		for {
			runtime.Stack(text, true)
		}
	})
}
