"""Leaves a daemon that holds the output open, and kills itself when it is told to."""

import os
import signal
import time
from pathlib import Path

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
print("daemon left", flush=True)
while not Path("/opt/ml/input/fault").exists():
    time.sleep(0.02)
os.kill(os.getpid(), signal.SIGKILL)
