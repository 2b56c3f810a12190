"""Real ``train`` processes, one for each host, on this machine."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

CHILDREN = Path(__file__).parent / "children"
ENTRYPOINTS = Path(__file__).parents[2] / "entrypoints"
_DROPPED = ("SM_", "SAGEMAKER_", "SCRIPTMODE_", "OMPI_", "PMIX_", "PRTE_", "TF_CONFIG")


def child(name):
    """The text of an ill-behaved child."""
    return (CHILDREN / name).read_text()


class Launcher:
    """One host's ``train``."""

    def __init__(self, base, *, python=sys.executable, also_on_path="", **variables):
        self.base = Path(base)
        self.log = self.base.with_name(self.base.name + ".log")
        env = {key: value for key, value in os.environ.items() if not key.startswith(_DROPPED)}
        path = os.pathsep.join(filter(None, (str(ENTRYPOINTS), also_on_path)))
        env.update(SAGEMAKER_BASE_DIR=str(base), PYTHONPATH=path, **variables)
        command = [python, "-m", "scriptmode_runtime"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT)

    @property
    def pid(self):
        return self.process.pid

    @property
    def output(self):
        return self.log.read_text(errors="replace")

    @property
    def failure(self):
        path = self.base / "output" / "failure"
        return path.read_text() if path.exists() else ""

    def wait(self, timeout=60):
        return self.process.wait(timeout)

    def send(self, number):
        self.process.send_signal(number)

    def says(self, text, timeout=60):
        until(lambda: text in self.output, timeout, lambda: f"{text!r} not in {self.output}")

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(10)


def until(reached, timeout=30, tell=lambda: "not reached"):
    """Poll until ``reached()`` gives something true; give that."""
    deadline = time.monotonic() + timeout
    while True:
        value = reached()
        if value:
            return value
        assert time.monotonic() < deadline, tell()
        time.sleep(0.01)


def alive(pid):
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def holding(text):
    """The processes whose environment holds ``text``."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and text.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return [pid for pid in found if alive(pid)]
