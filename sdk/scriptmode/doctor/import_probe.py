"""``python -m scriptmode.doctor.import_probe PACKAGE``: import TensorFlow or Horovod, and print its version as JSON.

What the package itself writes goes to the standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from typing import Any

#: Seconds after which this process ends itself if an import hangs and its parent was killed.
_SECONDS = 180


def main(name: str) -> None:
    """Import the package; an error is the last line of the standard error."""
    signal.alarm(_SECONDS)
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    package: Any = importlib.import_module(name)
    facts: dict[str, Any] = {"version": str(package.__version__), "file": str(package.__file__)}
    if name == "horovod":
        facts["mpi"] = bool(importlib.import_module("horovod.tensorflow").mpi_built())
    else:
        # tf.keras is one of two packages; the module of one of its classes says which.
        facts["keras"] = str(importlib.import_module(package.keras.Model.__module__.partition(".")[0]).__version__)
    print(json.dumps(facts), file=output, flush=True)
    # Threads of the packages could keep the interpreter from exiting.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
