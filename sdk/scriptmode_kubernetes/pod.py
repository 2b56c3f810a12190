"""``python -m scriptmode_kubernetes.pod``: the program of the container ``agent`` of a pod.

It starts the host's agent and, once the other container runs, connects that to the relay beside the job's agent, whose
address is in SCRIPTMODE_AGENT. It ends with the host's agent, or once the job's agent is lost, and ends the other
container then, whatever became of the host's agent.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from scriptmode.engines import REMOTE_HOST_MODULE, LostError, ResumableStream, process_tree
from scriptmode_kubernetes.pods import CONNECTION_KEY, VOLUME

_POLL_SECONDS = 0.02
_END_SECONDS = 60.0


def main() -> int:
    """Run the host's agent of this pod; return its exit code."""
    os.umask(0o022)
    control = Path(VOLUME, "control")
    control.mkdir(parents=True, exist_ok=True)
    # The user of the image is unknown.
    control.chmod(0o777)
    folder = f"{VOLUME}/jobs/{os.environ['SCRIPTMODE_JOB']}"
    agent = subprocess.Popen(
        (sys.executable, "-m", REMOTE_HOST_MODULE, folder, os.environ["POD_IP"], "--print-log"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert agent.stdin  # noqa: S101 - they are pipes
    assert agent.stdout  # noqa: S101
    signal.signal(signal.SIGTERM, lambda _number, _frame: agent.send_signal(signal.SIGTERM))
    host, _, port = os.environ["SCRIPTMODE_AGENT"].rpartition(":")
    secret = os.environ[f"SCRIPTMODE_{CONNECTION_KEY.upper()}"].encode()
    source, target = os.dup(agent.stdout.fileno()), os.dup(agent.stdin.fileno())
    agent.stdin.close()
    agent.stdout.close()
    # The agent begins meanwhile, and what it says first waits in the pipe.
    while not (control / "pid").exists():
        time.sleep(_POLL_SECONDS)
    train = int((control / "pid").read_text(encoding="utf-8"))
    try:
        ResumableStream(secret, source, target).connect((host, int(port)))
    except LostError as error:
        sys.stderr.write(f"scriptmode: the job's agent is lost: {error}\n")
        # The host's agent writes to the one, and reads the other to its end.
        for each in (source, target):
            with suppress(OSError):
                os.close(each)
    try:
        return agent.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        agent.kill()
        return 1
    finally:
        process_tree.kill_tree(train)


if __name__ == "__main__":
    sys.exit(main())
