// SPDX-License-Identifier: MIT
// Threads that spend their time in code that the virtual machine has made for one purpose each, and that Java code calls. Each is
// named after what it does: run calls work, which calls the method of that name, over and over.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigInteger;
import java.util.Arrays;
import java.util.zip.CRC32;

public class JavaStubs extends Thread {
    static volatile long sink;

    volatile boolean works;
    final char kind;
    final byte[] from = new byte[50000], to = new byte[50000];
    final BigInteger number = BigInteger.valueOf(7).pow(500);

    JavaStubs(String name) {
        super(name);
        kind = name.charAt(1);
        setDaemon(true);
    }

    void copy() {
        System.arraycopy(from, 0, to, 0, 20000);
        System.arraycopy(from, 1, to, 3, 50);
    }

    void fill() {
        Arrays.fill(from, (byte) 3);
    }

    void zero() {
        byte[] zeroed = new byte[20000];
        sink += zeroed[(int) sink & 7];
    }

    void checksum() {
        CRC32 crc = new CRC32();
        crc.update(from, 0, 20000);
        sink += crc.getValue();
    }

    void equal() {
        sink += Arrays.equals(from, to) ? 1 : 0;
    }

    void multiply() {
        sink += number.multiply(number).bitLength();
    }

    void raise() {
        sink += (long) (Math.sin(sink) + Math.pow(1.1, sink & 7) + Math.log(sink + 3) + Math.exp(1.1));
    }

    /** Calls nothing else: what is above it was called for the purpose. */
    void work() {
        works = true;
        for (;;) {
            switch (kind) {
            case 'o': copy(); break;
            case 'i': fill(); break;
            case 'e': zero(); break;
            case 'h': checksum(); break;
            case 'q': equal(); break;
            case 'u': multiply(); break;
            default: raise();
            }
        }
    }

    @Override
    public void run() {
        work();
    }

    public static void main(String[] args) throws Exception {
        for (String name : args) {
            JavaStubs thread = new JavaStubs(name);
            thread.start();
            while (!thread.works)
                Thread.sleep(1);
        }
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        while (in.readLine() != null)
            System.out.println("?");
    }
}
