"""At SIGTERM saves what the parameter servers hold: each part is asked of all of them."""

import os
import signal
import sys
import time
from pathlib import Path

from trainer import CONFIG, answers, who

SERVERS = CONFIG["cluster"]["ps"]


def save(*_):
    parts = []
    for number in range(20):
        for server in SERVERS:
            answers(server, time.monotonic() + 600)
        parts.append(str(number))
        time.sleep(0.05)
    Path(os.environ["SM_MODEL_DIR"], f"saved by {who()}").write_text(" ".join(parts))
    sys.exit(0)


for server in SERVERS:
    answers(server, time.monotonic() + 60)
signal.signal(signal.SIGTERM, save)
print("training as", who(), flush=True)
while True:
    time.sleep(600)
