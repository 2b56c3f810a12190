"""Execute a document's blocks in order, and compare their output with the document."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outside.comparison import agrees

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docs.documents import Block

SESSION = Path(__file__).with_name("python_session.py")
#: Time limit of a command and of a block of Python, in seconds.
TIMEOUT = 600
#: Runs a command, and stores its working directory and variables for the next one.
_SCRIPT = """
set -a; cd "$(cat "$READER/folder")"; [ ! -e "$READER/variables" ] || source "$READER/variables"
{command}
code=$?
pwd >"$READER/folder"; declare -px >"$READER/variables"
exit $code
"""


class MismatchError(AssertionError):
    """A block failed, or its output differs from the document."""


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
        """Execute a block; raise `MismatchError` if it fails or its output differs."""
        if block.file:
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        elif block.language == "python":
            self._run_python(block)
        elif block.language == "bash":
            code, output = self.run(f"set -e\n{block.text}")
            if code:
                raise MismatchError(f"line {block.line}: exit code {code}\n{output}")
        elif block.language == "console":
            self._run_console(block)

    def failure(self, block: Block) -> MismatchError | None:
        """Execute a block; return what differs, or ``None``."""
        try:
            self.read(block)
        except MismatchError as error:
            return error
        return None

    def run(self, command: str) -> tuple[int, str]:
        """Run a shell command; return its exit code and its output."""
        process = subprocess.Popen(
            ["bash", "-c", _SCRIPT.replace("{command}", command)], env={**self.environment, "READER": str(self.state)},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            start_new_session=True,
        )  # fmt: skip
        try:
            output = process.communicate(timeout=TIMEOUT)[0]
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise MismatchError(f"$ {command}\nnot finished after {TIMEOUT} s") from error
            raise
        return process.returncode, output

    def close(self) -> None:
        """Stop the Python session."""
        if self._python is not None:
            self._python.communicate(timeout=600)

    def _run_console(self, block: Block) -> None:
        """Run each line that begins with ``$``; the next lines are its output, and ``$ echo $?`` expects its exit code.

        The output of a screen is not compared: it is that of a terminal.
        """
        code = 0
        steps = list(commands(block.text))
        for (command, expected), following in zip(steps, [*steps[1:], ("", "")]):
            if command == "echo $?":
                output = f"{code}\n"
            else:
                code, output = self.run(command)
                if code and following[0] != "echo $?":
                    raise MismatchError(f"line {block.line}: $ {command}\nexit code {code}\n{output}")
            if (not block.screen or command == "echo $?") and not agrees(expected, output, block.tolerance):
                raise MismatchError(f"line {block.line}: $ {command}\nexpected:\n{expected}\nfound:\n{output}")

    def _run_python(self, block: Block) -> None:
        """Run a block; a comment ``# -> TEXT`` expects what the statement on its line prints, or its value."""
        answer = self._ask_python(block)
        lines = block.text.splitlines()
        for first, last, output in answer.get("printed", ()):
            comments = (re.search(r"  # -> (.+)", line) for line in lines[first - block.line - 1 : last - block.line])
            expected = "\n".join(comment[1] for comment in comments if comment)
            if not agrees(expected, output, block.tolerance):
                raise MismatchError(f"line {first}: expected:\n{expected}\nfound:\n{output}")
        if answer.get("failure"):
            raise MismatchError(f"line {block.line}: {answer['failure']}")

    def _ask_python(self, block: Block) -> dict[str, Any]:
        if self._python is None:
            self._python = subprocess.Popen(
                # Its text, not its file, whose directory would be the first that Python imports from.
                ["python", "-c", SESSION.read_text()],
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
        if not select.select([self._python.stdout], [], [], TIMEOUT)[0]:
            self._python.kill()
            self._python.wait()
            self._python = None
            raise MismatchError(f"line {block.line}: not finished after {TIMEOUT} s")
        answer: dict[str, Any] = json.loads(self._python.stdout.readline() or '{"failure": "Python ended"}')
        return answer


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
