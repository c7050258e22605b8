// SPDX-License-Identifier: MIT
// Threads that wait for monitors and for locks of java.util.concurrent, each for ever and with a known owner, and threads that
// wait for each other. "healthy" takes many of both in order, for ever. The threads have their names; "ready" is written when all are
// about to wait.

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

public class JavaLocks {
    static class Account {}

    interface Wait {
        void run() throws Exception;
    }

    static final CountDownLatch held = new CountDownLatch(1);

    static Thread start(String name, Wait wait) {
        Thread thread = new Thread(() -> {
            try {
                wait.run();
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** What a holder does with what it has. */
    static void keep() throws Exception {
        held.countDown();
        Thread.sleep(Long.MAX_VALUE);
    }

    /** Owned by "holder", wanted by "waiter". */
    static void pair(Wait holder, Wait waiter) throws Exception {
        start("holder", holder);
        held.await();
        start("waiter", waiter);
    }

    static void deepEnter(Object monitor, int depth, Wait then) throws Exception {
        synchronized (monitor) {
            if (depth > 1)
                deepEnter(monitor, depth - 1, then);
            else
                then.run();
        }
    }

    static void enter(Object monitor) throws Exception {
        synchronized (monitor) {
            keep();
        }
    }

    static void take(ReentrantLock lock) throws Exception {
        lock.lock();
        keep();
    }

    static void owned(String what) throws Exception {
        final Account account = new Account();
        final ReentrantLock lock = new ReentrantLock(), fair = new ReentrantLock(true);
        final ReentrantReadWriteLock both = new ReentrantReadWriteLock();

        switch (what) {
        case "monitor":
            pair(() -> deepEnter(account, 1, JavaLocks::keep), () -> enter(account));
            break;
        case "recursive":
            pair(() -> deepEnter(account, 3, JavaLocks::keep), () -> enter(account));
            break;
        case "inflated": // it had waiters before
            pair(() -> {
                synchronized (account) {
                    account.wait(1);
                    keep();
                }
            }, () -> enter(account));
            break;
        case "again": // notified, and the monitor is not free
            start("waiter", () -> {
                synchronized (account) {
                    held.countDown();
                    account.wait();
                }
            });
            held.await();
            start("holder", () -> {
                synchronized (account) {
                    account.notifyAll();
                    Thread.sleep(Long.MAX_VALUE);
                }
            });
            break;
        case "lock":
            pair(() -> take(lock), () -> take(lock));
            break;
        case "fair":
            pair(() -> take(fair), () -> take(fair));
            break;
        case "timed":
            pair(() -> take(lock), () -> lock.tryLock(1, TIMEUNIT));
            break;
        case "ended":
            start("holder", lock::lock).join();
            start("waiter", lock::lock);
            break;
        case "sleep":
            start("waiter", () -> Thread.sleep(TIMEUNIT.toMillis(1)));
            break;
        case "write":
            pair(() -> { both.writeLock().lock(); keep(); }, () -> both.writeLock().lock());
            break;
        case "read":
            pair(() -> { both.writeLock().lock(); keep(); }, () -> both.readLock().lock());
            break;
        case "join":
            final Thread holder = start("holder", JavaLocks::keep);
            start("waiter", () -> holder.join());
            break;
        default:
            throw new IllegalArgumentException(what);
        }
    }

    static final TimeUnit TIMEUNIT = TimeUnit.DAYS;

    static void ownerless(String what) throws Exception {
        final Account account = new Account();
        final ReentrantLock lock = new ReentrantLock();
        final Condition condition = lock.newCondition();
        final ReentrantReadWriteLock both = new ReentrantReadWriteLock();

        switch (what) {
        case "readers":
            both.readLock().lock();
            start("waiter", () -> both.writeLock().lock());
            break;
        case "condition":
            start("waiter", () -> {
                lock.lock();
                condition.await();
            });
            break;
        case "semaphore":
            start("waiter", () -> new Semaphore(0).acquire());
            break;
        case "latch":
            start("waiter", () -> new CountDownLatch(1).await());
            break;
        case "park":
            start("waiter", () -> LockSupport.park(account));
            break;
        case "bare-park":
            start("waiter", () -> LockSupport.park());
            break;
        case "wait":
            start("waiter", () -> {
                synchronized (account) {
                    account.wait();
                }
            });
            break;
        case "join-self": // as main threads do that are to stay
            start("waiter", () -> Thread.currentThread().join());
            break;
        case "wait-timed":
            start("waiter", () -> {
                synchronized (account) {
                    account.wait(Integer.MAX_VALUE);
                }
            });
            break;
        default:
            owned(what);
        }
    }

    /** Each has its own, and wants the next one's when all have. */
    static void ring(int n, boolean[] isLock) {
        final Object[] monitors = new Object[n];
        final ReentrantLock[] locks = new ReentrantLock[n];
        final CountDownLatch all = new CountDownLatch(n);

        for (int i = 0; i < n; i++) {
            monitors[i] = new Account();
            locks[i] = new ReentrantLock();
        }
        for (int i = 0; i < n; i++) {
            final int own = i, next = (i + 1) % n;
            final Wait then = () -> {
                all.countDown();
                all.await();
                if (isLock[next])
                    locks[next].lock();
                else
                    enter(monitors[next]);
            };

            start("ring-" + i, () -> {
                if (isLock[own]) {
                    locks[own].lock();
                    then.run();
                } else {
                    deepEnter(monitors[own], 1, then);
                }
            });
        }
    }

    static void joinRing() {
        final Object monitor = new Account();
        final CountDownLatch has = new CountDownLatch(1);

        final Thread second = start("ring-1", () -> {
            has.await();
            enter(monitor);
        });
        start("ring-0", () -> {
            synchronized (monitor) {
                has.countDown();
                second.join();
            }
        });
    }

    static volatile long rounds;
    static volatile Object garbage;

    static void inOrder(Object[] monitors, ReentrantLock[] locks, int first, int depth) {
        if (depth == 0 || first >= monitors.length) {
            rounds++;
            garbage = new byte[1000];
            if (rounds % 64 == 0)
                LockSupport.parkNanos(50_000);
            return;
        }
        if (first % 2 == 0) {
            synchronized (monitors[first]) {
                inOrder(monitors, locks, first + 1 + depth % 3, depth - 1);
            }
        } else {
            locks[first].lock();
            try {
                inOrder(monitors, locks, first + 1 + depth % 3, depth - 1);
            } finally {
                locks[first].unlock();
            }
        }
    }

    static void healthy() {
        final int n = 12;
        final Object[] monitors = new Object[n];
        final ReentrantLock[] locks = new ReentrantLock[n];

        for (int i = 0; i < n; i++) {
            monitors[i] = new Account();
            locks[i] = new ReentrantLock(i % 4 == 1);
        }
        for (int i = 0; i < 24; i++) {
            final int seed = i;

            start("worker-" + i, () -> {
                for (int k = seed; true; k++)
                    inOrder(monitors, locks, k % 5, 1 + k % 4);
            });
        }
    }

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
        case "monitors":
            ring(3, new boolean[3]);
            break;
        case "locks":
            ring(3, new boolean[] {true, true, true});
            break;
        case "mixed":
            ring(4, new boolean[] {true, false, true, false});
            break;
        case "join-ring":
            joinRing();
            break;
        case "healthy":
            healthy();
            break;
        default:
            ownerless(args[0]);
        }
        System.out.println("ready");
        while (System.in.read() >= 0) // whoever asks is told how far it has got
            if (System.in.available() == 0)
                System.out.println(rounds);
    }
}
