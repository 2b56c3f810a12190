"""The output of ``mpirun`` (Open MPI 4 and 5): the rank that failed first, and the lines of each rank. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from scriptmode_runtime._values.failure import last_error

#: Open MPI 4: "Process name: [[27340,1],1]"; Open MPI 5: "Process name: [prterun-vm-3725@1,1]"; both with
#: "Exit code:    3" in the line after it.
_EXITED = re.compile(r"Process name: \[\S*?,(\d+)\]\s+Exit code:\s+(\d+)")
#: Both: "mpirun noticed that process rank 1 with PID 0 on node x exited on signal 9 (Killed)", broken into lines.
_SIGNALLED = re.compile(r"noticed that process rank (\d+) with PID \d+ on\s+node (\S+) exited\s+on\s+signal (\d+)")
#: Both; 5 writes "Errorcode: 3" in a separate line.
_ABORTED = re.compile(r"MPI_ABORT was invoked on rank (\d+)[\s\S]{1,200}?errorcode:? (\d+)", re.IGNORECASE)
#: ``--tag-output``: job, rank, stream; with what ``--timestamp-output`` and other tags of ``--output`` add. Open MPI 5
#: puts a blank behind it, 4 does not; 4 also puts one in the middle of a line that came in pieces.
_TAG = re.compile(
    r"(?:\[?\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}\]?)?"
    r"\[(?:[^\s,\[\]]+,)?(?P<rank>\d+)\](?:\[[^\s\[\]]*\])?<(?P<stream>stdout|stderr|stddiag)>:"
)
#: The message of mpirun about the end, between two rulers; 4 prints it twice.
_BANNER = re.compile(
    r"(?<!-)-{50,}\n(?:Primary job|(?:mpirun|prterun) (?:detected|noticed)|MPI_ABORT was)[\s\S]*?\n-{50,}\n?"
)
#: Of Horovod in all ranks but the one that raised an error of its own.
_SHUT_DOWN = "Horovod has been shut down"


class RankFailure(NamedTuple):
    """The rank that failed first, and its status: an exit code, or minus a signal's number."""

    rank: int
    status: int
    #: The host, where mpirun names it.
    node: str = ""
    #: The text that its program wrote into the failure file of its host, where it is known.
    own: str = ""


def first_failure(output: str) -> RankFailure | None:
    """Find the rank that ``mpirun`` names; None where it ended for another reason."""
    exited = _ABORTED.search(output) or _EXITED.search(output)
    if exited:
        return RankFailure(int(exited[1]), int(exited[2]))
    signalled = _SIGNALLED.search(output)
    if signalled:
        return RankFailure(int(signalled[1]), -int(signalled[3]), signalled[2])
    return None


def cause_of(failure: RankFailure, output: str) -> RankFailure:
    """Return the failure of the rank whose error made Horovod shut down, if that ended the one that exited first."""
    if _SHUT_DOWN in last_error(lines_of_rank(output, failure.rank)):
        for rank in dict.fromkeys(int(tag["rank"]) for tag in _TAG.finditer(output)):
            error = last_error(lines_of_rank(output, rank))
            if error and _SHUT_DOWN not in error:
                return RankFailure(rank, failure.status)
    return failure


def lines_of_rank(output: str, rank: int) -> str:
    """Return one rank's lines without their tags, in the order of the output.

    Where no line has that rank's tag the lines cannot be assigned: then all except mpirun's own messages.
    """
    tags = list(_TAG.finditer(output))
    ends = [*(tag.start() for tag in tags[1:]), len(output)]
    pieces = [
        # The text after the end of the line is mpirun's.
        (tag["stream"], "".join(output[tag.end() : end].partition("\n")[:2]))
        for tag, end in zip(tags, ends)
        if int(tag["rank"]) == rank
    ]
    if not pieces:
        return _BANNER.sub("", output)
    blank = all(not piece.strip("\n") or piece.startswith(" ") for _, piece in pieces)
    return _joined([(stream, piece[1:] if blank and piece != "\n" else piece) for stream, piece in pieces])


def _joined(pieces: list[tuple[str, str]]) -> str:
    """Join parts of lines; a part that the same stream does not continue is a line of its own."""
    text, writing = "", ""
    for stream, piece in pieces:
        if text and not text.endswith("\n") and stream != writing:
            text += "\n"
        text += piece
        writing = stream
    return text.removesuffix("\n")
