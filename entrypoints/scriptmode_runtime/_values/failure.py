"""The failure of a job as a value, and the errors in the output of a process. Pure."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from typing import NamedTuple

from scriptmode_runtime._terminal_line import readable

#: Exit code of a failure outside the user's program: before its start, a lost host, a service that ended early.
LAUNCHER_FAILED = 1
#: The first line of a traceback.
TRACEBACK = "Traceback (most recent call last):"
#: The lines between two tracebacks of one error.
_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
#: The first line of the traceback of an exception group. Each following line of it begins with ``  |`` or ``  +-``, and
#: those of the exceptions in the group with more blanks.
_GROUP = f"  + Exception Group {TRACEBACK}"
_FRAMES = rf"{re.escape(TRACEBACK)}\n(?:[ \t][^\n]*\n)*"
#: An error that Python printed and ignored, with its traceback: of ``__del__``, of callbacks, of threads at the end.
_IGNORED = (
    rf"(?m)^Exception ignored [^\n]*\n(?:(?:{_FRAMES}\S[^\n]*(?:\n|\Z)(?:\n(?:{'|'.join(_CHAINED)})\n\n)?)+"
    r"|[\w.]*(?:Error|Exception|Exit|Interrupt)(?::[^\n]*)?(?:\n|\Z))?"
)
_NOT_COMPILED = r'(?m)^ *File "[^"\n]*", line \d+\n(?: .*\n){1,3}((?:Syntax|Indentation|Tab)Error: .*)'
_ELIDED = "[...]"
#: What an excerpt begins with: without and with the first line of the traceback whose first frames it lacks.
_CUT, _CUT_FRAMES, _FRAMES_CUT = f"{_ELIDED}\n", f"{TRACEBACK}\n  {_ELIDED}\n", f"  {_ELIDED}\n"
#: A frame of the source, whose files have relative paths, and its line of code.
_SOURCE_FRAME = r'(?m)^  File "[^"/<\n][^"\n]*", line \d+[^\n]*\n(?:    [^\n]*\n)?'
#: Characters shown of the beginning of a long last message, which has the name of the error.
_MESSAGE_START = 200
#: What multiprocessing and concurrent.futures print between the traceback of a pool's process and that of the caller.
_AFTER_REMOTE = f'"""\n\n{_CHAINED[1]}\n\n'
#: Frames of machine code, as glog, abseil, TensorFlow and Open MPI write them below the reason of an abort.
_NATIVE_FRAME = r"(?m)^(?:\[[^\]\n]*:\d+\] )?(?: *@ +(?:\(nil\)|0x[0-9a-f]+)|\[ *\d+\] )[^\n]*\n?"
#: Lines after a traceback that was handled, by the signal that ended the process afterwards: it did not fail of it.
#: A failed program may crash at its end, below a message of TensorFlow; abort may be C++'s answer to any error.
_LINES_AFTER_HANDLED: dict[int, int] = {signal.SIGKILL: 8, signal.SIGTERM: 8, signal.SIGSEGV: 100, signal.SIGBUS: 100}
#: What Python's faulthandler writes first of a crash.
_TRACED_CRASH = "Fatal Python error: "
#: Characters of the type of an exception.
_LONGEST_TYPE = 200
#: A process ended by signal n counts as ended with this much more (POSIX shells).
SIGNALLED = 128


def signal_name(number: int) -> str:
    """Return a signal's name; a real-time signal has only a number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def how_ended(status: int) -> str:
    """Return text on how a process ended; ``status`` is its exit code, or minus a signal's number."""
    return f"by {signal_name(-status)}" if status < 0 else f"with exit code {status}"


def describe_exit_code(code: int) -> str:
    """Return an exit code as text: ``exit code 3``, or ``SIGKILL`` for -9."""
    return f"exit code {code}" if code >= 0 else signal_name(-code)


def without_ignored(output: str) -> str:
    """Return the output without the errors that Python ignored, which hide the one that ended the program."""
    rest = re.sub(_IGNORED, "", output) if "Exception ignored " in output else output
    return rest if rest.strip() else output


def last_traceback(output: str) -> int:
    """Return the index of the last traceback in the output, or of the first that it was chained from; -1 for none."""
    start = _begin(output, output.rfind(TRACEBACK))
    before = output[: max(start, 0)].rstrip()
    while before.endswith(_CHAINED) and TRACEBACK in before:
        start = _begin(before, before.rindex(TRACEBACK))
        before = output[:start].rstrip()
    return start


def _begin(output: str, start: int) -> int:
    """Return the index of the exception group that the traceback at ``start`` is a part of, or of its first line."""
    line = output.rfind("\n", 0, max(start, 0)) + 1
    if output[line : max(start, 0)].isspace():
        return line
    # The marks of the group's exceptions; ordinary output may be before a traceback, too.
    if start <= line or output[line:start].strip(" |+") not in ("", "Exception Group"):
        return start
    group = output.rfind(_GROUP, 0, start + len(TRACEBACK))
    return start if group < 0 else group


def without_native_frames(output: str) -> str:
    """Return the output without frames of machine code, below which the reason of an abort is not found."""
    return re.sub(_NATIVE_FRAME, "", output)


def without_handled(output: str, status: int) -> str:
    """Return the output after an error that the process handled before SIGKILL, SIGTERM or a crash ended it."""
    after = last_error(output).partition("\n")[2]
    lines = after.partition(_TRACED_CRASH)[0].count("\n") + 1
    return after if lines > _LINES_AFTER_HANDLED.get(-status, lines) else output


def last_error(output: str) -> str:
    """Return the text from the last traceback's error on, after its frames; "" without a traceback."""
    start = output.rfind(TRACEBACK)
    if start < 0:
        return ""
    group = _begin(output, start)
    before = output[output.rfind("\n", 0, start) + 1 : start]
    # Of another program's output, as pip repeats it, each line is indented.
    is_group = output.startswith(_GROUP, group)
    mark = "  | " if is_group else before if before.isspace() else ""
    lines = output[(group + len(_GROUP) if is_group else start + len(TRACEBACK)) :].lstrip("\n").split("\n")
    for number, line in enumerate(lines):
        text = line.removeprefix(mark)
        if text and not text[0].isspace():
            return "\n".join(lines[number:])
    return ""


def exception_type(output: str) -> str:
    """Return the name before the message of the last error, as Python prints it; "" where it has none."""
    # Python prints no traceback for a program that it cannot compile.
    error = last_error(output) or "".join(re.findall(_NOT_COMPILED, output)[-1:])
    name = error.partition("\n")[0].partition(":")[0].strip(" |\t")
    return name if len(name) <= _LONGEST_TYPE and all(part.isidentifier() for part in name.split(".")) else ""


def excerpt(output: str, limit: int) -> str:
    """Return the end of the output in at most ``limit`` characters; of a long last error also its first words."""
    text = readable(output)
    if len(text) <= limit:
        return text
    message = last_error(text)
    head = next(head for head in (*_heads(text, message, limit), _CUT, "") if 2 * len(head) <= limit)
    return head + _end(text, message, limit - len(head))


def _heads(text: str, message: str, limit: int) -> Iterator[str]:
    """Yield what may stand before the end of a traceback that is cut, the best first; nothing for a group's."""
    if not message or message.startswith(" ") or TRACEBACK in _end(text, message, limit - len(_CUT)):
        return
    frames = text[: len(text) - len(message)]
    frame = _source_frame(frames)
    if frame and frame not in _end(text, message, limit - len(_CUT_FRAMES)):
        # The library that raised the error has so many frames that the source's own would be cut.
        yield f"{_CUT_FRAMES}{frame}\n{'' if frames.rstrip().endswith(frame) else _FRAMES_CUT}"
    # Readers of the excerpt recognize the error by the traceback's first line.
    yield _CUT_FRAMES


def remote_traceback(text: str) -> str:
    """Return the traceback of the process of a pool in which the last error was raised; "" for another error."""
    before = text[: max(0, text.rfind(TRACEBACK))]
    return before[max(0, before.rfind(TRACEBACK)) :] if before.endswith(_AFTER_REMOTE) else ""


def _source_frame(text: str) -> str:
    """Return the last frame of the source where the error was raised, whose files have relative paths; "" for none."""
    frames = re.findall(_SOURCE_FRAME, remote_traceback(text) or text[max(0, text.rfind(TRACEBACK)) :])
    return str(frames[-1]).rstrip("\n") if frames else ""


def _end(text: str, message: str, limit: int) -> str:
    """Return the end of a text in whole lines or, of a longer message, its first words and the text's end."""
    if len(message) <= limit:
        return _whole_lines(text[-limit:], len(message)) if limit else ""
    shown = min(_MESSAGE_START, limit // 3)
    left = limit - shown - len(_ELIDED) - 2
    return f"{message[:shown]} {_ELIDED} {text[-left:]}" if left > 0 else message[: max(0, limit)]


def _whole_lines(end: str, needed: int) -> str:
    """Remove the first, incomplete line of a text's end, unless that would cut the last ``needed`` characters."""
    _, newline, whole = end.partition("\n")
    return whole if newline and len(whole) >= needed else end


class HostFailure(NamedTuple):
    """The reason why a job failed or was stopped; the same on every host."""

    host: str
    process: str
    exit_code: int
    #: The text of the failure file.
    message: str
    #: Whether the job was stopped from outside: processes then have the platform's grace period to end by themselves.
    graceful: bool = False
    #: The name of the signal that ended the process; "" for an exit code.
    signal: str = ""
    #: The type of the last exception whose traceback the process wrote; "" without a traceback.
    exception: str = ""
    #: One line of advice, or "".
    hint: str = ""
    #: The end of the process's output: its last traceback, with those that led to it, else its last lines.
    traceback: str = ""
