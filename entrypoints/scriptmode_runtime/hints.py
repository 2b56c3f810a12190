"""What usually helps: a table from the last output of a failed process to one line of advice. Pure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scriptmode_runtime.plan import ProcessSpec

_KILLED = 137
_TABLE = (
    (
        r"ModuleNotFoundError: No module named 'horovod['.]",
        "Horovod is not installed in {python}: build it there against its TensorFlow and Open MPI",
    ),
    (
        r"ModuleNotFoundError: No module named '([^'.]+)",
        "{0} is not installed in {python}: name its package in requirements.txt, or give its folder as source_dir",
    ),
    (r"MemoryError|Cannot allocate memory|std::bad_alloc", "Memory ran out: a smaller batch, or a larger host"),
    (r"No space left on device", "The disk is full: a larger volume, or fewer files"),
    (
        r"Address already in use|Could not start gRPC server",
        "A port of this task is held by another program: {ports}",
    ),
    (
        r"Disallowed task type",
        "TF2's ParameterServerStrategy takes a chief: set parameter_server's coordinator to True",
    ),
    (
        r"There are not enough slots available",
        "Fewer processors than ranks: add --oversubscribe, or lower processes_per_host",
    ),
)


def hint(output: str, exit_code: int, spec: ProcessSpec) -> str:
    """Give the advice for the last thing in the output that the table knows; "" where it knows none."""
    best, advice = -1, ""
    words: tuple[str, ...] = ()
    for pattern, text in _TABLE:
        for found in re.finditer(pattern, output):
            if found.start() > best:
                best, advice, words = found.start(), text, found.groups()
    if not advice and exit_code == _KILLED:
        return "If nobody killed it, memory ran out: a smaller batch, or a larger host"
    return advice.format(*words, python=_python(spec), ports=_ports(spec))


def _python(spec: ProcessSpec) -> str:
    """Give the interpreter that ran the program, behind mpirun's options too."""
    pythons = [word for word in spec.argv if re.search(r"(^|/)python[0-9.]*$", word)]
    return pythons[-1] if pythons else "the interpreter"


def _ports(spec: ProcessSpec) -> str:
    try:
        config = json.loads(spec.env["TF_CONFIG"])
        role, index = config["task"]["type"], config["task"]["index"]
        return f"{role} {index} listens at {config['cluster'][role][index]}"
    except (KeyError, ValueError, IndexError, TypeError):
        return "look for a program left from another run"
