"""The report of a failure: its exit code, the platform's failure file, and a record of the failure as JSON.

Both files can be written to a full disk too: space for them is reserved when the launcher starts.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
import time
from typing import TYPE_CHECKING

from scriptmode_runtime import contract
from scriptmode_runtime._terminal_line import readable
from scriptmode_runtime._values.failure import (
    LAUNCHER_FAILED,
    SIGNALLED,
    HostFailure,
    exception_type,
    excerpt,
    last_error,
    last_traceback,
    signal_name,
    without_handled,
    without_ignored,
    without_native_frames,
)

if TYPE_CHECKING:
    from scriptmode_runtime._environment import TrainingEnvironment
    from scriptmode_runtime._mpi.mpirun_output import RankFailure
    from scriptmode_runtime._report.redaction import Redaction
    from scriptmode_runtime.plan import ProcessSpec

#: A hint that quotes a very long part of the output would leave too little space for the error.
_LONGEST_HINT = 300
#: The heading of ordinary output: the platform appends ", exit code: 7", as if that were part of the output.
_LOG_HEADING = "its log ends with\n"
_FAILURE_NAME, _RECORD_NAME = os.path.basename(contract.FAILURE_FILE), os.path.basename(contract.FAILURE_RECORD_FILE)
#: The longest failure file in bytes: no character takes more than four.
_LONGEST = 4 * contract.FAILURE_LIMIT
#: Bytes of disk space that are reserved for each file. A reserve is not zeros, and is larger than files that a file
#: system keeps inside a directory's own records: it occupies a block.
_RESERVED = {_FAILURE_NAME: _LONGEST, _RECORD_NAME: contract.FAILURE_RECORD_LIMIT}
#: Seconds for which a file is tried again on a disk that was full at the start too, so that there is no reserve.
_FULL_SECONDS, _POLL_SECONDS = 2.0, 0.05


def prepare(output: str) -> None:
    """Remove the files of an earlier run in the directory ``output``, and reserve disk space there for a failure's."""
    for name, size in _RESERVED.items():
        _remove(os.path.join(output, name))
        _remove(_reserve(output, name))
        with contextlib.suppress(OSError):
            os.makedirs(output, exist_ok=True)
            _write(_reserve(output, name), os.urandom(size), os.O_CREAT | os.O_EXCL)


def release(output: str) -> None:
    """Release the reserved disk space: nothing failed."""
    for name in _RESERVED:
        _remove(_reserve(output, name))


def write(output: str, failure: HostFailure) -> None:
    """Write the failure file, unless the script wrote its own, and the record, if the directory can be written."""
    size = 0
    with contextlib.suppress(OSError):
        size = os.path.getsize(os.path.join(output, _FAILURE_NAME))
    if size:
        _remove(_reserve(output, _FAILURE_NAME))
    else:
        _replace(output, _FAILURE_NAME, contract.shorten(failure.message, contract.FAILURE_FILE_LIMIT))
    _replace(output, _RECORD_NAME, json.dumps(_record(failure), ensure_ascii=False))


def _record(failure: HostFailure) -> dict[str, object]:
    """Return the content of `contract.FAILURE_RECORD_FILE`."""
    cause, _, rest = failure.message.partition("\n")
    # In a process's failure the lines that follow are its hint and its output, shortened for the failure file.
    traceback = failure.traceback or (rest if failure.process == "launcher" else "")
    return {
        "cause": contract.shorten(cause, contract.FAILURE_FILE_LIMIT),
        "host": failure.host,
        "process": failure.process,
        "exit_code": failure.exit_code,
        "signal": signal_name(failure.exit_code - SIGNALLED) if failure.graceful else failure.signal,
        "exception": failure.exception,
        "hint": failure.hint,
        "traceback": contract.shorten(traceback, contract.TRACEBACK_LIMIT),
    }


def _reserve(output: str, name: str) -> str:
    """Return the path of the space reserved for a file, in its directory: it is overwritten in place, and renamed."""
    return os.path.join(output, f".{name}.reserve")


def _replace(output: str, name: str, text: str) -> None:
    """Write a file into its reserved space; ignore a directory that cannot be written."""
    deadline = time.monotonic() + _FULL_SECONDS
    while not _try_replace(output, name, text.encode("utf-8", "replace")) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _try_replace(output: str, name: str, content: bytes) -> bool:
    """Return whether trying again is of no use: the file is written, or the disk is not full."""
    path, reserve = os.path.join(output, name), _reserve(output, name)
    try:
        try:
            _write(reserve, content)
        except OSError:  # it was removed, or this file system cannot change a file on a full disk
            _remove(reserve)
            # Not its parents: without those the job was deleted, and another job of its name may be about to start.
            with contextlib.suppress(FileExistsError):
                os.mkdir(output)
            _write(reserve, content, os.O_CREAT | os.O_EXCL)
        os.replace(reserve, path)
    except OSError as error:
        return error.errno not in (errno.ENOSPC, errno.EDQUOT)
    finally:
        _remove(reserve)
    return True


def describe(
    environment: TrainingEnvironment, spec: ProcessSpec, status: int, output: str, rank: RankFailure | None = None
) -> HostFailure:
    """Return the failure of the job by a process's end; ``status`` is its exit code, or minus a signal's number.

    ``rank`` is the first rank that reported a failure; without it the output of ``mpirun`` names the rank.
    """
    host, process = environment.host, spec.name
    if process == "mpirun":
        host, process, status, output = _failed_rank(environment, status, output, rank)
    hide = create_redaction(environment)
    output = without_handled(without_native_frames(without_ignored(output)), status)
    where = f"{host}, {process}: {_status_text(status)}"
    from scriptmode_runtime._report.hints import hint as find_hint

    hint = hide(find_hint(output, _exit_code(status), spec))
    if len(hint) > _LONGEST_HINT:
        # Never cut: a part of a hint may state as a fact what the whole hint only supposes.
        hint = ""
    head = f"{where}\n{hint}\n" if hint else f"{where}\n"
    # Secrets are hidden before the text is cut: a part of a secret would not be recognised.
    script_text = (rank.own if rank and process != spec.name else "") or script_message(environment, host)
    # The directory of the source is found before, where a word of its path may be a secret.
    text = readable(hide(_with_source_paths(script_text or output, _base_dir(environment, host))))
    error = last_error(text)
    if not script_text and text and not error:
        head += _LOG_HEADING
    tail = excerpt(text, contract.FAILURE_FILE_LIMIT - len(head))
    return HostFailure(
        host,
        process,
        _exit_code(status),
        (head + tail).strip(),
        signal=signal_name(-status) if status < 0 else "",
        exception=exception_type(text),
        hint=hint,
        traceback=excerpt(text[max(0, last_traceback(text)) :], contract.TRACEBACK_LIMIT),
    )


def create_redaction(environment: TrainingEnvironment | None = None) -> Redaction:
    """Return a function that hides the secrets of this process's variables, and of the job if it is known."""
    from scriptmode_runtime._report.redaction import Redaction

    if environment is None:
        return Redaction(os.environ)
    parameters = (environment.hyperparameters, environment.framework_parameters)
    return Redaction(os.environ, *parameters, values=(environment.cluster.secret, environment.settings.secret))


def _write(path: str, content: bytes, flags: int = 0) -> None:
    """Replace the content of a file; never through a link."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o666)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.truncate()


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _failed_rank(
    environment: TrainingEnvironment, status: int, output: str, reported: RankFailure | None
) -> tuple[str, str, int, str]:
    """Return the rank that ended ``mpirun``: its host, its name, its status and its own lines."""
    from scriptmode_runtime._mpi.mpirun_output import cause_of, first_failure, lines_of_rank
    from scriptmode_runtime._strategies.mpi import processes_per_host

    failure = reported or first_failure(output)
    hosts = [host.name for host in environment.cluster.hosts]
    if failure is None:
        return environment.host, "mpirun", status, output
    failure = cause_of(failure, output)
    index = min(failure.rank // processes_per_host(environment), len(hosts) - 1)
    host = failure.node if failure.node in hosts else hosts[index]
    return host, f"rank {failure.rank}", failure.status, lines_of_rank(output, failure.rank)


def script_message(environment: TrainingEnvironment, host: str) -> str:
    """Return what the script itself wrote into the failure file of ``host``; "" where this host cannot read it."""
    base_dir = _base_dir(environment, host)
    try:
        # Without waiting for a writer, where the file is a FIFO.
        descriptor = os.open(os.path.join(base_dir, *contract.FAILURE_FILE.split("/")), os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
            return file.read(_LONGEST).decode("utf-8", "replace").strip() if is_file else ""
    except OSError:
        return ""


def _base_dir(environment: TrainingEnvironment, host: str) -> str:
    """Return the base directory of a host; "" for one of another machine."""
    if host == environment.host:
        return environment.base_dir
    base_dirs = {peer.name: peer.base_dir for peer in environment.cluster.hosts}
    return base_dirs.get(host, "") if environment.cluster.single_machine else ""


def _with_source_paths(text: str, base_dir: str) -> str:
    """Return tracebacks with the files of the source relative to it: the user does not know the job's copy."""
    code = os.path.join(base_dir or contract.DEFAULT_BASE_DIR, contract.CODE_DIR)
    # Python resolves the path of the working directory.
    for directory in (code, os.path.realpath(code)):
        # Python 3.13 and later colour the path.
        text = re.sub(rf'(File (?:\x1b\[[0-9;]{{0,20}}m)?"){re.escape(directory)}/', r"\1", text)
    return text


def _status_text(status: int) -> str:
    if status < 0:
        return f"killed by {signal_name(-status)}"
    return f"exit code {status}" if status else "ended while it was still needed"


def _exit_code(status: int) -> int:
    if status < 0:
        return SIGNALLED - status
    return status or LAUNCHER_FAILED
