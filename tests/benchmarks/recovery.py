"""What a job that can go on costs while nothing happens, and how long a rehearsal takes.

The program counts steps of 10 ms of computing, and has nothing to import. Its checkpoint is 20 MB, every 30 s, as of a
network of 5 million weights.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
from pathlib import Path

from tests.benchmarks.figures import SMALLEST_VARIABLE, Figure

from scriptmode import Estimator
from scriptmode.rehearsal import Interrupt, Kill, LoseHost

IS_SMALLEST = SMALLEST_VARIABLE in os.environ
SECONDS, SAVE_SECONDS = (2, 1) if IS_SMALLEST else (65, 30)
COUNTS = f"""
import os, time
began = saved = time.monotonic()
steps = total = 0
while time.monotonic() < began + {SECONDS}:
    total += sum(range(300_000))
    steps += 1
    if time.monotonic() > saved + {SAVE_SECONDS}:
        saved = time.monotonic()
        os.makedirs("/opt/ml/checkpoints", exist_ok=True)
        with open("/opt/ml/checkpoints/draft", "wb") as file:
            file.write(os.urandom(20_000_000))
        os.rename("/opt/ml/checkpoints/draft", "/opt/ml/checkpoints/weights")
print("steps/s", steps / (time.monotonic() - began), flush=True)
"""
STEPS = """
import os, pathlib, time
path = pathlib.Path("/opt/ml/checkpoints", os.environ["SM_CURRENT_HOST"])
step = int(path.read_text()) if path.exists() else 0
while step < 60:
    time.sleep(0.05)
    step += 1
    print("step", step, flush=True)
    if step % 10 == 0:
        draft = path.with_name("." + path.name)
        draft.write_text(str(step))
        draft.rename(path)
"""
FAULTS = [Kill(), LoseHost(), Interrupt(notice=10)]


def run(folder: str) -> list[Figure]:
    code = Path(folder, "code")
    code.mkdir()
    (code / "counts.py").write_text(COUNTS)
    (code / "steps.py").write_text(STEPS)
    steps = [{"Name": "step", "Regex": "step ([0-9]+)"}]
    kept = {"checkpoint_s3_uri": Path(folder, "kept").as_uri(), "max_retry_attempts": 3}
    # In turn, without a run that warms up: each takes a minute.
    rates = [(rate(folder), rate(folder, **kept)) for _ in range(1 if IS_SMALLEST else 2)]
    plain, able = map(sum, zip(*rates))
    began = time.monotonic()
    with contextlib.redirect_stderr(io.StringIO()):
        found = estimator(folder, "steps.py", instance_count=2, metric_definitions=steps, **kept).rehearse(
            faults=FAULTS[:2] if IS_SMALLEST else FAULTS, step_metric="step"
        )
    seconds = time.monotonic() - began
    assert found.ok, found
    return [
        Figure("steps/s of a job that can go on / of one that cannot", able / plain, "x", 0.99, at_most=False),
        Figure("rehearsal of three faults on two hosts", seconds, "s", 120 + found.seconds),
    ]


def estimator(folder: str, program: str, **arguments: object) -> Estimator:
    return Estimator(
        entry_point=program,
        source_dir=f"{folder}/code",
        instance_type="local_process",
        **{"instance_count": 1, **arguments},
    )


def rate(folder: str, **arguments: object) -> float:
    """Run the program that counts; return its steps in a second."""
    job = estimator(folder, "counts.py", **arguments).fit(logs=False)
    (line,) = (event.message for event in job.logs() if event.message.startswith("steps/s"))
    return float(line.split()[1])
