"""Knows nothing of any launcher but what SageMaker documents: writes down what it was given, saves a model, ends as told."""

import importlib.util
import json
import os
import socket
import sys
from pathlib import Path

seen = {
    "host": socket.gethostname(),
    "arguments": sys.argv[1:],
    "channel": sorted(path.name for path in Path(os.environ["SM_CHANNEL_TRAIN"]).iterdir()),
    "variables": dict(os.environ),
    "ours": importlib.util.find_spec("scriptmode_runtime") is not None,
}
rank = os.environ.get("OMPI_COMM_WORLD_RANK", "script")
Path(os.environ["SM_OUTPUT_DATA_DIR"], f"{os.environ.get('HOSTNAME')} {rank}.json").write_text(json.dumps(seen))
if rank != "script":
    from mpi4py import MPI

    print("the sum of all ranks is", MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1), flush=True)
Path(os.environ["SM_MODEL_DIR"], f"weights {rank}").write_text("trained")
sys.exit(json.loads(os.environ["SM_HPS"]).get("ends-with", 0))
