"""Writes down what this process was given, then is the program that the job's variable PROGRAM names, if it does."""

import json
import os
import runpy
import socket
import sys
from pathlib import Path


def ancestors():
    """Give the command lines of the processes that this one comes from, as far as this container sees them."""
    found, pid = [], os.getppid()
    while pid:
        found.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip())
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return found


seen = {
    "host": socket.gethostname(),
    "addresses": {name: socket.gethostbyname(name) for name in json.loads(os.environ["SM_HOSTS"])},
    "arguments": sys.argv[1:],
    "variables": dict(os.environ),
    "ancestors": ancestors(),
}
rank = os.environ.get("OMPI_COMM_WORLD_RANK", "script")
Path(os.environ["SM_OUTPUT_DATA_DIR"], f"{seen['host']} {rank}.json").write_text(json.dumps(seen))
if program := os.environ.get("PROGRAM"):
    runpy.run_path(program, run_name="__main__")
