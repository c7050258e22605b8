// SPDX-License-Identifier: MIT
// An application's threads, as java.util.concurrent makes them: pools, a parallel stream, futures, locks with conditions, monitors,
// timers and, where there are any, virtual threads. All wait at known places. "stacks" makes the program write what it says of
// them itself, as JavaStacks does; a virtual thread stands there under its name, below the carrier's.
//
// Wants -Djava.util.concurrent.ForkJoinPool.common.parallelism=3.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Timer;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Supplier;
import java.util.stream.IntStream;

public class JavaPools {
    static final int STREAM_THREADS = 4; // the common pool's, and the one that wants the result
    static final AtomicInteger arrived = new AtomicInteger();
    static final CountDownLatch never = new CountDownLatch(1);
    static Timer timer; // ends when nobody has it
    static int expected;

    /** A wait that nobody ends, but for what it throws. */
    interface Wait {
        void forever() throws Exception;
    }

    static <T> T block(Wait wait) {
        arrived.incrementAndGet();
        try {
            wait.forever();
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
        throw new IllegalStateException("it has come to an end");
    }

    /** Bounded, with a lock and two conditions of its own. */
    static class Store {
        private final ReentrantLock lock = new ReentrantLock(true);
        private final Condition filled = lock.newCondition();

        int take(int depth) throws InterruptedException {
            if (depth > 0)
                return take(depth - 1);
            lock.lockInterruptibly();
            try {
                while (true)
                    filled.await();
            } finally {
                lock.unlock();
            }
        }
    }

    static class Account {
        synchronized void await() throws InterruptedException {
            while (true)
                wait();
        }

        synchronized void hold(CountDownLatch held) {
            held.countDown();
            block(never::await);
        }

        synchronized void enter() {
            throw new IllegalStateException("it was held");
        }
    }

    static void inPool(ExecutorService pool, Wait wait) {
        expected++;
        pool.execute(() -> block(wait));
    }

    static void inThread(String name, Wait wait) {
        expected++;
        start(name, () -> block(wait));
    }

    static void start(String name, Runnable task) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        thread.start();
    }

    static void startPools() {
        Store store = new Store();
        BlockingQueue<String> orders = new ArrayBlockingQueue<>(3);
        ExecutorService workers = Executors.newFixedThreadPool(6);
        inPool(workers, () -> store.take(20));
        inPool(workers, orders::take);
        inPool(workers, new Semaphore(0)::acquire);
        inPool(workers, new CyclicBarrier(2)::await);
        inPool(workers, new SynchronousQueue<String>()::take);
        expected++;
        Future<Object> blocked = workers.submit(() -> block(never::await));
        inThread("getter", blocked::get);
        ScheduledExecutorService scheduled = Executors.newScheduledThreadPool(1);
        scheduled.schedule(() -> {}, 1, TimeUnit.DAYS);
        timer = new Timer("timer", true);
    }

    static void startFutures() {
        ExecutorService pool = Executors.newCachedThreadPool(task -> new Thread(task, "supplier"));
        Supplier<Integer> supplier = () -> block(never::await);
        expected++;
        CompletableFuture<Integer> future = CompletableFuture.supplyAsync(supplier, pool).thenApply(n -> n + 1).thenCombine(
                CompletableFuture.completedFuture(1), Integer::sum);
        inThread("joiner", future::join);
        expected++;
        start("completer", () -> CompletableFuture.completedFuture(2).thenApply(n -> n * 2)
                .thenAccept(n -> block(never::await)));
    }

    static void startStream() {
        expected += STREAM_THREADS;
        start("streamer", () -> IntStream.range(0, 64).parallel().map(n -> n * n).filter(n -> n >= 0)
                .forEach(n -> block(never::await)));
    }

    static void startLocks() throws InterruptedException {
        ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
        lock.readLock().lock();
        inThread("writer", lock.writeLock()::lock);
        inThread("timed writer", () -> lock.writeLock().tryLock(1, TimeUnit.DAYS));
        Account account = new Account();
        CountDownLatch held = new CountDownLatch(1);
        expected++;
        start("holder", () -> account.hold(held));
        held.await();
        inThread("enterer 1", account::enter);
        inThread("enterer 2", account::enter);
        inThread("waiter", new Account()::await);
    }

    /** In the initialiser of a class no virtual thread leaves its carrier. */
    static class Pinned {
        static {
            block(never::await);
        }

        static void touch() {}
    }

    static Thread pinned;

    static void startVirtual() throws ReflectiveOperationException {
        try {
            java.lang.reflect.Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
            expected += 3;
            pinned = (Thread) start.invoke(null, (Runnable) Pinned::touch);
            for (int i = 0; i < 2; i++)
                start.invoke(null, (Runnable) () -> block(never::await)); // leaves its carrier, which is idle then
        } catch (NoSuchMethodException e) {
            pinned = null;
        }
    }

    static boolean isBlocked(Thread thread) {
        List<Thread.State> states = Arrays.asList(Thread.State.WAITING, Thread.State.TIMED_WAITING, Thread.State.BLOCKED);
        return states.contains(thread.getState());
    }

    /** Whether the program's own threads are where they stay: not those of the virtual machine itself, nor carriers. */
    static boolean allWait() {
        Thread[] own = new Thread[100];
        int count = Thread.currentThread().getThreadGroup().enumerate(own);
        for (int i = 0; i < count; i++)
            if (own[i] != Thread.currentThread() && !isBlocked(own[i]))
                return false;
        return arrived.get() == expected && (pinned == null || isBlocked(pinned));
    }

    static void write(StringBuilder out, String name, StackTraceElement[] stack) {
        for (StackTraceElement f : stack)
            out.append(name).append('\t').append(f.getClassName()).append('.').append(f.getMethodName())
                    .append('\t').append(f.getFileName()).append('\t').append(f.getLineNumber()).append('\n');
    }

    static void writeStacks() {
        StringBuilder out = new StringBuilder();
        if (pinned != null)
            write(out, "(pinned)", pinned.getStackTrace());
        for (Map.Entry<Thread, StackTraceElement[]> e : Thread.getAllStackTraces().entrySet())
            write(out, e.getKey().getName(), e.getValue());
        System.out.print(out.append("end\n"));
        System.out.flush();
    }

    public static void main(String[] args) throws Exception {
        startPools();
        startFutures();
        startStream();
        startLocks();
        startVirtual();
        while (!allWait())
            Thread.sleep(1);
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        while (in.readLine() != null)
            writeStacks();
        System.exit(0);
    }
}
