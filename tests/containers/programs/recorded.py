"""Writes down what this process was given, then is the program that the job's variable PROGRAM names, if it does."""

import json
import os
import runpy
import socket
from pathlib import Path

seen = {"host": socket.gethostname(), "variables": dict(os.environ)}
rank = os.environ.get("OMPI_COMM_WORLD_RANK", "script")
Path(os.environ["SM_OUTPUT_DATA_DIR"], f"{seen['host']} {rank}.json").write_text(json.dumps(seen))
if program := os.environ.get("PROGRAM"):
    runpy.run_path(program, run_name="__main__")
