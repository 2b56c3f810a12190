"""Programs that this process runs and waits for, at most until a deadline: then all their processes are killed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, TYPE_CHECKING, NamedTuple

from scriptmode_runtime.processes import process_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: Not the current directory, whose files could shadow the packages that a Python program imports.
_ROOT = os.path.abspath(os.sep)  # noqa: PTH100 - the root, as the operating system calls it
_PIPE_BYTES = 65536


class ProgramResult(NamedTuple):
    """How a program ended, ``code`` as of ``subprocess``, and what it wrote."""

    code: int
    output: str
    errors: str

    @property
    def failure(self) -> str:
        """How it failed, with the last line that it wrote; "" if it succeeded."""
        if not self.code:
            return ""
        how = f"it ended with exit code {self.code}"
        with suppress(ValueError):
            how = f"it ended with signal {signal.Signals(-self.code).name}"
        last_line = (self.errors.strip() or self.output.strip()).rpartition("\n")[2].strip()
        return f"{how}: {last_line}" if last_line else how


class ProgramError(Exception):
    """A program failed; the text is `ProgramResult.failure`."""


@contextmanager
def _started(
    argv: Sequence[str], output: IO[bytes], errors: IO[bytes], cwd: str, env: Mapping[str, str] | None
) -> Iterator[subprocess.Popen[bytes]]:
    # A new session has no terminal on which a program could prompt, and all its processes can be killed together.
    process = subprocess.Popen(
        argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True
    )
    try:
        yield process
    finally:
        process_tree.stop_group(process)


def run_program(
    argv: Sequence[str], seconds: float, *, cwd: str = _ROOT, env: Mapping[str, str] | None = None
) -> ProgramResult:
    """Run a program to its end; raise ``OSError`` if it cannot be started, ``TimeoutError`` after ``seconds``."""
    # Files, not pipes: a process that the program leaves behind, such as ssh, would keep a pipe open.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        with _started(argv, output, errors, cwd, env) as process:
            code = _wait(process, seconds, seconds)
        return ProgramResult(code, _text(output), _text(errors))


def stream_program(argv: Sequence[str], seconds: float, *, env: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a program and yield each line of its output at once; raise as `run_program`, and `ProgramError`."""
    deadline, rest = time.monotonic() + seconds, b""
    with tempfile.TemporaryFile() as errors, ExitStack() as stack:
        reading, writing = os.pipe()
        stack.callback(os.close, reading)
        with os.fdopen(writing, "wb") as output:
            process = stack.enter_context(_started(argv, output, errors, _ROOT, env))
        while select.select([reading], [], [], max(deadline - time.monotonic(), 0.0))[0]:
            if not (chunk := os.read(reading, _PIPE_BYTES)):
                break
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in lines)
        last = rest.decode("utf-8", "replace")
        result = ProgramResult(_wait(process, deadline - time.monotonic(), seconds), last, _text(errors))
        if result.code:
            raise ProgramError(result.failure)
        if last:
            yield last


def _wait(process: subprocess.Popen[bytes], left: float, seconds: float) -> int:
    try:
        return process.wait(max(left, 0.0))
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"it did not end within {seconds:g} s") from None


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
