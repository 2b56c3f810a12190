"""A million lines of random-looking bytes, not all of them text."""

import os
import sys

block = b"".join(b"%06d \xff\xfe loss=%d\r\n" % (n, n * n) for n in range(1000))
for _ in range(int(sys.argv[-1])):
    os.write(1, block)
os.write(2, b"no newline at the end")
