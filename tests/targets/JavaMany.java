// SPDX-License-Identifier: MIT
// JavaMany N DEPTH: N threads that wait, each DEPTH frames deep, and one that runs. "gap" makes the program say for how many
// nanoseconds that one was kept from running, at most, since it was last asked.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

public class JavaMany {
    static final AtomicLong longest = new AtomicLong();

    static void descend(int left, CountDownLatch arrived) {
        if (left > 0) {
            descend(left - 1, arrived);
            return;
        }
        arrived.countDown();
        while (true)
            LockSupport.park();
    }

    static void spin() {
        for (long last = System.nanoTime();;) {
            long now = System.nanoTime();
            if (now - last > longest.get())
                longest.set(now - last);
            last = now;
        }
    }

    static void start(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        thread.start();
    }

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[0]);
        int above = 5; // Thread.run, the task, the frame that is not counted by `left`, LockSupport.park, Unsafe.park
        CountDownLatch arrived = new CountDownLatch(count);
        for (int i = 0; i < count; i++)
            start(() -> descend(Integer.parseInt(args[1]) - above, arrived));
        arrived.await();
        start(JavaMany::spin);
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        while (in.readLine() != null)
            System.out.println(longest.getAndSet(0));
    }
}
