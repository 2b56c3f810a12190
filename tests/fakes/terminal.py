"""A terminal: a program runs in a pseudo-terminal, and an emulator shows what it writes."""

import fcntl
import os
import struct
import subprocess
import termios
from contextlib import closing

from fakes.processes import until
from pyte import ByteStream, HistoryScreen


class Terminal:
    """A terminal in which a command was started, and what it shows."""

    def __init__(self, columns, rows, command, variables, **options):
        self.screen = HistoryScreen(columns, rows, history=100_000)
        self._stream = ByteStream(self.screen)
        self._ours, theirs = os.openpty()
        self.resize(columns, rows)
        os.set_blocking(self._ours, False)
        #: The bytes that were read.
        self.raw = bytearray()
        # The variable, which readline sets for every child, would hide the terminal's width.
        inherited = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        environment = {**inherited, "TERM": "xterm-256color", **variables}
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, **options)
        os.close(theirs)

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        """Press keys."""
        os.write(self._ours, text.encode())

    def read(self):
        """Read some of what was written, at times sooner than it is emulated; return whether there may be more."""
        try:
            chunk = os.read(self._ours, 65536)
        except BlockingIOError:
            return True
        except OSError:
            # EIO: no process has the other end open any more.
            return False
        self.raw += chunk
        self._stream.feed(chunk)
        return bool(chunk)

    def wait(self):
        """Read until the command has ended; return its exit code."""
        until(lambda: (self.read(), self.process.poll() is not None)[1])
        until(lambda: not self.read())
        return self.process.returncode

    def text(self):
        """What was read, with the escape sequences."""
        return self.raw.decode(errors="replace").replace("\r\n", "\n")

    def feed(self, written):
        """Show what another program writes."""
        self._stream.feed(written)

    def shown(self):
        return [line.rstrip() for line in self.screen.display]

    def all_lines(self):
        """What scrolled out of the screen, and the screen."""
        before = [
            "".join(line[column].data for column in range(self.screen.columns)).rstrip()
            for line in self.screen.history.top
        ]
        return before + self.shown()

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


def in_terminal(command, variables=None, columns=80):
    """Return what a command writes to a terminal until its end."""
    with closing(Terminal(columns, 24, command, variables or {})) as terminal:
        terminal.wait()
        return terminal.text()
