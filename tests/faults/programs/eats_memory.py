"""Takes more and more memory once it is told to."""

import time
from pathlib import Path

print("hungry", flush=True)
while not Path("/opt/ml/input/fault").exists():
    time.sleep(0.02)
eaten = []
while True:
    eaten.append(bytearray(1 << 20))
