"""``python -m scriptmode_kubernetes._engine.pod``: the program of the container ``agent`` of a pod.

Once the other container runs, it connects to the relay beside the job's agent, whose address is in SCRIPTMODE_AGENT,
and starts the host's agent. It ends with that, or once the job's agent is lost, and ends the other container then.
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
    while not (control / "pid").exists():
        time.sleep(_POLL_SECONDS)
    train = int((control / "pid").read_text(encoding="utf-8"))
    try:
        keys = os.environ[f"SCRIPTMODE_{CONNECTION_KEY.upper()}"]
        return run_host((str(folder), os.environ["POD_IP"], "--print-log"), (host, int(port)), keys)
    finally:
        process_tree.kill_tree(train)


if __name__ == "__main__":
    sys.exit(main())
