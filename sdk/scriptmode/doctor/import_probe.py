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
from typing import Any, Callable

#: Seconds after which this process ends itself if an import hangs and its parent was interrupted.
_SECONDS = 60


def main() -> None:
    """Import the packages one after the other."""
    if sys.platform != "win32":
        signal.alarm(_SECONDS)
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for name, look in (("tensorflow", _tensorflow), ("keras", _keras), ("horovod", _horovod)):
        output.write(json.dumps({"name": name, **_try(look)}) + "\n")
        output.flush()
    # Threads of the packages could keep the interpreter from exiting.
    sys.stderr.flush()
    os._exit(0)


def _try(look: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return look()
    except ModuleNotFoundError as error:
        return {"missing": error.name or str(error), "error": _line(error)}
    except Exception as error:  # noqa: BLE001 - a broken package may raise anything
        return {"error": _line(error)}


def _line(error: BaseException) -> str:
    """Return an error as the last line of a traceback, without further lines of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _tensorflow() -> dict[str, Any]:
    tensorflow = importlib.import_module("tensorflow")
    return {"version": str(tensorflow.__version__), "file": str(tensorflow.__file__)}


def _keras() -> dict[str, Any]:
    tensorflow = importlib.import_module("tensorflow")
    # tf.keras is one of two packages; the module of one of its classes says which.
    package = importlib.import_module(str(tensorflow.keras.Model.__module__).partition(".")[0])
    return {"version": str(package.__version__), "file": str(package.__file__), "package": package.__name__}


def _horovod() -> dict[str, Any]:
    horovod = importlib.import_module("horovod")
    found = {"version": str(horovod.__version__), "file": str(horovod.__file__)}
    try:
        part = importlib.import_module("horovod.tensorflow")
        found["mpi"] = bool(part.mpi_built())  # type: ignore[assignment]
    except Exception as error:  # noqa: BLE001 - a broken package may raise anything
        found["error"] = _line(error)
    return found


if __name__ == "__main__":
    main()
