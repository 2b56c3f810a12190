"""Replace this process by a command in the environment of a running process, found by its variables.

``python -c <this file> [--tied] NAME=VALUE... -- COMMAND...``, on this machine or in a container of any image
with Python: the command gets the variables, the working directory and the ``/opt/ml`` of the oldest process that has
all of ``NAME=VALUE``, and finds this interpreter first. Processes of other users, who may give theirs any variables, do
not count. If it cannot be run, the exit code is a shell's: 126 or 127.

With ``--tied``, which a container needs, this process stays: each byte of its input is the number of a signal for the
command, and the end of its input, when the client that wrote it is gone, ends the command. Every process of the
container is the job's.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

_TIED = "--tied"
#: Time for a command to end after SIGTERM before it is killed.
_GRACE_SECONDS = 5.0
_NOT_RUN, _NOT_FOUND = 126, 127


def entering_arguments(*words: str) -> tuple[str, ...]:
    """Return the arguments of Python that run this file with ``words``; the command follows them."""
    # Modules in the current directory do not hide those of Python.
    return "-I", "-c", Path(__file__).read_text(encoding="utf-8"), *words, "--"


def find_process(wanted: list[bytes], *, is_own: bool) -> tuple[Path, dict[bytes, bytes]] | None:
    """Return the directory in ``/proc`` of the oldest process with these variables, and its variables.

    With ``is_own`` it is a process of this user.
    """
    for process in sorted(
        (each for each in Path("/proc").iterdir() if each.name.isdigit()), key=lambda at: int(at.name)
    ):
        try:
            if is_own and process.stat().st_uid != os.geteuid():
                continue
            pairs = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if all(pair in pairs for pair in wanted):
            return process, {pair.partition(b"=")[0]: pair.partition(b"=")[2] for pair in pairs if b"=" in pair}
    return None


def enter_namespaces(process: Path) -> None:
    """Enter the namespaces in which ``/opt/ml`` and ``/etc/hosts`` are the host's, if any; raise ``OSError``."""
    own = Path("/proc/self/ns")
    # The namespace of users first: it gives the right to enter the other.
    kinds = [kind for kind in ("user", "mnt") if (process / "ns" / kind).readlink() != (own / kind).readlink()]
    opened = [os.open(process / "ns" / kind, os.O_RDONLY) for kind in kinds]
    library = ctypes.CDLL(None, use_errno=True)
    for descriptor in opened:
        if library.setns(descriptor, 0):
            raise OSError(ctypes.get_errno(), "its namespaces cannot be entered")


def run_tied(command: list[str], variables: dict[bytes, bytes]) -> int:
    """Run the command in its own session, without input; return its exit code, 128 + n for signal n."""
    process = subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL, start_new_session=True)
    threading.Thread(target=_forward_signals, args=(process,), daemon=True).start()
    code = process.wait()
    return code if code >= 0 else 128 - code


def _forward_signals(process: subprocess.Popen[bytes]) -> None:
    """Send the signals of the input to a command and its children; at the end of the input end them."""
    with suppress(ProcessLookupError):
        while number := os.read(0, 1):
            os.killpg(process.pid, number[0])
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)


def main(words: list[str]) -> None:
    """Run the command; the process becomes it, or with ``--tied`` waits for it."""
    at = words.index("--")
    is_tied, command = _TIED in words[:at], words[at + 1 :]
    found = find_process([os.fsencode(word) for word in words[:at] if word != _TIED], is_own=not is_tied)
    if found is None:
        sys.exit(
            "scriptmode: the script of this host does not run yet, or any more; try again, or see: scriptmode list"
        )
    process, variables = found
    own = os.fsencode(Path(sys.executable).parent)
    variables[b"PATH"] = own + b":" + variables.get(b"PATH", os.fsencode(os.defpath))
    try:
        directory = os.open(process / "cwd", os.O_RDONLY | os.O_DIRECTORY)
        enter_namespaces(process)
        os.fchdir(directory)
        if is_tied:
            sys.exit(run_tied(command, variables))
        os.execvpe(command[0], command, variables)  # noqa: S606 - no shell: the words are the user's
    except OSError as error:
        sys.stderr.write(f"scriptmode: {command[0]}: {error.strerror}; name a program that the host has\n")
        sys.exit(_NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_RUN)


if __name__ == "__main__":
    main(sys.argv[1:])
