"""Two processes of one host print lines in two writes each, as an unbuffered print does."""

import os
import sys

name = sys.argv[1] if len(sys.argv) > 1 else "x"
for number in range(2000):
    os.write(1, f"{name} begins {number} ".encode())
    os.write(1, f"and {name} ends\n".encode())
