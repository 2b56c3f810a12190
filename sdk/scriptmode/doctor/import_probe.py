"""``python -m scriptmode.doctor.import_probe``: import TensorFlow, Keras and Horovod, and print their versions.

One line of JSON each, written at once: it remains if a later import crashes the process. What the packages
themselves write goes to the standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from typing import Any

#: Seconds after which this process ends itself if an import hangs and its parent was killed.
_SECONDS = 180


def main() -> None:
    """Import the packages one after the other."""
    signal.alarm(_SECONDS)
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for name in ("tensorflow", "keras", "horovod"):
        found: dict[str, Any] = {}
        begun = time.monotonic()
        try:
            _look(name, found)
        except Exception as error:  # noqa: BLE001 - a broken package may raise anything
            found["error"] = f"{type(error).__name__}: {error}".strip().partition("\n")[0].removesuffix(": ")
            # Horovod has a version before its part for TensorFlow is imported.
            if isinstance(error, ModuleNotFoundError) and "version" not in found:
                found["missing"] = error.name or str(error)
        output.write(json.dumps({**found, "seconds": time.monotonic() - begun}) + "\n")
        output.flush()
    # Threads of the packages could keep the interpreter from exiting.
    sys.stderr.flush()
    os._exit(0)


def _look(name: str, found: dict[str, Any]) -> None:
    package: Any = importlib.import_module("tensorflow" if name == "keras" else name)
    if name == "keras":
        # tf.keras is one of two packages; the module of one of its classes says which.
        package = importlib.import_module(str(package.keras.Model.__module__).partition(".")[0])
    found.update(version=str(package.__version__), file=str(package.__file__))
    if name == "horovod":
        found["mpi"] = bool(importlib.import_module("horovod.tensorflow").mpi_built())


if __name__ == "__main__":
    main()
