"""Real ``train`` processes, one for each host, on this machine."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from fakes.host_folders import write_host
from fakes.processes import processes_naming, until
from fakes.promptness import GENEROUS

#: The processes whose command line or environment names a text.
holding = processes_naming
CHILDREN = Path(__file__).parent / "children"
ENTRYPOINTS = Path(__file__).parents[2] / "entrypoints"
_DROPPED = ("SM_", "SAGEMAKER_", "SCRIPTMODE_", "OMPI_", "PMIX_", "PRTE_", "TF_CONFIG")


def child(name):
    """The text of an ill-behaved child."""
    return (CHILDREN / name).read_text()


def host(folder, script, **hyperparameters):
    """Write the folder of a host that runs one Python script."""
    return write_host(
        Path(folder) / "algo-1", code={"train.py": script}, sagemaker_program="train.py", **hyperparameters
    )


class Training:
    """What ``train`` wrote: ``log``, and the files below ``base``."""

    @property
    def output(self):
        return self.log.read_text(errors="replace")

    @property
    def failure(self):
        path = self.base / "output" / "failure"
        return path.read_text() if path.exists() else ""


class Launcher(Training):
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

    def wait(self, timeout=GENEROUS):
        return self.process.wait(timeout)

    def send(self, number):
        self.process.send_signal(number)

    def says(self, text, timeout=GENEROUS):
        """Wait until the output has a text; fail at once where the launcher ended without it."""

        def said():
            has_ended = self.process.poll() is not None  # before the output is read
            assert text in self.output or not has_ended, f"ended with {self.process.returncode}: {self.output}"
            return text in self.output

        until(said, timeout, lambda: f"{text!r} not in {self.output}")

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(GENEROUS)


def alive(pid):
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
