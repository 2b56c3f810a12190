"""Ends well, but a process in a session of its own keeps the output open."""

import os
import sys
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
print("the last line", flush=True)
sys.exit(0)
