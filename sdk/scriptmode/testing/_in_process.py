"""A script run in this process: as Python runs a program, with all that it changes of the process restored."""

from __future__ import annotations

import codecs
import io
import logging
import os
import runpy
import signal
import sys
import threading
import traceback
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from typing_extensions import Buffer

#: Attributes of `sys` that a script replaces, beside the standard streams.
_ATTRIBUTES = ("argv", "path", "excepthook")


class Program(NamedTuple):
    """A Python program as a host would start it.

    ``arguments`` are those of Python: a file, or ``-m`` and a module, and the script's. ``script`` is the file that the
    user edits, and ``source`` its source directory; None for a script without one.
    """

    arguments: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    script: Path
    source: Path | None


def run(program: Program, log: Path) -> tuple[int, Exception | None]:
    """Run a program in this process; return its exit code, and the exception that ended it.

    Other exceptions, such as ``KeyboardInterrupt`` and those of pytest, are raised after the process is restored.
    """
    process, threads = os.getpid(), threading.enumerate()
    children = _multiprocessing_children()
    try:
        with _restored(program), _teed(log), warnings.catch_warnings():
            _enter(program)
            _reset_warnings()
            ended = _execute(program)
            if os.getpid() != process:
                # A fork of the script, which must not go on with the tests.
                os._exit(ended[0])
            _await_end(threads, children)
            return ended
    except BaseException:
        if os.getpid() != process:
            os._exit(1)
        raise


def _execute(program: Program) -> tuple[int, Exception | None]:
    name, *words = program.arguments
    try:
        if name == "-m":
            sys.argv = words
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv = [name, *words]
            main = sys.modules["__main__"] = types.ModuleType("__main__")
            main.__file__ = str(program.script)
            code = compile(program.script.read_bytes(), str(program.script), "exec", dont_inherit=True)
            exec(code, vars(main))  # noqa: S102 - the user's program
    except SystemExit as error:
        return _exit_code(error.code), None
    except Exception as error:  # noqa: BLE001 - as Python ends a program
        _print_traceback(error, (f"{program.script.parent}{os.sep}", f"{program.source or program.cwd}{os.sep}"))
        return 1, error
    return 0, None


def _exit_code(code: object) -> int:
    if code is None or isinstance(code, int):
        return int(code or 0) & 0xFF
    sys.stderr.write(f"{code}\n")
    return 1


def _print_traceback(error: Exception, folders: tuple[str, ...]) -> None:
    """Print the traceback that Python would print: from the first frame of the source on."""
    frames = error.__traceback__
    while frames and not frames.tb_frame.f_code.co_filename.startswith(folders):
        frames = frames.tb_next
    traceback.print_exception(type(error), error, frames)


def _enter(program: Program) -> None:
    """Set the variables, the directory and the import path that the program would have."""
    os.environ.clear()
    os.environ.update(program.env)
    os.chdir(program.cwd)
    sys.path[:] = _import_path(program)
    # As in a new process: a handler of pytest's would make logging.basicConfig() do nothing.
    logging.root.handlers[:] = []
    logging.root.setLevel(logging.WARNING)


def _reset_warnings() -> None:
    """Set Python's own filters of warnings, and print them: the test run may make errors of them."""
    warnings.resetwarnings()
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", category)
    warnings.filterwarnings("default", category=DeprecationWarning, module="__main__")
    # The test may have imported the program's module itself.
    warnings.filterwarnings("ignore", category=RuntimeWarning, module="runpy")
    warnings.showwarning = _print_warning


def _print_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    (file or sys.stderr).write(warnings.formatwarning(message, category, filename, lineno, line))


def _import_path(program: Program) -> list[str]:
    """Return the directories to import from; the user's files replace their copies in the job."""
    code, given = program.cwd, program.env.get("PYTHONPATH", "").split(os.pathsep)
    if program.source is None:
        # Modules beside the script are not part of its source.
        beside = {"", str(program.script.parent)}
        return [code, *given, *(folder for folder in sys.path if folder not in beside)]
    source = str(program.source)
    first = source if program.arguments[0] == "-m" else str(program.script.parent)
    return [first, source, *given, *sys.path]


@contextmanager
def _restored(program: Program) -> Iterator[None]:
    """Restore what a program changes of its process. Signal handlers can be restored in the main thread alone."""
    attributes = {name: getattr(sys, name) for name in _ATTRIBUTES}
    argv, path, modules = [*sys.argv], [*sys.path], dict(sys.modules)
    environ, cwd = dict(os.environ), Path.cwd()
    handlers, level = [*logging.root.handlers], logging.root.level
    is_main = threading.current_thread() is threading.main_thread()
    signals = {number: signal.getsignal(number) for number in signal.valid_signals()} if is_main else {}
    try:
        yield
    finally:
        for name, value in attributes.items():
            setattr(sys, name, value)
        sys.argv[:], sys.path[:] = argv, path
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(environ)
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)
        for number, handler in signals.items():
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        _restore_modules(modules, (program.cwd, str(program.source or program.cwd)))


def _restore_modules(before: Mapping[str, types.ModuleType], folders: Sequence[str]) -> None:
    """Remove the modules that the program imported from its source; libraries stay, which cannot be loaded twice."""
    for name in sys.modules.keys() - before.keys():
        module = sys.modules[name]
        spec = getattr(module, "__spec__", None)
        locations = [getattr(module, "__file__", None), *(getattr(spec, "submodule_search_locations", None) or ())]
        if any(Path(folder) in Path(location).parents for location in locations if location for folder in folders):
            del sys.modules[name]
    sys.modules.update(before)


class _Tee(io.RawIOBase):
    """A standard stream that is written to the log and to the stream that it replaces.

    Handlers of libraries keep it after the program's end: then it writes to the current stream of its name.
    """

    def __init__(self, name: str, log: int) -> None:
        self.name = f"<{name}>"
        self._attribute = name
        self._log: int | None = log
        self._shown = getattr(sys, name)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self._stream().fileno())

    def write(self, data: Buffer) -> int:
        content = rest = bytes(data)
        while rest and self._log is not None:
            rest = rest[os.write(self._log, rest) :]
        with suppress(OSError, ValueError):
            self._stream().write(self._decoder.decode(content))
            self._stream().flush()
        return len(content)

    def end(self) -> None:
        """Write to the current stream from now on."""
        self._log = self._shown = None

    def _stream(self) -> io.TextIOBase:
        stream: io.TextIOBase = self._shown or getattr(sys, self._attribute)
        return stream


@contextmanager
def _teed(log: Path) -> Iterator[None]:
    """Write standard output and standard error to ``log`` too, unbuffered, as the launcher runs a program."""
    with ExitStack() as stack:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        stack.callback(os.close, descriptor)
        for name in ("stdout", "stderr"):
            tee = _Tee(name, descriptor)
            stack.callback(tee.end)
            stack.callback(setattr, sys, name, getattr(sys, name))
            setattr(sys, name, io.TextIOWrapper(tee, "utf-8", "backslashreplace", write_through=True))
        yield


def _await_end(threads: Sequence[threading.Thread], children: Sequence[object]) -> None:
    """Wait for the threads and the children of multiprocessing that Python waits for at the end of a program."""
    for thread in threading.enumerate():
        if thread not in threads and not thread.daemon:
            thread.join()
    for child in _multiprocessing_children():
        if child not in children:
            if child.daemon:
                child.terminate()
            child.join()


def _multiprocessing_children() -> list[BaseProcess]:
    if "multiprocessing.process" not in sys.modules:
        return []
    from multiprocessing import active_children

    return active_children()
