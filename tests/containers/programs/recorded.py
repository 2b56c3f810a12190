"""Writes down what this process was given, then is the program that the job's variable PROGRAM names, if it does."""

import json
import os
import runpy
import socket
from contextlib import suppress
from pathlib import Path


def processes():
    """Give the command lines of everything that runs in this container."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        # Ended meanwhile.
        with suppress(OSError):
            found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


seen = {
    "host": socket.gethostname(),
    "variables": dict(os.environ),
    "processes": processes(),
}
rank = os.environ.get("OMPI_COMM_WORLD_RANK", "script")
Path(os.environ["SM_OUTPUT_DATA_DIR"], f"{seen['host']} {rank}.json").write_text(json.dumps(seen))
if program := os.environ.get("PROGRAM"):
    runpy.run_path(program, run_name="__main__")
