"""Programs that are run for a check, each with a deadline: a crash or a hang ends them, not this process."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from scriptmode_runtime.processes import process_tree

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Seconds for the programs of one row of checks together: less than the row has, so that it can still report that a
#: program did not end, and no process is left running.
SECONDS = 7.5
#: TensorFlow's import takes 10 s and more where nothing has compiled it yet, or two cores do all else meanwhile.
IMPORT_SECONDS = 27.0


@dataclass(frozen=True)
class ProgramResult:
    """The output of a program, and how it failed, "" if it succeeded."""

    output: str = ""
    errors: str = ""
    failure: str = ""

    @property
    def problem(self) -> str:
        """How it failed, with the last line that it wrote; "" if it succeeded."""
        return ": ".join(filter(None, (self.failure, self.last_line))) if self.failure else ""

    @property
    def last_line(self) -> str:
        """The last line of its standard error, or of its output if that is empty."""
        return (self.errors.strip() or self.output.strip()).rpartition("\n")[2].strip()

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
    started: list[subprocess.Popen[bytes]] = []
    starting = threading.Lock()

    def kill() -> None:
        # The interpreter may end while the program is being started.
        with starting:
            for process in started:
                process_tree.stop_group(process)

    with ExitStack() as stack:
        # Files, not pipes: a process that the program leaves behind would keep a pipe open.
        output, errors = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        # This may be a daemon thread, which the interpreter ends without running its finally clauses.
        stack.callback(atexit.unregister, atexit.register(kill))
        try:
            with starting:
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
                started.append(process)
        except OSError as error:
            return ProgramResult(failure=f"{argv[0]} cannot be started: {error.strerror or error}")
        with process:
            try:
                failure = _how(process.wait(seconds))
            except subprocess.TimeoutExpired:
                kill()
                failure = f"it did not end within {seconds:.2g} s"
        return ProgramResult(_text(output), _text(errors), failure)


def run_module(
    module: str, *words: str, variables: Mapping[str, str] | None = None, until: float | None = None
) -> ProgramResult:
    """Run a module with the interpreter of hosts that are processes."""
    return run_program(sys.executable, "-m", module, *words, variables=variables, until=until)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def _how(code: int) -> str:
    if code >= 0:
        return f"it ended with exit code {code}" if code else ""
    with suppress(ValueError):
        return f"it ended with signal {signal.Signals(-code).name}"
    return f"it ended with signal {-code}"
