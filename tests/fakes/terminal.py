"""A terminal: a program runs in a pseudo-terminal, and an emulator shows what it writes."""

import fcntl
import os
import struct
import subprocess
import termios
from contextlib import suppress

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
        environment = {**os.environ, "TERM": "xterm-256color", **variables}
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, **options)
        os.close(theirs)

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        """Press keys."""
        os.write(self._ours, text.encode())

    def read(self):
        """Read what was written; return whether there may be more."""
        with suppress(BlockingIOError):
            try:
                while chunk := os.read(self._ours, 65536):
                    self.raw += chunk
                    self._stream.feed(chunk)
            except OSError as error:
                # EIO: no process has the other end open any more.
                if isinstance(error, BlockingIOError):
                    raise
                return False
        return True

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
