// SPDX-License-Identifier: MIT
// Virtual threads (since 21). "mounted" blocks in a place where it cannot leave its carrier; "resumed" has left its carrier
// before, and only its innermost frames are on the stack since.

import java.lang.reflect.Method;

public class JavaVirtual {
    static final Object monitor = new Object();
    static volatile boolean ready;
    static volatile long sink;

    static void block() {
        synchronized (monitor) {
            run();
        }
    }

    static void run() {
        ready = true;
        for (;;)
            sink++;
    }

    static void mounted(int depth) {
        if (depth > 0)
            mounted(depth - 1);
        else
            block();
    }

    static void resumed(int depth) throws InterruptedException {
        if (depth > 0) {
            resumed(depth - 1);
            return;
        }
        Thread.sleep(20);
        run();
    }

    public static void main(String[] args) throws Exception {
        Method start;
        try {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException e) {
            System.out.println("none");
            return;
        }
        Runnable mounted = () -> mounted(20);
        Runnable resumed = () -> {
            try {
                resumed(20);
            } catch (InterruptedException e) {
                throw new RuntimeException(e);
            }
        };
        start.invoke(null, args[0].equals("mounted") ? mounted : resumed);
        while (!ready)
            Thread.sleep(1);
        System.out.println("ready");
        while (System.in.read() >= 0)
            continue;
    }
}
