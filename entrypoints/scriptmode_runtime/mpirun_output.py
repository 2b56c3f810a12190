"""What ``mpirun`` (Open MPI 4 and 5) tells of its ranks: which one failed first, and which lines are whose. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

#: Open MPI 4: "Process name: [[27340,1],1]"; Open MPI 5: "Process name: [prterun-vm-3725@1,1]"; both with
#: "Exit code:    3" in the line after it.
_EXITED = re.compile(r"Process name: \[\S*?,(\d+)\]\s+Exit code:\s+(\d+)")
#: Both: "mpirun noticed that process rank 1 with PID 0 on node x exited on signal 9 (Killed)", broken into lines.
_SIGNALLED = re.compile(r"noticed that process rank (\d+) with PID \d+ on\s+node (\S+) exited\s+on\s+signal (\d+)")
#: Both; 5 writes "Errorcode: 3" in a line of its own.
_ABORTED = re.compile(r"MPI_ABORT was invoked on rank (\d+)[\s\S]{1,200}?errorcode:? (\d+)", re.IGNORECASE)
#: ``--tag-output``: job, rank, stream. Open MPI 5 puts a blank behind it, 4 does not.
_TAG = re.compile(r"^\[\d+,(\d+)\]<(?:stdout|stderr)>:", re.MULTILINE)


class RankFailure(NamedTuple):
    """The rank that failed first, and its status: an exit code, or minus a signal's number."""

    rank: int
    status: int
    #: Where mpirun names it.
    node: str = ""


def first_failure(output: str) -> RankFailure | None:
    """Find the rank that ``mpirun`` names; None where it ended for another reason."""
    exited = _ABORTED.search(output) or _EXITED.search(output)
    if exited:
        return RankFailure(int(exited[1]), int(exited[2]))
    signalled = _SIGNALLED.search(output)
    if signalled:
        return RankFailure(int(signalled[1]), -int(signalled[3]), signalled[2])
    return None


def lines_of(output: str, rank: int) -> str:
    """Give one rank's lines without their tags; all lines where none is tagged as that rank's."""
    lines = [line for line in output.splitlines() if _rank(line) == rank]
    texts = [_TAG.sub("", line) for line in lines]
    blank = all(not text or text.startswith(" ") for text in texts)
    return "\n".join(text[1:] if blank else text for text in texts) or output


def _rank(line: str) -> int | None:
    tag = _TAG.match(line)
    return int(tag[1]) if tag else None
