"""Programs that are run for a check, each with a deadline: a crash or a hang ends them, not this process."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from scriptmode_runtime.processes import process_tree

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Seconds for the programs of one group of checks together: less than the group has, so that it can still report that
#: a program did not end, and no process is left running.
SECONDS = 7.5
#: TensorFlow's import takes 10 s and more where nothing has compiled it yet, or two cores do all else meanwhile.
IMPORT_SECONDS = 27.0


@dataclass(frozen=True)
class ProgramResult:
    """The output of a program; ``code`` is ``-n`` for signal n, ``None`` with a ``reason`` if it did not end."""

    code: int | None
    output: str = ""
    errors: str = ""
    reason: str = ""

    @property
    def last_line(self) -> str:
        """The last line of its standard error, or of its output if that is empty."""
        lines = (self.errors.strip() or self.output.strip()).splitlines()
        return lines[-1].strip() if lines else ""

    @property
    def problem(self) -> str:
        """How it failed, as text; "" if it succeeded."""
        if self.code == 0:
            return ""
        if self.code is None:
            return self.reason
        how = f"exit code {self.code}" if self.code > 0 else _signal(-self.code)
        return f"it ended with {how}" + (f": {self.last_line}" if self.last_line else "")

    def documents(self) -> list[dict[str, Any]]:
        """Parse the JSON objects of its output, one per line; incomplete lines are skipped."""
        found = []
        for line in self.output.splitlines():
            with suppress(ValueError):
                found.append(json.loads(line))
        return [each for each in found if isinstance(each, dict)]


def deadline(seconds: float | None = None) -> float:
    """Return the time, of ``time.monotonic``, at which programs that run one after another must all have ended."""
    return time.monotonic() + (SECONDS if seconds is None else seconds)


def run_program(*argv: str, variables: Mapping[str, str] | None = None, until: float | None = None) -> ProgramResult:
    """Run a program until it ends, at most until a `deadline`; then kill its process group.

    It is also killed if this process ends earlier, for example by Ctrl-C.
    """
    seconds = max(0.0, (until or deadline()) - time.monotonic())
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                argv,
                # Not in the current directory, whose files could shadow the packages that are imported.
                cwd=os.path.abspath(os.sep),  # noqa: PTH100 - the root, whatever the platform calls it
                env={**os.environ, **(variables or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            return ProgramResult(None, reason=f"{argv[0]} cannot be started: {error.strerror or error}")
        code, reason = _end(process, seconds)
        return ProgramResult(code, _written(output), _written(errors), reason)


def run_module(
    module: str, *words: str, variables: Mapping[str, str] | None = None, until: float | None = None
) -> ProgramResult:
    """Run a module with the interpreter of hosts that are processes."""
    return run_program(sys.executable, "-m", module, *words, variables=variables, until=until)


def _end(process: subprocess.Popen[bytes], seconds: float) -> tuple[int | None, str]:
    """Wait for the process or kill it; return its exit code, or ``None`` and the reason."""
    kill = partial(process_tree.stop_group, process)
    # This may be a daemon thread, which the interpreter ends without running its finally clauses.
    atexit.register(kill)
    try:
        with process:
            try:
                return process.wait(seconds), ""
            except subprocess.TimeoutExpired:
                kill()
                return None, f"it did not end within {seconds:.2g} s"
    finally:
        atexit.unregister(kill)


def _written(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def _signal(number: int) -> str:
    try:
        return f"signal {signal.Signals(number).name}"
    except ValueError:
        return f"signal {number}"
