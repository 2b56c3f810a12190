"""The log of an agent, the lines that agents add to hosts' logs, and what is missing from these."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from scriptmode._core.spec.service_values import JobEvent
from scriptmode._core.text.messages import format_bytes
from scriptmode_local._data.regular_files import open_regular, open_to_append
from scriptmode_local._store.host_logs import CHUNK, UNFINISHED
from scriptmode_runtime._processes import log_backlog

if TYPE_CHECKING:
    import re

    from scriptmode_local._store.state import JobState


def append_line(path: Path, line: str) -> None:
    """Append a separate line to a log whose last line may lack its line feed; raise ``OSError``."""
    with open_to_append(path) as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - 1))
        start = b"" if log.read(1) in (b"", b"\n") else b"\n"
        log.write(start + line.encode("utf-8", "replace") + b"\n")


def write_line(text: str) -> None:
    """Write a line to the log of this agent: its ``sys.stderr``, whose writes never fail in the agent of a job."""
    sys.stderr.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")
    sys.stderr.flush()


class AgentLog:
    """Log of a job's agent for what users should read, which is in the hosts' logs, too."""

    def __init__(self, log_of: Callable[[str], Path], hosts: Collection[str]) -> None:
        self._log_of = log_of
        self._hosts = hosts

    def tell_user(self, text: str) -> None:
        """Write a line, also to the first host's log, after the output of the host itself."""
        self.tell_host(next(iter(self._hosts)), text)

    def tell_host(self, host: str, text: str) -> None:
        """Write a line, also to a host's log if that can be written."""
        write_line(text)
        with suppress(OSError):
            append_line(self._log_of(host), f"scriptmode: {text}")


def describe_loss(path: Path, host: str) -> str:
    """Return what of a log could not be written, from the notices that the launcher left in it; "" for a whole log."""
    lines = count = 0
    reason = ""
    with suppress(OSError), open_regular(path) as file:
        for notice in _find_notices(file):
            lines, count = lines + int(notice[1]), count + int(notice[2])
            reason = notice[3].decode("utf-8", "replace").strip()
    amount = f"{lines:,} line{'s' * (lines != 1)} ({format_bytes(count)})"
    return f"{amount} of the log of {host} could not be written: {reason}" if count else ""


def with_losses(state: JobState, logs: Mapping[str, Path]) -> JobState:
    """Return the state with an event for each log, by host, from which lines are missing."""
    for host, path in logs.items():
        if text := describe_loss(path, host):
            state = state.with_event(JobEvent("LogLost", text, host, time=time.time()))
    return state


def _find_notices(file: BinaryIO) -> Iterator[re.Match[bytes]]:
    rest = b""
    while chunk := file.read(CHUNK):
        text = rest + chunk
        end = text.rfind(b"\n") + 1
        # The expression alone takes more than ten times as long.
        if log_backlog.MISSING in text:
            yield from log_backlog.NOTICE.finditer(text, 0, end)
        rest = text[end:][-UNFINISHED:]
    yield from log_backlog.NOTICE.finditer(rest)
