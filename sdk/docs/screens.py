"""Regenerate the screens in the guides: the output of real jobs in a terminal and in a notebook.

    python sdk/docs/screens.py [NAME...]

A screen is the text between ``<!-- screen: NAME -->`` and ``<!-- end -->``. Its commands run in a terminal emulator,
and paths of this machine are replaced by typical ones. Without names all screens are generated, and the pictures: the
animated live view, and a job's card, which needs Chromium.
"""  # noqa: INP001 - a program, no package

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Callable

sys.path.insert(0, str(Path(__file__).resolve().parent))

from animation import LAST, Frame, animate, capture_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted((ROOT / "sdk" / "docs" / "guides").glob("*.md"))
PICTURES = ROOT / "sdk" / "docs" / "pictures"
MARKED = re.compile(
    r"(<!-- screen: (?P<name>[a-z_]+) -->\n```(?:text|console)\n)(?P<text>.*?)(```\n<!-- end -->)", re.DOTALL
)
#: Columns that a page shows without scrolling, and enough lines for the output of a whole command.
WIDTH, TALL = 110, 400
#: Columns for tables with long lines.
WIDE = 190
CARD_SIZE = "800,330"
CARD_STYLE = "body { font-family: system-ui, sans-serif; margin: 12px; width: 776px }"
CHROMIUM = "chromium"
#: Time limit of a command, in seconds.
TIMEOUT = 180.0
#: Size of the terminal of the animation, the shortest and the longest time between its frames in seconds, and its file.
ANIMATED_WIDTH, ANIMATED_LINES, SHORTEST, LONGEST = 100, 20, 0.2, 0.35
ANIMATION = PICTURES / "live.svg"

#: The command whose live view is animated; its data and its program are those of the README.
DATA = "mkdir data; seq 1000 > data/numbers.txt"
MIRRORED = "--instance-count 2 --distribution multi-worker-mirrored"
FIRST = f"scriptmode run train.py {MIRRORED} --input train=data --metric keras"
FASHION = (
    "scriptmode run train_ps.py --source-dir notebooks/code --instance-count 2"
    " --distribution parameter-server --coordinator"
    " --input train=notebooks/data/fashion_mnist/train --input eval=notebooks/data/fashion_mnist/eval"
    " -p epochs=12 --metric 'accuracy= accuracy=([0-9.]+)' --metric 'loss=loss=([0-9.]+)' --job-name fashion-1"
)
LINE = (
    'mkdir points; for x in 1 2 3 4 5 6; do echo "$x $((2 * x + 1))"; done > points/part-0; scriptmode run line.py'
    " --input train=points --hyperparameter epochs=40 --metric 'loss=loss=([0-9.]+)' --job-name line-1"
)
SLOW = "scriptmode run slow.py --job-name slow-1 --no-wait; scriptmode stop slow-1 --wait"
WORDS = f"scriptmode run words.py {MIRRORED} --job-name words-1"
ELSEWHERE = (
    " --region eu-west-1 --image-uri team/training:1 --role arn:aws:iam::123456789012:role/training"
    " --output-path s3://bucket/models --input train=s3://bucket/train/"
)
PLAN = f"scriptmode plan words.py --instance-type ml.c5.2xlarge {MIRRORED}{ELSEWHERE}"
#: The documents with the screens' programs: blocks of Python whose first line is the file's name.
WITH_PROGRAMS = [ROOT / "README.md", ROOT / "sdk" / "docs" / "guides" / "getting_started.md"]
PROGRAM = re.compile(r"^```python\n(?P<text># (?P<name>\w+\.py)\n.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Terminal:
    """A terminal in a directory like a clone; jobs are stored in a data directory beside it."""

    folder: Path
    environment: Mapping[str, str]

    def read(
        self,
        command: str,
        *,
        lines: int = TALL,
        width: int = WIDTH,
        until: Callable[[list[str]], bool] | None = None,
    ) -> list[str]:
        """Return what the terminal shows when the command ends, or as soon as ``until`` returns True for its lines."""
        import pyte

        screen = pyte.Screen(width, lines)
        stream = pyte.ByteStream(screen)
        shown: list[str] = []
        for chunk in self._output(command, lines, width):
            stream.feed(chunk)
            shown = [line.rstrip() for line in screen.display]
            if until is not None and until(shown):
                break
        return [self.plain(line) for line in _trimmed(shown)]

    def record(self, command: str) -> list[Frame]:
        """Return the frames that the terminal shows while the command runs."""
        import pyte

        screen = pyte.Screen(ANIMATED_WIDTH, ANIMATED_LINES)
        stream = pyte.ByteStream(screen)
        shown, since, frames = capture_lines(screen), time.monotonic(), []
        for chunk in self._output(command, ANIMATED_LINES, ANIMATED_WIDTH):
            stream.feed(self._typical(chunk))
            now = time.monotonic()
            lines = capture_lines(screen)
            if lines != shown and now - since >= SHORTEST:
                frames.append(Frame(shown, min(now - since, LONGEST)))
                shown, since = lines, now
        return [*frames, Frame(capture_lines(screen), LAST)]

    def has(self, job: str) -> bool:
        """Return whether the job exists."""
        return Path(self.environment["SCRIPTMODE_DATA_DIR"], "jobs", job).is_dir()

    def plain(self, line: str) -> str:
        """Replace paths of this machine by typical ones."""
        line = self._typical(line.encode()).decode()
        return re.sub(r"(Linux \d+\.\d+)\S*", r"\1", line)

    def _typical(self, output: bytes) -> bytes:
        data = self.environment["SCRIPTMODE_DATA_DIR"]
        for place, name in (
            (f"file://{data}", "file:///home/me/.local/share/scriptmode"),
            (data, "~/.local/share/scriptmode"),
            (str(self.folder), "~/scriptmode"),
            (sys.prefix, "~/scriptmode/.venv"),
            (str(ROOT), "~/scriptmode"),
        ):
            output = output.replace(place.encode(), name.encode())
        return output

    def _output(self, command: str, lines: int, width: int) -> Iterator[bytes]:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, width, 0, 0))
        environment = dict(self.environment, COLUMNS=str(width), LINES=str(lines))
        process = subprocess.Popen(
            ["/bin/bash", "-c", command], cwd=self.folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        try:
            yield from _chunks(ours, time.monotonic() + TIMEOUT)
        finally:
            os.close(ours)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _chunks(descriptor: int, deadline: float) -> Iterator[bytes]:
    while time.monotonic() < deadline:
        if not select.select([descriptor], [], [], 1.0)[0]:
            continue
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # EIO: the other end is closed
            return
        if not chunk:
            return
        yield chunk
    raise SystemExit(f"a command did not end within {TIMEOUT:.0f} s")


def _trimmed(lines: list[str]) -> list[str]:
    """Remove the empty lines at both ends."""
    text = "\n".join(lines).strip("\n")
    return text.split("\n")


def live(terminal: Terminal) -> list[str]:
    """Show a job while it trains."""
    shown = terminal.read(FASHION, lines=18, until=lambda lines: any("epoch 8:" in line for line in lines))
    terminal.read("scriptmode logs -f fashion-1")
    return shown


def failure(terminal: Terminal) -> list[str]:
    """Show how a failure is reported."""
    *shown, code = terminal.read(f"{WORDS}; echo $?", width=WIDE)
    return [*_wrapped(WORDS), *shown, "$ echo $?", code]


def job_list(terminal: Terminal) -> list[str]:
    """List jobs with different outcomes, in a separate data directory."""
    data = Path(terminal.environment["SCRIPTMODE_DATA_DIR"]).with_name("listed")
    alone = replace(terminal, environment={**terminal.environment, "SCRIPTMODE_DATA_DIR": str(data)})
    for name, command in (("line-1", LINE), ("slow-1", SLOW), ("words-1", WORDS)):
        if not alone.has(name):
            alone.read(command)
    return _session(alone, "scriptmode list --limit 3")


def plan(terminal: Terminal) -> list[str]:
    """Plan a job for Amazon SageMaker."""
    return _session(terminal, PLAN)


def animation(terminal: Terminal) -> None:
    """Save the animated picture of a job's live view, with the command above it."""
    prompt = "; ".join(f"printf '%s\\n' {shlex.quote(line)}" for line in _wrapped(FIRST, ANIMATED_WIDTH))
    frames = terminal.record(f"{DATA}; {prompt}; {FIRST}")
    title = "A training job on two hosts in the terminal, from start to end"
    ANIMATION.write_text(animate(frames, ANIMATED_WIDTH, title))


def card(terminal: Terminal) -> None:
    """Save a picture of a job's card as a notebook displays it."""
    if not terminal.has("fashion-1"):
        terminal.read(FASHION)
    program = "from scriptmode import TrainingJob; print(TrainingJob.attach('fashion-1')._repr_html_())"
    html = subprocess.check_output([sys.executable, "-c", program], env=terminal.environment, text=True)
    page = terminal.folder / "card.html"
    page.write_text(f'<!doctype html><meta charset="utf-8"><style>{CARD_STYLE}</style>{terminal.plain(html)}')
    _photograph(page.as_uri(), "card.png", CARD_SIZE)


def _photograph(address: str, name: str, size: str) -> None:
    subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--window-size={size}", f"--screenshot={PICTURES / name}", address,
        ],
        check=True, capture_output=True, timeout=TIMEOUT,
    )  # fmt: skip


def _session(terminal: Terminal, command: str) -> list[str]:
    return [*_wrapped(command), *terminal.read(command, width=WIDE)]


def _wrapped(command: str, width: int = WIDTH) -> list[str]:
    """Split a long command before its options."""
    lines = [f"$ {command}"]
    while len(lines[-1]) > width:
        place = lines[-1].rfind(" -", 0, width - 2)
        lines[-1:] = [f"{lines[-1][:place]} \\", f"   {lines[-1][place:]}"]
    return lines


SCREENS: dict[str, Callable[[Terminal], list[str]]] = {
    "live": live,
    "failure": failure,
    "list": job_list,
    "plan": plan,
}


#: Pictures, which are written to files of their own.
DRAWN: dict[str, Callable[[Terminal], None]] = {"animation": animation, "card": card}


def rewritten(text: str, screens: Mapping[str, str]) -> str:
    """Return a document with these screens."""
    return MARKED.sub(lambda found: found[1] + screens.get(found["name"], found["text"]) + found[4], text)


def main(names: list[str]) -> None:
    """Generate the named screens, or all screens and the picture, and write them to the documents."""
    with tempfile.TemporaryDirectory() as folder:
        terminal = terminal_in(Path(folder))
        screens = {
            name: "\n".join(show(terminal)) + "\n" for name, show in SCREENS.items() if not names or name in names
        }
        for name, draw in DRAWN.items():
            if not names or name in names:
                draw(terminal)
    for document in DOCUMENTS:
        document.write_text(rewritten(document.read_text(), screens))


def terminal_in(place: Path) -> Terminal:
    """Create a directory like a clone with the screens' programs; return a terminal in it."""
    folder = place / "scriptmode"
    folder.mkdir()
    (folder / "notebooks").symlink_to(ROOT / "notebooks")
    for program in PROGRAM.finditer("\n".join(document.read_text() for document in WITH_PROGRAMS)):
        (folder / program["name"]).write_text(program["text"])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SCRIPTMODE_"))}
    return Terminal(
        folder,
        {
            **kept,
            "HOME": str(place),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "SCRIPTMODE_DATA_DIR": str(place / "data"),
            "TERM": "xterm-256color",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        },
    )


if __name__ == "__main__":
    main(sys.argv[1:])
