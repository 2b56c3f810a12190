"""Reads its channels, trains for a while, and leaves a model that shows whether it is whole. Needs no TensorFlow.

At SIGTERM it saves the model and ends. ``--seconds`` is how long it trains.
"""

import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path

OPTIONS = dict(zip(sys.argv[1::2], sys.argv[2::2]))
LARGE = 12 << 20


def save(*_):
    content = os.urandom(LARGE)
    Path(os.environ["SM_MODEL_DIR"], "weights").write_bytes(hashlib.sha256(content).digest() + content)


def stop(*_):
    time.sleep(0.2)
    if saves:
        save()
    sys.exit(0)


rank = os.environ.get("OMPI_COMM_WORLD_RANK", "0")
saves = os.environ["SM_CURRENT_HOST"] == "algo-1" and rank == "0"
signal.signal(signal.SIGTERM, stop)
print("training", flush=True)
for name in json.loads(os.environ["SM_CHANNELS"]):
    folder = Path(os.environ[f"SM_CHANNEL_{name.upper()}"])
    # As many ranks share the FIFO of a host, the first one alone reads it.
    if name == "pipe" and int(rank) % 2 == 0:
        with folder.with_name("pipe_0").open("rb") as fifo:
            while chunk := fifo.read(65536):
                print(len(chunk), "bytes", flush=True)
    elif name == "fast":
        print(sum(len(path.read_bytes()) for path in folder.iterdir()), "bytes", flush=True)
until = time.monotonic() + float(OPTIONS["--seconds"])
while time.monotonic() < until:
    print("a step", flush=True)
    Path(os.environ["SM_OUTPUT_DATA_DIR"], f"step-{rank}").write_text("a step")
    Path(os.environ["SAGEMAKER_BASE_DIR"], "checkpoints", f"of-{rank}").write_text(str(time.monotonic()))
    time.sleep(0.02)
if saves:
    save()
