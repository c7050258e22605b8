// SPDX-License-Identifier: MIT
// Threads that wait again and again in known places, and say so themselves: "stacks" makes the program write where each of
// them waits, a line for each frame, "naps" to answer when each has waited often. It ends with its input. Every thread waits in
// a method that is called nap… and never returns.
//
// What is to be compiled is called often before: -XX options decide what becomes of it.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntSupplier;

public class JavaWaits {
    static final int OFTEN = 50;
    static final ReentrantLock lock = new ReentrantLock(true);
    static final Object held = new Object();
    static final Map<String, AtomicLong> naps = new ConcurrentSkipListMap<>();
    static final List<Thread> threads = new ArrayList<>();
    static volatile boolean armed;
    static volatile long sink;

    /** Counts for the thread that calls it; true: it is to go on. */
    static boolean again() {
        naps.get(Thread.currentThread().getName()).incrementAndGet();
        return true;
    }

    static void napAsleep() {
        try {
            while (again())
                Thread.sleep(2);
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    static void napParked() {
        while (again())
            LockSupport.parkNanos(2_000_000);
    }

    static void napOnMonitor() {
        Object monitor = new Object();
        try {
            while (again())
                synchronized (monitor) {
                    monitor.wait(2);
                }
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    static void napOnQueue() {
        LinkedBlockingQueue<Object> queue = new LinkedBlockingQueue<>();
        try {
            while (again())
                queue.poll(2, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    /** The other one has the lock for as long as it sleeps. */
    static void napOnLock() {
        while (again()) {
            lock.lock();
            lock.unlock();
        }
    }

    static void napWithLock() {
        try {
            while (again()) {
                lock.lock();
                Thread.sleep(2);
                lock.unlock();
            }
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    static void napBefore() {
        while (again())
            synchronized (held) {
                sink++;
            }
    }

    static void napWithin() {
        try {
            while (again()) {
                synchronized (held) {
                    Thread.sleep(2);
                }
                Thread.sleep(1); // the other one gets a chance
            }
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    interface Shape {
        int area(int depth);
    }

    /** Waits at the bottom of a recursion through every kind of call, once it is armed. */
    static class Square implements Shape {
        public int area(int depth) {
            return depth <= 0 ? bottom(depth) : new Circle().area(depth - 1) + 1;
        }
    }

    static class Circle implements Shape {
        public int area(int depth) {
            Shape next = depth % 3 == 0 ? new Square() : new Triangle();
            return small(next, depth);
        }

        private static int small(Shape next, int depth) {
            return smaller(next, depth) + 1;
        }

        private static int smaller(Shape next, int depth) {
            return depth <= 0 ? bottom(depth) : next.area(depth - 1);
        }
    }

    static class Triangle implements Shape {
        public synchronized int area(int depth) {
            IntSupplier further = () -> depth <= 0 ? bottom(depth) : new Square().area(depth - 1);
            return further.getAsInt() + 2;
        }
    }

    static int bottom(int depth) {
        if (armed)
            napAsleep();
        return depth;
    }

    static int plain(int depth) {
        if (depth == 0)
            napParked();
        return plain(depth - 1) + 1;
    }

    static void reflect() {
        try {
            JavaWaits.class.getDeclaredMethod("napAsleep").invoke(null);
        } catch (ReflectiveOperationException e) {
            throw new RuntimeException(e);
        }
    }

    static void stream() {
        Arrays.asList(1, 2, 3).stream().map(i -> i + 1).forEach(i -> napAsleep());
    }

    static Thread keep(Thread thread, String name) {
        thread.setName(name);
        thread.setDaemon(true);
        synchronized (threads) {
            threads.add(thread);
        }
        return thread;
    }

    static void start(String name, Runnable what) {
        naps.put(name, new AtomicLong());
        keep(new Thread(what), name).start();
    }

    static void startPools() {
        naps.put("pooled", new AtomicLong());
        naps.put("forked", new AtomicLong());
        new ThreadPoolExecutor(1, 1, 1, TimeUnit.DAYS, new LinkedBlockingQueue<>(), r -> keep(new Thread(r), "pooled"))
                .submit(JavaWaits::napParked);
        ForkJoinPool.ForkJoinWorkerThreadFactory factory = pool -> {
            ForkJoinWorkerThread worker = ForkJoinPool.defaultForkJoinWorkerThreadFactory.newThread(pool);
            keep(worker, "forked");
            return worker;
        };
        new ForkJoinPool(1, factory, null, false).submit(() -> Arrays.asList(1, 2).parallelStream().forEach(i -> napAsleep()));
    }

    static void startAll() {
        start("asleep", JavaWaits::napAsleep);
        start("parked", JavaWaits::napParked);
        start("monitor", JavaWaits::napOnMonitor);
        start("queue", JavaWaits::napOnQueue);
        start("locker", JavaWaits::napOnLock);
        start("holder", JavaWaits::napWithLock);
        start("enterer", JavaWaits::napBefore);
        start("entered", JavaWaits::napWithin);
        start("recursion", () -> sink += new Square().area(30));
        start("plain", () -> plain(40));
        start("reflector", JavaWaits::reflect);
        start("streamer", JavaWaits::stream);
        startPools();
    }

    static void awaitNaps(int count) throws InterruptedException {
        for (AtomicLong n : naps.values())
            for (long enough = n.get() + count; n.get() < enough;)
                Thread.sleep(1);
    }

    /** Of a thread that waits: its state and its stack are of one moment. */
    static StackTraceElement[] stackOf(Thread thread) {
        for (;;) {
            ThreadInfo info = ManagementFactory.getThreadMXBean().getThreadInfo(thread.getId(), Integer.MAX_VALUE);
            if (info.getThreadState() != Thread.State.RUNNABLE && info.getThreadState() != Thread.State.NEW)
                return info.getStackTrace();
        }
    }

    static void writeStacks() {
        StringBuilder out = new StringBuilder();
        for (Thread thread : threads)
            for (StackTraceElement f : stackOf(thread))
                out.append(thread.getName()).append('\t').append(f.getClassName()).append('.').append(f.getMethodName())
                        .append('\t').append(f.getFileName()).append('\t').append(f.getLineNumber()).append('\n');
        System.out.print(out.append("end\n"));
        System.out.flush();
    }

    public static void main(String[] args) throws Exception {
        System.setOut(new PrintStream(System.out, true, "UTF-8"));
        for (int i = 0; i < 60000; i++)
            sink += new Square().area(30);
        armed = true;
        startAll();
        awaitNaps(OFTEN);
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;)
            if (line.equals("stacks")) {
                writeStacks();
            } else if (line.equals("naps")) {
                awaitNaps(OFTEN);
                System.out.println("done");
            } else {
                System.out.println("?");
            }
    }
}
