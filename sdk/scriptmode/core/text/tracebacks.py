"""Short tracebacks of this library's errors: the caller's own lines, and the error.

Frames inside this library say nothing to its users about a job that failed or an argument that is wrong. They are left
out of the errors that leave a public method, and of Ctrl-C, except in Python's development mode (``python -X dev``).
Other exceptions, which are bugs, keep all frames. A cause is shown by its text, and not at all where the error has that
text.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, TypeVar

import scriptmode

if TYPE_CHECKING:
    import traceback
    from collections.abc import Mapping

_Class = TypeVar("_Class", bound=type)
_HERE = str(Path(scriptmode.__file__).parent)
#: The lines at which `warn_caller` showed texts first, and Python's own record of what it showed.
_FIRST_LINES: dict[str, tuple[str, int]] = {}
_SHOWN: dict[str | tuple[str, type[Warning], int], int] = {}


def warn_caller(text: str) -> None:
    """Warn at the line that called this library, however deep; Python shows a text once, whichever lines lead to it."""
    frame = inspect.currentframe()
    while frame and frame.f_back and frame.f_code.co_filename.startswith(f"{_HERE}/"):
        frame = frame.f_back
    line = (frame.f_code.co_filename, frame.f_lineno) if frame else ("scriptmode", 1)
    file, number = _FIRST_LINES.setdefault(text, line)
    warnings.warn_explicit(text, UserWarning, file, number, registry=_SHOWN)


def hide_frames(kind: type[Exception]) -> Callable[[_Class], _Class]:
    """Return a class decorator that removes this library's frames from errors that public methods and properties raise.

    ``kind`` is the type of these errors.
    """

    def decorate(cls: _Class) -> _Class:
        for name, member in list(vars(cls).items()):
            if name.startswith("_") and name != "__init__":
                continue
            if isinstance(member, property) and member.fget is not None:
                setattr(cls, name, property(_hiding(member.fget, kind), member.fset, member.fdel, member.__doc__))
            elif isinstance(member, (classmethod, staticmethod)):
                setattr(cls, name, type(member)(_hiding(member.__func__, kind)))
            elif inspect.isfunction(member):
                setattr(cls, name, _hiding(member, kind))
        return cls

    return decorate


def _hiding(function: Callable[..., Any], kind: type[Exception]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        # pytest leaves the frame out.
        __tracebackhide__ = True
        handled = sys.exc_info()[1]
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            # Python's own, of a call whose arguments the function does not have: it has no frame in the function.
            wrong = _unknown_argument(function, kwargs) if getattr(error.__traceback__, "tb_next", None) is None else ""
            if not wrong:
                raise
            raise TypeError(wrong) from None
        except (kind, KeyboardInterrupt) as error:
            if sys.flags.dev_mode:
                raise
            if error.__context__ is not handled:
                # The caller's own exception is shown, one of this library's is not: its text is in the error's.
                error.__suppress_context__ = True
            _shorten_causes(error)
            raise error.with_traceback(None)  # noqa: B904 - the cause stays

    return call


def _unknown_argument(function: Callable[..., Any], named: Mapping[str, object]) -> str:
    """Return the text about the first argument that a function does not have, with a suggestion; "" without one."""
    # Not by `messages`, whose errors import this module.
    import difflib

    known = inspect.signature(function).parameters
    unknown = next((name for name in named if name not in known), None)
    if unknown is None:
        return ""
    own = [name for name in known if name not in ("self", "cls")]
    close = difflib.get_close_matches(unknown, own, n=1)
    step = f"; did you mean {close[0]!r}?" if close else f"; use one of {', '.join(own)}" if own else ""
    return f"{function.__qualname__} has no argument {unknown!r}{step}"


def _shorten_causes(error: BaseException) -> None:
    """Remove the frames of the exceptions that an error was raised from, and those whose text the error has."""
    seen = {id(error)}
    while (cause := error.__cause__) is not None and id(cause) not in seen:
        seen.add(id(cause))
        cause.__traceback__ = None
        cause.__suppress_context__ = True
        if str(getattr(cause, "strerror", None) or cause) in str(error):
            # Programs still find it as the context, which is not shown.
            error.__context__, error.__cause__ = cause, None
        error = cause


def render(error: Exception) -> list[str]:
    """Return the lines that IPython shows for an error: the caller's own lines that led to it, and its text."""
    import traceback

    trace = error.__traceback__
    if sys.flags.dev_mode:
        return "".join(traceback.format_exception(type(error), error, trace)).splitlines()
    lines: list[str] = []
    for frame in traceback.extract_tb(trace):
        if not frame.filename.startswith(_HERE) and "IPython" not in Path(frame.filename).parts:
            lines += [_place(frame), f"----> {frame.lineno} {frame.line}", ""]
    return [*lines, *f"{type(error).__name__}: {error}".splitlines()]


def _place(frame: traceback.FrameSummary) -> str:
    """Return the cell of a frame as IPython names it, or its file."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)(frame.filename)
    place = f"{named[0]} {named[1]}" if named else f"File {frame.filename}"
    return f"{place}, line {frame.lineno}" + ("" if frame.name == "<module>" else f", in {frame.name}")
