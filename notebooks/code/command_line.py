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
    program_path = Path(sys.executable).with_name(program)
    command = [str(program_path) if program_path.exists() else program, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for text in process.stdout or ():
            print(text, end="", flush=True)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, line)
