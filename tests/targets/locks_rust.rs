// SPDX-License-Identifier: MIT

// locks_rust WHAT: the thread `waiter` waits for ever for that, of Rust's standard library; `holder`, where there is one, has it.
// Not built by make: tests/e2e/test_why_rust.py does, where Rust is installed.

use std::io::Read;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{mpsc, Arc, Barrier, Condvar, Mutex, Once, RwLock};
use std::thread;
use std::time::Duration;

extern "C" {
    fn gettid() -> i32;
}

static GLOBAL_MUTEX: Mutex<u64> = Mutex::new(0);
static GLOBAL_RWLOCK: RwLock<u64> = RwLock::new(0);
static GLOBAL_ONCE: Once = Once::new();
static GLOBAL_CONDITION: Condvar = Condvar::new();

static HOLDER: AtomicI32 = AtomicI32::new(0);
static WAITER: AtomicI32 = AtomicI32::new(0);

const LONG: Duration = Duration::from_secs(100_000);

fn here(who: &AtomicI32) {
    who.store(unsafe { gettid() }, Ordering::SeqCst);
}

fn start<F: FnOnce() + Send + 'static>(name: &str, run: F) -> thread::JoinHandle<()> {
    thread::Builder::new().name(name.to_string()).spawn(run).unwrap()
}

fn wait_for(who: &AtomicI32) {
    while who.load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
}

fn keep() -> ! {
    here(&HOLDER);
    loop {
        thread::sleep(LONG);
    }
}

fn hold(run: fn()) {
    start("holder", run);
    wait_for(&HOLDER);
}

fn wait(run: impl FnOnce() + Send + 'static) {
    start("waiter", move || {
        here(&WAITER);
        run();
    });
}

fn begin(what: &str) {
    match what {
        "mutex" => {
            hold(|| {
                let _held = GLOBAL_MUTEX.lock().unwrap();
                keep()
            });
            wait(|| *GLOBAL_MUTEX.lock().unwrap() += 1);
        }
        "read" => {
            hold(|| {
                let _held = GLOBAL_RWLOCK.write().unwrap();
                keep()
            });
            wait(|| assert_eq!(*GLOBAL_RWLOCK.read().unwrap(), 1));
        }
        "write" => {
            hold(|| {
                let _held = GLOBAL_RWLOCK.read().unwrap();
                keep()
            });
            wait(|| *GLOBAL_RWLOCK.write().unwrap() += 1);
        }
        "condition" => wait(|| {
            let guard = GLOBAL_MUTEX.lock().unwrap();
            drop(GLOBAL_CONDITION.wait(guard));
        }),
        "condition-timed" => wait(|| {
            let guard = GLOBAL_MUTEX.lock().unwrap();
            drop(GLOBAL_CONDITION.wait_timeout(guard, LONG));
        }),
        "once" => {
            hold(|| GLOBAL_ONCE.call_once(|| keep()));
            wait(|| GLOBAL_ONCE.call_once(|| ()));
        }
        "park" => wait(|| thread::park()),
        "park-timed" => wait(|| thread::park_timeout(LONG)),
        "receive" => wait(|| {
            let (_sender, receiver) = mpsc::channel::<u64>();
            receiver.recv().unwrap();
        }),
        "receive-bounded" => wait(|| {
            let (_sender, receiver) = mpsc::sync_channel::<u64>(4);
            receiver.recv().unwrap();
        }),
        "send" => wait(|| {
            let (sender, _receiver) = mpsc::sync_channel::<u64>(1);
            sender.send(1).unwrap();
            sender.send(2).unwrap();
        }),
        "meet" => wait(|| {
            let (sender, _receiver) = mpsc::sync_channel::<u64>(0);
            sender.send(1).unwrap();
        }),
        "barrier" => wait(|| {
            Arc::new(Barrier::new(2)).wait();
        }),
        "join" => wait(|| {
            let holder = start("holder", || {
                keep();
            });
            holder.join().unwrap();
        }),
        "scope" => wait(|| {
            thread::scope(|scope| {
                scope.spawn(|| {
                    keep();
                });
            });
        }),
        _ => std::process::exit(2),
    }
}

fn main() {
    begin(&std::env::args().nth(1).unwrap_or_default());
    wait_for(&WAITER);
    println!(
        "ready {} waiter={} holder={}",
        std::process::id(),
        WAITER.load(Ordering::SeqCst),
        HOLDER.load(Ordering::SeqCst)
    );
    let _ = std::io::stdin().read(&mut [0]);
}
