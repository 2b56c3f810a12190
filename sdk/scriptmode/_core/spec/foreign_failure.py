"""The failure of a host that has no record of this project's runtime, from its failure file and its log. Pure."""

from __future__ import annotations

import re

from scriptmode._core.spec.job_failure import Failure
from scriptmode_runtime import contract
from scriptmode_runtime._report.hints import hint
from scriptmode_runtime._terminal_line import readable
from scriptmode_runtime._values.failure import (
    SIGNALLED,
    exception_type,
    excerpt,
    how_ended,
    last_error,
    last_traceback,
    signal_name,
    without_ignored,
)
from scriptmode_runtime.plan import ProcessSpec

#: The log's end that is searched for a traceback, and what is shown of it without one.
LINES, CHARACTERS = 1000, 64 * 1024
_SHOWN_LINES, _SHOWN_CHARACTERS = 12, 700
_END = "\n"
#: What AWS's toolkit writes into its failure file where it did not recognize an error in the script's output.
_NO_MESSAGE = r'(?m)^ErrorMessage ""\n?'
#: Lines that it logs itself. After the second kind it repeats its failure file.
_TOOLKIT_LINES = r"(?m)^\S+ \S+ sagemaker-training-toolkit (?:\w+ +Reporting training FAILURE[\s\S]*|[^\n]*\n?)"


#: A frame before its line of code, and what Python 3.11 draws below that. The toolkit strips each piece of output, so
#: some lines have lost their indentation or follow an empty one. Frames of ``<string>`` have no line of code.
_FRAME = r'(?m)^ *(File "[^<"\n][^"\n]*", line \d+, in [^\n]*\n)\s*'
_MARKS = r"(?m)^ *([~^][~^ ]*)$"
#: The hints name the interpreter by its path where it is known.
_UNKNOWN = ProcessSpec("script", (), {}, "/")


def lacks_reason(text: str) -> bool:
    """Return whether the text of a failure file does not say what failed."""
    return not text or bool(re.search(_NO_MESSAGE, text))


def describe_foreign_failure(host: str, code: int, text: str, log: str) -> tuple[str, Failure]:
    """Return the text for FailureReason, and the failure.

    Args:
        host: The host's name.
        code: Its exit code, ``-n`` for signal n.
        text: The text of its failure file, which `lacks_reason`.
        log: The end of its log.
    """
    exit_code = code if code >= 0 else SIGNALLED - code
    output = re.sub(_FRAME, r"  \1    ", re.sub(_TOOLKIT_LINES, "", log))
    output = re.sub(_MARKS, r"    \1", output)
    output = readable(without_ignored(output))
    # A program that was killed may have handled the error of an earlier traceback.
    error = last_error(output) if code > 0 else ""
    shown = output[last_traceback(output) :] if error else "\n".join(output.split("\n")[-_SHOWN_LINES:])
    how = f"{'was killed' if code < 0 else 'ended'} {how_ended(code)}"
    head = re.sub(_NO_MESSAGE, "", text).strip() or f"{host}: the host's launcher {how}"
    lines = excerpt(shown, contract.FAILURE_FILE_LIMIT - len(head) - 1 if error else _SHOWN_CHARACTERS)
    failure = Failure(
        f"{host}: {head.partition(_END)[0].rstrip(':')}" if text else head,
        host=host,
        process="script" if text else "launcher",
        exit_code=exit_code,
        signal="" if code >= 0 else signal_name(-code),
        exception=exception_type(output) if error else "",
        hint=hint(output, exit_code, _UNKNOWN) if error else "",
        traceback=excerpt(shown, contract.TRACEBACK_LIMIT) if error else lines,
    )
    heading = _END if error else f"; its log ends with{_END}"
    return head + (heading + lines if lines else ""), failure
