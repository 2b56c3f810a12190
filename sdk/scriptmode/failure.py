"""Why a training job failed, as a value: recorded by this project's runtime, or parsed from a FailureReason. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

NO_REASON = "the platform gave no reason"
#: The service's name of a kind of failure, as FailureReason begins.
_KIND = re.compile(r"^[A-Z][A-Za-z]{2,60}(?:Error|Exception): ")
#: The exit code that the service appends to the text of a failure file.
_EXIT_CODE = re.compile(r"(?:, )?\bexit code: (\d{1,3})\s*\Z")
#: A host's name, as SageMaker numbers them.
_HOST = re.compile(r"\balgo-[1-9]\d*\b")
#: The first line of a failure file of this project's runtime.
_PROCESS = re.compile(r"algo-[1-9]\d*, ([\w. -]{1,60}): (?:exit code|killed by (SIG[A-Z0-9]+|signal \d+)|ended while)")
MOST_EXIT_CODE = 255


@dataclass(frozen=True)
class Failure:
    """Why a training job failed. What is not known is "", or ``None`` for ``exit_code``.

    Attributes:
        cause: What failed, in one line.
        host: The host that failed first.
        process: The process on that host: ``script``, a role such as ``worker`` or ``ps``, ``rank 3`` for MPI,
            ``launcher`` for the runtime itself.
        exit_code: The exit code of the process, 128 + n if signal n ended it.
        signal: The name of the signal that ended the process, such as ``SIGKILL``.
        exception: The type of the exception of the last traceback that the process wrote.
        hint: Advice, in one line.
        traceback: The end of the output of the process: its last traceback, with those that led to it, or its last
            lines; what the script wrote into its own failure file comes in place of them. 3,000 characters at most. Of
            a job that ran on Amazon SageMaker, or in another image than this project's, the lines after ``cause`` of
            the FailureReason.
    """

    cause: str
    host: str = ""
    process: str = ""
    exit_code: int | None = None
    signal: str = ""
    exception: str = ""
    hint: str = ""
    traceback: str = ""


def parse_failure_reason(reason: str) -> Failure:
    """Parse a FailureReason, whose first line says what failed."""
    text = _KIND.sub("", reason)
    ended = _EXIT_CODE.search(text)
    code = int(ended[1]) if ended else 0
    if ended and (text := text[: ended.start()]) == "":
        text = f"exit code {code}"
    cause, _, rest = (text or NO_REASON).partition("\n")
    process = _PROCESS.match(cause)
    host = _HOST.search(cause) or _HOST.search(rest)
    return Failure(
        cause,
        host=host[0] if host else "",
        process=process[1] if process else "",
        exit_code=code if 0 < code <= MOST_EXIT_CODE else None,
        signal=(process[2] or "") if process else "",
        traceback=rest,
    )
