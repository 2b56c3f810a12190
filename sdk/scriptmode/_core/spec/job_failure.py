"""Why a training job failed, as a value: recorded by this project's runtime, or parsed from a FailureReason."""

from __future__ import annotations

from dataclasses import dataclass

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
            the FailureReason, and the log's last traceback where that does not say what failed.
    """

    cause: str
    host: str = ""
    process: str = ""
    exit_code: int | None = None
    signal: str = ""
    exception: str = ""
    hint: str = ""
    traceback: str = ""

    @property
    def log_host(self) -> str:
        """The host whose log has the output of the process; "" for ranks, whose output ``mpirun`` passes on."""
        return "" if self.process.startswith("rank ") else self.host
