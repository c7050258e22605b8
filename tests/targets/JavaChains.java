// SPDX-License-Identifier: MIT
// Threads that call and return as fast as they can, along ever other paths. A method is named after who may call it: xy is
// called by any ?x, and calls any y?, so that a stack with a frame missing, or one too many, is seen to be wrong. Their
// frames are of different sizes.

import java.io.BufferedReader;
import java.io.InputStreamReader;

public class JavaChains {
    static volatile long sink;

    static long aa(int depth, long path) {
        if (depth == 0)
            return path;
        long left = path / 3;
        long result = path % 3 == 0 ? aa(depth - 1, left) : path % 3 == 1 ? ab(depth - 1, left) : ac(depth - 1, left);
        return result;
    }

    static long ab(int depth, long path) {
        if (depth == 0)
            return path;
        long v0 = path * 3 + depth;
        long left = path / 3;
        long result = path % 3 == 0 ? ba(depth - 1, left) : path % 3 == 1 ? bb(depth - 1, left) : bc(depth - 1, left);
        return result + v0;
    }

    static long ac(int depth, long path) {
        if (depth == 0)
            return path;
        long v0 = path * 3 + depth;
        long v1 = path * 5 + depth;
        long left = path / 3;
        long result = path % 3 == 0 ? ca(depth - 1, left) : path % 3 == 1 ? cb(depth - 1, left) : cc(depth - 1, left);
        return result + v0 + v1;
    }

    static long ba(int depth, long path) {
        if (depth == 0)
            return path;
        long v0 = path * 3 + depth;
        long v1 = path * 5 + depth;
        long v2 = path * 7 + depth;
        long left = path / 3;
        long result = path % 3 == 0 ? aa(depth - 1, left) : path % 3 == 1 ? ab(depth - 1, left) : ac(depth - 1, left);
        return result + v0 + v1 + v2;
    }

    static long bb(int depth, long path) {
        if (depth == 0)
            return path;
        long v0 = path * 3 + depth;
        long v1 = path * 5 + depth;
        long v2 = path * 7 + depth;
        long v3 = path * 9 + depth;
        long left = path / 3;
        long result = path % 3 == 0 ? ba(depth - 1, left) : path % 3 == 1 ? bb(depth - 1, left) : bc(depth - 1, left);
        return result + v0 + v1 + v2 + v3;
    }

    static long bc(int depth, long path) {
        if (depth == 0)
            return path;
        long v0 = path * 3 + depth;
        long v1 = path * 5 + depth;
        long v2 = path * 7 + depth;
        long v3 = path * 9 + depth;
        long v4 = path * 11 + depth;
        long left = path / 3;
        long result = path % 3 == 0 ? ca(depth - 1, left) : path % 3 == 1 ? cb(depth - 1, left) : cc(depth - 1, left);
        return result + v0 + v1 + v2 + v3 + v4;
    }

    static long ca(int depth, long path) {
        if (depth == 0)
            return path;
        long v0 = path * 3 + depth;
        long v1 = path * 5 + depth;
        long v2 = path * 7 + depth;
        long v3 = path * 9 + depth;
        long v4 = path * 11 + depth;
        long v5 = path * 13 + depth;
        long left = path / 3;
        long result = path % 3 == 0 ? aa(depth - 1, left) : path % 3 == 1 ? ab(depth - 1, left) : ac(depth - 1, left);
        return result + v0 + v1 + v2 + v3 + v4 + v5;
    }

    static long cb(int depth, long path) {
        if (depth == 0)
            return path;
        long v0 = path * 3 + depth;
        long v1 = path * 5 + depth;
        long v2 = path * 7 + depth;
        long v3 = path * 9 + depth;
        long v4 = path * 11 + depth;
        long v5 = path * 13 + depth;
        long v6 = path * 15 + depth;
        long left = path / 3;
        long result = path % 3 == 0 ? ba(depth - 1, left) : path % 3 == 1 ? bb(depth - 1, left) : bc(depth - 1, left);
        return result + v0 + v1 + v2 + v3 + v4 + v5 + v6;
    }

    static long cc(int depth, long path) {
        if (depth == 0)
            return path;
        long v0 = path * 3 + depth;
        long v1 = path * 5 + depth;
        long v2 = path * 7 + depth;
        long v3 = path * 9 + depth;
        long v4 = path * 11 + depth;
        long v5 = path * 13 + depth;
        long v6 = path * 15 + depth;
        long v7 = path * 17 + depth;
        long left = path / 3;
        long result = path % 3 == 0 ? ca(depth - 1, left) : path % 3 == 1 ? cb(depth - 1, left) : cc(depth - 1, left);
        return result + v0 + v1 + v2 + v3 + v4 + v5 + v6 + v7;
    }

    /** The paths of a depth of 20 are all of 3^20. */
    static void run() {
        long path = 1;
        for (;;) {
            path = path * 6364136223846793005L + 1442695040888963407L;
            sink += aa(20, path >>> 31);
        }
    }

    public static void main(String[] args) throws Exception {
        int threads = args.length > 0 ? Integer.parseInt(args[0]) : 1;
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(JavaChains::run, "chains" + i);
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;)
            System.out.println(line.equals("progress") ? String.valueOf(sink >>> 1) : "?");
    }
}
