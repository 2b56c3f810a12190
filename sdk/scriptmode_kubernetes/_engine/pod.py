"""``python -m scriptmode_kubernetes._engine.pod``: the program of the container ``agent`` of a pod.

It starts the host's agent and, once the other container runs, connects that to the relay beside the job's agent, whose
address is in SCRIPTMODE_AGENT. It ends with the host's agent, or once the job's agent is lost, and ends the other
container then, whatever became of the host's agent.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from scriptmode.engines import process_tree, run_host
from scriptmode_kubernetes._engine.pods import CONNECTION_KEY, PARENT

_POLL_SECONDS = 0.02


def main() -> int:
    """Run the host's agent of this pod; return its exit code."""
    os.umask(0o022)
    folder = Path(PARENT, os.environ["SCRIPTMODE_JOB"])
    control = folder / "control"
    control.mkdir(exist_ok=True)
    # The user of the image is unknown. What the kubelet made is open to all users, but belongs to root.
    with suppress(PermissionError):
        control.chmod(0o777)
    host, _, port = os.environ["SCRIPTMODE_AGENT"].rpartition(":")
    secret = os.environ[f"SCRIPTMODE_{CONNECTION_KEY.upper()}"]
    train: list[int] = []

    def await_start() -> None:
        while not (control / "pid").exists():
            time.sleep(_POLL_SECONDS)
        train.append(int((control / "pid").read_text(encoding="utf-8")))

    try:
        arguments = (str(folder), os.environ["POD_IP"], "--print-log")
        return run_host(arguments, (host, int(port)), secret, await_start=await_start)
    finally:
        for process in train:
            process_tree.kill_tree(process)


if __name__ == "__main__":
    sys.exit(main())
