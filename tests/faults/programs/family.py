"""A script with a child and a grandchild in its group; each notes when it is told to stop, and takes its time to save."""

import os
import signal
import sys
import time
from pathlib import Path

NOTES = Path("/opt/ml/output/data")
name = "script"


def told(number, _):
    (NOTES / f"{name} was told {number}").write_text(str(time.monotonic()))
    for part in range(10):
        time.sleep(0.05)
        with (Path("/opt/ml/checkpoints") / name).open("ab") as file:
            file.write(b"%d" % part * 100_000)
    sys.exit(0)


for member in ("child", "grandchild"):
    if os.fork():
        break
    name = member
signal.signal(signal.SIGTERM, told)
signal.signal(signal.SIGINT, told)
(NOTES / f"{name} is up").touch()
while True:
    time.sleep(600)
