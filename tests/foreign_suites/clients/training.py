"""Fit a line to points by gradient descent, for at least a second: the program of the clients' jobs."""

import argparse
import csv
import json
import os
import time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float)
parser.add_argument("--diverge", action="store_true")
parser.add_argument("--seconds", type=float, default=1)
settings, _ = parser.parse_known_args()

with (Path(os.environ["SM_CHANNEL_TRAIN"]) / "points.csv").open() as file:
    points = [(float(x), float(y)) for x, y in csv.reader(file)]

slope, offset, step, started = 0.0, 0.0, 0, time.monotonic()
while step < 2000 or time.monotonic() < started + settings.seconds:
    errors = [(slope * x + offset - y, x) for x, y in points]
    slope -= settings.rate * 2 * sum(error * x for error, x in errors) / len(points)
    offset -= settings.rate * 2 * sum(error for error, _ in errors) / len(points)
    if step in (0, 1000):
        print(f"step {step} loss={sum(error**2 for error, _ in errors) / len(points):.6f}", flush=True)
    step += 1
if settings.diverge:
    raise ValueError("the loss diverged")

(Path(os.environ["SM_MODEL_DIR"]) / "line.json").write_text(json.dumps([slope, offset]))
