"""Someone who types in what a document shows, from its first line to its last, and looks at what comes."""

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
#: Seconds for one command.
PATIENCE = 240
_NUMBER = re.compile(r"\d[\d,.:]*")
_NAME = re.compile(r"[a-z][a-z-]*-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d-\d{3}")
#: Keeps folder and variables for the next command.
_SCRIPT = """
set -a; cd "$(cat "$READER/folder")"; [ ! -e "$READER/variables" ] || source "$READER/variables"
{command}
code=$?
pwd >"$READER/folder"; declare -px >"$READER/variables"
exit $code
"""


class MismatchError(AssertionError):
    """A document says something else than what happens."""


@dataclass
class Reader:
    """Reads one document in a folder of its own; ``state`` is a folder for what lies between two commands."""

    folder: Path
    state: Path
    environment: dict[str, str]
    _python: subprocess.Popen[str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.state.mkdir()
        (self.state / "folder").write_text(f"{self.folder}\n")

    def read(self, block: Block) -> None:
        """Do what a block says; raise `MismatchError`."""
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
        """Run a command of a shell; give its exit code and all it wrote."""
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
            output = process.communicate(timeout=PATIENCE)[0]
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        return process.returncode, output

    def close(self) -> None:
        """End the Python session."""
        if self._python is not None:
            self._python.communicate(timeout=30)

    def _run_console(self, block: Block) -> None:
        """Run each line that begins with ``$``; what follows it is what it writes, and a failure is asked for."""
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
    """Stop a job that a document left running, however it ends: it may complete before it hears of it."""
    with suppress(TrainingJobError):
        job.stop()
        job.wait(60)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console's text, and the lines that it is said to write."""
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
    """Say whether the expected lines are in the output, one after another, numbers and names of jobs aside.

    ``...`` in a line stands for anything in it, as a line for any lines; nothing expected agrees with everything.
    """
    parts = [masked(line) for line in expected.strip().splitlines()]
    pattern = "".join(
        r"(?:.*\n)*?" if part == "..." else re.escape(part).replace(r"\.\.\.", ".*?") + r"\n" for part in parts
    )
    text = "".join(f"{masked(line)}\n" for line in output.splitlines())
    return re.search(rf"^{pattern}", text, re.MULTILINE) is not None


def masked(line: str) -> str:
    """Give a line with its spaces drawn together, and without what differs from run to run."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
    ellipsis = "\0"
    plain = _NAME.sub("NAME", plain.replace("...", ellipsis))
    return re.sub(r"\s+", " ", _NUMBER.sub("N", plain)).strip().replace(ellipsis, "...")
