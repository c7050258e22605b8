// SPDX-License-Identifier: MIT

// Goroutines that wait for a lock, a channel, several of these, others to be done, the network and a signal, and one that has a thread of
// its own: what their threads do meanwhile, and some without work. Says the numbers of the two threads that are known.
// Not built by make: tests/e2e/test_why_go.py does, where Go is installed.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
)

var (
	mutex   sync.Mutex
	group   sync.WaitGroup
	channel = make(chan int)
	other   = make(chan int)
	started sync.WaitGroup
)

func start(f func()) {
	started.Add(1)
	go f()
}

func wantLock() {
	started.Done()
	mutex.Lock()
}

func receive() {
	started.Done()
	<-channel
}

func choose() {
	started.Done()
	select {
	case <-channel:
	case other <- 1:
	}
}

func waitForOthers() {
	started.Done()
	group.Wait()
}

func readNetwork(connection net.Conn) {
	started.Done()
	connection.Read(make([]byte, 1))
}

// What it waits for is a channel, but nobody else can use its thread.
func locked(tid *int) {
	runtime.LockOSThread()
	*tid = syscall.Gettid()
	started.Done()
	<-channel
}

// Each of these needs a thread, which has nothing to do afterwards.
func needThreads() {
	var done sync.WaitGroup

	for i := 0; i < 8; i++ {
		done.Add(1)
		go func() {
			pause := syscall.NsecToTimespec(50 * 1000 * 1000)
			syscall.Nanosleep(&pause, nil)
			done.Done()
		}()
	}
	done.Wait()
}

func main() {
	var tid int

	runtime.LockOSThread()
	needThreads()
	mutex.Lock()
	group.Add(1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		panic(err)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR1)
	start(wantLock)
	start(receive)
	start(choose)
	start(waitForOthers)
	start(func() { readNetwork(client) })
	start(func() { locked(&tid) })
	started.Wait()
	fmt.Printf("ready %d main=%d locked=%d port=%d\n", os.Getpid(), syscall.Gettid(), tid, listener.Addr().(*net.TCPAddr).Port)
	syscall.Read(0, make([]byte, 1))
}
