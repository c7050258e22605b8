// SPDX-License-Identifier: MIT
// What tests/targets/python/java_in_python.py calls, and is called back by.

public class JavaInPython {
    static native void back();

    static void descend(int depth) {
        if (depth > 0)
            descend(depth - 1);
        else
            back();
    }
}
