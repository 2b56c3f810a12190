"""Saves for as many seconds as its first argument says once SIGTERM came, and counts how often it came."""

import os
import signal
import sys
import time
from pathlib import Path

told = []


def until(moment):
    while time.monotonic() < moment:
        time.sleep(0.05)


signal.signal(signal.SIGTERM, lambda *_: told.append(time.monotonic()))
print("training", flush=True)
while not told:
    time.sleep(0.02)
print("saving", flush=True)
until(told[0] + float(sys.argv[1]))
name = "saved" + os.environ.get("OMPI_COMM_WORLD_RANK", "")
Path(os.environ["SM_MODEL_DIR"], name).write_text(f"told {len(told)} times")
