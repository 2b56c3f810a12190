"""Serve the TensorFlow task that ``TF_CONFIG`` names, until the launcher ends it."""

from __future__ import annotations

import json
import os
import sys

from scriptmode_runtime import contract
from scriptmode_runtime._processes.loopback import REUSE_PORT, is_taken
from scriptmode_runtime.tensorflow import binary

_FAILED = 1


def has_pipes() -> bool:
    """Return whether a channel of this host is in Pipe mode."""
    base = os.environ.get(contract.BASE_DIR_VARIABLE) or contract.DEFAULT_BASE_DIR
    try:
        with open(os.path.join(base, contract.INPUT_DATA_CONFIG_FILE), encoding="utf-8") as file:
            channels = json.load(file)
        return any(channel["TrainingInputMode"] == "Pipe" for channel in channels.values())
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return False


def load_pipe_reader() -> None:
    """Load the operations of a `PipeModeDataset` that a coordinator may send; a server also runs without them.

    Datasets run in this process, which never imports the script that creates them. Without a channel in Pipe mode
    nothing is compiled, and loading an existing binary takes milliseconds.
    """
    is_needed = has_pipes()
    if not is_needed and not binary.exists():
        return
    from scriptmode_runtime.tensorflow import operations

    try:
        operations.load()
    except binary.NoBinaryError as error:
        if is_needed:
            host = os.environ.get("CURRENT_HOST", "this host")
            sys.stderr.write(f"scriptmode: {host}: {error}\n")


def main() -> int:
    """Run the server; return only where that is not possible."""
    config = json.loads(os.environ["TF_CONFIG"])
    role, index = config["task"]["type"], config["task"]["index"]
    endpoint = config["cluster"][role][index]
    port = int(endpoint.rpartition(":")[2])
    if is_taken(port, shared=os.environ.get(REUSE_PORT) == "true"):
        host = os.environ.get("CURRENT_HOST", "this host")
        sys.stderr.write(
            f"scriptmode: {host}: port {port} of {role} {index} ({endpoint}) is used by another program; "
            "end it, or start the job again\n"
        )
        return _FAILED
    # A server logs each connection at level INFO; its warnings are enough beside the script's own output.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    import tensorflow as tf

    if role != "ps":
        load_pipe_reader()
    server = tf.distribute.Server(config["cluster"], job_name=role, task_index=index, protocol="grpc")
    server.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
