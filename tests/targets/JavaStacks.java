// SPDX-License-Identifier: MIT
// Threads that stand in known places, and say so themselves: "stacks" makes the program write what
// Thread.getAllStackTraces() says of each, a line for each frame, "threads" what each thread is.
//
// An argument is the name of a kind of thread; "all" stands for all that block. What is to be compiled is called often
// before: -XX options decide what becomes of it.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntSupplier;

public class JavaStacks {
    static final CountDownLatch never = new CountDownLatch(1);
    static final Object monitor = new Object();
    static final ReentrantLock lock = new ReentrantLock();
    static volatile boolean armed;
    static volatile long sink;

    interface Shape {
        int area(int depth);
    }

    /** Blocks at the bottom of a recursion through every kind of call, once it is armed. */
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
            LockSupport.park(monitor);
        return depth;
    }

    static void recurse() {
        for (;;)
            sink += new Square().area(30);
    }

    static int plain(int depth) {
        if (depth == 0) {
            while (true)
                LockSupport.parkNanos(1_000_000_000_000L);
        }
        return plain(depth - 1) + 1;
    }

    static void sleep() {
        try {
            Thread.sleep(1_000_000_000L);
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    static void waitForMonitor() {
        synchronized (monitor) {
            try {
                monitor.wait();
            } catch (InterruptedException e) {
                throw new RuntimeException(e);
            }
        }
    }

    static final Object held = new Object();

    static void enterMonitor() {
        synchronized (held) {
            sink++;
        }
    }

    static void takeLock() {
        lock.lock();
    }

    static void latch() {
        try {
            never.await();
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    /** Through reflection, and back from native code into Java. */
    static void reflect() {
        try {
            JavaStacks.class.getDeclaredMethod("latch").invoke(null);
        } catch (ReflectiveOperationException e) {
            throw new RuntimeException(e);
        }
    }

    static void stream() {
        Arrays.asList(1, 2, 3).stream().map(i -> i + 1).forEach(i -> latch());
    }

    static class Initialised {
        static {
            latch();
        }

        static void touch() {}
    }

    static void initialise() {
        Initialised.touch();
    }

    static final Map<String, Runnable> kinds = new java.util.TreeMap<>();

    static {
        kinds.put("sleeper", JavaStacks::sleep);
        kinds.put("waiter", JavaStacks::waitForMonitor);
        kinds.put("enterer", JavaStacks::enterMonitor);
        kinds.put("locker", JavaStacks::takeLock);
        kinds.put("latched", JavaStacks::latch);
        kinds.put("reflector", JavaStacks::reflect);
        kinds.put("streamer", JavaStacks::stream);
        kinds.put("initialiser", JavaStacks::initialise);
        kinds.put("recursion", JavaStacks::recurse);
        kinds.put("plain", () -> plain(40));
        kinds.put("schl\u00e4fer mit langem Namen", JavaStacks::sleep);
        kinds.put("\u7761\u7720 \ud83d\ude34", JavaStacks::sleep);
    }

    /** The recursion runs until it is compiled, and then parks wherever it is. */
    static void warmUp() {
        for (int i = 0; i < 60000; i++)
            sink += new Square().area(30);
    }

    static Thread start(String kind) {
        Thread thread = new Thread(kinds.get(kind), kind);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    static boolean isBlocked(Thread thread) {
        return Arrays.asList(Thread.State.WAITING, Thread.State.TIMED_WAITING, Thread.State.BLOCKED).contains(thread.getState());
    }

    static void writeStacks() {
        StringBuilder out = new StringBuilder();
        for (Map.Entry<Thread, StackTraceElement[]> e : Thread.getAllStackTraces().entrySet())
            for (StackTraceElement f : e.getValue())
                out.append(e.getKey().getName()).append('\t').append(f.getClassName()).append('.').append(f.getMethodName())
                        .append('\t').append(f.getFileName()).append('\t').append(f.getLineNumber()).append('\n');
        System.out.print(out.append("end\n"));
        System.out.flush();
    }

    static void writeThreads() {
        StringBuilder out = new StringBuilder();
        for (Thread t : Thread.getAllStackTraces().keySet())
            out.append(t.getName()).append('\t').append(t.getState()).append('\t').append(t.isDaemon()).append('\n');
        System.out.print(out.append("end\n"));
        System.out.flush();
    }

    public static void main(String[] args) throws Exception {
        List<String> wanted = args.length == 0 || args[0].equals("all") ? new java.util.ArrayList<>(kinds.keySet()) : Arrays.asList(args);
        if (wanted.contains("recursion"))
            warmUp();
        System.setOut(new PrintStream(System.out, true, "UTF-8"));
        lock.lock();
        armed = true;
        synchronized (held) {
            for (String kind : wanted) {
                Thread thread = start(kind);
                while (!isBlocked(thread))
                    Thread.yield();
            }
            System.out.println("ready");
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
            for (String line; (line = in.readLine()) != null;)
                if (line.equals("stacks"))
                    writeStacks();
                else if (line.equals("threads"))
                    writeThreads();
                else
                    System.out.println("?");
        }
    }
}
