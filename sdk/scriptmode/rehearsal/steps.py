"""The steps that a job's log names: how far a run came, and from where the next one goes on."""

from __future__ import annotations

import re
import time
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from scriptmode.core.spec.metric_definitions import LogPositions
from scriptmode.platforms.local.store.host_logs import STARTS_AGAIN, LogReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scriptmode.core.spec.job_request import JobRequest
    from scriptmode.platforms.local.store.job_store import JobFolder

_OF_RUNTIME = "scriptmode:"
#: A launcher's line about processes that had not ended when the grace period was over.
_KILLED = re.compile(r"scriptmode: process.* killed, not having ended within .* of SIGTERM")
_EXIT_CODE = re.compile(r"script ended with exit code (\d+)")
#: The last line of a stack that a launcher logs of a process that hangs.
STACK_LINE = re.compile(r'File "[^"]*/code/([^"]+)", line (\d+)')
#: A line that names the step from which a program goes on, as opposed to one that it made.
_RESUMED = re.compile(r"\b(resum|restor|continu|load|from\b)", re.IGNORECASE)
#: What Keras prints before an epoch.
_HEADING = re.compile(r"\s*Epoch \d+/\d+\s*$")


class Mark(NamedTuple):
    """A line of a log that names a step: when it was read, the step, the epoch, and what the line says of them."""

    time: float
    step: int | None
    epoch: int | None
    is_resumed: bool
    is_heading: bool


class Count:
    """How a program counts in the lines of an undisturbed run."""

    def __init__(self, marks: Sequence[Mark]) -> None:
        self.unit = "step" if any(each.step is not None for each in marks) else "epoch"
        numbers = [number for each in marks if not each.is_resumed and (number := self._number(each)) is not None]
        self._first = numbers[0] if numbers else 0
        gaps = [later - earlier for earlier, later in zip(numbers, numbers[1:]) if later > earlier]
        #: Steps between two lines that name one.
        self.interval = min(gaps, default=1)
        #: The steps of the whole run; 0 for a program whose lines name none. The last heading is above an epoch.
        self.total = max((self.done(each) + each.is_heading for each in marks), default=0)
        made = self.total - self.done(marks[0]) if marks else 0
        #: Seconds of a step; 0 where they are unknown.
        self.seconds = (marks[-1].time - marks[0].time) / made if made > 0 else 0.0

    def _number(self, mark: Mark) -> int | None:
        return mark.step if self.unit == "step" else mark.epoch

    def done(self, mark: Mark) -> int:
        """Return how many steps a program had made when it wrote the line."""
        number = self._number(mark)
        if number is None:
            return 0
        if mark.is_resumed:
            return number
        if mark.is_heading:
            return number - 1
        return number + self.interval if self._first == 0 else number

    def done_at(self, marks: Sequence[Mark], moment: float) -> int:
        """Return how many steps a run had made at a moment, those since the last line by the seconds of a step."""
        before = [each for each in marks if each.time <= moment]
        if not before:
            return 0
        since = int((moment - before[-1].time) / self.seconds) if self.seconds else 0
        return self.done(before[-1]) + min(self.interval - 1, since)

    def between_saves(self, marks: Sequence[Mark], saves: Sequence[float]) -> tuple[int, float]:
        """Return the steps and the seconds from one checkpoint to the next, the medians; zeros for fewer than two."""
        gaps = list(zip(saves, saves[1:]))
        if not gaps:
            return 0, 0.0
        steps = median(self.done_at(marks, end) - self.done_at(marks, begin) for begin, end in gaps)
        return int(steps), median(end - begin for begin, end in gaps)

    def start(self, mark: Mark) -> int:
        """Return how many steps a program had made before the step of the first line that it wrote."""
        return self.done(mark) - (0 if mark.is_resumed or mark.is_heading else self.interval)


class LogWatch:
    """Reader of a running job's logs: the marks of each of its runs on each host."""

    def __init__(self, folder: JobFolder, job: JobRequest) -> None:
        hosts = job.resources.hosts
        self._readers = {host: LogReader(folder.log(host)) for host in hosts}
        self._positions = LogPositions(job.algorithm.metric_definitions)
        #: The marks of each run so far, by host.
        self.runs: dict[str, list[list[Mark]]] = {host: [[]] for host in hosts}
        #: The last line of the script on each host that wrote one.
        self.last: dict[str, str] = {}
        #: The hosts on which the script ran until SIGKILL.
        self.killed: set[str] = set()
        #: The exit codes of the script in the first run.
        self.exit_codes: set[int] = set()

    def read(self, *, final: bool = False) -> None:
        """Read what the hosts have written since the last call."""
        for host, reader in self._readers.items():
            for line, _ in reader.lines(final=final):
                self._read_line(host, line)

    def _read_line(self, host: str, line: str) -> None:
        if line.startswith(STARTS_AGAIN):
            self.runs[host].append([])
        if line.startswith(_OF_RUNTIME):
            if _KILLED.match(line):
                self.killed.add(host)
            elif (code := _EXIT_CODE.search(line)) and len(self.runs[host]) == 1:
                self.exit_codes.add(int(code[1]))
            return
        self.last[host] = line
        step, epoch = self._positions.find(host, line)
        if (step, epoch) != (None, None):
            is_heading = _HEADING.match(line) is not None
            mark = Mark(time.monotonic(), step, epoch, _RESUMED.search(line) is not None, is_heading)
            self.runs[host][-1].append(mark)

    @property
    def waits(self) -> bool:
        """Whether a host's last line is that of a stack, which a launcher logs where no host writes."""
        return any(STACK_LINE.search(line) for line in self.last.values())

    def close(self) -> None:
        """Close the logs."""
        for reader in self._readers.values():
            reader.close()
