// SPDX-License-Identifier: MIT

// A thread that has parked its goroutine, one that collects garbage, and one in C: each on a stack that it has switched to.
// Not built by make: tests/e2e/test_go.py does, where Go is installed.
package main

// #include <time.h>
// static void wait_in_c(void) { struct timespec t = {0, 30000000}; nanosleep(&t, 0); }
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

func main() {
	go func() {
		for {
			runtime.GC()
			time.Sleep(2 * time.Millisecond)
		}
	}()
	go func() {
		for {
			C.wait_in_c()
		}
	}()
	fmt.Println("ready", os.Getpid())
	os.Stdin.Read(make([]byte, 1))
}
