"""Leaves orphans all the time: each one's parent ends at once, and it ends soon after."""

import os
import time
from pathlib import Path

for number in range(200):
    if os.fork() == 0:
        if os.fork() == 0:
            time.sleep(0.05)
        os._exit(0)
    os.wait()
    if number == 100:
        print("half of them", flush=True)
print("all of them", flush=True)
while not Path("/opt/ml/input/finish").exists():
    time.sleep(0.01)
