"""Asks programs, each in a process of its own and with a deadline: what is broken ends them, not this one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Less than the whole examination may take, so that whoever asked still gets to say that there was no answer.
SECONDS = 7.5


@dataclass(frozen=True)
class Answer:
    """What a program wrote; ``code`` is ``None`` where it did not end in time, and ``-n`` for signal n."""

    code: int | None
    output: str
    errors: str

    @property
    def last_line(self) -> str:
        """The last line that it wrote, to its errors if it wrote any."""
        lines = (self.errors.strip() or self.output.strip()).splitlines()
        return lines[-1].strip() if lines else ""

    @property
    def trouble(self) -> str:
        """How it failed, in a sentence; "" where it did not."""
        if self.code == 0:
            return ""
        if self.code is None:
            return f"it did not end within {SECONDS:g} s"
        how = f"exit code {self.code}" if self.code > 0 else _signal(-self.code)
        return f"it ended with {how}" + (f": {self.last_line}" if self.last_line else "")

    def documents(self) -> list[dict[str, Any]]:
        """Give the JSON objects of its output, one a line, as far as it came."""
        found = []
        for line in self.output.splitlines():
            with suppress(ValueError):
                found.append(json.loads(line))
        return [each for each in found if isinstance(each, dict)]


def ask(*argv: str, variables: Mapping[str, str] | None = None) -> Answer:
    """Run a program to its end, for at most `SECONDS`, and everything that it started with it."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                argv,
                # Not in the caller's folder, whose files could stand before the packages asked for.
                cwd=os.path.abspath(os.sep),  # noqa: PTH100 - the root, whatever the platform calls it
                env={**os.environ, **(variables or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            return Answer(1, "", f"{argv[0]} cannot be started: {error.strerror or error}")
        code: int | None = None
        with process:
            try:
                code = process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                _kill(process)
        output.seek(0)
        errors.seek(0)
        return Answer(code, output.read().decode("utf-8", "replace"), errors.read().decode("utf-8", "replace"))


def ask_python(module: str, *words: str, variables: Mapping[str, str] | None = None) -> Answer:
    """Run a module with the interpreter that hosts which are processes have."""
    return ask(sys.executable, "-m", module, *words, variables=variables)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _signal(number: int) -> str:
    try:
        return f"signal {signal.Signals(number).name}"
    except ValueError:
        return f"signal {number}"
