"""``python -m scriptmode_runtime._host.probe``: write the programs of this host that jobs need, as one JSON object.

Checks files only; starts nothing and does not import TensorFlow.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

import scriptmode_runtime
from scriptmode_runtime._host import programs
from scriptmode_runtime.tensorflow import binary


def probe_host() -> dict[str, object]:
    """Return this host's ``mpirun`` and pipe reader, each as a job would use it."""
    compiler = ""
    with contextlib.suppress(binary.NoBinaryError):
        compiler = binary.find_compiler()
    mpirun = programs.find_mpirun(sys.executable, os.environ.get("PATH", os.defpath))
    return {
        "folder": os.path.dirname(os.path.abspath(scriptmode_runtime.__file__)),
        "mpirun": mpirun and mpirun._asdict(),
        "reader": "wheel" if os.path.exists(binary.IN_WHEEL) else "compiled" if binary.exists() else "",
        "compiler": compiler,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(probe_host()) + "\n")
