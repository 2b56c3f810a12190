"""What texts say of a failure: a FailureReason, the output of a process; and the error of it in a few lines. Pure."""

from __future__ import annotations

import itertools
import re

from scriptmode._core.spec.job_failure import MOST_EXIT_CODE, Failure
from scriptmode_runtime._values.failure import exception_type, last_error, remote_traceback

NO_REASON = "the platform gave no reason"
#: The service's name of a kind of failure, as FailureReason begins.
_KIND = re.compile(r"^[A-Z][A-Za-z]{2,60}(?:Error|Exception): ")
#: The exit code that the service appends to the text of a failure file.
_EXIT_CODE = re.compile(r"(?:, )?\bexit code: (\d{1,3})\s*\Z")
#: A host's name, as SageMaker numbers them.
_HOST = re.compile(r"\balgo-[1-9]\d*\b")
#: The first line of a failure file of this project's runtime.
_PROCESS = re.compile(r"algo-[1-9]\d*, ([\w. -]{1,60}): (?:exit code|killed by (SIG[A-Z0-9]+|signal \d+)|ended while)")
#: Files of the source, as tracebacks of other launchers than this project's name them.
_SOURCE_FILE = re.compile(r'(?<=File ")/opt/ml/code/')
#: A frame of the source, whose files have relative paths, and its line of code.
_SOURCE_FRAME = re.compile(r'^[ |]*(File "[^"/<\n][^"\n]*", line \d+[^\n]*)(?:\n[ |]*([^\n]*))?', re.MULTILINE)
#: An exception of a group, without its frames.
_IN_GROUP = re.compile(r"^ +\| (?!Traceback|Exception Group Traceback)(\S[^\n]*)", re.MULTILINE)
#: A line of a program such as argparse or pip that names its error.
_ERROR_LINE = re.compile(r"(?:\S+: )?(?:fatal |FATAL )?error: \S[^\n]*", re.IGNORECASE)
#: What faulthandler writes, and the frame of the source in its stack, whose newest frame is the first.
_FATAL = re.compile(r"^Fatal Python error: [^\n]*$", re.MULTILINE)
_FATAL_FRAME = re.compile(r'^ +(File "[^"/<\n][^"\n]*", line \d+ in [^\n]*)$', re.MULTILINE)
#: Where its stack of the thread that failed begins: stacks of other threads may be before it.
_CURRENT_THREAD = re.compile(r"^Current thread ", re.MULTILINE)
#: The line between an exception and the one that was raised from it, or while it was handled.
_BETWEEN = re.compile(
    r"\n(?:The above exception was the (direct cause) of the following exception"
    r"|During handling of the above exception, another exception occurred):\n"
)
#: Earlier exceptions that are named, and characters of each.
_MOST_CAUSES, _CAUSE_CHARACTERS = 3, 200
#: What programs write behind an error: pip's news, the end of another program's output, the heading of a stack.
_NO_ERROR = re.compile(r"\s*(?:\[notice\] |\[end of output\]|\*\*\* Check failure stack trace)")
#: Lines and characters of an error that are repeated below a log that has all of it.
_SUMMARY_LINES, _SUMMARY_CHARACTERS = 4, 600
#: Lines of a traceback whose error is shown above it, too.
_LONG_TRACEBACK = 15
#: Lines at the end of output without a traceback that are searched for the name of an error.
_LAST_LINES = 8
#: What stands in a long message of TensorFlow or Keras around its cause: where the graph's node was defined, its name,
#: and the arguments of the call.
_AROUND_CAUSE = re.compile(
    r"^\s*(?:Detected at node|Original stack trace|<stack traces unavailable>|Node: |Arguments received by"
    r"|Call arguments|\d+ (?:successful operations|derived errors ignored)|\(\d+\) [A-Z_]+:\s*$|\[\[\{\{node|File \"|•)"
)
#: Names of nodes and operations in TensorFlow's messages.
_NAMES = re.compile(r"\{\{function_node [^}\n]*\}\} ?| \[Op:\w+\](?: name: ?)?$", re.MULTILINE)
#: Exceptions that the same program raises again: it has to be corrected.
_REPEATED = {
    "SyntaxError", "IndentationError", "TabError", "ImportError", "ModuleNotFoundError", "NameError",
    "UnboundLocalError", "AttributeError", "TypeError", "FileNotFoundError", "NotADirectoryError", "IsADirectoryError",
}  # fmt: skip
#: Exit codes of a program that does not accept its arguments, and of shells that cannot start one.
_NOT_STARTED = (2, 126, 127)


def split_failure_reason(reason: str) -> tuple[str, int]:
    """Return the text of the failure file in a FailureReason, and the exit code after it, 0 without one."""
    text = _KIND.sub("", reason)
    ended = _EXIT_CODE.search(text)
    return (text[: ended.start()], int(ended[1])) if ended else (text, 0)


def parse_failure_reason(reason: str) -> Failure:
    """Parse a FailureReason, whose first line says what failed."""
    text, code = split_failure_reason(reason)
    text = _SOURCE_FILE.sub("", text) or (f"exit code {code}" if code else "")
    cause, _, rest = (text or NO_REASON).partition("\n")
    process = _PROCESS.match(cause)
    host = _HOST.search(cause) or _HOST.search(rest)
    return Failure(
        cause,
        host=host[0] if host else "",
        process=process[1] if process else "",
        exit_code=code if 0 < code <= MOST_EXIT_CODE else None,
        signal=(process[2] or "") if process else "",
        exception=exception_type(rest),
        traceback=rest,
    )


def may_succeed_again(failure: Failure) -> bool:
    """Return whether the same source may succeed in another run."""
    return failure.exception not in _REPEATED and failure.exit_code not in _NOT_STARTED


def summarize_error(failure: Failure) -> str:
    """Return the last frame of the source and the error, in a few lines.

    Without a traceback it is the last line that names an error, as argparse and pip write it, or else the last lines.
    """
    text = failure.traceback
    frames = list(_SOURCE_FRAME.finditer(remote_traceback(text) or text))
    if error := last_error(text):
        # A message has frames of Python, as TensorFlow's, or lines of another file that it names.
        frames = [frame for frame in frames if ", in " in frame[1] or frame.start() < len(text) - len(error)]
        earlier = _earlier_errors(text, error)
        if error.startswith("  | "):
            error = "\n  ".join(_IN_GROUP.findall(error))
        elif error[0].isspace():
            error = _dedent(error)
        return "\n".join([_shorten(_last_frame(frames), error), *earlier])
    # A program that Python cannot compile has no traceback.
    if frames and failure.exception:
        return _shorten("", text[frames[-1].start() :])
    lines = [line for line in text.split("\n") if line.strip() and not _NO_ERROR.match(line)]
    if fatal := _FATAL.search(text):
        current = _CURRENT_THREAD.search(text, fatal.end())
        at = _FATAL_FRAME.search(text, (current or fatal).end())
        # What aborted the process says why.
        before = lines[: lines.index(fatal[0])] if fatal[0].endswith(": Aborted") else []
        why = before[-2:] if before and before[-1].startswith("  what():") else before[-1:]
        return _shorten(f"  {at[1]}" if at else "", "\n".join([*why, fatal[0]]))
    lines = lines[-_LAST_LINES:]
    named = [number for number, line in enumerate(lines) if _ERROR_LINE.fullmatch(line)]
    if not named:
        return _shorten("", "\n".join(lines[-_SUMMARY_LINES:]))
    # The message of click goes on.
    is_click = lines[named[-1]].startswith("Error: ")
    return _shorten("", "\n".join(lines[named[-1] :] if is_click else [lines[named[-1]]]))


def traceback_below_error(failure: Failure) -> str:
    """Return the traceback; one that is longer than a reader sees at once stands below the error and its line."""
    text = failure.traceback
    is_long = bool(failure.exception) and text.count("\n") >= _LONG_TRACEBACK
    return f"{summarize_error(failure)}\n\n{text}" if is_long else text


def _dedent(error: str) -> str:
    """Return an error in the indented output of another program, without what follows that."""
    indent = error[: len(error) - len(error.lstrip())]
    lines = itertools.takewhile(lambda line: line.startswith(indent), error.split("\n"))
    return "\n".join(line[len(indent) :] for line in lines if not _NO_ERROR.match(line))


def _earlier_errors(text: str, error: str) -> list[str]:
    """Return a line for each exception that the last one was raised from, or while it was handled, the newest first."""
    lines, shown = [], {error.partition("\n")[0].strip()}
    for between in reversed(list(_BETWEEN.finditer(text))):
        cause = last_error(text[: between.start()]).partition("\n")[0].strip()
        # Of a process in a pool it is the error itself.
        if cause and cause not in shown:
            lines.append(f"  {'from' if between[1] else 'while handling'} {cause[:_CAUSE_CHARACTERS]}")
        shown.add(cause)
    return lines[:_MOST_CAUSES]


def _last_frame(frames: list[re.Match[str]]) -> str:
    """Return the last frame and its line of code; TensorFlow's messages name frames without it."""
    if not frames:
        return ""
    code = next((frame[2] for frame in reversed(frames) if frame[1] == frames[-1][1] and frame[2]), "")
    return f"  {frames[-1][1]}" + (f"\n    {code}" if code else "")


def _shorten(frame: str, error: str) -> str:
    """Return a frame and an error, of whose message the cause stands first, or last behind what TensorFlow adds."""
    lines = [line for line in _NAMES.sub("", error).split("\n") if line.strip()]
    if len(lines) > _SUMMARY_LINES:
        lines = lines[:1] + _without_frames(lines[1:])
    if len(lines) > _SUMMARY_LINES:
        half = _SUMMARY_LINES // 2
        lines = [*lines[:half], "[...]", *lines[-half:]]
    most = _SUMMARY_CHARACTERS // len(lines) if len("\n".join(lines)) > _SUMMARY_CHARACTERS else _SUMMARY_CHARACTERS
    end = most // 3
    text = "\n".join(line if len(line) <= most else f"{line[: most - end]} [...] {line[-end:]}" for line in lines)
    return f"{frame}\n{text}" if frame else text


def _without_frames(lines: list[str]) -> list[str]:
    """Return the lines of a message without those around its cause, and without the code below a frame's line."""
    kept, before = [], ""
    for line in lines:
        is_code = before.lstrip().startswith('File "') and line.startswith(" ")
        if not is_code and not _AROUND_CAUSE.match(line):
            kept.append(line)
        before = line
    return kept
