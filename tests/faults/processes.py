"""The processes of this machine as ``/proc`` shows them, those in namespaces below this one too."""

import json
import subprocess
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")


def running():
    """Every process; one that only waits to be reaped is none."""
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
    return [pid for pid in pids if state(pid) not in ("Z", "X", "")]


def state(pid):
    """One letter, as proc(5) has it; "" for a process that is gone."""
    fields = _stat(pid)
    return fields[0] if fields else ""


def children(parent):
    """The direct children of a process that has one thread."""
    try:
        return [int(pid) for pid in (_PROC / f"{parent}/task/{parent}/children").read_text().split()]
    except FileNotFoundError:  # the process is gone, or the kernel has no such file
        return [pid for pid in running() if _stat(pid)[1:2] == [str(parent)]]


def namespace(pid):
    """The process namespace a process is in; None once it is gone."""
    try:
        return str((_PROC / str(pid) / "ns" / "pid").readlink())
    except OSError:
        return None


def members(name):
    """Every process of a process namespace, those included that wait to be reaped."""
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
    return [pid for pid in pids if namespace(pid) == name]


def words(pid):
    return _strings(pid, "cmdline")


def variables(pid):
    return dict(text.partition("=")[::2] for text in _strings(pid, "environ"))


def task(pid):
    """The task of ``TF_CONFIG`` a process is, as ``worker 0``; "" for others."""
    with suppress(ValueError, KeyError):
        task = json.loads(variables(pid)["TF_CONFIG"])["task"]
        return f"{task['type']} {task['index']}"
    return ""


def _strings(pid, file):
    try:
        return (_PROC / str(pid) / file).read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def _stat(pid):
    """The fields after the name, which may hold blanks and brackets."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def end_first(first):
    """End the first process of a process namespace, which ends at the end of its input, and with it all others there."""
    first.stdin.close()
    try:
        first.wait(600)
    except subprocess.TimeoutExpired:
        first.kill()
        first.wait(600)
    first.stdout.close()
