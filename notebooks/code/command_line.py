"""Commands in a notebook, as in a terminal: what they say is shown while they run."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path


def run(line: str) -> None:
    """Run a command line and show its output; raises ``CalledProcessError`` when it fails.

    A program that lies beside this Python is run, whatever PATH says: it is of the same environment.
    """
    program, *words = shlex.split(line)
    beside = Path(sys.executable).with_name(program)
    command = [str(beside) if beside.exists() else program, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for said in process.stdout or ():
            print(said, end="", flush=True)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, line)
