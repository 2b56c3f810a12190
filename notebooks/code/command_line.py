"""Commands in a notebook: their output is shown while they run."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path


def run(line: str) -> None:
    """Run a command line and show its output; raise ``CalledProcessError`` if it fails.

    A program in the directory of this Python interpreter takes precedence over PATH: it is in the same environment.
    """
    program, *words = shlex.split(line)
    beside = Path(sys.executable).with_name(program)
    command = [str(beside) if beside.exists() else program, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for said in process.stdout or ():
            print(said, end="", flush=True)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, line)
