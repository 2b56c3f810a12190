"""Execute a document's blocks in order, and compare their output with the document."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode.errors import TrainingJobError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docs.documents import Block

    from scriptmode import TrainingJob

HERE = Path(__file__).parent
#: Time limit of a command, in seconds.
TIMEOUT = 240
_NUMBER = re.compile(r"\d[\d,.:]*")
_NAME = re.compile(r"[a-z][a-z-]*-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d-\d{3}")
#: Runs a command, and stores its working directory and variables for the next one.
_SCRIPT = """
set -a; cd "$(cat "$READER/folder")"; [ ! -e "$READER/variables" ] || source "$READER/variables"
{command}
code=$?
pwd >"$READER/folder"; declare -px >"$READER/variables"
exit $code
"""


class MismatchError(AssertionError):
    """The output of a command differs from the document."""


@dataclass
class Reader:
    """Executes one document in its own directory; the directory ``state`` stores what passes from command to command."""

    folder: Path
    state: Path
    environment: dict[str, str]
    _python: subprocess.Popen[str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.state.mkdir()
        (self.state / "folder").write_text(f"{self.folder}\n")

    def read(self, block: Block) -> None:
        """Execute a block; raise `MismatchError` if its output differs."""
        if block.file:
            place = self.folder / block.file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(block.text)
        elif block.language == "python":
            self._run_python(block)
        elif block.language == "bash":
            code, output = self.run(f"set -e\n{block.text}")
            if code:
                raise MismatchError(f"line {block.line}: exit code {code}\n{output}")
        elif block.language == "console":
            self._run_console(block)

    def run(self, command: str) -> tuple[int, str]:
        """Run a shell command; return its exit code and its output."""
        process = subprocess.Popen(
            ["bash", "-c", _SCRIPT.replace("{command}", command)],
            env={**self.environment, "READER": str(self.state)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output = process.communicate(timeout=TIMEOUT)[0]
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        return process.returncode, output

    def close(self) -> None:
        """Stop the Python session."""
        if self._python is not None:
            self._python.communicate(timeout=30)

    def _run_console(self, block: Block) -> None:
        """Run each line that begins with ``$``; the next lines are its output, and ``$ echo $?`` expects its exit code."""
        code = 0
        steps = list(commands(block.text))
        for (command, expected), following in zip(steps, [*steps[1:], ("", "")]):
            if command == "echo $?":
                output = f"{code}\n"
            else:
                code, output = self.run(command)
                if code and following[0] != "echo $?":
                    raise MismatchError(f"line {block.line}: $ {command}\nexit code {code}\n{output}")
            if not agrees(expected, output):
                raise MismatchError(f"line {block.line}: $ {command}\nexpected:\n{expected}\nfound:\n{output}")

    def _run_python(self, block: Block) -> None:
        if self._python is None:
            self._python = subprocess.Popen(
                [sys.executable, str(HERE / "python_session.py")],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._python.stdin
        assert self._python.stdout
        self._python.stdin.write(json.dumps({"code": block.text, "line": block.line}) + "\n")
        self._python.stdin.flush()
        answer: dict[str, Any] = json.loads(self._python.stdout.readline() or '{"failure": "Python ended"}')
        if answer.get("failure"):
            raise MismatchError(f"line {block.line}: {answer['failure']}")


def end(job: TrainingJob) -> None:
    """Stop a job that a document left running; it may complete before the stop reaches it."""
    with suppress(TrainingJobError):
        job.stop()
        job.wait(60)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block and its expected output."""
    command: str | None = None
    expected: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            if command is not None:
                yield command, "\n".join(expected)
            command, expected = line[2:], []
        elif command is not None and command.endswith("\\"):
            command = f"{command}\n{line.removeprefix('> ')}"
        else:
            expected.append(line)
    if command is not None:
        yield command, "\n".join(expected)


def agrees(expected: str, output: str) -> bool:
    """Return whether the output contains the expected lines in order, apart from numbers and names of jobs.

    ``...`` matches any text in a line, and as a line any lines. An empty expectation matches everything.
    """
    parts = [masked(line) for line in expected.strip().splitlines()]
    pattern = "".join(
        r"(?:.*\n)*?" if part == "..." else re.escape(part).replace(r"\.\.\.", ".*?") + r"\n" for part in parts
    )
    text = "".join(f"{masked(line)}\n" for line in output.splitlines())
    return re.search(rf"^{pattern}", text, re.MULTILINE) is not None


def masked(line: str) -> str:
    """Return a line with single spaces, and without numbers and names that differ from run to run."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
    ellipsis = "\0"
    plain = _NAME.sub("NAME", plain.replace("...", ellipsis))
    return re.sub(r"\s+", " ", _NUMBER.sub("N", plain)).strip().replace(ellipsis, "...")
