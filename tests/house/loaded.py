"""What typical calls load and do: own lines by module, and how often a request is parsed, rendered and validated.

``python -m tests.house.loaded CALL`` measures one of `CALLS` in this process and prints JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.house import sources

if TYPE_CHECKING:
    from types import FrameType

#: The calls of an `Estimator` that are measured: a request for Amazon SageMaker, and jobs of this machine.
CALLS = ("request", "fit(wait=False)", "fit")
_WORK = {"parse_request": "parsed", "render_request": "rendered", "violations": "validated", "_model_file": "looked up"}


class Measured(NamedTuple):
    """Own lines loaded, by module, and how often requests were parsed, rendered and validated."""

    lines: dict[str, int]
    work: dict[str, int]


def measure(call: str) -> Measured:
    """Return what one of `CALLS` loads and does, in a process and a home directory of its own."""
    with tempfile.TemporaryDirectory() as home:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SCRIPTMODE_"))
        }
        path = os.pathsep.join(f"{sources.ROOT}{part}" for part in ("", "/sdk", "/entrypoints"))
        environment.update(HOME=home, PYTHONPATH=path, XDG_CACHE_HOME=f"{home}/.cache")
        done = subprocess.run(
            [sys.executable, "-m", __name__, call],
            env=environment, cwd=home, check=True, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def _run(call: str) -> None:
    from scriptmode import Estimator

    Path("code").mkdir()
    Path("code/train.py").write_text("print(1)\n", encoding="utf-8")
    common: dict[str, Any] = {"entry_point": "train.py", "source_dir": "code"}
    if call == "request":
        os.environ["AWS_DEFAULT_REGION"] = "us-east-1"
        Estimator(
            role="arn:aws:iam::123456789012:role/r", instance_count=2, instance_type="ml.p3.2xlarge",
            image_uri="123456789012.dkr.ecr.us-east-1.amazonaws.com/own:1",
            distribution={"mpi": {"enabled": True}}, **common,
        ).request({"train": "s3://bucket/train"})  # fmt: skip
        return
    estimator = Estimator(role="r", instance_count=1, instance_type="local_process", **common)
    job = estimator.fit({"train": f"file://{Path('code').absolute()}"}, wait=call == "fit")
    if call != "fit":
        sys.setprofile(None)
        subprocess.run(
            [sys.executable, "-m", "scriptmode", "stop", "--wait", job.name], check=False, capture_output=True
        )


def main(call: str) -> None:
    """Print what the call loaded and did."""
    work: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        name, file = frame.f_code.co_name, frame.f_code.co_filename
        if event == "call" and name in _WORK and f"{os.sep}request{os.sep}" in file:
            work[_WORK[name]] += 1

    sys.setprofile(count)
    _run(call)
    sys.setprofile(None)
    own = {name: module.__file__ for name, module in sys.modules.items() if name.startswith("scriptmode")}
    lines = {name: len(Path(file).read_text(encoding="utf-8").splitlines()) for name, file in own.items()}
    sys.stdout.write("\n" + json.dumps({"lines": lines, "work": work}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
