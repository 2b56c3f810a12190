"""Programs that this process runs and waits for, at most until a deadline: then all their processes are killed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, NamedTuple

from scriptmode_runtime._processes import process_tree

#: Not the current directory, whose files could shadow the packages that a Python program imports.
_ROOT = os.path.abspath(os.sep)  # noqa: PTH100 - the root, as the operating system calls it


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


def run_program(
    argv: Sequence[str], seconds: float, *, cwd: str = _ROOT, env: Mapping[str, str] | None = None
) -> ProgramResult:
    """Run a program to its end; raise ``OSError`` if it cannot be started, ``TimeoutError`` after ``seconds``."""
    # Files, not pipes: a process that the program leaves behind, such as ssh, would keep a pipe open.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        # A new session has no terminal on which a program could prompt, and all its processes can be killed together.
        process = subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True
        )
        try:
            code = process.wait(0 if _await_end(process.pid, seconds) else seconds)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"it did not end within {seconds:g} s") from None
        finally:
            process_tree.stop_group(process)
        return ProgramResult(code, _text(output), _text(errors))


def _await_end(pid: int, seconds: float) -> bool:
    """Wait at most ``seconds`` for a child's end, which `Popen.wait` notices 50 ms late; return whether it could."""
    if sys.platform == "linux":
        # A Python that was built on an older Linux, such as Conda's, has no pidfd_open.
        with suppress(AttributeError, OSError), os.fdopen(os.pidfd_open(pid), "rb") as child:
            poll = select.poll()
            poll.register(child, select.POLLIN)
            poll.poll(seconds * 1000)
            return True
    return False


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
